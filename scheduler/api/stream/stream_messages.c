/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/api/stream/stream_messages.h"

#include "base/mem.h"
#include <stdlib.h>
#include <string.h>

/* A job that is not in the model any more. */
struct read_row {
    struct link in_rows;
    struct job_row row;
};

void stream_messages_deinit(struct stream_messages *ms)
{
    for (size_t i = 0; i < ms->n; i++) {
        free(ms->items[i].plain);
        free(ms->items[i].hidden);
    }
    free(ms->items);
    for (struct link *l; (l = list_pop(&ms->rows));)
        free(LIST_ENTRY(l, struct read_row, in_rows));
    *ms = (struct stream_messages){.api = ms->api};
}

/* JSON has no line ends in it, so nothing that a user named can end a field or an event. */
char *stream_text(const char *name, const struct stream_position *position, json_t *data)
{
    struct buf out = {0};
    char id[STREAM_POSITION_MAX];
    if (position) {
        stream_position_format(*position, id);
        buf_printf(&out, "id: %s\n", id);
    }
    buf_printf(&out, "event: %s\ndata: ", name);
    json_add(&out, data);
    buf_adds(&out, "\n\n");
    return buf_take(&out);
}

/* data NULL: the caller sets the text. The result is borrowed until the next call. */
static struct stream_message *add(struct stream_messages *ms, enum stream_kind kind, json_t *data)
{
    if (ms->n == ms->cap) {
        ms->cap = ms->cap ? 2 * ms->cap : 16;
        ms->items = mem_resize(ms->items, ms->cap, sizeof(*ms->items));
    }
    struct stream_message *m = &ms->items[ms->n++];
    *m = (struct stream_message){.kind = kind};
    m->plain = data ? stream_text(stream_kind_names[kind], NULL, data) : NULL;
    return m;
}

static void set_job(struct stream_message *m, const struct job_row *row)
{
    m->job = row->id;
    m->array = row->array;
    m->object = api_object_of_job(row);
    m->has_object = true;
}

static json_t *job_json(const struct job_row *r)
{
    json_t *o = json_pack("{s:I,s:o,s:o,s:o,s:o,s:s,s:o,s:o,s:s}", "id", (json_int_t)r->id, "ref",
        json_text(job_ref(r).s), "name", json_text(r->spec.name), "user", json_text(r->user),
        "team", json_text(r->spec.team), "state", sm_name(&job_sm, r->state), "end",
        r->end == END_NONE ? json_null() : json_string(end_kind_names[r->end]), "exit_code",
        r->end == END_NONE ? json_null() : json_integer(r->exit_code), "hold", hold_names[r->hold]);
    json_object_set_new(o, "hidden", json_false());
    json_object_set_new(o, "attempts", json_integer(r->attempts));
    json_object_set_new(o, "reclaims", json_integer(r->reclaims));
    json_object_set_new(o, "progress", api_json_opt(r->progress, PROGRESS_NONE));
    json_object_set_new(o, "progress_total", api_json_opt(r->progress_total, PROGRESS_NONE));
    json_object_set_new(o, "cost_uusd", json_integer(r->cost_uusd));
    json_object_set_new(o, "array_id", api_json_opt(r->array, CORE_ID_NONE));
    json_object_set_new(o, "cron", api_json_opt(r->cron, CORE_ID_NONE));
    json_object_set_new(o, "submitted_at", api_json_time(r->submitted_at));
    json_object_set_new(o, "started_at", api_json_time(r->started_at));
    json_object_set_new(o, "ended_at", api_json_time(r->ended_at));
    return o;
}

void stream_add_job(struct stream_messages *ms, const struct job_row *row)
{
    struct stream_message *m = add(ms, STREAM_JOB, job_json(row));
    m->id = row->id;
    set_job(m, row);
    if (!ms->needs_hidden)
        return;
    json_t *hidden = job_json(row);
    api_hide_job(hidden);
    m->hidden = stream_text(stream_kind_names[STREAM_JOB], NULL, hidden);
}

static char *event_text(struct stream_messages *ms, const struct history_row *h,
    const struct job_row *row, bool is_hidden)
{
    const struct api *a = ms->api;
    const struct stream_position at = {.epoch = a->o.meta->epoch, .event = h->id};
    /* the row is in memory: api_json_event() would read the database for each event */
    json_t *ref = row ? json_string(job_ref(row).s) : api_json_ref(a->o.reader, h->job);
    return stream_text(stream_kind_names[STREAM_EVENT], &at, api_json_event_of(h, ref, is_hidden));
}

