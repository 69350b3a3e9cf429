/* SPDX-License-Identifier: Apache-2.0
 *
 * See log_shares.h. The space for output is the stored bytes plus the free bytes above two reserves
 * (the sum is taken as at least two reserves); each user's share is an equal part of it. While less
 * than two reserves are stored, something other than output fills the disk, and every user counts
 * as within their share. Otherwise output is cut only while less than two reserves are free: the
 * space is then no more than the stored bytes, so the largest user is beyond an equal share.
 */
#include "scheduler/logs/log_shares.h"

#include "base/fs.h"
#include "base/map.h"
#include "base/mem.h"
#include <stdlib.h>

/* With less free bytes than this, output is not cut: the line that says so might not fit. Output
 * itself is refused long before. */
#define NO_SPACE (64LL << 10)

struct of_user {
    int64_t bytes, jobs;
};

struct log_shares {
    struct smap users;
    int64_t bytes;
};

struct log_shares *log_shares_create(void)
{
    return mem_alloc(sizeof(struct log_shares));
}

void log_shares_destroy(struct log_shares *s)
{
    size_t pos = 0;
    if (!s)
        return;
    for (struct of_user *u; (u = smap_next(&s->users, &pos, NULL));)
        free(u);
    smap_deinit(&s->users);
    free(s);
}

void log_shares_add(struct log_shares *s, const char *user, int64_t n, int64_t n_jobs)
{
    struct of_user *u = smap_get(&s->users, user);
    if (!u) {
        u = mem_alloc(sizeof(*u));
        smap_put(&s->users, user, u);
    }
    u->bytes += n;
    u->jobs += n_jobs;
    s->bytes += n;
}

int64_t log_shares_total(const struct log_shares *s)
{
    return s->bytes;
}

const char *log_shares_most(const struct log_shares *s, int64_t *ret_bytes)
{
    const char *name, *most = NULL;
    size_t pos = 0;
    *ret_bytes = 0;
    for (struct of_user *u; (u = smap_next(&s->users, &pos, &name));) {
        if (u->bytes > *ret_bytes) {
            *ret_bytes = u->bytes;
            most = name;
        }
    }
    return most;
}

int64_t log_space_reserve(const struct log_space *space)
{
    return fs_reserve(space->total);
}

bool log_space_is_low(const struct log_space *space)
{
    return space->free < 2 * log_space_reserve(space);
}

enum share_level { BEYOND_SHARE, JOB_WITHIN_SHARE, USER_WITHIN_SHARE };

static enum share_level share_level_of(
    const struct log_shares *s, int64_t total, const char *user, int64_t job_bytes)
{
    static const struct of_user nothing;
    const struct of_user *found = smap_get(&s->users, user), *u = found ? found : &nothing;
    int64_t users = (int64_t)smap_size(&s->users) + (found ? 0 : 1);
    int64_t jobs = u->jobs + (job_bytes > 0 ? 0 : 1), share = total / users;
    if (u->bytes < share)
        return USER_WITHIN_SHARE;
    return jobs > 0 && job_bytes < share / jobs ? JOB_WITHIN_SHARE : BEYOND_SHARE;
}

enum log_verdict log_shares_judge(
    const struct log_shares *shares, const struct log_space *space, const struct log_request *q)
{
    int64_t reserve = log_space_reserve(space), left = space->free - q->n;
    enum share_level level = USER_WITHIN_SHARE;
    if (space->free < NO_SPACE)
        return LOG_KEEP;
    if (shares && log_shares_total(shares) >= 2 * reserve) {
        int64_t total = log_shares_total(shares) + space->free - 2 * reserve;
        level = share_level_of(
            shares, total > 2 * reserve ? total : 2 * reserve, q->user, q->job_bytes);
    }
    int64_t least = level == BEYOND_SHARE       ? 2 * reserve
                    : level == JOB_WITHIN_SHARE ? reserve + reserve / 2
                                                : reserve;
    if (left >= least)
        return LOG_STORE;
    return level != USER_WITHIN_SHARE && q->has_waited ? LOG_CUT : LOG_KEEP;
}
