/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/api/stream/stream.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/uv/http_stream.h"
#include "scheduler/api/api_private.h"
#include "scheduler/api/stream/replay.h"
#include "scheduler/api/stream/stream_frame.h"
#include "scheduler/api/stream/stream_messages.h"
#include "scheduler/api/stream/stream_query.h"
#include <stdlib.h>
#include <string.h>

/* A view is written at once when it was quiet, and then once in PACE_MS, or less often where there
 * are more streams than WRITES_A_S allows: each write costs a system call and a record of TLS. */
#define PACE_MS 500
#define WRITES_A_S 100
#define TICK_MS 1000       /* output that grew, and what time alone brings */
#define LOGS_A_TICK 100    /* jobs whose output grew; others wait for the next one */
#define HEARTBEAT_MS 15000 /* keeps proxies from closing a quiet stream */
#define SUMMARY_MS 2000    /* at most one summary in this time */
#define RETRY_TEXT "retry: 2000\n\n"

const char *const stream_end_names[] = {
    "slow", "stopping", "reloaded", "expired", "revoked", "time", NULL};

static const char *const end_texts[STREAM_ENDS] = {
    "this client reads too slowly: connect again",
    "belayd is stopping: connect again later",
    "belayd's configuration was read again: connect again",
    "the token has expired: sign in again",
    "the token was revoked or changed: sign in again",
    "the time that was asked for is over",
};

/* What streams of the same viewer with the same query are sent. */
struct view {
    struct link in_streams;
    struct list streams;
    struct caller viewer;
    int64_t job; /* 0 = all */
    uint32_t types;
    struct stream_frame pending; /* not written to the streams yet */
    int64_t flushed_ms;
};

struct stream {
    struct link in_view;
    struct streams *all;
    struct view *view;
    struct http_exchange *x; /* NULL: closed */
    struct wall expires_at;  /* of the token; WALL_NONE: never */
    int64_t token;           /* 0 = none */
    int64_t parent;          /* the token that a browser's session ends with; 0 = none */
    struct mono until;       /* MONO_NONE: for as long as the client stays */
    int64_t written_ms;      /* mono */
    int64_t announced;       /* the last event whose number it was sent */
};

struct streams {
    struct api *api;
    struct list views;
    struct map watched; /* jobs of views -> the number of them + 1 */
    struct map grown;   /* jobs with new output, that was not announced */
    struct streams_stats stats;
    int64_t last; /* the last event that was committed and announced */
    struct timer tick, flush;
    int busy; /* streams are being written to: closed ones are freed afterwards */
    bool has_closed;
    bool is_changed, is_summing; /* the summary is due; is being made */
    int64_t summed_ms;
};

static int64_t now_ms(const struct streams *s)
{
    return clock_mono(s->api->o.timers->clock).ms;
}

/* ---- views ---- */

static bool is_same_viewer(const struct caller *a, const struct caller *b)
{
    return str_eq(a->user, b->user) && a->role == b->role && a->admin == b->admin &&
           a->most == b->most && a->scope.kind == b->scope.kind && a->scope.id == b->scope.id &&
           str_eq(a->scope.pool, b->scope.pool);
}

static void watch(struct streams *s, int64_t job, intptr_t by)
{
    if (job == CORE_ID_NONE)
        return;
    intptr_t n = (intptr_t)map_get(&s->watched, job) + by;
    if (n > 0)
        map_put(&s->watched, job, (void *)n);
    else
        map_remove(&s->watched, job);
}

static struct view *view_take(
    struct streams *s, const struct caller *viewer, int64_t job, uint32_t types)
{
    LIST_FOREACH (&s->views, l) {
        struct view *v = LIST_ENTRY(l, struct view, in_streams);
        if (v->job == job && v->types == types && is_same_viewer(&v->viewer, viewer))
            return v;
    }
    struct view *v = mem_alloc(sizeof(*v));
    v->viewer = *viewer;
    v->job = job;
    v->types = types;
    list_push_back(&s->views, &v->in_streams);
    watch(s, job, 1);
    return v;
}

static void view_give(struct streams *s, struct view *v)
{
    if (!list_is_empty(&v->streams))
        return;
    watch(s, v->job, -1);
    link_remove(&v->in_streams);
    stream_frame_deinit(&v->pending);
    free(v);
}

