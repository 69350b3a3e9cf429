/* SPDX-License-Identifier: Apache-2.0
 *
 * See fence.h.
 */
#include "ckpt/store/fence.h"
#include "ckpt/store/layout.h"
#include <inttypes.h>

int fence_check(const struct ckpt_job *j, int64_t attempt, struct err *e)
{
    static const struct {
        const char *what;
        char end;
    } claims[] = {{"fences/", '\0'}, {"manifests/", '-'}};
    int64_t latest = 0;

    for (size_t i = 0; i < sizeof(claims) / sizeof(claims[0]); i++) {
        struct layout_name prefix = layout_prefix(j, claims[i].what);
        int64_t found = 0;
        int rc = layout_find_latest(j->store, prefix.s, claims[i].end, &found, e);

        if (rc)
            return err_wrap(e, "look for later attempts of job %" PRId64, j->job);
        if (found > latest)
            latest = found;
    }
    if (latest > attempt && latest == CKPT_CLOSED)
        return err_set(e, ERR_CONFLICT, "fenced: job %" PRId64 " has ended", j->job);
    if (latest > attempt)
        return err_set(e, ERR_CONFLICT,
            "fenced: attempt %" PRId64 " of job %" PRId64 " has taken over from attempt %" PRId64,
            latest, j->job, attempt);
    return 0;
}

int ckpt_fence(const struct ckpt_job *j, int64_t attempt, struct err *e)
{
    struct layout_name name;
    int rc = layout_check_job(j, e);

    if (!rc && (attempt < 1 || attempt > CKPT_NUMBER_MAX))
        rc = err_set(e, ERR_INVALID, "attempt %" PRId64 " is not in 1 .. %" PRId64, attempt,
            CKPT_NUMBER_MAX);
    if (rc)
        return rc;
    name = layout_fence(j, attempt);
    rc = j->store->ops->create(j->store, name.s, "", 0, e);
    if (rc && rc != ERR_CONFLICT)
        return err_wrap(e, "claim job %" PRId64 " for attempt %" PRId64, j->job, attempt);
    return fence_check(j, attempt, e);
}

int ckpt_is_closed(const struct ckpt_job *j, bool *ret_closed, struct err *e)
{
    struct layout_name name;
    int64_t size;
    int rc = layout_check_job(j, e);

    if (rc)
        return rc;
    name = layout_fence(j, CKPT_CLOSED);
    rc = j->store->ops->stat(j->store, name.s, &size, e);
    if (rc && rc != ERR_NOT_FOUND)
        return err_wrap(e, "see whether job %" PRId64 " has ended", j->job);
    *ret_closed = rc == 0;
    return 0;
}
