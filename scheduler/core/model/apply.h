/* SPDX-License-Identifier: Apache-2.0
 *
 * What applies each event. Each returns 0 or a negative kind, with nothing changed.
 */
#ifndef BELAY_SCHEDULER_CORE_MODEL_APPLY_H
#define BELAY_SCHEDULER_CORE_MODEL_APPLY_H

#include "scheduler/core/model/model.h"

struct model;

typedef int (*apply_fn)(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_submit(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_settle(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_prefetch(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_prefetched(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_move(struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_cancel(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_requeue(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_save(struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_enter(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_place(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_started(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_ended(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_checkpoint(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_save_failed(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_output_cut(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_no_credentials(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_store_refused(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_withheld(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_withheld_due(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_kept(struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_gpus(struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_idle_gpus(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_reservation_add(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_reservation_remove(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_calendar_set(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_calendar_remove(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_reservation_due(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_usage(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_progress(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_drill(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_drill_compared(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_avoided(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_requeue_due(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_drill_due(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_order(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_throttle(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_unthrottle(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_preempt(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_table(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_procurement(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_expire(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_park(struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_digest(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_digest_set(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_anomaly(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_budget(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_cron_put(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_cron_set(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_cron_run(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_cron_due(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_reserve(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_clean(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_cleaned(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_update(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_hold(struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_release(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_eligible(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_unmeetable(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_join(struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_facts(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_heartbeat(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_disk(struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_fault(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_condition(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_notice(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_drain(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_undrain(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_node_delete(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_node_lost(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_pool(struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_offer(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_limits(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_settings(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_price(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_score(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_launch(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_launched(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_offer_refused(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_launch_refused(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_end_instance(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_instance_gone(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);

#endif
