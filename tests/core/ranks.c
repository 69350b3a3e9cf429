/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/core/ranks.h"

const struct attempt *ranks_get(const struct lab *l, int64_t job, int32_t n)
{
    const struct job *j = model_job(l->m, job);
    LIST_FOREACH (&j->ranks, k) {
        const struct attempt *a = LIST_ENTRY(k, struct attempt, in_job);
        if (a->row.rank == n)
            return a;
    }
    return NULL;
}

int64_t ranks_node_of(const struct lab *l, int64_t job, int32_t n)
{
    return ranks_get(l, job, n)->row.node;
}

void ranks_started(struct lab *l, int64_t job, int32_t n)
{
    const struct job *j = model_job(l->m, job);
    lab_apply(l, (struct event){.type = EV_ATTEMPT_STARTED,
                     .started = {.job = job,
                         .attempt = j->row.attempts,
                         .node = ranks_node_of(l, job, n),
                         .restored = j->row.last_good,
                         .restored_progress = j->row.last_good_progress}});
}

void ranks_ended(struct lab *l, int64_t job, int32_t n, enum end_kind end, int32_t code)
{
    lab_apply(l, (struct event){.type = EV_ATTEMPT_ENDED,
                     .ended = {.job = job,
                         .attempt = model_job(l->m, job)->row.attempts,
                         .node = ranks_node_of(l, job, n),
                         .end = end,
                         .exit_code = code}});
}

void ranks_saved(struct lab *l, int64_t job, int32_t n, int64_t sequence, int64_t progress)
{
    lab_apply(l, (struct event){.type = EV_CHECKPOINT,
                     .checkpoint = {.job = job,
                         .node = ranks_node_of(l, job, n),
                         .ref = {model_job(l->m, job)->row.attempts, sequence},
                         .bytes = 1000,
                         .took_ms = 100,
                         .progress = progress,
                         .saved_at = l->now.wall,
                         .cause = "periodic"}});
}

void trio_start(struct trio *t)
{
    lab_init(&t->l);
    lab_join(&t->l, "a", 4);
    lab_join(&t->l, "b", 4);
    lab_join(&t->l, "c", 4);
    t->job = lab_submit_nodes(&t->l, 3, 2, 0);
    lab_plan(&t->l);
    for (int32_t n = 0; n < 3; n++)
        ranks_started(&t->l, t->job, n);
}
