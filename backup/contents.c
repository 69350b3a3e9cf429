/* SPDX-License-Identifier: Apache-2.0 */
#include "backup/contents.h"

#include "backup/archive.h"
#include "base/json.h"
#include "base/str.h"
#include <string.h>

#define FORMAT 1

void contents_format(const struct contents *m, struct buf *out)
{
    char at[TIME_ISO_MAX];
    json_t *files = json_array();
    for (size_t i = 0; i < m->n_files; i++)
        json_array_append_new(
            files, json_pack("{s:s,s:I,s:s}", "name", m->files[i].name, "bytes",
                       (json_int_t)m->files[i].bytes, "sha256", m->files[i].sha256));
    time_format_iso(m->made_at, at);
    json_add(
        out, json_pack("{s:i,s:s,s:s,s:s,s:I,s:I,s:o,s:o}", "format", FORMAT, "belay", m->belay,
                 "made_at", at, "cluster_uid", m->cluster_uid, "schema", (json_int_t)m->schema,
                 "epoch", (json_int_t)m->epoch, "config", json_text(m->config), "files", files));
    buf_addc(out, '\n');
}

static void read_file(struct json_reader *all, const json_t *v, struct contents_file *ret_file)
{
    struct json_reader r;
    unsigned char hash[32];
    json_reader_init(&r, v, "files", all->e);
    json_req_strcpy(&r, "name", ret_file->name, sizeof(ret_file->name));
    ret_file->bytes = json_req_i64(&r, "bytes", 0, INT64_MAX);
    json_req_strcpy(&r, "sha256", ret_file->sha256, sizeof(ret_file->sha256));
    if (r.rc == 0 && !archive_name_is_valid(ret_file->name))
        json_reader_fail(&r, "name", "expected a file's name");
    if (r.rc == 0 && !str_unhex(ret_file->sha256, hash, sizeof(hash)))
        json_reader_fail(&r, "sha256", "expected 64 lower-case hex digits");
    if (json_reader_finish_lenient(&r) != 0 && all->rc == 0)
        all->rc = r.rc;
}

static void read_members(struct json_reader *r, struct contents *m)
{
    const char *at;
    json_req_strcpy(r, "belay", m->belay, sizeof(m->belay));
    json_req_strcpy(r, "cluster_uid", m->cluster_uid, sizeof(m->cluster_uid));
    json_opt_strcpy(r, "config", m->config, sizeof(m->config), "");
    m->schema = json_req_i64(r, "schema", 0, INT32_MAX);
    m->epoch = json_req_i64(r, "epoch", 0, INT32_MAX);
    at = json_req_str(r, "made_at", TIME_ISO_MAX);
    if (r->rc == 0 && time_parse_iso(at, &m->made_at, NULL) != 0)
        json_reader_fail(r, "made_at", "expected a time");
    const json_t *files = json_req_array(r, "files", CONTENTS_FILES_MAX), *v;
    size_t i;
    json_array_foreach((json_t *)files, i, v) read_file(r, v, &m->files[m->n_files++]);
}

int contents_parse(const char *text, size_t n, struct contents *ret_contents, struct err *e)
{
    struct contents m = {0};
    struct json_reader r;
    json_t *v = NULL;
    struct err why;
    int rc = json_parse(text, n, CONTENTS_BYTES_MAX, &v, &why);
    bool newer = false;
    if (rc == 0) {
        json_reader_init(&r, v, "manifest", &why);
        newer = json_req_i64(&r, "format", 1, INT32_MAX) > FORMAT;
        if (r.rc == 0 && !newer)
            read_members(&r, &m);
        rc = json_reader_finish_lenient(&r);
    }
    json_decref(v);
    if (rc == 0 && newer)
        return err_set(e, ERR_UNSUPPORTED, "it was made by a newer belay: install that first");
    if (rc != 0)
        return err_set(e, ERR_CORRUPT, "it is not a manifest of a backup: %.300s", why.text);
    *ret_contents = m;
    return 0;
}

const struct contents_file *contents_find(const struct contents *m, const char *name)
{
    for (size_t i = 0; i < m->n_files; i++)
        if (str_eq(m->files[i].name, name))
            return &m->files[i];
    return NULL;
}
