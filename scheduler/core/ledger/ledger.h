/* SPDX-License-Identifier: Apache-2.0
 *
 * The ledger: use and cost of every interval of a node's time.
 */
#ifndef BELAY_SCHEDULER_CORE_LEDGER_LEDGER_H
#define BELAY_SCHEDULER_CORE_LEDGER_LEDGER_H

#include "scheduler/core/model/model.h"

struct model;

/* Writes the attempt's rows and adds them to the sums of its job and instance. Returns the lost
 * work in ms. */
int64_t ledger_attempt(struct model *m, struct attempt *a);
/* The job's last good checkpoint is of this attempt. */
bool attempt_has_saved(const struct attempt *a);
void ledger_instance(struct model *m, const struct instance *i);
/* Records the node's cost at the placement of an attempt; for a gang also how long the node waited
 * for the others. */
void ledger_placed(struct model *m, struct attempt *a, struct node *n, struct stamp now);
/* The row's started_at is already set. */
void ledger_started(struct model *m, struct attempt *a, struct stamp now);
void ledger_saved(struct attempt *a, int64_t pause_ms, struct wall saved_at);
/* Cost of reading its part of its job's input at its start; equal for each rank of a gang. */
int64_t ledger_input_uusd(const struct attempt *a);
/* It has written this many bytes to the store. Of a gang only the first rank reports. */
void ledger_stored(struct model *m, struct attempt *a, int64_t bytes);
/* Maximum accepted difference between a provider's clock and belayd's. */
#define CLOCKS_DIFFER_MS 600000
/* The instance exists and is charged since `reported`, the provider's time, or from now on if that
 * is WALL_NONE or 0. */
void ledger_launched(struct model *m, struct instance *i, struct wall reported, struct stamp now);
/* Price of the instance and its node since `reported`, as above. */
void ledger_reprice(
    struct model *m, struct instance *i, int64_t uusd_h, struct wall since, struct stamp now);
/* Since its launch the instance has belonged to another offer with this price; the earlier prices
 * did not apply. */
void ledger_moved(struct model *m, struct instance *i, int64_t uusd_h);
/* The node reported. Writes its idle time once a day. */
void ledger_seen(struct model *m, struct node *n, struct wall now);
/* Writes the idle time up to `at`. */
void ledger_idle(struct model *m, struct node *n, struct wall at);
/* A reserved node joined; the price of a reserved node changes. */
void ledger_joined(struct node *n, struct wall now);
void ledger_reprice_reserved(struct model *m, struct node *n, int64_t uusd_h, struct wall now);

#endif
