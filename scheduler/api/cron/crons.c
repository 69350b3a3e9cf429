/* SPDX-License-Identifier: Apache-2.0
 *
 * The API's routes for cron entries.
 */
#include "scheduler/api/api_private.h"

#include "base/str.h"
#include "job/daily.h"
#include "scheduler/secrets/env_seal.h"
#include <stdlib.h>
#include <string.h>

#define LIST_MAX 200
#define RUNS_SHOWN_MAX 10    /* of each entry of a list */
#define RUNS_LISTED_MAX 1000 /* in one list; entries beyond it have none */

static void init_row(struct cron_row *r)
{
    *r = (struct cron_row){.catch_up = CATCH_UP_LAST, .catch_up_max = 24};
    STR_COPY(r->zone, ZONE_UTC);
}

/* The schedule may begin with its zone; the member zone may then only repeat it. */
static void read_schedule(
    struct json_reader *r, const char *text, bool has_zone, struct cron_row *row)
{
    struct cron c;
    struct err e;
    if (r->rc != 0)
        return;
    if (cron_parse(text, &c, &e) != 0) {
        json_reader_fail(r, "schedule", "%s", e.text);
        return;
    }
    text += strspn(text, " \t");
    if (c.zone[0]) {
        if (has_zone && !str_eq(c.zone, row->zone))
            json_reader_fail(r, "zone", "the schedule begins with another zone, %s", c.zone);
        STR_COPY(row->zone, c.zone);
        text += strcspn(text, " \t");
        text += strspn(text, " \t");
    }
    STR_COPY(row->schedule, text);
}

/* Reads when it runs: by a schedule, or after another entry. The last that was given counts. */
static void read_times(const struct request *q, struct json_reader *r, const json_t *body,
    bool has_zone, struct cron_row *row)
{
    bool has_schedule = json_object_get(body, "schedule") != NULL,
         has_after = json_object_get(body, "after") != NULL;
    const char *schedule = json_opt_str(r, "schedule", CRON_TEXT_MAX - 1, row->schedule);
    int64_t after = json_opt_i64(r, "after", 1, INT64_MAX, 1);
    row->after_end =
        (enum cron_after_end)json_opt_enum(r, "after_end", cron_after_end_names, row->after_end);
    if (r->rc == 0 && has_schedule && has_after)
        json_reader_fail(r, "after",
            "an entry has a schedule, or the times of the entry that it runs after: leave one of "
            "them out");
    if (has_after) {
        const struct cron_entry *other = model_cron(tick_model(q->api->o.tick), after);
        if (other && row->id == CORE_ID_NONE && !has_zone)
            STR_COPY(row->zone, other->row.zone);
        row->after = after;
        row->schedule[0] = '\0';
    } else if (has_schedule || row->after == CORE_ID_NONE) {
        row->after = CORE_ID_NONE;
        read_schedule(r, schedule, has_zone, row);
    }
}

static void read_done_by(struct json_reader *r, struct cron_row *row)
{
    const char *text = json_opt_str(r, "done_by", 5, NULL);
    int minute;
    if (r->rc != 0 || !text)
        return;
    if (text[0] && !daily_parse_time(text, strlen(text), &minute))
        json_reader_fail(r, "done_by", "expected a time of the day as 07:00, or nothing");
    else
        row->done_by = text[0] ? minute + 1 : 0;
}

/* Returns ERR_INVALID with the path of the wrong member. *ret_job is borrowed from body, NULL if it
 * has no job; *ret_spec is then unchanged. */
