/* SPDX-License-Identifier: Apache-2.0
 *
 * How an attempt starts to use the store (ckpt_begin) and how a job ends its use (ckpt_close, which
 * checks only the identity). Checks, in this order:
 *
 *  1. The job's identity, "<job>/identity": the owner of the job's part of the store. The first
 *     attempt creates it, by conditional create, and only if there is no checkpoint. So a job never
 *     resumes from a checkpoint of another job with its number, whatever became of the database.
 *  2. The fence (ckpt_fence).
 *  3. The last checkpoint that belayd knows of: the store must account for it (is_accounted_for).
 */
#include "ckpt/store/layout.h"

#include "base/str.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool has_last_or_newer(
    const struct layout_ids *ids, struct ckpt_id last, int64_t before_attempt)
{
    for (size_t i = 0; i < ids->n; i++)
        if (ids->v[i].attempt < before_attempt && layout_compare_ids(ids->v[i], last) >= 0)
            return true;
    return false;
}

/* Whether checkpoint `last`, or a newer one of an attempt below `before`, exists, was set aside as
 * damaged, was deleted by a user, or is being removed by cleaning. */
static int is_accounted_for(
    const struct ckpt_job *j, struct ckpt_id last, int64_t before, bool *ret_is, struct err *e)
{
    static int (*const lists[])(const struct ckpt_job *, struct layout_ids *, struct err *) = {
        layout_list_ids, layout_list_damaged, layout_list_deleted, layout_list_removing};
    int rc = 0;

    *ret_is = false;
    for (size_t i = 0; !rc && !*ret_is && i < sizeof(lists) / sizeof(lists[0]); i++) {
        struct layout_ids ids;

        rc = lists[i](j, &ids, e);
        *ret_is = rc == 0 && has_last_or_newer(&ids, last, before);
        layout_ids_deinit(&ids);
    }
    return rc;
}

static int check_last(const struct ckpt_job *j, int64_t attempt, const struct ckpt_expected *x,
    enum ckpt_mismatch *ret_mismatch, struct err *e)
{
    bool accounted = false;
    int rc = x->last.attempt > 0 ? is_accounted_for(j, x->last, attempt, &accounted, e) : 0;

    if (rc || accounted || x->last.attempt == 0)
        return rc;
    *ret_mismatch = CKPT_LOST;
    return err_set(e, ERR_NOT_FOUND,
        "checkpoint %" PRId64 ".%" PRId64 " is not in the store, which was emptied or replaced",
        x->last.attempt, x->last.sequence);
}

static int has_any(const struct ckpt_job *j, bool *ret_has, struct err *e)
{
    struct layout_ids ids;
    int rc = layout_list_ids(j, &ids, e);

    *ret_has = ids.n > 0;
    layout_ids_deinit(&ids);
    return rc;
}

static int err_other_job(const struct ckpt_job *j, enum ckpt_mismatch *ret_mismatch, struct err *e)
{
    *ret_mismatch = CKPT_ANOTHERS;
    return err_set(e, ERR_CONFLICT,
        "the store already holds checkpoints of a different job %" PRId64
        ", perhaps of an earlier cluster",
        j->job);
}

static int compare_identity(const struct ckpt_job *j, const char *name, const char *identity,
    enum ckpt_mismatch *ret_mismatch, struct err *e)
{
    int rc = layout_expect_text(j, name, identity, e);

    return rc == ERR_CORRUPT ? err_other_job(j, ret_mismatch, e) : rc;
}

/* An earlier attempt or another rank may have created the identity: it must then be the same. */
static int make_identity(const struct ckpt_job *j, const struct ckpt_expected *x, const char *name,
    enum ckpt_mismatch *ret_mismatch, struct err *e)
{
    int rc = j->store->ops->create(j->store, name, x->identity, strlen(x->identity), e);

    return rc == ERR_CONFLICT ? compare_identity(j, name, x->identity, ret_mismatch, e) : rc;
}