/* ---- streams ---- */

static void stream_free(struct stream *st)
{
    link_remove(&st->in_view);
    st->all->stats.open--;
    free(st);
}

static void on_closed(void *ctx)
{
    struct stream *st = ctx;
    struct streams *s = st->all;
    struct view *v = st->view;
    st->x = NULL;
    if (s->busy > 0) {
        s->has_closed = true;
        return;
    }
    stream_free(st);
    view_give(s, v);
}

typedef void (*stream_fn)(struct stream *st, const void *with);

/* Calls fn for the open streams of a view. Writing to one may close others. */
static void each_of_view(const struct view *v, stream_fn fn, const void *with)
{
    LIST_FOREACH (&v->streams, l) {
        struct stream *st = LIST_ENTRY(l, struct stream, in_view);
        if (st->x)
            fn(st, with);
    }
}

static void begin_writing(struct streams *s)
{
    s->busy++;
}

/* Frees what was closed meanwhile. */
static void end_writing(struct streams *s)
{
    if (--s->busy > 0 || !s->has_closed)
        return;
    s->has_closed = false;
    LIST_FOREACH (&s->views, l) {
        struct view *v = LIST_ENTRY(l, struct view, in_streams);
        LIST_FOREACH (&v->streams, k)
            if (!LIST_ENTRY(k, struct stream, in_view)->x)
                stream_free(LIST_ENTRY(k, struct stream, in_view));
        view_give(s, v);
    }
}

static void each(struct streams *s, stream_fn fn, const void *with)
{
    begin_writing(s);
    LIST_FOREACH (&s->views, l)
        each_of_view(LIST_ENTRY(l, struct view, in_streams), fn, with);
    end_writing(s);
}

static void end(struct stream *st, enum stream_end why)
{
    struct streams *s = st->all;
    char *text = stream_text("end", NULL,
        json_pack("{s:s,s:s}", "reason", stream_end_names[why], "text", end_texts[why]));
    struct http_exchange *x = st->x;
    st->x = NULL;
    s->has_closed = true;
    s->stats.ends[why]++;
    http_stream_end(x, text, strlen(text));
    free(text);
}

/* What is written to streams. */
struct piece {
    struct buf text;
    int64_t n_events;
    int64_t last; /* the event whose number it ends with; 0 = none */
};

static void write_piece(struct stream *st, const void *with)
{
    const struct piece *p = with;
    if (!http_stream_write(st->x, p->text.data, p->text.len)) {
        if (st->x) /* the write may have closed it */
            end(st, STREAM_END_SLOW);
        return;
    }
    st->written_ms = now_ms(st->all);
    st->all->stats.events += p->n_events;
    if (p->last)
        st->announced = p->last;
}

/* Moves what is in the frame to the end of the piece. */
static void take_frame(const struct streams *s, struct stream_frame *f, struct piece *p)
{
    p->n_events += (int64_t)f->n;
    p->last = f->last;
    stream_frame_write(f, s->api->o.meta->epoch, &p->text);
    stream_frame_deinit(f);
}

static int64_t pace_ms(const struct streams *s)
{
    int64_t ms = s->stats.open * 1000 / WRITES_A_S;
    return ms > PACE_MS ? ms : PACE_MS;
}

static void flush_view(struct streams *s, struct view *v)
{
    if (v->pending.n == 0)
        return;
    struct piece p = {0};
    take_frame(s, &v->pending, &p);
    each_of_view(v, write_piece, &p);
    buf_deinit(&p.text);
    v->flushed_ms = now_ms(s);
}

static void on_flush(struct timer *t, void *ctx)
{
    struct streams *s = ctx;
    (void)t;
    begin_writing(s);
    LIST_FOREACH (&s->views, l)
        flush_view(s, LIST_ENTRY(l, struct view, in_streams));
    end_writing(s);
}

static void end_for(struct stream *st, const void *with)
{
    end(st, *(const enum stream_end *)with);
}

void streams_end_all(struct streams *s, enum stream_end why)
{
    if (s)
        each(s, end_for, &why);
}

/* ---- selecting ---- */

