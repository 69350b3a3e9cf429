/* SPDX-License-Identifier: Apache-2.0
 *
 * Cron entries that run after others.
 */
#ifndef BELAY_SCHEDULER_CORE_QUEUE_CRON_AFTER_H
#define BELAY_SCHEDULER_CORE_QUEUE_CRON_AFTER_H

#include "scheduler/core/model/model.h"

/* The entry with the schedule whose times c has: c itself, unless it runs after another. */
const struct cron_entry *core_cron_root(const struct model *m, const struct cron_entry *c);

#endif
