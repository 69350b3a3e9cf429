/* SPDX-License-Identifier: Apache-2.0
 *
 * Jobs that hold GPUs without using them. By the policy of its pool, the owner of such a job is
 * notified, and after a grace the job is saved and held. Whether GPUs are idle is a fact from
 * outside (EV_GPUS).
 */
#ifndef BELAY_SCHEDULER_CORE_LIFECYCLE_IDLE_GPUS_H
#define BELAY_SCHEDULER_CORE_LIFECYCLE_IDLE_GPUS_H

#include "scheduler/core/model/model.h"

struct model;

/* The policy that applies to the job's attempt; NULL: none, or its owner opted out. */
const struct idle_gpus_policy *idle_gpus_policy_of(const struct job *j);
/* Since when all GPUs of the running job are idle; WALL_NONE: one is not, or that is unknown. */
struct wall idle_gpus_since(const struct job *j);
/* When the notified job is saved and held if nothing changes; WALL_NONE: never. */
struct wall idle_gpus_parks_at(const struct job *j);

/* The policy, the job's options or the state of its GPUs may have changed. */
void idle_gpus_watch(struct model *m, struct job *j, struct stamp now);
void idle_gpus_load(struct model *m, struct job *j);
void idle_gpus_attempt_stops(struct model *m, struct job *j); /* or one of its ranks has ended */
void idle_gpus_leave(struct model *m, struct job *j);         /* its attempt is over */
/* The save that should precede its hold failed: it continues. */
void idle_gpus_not_saved(struct model *m, struct job *j, struct stamp now);
/* A user holds or releases it: if it still runs, it continues as after a failed save. */
void idle_gpus_released(struct model *m, struct job *j, struct stamp now);
/* When the next decision is due, with the event; MONO_NONE: never. */
struct mono idle_gpus_due(const struct model *m, struct stamp now, struct event *ret_event);

#endif
