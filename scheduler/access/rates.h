/* SPDX-License-Identifier: Apache-2.0
 *
 * Rates of requests, a bucket for each user: it holds `burst` requests and is refilled by
 * `per_second`. In memory only: all buckets are full when belayd starts.
 */
#ifndef BELAY_SCHEDULER_ACCESS_RATES_H
#define BELAY_SCHEDULER_ACCESS_RATES_H

#include "base/map.h"
#include "base/time.h"

#define RATES_USERS_MAX 4096 /* buckets; beyond it those that are full again are dropped */

struct rates {
    int64_t per_second, burst; /* per_second 0 = unlimited */
    struct smap users;         /* name -> struct rates_user */
};

/* Zeroed members but the two limits. */
void rates_deinit(struct rates *r);

/* Takes a request from the user's bucket and returns 0, or returns the time in ms after which there
 * is one. */
int64_t rates_take(struct rates *r, const char *user, struct mono now);

#endif
