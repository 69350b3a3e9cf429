/* SPDX-License-Identifier: Apache-2.0
 *
 * The API's routes for jobs.
 */
#include "scheduler/api/api_private.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "job/attributes.h"
#include "scheduler/ca.h"
#include "scheduler/api/jobspec.h"
#include "scheduler/api/json_constraints.h"
#include "scheduler/core/lifecycle/idle_gpus.h"
#include "scheduler/core/lifecycle/save_interval.h"
#include "scheduler/secrets/env_seal.h"
#include <stdlib.h>

/* ---- submit ---- */

struct submission {
    struct api *api;
    struct jobspec s;
    struct deferred_reply *deferred;
    int64_t wants_why, id;
};

/* The job is stored, so its number is returned even if the reasons cannot be read. */
static void on_reasons_readable(void *ctx, const struct err *e, int64_t none)
{
    struct submission *sub = ctx;
    struct http_exchange *x = deferred_reply_take(sub->deferred);
    struct err bad;
    (void)none;
    if (x) {
        json_t *why =
            api_why_brief(sub->api, e ? NULL : tick_model(sub->api->o.tick), sub->id, &bad);
        api_reply_json(x, 201,
            json_pack("{s:I,s:o}", "id", (json_int_t)sub->id, "why", why ? why : json_null()));
    }
    free(sub);
}

static void on_submitted(void *ctx, const struct err *e, int64_t id)
{
    struct submission *sub = ctx;
    jobspec_deinit(&sub->s);
    if (!e && sub->wants_why) {
        sub->id = id;
        tick_when_durable(sub->api->o.tick, on_reasons_readable, sub);
        return;
    }
    api_on_created(sub->deferred, e, id);
    free(sub);
}

static int keep_row(void *ctx, const struct job_row *row)
{
    *(struct job_row *)ctx = *row;
    return 1;
}

/* Reads the row of an array's task. A task that was cancelled before it began has none: if its
 * array has ended, it counts as ended by its user. */
static int read_task(
    const struct api *api, const struct depend_ask *a, struct job_row *ret_row, struct err *e)
{
    const struct job_filter f = {.array = a->on, .index = a->task, .limit = 1};
    struct array_row array;
    struct ranges all;
    int rc = db_read_jobs(api->o.reader, &f, keep_row, ret_row, NULL, e);
    if (rc != 0 || ret_row->id != CORE_ID_NONE || model_job(tick_model(api->o.tick), a->on))
        return rc;
    rc = db_read_array(api->o.reader, a->on, &array, e);
    if (rc == 0)
        rc = ranges_parse(array.tasks, &all, e);
    if (rc == 0 && ranges_has(&all, a->task))
        *ret_row =
            (struct job_row){.state = JOB_ENDED, .end = END_CANCELLED, .started_at = WALL_NONE};
    return rc;
}

/* For aftercorr: reads how the tasks of array a->on ended, unless the model has that array with its
 * ends. The caller frees a->array. */
static int read_array(const struct api *api, struct depend_ask *a, struct err *e)
{
    const struct job *on = model_job(tick_model(api->o.tick), a->on);
    struct array_ends ends;
    if (on && (!on->array || on->array->done.n > 0))
        return 0;
    int rc = db_read_array_ends(api->o.reader, a->on, &ends, e);
    if (rc == 0)
        a->array = mem_dup(&ends, sizeof(ends));
    return rc == ERR_NOT_FOUND ? 0 : rc;
}

/* Fills in how those dependencies ended that the model no longer has, from the database. */
int api_read_ended(const struct api *api, struct jobspec *s, struct err *e)
{
    for (size_t i = 0; i < s->n_depends; i++) {
        struct depend_ask *a = &s->depends[i];
        struct job_row row = {0};
        int rc = a->kind == DEPEND_AFTERCORR ? read_array(api, a, e) : 0;
        if (rc != 0)
            return rc;
        if (a->on == CORE_ID_NONE || (!a->of_task && model_job(tick_model(api->o.tick), a->on)))
            continue;
        rc = a->of_task ? read_task(api, a, &row, e) : db_read_job(api->o.reader, a->on, &row, e);
        if (rc != 0 && rc != ERR_NOT_FOUND)
            return rc;
        a->has_ended = rc == 0 && row.state == JOB_ENDED;
        a->end = a->has_ended ? row.end : END_NONE;
        a->started_at = a->has_ended ? row.started_at : WALL_NONE;
    }
    return 0;
}

