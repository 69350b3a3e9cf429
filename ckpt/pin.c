/* SPDX-License-Identifier: Apache-2.0
 *
 * A pin is an object, so that every cleaner respects it, with belayd or without. Invariant 6 of
 * ckpt.h: the manifest is checked after the pin was written; clean.c checks the pin after it has
 * moved the manifest.
 */
#include "ckpt/store/layout.h"
#include <inttypes.h>

static int remove_pin(const struct ckpt_job *j, struct ckpt_id id, struct err *e)
{
    struct layout_name pin = layout_pin(j, id);
    const char *const names[] = {pin.s};

    return j->store->ops->remove(j->store, names, 1, e);
}

static int write_pin(const struct ckpt_job *j, struct ckpt_id id, struct err *e)
{
    struct layout_name pin = layout_pin(j, id), manifest = layout_manifest(j, id);
    struct err ignored;
    int64_t size;
    int rc = j->store->ops->create(j->store, pin.s, "", 0, e);
    bool was_pinned = rc == ERR_CONFLICT;

    if (rc && !was_pinned)
        return rc;
    rc = j->store->ops->stat(j->store, manifest.s, &size, e);
    if (rc == ERR_NOT_FOUND)
        rc = err_set(e, ERR_CONFLICT, "it is being removed");
    if (rc && !was_pinned)
        remove_pin(j, id, &ignored);
    return rc;
}

int ckpt_pin(const struct ckpt_job *j, struct ckpt_id id, struct err *e)
{
    struct manifest m = {0};
    int rc = layout_check_job(j, e);

    if (!rc)
        rc = layout_read_manifest(j, id, &m, e);
    manifest_deinit(&m);
    if (rc) /* which names the checkpoint */
        return rc;
    return write_pin(j, id, e)
               ? err_wrap(e, "pin checkpoint %" PRId64 ".%" PRId64 " of job %" PRId64, id.attempt,
                     id.sequence, j->job)
               : 0;
}

int ckpt_unpin(const struct ckpt_job *j, struct ckpt_id id, struct err *e)
{
    int rc = layout_check_job(j, e);

    if (!rc)
        rc = remove_pin(j, id, e);
    return rc ? err_wrap(e, "unpin checkpoint %" PRId64 ".%" PRId64 " of job %" PRId64, id.attempt,
                    id.sequence, j->job)
              : 0;
}
