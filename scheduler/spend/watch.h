/* SPDX-License-Identifier: Apache-2.0
 *
 * Reviews the spending of today and yesterday once an hour (spend/review.h), on a thread, and
 * posts its findings as events (core/ledger/anomalies.h), which notify each of them once.
 */
#ifndef BELAY_SCHEDULER_SPEND_WATCH_H
#define BELAY_SCHEDULER_SPEND_WATCH_H

#include "base/timers.h"
#include "scheduler/engine/tick.h"
#include "telemetry/spend_anomaly.h"
#include <uv.h>

#define SPEND_EVERY_MS 3600000
#define SPEND_FIRST_MS 5000 /* after the start */

struct spend_watch;

/* Borrowed until destroy. */
struct spend_watch_options {
    uv_loop_t *loop;
    struct timers *timers;
    struct tick *tick;
    const char *db_path; /* copied */
    struct spend_limits limits;
};

struct spend_watch *spend_watch_create(const struct spend_watch_options *o);
/* Begins; the first review is SPEND_FIRST_MS later. */
void spend_watch_start(struct spend_watch *w);
/* Takes effect with the next review. */
void spend_watch_set_limits(struct spend_watch *w, const struct spend_limits *limits);
/* Call while the loop still runs once: the thread may be reading. w may be NULL. */
void spend_watch_destroy(struct spend_watch *w);

#endif
