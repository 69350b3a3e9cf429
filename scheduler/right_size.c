/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/right_size.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/minmax.h"
#include "base/str.h"
#include "scheduler/core/model/model_access.h"
#include "scheduler/core/placement/constraints.h"
#include "scheduler/core/placement/constraints_model.h"
#include "scheduler/job_loads.h"
#include <stdlib.h>
#include <string.h>

#define MINUTES 0

struct runs {
    struct job_row of; /* the job that is judged */
    struct job_row rows[RIGHT_SIZE_RUNS];
    struct right_size_run runs[RIGHT_SIZE_RUNS];
    size_t n;
};

/* ---- what the runs used ---- */

static int take_run(void *ctx, const struct job_row *row)
{
    struct runs *x = ctx;
    if (!str_eq(row->spec.name, x->of.spec.name) || row->spec.need.gpus != x->of.spec.need.gpus)
        return 0;
    x->rows[x->n++] = *row;
    return x->n == RIGHT_SIZE_RUNS;
}

static int add_attempt(void *ctx, const struct attempt_row *a)
{
    struct right_size_run *run = ctx;
    int64_t ms = wall_is_set(a->started_at) && wall_is_set(a->ended_at)
                     ? a->ended_at.ms - a->started_at.ms
                     : 0;
    run->memory_bytes = max_i64(run->memory_bytes, a->memory_peak);
    if (ms > 0)
        run->cpu_milli = max_i64(run->cpu_milli, a->cpu_ms * 1000 / ms);
    if (a->rank == 0)
        run->ran_ms += ms;
    return 0;
}

static int read_gpus(const struct model *m, struct db_reader *r, const struct job_row *row,
    struct right_size_run *run, struct err *e)
{
    struct job_loads l = {0};
    int rc = job_loads_read(&l, r, m, row, row->started_at, MINUTES, e);
    run->gpu_memory_bytes = run->gpu_busy_pct = -1;
    for (size_t i = 0; rc == 0 && i < l.n_gpus; i++) {
        const struct gpu_load *g = &l.gpus[i].load;
        int64_t busy = g->known_ms > 0 ? load_percent(g->busy_ms, g->known_ms) : -1;
        run->gpu_memory_bytes = max_i64(run->gpu_memory_bytes, g->memory_bytes);
        run->gpu_busy_pct = max_i64(run->gpu_busy_pct, busy);
    }
    job_loads_deinit(&l);
    return rc;
}

static int read_runs(const struct model *m, struct db_reader *r, struct runs *x, struct err *e)
{
    const struct job_filter mine = {.ends = 1U << END_SUCCEEDED,
        .users = {.words = {x->of.user}, .n = 1},
        .limit = RIGHT_SIZE_JOBS_EXAMINED};
    int rc = db_read_jobs(r, &mine, take_run, x, NULL, e);
    for (size_t i = 0; rc == 0 && i < x->n && x->n >= RIGHT_SIZE_RUNS_MIN; i++) {
        rc = db_read_attempts(r, x->rows[i].id, add_attempt, &x->runs[i], e);
        if (rc == 0 && x->of.spec.need.gpus > 0)
            rc = read_gpus(m, r, &x->rows[i], &x->runs[i], e);
    }
    return rc;
}

/* ---- the machines that it may have ---- */

static bool has_advice(const struct constraints *x)
{
    return !x || (!x->exclusive && !x->nodes[0]);
}

/* Machines elsewhere would pay for the transfer of the input, which is not in their price. */
static bool is_at_input(const struct constraints *x, const struct pool *p)
{
    return !x || x->input.bytes == 0 || !x->input.provider[0] ||
           (str_eq(x->input.provider, p->row.provider) && str_eq(x->input.region, p->row.region));
}

static bool is_wanted(const struct job_row *job, const struct offer *o)
{
    if (o->row.rank == OFFER_WITHDRAWN)
        return false;
    return job->spec.market == WISH_ANY ||
           (o->row.market == MARKET_SPOT) == (job->spec.market == WISH_SPOT);
}

