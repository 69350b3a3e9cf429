/* SPDX-License-Identifier: Apache-2.0
 *
 * Cleaning: which manifests stay is decided first, by reading them; then the others go; then what no kept
 * manifest names. If a kept manifest cannot be read for any reason but damage, nothing is removed at all.
 *
 * Invariants 4 and 5 of ckpt.h: manifests are durably gone (remove returns) before a chunk is touched, and
 * nothing below the number of a later attempt is touched whatever the lists say.
 */
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "ckpt/layout.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct clean {
    const struct ckpt_job *job;
    int64_t attempt;
    struct smap kept; /* full names of manifests and chunks that stay */
    size_t skip;      /* bytes of the prefix being listed */
    struct names remove;
};

static void keep_name(struct clean *c, const struct layout_name *name)
{
    smap_put(&c->kept, name->s, c);
}

static void keep_chunks(struct clean *c, const struct manifest *m)
{
    for (size_t i = 0; i < m->n_chunks; i++) {
        struct layout_name name = layout_chunk(c->job, m->id.attempt, m->chunks[i].sha256);

        keep_name(c, &name);
    }
}

static int choose_kept(struct clean *c, int keep, struct err *e)
{
    struct ckpt_id *ids;
    size_t n;
    int rc = layout_list_ids(c->job, &ids, &n, e);

    if (rc)
        return rc;
    for (size_t i = 0; i < n && keep > 0; i++) {
        struct layout_name name = layout_manifest(c->job, ids[i]);
        struct manifest m;

        rc = layout_read_manifest(c->job, ids[i], &m, e);
        if (rc == ERR_CORRUPT) {
            layout_set_aside(c->job, name.s, e);
            rc = 0;
            continue;
        }
        if (rc)
            break;
        keep_name(c, &name);
        keep_chunks(c, &m);
        manifest_deinit(&m);
        keep--;
    }
    free(ids);
    return rc;
}

/* Manifests, chunks and what a killed create left of either begin with their attempt's number. */
static int collect(void *ctx, const char *name, int64_t size_bytes)
{
    struct clean *c = ctx;
    const char *rest = name + c->skip;
    int64_t attempt;

    (void)size_bytes;
    if ((layout_parse_attempt(rest, '-', &attempt) || layout_parse_attempt(rest, '/', &attempt)) &&
        attempt <= c->attempt && !smap_get(&c->kept, name))
        names_add(&c->remove, mem_strdup(name));
    return 0;
}

static int collect_old_fence(void *ctx, const char *name, int64_t size_bytes)
{
    struct clean *c = ctx;
    int64_t attempt;

    (void)size_bytes;
    if (layout_parse_attempt(name + c->skip, '\0', &attempt) && attempt < c->attempt)
        names_add(&c->remove, mem_strdup(name));
    return 0;
}

static int sweep(struct clean *c, const char *what, store_each_fn fn, struct err *e)
{
    struct layout_name prefix = layout_prefix(c->job, what);
    int rc;

    c->skip = strlen(prefix.s);
    rc = c->job->store->ops->list(c->job->store, prefix.s, fn, c, e);
    if (!rc)
        rc = layout_remove(c->job, &c->remove, e);
    names_deinit(&c->remove);
    return rc;
}

int ckpt_clean(const struct ckpt_job *j, int64_t attempt, int keep, struct err *e)
{
    struct clean c = {.job = j, .attempt = attempt};
    int rc = layout_check_job(j, e);

    if (!rc && (attempt < 1 || keep < 1))
        rc = err_set(e, ERR_INVALID, "clean for attempt %" PRId64 ", keep %d: out of range", attempt, keep);
    if (!rc)
        rc = layout_check_fence(j, attempt, e);
    if (!rc)
        rc = choose_kept(&c, keep, e);
    if (!rc)
        rc = sweep(&c, "manifests/", collect, e);
    if (!rc)
        rc = sweep(&c, "chunks/", collect, e);
    if (!rc && attempt <= CKPT_NUMBER_MAX) /* belayd leaves the last fence where it is */
        rc = sweep(&c, "fences/", collect_old_fence, e);
    smap_deinit(&c.kept);
    return rc ? err_wrap(e, "clean the checkpoints of job %" PRId64, j->job) : 0;
}