static int read_entry(struct request *q, const json_t *body, struct cron_row *row,
    struct jobspec *ret_spec, const json_t **ret_job, struct err *e)
{
    struct json_reader r;
    char shown[STR_SHOW_MAX];
    bool has_zone = json_object_get(body, "zone") != NULL;
    const struct time_zone *zone;
    json_reader_init(&r, body, "cron", e);
    json_opt_strcpy(&r, "name", row->name, sizeof(row->name), row->name);
    json_opt_strcpy(&r, "zone", row->zone, sizeof(row->zone), row->zone);
    read_times(q, &r, body, has_zone, row);
    row->gap = (enum cron_gap)json_opt_enum(&r, "gap", cron_gap_names, row->gap);
    row->twice = (enum cron_twice)json_opt_enum(&r, "twice", cron_twice_names, row->twice);
    row->overlap =
        (enum cron_overlap)json_opt_enum(&r, "overlap", cron_overlap_names, row->overlap);
    row->catch_up =
        (enum cron_catch_up)json_opt_enum(&r, "catch_up", cron_catch_up_names, row->catch_up);
    row->catch_up_max =
        (int32_t)json_opt_i64(&r, "catch_up_max", 1, CRON_CATCH_UP_MAX, row->catch_up_max);
    json_opt_strcpy(&r, "skip_on", row->skip_on, sizeof(row->skip_on), row->skip_on);
    json_opt_strcpy(&r, "only_on", row->only_on, sizeof(row->only_on), row->only_on);
    read_done_by(&r, row);
    *ret_job = json_opt_object(&r, "job");
    if (r.rc == 0 && !str_is_name(row->name, sizeof(row->name) - 1))
        json_reader_fail(&r, "name", "expected letters, digits, '.', '_' and '-', found %s",
            str_show(row->name, shown));
    if (r.rc == 0 && zones_load(q->api->o.zones, row->zone, &zone, &(struct err){0}) != 0)
        json_reader_fail(&r, "zone",
            "there is no time zone %s on belayd's machine; names are as Europe/Berlin, or UTC",
            str_show(row->zone, shown));
    int rc = json_reader_finish(&r);
    if (rc == 0 && *ret_job)
        rc = notify_seal_spec(q->api->o.sealer, row->user, (json_t *)*ret_job, e);
    return rc == 0 && *ret_job ? jobspec_parse(*ret_job, ret_spec, e) : rc;
}

/* Refuses options that only a job with a single submit can have. */
static int check_job(const struct request *q, const struct jobspec *s, struct err *e)
{
    if (pools_check_names(q->api->o.pools, s->row.spec.pool, "spec", e) != 0)
        return ERR_INVALID;
    if (s->n_depends > 0 || wall_is_set(s->row.spec.begin_at) || s->row.spec.deadline_ms > 0 ||
        s->row.spec.finish_ms > 0)
        return err_set(e, ERR_INVALID,
            "spec: jobs of a cron entry begin when its schedule says, and depend on no other: "
            "leave %s",
            s->n_depends > 0              ? "the dependency out"
            : s->row.spec.deadline_ms > 0 ? "the deadline out"
            : s->row.spec.finish_ms > 0
                ? "the moment to be done by out, or say how long after each submit that is, or at "
                  "what time of the day (--finish-by +8h or 07:00; finish_in_ms, finish_at)"
                : "the time to begin out");
    if (strstr(s->texts.env_json, "\"BELAY_CRON_TIME\"") ||
        strstr(s->texts.env_json, "\"BELAY_CRON_DATE\""))
        return err_set(
            e, ERR_INVALID, "spec.env: BELAY_CRON_TIME and BELAY_CRON_DATE are set by belay");
    int rc = api_check_window(q->api, &s->row, e);
    return rc ? rc : api_check_method(q->api, &s->row, e);
}