struct event api_submit_event(const struct jobspec *s)
{
    return (struct event){.type = EV_SUBMIT,
        .submit = {.job = &s->row,
            .texts = &s->texts,
            .depends = s->depends,
            .n_depends = s->n_depends,
            .tasks = s->tasks.n ? &s->tasks : NULL,
            .at_once = s->at_once}};
}

static int apply_submission(void *ctx, struct tick *t, int64_t *ret_id, struct err *e)
{
    struct submission *sub = ctx;
    struct event ev = api_submit_event(&sub->s);
    int rc = api_read_ended(sub->api, &sub->s, e);
    return rc != 0 ? rc : tick_apply(t, &ev, ret_id, e);
}

/* A certificate of one job applies to another if the same user runs the same script with the same
 * method. Arguments may differ, because they change from run to run; so may programs that the
 * script calls, which are not checked. */
void api_script_key(struct jobspec *s)
{
    char *text = mem_printf(
        "%s\n%s\n%s", s->row.user, ckpt_method_names[s->row.spec.method], s->texts.script);
    ca_sha256_hex(text, s->row.script_key);
    free(text);
}

int api_check_window(const struct api *a, const struct job_row *r, struct err *e)
{
    if (!r->spec.window[0] || core_window(tick_model(a->o.tick), r->spec.window))
        return 0;
    return err_set(e, ERR_INVALID,
        "spec.window: there is no window \"%.63s\" in belayd's configuration", r->spec.window);
}

int api_check_method(const struct api *a, const struct job_row *r, struct err *e)
{
    if (r->spec.method != CKPT_CRIU || a->o.config->encryption != ENCRYPTION_NONE)
        return 0;
    return err_set(e, ERR_INVALID,
        "spec.checkpoint.method: \"criu\" restores as root what the store holds, so it needs "
        "encrypted checkpoints: set encryption: client in belayd's configuration and restart "
        "belayd, or submit the job with \"coop\" or \"signal\"");
}

/* Checks that the caller, and the scope of their token, may submit this job. */
static int check_right(const struct request *q, const struct job_row *row, struct err *e)
{
    const struct access_object object = api_object_of_job(row);
    return access_may(&q->caller, RIGHT_SUBMIT, &object)
               ? 0
               : access_refuse(&q->caller, RIGHT_SUBMIT, &object, "this job", e);
}

bool api_read_submission(struct request *q, struct jobspec *ret_spec)
{
    struct jobspec s = {0};
    struct err e;
    json_t *body = api_body(q, JOBSPEC_BYTES_MAX);
    if (!body)
        return false;
    int rc = notify_seal_spec(q->api->o.sealer, q->caller.user, body, &e);
    if (rc == 0)
        rc = jobspec_parse(body, &s, &e);
    json_wipe(body);
    if (rc == 0 && !s.row.spec.pool[0])
        STR_COPY(s.row.spec.pool, q->caller.scope.pool); /* "" unless its token is for one pool */
    if (rc == 0 && (rc = pools_check_names(q->api->o.pools, s.row.spec.pool, "spec", &e)) != 0)
        jobspec_deinit(&s);
    STR_COPY(s.row.user, q->caller.user);
    if (rc == 0 && ((rc = api_check_window(q->api, &s.row, &e)) != 0 ||
                       (rc = api_check_method(q->api, &s.row, &e)) != 0 ||
                       (rc = check_right(q, &s.row, &e)) != 0 ||
                       (rc = api_check_secrets(q->api, &s, &e)) != 0 ||
                       (rc = api_pin_workdir(q->api, &s, &e)) != 0))
        jobspec_deinit(&s);
    if (rc != 0) {
        http_reply_err(q->x, &e);
        return false;
    }
    api_script_key(&s);
    env_seal(q->api->o.sealer, s.row.user, &s.texts.env_json);
    *ret_spec = s;
    return true;
}

