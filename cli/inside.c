/* SPDX-License-Identifier: Apache-2.0
 *
 * See inside.h.
 */
#include "cli/inside.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "job/attributes.h"
#include <stdlib.h>

#define FILE_MAX (128u << 10)
#define SERVER_MAX 1024
#define PEM_MAX 65536
#define TOKEN_MAX 1024

int64_t inside_job(void)
{
    const char *text = getenv("BELAY_JOB_ID");
    int64_t id;
    return text && str_to_i64(text, 1, INT64_MAX, "job", &id, NULL) == 0 ? id : 0;
}

bool inside_allows(const json_t *changes)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)changes, name, value)
    {
        const struct job_attribute *a = job_attribute_by_name(name);
        if (!a || !(a->masks & JOB_UPDATE_INSIDE))
            return false;
    }
    return true;
}

void inside_keys(struct buf *out)
{
    for (size_t i = 0; i < job_attributes_count; i++)
        if (job_attributes[i].key && (job_attributes[i].masks & JOB_UPDATE_INSIDE))
            buf_printf(out, "%s%s", out->len ? ", " : "", job_attributes[i].key);
}

int inside_client(struct client **ret_client, struct err *e)
{
    const char *path = getenv("BELAY_JOB_FILE");
    struct buf text = {0};
    struct json_reader r;
    json_t *v = NULL;
    if (!path)
        return err_set(e, ERR_NOT_FOUND, "BELAY_JOB_FILE is not set");
    int rc = fs_read_secret(path, FILE_MAX, &text, e);
    if (rc == 0)
        rc = json_parse(buf_str(&text), text.len, FILE_MAX, &v, e);
    buf_wipe(&text);
    if (rc != 0)
        return rc;
    json_reader_init(&r, v, "job.json", e);
    const char *server = json_req_str(&r, "server", SERVER_MAX),
               *ca = json_req_str(&r, "ca", PEM_MAX), *token = json_req_str(&r, "token", TOKEN_MAX);
    rc = json_reader_finish_lenient(&r);
    if (rc == 0)
        client_create_at(server, ca, token, ret_client);
    json_wipe(v);
    return rc;
}
