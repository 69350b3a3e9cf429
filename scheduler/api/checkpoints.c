/* SPDX-License-Identifier: Apache-2.0
 *
 * Stored checkpoints of a job: which there are, pins, and verifications (scheduler/store/
 * ckpt_desk.h). Their content never passes through belayd: users get it from the store, whose
 * rights decide who may.
 */
#include "scheduler/api/api_private.h"

#include "scheduler/store/ckpt_desk.h"

#define BODY_MAX 4096

/* Reads the job, and of a change the body {"attempt": 3, "sequence": 7}. Returns false after an
 * error reply. The texts of *ret are valid as long as row and identity. */
static bool read_of(struct request *q, enum right right, struct job_row *row,
    char identity[CKPT_IDENTITY_MAX], struct ckpt_desk_of *ret)
{
    struct json_reader r;
    struct err e;
    if (!api_find_job(q, right, row))
        return false;
    core_ckpt_identity(q->api->o.meta->cluster_uid, row->submitted_at, identity);
    *ret = (struct ckpt_desk_of){.job = q->id, .identity = identity, .user = q->caller.user};
    if (!q->api->o.ckpt_desk) {
        api_reply_failure(q->x, ERR_UNSUPPORTED, "this belayd has no checkpoint store");
        return false;
    }
    if (right == RIGHT_READ_JOB)
        return true;
    json_t *body = api_body(q, BODY_MAX);
    if (!body)
        return false;
    json_reader_init(&r, body, "body", &e);
    ret->id.attempt = json_req_i64(&r, "attempt", 1, CKPT_NUMBER_MAX);
    ret->id.sequence = json_req_i64(&r, "sequence", 1, CKPT_NUMBER_MAX);
    int rc = json_reader_finish(&r);
    json_decref(body);
    if (rc != 0)
        http_reply_err(q->x, &e);
    return rc == 0;
}

/* ---- which there are ---- */

static json_t *id_json(struct ckpt_id id)
{
    return json_pack(
        "{s:I,s:I}", "attempt", (json_int_t)id.attempt, "sequence", (json_int_t)id.sequence);
}

/* A job that has stored nothing yet has an empty list. */
static void on_listed(void *ctx, const struct ckpt_stored *v, size_t n, const struct err *e)
{
    struct http_exchange *x = deferred_reply_take(ctx);
    if (x && e && e->kind != ERR_NOT_FOUND) {
        http_reply_err(x, e);
        return;
    }
    json_t *list = json_array();
    for (size_t i = 0; x && !e && i < n; i++) {
        json_t *o = id_json(v[i].id);
        json_object_set_new(o, "pinned", json_boolean(v[i].pinned));
        json_array_append_new(list, o);
    }
    json_t *reply = json_pack("{s:o}", "checkpoints", list);
    if (x)
        api_reply_json(x, 200, reply);
    else
        json_decref(reply);
}

void api_checkpoints_list(struct request *q)
{
    struct job_row row;
    char identity[CKPT_IDENTITY_MAX];
    struct ckpt_desk_of of;
    if (read_of(q, RIGHT_READ_JOB, &row, identity, &of))
        ckpt_desk_list(q->api->o.ckpt_desk, &of, on_listed,
            deferred_reply_create(q->api, q->x, API_COMMIT_WAIT_MS));
}

/* ---- pins ---- */

static void on_pinned(void *ctx, const struct ckpt_stored *v, size_t n, const struct err *e)
{
    struct http_exchange *x = deferred_reply_take(ctx);
    (void)v, (void)n;
    if (x && e)
        http_reply_err(x, e);
    else if (x)
        api_reply_json(x, 200, json_object());
}

static void set_pin(struct request *q, bool pinned)
{
    struct job_row row;
    char identity[CKPT_IDENTITY_MAX];
    struct ckpt_desk_of of;
    if (read_of(q, RIGHT_CHANGE, &row, identity, &of))
        ckpt_desk_pin(q->api->o.ckpt_desk, &of, pinned, on_pinned,
            deferred_reply_create(q->api, q->x, API_COMMIT_WAIT_MS));
}

void api_checkpoints_pin(struct request *q)
{
    set_pin(q, true);
}

void api_checkpoints_unpin(struct request *q)
{
    set_pin(q, false);
}

/* ---- verifications ---- */

void api_checkpoints_verify(struct request *q)
{
    struct job_row row;
    char identity[CKPT_IDENTITY_MAX];
    struct ckpt_desk_of of;
    struct err e;
    if (!read_of(q, RIGHT_CHANGE, &row, identity, &of))
        return;
    if (ckpt_desk_verify(q->api->o.ckpt_desk, &of, &e) != 0)
        http_reply_err(q->x, &e);
    else
        api_reply_json(q->x, 202, json_object());
}

static void add_verification(void *ctx, const struct verification_info *v)
{
    json_t *o = id_json(v->id);
    json_object_set_new(o, "state", json_string(verification_state_names[v->state]));
    json_object_set_new(o, "by", json_text(v->by));
    json_object_set_new(o, "text", json_text(v->text));
    json_object_set_new(o, "total_bytes", api_json_opt(v->total_bytes, -1));
    json_object_set_new(o, "done_bytes", json_integer(v->done_bytes));
    json_object_set_new(o, "asked_at", api_json_time(v->asked_at));
    json_object_set_new(o, "ended_at", api_json_time(v->ended_at));
    json_array_append_new(ctx, o);
}

void api_checkpoints_verified(struct request *q)
{
    struct job_row row;
    char identity[CKPT_IDENTITY_MAX];
    struct ckpt_desk_of of;
    if (!read_of(q, RIGHT_READ_JOB, &row, identity, &of))
        return;
    json_t *list = json_array();
    ckpt_desk_each(q->api->o.ckpt_desk, q->id, add_verification, list);
    api_reply_json(q->x, 200, json_pack("{s:o}", "verifications", list));
}