void api_jobs_submit(struct request *q)
{
    struct jobspec s;
    int64_t why;
    if (!api_query_i64(q, "why", 0, 1, 0, &why) || !api_read_submission(q, &s))
        return;
    struct submission *sub = mem_alloc(sizeof(*sub));
    *sub = (struct submission){.api = q->api,
        .s = s,
        .deferred = deferred_reply_create(q->api, q->x, API_COMMIT_WAIT_MS),
        .wants_why = why};
    tick_post_work(q->api->o.tick, apply_submission, on_submitted, sub);
}

/* ---- show ---- */

static json_t *priority_json(const struct api *api, const struct job *j)
{
    struct priority p;
    core_priority(tick_model(api->o.tick), j, clock_wall(api->o.timers->clock), &p);
    return json_pack("{s:I,s:I,s:I,s:I,s:I,s:I}", "total_ms", (json_int_t)p.total_ms, "age_ms",
        (json_int_t)p.age_ms, "fair_ms", (json_int_t)p.fair_ms, "qos_ms", (json_int_t)p.qos_ms,
        "size_ms", (json_int_t)p.size_ms, "nice_ms", (json_int_t)p.nice_ms);
}

/* The resource usage of the job's processes on all of its nodes, as last reported by the agents;
 * null before the first report. */
static json_t *usage_json(const struct job *j)
{
    int64_t cpu_ms = 0, user_ms = 0, cpu_milli = 0, bytes = 0, peak = 0;
    LIST_FOREACH (&j->ranks, l) {
        const struct attempt *a = LIST_ENTRY(l, struct attempt, in_job);
        cpu_ms += a->row.cpu_ms;
        user_ms += a->row.cpu_user_ms;
        cpu_milli += a->cpu_milli;
        bytes += a->memory_bytes;
        peak += a->row.memory_peak;
    }
    return cpu_ms + bytes == 0
               ? json_null()
               : json_pack("{s:I,s:o,s:I,s:I,s:I}", "cpu_ms", (json_int_t)cpu_ms, "cpu_user_ms",
                     api_json_opt(user_ms, 0), "cpu_milli", (json_int_t)cpu_milli, "memory_bytes",
                     (json_int_t)bytes, "memory_peak_bytes", (json_int_t)peak);
}

/* The row as JSON, with the values of a live job that only the model has: where it runs (an attempt
 * that the row does not have is not committed yet), the cost of that attempt so far, and its
 * progress, which is stored only when something else is. */
static json_t *job_json(const struct api *api, const struct job_row *row, const struct job *j)
{
    const struct attempt *a = j ? job_attempt(j) : NULL;
    struct job_row live = *row;
    if (j && !a && !j->is_waiting) {
        json_t *o = api_json_job(&live, NULL);
        json_object_set_new(o, "priority", priority_json(api, j));
        return o;
    }
    if (j) {
        live.progress = j->row.progress;
        live.progress_total = j->row.progress_total;
    }
    if (!a || a->row.attempt != row->attempts)
        return api_json_job(&live, NULL);
    LIST_FOREACH (&j->ranks, l) {
        int64_t uusd, on_demand_uusd;
        core_cost_so_far(LIST_ENTRY(l, struct attempt, in_job), clock_wall(api->o.timers->clock),
            &uusd, &on_demand_uusd);
        live.cost_uusd += uusd;
        live.on_demand_uusd += on_demand_uusd;
    }
    json_t *o = api_json_job(&live, a->node->row.name);
    json_object_set_new(o, "usage", usage_json(j));
    json_object_set_new(o, "requeue_asked_at", api_json_time(a->row.requeue_asked_at));
    json_object_set_new(o, "idle_gpus_since", api_json_time(idle_gpus_since(j)));
    json_object_set_new(o, "idle_gpus_parks_at", api_json_time(idle_gpus_parks_at(j)));
    json_object_set_new(o, "attempt_started_at", api_json_time(a->row.started_at));
    if (row->spec.method != CKPT_NONE) {
        json_object_set_new(o, "save_interval_ms", json_integer(core_interval_ms(a)));
        json_object_set_new(o, "reclaims_per_hour", json_real(core_job_reclaims_per_hour(j)));
    }
    return o;
}

/* The job's name for people: "42"; for a task "42_7"; for an array, with its tasks that have not
 * begun, "42_[8-99%10]". */
