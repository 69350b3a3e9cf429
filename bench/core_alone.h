/* SPDX-License-Identifier: Apache-2.0
 *
 * For benchmarks that run the core alone, with a time of their own.
 */
#ifndef BELAY_BENCH_CORE_ALONE_H
#define BELAY_BENCH_CORE_ALONE_H

#include "scheduler/core/plan.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Applies the event at `now`; returns the id in its outcome. Exits if it is refused. */
static inline int64_t core_must_apply(struct model *m, struct stamp now, struct event ev)
{
    struct outcome out = {0};
    struct err e;
    ev.now = now;
    if (core_apply(m, &ev, &out, &e) != 0) {
        fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, event_type_names[ev.type],
            e.text);
        exit(1);
    }
    return out.id;
}

static inline double cpu_time_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

#endif