void stream_add_event(
    struct stream_messages *ms, const struct history_row *h, const struct job_row *row)
{
    if (!row && h->job != CORE_ID_NONE)
        row = stream_find_job(ms, h->job);
    struct stream_message *m = add(ms, STREAM_EVENT, NULL);
    m->event = h->id;
    m->job = h->job;
    m->plain = event_text(ms, h, row, false);
    if (h->job != CORE_ID_NONE && (ms->needs_hidden || !row))
        m->hidden = event_text(ms, h, row, true);
    if (row)
        set_job(m, row);
}

void stream_add_node(struct stream_messages *ms, const struct node_row *n)
{
    json_t *o = json_pack("{s:I,s:o,s:o,s:o,s:s,s:s,s:o,s:b}", "id", (json_int_t)n->id, "name",
        json_text(n->name), "pool", json_text(n->pool), "instance",
        api_json_opt(n->instance, CORE_ID_NONE), "state", sm_name(&node_sm, n->state), "market",
        market_names[n->market], "notice",
        n->notice == NOTICE_TYPE_NONE ? json_null() : json_string(notice_type_names[n->notice]),
        "drain", n->drain);
    add(ms, STREAM_NODE, o)->id = n->id;
}

void stream_add_instance(struct stream_messages *ms, const struct instance_row *i)
{
    add(ms, STREAM_INSTANCE,
        json_pack("{s:I,s:o,s:o,s:s,s:s,s:o,s:b}", "id", (json_int_t)i->id, "pool",
            json_text(i->pool), "type", json_text(i->type), "market", market_names[i->market],
            "state", sm_name(&instance_sm, i->state), "node", api_json_opt(i->node, CORE_ID_NONE),
            "reclaimed", i->reclaimed))
        ->id = i->id;
}

void stream_add_pool(struct stream_messages *ms, const char *name)
{
    add(ms, STREAM_POOL, json_pack("{s:o}", "name", json_text(name)));
}

void stream_add_budget(struct stream_messages *ms, const char *name)
{
    add(ms, STREAM_BUDGET, json_pack("{s:o}", "name", json_text(name)));
}

void stream_add_cron(struct stream_messages *ms, const struct cron_row *r)
{
    const struct cron_entry *live = model_cron(tick_model(ms->api->o.tick), r->id);
    struct stream_message *m = add(ms, STREAM_CRON,
        json_pack("{s:I,s:o,s:o,s:s,s:o,s:o}", "id", (json_int_t)r->id, "name", json_text(r->name),
            "user", json_text(r->user), "state", sm_name(&cron_sm, r->state), "next_at",
            api_json_time(r->next_at), "last_job", api_json_opt(r->last_job, CORE_ID_NONE)));
    m->id = r->id;
    m->object = api_object_of_cron(ms->api, r, live);
    m->has_object = true;
}

void stream_add_log(struct stream_messages *ms, const struct job_row *row)
{
    struct stream_message *m = add(ms, STREAM_LOG, json_pack("{s:I}", "job", (json_int_t)row->id));
    m->id = row->id;
    set_job(m, row);
}

void stream_add_summary(struct stream_messages *ms, json_t *summary)
{
    add(ms, STREAM_SUMMARY, summary)->id = 1;
}

/* NULL if it cannot be read. */
static const struct job_row *read_job(struct stream_messages *ms, int64_t job)
{
    struct err e;
    struct read_row *r = mem_alloc(sizeof(*r));
    if (db_read_job(ms->api->o.reader, job, &r->row, &e) != 0) {
        free(r);
        return NULL;
    }
    list_push_back(&ms->rows, &r->in_rows);
    return &r->row;
}

void stream_add_stored_job(struct stream_messages *ms, int64_t job)
{
    const struct job_row *row = read_job(ms, job);
    if (row)
        stream_add_job(ms, row);
}

const struct job_row *stream_find_job(struct stream_messages *ms, int64_t job)
{
    const struct job *j = model_job(tick_model(ms->api->o.tick), job);
    if (j)
        return &j->row;
    LIST_FOREACH (&ms->rows, l)
        if (LIST_ENTRY(l, struct read_row, in_rows)->row.id == job)
            return &LIST_ENTRY(l, struct read_row, in_rows)->row;
    return read_job(ms, job);
}

int64_t stream_message_thing(const struct stream_message *m)
{
    return m->id == 0 ? 0 : m->id * STREAM_KINDS + m->kind;
}

const char *stream_message_for(const struct stream_message *m, const struct caller *viewer)
{
    bool is_of_job = m->kind == STREAM_JOB || m->kind == STREAM_LOG || m->job != CORE_ID_NONE;
    if (is_of_job || m->kind == STREAM_CRON)
        return m->has_object && access_may(viewer, RIGHT_READ_JOB, &m->object) ? m->plain
                                                                               : m->hidden;
    return access_may(viewer, RIGHT_READ, NULL) ? m->plain : NULL;
}
