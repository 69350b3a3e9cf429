/* SPDX-License-Identifier: Apache-2.0
 *
 * The API's routes that explain why a job waits: reasons, jobs ahead of it, when it may start, and
 * what would let it start now; and the estimate for a job that is not submitted. The core makes
 * them (explain.h, ahead.h, forecast.h and remedies.h in core/forecast), advice.h the warnings, and
 * cli/why.c prints them.
 */
#include "scheduler/api/api_private.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "scheduler/advice.h"
#include "scheduler/core/forecast/ahead.h"
#include "scheduler/core/forecast/remedies.h"
#include "scheduler/core/forecast/estimate.h"
#include "scheduler/core/forecast/explain.h"
#include "scheduler/core/forecast/forecast.h"
#include "scheduler/store/claim.h"
#include <stdlib.h>
#include <string.h>

struct why_query {
    struct turn turn;
    struct deferred_reply *deferred;
    int64_t id;
    bool brief;
    struct caller viewer;
};

static int keep_text(void *ctx, const struct attempt_row *r)
{
    STR_COPY(*(char(*)[CORE_TEXT_MAX])ctx, r->text);
    return 0;
}

/* Shows the text of the last attempt (they are sorted by number) and where the output is. */
static size_t explain_ended(
    const struct api *a, const struct job_row *row, struct reason reasons[EXPLAIN_REASONS_MAX])
{
    char text[CORE_TEXT_MAX] = "", code[32] = "";
    struct err e;
    if (db_read_attempts(a->o.reader, row->id, keep_text, &text, &e) != 0)
        log_warn("why a job ended cannot be read", log_i("job", row->id), log_err(&e));
    if (row->end == END_FAILED && !str_starts(text, "exit code "))
        snprintf(code, sizeof(code), ", exit code %d", (int)row->exit_code);
    STR_COPY(reasons[0].code, "ended");
    snprintf(reasons[0].text, sizeof(reasons[0].text), "the job has ended: %s%s%s%.180s",
        end_kind_names[row->end], code, text[0] ? ", " : "", text);
    if (row->attempts == 0)
        return 1;
    STR_COPY(reasons[1].code, "output");
    snprintf(reasons[1].text, sizeof(reasons[1].text), "its output: belay logs %s", job_ref(row).s);
    return 2;
}

/* The reason with this code; NULL if there is none. */
static struct reason *find_reason(struct reason *reasons, size_t n, const char *code)
{
    for (size_t i = 0; i < n; i++)
        if (str_eq(reasons[i].code, code))
            return &reasons[i];
    return NULL;
}

/* Reads the text of the last attempt that keep accepts, "" if there is none, from the database: the
 * model does not have the texts of ended attempts. */
static void read_text(const struct api *a, const struct job_row *row,
    int (*keep)(void *, const struct attempt_row *), char (*ret_text)[CORE_TEXT_MAX])
{
    struct err e;
    (*ret_text)[0] = '\0';
    if (db_read_attempts(a->o.reader, row->id, keep, ret_text, &e) != 0)
        log_warn("why a job is held cannot be read", log_i("job", row->id), log_err(&e));
}

static int keep_store_text(void *ctx, const struct attempt_row *r)
{
    return r->end == END_STORE || r->end == END_STORE_AWAY ? keep_text(ctx, r) : 0;
}

static void explain_store(
    const struct api *a, const struct job_row *row, struct reason *reasons, size_t *n)
{
    char text[CORE_TEXT_MAX], cure[80], why[170];
    struct reason *held = find_reason(reasons, *n, "store");
    if (!held && !find_reason(reasons, *n, "store-away"))
        return;
    read_text(a, row, keep_store_text, &text);
    if (!text[0])
        return;
    /* a separate line, because the existing one has the time of the next try */
    if (!held) {
        if (*n == EXPLAIN_REASONS_MAX)
            return;
        STR_COPY(reasons[*n].code, "store-away");
        STR_SHORTEN(reasons[*n].text, text);
        ++*n;
        return;
    }
    if (strstr(text, "belay release")) { /* the text already contains the remedy */
        snprintf(held->text, sizeof(held->text), "it is held: %.240s", text);
        return;
    }
    STR_SHORTEN(why, text);
    snprintf(cure, sizeof(cure), "; when that is fixed: belay release %s", job_ref(row).s);
    snprintf(held->text, sizeof(held->text), "it is held: %s%s", why, cure);
}

static int keep_space_text(void *ctx, const struct attempt_row *r)
{
    return r->end == END_CAPACITY ? keep_text(ctx, r) : 0;
}

/* Replaces the hint to belay show by the reason itself. */
static void explain_no_space(
    const struct api *a, const struct job_row *row, struct reason *reasons, size_t n)
{
    char text[CORE_TEXT_MAX], why[170];
    struct reason *held = find_reason(reasons, n, "no-room"),
                  *away = find_reason(reasons, n, "no-room-away");
    if (!held && !away)
        return;
    read_text(a, row, keep_space_text, &text);
    if (!text[0])
        return;
    STR_SHORTEN(why, text);
    if (held)
        snprintf(held->text, sizeof(held->text),
            "it is held: no node could start it: %s; fix that or ask for less, then belay release "
            "%s",
            why, job_ref(row).s);
    else
        snprintf(away->text, sizeof(away->text),
            "for up to 10 minutes it waits for another node than that of attempt %lld, which could "
            "not start it: %s",
            (long long)row->attempts, why);
}

