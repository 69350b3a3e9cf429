/* SPDX-License-Identifier: Apache-2.0
 *
 * Changes that would let a job start at once. Each is tried on a copy of the job's shape with the
 * planner's own functions, so the result is what the planner would do.
 */
#include "scheduler/core/forecast/ahead.h"
#include "scheduler/core/forecast/remedies.h"
#include "scheduler/core/forecast/forecast_parts.h"

#include "base/str.h"
#include "scheduler/core/model/resources.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/model/text.h"
#include "scheduler/core/placement/constraints_model.h"
#include "scheduler/core/placement/criu.h"
#include "scheduler/core/placement/racks.h"
#include "scheduler/core/queue/arrays.h"
#include "scheduler/core/queue/limits.h"
#include "scheduler/core/queue/priority.h"
#include "scheduler/core/queue/queue.h"
#include "scheduler/core/queue/shares.h"
#include "scheduler/core/queue/windows.h"
#include "scheduler/core/supply/boots.h"
#include "scheduler/core/supply/offers.h"
#include <inttypes.h>

#define MINUTE_MS 60000LL
#define MEMORY_STEP_MIB 256

/* The changed job. */
struct variant {
    struct shape shape;
    struct constraints constraints;
    struct account account;
    struct team team;
};

struct remedies {
    const struct model *m;
    struct stamp now;
    const struct job *job;
    struct reason *out;
    size_t n, max;
};

static void variant_init(const struct remedies *r, struct variant *ret_variant)
{
    const struct shape *s = r->job->shape;
    struct variant *v = ret_variant;
    v->shape = *s;
    if (s->constraints) {
        v->constraints = *s->constraints;
        v->shape.constraints = &v->constraints;
    }
    v->account = *s->account;
    v->team = *s->account->team;
    v->account.team = &v->team;
    v->shape.account = &v->account;
    bool is_queued = tree_has(&r->job->in_shape) && !s->throttled_by;
    v->shape.position_16 = is_queued ? job_position_16(r->m, r->job) : INT64_MAX;
    /* its own reservations do not block it */
    v->shape.head = is_queued && s->head == r->job->row.id ? r->job->row.id - 1 : r->job->row.id;
}

