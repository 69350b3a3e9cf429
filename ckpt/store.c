/* SPDX-License-Identifier: Apache-2.0
 *
 * From a URL to a store.
 */
#include "ckpt/store.h"
#include "base/str.h"
#include "ckpt/store_file.h"
#include <string.h>

int store_open(const char *url, struct store **ret_store, struct err *e)
{
    static const char scheme[] = "file://";
    struct buf path = {0};
    int rc;

    if (!str_starts(url, scheme))
        return err_set(e, ERR_INVALID,
            "store '%.200s': this kind of store is not supported; use file:///an/absolute/path", url);
    rc = str_url_decode(&path, url + strlen(scheme), strlen(url) - strlen(scheme), false, e);
    if (rc)
        err_wrap(e, "store '%.200s'", url);
    else if (path.len == 0 || path.data[0] != '/')
        rc = err_set(e, ERR_INVALID,
            "store '%.200s': the path must be absolute and on this machine: file:///an/absolute/path", url);
    else
        rc = store_file_open(buf_str(&path), ret_store, e);
    buf_deinit(&path);
    return rc;
}

void store_close(struct store *s)
{
    if (s)
        s->ops->close(s);
}

static bool is_part_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
}

bool store_name_is_valid(const char *name)
{
    bool at_start = true; /* of a part */
    size_t n = 0;

    for (; name[n]; n++) {
        if (n >= STORE_NAME_MAX)
            return false;
        if (name[n] == '/') {
            if (at_start)
                return false;
            at_start = true;
        } else {
            if (!is_part_byte(name[n]) || (at_start && name[n] == '.'))
                return false;
            at_start = false;
        }
    }
    return !at_start;
}
