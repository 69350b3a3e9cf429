/* SPDX-License-Identifier: Apache-2.0
 *
 * From a URL to a store.
 */
#include "ckpt/store/store.h"
#include "base/fs.h"
#include "base/str.h"
#include "ckpt/s3.h"
#include "ckpt/store/store_file.h"
#include "ckpt/store/store_origin.h"
#include "ckpt/store/store_s3.h"
#include <string.h>

#define FILE_SCHEME "file://"

static int file_path(const char *url, struct buf *path, struct err *e)
{
    const char *text = url + strlen(FILE_SCHEME);
    int rc = str_url_decode(path, text, strlen(text), false, e);
    if (rc)
        return err_wrap(e, "store '%.200s'", url);
    if (path->len == 0 || path->data[0] != '/')
        return err_set(e, ERR_INVALID,
            "store '%.200s': the path must be absolute and on this machine: "
            "file:///an/absolute/path",
            url);
    return 0;
}

static int not_supported(const char *url, struct err *e)
{
    return err_set(e, ERR_INVALID,
        "store '%.200s': this kind of store is not supported; use file:///an/absolute/path, "
        "s3://BUCKET/PREFIX?region=NAME, gs://BUCKET/PREFIX or az://ACCOUNT/CONTAINER/PREFIX",
        url);
}

static int open_kind(
    const char *url, const struct store_options *o, struct store **ret_store, struct err *e)
{
    static const struct store_options none = {0};
    struct buf path = {0};
    int rc;

    if (s3_location_is_one(url, NULL))
        return store_s3_open(url, o ? o : &none, ret_store, e);
    if (!str_starts(url, FILE_SCHEME))
        return not_supported(url, e);
    rc = file_path(url, &path, e);
    if (!rc)
        rc = store_file_open(buf_str(&path), o && o->existing, ret_store, e);
    buf_deinit(&path);
    return rc;
}

int store_open(
    const char *url, const struct store_options *o, struct store **ret_store, struct err *e)
{
    struct store_pulse *pulse = o ? o->pulse : NULL;
    struct store *inner;

    if (pulse)
        atomic_fetch_add(&pulse->begun, 1);
    int rc = open_kind(url, o, &inner, e);
    if (pulse)
        atomic_fetch_add(&pulse->alive, 1);
    if (rc)
        return store_origin_mark(rc, e);
    *ret_store = store_origin_wrap(inner, pulse);
    return 0;
}

int store_check_url(const char *url, struct err *e)
{
    struct s3_location location;
    struct buf path = {0};
    int rc;

    if (s3_location_is_one(url, NULL)) {
        rc = s3_location_parse(url, &location, e);
        if (rc)
            return err_wrap(e, "store '%.200s'", url);
        s3_location_deinit(&location);
        return 0;
    }
    if (!str_starts(url, FILE_SCHEME))
        return not_supported(url, e);
    rc = file_path(url, &path, e);
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
    bool at_start = true; /* of a path component */
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