static const struct reason *add_remedy(struct remedies *r, const char *code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static const struct reason *add_remedy(struct remedies *r, const char *code, const char *fmt, ...)
{
    if (r->n == r->max)
        return NULL;
    struct reason *to = &r->out[r->n++];
    va_list ap;
    va_start(ap, fmt);
    STR_COPY(to->code, code);
    text_vformat(to->text, sizeof to->text, fmt, ap);
    va_end(ap);
    return to;
}

static bool starts(const struct remedies *r, const struct shape *s)
{
    int64_t node;
    return shape_starts_now(r->m, s, r->now, &node);
}

/* "it would start now on n1" */
struct start_text {
    char s[CORE_NAME_MAX + 64];
};

static struct start_text describe_start(const struct remedies *r, const struct shape *s)
{
    struct start_text t = {"it would start now"};
    int64_t id;
    if (!shape_starts_now(r->m, s, r->now, &id))
        return t;
    const struct node *n = model_node(r->m, id);
    text_format(t.s, sizeof t.s, "it would start now on %s%s", n->row.name,
        s->nodes > 1 ? " and others" : "");
    return t;
}

/* ---- options of the job ---- */

static void try_time(struct remedies *r)
{
    static const int64_t minutes[] = {
        4320, 2880, 1440, 720, 480, 360, 240, 180, 120, 90, 60, 45, 30, 20, 15, 10, 5};
    int64_t limit_ms = r->job->row.spec.time_limit_ms;
    struct variant v;
    variant_init(r, &v);
    for (size_t k = 0; k < sizeof minutes / sizeof minutes[0]; k++) {
        char with[32], is[32];
        v.shape.limit_ms = minutes[k] * MINUTE_MS;
        if ((limit_ms > 0 && v.shape.limit_ms >= limit_ms) || !starts(r, &v.shape))
            continue;
        time_format_duration(v.shape.limit_ms, with, sizeof with);
        time_format_duration(limit_ms, is, sizeof is);
        add_remedy(r, "time", "with --time %s%s%s %s", with, limit_ms > 0 ? " instead of " : "",
            limit_ms > 0 ? is : "", describe_start(r, &v.shape).s);
        return;
    }
}

/* One of its demands prevents the start. */
static void try_constraints(struct remedies *r)
{
    const struct constraints *x = r->job->shape->constraints;
    struct variant v;
    if (!x)
        return;
    variant_init(r, &v);
    v.constraints.constraint = (struct constraint){0};
    if (x->constraint.n_names > 0 && starts(r, &v.shape))
        add_remedy(r, "constraint", "without --constraint %s", describe_start(r, &v.shape).s);
    variant_init(r, &v);
    v.constraints.gpu = (struct gpu_kind){0};
    if ((x->gpu.model[0] || x->gpu.memory_mib > 0) && starts(r, &v.shape))
        add_remedy(r, "gpu-kind", "with GPUs of any kind %s", describe_start(r, &v.shape).s);
    variant_init(r, &v);
    v.constraints.nodes[0] = v.constraints.exclude[0] = '\0';
    if (constraints_name_nodes(x) && starts(r, &v.shape))
        add_remedy(
            r, "nodelist", "without --nodelist and --exclude %s", describe_start(r, &v.shape).s);
    variant_init(r, &v);
    v.constraints.resources.n = 0;
    if (x->resources.n > 0 && starts(r, &v.shape))
        add_remedy(r, "resources", "without the named resources of --gres %s",
            describe_start(r, &v.shape).s);
    variant_init(r, &v);
    v.constraints.exclusive = false;
    if (x->exclusive && starts(r, &v.shape))
        add_remedy(r, "exclusive", "without --exclusive %s", describe_start(r, &v.shape).s);
    variant_init(r, &v);
    v.constraints.licences.n = 0;
    if (x->licences.n > 0 && starts(r, &v.shape))
        add_remedy(r, "licences", "without --licences %s", describe_start(r, &v.shape).s);
}

static void try_pool(struct remedies *r)
{
    const struct shape *s = r->job->shape;
    int64_t id;
    struct variant v;
    variant_init(r, &v);
    v.shape.pool[0] = '\0';
    if (s->pool[0] && shape_starts_now(r->m, &v.shape, r->now, &id))
        add_remedy(r, "pool", "in pool %s instead of %s %s", model_node(r->m, id)->pool->row.name,
            s->pool, describe_start(r, &v.shape).s);
    variant_init(r, &v);
    v.shape.wish = WISH_ANY;
    if (s->wish != WISH_ANY && starts(r, &v.shape))
        add_remedy(r, "market", "with --market any instead of %s %s", market_wish_names[s->wish],
            describe_start(r, &v.shape).s);
}

static void try_nodes(struct remedies *r)
{
    struct variant v;
    variant_init(r, &v);
    for (int32_t n = r->job->shape->least - 1; n >= 1; n--) {
        v.shape.nodes = v.shape.least = n;
        if (!starts(r, &v.shape))
            continue;
        add_remedy(r, "nodes", "with %" PRId32 " node%s instead of %" PRId32 " %s", n,
            n == 1 ? "" : "s", r->job->shape->least, describe_start(r, &v.shape).s);
        return;
    }
}

/* The largest value below `is` with which it starts; 0: none. Monotonic: what fits with more fits
 * with less. */
static int64_t largest_that_starts(const struct remedies *r, struct variant *v, int64_t is,
    int64_t step, void (*set)(struct shape *, int64_t))
{
    int64_t low = 0, high = (is - 1) / step;
    while (low < high) {
        int64_t mid = (low + high + 1) / 2;
        set(&v->shape, mid * step);
        v->shape.mcpu = priority_mcpu(model_policy(r->m), &v->shape.need);
        if (starts(r, &v->shape))
            low = mid;
        else
            high = mid - 1;
    }
    set(&v->shape, low * step);
    v->shape.mcpu = priority_mcpu(model_policy(r->m), &v->shape.need);
    return low * step;
}

static void set_cpus(struct shape *s, int64_t n)
{
    s->need.cpus = (int32_t)n;
}

static void set_gpus(struct shape *s, int64_t n)
{
    s->need.gpus = (int32_t)n;
}

static void set_memory(struct shape *s, int64_t n)
{
    s->need.memory_mib = n;
}

static void try_size(struct remedies *r)
{
    const struct resources *need = &r->job->shape->need;
    struct variant v;
    variant_init(r, &v);
    int64_t n = need->cpus > 1 ? largest_that_starts(r, &v, need->cpus, 1, set_cpus) : 0;
    if (n > 0)
        add_remedy(r, "cpus", "with %" PRId64 " cpu%s instead of %" PRId32 " %s", n,
            n == 1 ? "" : "s", need->cpus, describe_start(r, &v.shape).s);
    variant_init(r, &v);
    n = need->gpus > 1 ? largest_that_starts(r, &v, need->gpus, 1, set_gpus) : 0;
    if (n > 0)
        add_remedy(r, "gpus", "with %" PRId64 " GPU%s instead of %" PRId32 " %s", n,
            n == 1 ? "" : "s", need->gpus, describe_start(r, &v.shape).s);
    variant_init(r, &v);
    n = need->memory_mib > MEMORY_STEP_MIB
            ? largest_that_starts(r, &v, need->memory_mib, MEMORY_STEP_MIB, set_memory)
            : 0;
    if (n > 0) {
        char with[24], is[24];
        str_format_bytes((uint64_t)n << 20, with, sizeof with);
        str_format_bytes((uint64_t)need->memory_mib << 20, is, sizeof is);
        add_remedy(r, "memory", "with %s of memory instead of %s %s", with, is,
            describe_start(r, &v.shape).s);
    }
}

/* ---- launches ---- */

/* The cheapest offer that can provide all nodes of the job at once; `more`: if the pool could have
 * this many more. */
static const struct offer *cheapest_launch(
    const struct remedies *r, const struct shape *s, int64_t more)
{
    const struct offer *best = NULL;
    enum limit_kind kind;
    if (limits_exceeded(r->m, s, s->least, &kind) || licences_lack(r->m, s->constraints))
        return NULL;
    LIST_FOREACH (model_pools(r->m), lp) {
        const struct pool *p = LIST_ENTRY(lp, struct pool, in_all);
        if (!p->row.elastic || p->row.max_nodes == 0 || !pool_may_criu(p, s->criu))
            continue;
        LIST_FOREACH (&p->offers, lo) {
            const struct offer *o = LIST_ENTRY(lo, struct offer, in_pool);
            struct resources total = offer_total(o);
            struct capacity capacity = pool_capacity(p, r->now.mono), all = model_capacity(r->m);
            int32_t n = 0;
            capacity.nodes += more;
            while (n < s->least && offer_may_serve(o, s, &capacity, &all, r->now) &&
                   rack_has_power(o, s, n + 1)) {
                capacity_take(&capacity, o);
                capacity_take(&all, o);
                n++;
            }
            if (n == s->least && limits_allow(s, o->pool, &total, o->row.price_uusd_h) &&
                (!best || o->row.price_uusd_h < best->row.price_uusd_h))
                best = o;
        }
    }
    return best;
}

struct price {
    char s[32];
};

static struct price price_of(const struct offer *o, const struct shape *s)
{
    struct price p;
    int64_t cents = (o->row.price_uusd_h * s->least + 5000) / 10000;
    text_format(p.s, sizeof p.s, "$%" PRId64 ".%02" PRId64 "/h", cents / 100, cents % 100);
    return p;
}

static void try_launches(struct remedies *r)
{
    const struct shape *s = r->job->shape;
    const struct offer *o;
    struct variant v;
    variant_init(r, &v);
    v.shape.pool[0] = '\0';
    if (s->pool[0] && (o = cheapest_launch(r, &v.shape, 0)))
        add_remedy(r, "launch",
            "in pool %s instead of %s a machine would be launched for it: from %s", o->row.pool,
            s->pool, price_of(o, s).s);
    variant_init(r, &v);
    v.shape.wish = WISH_ANY;
    if (s->wish != WISH_ANY && (o = cheapest_launch(r, &v.shape, 0)))
        add_remedy(r, "launch",
            "with --market any a machine of pool %s would be launched for it: from %s", o->row.pool,
            price_of(o, s).s);
    variant_init(r, &v);
    v.constraints.constraint = (struct constraint){0};
    v.constraints.gpu = (struct gpu_kind){0};
    v.constraints.nodes[0] = '\0';
    if (s->constraints &&
        (s->constraints->nodes[0] || s->constraints->constraint.n_names > 0 ||
            s->constraints->gpu.model[0] || s->constraints->gpu.memory_mib > 0) &&
        (o = cheapest_launch(r, &v.shape, 0)))
        add_remedy(r, "launch",
            "with GPUs of any kind and without --constraint and --nodelist a machine of pool %s "
            "would be launched for it: from %s",
            o->row.pool, price_of(o, s).s);
}

/* ---- changes by an administrator ---- */

static void try_max_nodes(struct remedies *r)
{
    struct variant v;
    variant_init(r, &v);
    const struct offer *o = cheapest_launch(r, &v.shape, v.shape.least);
    if (!o || pool_boots_fail(o->pool) || pool_limits(o->pool).nodes >= v.shape.least)
        return;
    add_remedy(r, "max-nodes",
        "if max_nodes of pool %s were %" PRId64 " instead of %" PRId32
        " a machine would be launched for it: from %s",
        o->row.pool, o->pool->row.max_nodes + v.shape.least - pool_limits(o->pool).nodes,
        o->pool->row.max_nodes, price_of(o, &v.shape).s);
}

static int64_t needed(const struct remedies *r, const struct shape *s, const struct allowance *w,
    enum limit_kind kind)
{
    int64_t node;
    switch (kind) {
    case LIMIT_RUNNING:
        return w->used[kind] + 1;
    case LIMIT_GPUS:
        return w->used[kind] + (int64_t)s->least * s->need.gpus;
    case LIMIT_MCPU:
        return (w->used[kind] + s->least * s->mcpu + 999) / 1000 * 1000;
    case LIMIT_UUSD_H:
        if (!shape_starts_now(r->m, s, r->now, &node))
            return 0;
        const struct node *n = model_node(r->m, node);
        return (w->used[kind] +
                   s->least * resources_share(shape_takes(s, &n->row.total), &n->row.total,
                                  n->row.price_uusd_h) +
                   9999) /
               10000 * 10000;
    case LIMIT_SUBMITTED:
    case LIMIT_KINDS:
        break;
    }
    return 0;
}

static void limit_amount_text(enum limit_kind kind, int64_t n, char *out, size_t size)
{
    if (kind == LIMIT_UUSD_H)
        text_format(out, size, "$%" PRId64 ".%02" PRId64, n / 1000000, n % 1000000 / 10000);
    else
        text_format(out, size, "%" PRId64, kind == LIMIT_MCPU ? n / 1000 : n);
}

static void try_limit(struct remedies *r, bool of_team, enum limit_kind kind)
{
    struct variant v;
    variant_init(r, &v);
    struct allowance *w = of_team ? &v.team.allowance : &v.account.allowance;
    int64_t is = w->max[kind];
    if (is == LIMIT_NONE)
        return;
    w->max[kind] = LIMIT_NONE;
    int64_t most = needed(r, &v.shape, w, kind);
    w->max[kind] = most;
    if (most <= is || !starts(r, &v.shape))
        return;
    char with[32], now[32];
    limit_amount_text(kind, most, with, sizeof with);
    limit_amount_text(kind, is, now, sizeof now);
    add_remedy(r, "raise-limit", "if %s of %s%s were %s instead of %s %s",
        kind == LIMIT_MCPU && of_team && v.team.quota_mcpu > 0 ? "max_cpus or the quota"
                                                               : limit_names[kind],
        of_team ? "team " : "", of_team ? v.team.name : v.account.row.user, with, now,
        describe_start(r, &v.shape).s);
}

/* ---- outside the queue ---- */

static void try_waits(struct remedies *r)
{
    const struct job_row *row = &r->job->row;
    struct variant v;
    variant_init(r, &v);
    bool begins = row->spec.begin_at.ms > r->now.wall.ms;
    struct job_row other = *row;
    other.spec.begin_at = WALL_NONE;
    bool is_shut = window_not_before(r->m, &other, r->now.wall).ms > r->now.wall.ms;
    if (!list_is_empty(&job_side(r->job)->depends) ||
        (row->hold != HOLD_NONE) + begins + is_shut != 1 || !starts(r, &v.shape))
        return;
    if (row->hold == HOLD_STORE)
        add_remedy(r, "release",
            "after its checkpoint store is usable again, released %s: belay release %s",
            describe_start(r, &v.shape).s, job_ref(row).s);
    else if (row->hold != HOLD_NONE)
        add_remedy(r, "release", "released %s: belay release %s", describe_start(r, &v.shape).s,
            job_ref(row).s);
    else if (begins)
        add_remedy(r, "begin", "without --begin %s", describe_start(r, &v.shape).s);
    else
        add_remedy(r, "window", "without --window %s", describe_start(r, &v.shape).s);
}

size_t core_remedies(
    const struct model *m, struct stamp now, int64_t job, struct reason *out, size_t max)
{
    const struct job *j = model_job(m, job);
    return j && !job_attempt(j) && j->row.state == JOB_PENDING ? remedies_for(m, now, j, out, max)
                                                               : 0;
}

size_t remedies_for(
    const struct model *m, struct stamp now, const struct job *j, struct reason *out, size_t max)
{
    struct remedies r = {.m = m, .now = now, .job = j, .out = out, .max = max};
    struct variant v;
    if (r.job->is_waiting) {
        try_waits(&r);
        return r.n;
    }
    variant_init(&r, &v);
    if (array_is_full(r.job)) {
        if (starts(&r, &v.shape))
            add_remedy(&r, "array-limit",
                "with more than %%%" PRId32 " of its tasks at once another %s",
                r.job->array->row.at_once, describe_start(&r, &v.shape).s + strlen("it "));
        return r.n;
    }
    if (starts(&r, &v.shape) || cheapest_launch(&r, &v.shape, 0))
        return 0;
    try_time(&r);
    try_constraints(&r);
    try_pool(&r);
    try_nodes(&r);
    try_size(&r);
    try_launches(&r);
    for (int kind = 0; kind < LIMIT_SUBMITTED; kind++) {
        try_limit(&r, false, (enum limit_kind)kind);
        try_limit(&r, true, (enum limit_kind)kind);
    }
    try_max_nodes(&r);
    return r.n;
}