size_t api_explain(const struct api *a, const struct model *model, const struct job_row *row,
    struct reason reasons[EXPLAIN_REASONS_MAX])
{
    if (row->state == JOB_ENDED)
        return explain_ended(a, row, reasons);
    if (!model) {
        STR_COPY(reasons[0].code, "disk-full");
        STR_COPY(
            reasons[0].text, "the disk that holds belayd's state is full: nothing new is decided");
        return 1;
    }
    size_t n = core_explain(model, tick_now(a->o.tick), row->id, reasons, EXPLAIN_REASONS_MAX);
    explain_store(a, row, reasons, &n);
    explain_no_space(a, row, reasons, n);
    return n;
}

static void warn_of_criu(json_t *list, const struct model *model, const struct job_row *row)
{
    const char *pool = model && row->state != JOB_ENDED ? core_criu_untried(model, row) : NULL;
    char text[512];
    if (!pool)
        return;
    snprintf(text, sizeof(text),
        "whether machines of pool %s can checkpoint by CRIU shows when one has joined: their image "
        "needs criu %s, an agent that runs as root, and a kernel for which `criu check` succeeds "
        "(criu: in the pool says so)",
        pool,
        row->spec.need.gpus > 0
            ? "4 or later with its CUDA plugin, cuda-checkpoint, an NVIDIA driver of 570 or later"
            : "3.17 or later");
    json_array_append_new(
        list, json_pack("{s:s,s:o}", "code", "criu-untried", "text", json_text(text)));
}

static json_t *reasons_json(const struct reason *r, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(
            list, json_pack("{s:s,s:o}", "code", r[i].code, "text", json_text(r[i].text)));
    return list;
}

/* The name of a job for a viewer, who may not see what it is. */
static json_t *name_for(
    const struct caller *viewer, const struct model *model, int64_t id, const char *name)
{
    const struct job *j = model_job(model, id);
    struct access_object object = {0};
    if (j)
        object = api_object_of_job(&j->row);
    return access_may(viewer, RIGHT_READ_JOB, &object) ? json_text(name) : json_string(API_HIDDEN);
}

static json_t *ahead_json(const struct api *a, const struct model *model, const struct why_query *w)
{
    struct ahead h;
    if (!model || !core_ahead(model, tick_now(a->o.tick), w->id, &h))
        return json_null();
    json_t *first = json_array();
    for (size_t i = 0; i < h.n_first; i++) {
        const struct ahead_job *j = &h.first[i];
        json_array_append_new(first,
            json_pack("{s:I,s:s,s:o,s:o,s:o}", "id", (json_int_t)j->job, "ref",
                job_ref_of(model, j->job).s, "name", name_for(&w->viewer, model, j->job, j->name),
                "user", json_text(j->user), "why", json_text(j->why)));
    }
    return json_pack("{s:I,s:b,s:o}", "count", (json_int_t)h.n, "exact", h.exact, "first", first);
}

static json_t *changes_json(const struct api *a, const struct model *model, int64_t id)
{
    struct reason r[REMEDIES_MAX];
    return reasons_json(
        r, model ? core_remedies(model, tick_now(a->o.tick), id, r, REMEDIES_MAX) : 0);
}

static json_t *forecast_json(const struct model *model, const struct forecast *f)
{
    const struct node *n = f->node != CORE_ID_NONE ? model_node(model, f->node) : NULL;
    const struct offer *o = f->offer != CORE_ID_NONE ? model_offer(model, f->offer) : NULL;
    return json_pack("{s:b,s:o,s:o,s:o,s:o,s:o,s:I,s:o}", "now", f->is_now, "median",
        api_json_time(f->median), "latest", api_json_time(f->latest), "node",
        n ? json_text(n->row.name) : json_null(), "pool",
        n   ? json_text(n->row.pool)
        : o ? json_text(o->row.pool)
            : json_null(),
        "type", o ? json_text(o->row.type) : json_null(), "input_uusd", (json_int_t)f->input_uusd,
        "unknown", api_json_opt_text(f->why));
}

static json_t *estimate_json(const struct api *a, const struct model *model, int64_t id)
{
    struct forecast f;
    return model && core_forecast(model, tick_now(a->o.tick), id, &f) ? forecast_json(model, &f)
                                                                      : json_null();
}

static json_t *brief_json(const struct api *a, const struct model *model, const struct job_row *row)
{
    struct reason reasons[EXPLAIN_REASONS_MAX];
    size_t n = api_explain(a, model, row, reasons);
    json_t *list = reasons_json(reasons, n),
           *warnings = advice_on_job(a->o.pools, model, a->o.reader, row);
    warn_of_criu(warnings, model, row);
    return json_pack("{s:o,s:o}", "reasons", list, "warnings", warnings);
}