/* Replaces what is in it by `reset`. */
static void frame_reset(struct streams *s, struct stream_frame *f, const char *why)
{
    char *text = stream_text("reset", NULL, json_pack("{s:s}", "reason", why));
    stream_frame_deinit(f);
    stream_frame_add(f, text, 0, 0);
    free(text);
    s->stats.resets++;
}

/* False, with a part of them, if they are too many. */
static bool frame_select(
    struct stream_frame *f, const struct view *v, const struct stream_messages *ms)
{
    for (size_t i = 0; i < ms->n; i++) {
        const struct stream_message *m = &ms->items[i];
        if (!(v->types & 1u << m->kind))
            continue;
        if (v->job != 0 && m->job != v->job && m->array != v->job)
            continue;
        const char *text = stream_message_for(m, &v->viewer);
        if (!text)
            continue;
        stream_frame_add(f, text, stream_message_thing(m), m->event);
        if (f->len > STREAM_FRAME_MAX)
            return false;
    }
    return true;
}

/* Adds what the view may see of the messages to what it is sent. */
static void add_to_view(struct streams *s, struct view *v, const struct stream_messages *ms,
    int64_t last, bool is_too_much)
{
    struct stream_frame *f = &v->pending;
    bool resets = is_too_much && v->job == 0;
    if (resets || !frame_select(f, v, ms)) {
        frame_reset(s, f, "too much has changed at once");
        last = s->last;
    }
    if (last && f->n > 0)
        f->last = last;
}

/* Sends each view what it may see of the messages. last: the last event of the commit; 0 = none. */
static void send_all(
    struct streams *s, const struct stream_messages *ms, int64_t last, bool is_too_much)
{
    bool any_waits = false;
    begin_writing(s);
    LIST_FOREACH (&s->views, l) {
        struct view *v = LIST_ENTRY(l, struct view, in_streams);
        add_to_view(s, v, ms, last, is_too_much);
        if (now_ms(s) >= v->flushed_ms + pace_ms(s))
            flush_view(s, v);
        any_waits |= v->pending.n > 0;
    }
    end_writing(s);
    if (any_waits && !timer_is_running(&s->flush))
        timer_start(s->api->o.timers, &s->flush, pace_ms(s));
}

/* ---- a commit ---- */

static bool is_watched(const struct streams *s, int64_t job, int64_t array)
{
    return map_get(&s->watched, job) || (array != CORE_ID_NONE && map_get(&s->watched, array));
}

static bool needs_hidden(const struct streams *s)
{
    LIST_FOREACH (&s->views, l)
        if (!LIST_ENTRY(l, struct view, in_streams)->viewer.admin)
            return true;
    return false;
}

static uint32_t types_of_views(const struct streams *s, bool *ret_any_wide)
{
    uint32_t types = 0;
    *ret_any_wide = false;
    LIST_FOREACH (&s->views, l) {
        const struct view *v = LIST_ENTRY(l, struct view, in_streams);
        types |= v->types;
        *ret_any_wide |= v->job == 0;
    }
    return types;
}

/* Whether a view may want something about this job. */
static bool is_wanted(const struct streams *s, bool all, int64_t job, int64_t array)
{
    return all || is_watched(s, job, array);
}

static void add_jobs(const struct streams *s, const struct changes *c, bool all, uint32_t types,
    struct map *ret_rows, struct stream_messages *ms)
{
    for (size_t i = 0; i < c->n_jobs; i++) {
        const struct job_row *row = &c->jobs[i];
        if (!is_wanted(s, all, row->id, row->array))
            continue;
        map_put(ret_rows, row->id, (void *)(uintptr_t)row);
        if (types & 1u << STREAM_JOB)
            stream_add_job(ms, row);
    }
}

static void add_events(const struct streams *s, const struct changes *c, bool all,
    const struct map *rows, struct stream_messages *ms)
{
    for (size_t i = 0; i < c->n_history; i++) {
        const struct history_row *h = &c->history[i];
        const struct job_row *row = h->job != CORE_ID_NONE ? map_get(rows, h->job) : NULL;
        const struct job *j =
            row || h->job == CORE_ID_NONE ? NULL : model_job(tick_model(s->api->o.tick), h->job);
        int64_t array = row ? row->array : j ? j->row.array : CORE_ID_NONE;
        if (is_wanted(s, all, h->job, array))
            stream_add_event(ms, h, row);
    }
}

