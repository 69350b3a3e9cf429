/* SPDX-License-Identifier: Apache-2.0
 *
 * Certificates of drills.
 */
#ifndef BELAY_SCHEDULER_CORE_LIFECYCLE_CERTIFICATES_H
#define BELAY_SCHEDULER_CORE_LIFECYCLE_CERTIFICATES_H

#include "scheduler/core/model/model.h"

struct model;
struct shape;

/* Of the newest drill of these scripts that passed, WALL_NONE: none, or one failed since. */
struct wall certificate_date(const struct model *m, const char *script_key);
/* A drill has passed or failed: every job of its key has, or loses, its certificate. */
void certificate_note(struct model *m, const struct drill_row *d);
/* From when on certificates count, for one pool or all: time goes on. */
void pool_age(struct pool *p, struct wall now);
void pools_age(struct model *m, struct wall now);
void certificates_destroy_all(struct model *m);
/* Whether the job allows the market, and the pool accepts the job, by its labels and certificate.
 * Independent of the pool's individual machines. */
bool shape_may_use(const struct shape *s, const struct pool *p, enum market market);
/* The same for a machine to be launched from an offer. */
bool shape_takes_offer(const struct shape *s, const struct offer *o);

#endif
