/* SPDX-License-Identifier: Apache-2.0
 *
 * Where cgroups are: for any mountinfo and, after an empty line, any /proc/PID/cgroup, names are
 * absolute and directories are not above the mount point.
 */
#include "base/cgroup.h"
#include "base/mem.h"
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void find(const char *mounts, const char *groups, enum cgroup_kind kind)
{
    struct cgroup_found at;
    char *name = cgroup_name(groups, kind);
    assert(!name || name[0] == '/');
    cgroup_find(mounts, kind, name, &at);
    assert(at.is_mounted == (at.top_len > 0));
    if (at.dir) {
        assert(name && at.is_mounted && strlen(at.dir) >= at.top_len);
        assert(!memchr(at.dir, '\\', at.top_len));
        assert(!at.dir[at.top_len] || at.dir[at.top_len] == '/');
    }
    free(at.dir);
    free(name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = mem_strndup((const char *)data, size), *empty = strstr(text, "\n\n");
    if (empty)
        empty[1] = '\0';
    for (enum cgroup_kind k = 0; k < CGROUP_KINDS; k++)
        find(text, empty ? empty + 2 : "", k);
    free(text);
    return 0;
}