static bool has_pool_before(const struct changes *c, size_t n_offers, const char *name)
{
    for (size_t i = 0; i < c->n_pools; i++)
        if (str_eq(c->pools[i].name, name))
            return true;
    for (size_t i = 0; i < n_offers; i++)
        if (str_eq(c->offers[i].pool, name))
            return true;
    return false;
}

/* What belongs to no job. */
static void add_cluster(const struct changes *c, uint32_t types, struct stream_messages *ms)
{
    for (size_t i = 0; i < c->n_nodes && types & 1u << STREAM_NODE; i++)
        stream_add_node(ms, &c->nodes[i]);
    for (size_t i = 0; i < c->n_instances && types & 1u << STREAM_INSTANCE; i++)
        stream_add_instance(ms, &c->instances[i]);
    for (size_t i = 0; i < c->n_pools && types & 1u << STREAM_POOL; i++)
        stream_add_pool(ms, c->pools[i].name);
    for (size_t i = 0; i < c->n_offers && types & 1u << STREAM_POOL; i++)
        if (!has_pool_before(c, i, c->offers[i].pool))
            stream_add_pool(ms, c->offers[i].pool);
    for (size_t i = 0; i < c->n_crons && types & 1u << STREAM_CRON; i++)
        stream_add_cron(ms, &c->crons[i]);
    for (size_t i = 0; i < c->n_budgets && types & 1u << STREAM_BUDGET; i++)
        stream_add_budget(ms, c->budgets[i].name);
}

static void send_changes(struct streams *s, const struct changes *c)
{
    struct stream_messages ms = {.api = s->api, .needs_hidden = needs_hidden(s)};
    struct map rows = {0};
    bool any_wide;
    uint32_t types = types_of_views(s, &any_wide);
    size_t n = c->n_jobs + c->n_history + c->n_nodes + c->n_instances + c->n_offers + c->n_crons;
    bool is_too_much = n > STREAM_ROWS_MAX, all = any_wide && !is_too_much;
    add_jobs(s, c, all, types, &rows, &ms);
    if (all)
        add_cluster(c, types, &ms);
    if (types & 1u << STREAM_EVENT)
        add_events(s, c, all, &rows, &ms);
    if (ms.n > 0 || (is_too_much && any_wide))
        send_all(s, &ms, c->n_history > 0 ? s->last : 0, is_too_much);
    map_deinit(&rows);
    stream_messages_deinit(&ms);
}

static void end_if_changed(struct stream *st, const void *with)
{
    const struct token_row *t = with;
    if (t->id == 0) /* a new one */
        return;
    /* a renewal replaces the token of its row, with the rights of that moment */
    bool is_changed = t->revoked || t->expires_at.ms != st->expires_at.ms;
    if ((st->token == t->id && is_changed) || (st->parent == t->id && t->revoked))
        end(st, STREAM_END_REVOKED);
}

void streams_committed(struct streams *s, const struct db_batch *batch)
{
    const struct changes *c = &batch->changes;
    if (c->n_history > 0)
        s->last = c->history[c->n_history - 1].id;
    if (list_is_empty(&s->views))
        return;
    for (size_t i = 0; i < batch->n_tokens; i++)
        each(s, end_if_changed, &batch->tokens[i]);
    s->is_changed |= c->n_jobs + c->n_nodes + c->n_instances > 0;
    send_changes(s, c);
}

/* ---- output and time ---- */

void streams_output_grew(struct streams *s, int64_t job)
{
    bool any_wide;
    if (types_of_views(s, &any_wide) & 1u << STREAM_LOG)
        map_put(&s->grown, job, s);
}

static void send_grown(struct streams *s)
{
    struct stream_messages ms = {.api = s->api};
    int64_t jobs[LOGS_A_TICK], job;
    size_t pos = 0, n = 0;
    while (n < LOGS_A_TICK && map_next(&s->grown, &pos, &job))
        jobs[n++] = job;
    for (size_t i = 0; i < n; i++) {
        const struct job_row *row = stream_find_job(&ms, jobs[i]);
        map_remove(&s->grown, jobs[i]);
        if (row)
            stream_add_log(&ms, row);
    }
    if (map_size(&s->grown) == 0)
        map_deinit(&s->grown);
    if (n == 0)
        return;
    send_all(s, &ms, 0, false);
    stream_messages_deinit(&ms);
}

