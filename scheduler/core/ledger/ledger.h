/* SPDX-License-Identifier: Apache-2.0
 *
 * The ledger: what each stretch of a node's time was, and what it cost.
 */
#ifndef BELAY_SCHEDULER_CORE_LEDGER_LEDGER_H
#define BELAY_SCHEDULER_CORE_LEDGER_LEDGER_H

#include "scheduler/core/model/model.h"

struct model;

/* Writes the attempt's rows, adds to the sums of its job and instance. Returns the work lost, in
 * ms. */
int64_t ledger_attempt(struct model *m, struct attempt *a);
/* the job's last good checkpoint is of this attempt */
bool attempt_has_saved(const struct attempt *a);
void ledger_instance(struct model *m, const struct instance *i);
/* An attempt is about to be on the node: what that has cost; of a gang also how long the node has
 * waited for the others. */
void ledger_placed(struct model *m, struct attempt *a, struct node *n, struct stamp now);
/* its row says so already */
void ledger_started(struct model *m, struct attempt *a, struct stamp now);
void ledger_saved(struct attempt *a, int64_t pause_ms, struct wall saved_at);
/* What it costs that it reads its part of its job's input when it starts: of a gang each rank as
 * much. */
int64_t ledger_input_uusd(const struct attempt *a);
/* It has written so many bytes to the store. Of a gang the first rank tells for all. */
void ledger_stored(struct model *m, struct attempt *a, int64_t bytes);
/* A provider's clock is believed as far as it differs by less from ours. */
#define CLOCKS_DIFFER_MS 600000
/* It exists, and is paid for, since then (told: as the provider says, WALL_NONE or 0: it does not),
 * or from now on. */
void ledger_launched(struct model *m, struct instance *i, struct wall told, struct stamp now);
/* Since then (likewise) the instance, and with it its node, costs this. */
void ledger_reprice(
    struct model *m, struct instance *i, int64_t uusd_h, struct wall since, struct stamp now);
/* It has been at another offer than was thought all the time since its launch, and cost this: the
 * prices of the one before were not its. */
void ledger_moved(struct model *m, struct instance *i, int64_t uusd_h);
/* The node was heard of: once a day its idle time is written down. */
void ledger_seen(struct model *m, struct node *n, struct wall now);
/* Writes the idle time up to then. */
void ledger_idle(struct model *m, struct node *n, struct wall at);
/* One that nobody rents out has joined; costs something else from now on. */
void ledger_joined(struct node *n, struct wall now);
void ledger_reprice_owned(struct model *m, struct node *n, int64_t uusd_h, struct wall now);

#endif
