/* SPDX-License-Identifier: Apache-2.0
 *
 * Token buckets by user (see rates.h), in thousandths of a request: one is refilled in each
 * millisecond for each request per second.
 */
#include "scheduler/access/rates.h"

#include "base/mem.h"
#include <stdlib.h>

#define REQUEST 1000

struct rates_user {
    int64_t left;
    struct mono at; /* when `left` was computed */
};

void rates_deinit(struct rates *r)
{
    size_t pos = 0;
    for (struct rates_user *u; (u = smap_next(&r->users, &pos, NULL));)
        free(u);
    smap_deinit(&r->users);
}

static void refill(const struct rates *r, struct rates_user *u, struct mono now)
{
    const int64_t full = r->burst * REQUEST, ms = now.ms - u->at.ms;
    if (ms >= full / r->per_second + 1)
        u->left = full;
    else if (ms > 0)
        u->left += ms * r->per_second;
    if (u->left > full)
        u->left = full;
    u->at = now;
}

/* Drops the buckets that are full: a new one is full as well. */
static void drop_full(struct rates *r, struct mono now)
{
    const char *name;
    struct smap kept = {0};
    size_t pos = 0;
    for (struct rates_user *u; (u = smap_next(&r->users, &pos, &name));) {
        refill(r, u, now);
        if (u->left < r->burst * REQUEST)
            smap_put(&kept, name, u);
        else
            free(u);
    }
    smap_deinit(&r->users);
    r->users = kept;
}

int64_t rates_take(struct rates *r, const char *user, struct mono now)
{
    struct rates_user *u;
    if (r->per_second == 0)
        return 0;
    u = smap_get(&r->users, user);
    if (!u && smap_size(&r->users) >= RATES_USERS_MAX)
        drop_full(r, now);
    if (!u) {
        u = mem_alloc(sizeof(*u));
        *u = (struct rates_user){.left = r->burst * REQUEST, .at = now};
        smap_put(&r->users, user, u);
    }
    refill(r, u, now);
    if (u->left < REQUEST)
        return (REQUEST - u->left + r->per_second - 1) / r->per_second;
    u->left -= REQUEST;
    return 0;
}
