/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/job_loads.h"

#include "base/mem.h"
#include "base/str.h"
#include <stdlib.h>

#define MIB (INT64_C(1) << 20)

struct reading {
    struct job_loads *l;
    const struct model *m;
    const struct job_row *job;
};

/* The job's resources on this node: all of the node's if it is exclusive. */
static void fill_requested(const struct reading *x, struct job_rank *k)
{
    const struct attempt *a = job_attempt_on(model_job(x->m, x->job->id), x->l->attempt, k->node);
    struct resources has = a ? a->allocated : x->job->spec.need;
    k->cpus = has.cpus;
    k->gpus = has.gpus;
    k->memory_bytes = has.memory_mib * MIB;
}

static int add_task(void *ctx, const struct task_load_row *row)
{
    struct reading *x = ctx;
    struct job_loads *l = x->l;
    if (l->n_ranks == 0 || l->ranks[l->n_ranks - 1].rank != row->rank) {
        l->ranks = mem_resize(l->ranks, l->n_ranks + 1, sizeof(*l->ranks));
        l->ranks[l->n_ranks] = (struct job_rank){.rank = row->rank, .node = row->node};
        fill_requested(x, &l->ranks[l->n_ranks++]);
    }
    task_load_add(&l->ranks[l->n_ranks - 1].load, &row->load);
    return 0;
}

static int32_t rank_on(const struct job_loads *l, int64_t node)
{
    for (size_t i = 0; i < l->n_ranks; i++)
        if (l->ranks[i].node == node)
            return l->ranks[i].rank;
    return 0;
}

static int add_gpu(void *ctx, const struct gpu_load_row *row)
{
    struct job_loads *l = ((struct reading *)ctx)->l;
    struct job_gpu *g = l->n_gpus > 0 ? &l->gpus[l->n_gpus - 1] : NULL;
    if (!g || g->node != row->node || !str_eq(g->gpu, row->gpu)) {
        l->gpus = mem_resize(l->gpus, l->n_gpus + 1, sizeof(*l->gpus));
        g = &l->gpus[l->n_gpus++];
        *g = (struct job_gpu){.rank = rank_on(l, row->node),
            .node = row->node,
            .index = row->gpu_index,
            .is_slice = row->is_slice};
        STR_COPY(g->gpu, row->gpu);
    }
    gpu_load_add(&g->load, &row->load);
    int64_t busy = load_percent(row->load.busy_ms, row->load.known_ms);
    g->busiest = busy > g->busiest ? busy : g->busiest;
    return 0;
}

int job_loads_finest(const struct config_telemetry *c, int64_t age_ms)
{
    int i = 0;
    while (i < LOAD_SPANS - 1 && age_ms > c->keep_ms[i])
        i++;
    return i;
}

int job_loads_read(struct job_loads *ret_loads, struct db_reader *r, const struct model *m,
    const struct job_row *job, struct wall from, int finest, struct err *e)
{
    static const int64_t spans[LOAD_SPANS] = LOAD_SPANS_MS;
    struct reading x = {.l = ret_loads, .m = m, .job = job};
    int rc = 0;
    *ret_loads = (struct job_loads){.attempt = job->attempts};
    for (int i = finest; i < LOAD_SPANS && rc == 0 && ret_loads->n_ranks == 0 && job->attempts > 0;
         i++) {
        int64_t first = from.ms - spans[i]; /* a span that begins earlier may overlap */
        rc = db_read_task_loads(r, job->id, job->attempts, spans[i], first, add_task, &x, e);
        if (rc == 0 && ret_loads->n_ranks > 0)
            rc = db_read_gpu_loads(r, job->id, job->attempts, spans[i], first, add_gpu, &x, e);
    }
    return rc;
}

void job_loads_deinit(struct job_loads *l)
{
    free(l->ranks);
    free(l->gpus);
    *l = (struct job_loads){0};
}

size_t job_loads_diagnose(const struct job_loads *l, const struct diagnose_limits *limits,
    struct finding found[FINDING_CODES], bool *ret_enough)
{
    struct diagnose_rank *ranks = mem_array(l->n_ranks, sizeof(*ranks));
    struct diagnose_gpu *gpus = mem_array(l->n_gpus, sizeof(*gpus));
    const struct diagnose_input in = {
        .ranks = ranks, .n_ranks = l->n_ranks, .gpus = gpus, .n_gpus = l->n_gpus, .limits = limits};
    for (size_t i = 0; i < l->n_ranks; i++) {
        const struct job_rank *k = &l->ranks[i];
        ranks[i] = (struct diagnose_rank){.rank = k->rank,
            .cpus = k->cpus,
            .gpus = k->gpus,
            .memory_bytes = k->memory_bytes,
            .load = k->load};
    }
    for (size_t i = 0; i < l->n_gpus; i++)
        gpus[i] = (struct diagnose_gpu){
            .rank = l->gpus[i].rank, .index = l->gpus[i].index, .load = l->gpus[i].load};
    size_t n = diagnose(&in, found);
    if (ret_enough)
        *ret_enough = diagnose_is_enough(&in);
    free(ranks);
    free(gpus);
    return n;
}
