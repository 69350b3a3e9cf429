/* SPDX-License-Identifier: Apache-2.0
 *
 * Failed boots.
 */
#ifndef BELAY_SCHEDULER_CORE_SUPPLY_BOOTS_H
#define BELAY_SCHEDULER_CORE_SUPPLY_BOOTS_H

#include "scheduler/core/model/model.h"

struct model;

/* The last machines of the pool did not join, or had full disks from the start: it launches one at
 * a time, after growing waits. */
bool pool_boots_fail(const struct pool *p);
bool pool_boots_disk_full(const struct pool *p); /* the newest one of them had a full disk */
/* With pool_boots_fail: it may launch one machine now. */
bool pool_may_probe(const struct pool *p, struct mono now);
void boots_load(struct pool *p, struct stamp now);
void boots_failed(struct model *m, struct instance *i, struct stamp now, const char *why);
void boots_joined(struct model *m, struct instance *i, struct stamp now);
/* Its disk is full: a failure if no attempt has begun there. May be repeated. */
void boots_disk_full(struct model *m, struct instance *i, struct stamp now, const char *why);
void boots_began(struct model *m, const struct attempt *a, struct stamp now);
void boots_left(const struct instance *i); /* its node is gone */
void boots_node_loaded(const struct instance *i);
int apply_boot_console(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);
int apply_pool_retry(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e);

#endif
