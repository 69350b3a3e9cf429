/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BELAY_TESTS_CORE_LIFECYCLE_RUNNING_H
#define BELAY_TESTS_CORE_LIFECYCLE_RUNNING_H

#include "tests/core/lab.h"

/* A job that runs on its own node. */
struct running {
    struct lab l;
    int64_t node, job;
};

static inline void start(struct running *r)
{
    lab_init(&r->l);
    r->node = lab_join(&r->l, "n1", 4);
    r->job = lab_submit_cpus(&r->l, 4);
    lab_plan(&r->l);
    lab_wait(&r->l, 1000);
    lab_started(&r->l, r->job);
    lab_wait(&r->l, 9000);
    lab_take(&r->l);
}

static inline struct job_row *row(struct running *r)
{
    struct job *j = model_job(r->l.m, r->job);
    return j ? &j->row : NULL;
}

static inline struct event ended(struct running *r, int64_t attempt, int64_t node)
{
    return (struct event){.type = EV_ATTEMPT_ENDED,
        .ended = {.job = r->job, .attempt = attempt, .node = node, .end = END_SUCCEEDED}};
}

#endif