static json_t *ref_json(const struct job_row *row, const struct array_row *a)
{
    char text[RANGES_TEXT_MAX + 64], limit[16] = "";
    if (!a || !a->left[0])
        return json_string(job_ref(row).s);
    if (a->at_once > 0)
        snprintf(limit, sizeof(limit), "%%%d", (int)a->at_once);
    snprintf(text, sizeof(text), "%lld_[%s%s]", (long long)row->id, a->left, limit);
    return json_text(text);
}

/* The pool of the job's newest attempt. stored: its name as the list of jobs has read it, for a job
 * that has ended; NULL to read it here. */
static json_t *pool_used(
    const struct api *api, const struct job_row *row, const struct job *j, const char *stored)
{
    const struct attempt *a = j ? job_attempt(j) : NULL;
    char name[CORE_NAME_MAX];
    struct err e;
    if (row->attempts == 0)
        return json_null();
    if (a && a->row.attempt == row->attempts)
        return json_text(a->node->row.pool);
    if (stored)
        return api_json_opt_text(stored);
    if (db_read_pool_used(api->o.reader, row->id, row->attempts, name, &e) == 0)
        return api_json_opt_text(name);
    log_error("the pool that a job ran in cannot be read", log_i("job", row->id), log_err(&e));
    return json_null();
}

/* Adds the job's options that belayd only stores; null = default. */
static void set_document(const struct api *api, int64_t job, json_t *o)
{
    char *text = NULL;
    struct err e;
    if (db_read_document(api->o.reader, job, &text, &e) != 0)
        log_error("options of a job cannot be read", log_i("job", job), log_err(&e));
    json_t *document = text ? json_loads(text, 0, NULL) : NULL;
    for (size_t i = 0; i < job_attributes_count; i++) {
        const char *name = job_attributes[i].name;
        json_t *value = name ? json_object_get(document, name) : NULL;
        if (job_attributes[i].masks & JOB_IN_DOCUMENT)
            json_object_set_new(o, name, value ? json_incref(value) : json_null());
    }
    json_decref(document);
    free(text);
}

json_t *api_live_job(const struct api *api, const struct job_row *row, const char *stored_pool)
{
    const struct job *j =
        row->state == JOB_ENDED ? NULL : model_job(tick_model(api->o.tick), row->id);
    const struct array *a = j ? j->array : NULL;
    json_t *o = job_json(api, row, j);
    json_object_set_new(o, "hidden", json_false());
    json_object_set_new(o, "ref", ref_json(row, a ? &a->row : NULL));
    json_object_set_new(o, "pool_used", pool_used(api, row, j, stored_pool));
    struct constraints_row constraints = {0};
    struct err e;
    if (row->constraints != CONSTRAINTS_NONE &&
        db_read_constraints(api->o.reader, row->constraints, &constraints, &e) != 0)
        log_error("what a job asks for cannot be read", log_i("job", row->id), log_err(&e));
    json_set_constraints(o, constraints.text);
    set_document(api, row->id, o);
    return o;
}

/* For a job with a deadline: what it waits for or pays for, when it is expected to be done, and its
 * expected further cost. */
static json_t *expects_json(const struct api *api, int64_t id)
{
    const struct model *m = tick_model(api->o.tick);
    const struct job *j = model_job(m, id);
    struct stamp now = tick_now(api->o.tick);
    struct procurement_outlook o;
    char why[CORE_TEXT_MAX];
    if (!j || !core_procurement_why(m, j, now, why, sizeof(why)))
        return json_null();
    bool known = core_procurement_expects(m, j, now, &o);
    return json_pack("{s:o,s:o,s:o,s:o}", "why", json_text(why), "done_at",
        known ? api_json_time((struct wall){now.wall.ms + o.median_ms}) : json_null(), "late_at",
        known ? api_json_time((struct wall){now.wall.ms + o.p95_ms}) : json_null(), "cost_uusd",
        known ? json_integer(o.uusd) : json_null());
}

/* What the callbacks of a job's attempts and drills collect. */
struct shown {
    json_t *list;
    size_t next; /* add_restart: where the next attempt is looked for */
    struct db_reader *reader;
};

static int add_attempt(void *ctx, const struct attempt_row *a)
{
    json_array_append_new(ctx, api_json_attempt(a));
    return 0;
}