json_t *api_why_brief(const struct api *a, const struct model *model, int64_t id, struct err *e)
{
    struct job_row row;
    return db_read_job(a->o.reader, id, &row, e) == 0 ? brief_json(a, model, &row) : NULL;
}

static void reply_why(const struct api *a, struct http_exchange *x, const struct model *model,
    const struct why_query *w)
{
    struct job_row row;
    struct err e;
    if (db_read_job(a->o.reader, w->id, &row, &e) != 0) {
        http_reply_err(x, &e);
        return;
    }
    json_t *o = brief_json(a, model, &row);
    json_object_set_new(o, "id", json_integer(w->id));
    json_object_set_new(o, "state", json_string(sm_name(&job_sm, row.state)));
    json_object_set_new(o, "ahead", w->brief ? json_null() : ahead_json(a, model, w));
    json_object_set_new(o, "estimate", w->brief ? json_null() : estimate_json(a, model, w->id));
    json_object_set_new(o, "changes", w->brief ? json_array() : changes_json(a, model, w->id));
    api_reply_json(x, 200, o);
}

static void why_now(struct turn *turn, void *moment)
{
    struct why_query *w = LIST_ENTRY(turn, struct why_query, turn);
    const struct api *a = w->deferred->api;
    struct http_exchange *x = deferred_reply_take(w->deferred);
    if (x)
        reply_why(a, x, moment ? tick_model(moment) : NULL, w);
    free(w);
}

void api_jobs_why(struct request *q)
{
    int64_t brief;
    struct job_row row;
    if (!api_find_job(q, RIGHT_READ_JOB, &row) || !api_query_i64(q, "brief", 0, 1, 0, &brief))
        return;
    struct why_query *w = mem_alloc(sizeof(*w));
    *w = (struct why_query){.turn.run = why_now, .id = q->id, .brief = brief, .viewer = q->caller};
    if (api_take_turn(q, &w->turn))
        w->deferred = deferred_reply_create(q->api, q->x, API_COMMIT_WAIT_MS);
    else
        free(w);
}

/* ---- estimates ---- */

struct estimate_request {
    struct turn turn;
    struct api *api;
    struct jobspec s;
    struct deferred_reply *deferred;
};

static json_t *uusd_or_null(int64_t uusd)
{
    return api_json_opt(uusd, -1);
}

static json_t *submit_estimate_json(const struct model *model, const struct estimate *t)
{
    json_t *o = json_pack("{s:I,s:o,s:i,s:I}", "id", (json_int_t)t->job, "estimate",
        forecast_json(model, &t->start), "nodes", (int)t->nodes, "tasks", (json_int_t)t->tasks);
    json_object_set_new(o, "runs",
        t->most_ms == 0
            ? json_null()
            : json_pack("{s:I,s:I,s:I}", "expected_ms", (json_int_t)t->expected_ms, "least_ms",
                  (json_int_t)t->least_ms, "most_ms", (json_int_t)t->most_ms));
    json_object_set_new(o, "cost",
        json_pack("{s:o,s:o,s:o,s:o,s:I}", "uusd_per_hour", uusd_or_null(t->uusd_h),
            "expected_uusd", uusd_or_null(t->expected_uusd), "least_uusd",
            uusd_or_null(t->least_uusd), "most_uusd", uusd_or_null(t->most_uusd), "input_uusd",
            (json_int_t)t->input_uusd));
    json_object_set_new(o, "reasons", reasons_json(t->reasons, t->n_reasons));
    json_object_set_new(o, "changes", reasons_json(t->changes, t->n_changes));
    return o;
}

static void estimate_now(struct turn *turn, void *moment)
{
    struct estimate_request *k = LIST_ENTRY(turn, struct estimate_request, turn);
    struct api *a = k->api;
    struct http_exchange *x = deferred_reply_take(k->deferred);
    struct estimate *t = mem_alloc(sizeof(*t));
    struct event ev = api_submit_event(&k->s);
    struct err e;
    int rc = 0;
    if (x && moment)
        ev.now = tick_now(a->o.tick); /* the tick no longer exists when belayd stops */
    else if (x)
        rc = err_set(&e, ERR_NO_SPACE,
            "the disk that holds belayd's state is full: what would start is unknown");
    if (x && rc == 0)
        rc = api_read_ended(a, &k->s, &e);
    if (x && rc == 0)
        rc = core_estimate(tick_model(a->o.tick), &ev, t, &e);
    if (x && rc != 0)
        http_reply_err(x, &e);
    else if (x)
        api_reply_json(x, 200, submit_estimate_json(tick_model(a->o.tick), t));
    jobspec_deinit(&k->s);
    free(t);
    free(k);
}

void api_jobs_estimate(struct request *q)
{
    struct jobspec s;
    if (!api_read_submission(q, &s))
        return;
    struct estimate_request *k = mem_alloc(sizeof(*k));
    *k = (struct estimate_request){.turn.run = estimate_now, .api = q->api, .s = s};
    if (api_take_turn(q, &k->turn)) {
        k->deferred = deferred_reply_create(q->api, q->x, API_COMMIT_WAIT_MS);
        return;
    }
    jobspec_deinit(&k->s);
    free(k);
}
