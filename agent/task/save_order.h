/* SPDX-License-Identifier: Apache-2.0
 *
 * The order in which a node's saves are stored at a notice, so that as many as possible finish
 * before the node goes. They share one path to the store: run in parallel, all may be too late.
 * Pure.
 */
#ifndef BELAY_AGENT_TASK_SAVE_ORDER_H
#define BELAY_AGENT_TASK_SAVE_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct save_order_entry {
    int64_t estimate_ms; /* how long the task's last save took; -1 = none */
    int64_t started_ms;  /* monotonic; -1 = waiting */
};

/* Returns the index of the save to start now; n if none. Order: saves that fit into the time left,
 * shortest first (with one deadline for all, that finishes the most); then saves without an
 * estimate; then saves that will be too late, shortest first. A save starts while others are under
 * way only if its estimate is shorter than what each of them still needs (so it costs them little),
 * or if it has no estimate and fewer than two are under way. Ties go to the first. */
size_t save_order_next(
    const struct save_order_entry *v, size_t n, int64_t now_ms, int64_t deadline_ms);

/* Whether a save under way, whose program does not wait for it, should be given up for a newer save
 * of the same task, which will take estimate_ms. left_ms is what the first still needs (-1 =
 * nothing of it is stored yet), time_ms the time left (INT64_MAX = no deadline). True only if the
 * newer one becomes durable in time by giving up the first. If there is time for both, or only for
 * the first, the first continues: the newest save that can be durable will be. */
bool save_order_gives_way(int64_t left_ms, int64_t estimate_ms, int64_t time_ms);

#endif