/* Those of all offers that suit. Free *ret_types. */
static size_t find_types(
    const struct model *m, const struct job *job, struct right_size_type **ret_types)
{
    const struct constraints *x = job->shape->constraints;
    size_t n = 0, cap = 0;
    *ret_types = NULL;
    LIST_FOREACH (model_pools(m), l) {
        const struct pool *p = LIST_ENTRY(l, struct pool, in_all);
        if (!p->row.elastic || p->row.required_labels[0] || !is_at_input(x, p) ||
            !job_pools_allow(job->row.spec.pool, p->row.name))
            continue;
        LIST_FOREACH (&p->offers, lo) {
            const struct offer *o = LIST_ENTRY(lo, struct offer, in_pool);
            if (!is_wanted(&job->row, o) || !offer_suits(o, job->shape))
                continue;
            if (n == cap) {
                cap = cap ? 2 * cap : 64;
                *ret_types = mem_resize(*ret_types, cap, sizeof(**ret_types));
            }
            (*ret_types)[n++] = (struct right_size_type){.name = o->row.type,
                .cpus = o->row.total.cpus,
                .memory_mib = o->row.total.memory_mib,
                .gpus = o->row.total.gpus,
                .gpu_memory_mib = o->row.gpu.memory_mib,
                .gpu_model = o->row.gpu.model,
                .uusd_h = o->row.price_uusd_h};
        }
    }
    return n;
}

/* ---- many jobs ---- */

struct used_runs {
    struct right_size_run runs[RIGHT_SIZE_RUNS];
    size_t n;
};

void right_size_cache_deinit(struct right_size_cache *c)
{
    const char *key;
    void *used;
    for (size_t pos = 0; (used = smap_next(&c->names, &pos, &key)) != NULL;)
        free(used);
    smap_deinit(&c->names);
}

static struct used_runs read_used(
    const struct model *m, struct db_reader *r, const struct job_row *job)
{
    struct used_runs used = {0};
    struct runs *x = mem_alloc(sizeof(*x));
    struct err e;
    *x = (struct runs){.of = *job};
    if (read_runs(m, r, x, &e) != 0) {
        log_warn(
            "what earlier runs of a job used cannot be read", log_i("job", job->id), log_err(&e));
    } else {
        memcpy(used.runs, x->runs, sizeof(used.runs));
        used.n = x->n;
    }
    free(x);
    return used;
}

/* Names have no line breaks. */
static struct used_runs used_by(const struct model *m, struct db_reader *r,
    struct right_size_cache *cache, const struct job_row *job)
{
    if (!cache)
        return read_used(m, r, job);
    char *key =
        mem_printf("%s\n%s\n%lld", job->user, job->spec.name, (long long)job->spec.need.gpus);
    struct used_runs *used = smap_get(&cache->names, key);
    if (!used) {
        struct used_runs read = read_used(m, r, job);
        used = mem_dup(&read, sizeof(read));
        smap_put(&cache->names, key, used);
    }
    free(key);
    return *used;
}

bool right_size_of_job(const struct model *m, struct db_reader *r, struct right_size_cache *cache,
    const struct job_row *job, struct right_size *ret_size)
{
    const struct job *live = model_job(m, job->id);
    const struct right_size_type ask = {.cpus = job->spec.need.cpus,
        .memory_mib = job->spec.need.memory_mib,
        .gpus = job->spec.need.gpus,
        .gpu_model = ""};
    struct right_size_type *types;
    if (!live || !job->spec.name[0] || !has_advice(live->shape->constraints))
        return false;
    size_t n = find_types(m, live, &types);
    struct used_runs used = {0};
    if (n > 1)
        used = used_by(m, r, cache, job);
    bool found = n > 1 && right_size(&ask, used.runs, used.n, types, n, ret_size);
    free(types);
    return found;
}
