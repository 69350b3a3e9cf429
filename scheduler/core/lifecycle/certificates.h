/* SPDX-License-Identifier: Apache-2.0
 *
 * Certificates of drills.
 */
#ifndef BELAY_SCHEDULER_CORE_LIFECYCLE_CERTIFICATES_H
#define BELAY_SCHEDULER_CORE_LIFECYCLE_CERTIFICATES_H

#include "scheduler/core/model/model.h"

struct model;
struct shape;

/* Date of the newest passed drill of this script; WALL_NONE if there is none, or a later one
 * failed. */
struct wall certificate_date(const struct model *m, const char *script_key);
/* A drill passed or failed: gives or revokes the certificate of every job with its key. */
void certificate_note(struct model *m, const struct drill_row *d);
/* Advances the minimum date of valid certificates with time, for one pool or for all. */
void pool_age(struct pool *p, struct wall now);
void pools_age(struct model *m, struct wall now);
void certificates_destroy_all(struct model *m);
/* Whether the job allows the market, and the pool accepts the job, by its labels and certificate.
 * Independent of the pool's individual machines. */
bool shape_may_use(const struct shape *s, const struct pool *p, enum market market);
/* The same for a machine to be launched from an offer. */
bool shape_takes_offer(const struct shape *s, const struct offer *o);

#endif