static void on_durable(void *ctx, const struct err *e, int64_t id)
{
    struct streams *s = ctx;
    struct stream_messages ms = {.api = s->api};
    (void)id;
    s->is_summing = false;
    if (e)
        return;
    s->summed_ms = now_ms(s);
    stream_add_summary(&ms, api_json_totals(s->api, tick_model(s->api->o.tick)));
    send_all(s, &ms, 0, false);
    stream_messages_deinit(&ms);
}

static void make_summary(struct streams *s)
{
    bool any_wide;
    if (!s->is_changed || s->is_summing || now_ms(s) < s->summed_ms + SUMMARY_MS)
        return;
    s->is_changed = false;
    if (!(types_of_views(s, &any_wide) & 1u << STREAM_SUMMARY) || !any_wide)
        return;
    s->is_summing = true;
    tick_when_durable(s->api->o.tick, on_durable, s);
}

static void check(struct stream *st, const void *with)
{
    struct streams *s = st->all;
    const struct wall *now = with;
    struct stream_frame f = {0};
    struct piece p = {0};
    if (wall_is_set(st->expires_at) && st->expires_at.ms <= now->ms) {
        end(st, STREAM_END_EXPIRED);
        return;
    }
    if (mono_is_set(st->until) && st->until.ms <= now_ms(s)) {
        end(st, STREAM_END_TIME);
        return;
    }
    if (now_ms(s) < st->written_ms + HEARTBEAT_MS || st->view->pending.n > 0)
        return;
    if (st->announced < s->last) {
        f.last = s->last;
        take_frame(s, &f, &p);
    } else {
        buf_adds(&p.text, ":\n\n");
    }
    write_piece(st, &p);
    buf_deinit(&p.text);
}

static void on_tick(struct timer *t, void *ctx)
{
    struct streams *s = ctx;
    const struct wall now = clock_wall(s->api->o.timers->clock);
    send_grown(s);
    make_summary(s);
    each(s, check, &now);
    if (!list_is_empty(&s->views))
        timer_start(s->api->o.timers, t, TICK_MS);
}

/* ---- beginning ---- */

struct wanted {
    int64_t job, for_ms; /* for_ms 0: no end */
    uint32_t types;
    bool resumes, is_known; /* Last-Event-ID was sent; it is a position */
    struct stream_position from;
};

static bool read_wanted(struct request *q, struct wanted *ret)
{
    struct job_row row;
    struct err e;
    const char *types = http_request_query(q->x, "types");
    const char *from = http_request_header(q->x, "Last-Event-ID");
    *ret = (struct wanted){.types = STREAM_ALL};
    if (!api_query_i64(q, "job", 1, INT64_MAX, 0, &ret->job) ||
        !api_query_i64(q, "for_ms", 1, STREAM_FOR_MAX_MS, 0, &ret->for_ms))
        return false;
    if (types && stream_types_parse(types, &ret->types, &e) != 0) {
        http_reply_err(q->x, &e);
        return false;
    }
    ret->resumes = from && from[0];
    /* no error: a browser would not connect again after one */
    ret->is_known = ret->resumes && stream_position_parse(from, &ret->from, &e) == 0;
    if (ret->job == 0)
        return true;
    q->id = ret->job;
    return api_find_job(q, RIGHT_READ_JOB, &row);
}

/* False after an error reply. */
static bool has_place(struct request *q)
{
    struct streams *s = q->api->streams;
    int n = 0;
    LIST_FOREACH (&s->views, l) {
        const struct view *v = LIST_ENTRY(l, struct view, in_streams);
        if (str_eq(v->viewer.user, q->caller.user))
            LIST_FOREACH (&v->streams, k)
                n++;
    }
    if (n < STREAMS_PER_USER_MAX && s->stats.open < STREAMS_MAX)
        return true;
    s->stats.refused++;
    if (n >= STREAMS_PER_USER_MAX)
        api_reply_failure(q->x, ERR_THROTTLED,
            "%s has %d streams open, which is the most that one user may have: close some",
            q->caller.user, n);
    else
        api_reply_failure(q->x, ERR_UNAVAILABLE,
            "%d streams are open, which is the most that there may be: try again later",
            STREAMS_MAX);
    return false;
}