/* Stores row with the changes of the request's body; row->user is the owner. */
static void put(struct request *q, struct cron_row *row)
{
    struct jobspec s = {0};
    const json_t *job = NULL;
    char *text = NULL;
    struct err e;
    json_t *body = api_body(q, JOBSPEC_BYTES_MAX);
    if (!body)
        return;
    int rc = read_entry(q, body, row, &s, &job, &e);
    if (rc == 0 && job)
        rc = check_job(q, &s, &e);
    if (rc == 0 && !job && row->id == CORE_ID_NONE)
        rc = err_set(&e, ERR_INVALID,
            "cron.job: missing: what is to be submitted, as for POST /api/v1/jobs");
    struct event ev = {.type = EV_CRON_PUT, .cron_put = {.row = row}};
    STR_COPY(s.row.user, row->user);
    if (rc == 0 && job)
        rc = api_check_secrets(q->api, &s, &e);
    if (rc == 0 && job)
        rc = api_pin_workdir(q->api, &s, &e);
    if (rc == 0 && job) {
        api_script_key(&s);
        STR_COPY(row->script_key, s.row.script_key);
        env_seal(q->api->o.sealer, row->user, &s.texts.env_json);
        json_object_set_new((json_t *)job, "env", json_loads(s.texts.env_json, 0, NULL));
        text = json_dump_text(job);
        ev.cron_put.job = &s.row;
        ev.cron_put.texts = &s.texts;
        ev.cron_put.job_json = text;
    }
    if (rc == 0)
        tick_post(q->api->o.tick, &ev, row->id == CORE_ID_NONE ? api_on_created : api_on_done,
            deferred_reply_create(q->api, q->x, API_COMMIT_WAIT_MS));
    else
        http_reply_err(q->x, &e);
    free(text);
    jobspec_deinit(&s);
    json_wipe(body);
}

void api_crons_add(struct request *q)
{
    struct cron_row row;
    init_row(&row);
    STR_COPY(row.user, q->caller.user);
    put(q, &row);
}

/* The team of an entry is that of its jobs. live may be NULL. */
struct access_object api_object_of_cron(
    const struct api *a, const struct cron_row *row, const struct cron_entry *live)
{
    const char *team = live && live->job.spec.team[0]
                           ? live->job.spec.team
                           : policy_team_of(&a->o.config->policy, row->user);
    return (struct access_object){.user = row->user, .team = team, .cron = row->id};
}

bool api_find_cron(struct request *q, enum right right, struct cron_row *ret_row)
{
    struct err e;
    char what[40];
    int rc = db_read_cron(q->api->o.reader, q->id, ret_row, &e);
    if (rc == 0 && right != RIGHT_READ_JOB && ret_row->state == CRON_REMOVED)
        rc = err_set(&e, ERR_NOT_FOUND, "cron entry %lld was removed", (long long)q->id);
    if (rc != 0) {
        http_reply_err(q->x, &e);
        return false;
    }
    const struct access_object object =
        api_object_of_cron(q->api, ret_row, model_cron(tick_model(q->api->o.tick), q->id));
    snprintf(what, sizeof(what), "cron entry %lld", (long long)q->id);
    return api_may(q, right, &object, what);
}

void api_crons_edit(struct request *q)
{
    struct cron_row row;
    if (api_find_cron(q, RIGHT_CRON_EDIT, &row))
        put(q, &row);
}

static void set_state(struct request *q, enum cron_state to)
{
    struct cron_row row;
    struct event ev = {.type = EV_CRON_SET, .cron_set = {.cron = q->id, .to = to}};
    if (api_find_cron(q, RIGHT_CRON, &row))
        tick_post(q->api->o.tick, &ev, api_on_done,
            deferred_reply_create(q->api, q->x, API_COMMIT_WAIT_MS));
}

void api_crons_pause(struct request *q)
{
    set_state(q, CRON_PAUSED);
}

void api_crons_resume(struct request *q)
{
    set_state(q, CRON_ACTIVE);
}

void api_crons_remove(struct request *q)
{
    set_state(q, CRON_REMOVED);
}

void api_crons_run(struct request *q)
{
    struct cron_row row;
    struct event ev = {.type = EV_CRON_RUN, .cron_run = {.cron = q->id}};
    STR_COPY(ev.cron_run.by, q->caller.user);
    if (api_find_cron(q, RIGHT_CRON_RUN, &row))
        tick_post(q->api->o.tick, &ev, api_on_created,
            deferred_reply_create(q->api, q->x, API_COMMIT_WAIT_MS));
}

/* ---- showing ---- */

struct listing {
    const struct request *q;
    json_t *list;
    int64_t last;
    int32_t n;
    int64_t runs;   /* to show of each entry */
    int32_t n_runs; /* shown so far */
};

static int add_run(void *ctx, const struct cron_run_row *row)
{
    struct listing *l = ctx;
    json_array_append_new(l->list, api_json_cron_run(l->q->api->o.reader, row));
    l->last = row->number;
    l->n++;
    return 0;
}

