/* SPDX-License-Identifier: Apache-2.0
 *
 * The API's routes for working directories that are sent with jobs (workdirs.h): users send them,
 * and agents fetch those of their attempts.
 */
#include "scheduler/api/api_private.h"

#include "base/mem.h"
#include "base/str.h"
#include "scheduler/workdirs.h"
#include <stdlib.h>
#include <string.h>

/* ---- sending ---- */

struct workdir_put {
    struct deferred_reply *deferred;
    char hash[CHUNK_HEX_SIZE];
};

static json_t *json_lines(const struct buf *text)
{
    json_t *list = json_array();
    for (const char *p = buf_str(text), *eol; (eol = strchr(p, '\n')); p = eol + 1)
        json_array_append_new(list, json_textn(p, (size_t)(eol - p)));
    return list;
}

static void on_put(void *ctx, const struct err *e, const struct buf *missing)
{
    struct workdir_put *p = ctx;
    struct http_exchange *x = deferred_reply_take(p->deferred);
    if (x && e)
        http_reply_err(x, e);
    else if (x)
        api_reply_json(
            x, 200, json_pack("{s:s,s:o}", "workdir", p->hash, "missing", json_lines(missing)));
    free(p);
}

void api_workdirs_put(struct request *q)
{
    struct workdir_put *p = mem_alloc(sizeof(*p));
    chunk_hash(q->r->body, q->r->body_len, p->hash);
    p->deferred = deferred_reply_create(q->api, q->x, API_COMMIT_WAIT_MS);
    workdirs_put(q->api->o.workdirs, q->caller.user, q->r->body, q->r->body_len, on_put, p);
}

static void on_added(void *ctx, const struct err *e, const struct buf *nothing)
{
    struct http_exchange *x = deferred_reply_take(ctx);
    (void)nothing;
    if (x && e)
        http_reply_err(x, e);
    else if (x)
        api_reply_json(x, 200, json_object());
}

void api_workdirs_add(struct request *q)
{
    struct err e;
    if (q->r->body_len > WORKDIR_PACK_BYTES) {
        err_set(&e, ERR_INVALID, "%zu bytes of pieces, at most %u are taken at once",
            q->r->body_len, WORKDIR_PACK_BYTES);
        http_reply_err(q->x, &e);
        return;
    }
    struct deferred_reply *l = deferred_reply_create(q->api, q->x, API_COMMIT_WAIT_MS);
    workdirs_add(q->api->o.workdirs, q->caller.user, q->r->body, q->r->body_len, on_added, l);
}

int api_pin_workdir(const struct api *a, const struct jobspec *s, struct err *e)
{
    json_t *launch = s->texts.launch_json ? json_loads(s->texts.launch_json, 0, NULL) : NULL;
    const char *hash = json_string_value(json_object_get(launch, "workdir"));
    int rc = hash && *hash ? workdirs_pin(a->o.workdirs, s->row.user, hash, e) : 0;
    json_decref(launch);
    return rc;
}

/* ---- fetching ---- */

/* Finds the working directory of the attempt in the path, if it is this node's. Returns false after
 * an error reply. */
static bool find_workdir(
    struct request *q, char ret_user[CORE_NAME_MAX], char ret_hash[CHUNK_HEX_SIZE])
{
    int64_t node = api_node_of_cn(q->r->peer_cn);
    const struct job *job = model_job(tick_model(q->api->o.tick), q->id);
    const struct attempt *live = job ? job_attempt_on(job, q->id2, node) : NULL;
    struct spec_change spec = {0};
    struct err e;
    int rc = live ? db_read_spec(q->api->o.reader, q->id, &spec, &e)
                  : err_set(&e, ERR_NOT_FOUND, "attempt %lld of job %lld does not run on this node",
                        (long long)q->id2, (long long)q->id);
    json_t *launch = rc == 0 && spec.launch_json ? json_loads(spec.launch_json, 0, NULL) : NULL;
    const char *hash = json_string_value(json_object_get(launch, "workdir"));
    if (rc == 0 && (!hash || !workdir_is_hash(hash)))
        rc = err_set(
            &e, ERR_NOT_FOUND, "job %lld came without a working directory", (long long)q->id);
    if (rc == 0) {
        str_copy(ret_hash, CHUNK_HEX_SIZE, hash);
        str_copy(ret_user, CORE_NAME_MAX, job->row.user);
    } else {
        http_reply_err(q->x, &e);
    }
    json_decref(launch);
    spec_change_deinit(&spec);
    return rc == 0;
}

static void on_got(void *ctx, const struct err *e, const struct buf *out)
{
    struct http_exchange *x = deferred_reply_take(ctx);
    if (x && e)
        http_reply_err(x, e);
    else if (x)
        http_reply_bytes(x, 200, "application/octet-stream", out->data, out->len);
}

void api_agent_workdir(struct request *q)
{
    char user[CORE_NAME_MAX], hash[CHUNK_HEX_SIZE];
    if (find_workdir(q, user, hash))
        workdirs_get(q->api->o.workdirs, user, hash, on_got,
            deferred_reply_create(q->api, q->x, API_COMMIT_WAIT_MS));
}

void api_agent_workdir_pieces(struct request *q)
{
    char user[CORE_NAME_MAX], hash[CHUNK_HEX_SIZE];
    char(*hashes)[CHUNK_HEX_SIZE];
    struct err e;
    size_t n;
    if (!find_workdir(q, user, hash))
        return;
    if (workdir_parse_request(q->r->body, q->r->body_len, &hashes, &n, &e) != 0)
        http_reply_err(q->x, &e);
    else
        workdirs_get_pieces(q->api->o.workdirs, user, hashes, n, on_got,
            deferred_reply_create(q->api, q->x, API_COMMIT_WAIT_MS));
}
