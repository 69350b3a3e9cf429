/* SPDX-License-Identifier: Apache-2.0
 *
 * Accounts: the usage of a user in a team, from which its fair share follows (priority.h), and when
 * the queue is to be put into the order of the shares (order_due).
 */
#ifndef BELAY_SCHEDULER_CORE_QUEUE_SHARES_H
#define BELAY_SCHEDULER_CORE_QUEUE_SHARES_H

#include "scheduler/core/model/model.h"

struct model;

/* created if there is none */
struct account *account_of(struct model *m, const char *team, const char *user);
/* may return NULL */
struct account *account_find(const struct model *m, const char *team, const char *user);
/* Takes shares, quotas and limits from another policy. No shape is in the queue meanwhile. */
void accounts_renew(struct model *m);
/* A hypothetical account, as it would be created. In no list; nor is its team unless it exists. */
void account_init_hypothetical(const struct model *m, const char *team, const char *user,
    struct account *ret_account, struct team *ret_team);
/* Changes the current usage of its jobs by mcpu. */
void account_charge(struct model *m, struct account *a, int64_t mcpu, struct stamp now);
void accounts_destroy_all(struct model *m);
/* When the queue must be sorted; MONO_NONE: not before a change. */
struct mono order_due(const struct model *m, struct stamp now, struct event *ret_event);
/* Start of its counted waiting time, its position within the shape. */
int64_t job_since_ms(const struct job *j);
/* Of a job of the shape. */
int64_t shape_position_16(const struct model *m, const struct shape *s, int64_t since_ms);
int64_t job_position_16(
    const struct model *m, const struct job *j); /* position_16 if it were the head */

#endif