/* The attempts are in the list already, in the same order. */
static int add_restart(void *ctx, const struct restart_moments *m)
{
    struct shown *s = ctx;
    for (; s->next < json_array_size(s->list); s->next++) {
        json_t *a = json_array_get(s->list, s->next);
        if (json_integer_value(json_object_get(a, "attempt")) == m->attempt &&
            json_integer_value(json_object_get(a, "rank")) == m->rank) {
            json_object_set_new(a, "restart", api_json_restart(m));
            break;
        }
    }
    return 0;
}

static int add_checkpoint(void *ctx, const struct checkpoint_row *c)
{
    json_array_append_new(ctx, api_json_checkpoint(c));
    return 0;
}

static int add_ledger(void *ctx, const struct ledger_row *l)
{
    json_array_append_new(ctx, api_json_ledger(l));
    return 0;
}

static int add_dependency(void *ctx, const struct dependency_row *d)
{
    json_array_append_new(ctx, api_json_dependency(d));
    return 0;
}

/* Shows only the hosts of URLs: the rest may be a secret. */
static json_t *notify_json(const char *text)
{
    json_t *o = text ? json_loads(text, 0, NULL) : NULL, *hosts = json_array(), *item;
    char host[NOTIFY_HOST_MAX];
    size_t i;
    if (!o) {
        json_decref(hosts);
        return json_null();
    }
    json_array_foreach(json_object_get(o, "urls"), i, item)
    {
        json_array_append_new(hosts,
            notify_sealed_host(json_string_value(item), host) ? json_string(host) : json_null());
    }
    json_object_del(o, "urls");
    json_object_set_new(o, "hosts", hosts);
    return o;
}

/* The variables of a job, with their values only for its owner and administrators. */
static json_t *env_json(const struct api *api, const struct job_row *row, const char *stored,
    const struct caller *viewer)
{
    json_t *env, *value;
    struct err e;
    const char *name;
    if (env_open(api->o.sealer, row->user, stored, &env, &e) != 0) {
        log_error("an environment cannot be read", log_i("job", row->id), log_err(&e));
        return json_null();
    }
    if (viewer->admin || str_eq(viewer->user, row->user))
        return env;
    json_t *names = json_object();
    json_object_foreach(env, name, value) json_object_set_new(names, name, json_null());
    json_wipe(env);
    return names;
}

static json_t *spec_json(const struct api *api, const struct job_row *row,
    const struct spec_change *s, const struct caller *viewer)
{
    json_t *o = json_object();
    json_object_set_new(o, "script", json_text(s->script));
    json_object_set_new(o, "args", json_loads(s->args_json, 0, NULL));
    json_object_set_new(o, "env", env_json(api, row, s->env_json, viewer));
    json_object_set_new(o, "cwd", json_text(s->cwd));
    json_object_set_new(o, "labels", json_loads(s->labels_json, 0, NULL));
    json_object_set_new(
        o, "launch", s->launch_json ? json_loads(s->launch_json, 0, NULL) : json_object());
    json_object_set_new(o, "notify", notify_json(s->notify_json));
    return o;
}

static int add_job_drill(void *ctx, const struct drill_row *d)
{
    const struct shown *s = ctx;
    json_array_append_new(s->list, api_json_drill(s->reader, d));
    return 0;
}

/* Adds the certificate of the job's script; null if there is none. */
static int add_certificate(struct db_reader *r, const struct job_row *row, json_t *o, struct err *e)
{
    struct drill_row d;
    int rc = db_read_certificate(r, row->script_key, &d, e);
    if (rc != 0 && rc != ERR_NOT_FOUND)
        return rc;
    bool is_certified = rc == 0 && d.state == DRILL_PASSED;
    json_object_set_new(o, "certificate", is_certified ? api_json_drill(r, &d) : json_null());
    return 0;
}

/* Adds the event of the last save if the job runs and the save failed, else null. */
static int add_failed_save(struct db_reader *r, const struct job_row *row, json_t *o, struct err *e)
{
    struct history_row h;
    bool runs = row->state == JOB_RUNNING || row->state == JOB_CANCELLING;
    int rc = runs ? db_read_failed_save(r, row->id, row->attempts, &h, e) : ERR_NOT_FOUND;
    if (rc != 0 && rc != ERR_NOT_FOUND)
        return rc;
    json_object_set_new(o, "failed_save", rc == 0 ? api_json_event(r, &h, false) : json_null());
    return 0;
}