/* The newest runs of an entry of a list. */
static json_t *runs_of(struct listing *l, int64_t cron)
{
    struct listing of = {.q = l->q, .list = json_array()};
    struct err e;
    if (l->n_runs < RUNS_LISTED_MAX &&
        db_read_cron_runs(l->q->api->o.reader, cron, 0, (int32_t)l->runs, add_run, &of, &e) != 0)
        json_array_clear(of.list);
    l->n_runs += of.n;
    return of.list;
}

static int add_cron(void *ctx, const struct cron_row *row)
{
    struct listing *l = ctx;
    const struct cron_entry *live = model_cron(tick_model(l->q->api->o.tick), row->id);
    const struct access_object object = api_object_of_cron(l->q->api, row, live);
    if (!access_may(&l->q->caller, RIGHT_READ_JOB, &object))
        return 0;
    json_t *cron = api_json_cron(l->q->api, row, live);
    if (l->runs > 0)
        json_object_set_new(cron, "runs", runs_of(l, row->id));
    json_array_append_new(l->list, cron);
    return 0;
}

void api_crons_list(struct request *q)
{
    int64_t runs;
    struct err e;
    if (!api_query_i64(q, "runs", 0, RUNS_SHOWN_MAX, 0, &runs))
        return;
    struct listing l = {.q = q, .list = json_array(), .runs = runs};
    if (db_read_crons(q->api->o.reader, http_request_query(q->x, "user"), add_cron, &l, &e) == 0) {
        api_reply_json(q->x, 200, json_pack("{s:o}", "crons", l.list));
    } else {
        json_decref(l.list);
        http_reply_err(q->x, &e);
    }
}

/* Shows the environment of an entry's job in clear. */
static int open_env(const struct request *q, const char *user, json_t *job, struct err *e)
{
    const json_t *stored = json_object_get(job, "env");
    json_t *env = NULL;
    if (!stored)
        return 0;
    char *text = json_dump_text(stored);
    int rc = env_open(q->api->o.sealer, user, text, &env, e);
    free(text);
    if (rc == 0)
        json_object_set_new(job, "env", env);
    else
        json_decref(job);
    return rc;
}

static int read_job(
    const struct request *q, const struct cron_row *row, json_t **ret_job, struct err *e)
{
    char *text;
    *ret_job = json_null();
    int rc = db_read_cron_job(q->api->o.reader, row->id, &text, e);
    if (rc == 0) {
        rc = json_parse(text, strlen(text), JOBSPEC_STORED_MAX, ret_job, e);
        free(text);
    }
    return rc == 0 ? open_env(q, row->user, *ret_job, e) : rc;
}

void api_crons_show(struct request *q)
{
    struct cron_row row;
    json_t *job;
    struct err e;
    if (!api_find_cron(q, RIGHT_READ_JOB, &row))
        return;
    if (read_job(q, &row, &job, &e) != 0)
        http_reply_err(q->x, &e);
    else
        api_reply_json(q->x, 200,
            json_pack("{s:o,s:o}", "cron",
                api_json_cron(q->api, &row, model_cron(tick_model(q->api->o.tick), row.id)), "job",
                job));
}

void api_crons_runs(struct request *q)
{
    struct cron_row row;
    int64_t before, limit;
    struct err e;
    if (!api_query_i64(q, "before", 1, INT64_MAX, 0, &before) ||
        !api_query_i64(q, "limit", 1, LIST_MAX, 50, &limit) ||
        !api_find_cron(q, RIGHT_READ_JOB, &row))
        return;
    struct listing l = {.q = q, .list = json_array()};
    if (db_read_cron_runs(q->api->o.reader, q->id, before, (int32_t)limit, add_run, &l, &e) != 0) {
        json_decref(l.list);
        http_reply_err(q->x, &e);
        return;
    }
    json_t *next = l.n == limit ? json_integer(l.last) : json_null();
    api_reply_json(q->x, 200, json_pack("{s:o,s:o}", "runs", l.list, "next", next));
}