int ckpt_check_identity(const struct ckpt_job *j, const char *identity, struct err *e)
{
    enum ckpt_mismatch mismatch;
    int rc = layout_check_job(j, e);

    if (!rc)
        rc = compare_identity(j, layout_prefix(j, "identity").s, identity, &mismatch, e);
    return rc == ERR_NOT_FOUND
               ? err_set(e, ERR_NOT_FOUND, "job %" PRId64 " has no checkpoint in the store", j->job)
               : rc;
}

/* Creates a missing identity, unless the store has checkpoints and belayd knows none of the job.
 * Jobs that began under a version without identities have checkpoints that belayd knows. */
static int check_identity(const struct ckpt_job *j, int64_t attempt, const struct ckpt_expected *x,
    enum ckpt_mismatch *ret_mismatch, struct err *e)
{
    struct layout_name name = layout_prefix(j, "identity");
    bool has = false;
    int rc = compare_identity(j, name.s, x->identity, ret_mismatch, e);

    if (rc != ERR_NOT_FOUND)
        return rc;
    rc = check_last(j, attempt, x, ret_mismatch, e);
    if (!rc && x->last.attempt == 0 && x->from_attempt == 0)
        rc = has_any(j, &has, e);
    if (!rc && has)
        rc = err_other_job(j, ret_mismatch, e);
    return rc ? rc : make_identity(j, x, name.s, ret_mismatch, e);
}

int ckpt_begin(const struct ckpt_job *j, int64_t attempt, const struct ckpt_expected *x,
    enum ckpt_mismatch *ret_mismatch, struct err *e)
{
    int rc = layout_check_job(j, e);

    *ret_mismatch = CKPT_MATCHES;
    if (!rc && x && x->identity[0])
        rc = check_identity(j, attempt, x, ret_mismatch, e);
    if (!rc)
        rc = ckpt_fence(j, attempt, e);
    if (!rc && x && x->identity[0])
        rc = check_last(j, attempt, x, ret_mismatch, e);
    return rc;
}

/* Whether a store without an identity has checkpoints that belayd cannot attribute to the job. */
static int has_unknown(const struct ckpt_job *j, struct ckpt_id last, bool *ret_has, struct err *e)
{
    bool accounted = false;
    int rc = has_any(j, ret_has, e);

    if (!rc && *ret_has && last.attempt > 0)
        rc = is_accounted_for(j, last, CKPT_NUMBER_MAX, &accounted, e);
    *ret_has = *ret_has && !accounted;
    return rc;
}

static int close_identity(const struct ckpt_job *j, const struct ckpt_expected *x,
    enum ckpt_mismatch *ret_mismatch, struct err *e)
{
    struct layout_name name = layout_prefix(j, "identity");
    bool has = false;
    int rc = compare_identity(j, name.s, x->identity, ret_mismatch, e);

    if (rc != ERR_NOT_FOUND)
        return rc;
    rc = has_unknown(j, x->last, &has, e);
    if (!rc && has)
        rc = err_other_job(j, ret_mismatch, e);
    return rc ? rc : make_identity(j, x, name.s, ret_mismatch, e);
}

int ckpt_close(const struct ckpt_job *j, const struct ckpt_expected *x,
    enum ckpt_mismatch *ret_mismatch, struct err *e)
{
    int rc = layout_check_job(j, e);

    *ret_mismatch = CKPT_MATCHES;
    if (!rc && x->identity[0])
        rc = close_identity(j, x, ret_mismatch, e);
    return rc ? rc : ckpt_fence(j, CKPT_CLOSED, e);
}

int ckpt_was_deleted(const struct ckpt_job *j, struct ckpt_id id, bool *ret_was, struct err *e)
{
    struct layout_ids ids;
    int rc = layout_list_deleted(j, &ids, e);

    *ret_was = rc == 0 && has_last_or_newer(&ids, id, CKPT_NUMBER_MAX);
    layout_ids_deinit(&ids);
    return rc;
}
