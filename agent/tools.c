/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/tools.h"

#include "base/mem.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The first of the paths, relative to own, that has the file or directory `name`, as an absolute
 * path; NULL if none. */
static char *find(const char *own, const char *const paths[2], const char *name)
{
    for (int i = 0; i < 2; i++) {
        char *path = mem_printf("%s/%s/%s", own, paths[i], name);
        char *real = realpath(path, NULL);
        free(path);
        if (real) {
            *strrchr(real, '/') = '\0';
            return real;
        }
    }
    return NULL;
}

void tools_find(struct tools *ret_tools)
{
    char own[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", own, sizeof(own) - 1);
    *ret_tools = (struct tools){0};
    if (n <= 0)
        return;
    own[n] = '\0';
    *strrchr(own, '/') = '\0';
    ret_tools->bin = find(own, (const char *const[]){".", "../cli"}, "belay");
    ret_tools->python =
        find(own, (const char *const[]){"../share/belay", "../clients/python"}, "belay");
}

void tools_deinit(struct tools *t)
{
    free(t->bin);
    free(t->python);
}
