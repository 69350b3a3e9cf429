/* SPDX-License-Identifier: Apache-2.0
 *
 * Which checkpoints of a job are in the store: with what their manifests say, or by name only.
 */
#include "base/log.h"
#include "ckpt/store/layout.h"

int ckpt_list(const struct ckpt_job *j, ckpt_each_fn fn, void *ctx, struct err *e)
{
    struct layout_ids ids = {0}, pins = {0};
    bool stop = false;
    int rc = layout_check_job(j, e);

    if (!rc)
        rc = layout_list_pins(j, &pins, e);
    if (!rc)
        rc = layout_list_ids(j, &ids, e);
    for (size_t i = 0; !rc && !stop && i < ids.n; i++) {
        struct manifest m;

        rc = layout_read_manifest(j, ids.v[i], &m, e);
        if (rc == ERR_CORRUPT || rc == ERR_NOT_FOUND) {
            log_warn("checkpoint skipped", log_i("job", j->job), log_err(e));
            rc = 0;
        } else if (rc == ERR_UNSUPPORTED) {
            log_warn("a checkpoint cannot be read here", log_i("job", j->job), log_err(e));
            stop = fn(ctx, &(struct ckpt_info){.id = ids.v[i],
                               .progress = -1,
                               .saved_at = WALL_NONE,
                               .pinned = layout_has_id(&pins, ids.v[i]),
                               .unreadable = true}) != 0;
            rc = 0;
        } else if (!rc) {
            stop = fn(ctx, &(struct ckpt_info){.id = ids.v[i],
                               .bytes = manifest_bytes(&m),
                               .files = manifest_files(&m),
                               .progress = m.progress,
                               .saved_at = m.saved_at,
                               .pinned = layout_has_id(&pins, ids.v[i])}) != 0;
            manifest_deinit(&m);
        }
    }
    layout_ids_deinit(&ids);
    layout_ids_deinit(&pins);
    return rc;
}

int ckpt_list_stored(
    const struct ckpt_job *j, struct ckpt_stored *v, size_t max, size_t *ret_n, struct err *e)
{
    struct layout_ids ids = {0}, pins = {0};
    int rc = layout_check_job(j, e);

    if (!rc)
        rc = layout_list_pins(j, &pins, e);
    if (!rc)
        rc = layout_list_ids(j, &ids, e);
    *ret_n = rc ? 0 : ids.n < max ? ids.n : max;
    for (size_t i = 0; i < *ret_n; i++)
        v[i] = (struct ckpt_stored){ids.v[i], layout_has_id(&pins, ids.v[i])};
    layout_ids_deinit(&ids);
    layout_ids_deinit(&pins);
    return rc;
}
