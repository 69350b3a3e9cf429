/* SPDX-License-Identifier: Apache-2.0
 *
 * See digest.h. Invariants:
 *  1. The row of the cluster has the time of the last digest. It and the rows of the outbox of a
 *     digest are changes of one event.
 *  2. The time of the last digest is one of the schedule, or that of the first start with a
 *     schedule, which has no digest: what happened before is in none.
 */
#include "scheduler/core/lifecycle/digest.h"
#include "scheduler/core/lifecycle/notify.h"
#include "scheduler/core/model/apply.h"
#include "scheduler/core/model/changes.h"
#include "scheduler/core/model/model_access.h"
#include "scheduler/core/model/state.h"

#include "base/mem.h"
#include "base/str.h"
#include "job/cron.h"
#include <stdlib.h>

#define CLOCK_CHECK_MS 60000LL       /* interval between checks of the wall clock */
#define TWO_DAYS_MS (2 * 86400000LL) /* longer than the interval between two digests */

/* ---- the schedule ---- */

struct wall core_digest_next(const struct digest_options *o, struct wall after)
{
    return cron_next_minute(o->zone, o->at_minute, after);
}

struct wall core_digest_last(const struct digest_options *o, struct wall now)
{
    struct wall last = WALL_NONE;
    for (struct wall t = core_digest_next(o, (struct wall){now.ms - TWO_DAYS_MS});
         wall_is_set(t) && t.ms <= now.ms; t = core_digest_next(o, t))
        last = t;
    return last;
}

/* WALL_NONE without a schedule. The first one is due at once: it only begins. */
static struct wall due_at(const struct model *m)
{
    const struct digest_options *o = m->options.tables.digest;
    if (!o)
        return WALL_NONE;
    if (!wall_is_set(m->lifecycle.digest.told_until))
        return (struct wall){0};
    return core_digest_next(o, m->lifecycle.digest.told_until);
}

struct mono digest_next_due(const struct model *m, struct stamp now, struct event *ret_event)
{
    struct wall due = due_at(m);
    if (!wall_is_set(due))
        return MONO_NONE;
    *ret_event = (struct event){.type = EV_DIGEST};
    return stamp_until_checked(now, due, CLOCK_CHECK_MS);
}

static void add_change(struct model *m, const struct digest_row *r)
{
    *ADD_ROW(m, digests) = *r;
}

int apply_digest(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    struct wall due = due_at(m), now = ev->now.wall;
    struct digest_row *r = &m->lifecycle.digest;
    if (!wall_is_set(due) || due.ms > now.ms)
        return err_set(e, ERR_CONFLICT, "no digest is due (any more)");
    bool begins = !wall_is_set(r->told_until);
    struct wall from = r->told_until,
                to = begins ? now : core_digest_last(m->options.tables.digest, now);
    r->told_until = to;
    add_change(m, r);
    ret_outcome->id = CORE_ID_NONE;
    if (begins)
        return 0;
    if (from.ms < to.ms - DIGEST_PERIOD_MAX_MS)
        from.ms = to.ms - DIGEST_PERIOD_MAX_MS;
    notify_digest(m, from, to, ev->now);
    return 0;
}

/* ---- subscriptions ---- */

static bool is_ended(const struct digest_row *r)
{
    return !r->mail[0] && !r->url[0];
}

const struct digest_row *core_digest_of(const struct model *m, const char *user)
{
    return smap_get(&m->lifecycle.digest_users, user);
}

const char *core_digest_mail(const struct model *m, const char *user)
{
    const struct digest_row *r = core_digest_of(m, user);
    return r && r->mail[0] ? r->mail : NULL;
}

size_t core_digest_users(const struct model *m, const char **ret_users, size_t max)
{
    size_t n = 0, pos = 0;
    while (n < max && smap_next(&m->lifecycle.digest_users, &pos, &ret_users[n]))
        n++;
    return n;
}

static void forget(struct model *m, struct digest_row *r)
{
    smap_remove(&m->lifecycle.digest_users, r->user);
    add_change(m, r);
    free(r);
}

int apply_digest_set(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    const struct digest_row *to = ev->digest_set.to;
    struct digest_row *r = smap_get(&m->lifecycle.digest_users, to->user);
    bool begins = (ev->digest_set.mail && to->mail[0]) || (ev->digest_set.url && to->url[0]);
    ret_outcome->id = CORE_ID_NONE;
    if (!to->user[0])
        return err_set(e, ERR_INVALID, "a subscription needs a user");
    if (!r && !begins)
        return 0;
    if (!r && smap_size(&m->lifecycle.digest_users) >= DIGEST_USERS_MAX)
        return err_set(e, ERR_CONFLICT,
            "%d users have subscribed to the digest, which is the maximum", DIGEST_USERS_MAX);
    if (!r) {
        r = mem_alloc(sizeof *r);
        r->told_until = WALL_NONE;
        STR_COPY(r->user, to->user);
        smap_put(&m->lifecycle.digest_users, r->user, r);
    }
    if (ev->digest_set.mail)
        STR_COPY(r->mail, to->mail);
    if (ev->digest_set.url) {
        STR_COPY(r->url, to->url);
        r->format = to->format;
    }
    if (is_ended(r))
        forget(m, r);
    else
        add_change(m, r);
    return 0;
}

/* ---- load, destroy ---- */

void digests_begin(struct model *m)
{
    m->lifecycle.digest.told_until = WALL_NONE;
}

int model_load_digest(struct model *m, const struct digest_row *r, struct err *e)
{
    if (!r->user[0]) {
        m->lifecycle.digest = *r;
        return 0;
    }
    if (smap_get(&m->lifecycle.digest_users, r->user))
        return err_set(
            e, ERR_CORRUPT, "the stored subscription of %s to the digest comes twice", r->user);
    if (is_ended(r))
        return 0;
    struct digest_row *copy = mem_dup(r, sizeof *r);
    smap_put(&m->lifecycle.digest_users, copy->user, copy);
    return 0;
}

void digests_destroy_all(struct model *m)
{
    const char *user;
    void *r;
    for (size_t pos = 0; (r = smap_next(&m->lifecycle.digest_users, &pos, &user)) != NULL;)
        free(r);
    smap_deinit(&m->lifecycle.digest_users);
}
