/* SPDX-License-Identifier: Apache-2.0
 *
 * GET /api/v1/advice: resources that are held but not used; POST /api/v1/jobs/N/reclaim: takes them
 * back from a job. telemetry/advise.c makes the judgement.
 */
#include "scheduler/api/api_private.h"
#include "scheduler/job_loads.h"
#include "scheduler/right_size.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "scheduler/core/placement/constraints.h"
#include <stdlib.h>

/* Limits of a page, in jobs and in ms: no other request is answered while they are read. */
#define PAGE_JOBS_MAX 500
#define PAGE_MS 25
#define HOURS (LOAD_SPANS - 1)
#define NO_PROGRESS_MIN 2

struct advice_query {
    const struct api *api;
    struct stamp now;
    const struct caller *viewer; /* only jobs that they may read */
    const char *user;            /* only jobs of this user; NULL = all */
    json_t *items;
    struct right_size_cache sizes;
};

/* ---- one job ---- */

static int add_wait(void *ctx, const struct ledger_row *l)
{
    struct advise_job *j = ctx;
    j->total_ms += l->ms;
    j->gang_wait_ms += l->kind == LEDGER_GANG_WAIT ? l->ms : 0;
    return 0;
}

/* Adds a live attempt, which is not in the ledger yet. */
static void add_live(const struct advice_query *x, const struct attempt *a, struct advise_job *j)
{
    int64_t waited = wall_is_set(a->row.gathered_at) && wall_is_set(a->row.started_at)
                         ? a->row.gathered_at.ms - a->row.started_at.ms
                         : 0;
    int64_t ran = wall_is_set(a->row.assigned_at) ? x->now.wall.ms - a->row.assigned_at.ms : 0;
    j->gang_wait_ms += waited > 0 ? waited : 0;
    j->total_ms += ran > 0 ? ran : 0;
    j->uusd_h += a->uusd_h;
}

static const struct job_gpu *same_gpu(const struct job_loads *l, const struct job_gpu *g)
{
    for (size_t i = 0; i < l->n_gpus; i++)
        if (l->gpus[i].node == g->node && str_eq(l->gpus[i].gpu, g->gpu))
            return &l->gpus[i];
    return NULL;
}

static bool is_starved(const struct advice_query *x, const struct job_loads *recent)
{
    struct finding found[FINDING_CODES];
    size_t n = job_loads_diagnose(recent, &x->api->o.config->telemetry.diagnose, found, NULL);
    for (size_t i = 0; i < n; i++)
        if (found[i].code == FINDING_GPU_STARVED)
            return true;
    return false;
}

static int64_t cost_so_far(const struct advice_query *x, const struct job *job)
{
    int64_t sum = job->row.cost_uusd;
    LIST_FOREACH (&job->ranks, l) {
        int64_t uusd, on_demand_uusd;
        core_cost_so_far(
            LIST_ENTRY(l, struct attempt, in_job), x->now.wall, &uusd, &on_demand_uusd);
        sum += uusd;
    }
    return sum;
}

static void add_item(struct advice_query *x, const struct job *job, const struct advice *a,
    int64_t cost_uusd, int64_t uusd_h)
{
    const struct job_row *r = &job->row;
    json_array_append_new(x->items,
        json_pack("{s:s,s:I,s:s,s:n,s:o,s:o,s:o,s:o,s:o,s:I,s:I,s:I,s:b}", "code",
            advice_code_names[a->code], "job", (json_int_t)r->id, "ref", job_ref(r).s, "node",
            "name", json_text(r->spec.name), "user", json_text(r->user), "pool",
            json_text(job_attempt(job)->node->row.pool), "text", json_text(a->text), "remedy",
            json_text(a->remedy), "cost_uusd", (json_int_t)cost_uusd, "uusd_per_hour",
            (json_int_t)uusd_h, "waste_uusd_per_hour", (json_int_t)a->waste_uusd_h, "can_reclaim",
            (int)(r->spec.method != CKPT_NONE)));
}

