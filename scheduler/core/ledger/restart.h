/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of a restart, computed from the stored times of two attempts and of the machine of the
 * second one. Pure; nothing is stored.
 */
#ifndef BELAY_SCHEDULER_CORE_LEDGER_RESTART_H
#define BELAY_SCHEDULER_CORE_LEDGER_RESTART_H

#include "base/time.h"
#include <stdint.h>

/* Of one rank. Times that are unknown, or not of this machine, are WALL_NONE. */
struct restart_moments {
    int64_t attempt;
    int32_t rank;
    struct wall stopped_at; /* the end of the last earlier attempt that had started */
    struct wall intended_at, launched_at, joined_at; /* of the machine */
    int64_t start_ms;                                /* see struct instance_row */
    struct wall assigned_at, started_at;
    int64_t restore_ms, warm_up_ms; /* see struct attempt_row */
    int64_t lost_ms;                /* work of the previous attempt that is repeated */
};

/* In order, without gaps and overlaps: all but warm_up_ms add up to the time from stopped_at to
 * started_at. What was done before stopped_at, such as the boot of a machine that was launched at a
 * notice, is in no part. */
struct restart_parts {
    int64_t wait_ms;    /* until the machine was ordered: queue, limits, refused launches */
    int64_t launch_ms;  /* until the provider had launched it */
    int64_t boot_ms;    /* until the first command of its boot script; or its join, if unknown */
    int64_t agent_ms;   /* until its agent had joined */
    int64_t place_ms;   /* until the job was placed there */
    int64_t prepare_ms; /* until the program was started, without restore_ms */
    int64_t restore_ms; /* of the checkpoint */
    int64_t warm_up_ms; /* until the program reported progress; 0 = it has reported none */
};

/* stopped_at and started_at must be set. */
void restart_parts(const struct restart_moments *m, struct restart_parts *ret);

#endif