void api_jobs_show(struct request *q)
{
    struct db_reader *r = q->api->o.reader;
    struct job_row row;
    struct spec_change spec = {0};
    struct ckpt_gc_row ckpt_gc;
    struct array_row array;
    bool left = false;
    struct err e;
    if (!api_find_job(q, RIGHT_READ_JOB, &row))
        return;
    json_t *o = json_object(), *attempts = json_array(), *checkpoints = json_array(),
           *ledger = json_array();
    json_t *drills = json_array(), *depends = json_array();
    int rc = db_read_spec(r, q->id, &spec, &e);
    if (rc == 0)
        rc = db_read_attempts(r, q->id, add_attempt, attempts, &e);
    if (rc == 0)
        rc = db_read_restarts(r, q->id, add_restart, &(struct shown){attempts, 0, r}, &e);
    if (rc == 0)
        rc = db_read_checkpoints(r, q->id, add_checkpoint, checkpoints, &e);
    if (rc == 0)
        rc = db_read_ledger(r, q->id, add_ledger, ledger, &e);
    if (rc == 0)
        rc = db_read_job_drills(r, q->id, add_job_drill, &(struct shown){drills, 0, r}, &e);
    if (rc == 0)
        rc = db_read_dependencies(r, q->id, add_dependency, depends, &e);
    if (rc == 0)
        rc = add_certificate(r, &row, o, &e);
    if (rc == 0)
        rc = add_failed_save(r, &row, o, &e);
    if (rc == 0) {
        rc = db_read_ckpt_gc(r, q->id, &ckpt_gc, &e);
        left = rc == 0;
        rc = rc == ERR_NOT_FOUND ? 0 : rc;
    }
    if (rc == 0) {
        json_object_set_new(o, "job", api_live_job(q->api, &row, NULL));
        json_object_set_new(o, "array",
            db_read_array(r, q->id, &array, &e) == 0 ? api_json_array(&array) : json_null());
        json_object_set_new(o, "expects", expects_json(q->api, q->id));
        json_object_set_new(o, "leftover", left ? api_json_ckpt_gc(&ckpt_gc) : json_null());
        json_object_set_new(o, "spec", spec_json(q->api, &row, &spec, &q->caller));
    }
    spec_change_deinit(&spec);
    json_object_set_new(o, "attempts", attempts);
    json_object_set_new(o, "checkpoints", checkpoints);
    json_object_set_new(o, "ledger", ledger);
    json_object_set_new(o, "drills", drills);
    json_object_set_new(o, "depends", depends);
    if (rc == 0) {
        api_reply_json(q->x, 200, o);
    } else {
        json_decref(o);
        http_reply_err(q->x, &e);
    }
}

/* ---- changing ---- */

struct access_object api_object_of_job(const struct job_row *row)
{
    return (struct access_object){.user = row->user,
        .team = row->spec.team,
        .pool = row->spec.pool,
        .job = row->id,
        .cron = row->cron};
}

bool api_find_job(struct request *q, enum right right, struct job_row *ret_row)
{
    char what[48];
    struct err e;
    if (db_read_job(q->api->o.reader, q->id, ret_row, &e) != 0) {
        http_reply_err(q->x, &e);
        return false;
    }
    const struct access_object object = api_object_of_job(ret_row);
    snprintf(what, sizeof(what), "job %s", job_ref(ret_row).s);
    return api_may(q, right, &object, what);
}

bool api_find_live_job(
    struct request *q, enum right right, const char *what, struct job_row *ret_row)
{
    if (!api_find_job(q, right, ret_row))
        return false;
    if (ret_row->state == JOB_ENDED) {
        api_reply_failure(q->x, ERR_CONFLICT, "job %s has ended (%s): there is nothing to %s",
            job_ref(ret_row).s, end_kind_names[ret_row->end], what);
        return false;
    }
    return true;
}

static bool may_change(struct request *q, const char *what)
{
    struct job_row row;
    return api_find_live_job(q, RIGHT_CHANGE, what, &row);
}

/* A cancel that waits for its tick. It owns its set of tasks, because the request ends before. */
struct cancelling {
    struct event ev;
    struct ranges tasks;
    struct deferred_reply *deferred;
};