/* Counts the whole cost of a job that made no progress in its last attempts as waste. */
static size_t add_no_progress(const struct job_row *r, int64_t uusd_h, struct advice *out, size_t n)
{
    struct advice *a = &out[n];
    *a = (struct advice){.code = ADVICE_IN_VAIN, .waste_uusd_h = uusd_h};
    snprintf(a->text, sizeof(a->text),
        "%d times in a row it was restored, started from before its checkpoint, and never got "
        "beyond step %lld",
        (int)r->no_progress, (long long)r->best_progress);
    snprintf(a->remedy, sizeof(a->remedy),
        "make the program continue from BELAY_CHECKPOINT_DIR when BELAY_RESTORED is 1: belay drill "
        "JOB shows whether it does");
    return n + 1;
}

/* The saving is not waste: the machine may serve others. */
static size_t add_right_size(
    struct advice_query *x, const struct job_row *r, struct advice *out, size_t n)
{
    struct right_size size;
    if (!right_size_of_job(tick_model(x->api->o.tick), x->api->o.reader, &x->sizes, r, &size))
        return n;
    struct advice *a = &out[n];
    *a = (struct advice){.code = ADVICE_RIGHT_SIZE};
    snprintf(a->text, sizeof(a->text), "%s", size.text);
    snprintf(a->remedy, sizeof(a->remedy), "submit the next one with --mem %lldM --cpus %lld",
        (long long)size.memory_mib, (long long)size.cpus);
    return n + 1;
}

/* Adds the advice about a job, from its recent loads and all of them. */
static void add_job_advice(struct advice_query *x, const struct job *job,
    const struct job_loads *recent, const struct job_loads *all)
{
    const struct advise_limits *limits = &x->api->o.config->telemetry.advise;
    const struct attempt *first = job_attempt(job);
    const struct constraints *constraints =
        model_constraints(tick_model(x->api->o.tick), job->row.constraints);
    struct advice out[ADVICE_CODES];
    struct diagnose_rank *ranks = mem_array(all->n_ranks, sizeof(*ranks));
    struct advise_gpu *gpus = mem_array(all->n_gpus, sizeof(*gpus));
    struct advise_job j = {.cpus = first->allocated.cpus,
        .gpus = first->allocated.gpus,
        .memory_bytes = first->allocated.memory_mib << 20,
        .exclusive = constraints && constraints->exclusive,
        .ranks = ranks,
        .n_ranks = all->n_ranks,
        .gpu = gpus,
        .n_gpus = all->n_gpus,
        .starved = is_starved(x, recent)};
    struct err e;
    for (size_t i = 0; i < all->n_ranks; i++)
        ranks[i] = (struct diagnose_rank){.rank = all->ranks[i].rank, .load = all->ranks[i].load};
    for (size_t i = 0; i < all->n_gpus; i++) {
        const struct job_gpu *now = same_gpu(recent, &all->gpus[i]);
        gpus[i].all = all->gpus[i].load;
        if (now) {
            gpus[i].recent = now->load;
            gpus[i].busiest_recent = now->busiest;
        }
    }
    if (job->row.spec.nodes > 1 &&
        db_read_ledger(x->api->o.reader, job->row.id, add_wait, &j, &e) != 0)
        log_warn("the ledger of a job cannot be read", log_i("job", job->row.id), log_err(&e));
    LIST_FOREACH (&job->ranks, l)
        add_live(x, LIST_ENTRY(l, struct attempt, in_job), &j);
    if (job->row.spec.nodes == 1)
        j.gang_wait_ms = j.total_ms = 0;
    size_t n = advise_job(&j, limits, out);
    if (job->row.no_progress >= NO_PROGRESS_MIN)
        n = add_no_progress(&job->row, j.uusd_h, out, n);
    n = add_right_size(x, &job->row, out, n);
    int64_t cost_uusd = n > 0 ? cost_so_far(x, job) : 0;
    for (size_t i = 0; i < n; i++)
        add_item(x, job, &out[i], cost_uusd, j.uusd_h);
    free(ranks);
    free(gpus);
}

/* The recent loads and all loads come from one commit. Ranks and GPUs that only the second has get
 * no advice. */
