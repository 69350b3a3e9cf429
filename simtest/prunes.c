/* SPDX-License-Identifier: Apache-2.0
 *
 * In some worlds the retention is short: at each restart, what ended some minutes before is
 * deleted. Nothing that a live job names may be deleted, nor a job that has not ended or whose
 * checkpoints are not cleaned. The sums of the ledger are compared at the end, as in all worlds.
 */
#include "simtest/world.h"

#include "base/mem.h"
#include <stdlib.h>

#define AGE_MS 300000

static bool happen(const struct world *w)
{
    return w->seed % SIM_PRUNES == 3;
}

static bool has_job(const struct world *w, int64_t id, struct job_row *ret_row)
{
    struct err e;
    return db_read_job(w->reader, id, ret_row, &e) == 0;
}

/* Of each job before a deletion. */
struct before {
    bool exists, has_ended, is_cleaned;
};

static void note_jobs(struct world *w, struct before *jobs, struct job_row *row)
{
    for (int64_t id = 1; id <= SIM_JOBS_MAX; id++) {
        struct ckpt_gc_row gc = {.state = CKPT_GC_DONE};
        struct err e;
        jobs[id - 1].exists = has_job(w, id, row);
        jobs[id - 1].has_ended = jobs[id - 1].exists && row->state == JOB_ENDED;
        jobs[id - 1].is_cleaned =
            db_read_ckpt_gc(w->reader, id, &gc, &e) != 0 || gc.state == CKPT_GC_DONE;
    }
}

static void delete_old(struct world *w)
{
    struct pruned p;
    struct err e;
    do {
        struct db_batch b = {.prune = {.is_due = true,
                                 .now = clock_wall(w->vt.timers.clock),
                                 .age_ms = {[PRUNE_JOBS] = AGE_MS}}};
        if (db_commit(w->db, &b, &e) != 0) {
            world_fail(w, "old rows cannot be deleted: %s", e.text);
            return;
        }
        db_get_pruned(w->db, &p);
    } while (p.is_more);
}

/* A job that a live one names. */
struct named {
    struct world *w;
    const struct before *before;
    int64_t by;
};

static void check_named(const struct named *n, int64_t id, const char *how)
{
    if (id < 1 || id > SIM_JOBS_MAX || !n->before[id - 1].exists || !n->w->pruned[id - 1])
        return;
    world_fail(n->w, "job %lld was deleted, but the live job %lld %s it", (long long)id,
        (long long)n->by, how);
}

static int on_dependency(void *ctx, const struct dependency_row *d)
{
    check_named(ctx, d->on, "depends on");
    return 0;
}

void prunes_run(struct world *w)
{
    struct before *before = mem_array(SIM_JOBS_MAX, sizeof(*before));
    struct job_row *row = mem_alloc(sizeof(*row));
    struct err e;
    if (happen(w)) {
        note_jobs(w, before, row);
        delete_old(w);
    }
    for (int64_t id = 1; id <= SIM_JOBS_MAX && happen(w); id++) {
        const struct before *was = &before[id - 1];
        if (!was->exists || has_job(w, id, row))
            continue;
        w->pruned[id - 1] = true;
        if (!was->has_ended || !was->is_cleaned)
            world_fail(w, "job %lld was deleted, but %s", (long long)id,
                was->has_ended ? "its checkpoints are not cleaned" : "it has not ended");
    }
    for (int64_t id = 1; id <= SIM_JOBS_MAX && happen(w); id++) {
        const struct named n = {.w = w, .before = before, .by = id};
        if (!before[id - 1].exists || before[id - 1].has_ended || !has_job(w, id, row))
            continue;
        check_named(&n, row->array, "is a task of");
        if (db_read_dependencies(w->reader, id, on_dependency, (void *)&n, &e) != 0)
            world_fail(w, "the dependencies of a job cannot be read: %s", e.text);
    }
    free(before);
    free(row);
}

bool prunes_deleted(const struct world *w, int64_t job)
{
    return job >= 1 && job <= SIM_JOBS_MAX && w->pruned[job - 1];
}
