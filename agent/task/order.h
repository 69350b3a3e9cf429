/* SPDX-License-Identifier: Apache-2.0
 *
 * Which of a node's saves is stored when, at a notice, so that the most are done before the node
 * goes. They share one way to the store: side by side, all of them may be too late. Pure.
 */
#ifndef BELAY_AGENT_TASK_ORDER_H
#define BELAY_AGENT_TASK_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct order_save {
    int64_t estimate_ms; /* how long the task's last save took; -1: there was none */
    int64_t started_ms;  /* by the monotonic clock; -1: it waits */
};

/* The index of the one to start now, or n: none. Those that fit into the time left come first, the
 * shortest before the others (with one deadline for all, that finishes the most), then those of
 * which nothing is known, then those that will be too late, the shortest first again. One starts
 * beside others under way only if it is known to be shorter than what each of them still needs (so
 * that it costs them little), or if nothing is known of it and less than two are under way. Of
 * equal ones the first. */
size_t order_next(const struct order_save *v, size_t n, int64_t now_ms, int64_t deadline_ms);

/* A save is under way whose program does not wait for it, and a newer one of the same task is to
 * come, which will take estimate_ms. True if the newer one is durable in the time that is left
 * (INT64_MAX: there is no deadline) only if the first is given up: left_ms is what that one still
 * needs, -1: nothing of it is stored yet. If there is time for both, or for no more than the first,
 * it goes on: the newest that can be durable will be. */
bool order_gives_way(int64_t left_ms, int64_t estimate_ms, int64_t time_ms);

#endif