static void advise_on_job(struct advice_query *x, const struct job *job)
{
    const struct advise_limits *limits = &x->api->o.config->telemetry.advise;
    const struct model *m = tick_model(x->api->o.tick);
    struct wall recently = {x->now.wall.ms - limits->idle_ms},
                before = {x->now.wall.ms - limits->size_ms};
    struct job_loads recent = {0}, all = {0};
    struct err e;
    int rc = db_reader_begin(x->api->o.reader, &e);
    if (rc == 0)
        rc = job_loads_read(&recent, x->api->o.reader, m, &job->row, recently, 0, &e);
    if (rc == 0)
        rc = job_loads_read(&all, x->api->o.reader, m, &job->row, before, HOURS, &e);
    db_reader_end(x->api->o.reader);
    if (rc == 0)
        add_job_advice(x, job, &recent, &all);
    else
        log_warn("the loads of a job cannot be read", log_i("job", job->row.id), log_err(&e));
    job_loads_deinit(&recent);
    job_loads_deinit(&all);
}

/* ---- one node ---- */

static void advise_on_node(struct advice_query *x, const struct node *n)
{
    const struct advise_limits *limits = &x->api->o.config->telemetry.advise;
    char text[ADVICE_TEXT_MAX], idle[32];
    int64_t ms = mono_is_set(n->idle_since) ? x->now.mono.ms - n->idle_since.ms : 0;
    if (n->row.state != NODE_UP || !list_is_empty(&n->attempts) || ms < limits->idle_ms)
        return;
    time_format_duration(ms / 1000 * 1000, idle, sizeof(idle));
    snprintf(text, sizeof(text), "no job has been on it for %s", idle);
    json_array_append_new(x->items,
        json_pack("{s:s,s:n,s:n,s:I,s:o,s:n,s:o,s:o,s:s,s:n,s:I,s:I,s:b}", "code",
            advice_code_names[ADVICE_IDLE_NODE], "job", "ref", "node", (json_int_t)n->row.id,
            "name", json_text(n->row.name), "user", "pool", json_text(n->row.pool), "text",
            json_text(text), "remedy",
            n->instance
                ? "return it: with a shorter idle_timeout of its pool, or belay nodes drain NODE"
                : "return it, or let others use it: belay nodes drain NODE keeps jobs away",
            "cost_uusd", "uusd_per_hour", (json_int_t)n->row.price_uusd_h, "waste_uusd_per_hour",
            (json_int_t)n->row.price_uusd_h, "can_reclaim", 0));
}

/* ---- all of them ---- */

/* The first `limit` running jobs with a number above `after`, in ascending order, and one more if
 * there are more. */
struct page {
    const struct job **jobs; /* 2 * (limit + 1) places */
    size_t n, limit;
    int64_t after, last; /* none beyond `last` is among the first */
};

static int by_number(const void *a, const void *b)
{
    const struct job *const *x = a, *const *y = b;
    return (*x)->row.id < (*y)->row.id ? -1 : (*x)->row.id > (*y)->row.id;
}

static bool may_read(const struct advice_query *x, const struct job *j)
{
    const struct access_object object = api_object_of_job(&j->row);
    return access_may(x->viewer, RIGHT_READ_JOB, &object);
}

static void keep_first(struct page *p)
{
    if (p->n > 1)
        qsort(p->jobs, p->n, sizeof(*p->jobs), by_number);
    if (p->n <= p->limit)
        return;
    p->n = p->limit + 1;
    p->last = p->jobs[p->limit]->row.id;
}

/* Without a sort of all running jobs, of which there may be 100,000. */
static void find_jobs(const struct advice_query *x, struct page *p)
{
    p->last = INT64_MAX;
    p->jobs = mem_array(2 * (p->limit + 1), sizeof(*p->jobs));
    LIST_FOREACH (model_nodes(tick_model(x->api->o.tick)), l)
        LIST_FOREACH (&LIST_ENTRY(l, struct node, in_all)->attempts, la) {
            const struct attempt *a = LIST_ENTRY(la, struct attempt, on_node);
            int64_t id = a->job->row.id;
            if (a->row.rank != 0 || a->row.state != ATTEMPT_RUNNING || id <= p->after ||
                id > p->last || (x->user && !str_eq(x->user, a->job->row.user)) ||
                !may_read(x, a->job))
                continue;
            p->jobs[p->n++] = a->job;
            if (p->n == 2 * (p->limit + 1))
                keep_first(p);
        }
    keep_first(p);
}