static int apply_cancelling(void *ctx, struct tick *t, int64_t *ret_id, struct err *e)
{
    struct cancelling *c = ctx;
    return tick_apply(t, &c->ev, ret_id, e);
}

static void on_cancelled(void *ctx, const struct err *e, int64_t id)
{
    struct cancelling *c = ctx;
    api_on_done(c->deferred, e, id);
    free(c);
}

/* Reads {"tasks": "5-10"}, or an empty body. Returns false after an error reply. */
static bool read_tasks(struct request *q, struct ranges *ret_tasks)
{
    struct json_reader r;
    struct err e, bad;
    char text[RANGES_TEXT_MAX];
    *ret_tasks = (struct ranges){0};
    if (q->r->body_len == 0)
        return true;
    json_t *body = api_body(q, API_UNAUTHENTICATED_BODY_MAX);
    if (!body)
        return false;
    json_reader_init(&r, body, "body", &e);
    json_opt_strcpy(&r, "tasks", text, sizeof(text), "");
    if (r.rc == 0 && text[0] && ranges_parse(text, ret_tasks, &bad) != 0)
        json_reader_fail(&r, "tasks", "%s", bad.text);
    int rc = json_reader_finish(&r);
    json_decref(body);
    if (rc != 0)
        http_reply_err(q->x, &e);
    return rc == 0;
}

void api_jobs_cancel(struct request *q)
{
    struct ranges tasks;
    if (!may_change(q, "cancel") || !read_tasks(q, &tasks))
        return;
    struct cancelling *c = mem_alloc(sizeof(*c));
    c->tasks = tasks;
    c->deferred = deferred_reply_create(q->api, q->x, API_COMMIT_WAIT_MS);
    c->ev = (struct event){
        .type = EV_CANCEL, .cancel = {.job = q->id, .tasks = tasks.n ? &c->tasks : NULL}};
    STR_COPY(c->ev.cancel.by, q->caller.user);
    tick_post_work(q->api->o.tick, apply_cancelling, on_cancelled, c);
}

void api_jobs_requeue(struct request *q)
{
    struct event ev = {.type = EV_REQUEUE, .requeue = {.job = q->id}};
    STR_COPY(ev.requeue.by, q->caller.user);
    const struct api_flag flags[] = {
        {"from_scratch", &ev.requeue.from_scratch}, {"force", &ev.requeue.force}};
    if (may_change(q, "requeue") && api_read_flags(q, flags, 2))
        tick_post(q->api->o.tick, &ev, api_on_done,
            deferred_reply_create(q->api, q->x, API_COMMIT_WAIT_MS));
}

void api_jobs_hold(struct request *q)
{
    struct event ev = {.type = EV_HOLD, .hold = {.job = q->id}};
    struct job_row row;
    STR_COPY(ev.hold.by, q->caller.user);
    if (!api_find_live_job(q, RIGHT_CHANGE, "hold", &row))
        return;
    /* an operator's own job is held as a user's job */
    ev.hold.by_operator = q->caller.role >= ROLE_OPERATOR && !str_eq(row.user, q->caller.user);
    tick_post(
        q->api->o.tick, &ev, api_on_done, deferred_reply_create(q->api, q->x, API_COMMIT_WAIT_MS));
}

void api_jobs_release(struct request *q)
{
    struct event ev = {.type = EV_RELEASE,
        .release = {.job = q->id, .by_operator = q->caller.role >= ROLE_OPERATOR}};
    STR_COPY(ev.release.by, q->caller.user);
    const struct api_flag flag = {"from_scratch", &ev.release.from_scratch};
    if (may_change(q, "release") && api_read_flags(q, &flag, 1))
        tick_post(q->api->o.tick, &ev, api_on_done,
            deferred_reply_create(q->api, q->x, API_COMMIT_WAIT_MS));
}

void api_jobs_save(struct request *q)
{
    struct event ev = {.type = EV_SAVE, .save = {.job = q->id}};
    STR_COPY(ev.save.by, q->caller.user);
    if (may_change(q, "save"))
        tick_post(q->api->o.tick, &ev, api_on_done,
            deferred_reply_create(q->api, q->x, API_COMMIT_WAIT_MS));
}