/* What was missed; NULL, or why it cannot be sent. */
static const char *resume(struct streams *s, const struct wanted *w, struct stream_messages *ms)
{
    struct array_row array;
    struct err e;
    if (!w->is_known)
        return "the id is not one of this server's";
    if (w->from.epoch != s->api->o.meta->epoch)
        return "the cluster was restored from a backup";
    if (w->job && db_read_array(s->api->o.reader, w->job, &array, &e) == 0)
        return "the events of an array's tasks are not kept together";
    return stream_replay(
        &(struct replay){.job = w->job, .types = w->types, .after = w->from.event, .last = s->last},
        ms);
}

/* What a new stream is sent first. */
static struct piece make_first(struct streams *s, const struct view *v, const struct wanted *w)
{
    struct stream_messages ms = {.api = s->api, .needs_hidden = true};
    const struct stream_position at = {.epoch = s->api->o.meta->epoch, .event = s->last};
    struct stream_frame f = {0};
    struct piece p = {0};
    const char *why = w->resumes ? resume(s, w, &ms) : NULL;
    if (!why && !frame_select(&f, v, &ms))
        why = "too much has happened since";
    if (why)
        frame_reset(s, &f, why);
    s->stats.resumed += w->resumes && !why;
    char *ready = stream_text("ready", &at, json_pack("{s:b}", "resumed", w->resumes && !why));
    stream_frame_add(&f, ready, 0, s->last);
    f.last = s->last;
    free(ready);
    stream_messages_deinit(&ms);
    buf_adds(&p.text, RETRY_TEXT);
    take_frame(s, &f, &p);
    return p;
}

static void begin(struct request *q, const struct wanted *w)
{
    struct streams *s = q->api->streams;
    struct stream *st = mem_alloc(sizeof(*st));
    struct token_row token;
    struct err e;
    st->all = s;
    st->x = q->x;
    st->view = view_take(s, &q->caller, w->job, w->types);
    st->until = w->for_ms ? (struct mono){now_ms(s) + w->for_ms} : MONO_NONE;
    st->token = q->caller.token;
    st->expires_at = q->caller.expires_at;
    begin_writing(s);
    flush_view(s, st->view); /* it is older than what the new stream begins with */
    struct piece first = make_first(s, st->view, w);
    list_push_back(&st->view->streams, &st->in_view);
    s->stats.open++;
    s->stats.opened++;
    http_reply_add_header(q->x, "Cache-Control", "no-store");
    http_reply_add_header(q->x, "X-Accel-Buffering", "no"); /* nginx would hold the events back */
    if (st->token && db_read_token(s->api->o.reader, st->token, &token, &e) == 0 && token.session)
        st->parent = token.parent;
    http_stream_begin(q->x, &(struct http_stream_options){.content_type = "text/event-stream",
                                .max_waiting_bytes = STREAM_WAITING_MAX,
                                .on_closed = on_closed,
                                .ctx = st});
    write_piece(st, &first);
    end_writing(s);
    buf_deinit(&first.text);
    bool is_short = w->for_ms > 0 && w->for_ms < TICK_MS;
    if (!timer_is_running(&s->tick) || is_short)
        timer_start(s->api->o.timers, &s->tick, is_short ? w->for_ms : TICK_MS);
}

void api_stream(struct request *q)
{
    struct wanted w;
    if (q->api->shutting_down)
        api_reply_failure(q->x, ERR_UNAVAILABLE, "belayd is stopping: try again later");
    else if (read_wanted(q, &w) && has_place(q))
        begin(q, &w);
}

/* ---- life ---- */

struct streams *streams_create(struct api *a)
{
    struct streams *s = mem_alloc(sizeof(*s));
    s->api = a;
    s->last = a->o.meta->counters.next_history - 1;
    timer_init(&s->tick, on_tick, s);
    timer_init(&s->flush, on_flush, s);
    return s;
}

void streams_destroy(struct streams *s)
{
    if (!s)
        return;
    timer_stop(s->api->o.timers, &s->tick);
    timer_stop(s->api->o.timers, &s->flush);
    map_deinit(&s->watched);
    map_deinit(&s->grown);
    free(s);
}

void streams_get_stats(const struct streams *s, struct streams_stats *ret_stats)
{
    *ret_stats = s->stats;
}