/* Examines jobs of the page until PAGE_MS have passed, at least one. Returns their number. */
static size_t advise_on_jobs(struct advice_query *x, const struct page *p)
{
    const struct clock *clock = x->api->o.timers->clock;
    int64_t end_ms = clock_mono(clock).ms + PAGE_MS;
    size_t n = 0;
    while (n < p->n && n < p->limit && (n == 0 || clock_mono(clock).ms < end_ms))
        advise_on_job(x, p->jobs[n++]);
    return n;
}

void api_advice(struct request *q)
{
    struct advice_query x = {.api = q->api,
        .now = tick_now(q->api->o.tick),
        .viewer = &q->caller,
        .user = http_request_query(q->x, "user")};
    struct page p = {0};
    int64_t limit;
    if (!api_query_i64(q, "after", 0, INT64_MAX, 0, &p.after) ||
        !api_query_i64(q, "limit", 1, PAGE_JOBS_MAX, PAGE_JOBS_MAX, &limit))
        return;
    x.items = json_array();
    p.limit = (size_t)limit;
    find_jobs(&x, &p);
    size_t n = advise_on_jobs(&x, &p);
    if (!x.user && p.after == 0)
        LIST_FOREACH (model_nodes(tick_model(q->api->o.tick)), l)
            advise_on_node(&x, LIST_ENTRY(l, struct node, in_all));
    api_reply_json(q->x, 200,
        json_pack("{s:o,s:I,s:o}", "items", api_sort_descending(x.items, "waste_uusd_per_hour"),
            "looked_at", (json_int_t)n, "next",
            api_json_opt(n < p.n ? p.jobs[n - 1]->row.id : CORE_ID_NONE, CORE_ID_NONE)));
    free(p.jobs);
    right_size_cache_deinit(&x.sizes);
}

/* ---- reclaiming ---- */

struct reclaiming {
    struct deferred_reply *deferred;
    int64_t job;
    char by[CORE_NAME_MAX];
};

/* Saves, stops and holds the job. Its owner may release it. */
static int apply_reclaiming(void *ctx, struct tick *t, int64_t *ret_id, struct err *e)
{
    const struct reclaiming *c = ctx;
    const struct job *job = model_job(tick_model(t), c->job);
    struct event hold = {.type = EV_HOLD, .hold = {.job = c->job}},
                 requeue = {.type = EV_REQUEUE, .requeue = {.job = c->job}};
    STR_COPY(hold.hold.by, c->by);
    STR_COPY(requeue.requeue.by, c->by);
    if (!job || job->row.state != JOB_RUNNING)
        return err_set(e, ERR_CONFLICT, "job %s does not run: there is nothing to reclaim",
            job_ref_of(tick_model(t), c->job).s);
    if (job->row.spec.method == CKPT_NONE)
        return err_set(e, ERR_CONFLICT,
            "job %s has no checkpoints: its work would be lost. Ask its owner, or use belay "
            "requeue or belay cancel",
            job_ref(&job->row).s);
    int rc = tick_apply(t, &requeue, ret_id, e);
    return rc ? rc : tick_apply(t, &hold, ret_id, e);
}

static void on_reclaimed(void *ctx, const struct err *e, int64_t id)
{
    struct reclaiming *c = ctx;
    api_on_done(c->deferred, e, id);
    free(c);
}

void api_jobs_reclaim(struct request *q)
{
    struct job_row row;
    if (!api_find_live_job(q, RIGHT_CHANGE, "take back", &row))
        return;
    struct reclaiming *c = mem_alloc(sizeof(*c));
    c->deferred = deferred_reply_create(q->api, q->x, API_COMMIT_WAIT_MS);
    c->job = q->id;
    STR_COPY(c->by, q->caller.user);
    tick_post_work(q->api->o.tick, apply_reclaiming, on_reclaimed, c);
}
