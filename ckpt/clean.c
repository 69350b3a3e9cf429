/* SPDX-License-Identifier: Apache-2.0
 *
 * Cleaning first decides which manifests stay, by reading them, or from what the attempt remembers.
 * The others are condemned (moved to "removing/"), checked again for pins, and removed; then
 * everything that no kept manifest names. If a kept manifest cannot be read for another reason than
 * damage, nothing is removed.
 *
 *     manifests/X --- condemn ---> removing/X --- not pinned ---> gone --- then its chunks
 *          ^                           |
 *          +---------- pinned ---------+
 *
 * Invariants 4 to 6 of ckpt.h: manifests are durably gone (remove returns) before a chunk is
 * touched; nothing of a later attempt is touched, whatever the lists say; and because pins are read
 * after the manifest was moved away, a pin acknowledged before that is seen.
 *
 * A killed cleaning leaves what it condemned: the next one puts it back if it is pinned and removes
 * it otherwise. Until then it cannot be restored; it is never one of the newest, unless a user
 * removed it.
 */
#include "ckpt/clean.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "ckpt/named.h"
#include "ckpt/seen.h"
#include "ckpt/store/fence.h"
#include "ckpt/store/layout.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct clean {
    const struct ckpt_job *job;
    int64_t attempt;
    struct ckpt_keep keep;
    const atomic_int *cancel;
    struct named *named;           /* may be NULL */
    struct smap kept;              /* full names of kept manifests and chunks */
    struct layout_ids removed_ids; /* checkpoints that the rule and the pins do not keep */
    size_t skip;                   /* bytes of the prefix being listed */
    int64_t kept_bytes;            /* of kept manifests and chunks */
    size_t n_read;                 /* chunks of manifests that were read */
    struct names remove;
};

static int check_cancel(const struct clean *c, struct err *e)
{
    return c->cancel && atomic_load(c->cancel)
               ? err_set(e, ERR_CANCELLED, "cleaning was interrupted")
               : 0;
}

static int move(const struct ckpt_job *j, const struct layout_name *from,
    const struct layout_name *to, struct err *e)
{
    int rc = j->store->ops->rename(j->store, from->s, to->s, e);

    return rc == ERR_NOT_FOUND ? 0 : rc; /* removed by another cleaner */
}

static int condemn(const struct ckpt_job *j, struct ckpt_id id, struct err *e)
{
    struct layout_name from = layout_manifest(j, id), to = layout_removing(j, id);

    return move(j, &from, &to, e);
}

static int put_back(const struct ckpt_job *j, struct ckpt_id id, struct err *e)
{
    struct layout_name from = layout_removing(j, id), to = layout_manifest(j, id);

    return move(j, &from, &to, e);
}

/* Moves condemned manifests with a pin back; ret_left (may be NULL) receives the rest. */
static int put_back_pinned(const struct ckpt_job *j, struct layout_ids *ret_left, struct err *e)
{
    struct layout_ids removing = {0}, pins = {0};
    size_t n = 0;
    int rc = layout_list_removing(j, &removing, e);

    if (!rc && removing.n)
        rc = layout_list_pins(j, &pins, e);
    for (size_t i = 0; !rc && i < removing.n; i++) {
        if (layout_has_id(&pins, removing.v[i]))
            rc = put_back(j, removing.v[i], e);
        else
            removing.v[n++] = removing.v[i];
    }
    removing.n = n;
    layout_ids_deinit(&pins);
    if (rc || !ret_left)
        layout_ids_deinit(&removing);
    else
        *ret_left = removing;
    return rc;
}

/* ---- what stays ---- */

static void keep_name(struct clean *c, const struct layout_name *name)
{
    smap_put(&c->kept, name->s, c);
}

static void keep_object(
    struct clean *c, const struct manifest *m, const struct manifest_chunk *object)
{
    struct layout_name name = layout_chunk(c->job, m->key, m->id.attempt, object->sha256);

    keep_name(c, &name);
}

static void keep_objects(struct clean *c, const struct manifest *m)
{
    for (size_t i = 0; i < m->n_chunks; i++)
        if (!m->chunks[i].pack)
            keep_object(c, m, &m->chunks[i]);
    for (size_t i = 0; i < m->n_packs; i++)
        keep_object(c, m, &m->packs[i]);
}

static void keep_known(struct clean *c, struct named_one *known)
{
    known->is_kept = true;
    for (size_t i = 0; i < known->n; i++) {
        struct layout_name name = layout_chunk(c->job, NULL, known->id.attempt, known->names[i]);

        keep_name(c, &name);
    }
}

/* Keeps the checkpoint's manifest and chunks. A damaged manifest is set aside (ERR_CORRUPT). */
static int keep_checkpoint(struct clean *c, struct ckpt_id id, struct err *e)
{
    struct layout_name name = layout_manifest(c->job, id);
    struct named_one *known = c->named ? named_find(c->named, id) : NULL;
    struct manifest m;
    int rc;

    if (known) {
        keep_name(c, &name);
        keep_known(c, known);
        return 0;
    }
    rc = layout_read_chunks(c->job, id, &m, e);

    if (rc == ERR_CORRUPT)
        layout_set_aside(c->job, name.s, e);
    if (rc)
        return rc;
    keep_name(c, &name);
    keep_objects(c, &m);
    if (c->named)
        named_add(c->named, c->job, &m)->is_kept = true;
    c->n_read += m.n_chunks;
    manifest_deinit(&m);
    return 0;
}

static int choose_kept(struct clean *c, struct err *e)
{
    struct layout_ids ids = {0}, pins = {0};
    int newest = c->keep.newest;
    int rc = layout_list_pins(c->job, &pins, e);

    if (!rc)
        rc = layout_list_ids(c->job, &ids, e);
    for (size_t i = 0; !rc && i < ids.n; i++) {
        bool by_rule = c->keep.every && ids.v[i].sequence % c->keep.every == 0;

        if (newest <= 0 && !by_rule && !layout_has_id(&pins, ids.v[i])) {
            ids.v[c->removed_ids.n++] = ids.v[i]; /* writes only to positions already read */
            continue;
        }
        rc = check_cancel(c, e);
        if (!rc)
            rc = keep_checkpoint(c, ids.v[i], e);
        newest -= !rc;
        if (rc == ERR_CORRUPT || rc == ERR_NOT_FOUND)
            rc = 0;
    }
    c->removed_ids = (struct layout_ids){.v = ids.v, .n = c->removed_ids.n, .cap = ids.cap};
    layout_ids_deinit(&pins);
    return rc;
}

/* ---- what goes ---- */

/* Collects names of this and earlier attempts that are not kept. The names of manifests, chunks and
 * torn creates begin with the attempt's number. */
static int collect(void *ctx, const char *name, int64_t size_bytes)
{
    struct clean *c = ctx;
    const char *rest = name + c->skip;
    int64_t attempt;

    if ((layout_parse_attempt(rest, '-', &attempt) || layout_parse_attempt(rest, '/', &attempt)) &&
        attempt <= c->attempt && !smap_get(&c->kept, name))
        names_add(&c->remove, mem_strdup(name));
    else
        c->kept_bytes += size_bytes;
    return 0;
}

/* Collects only remains of killed creates. Complete manifests are removed by remove_manifests. */
static int collect_torn(void *ctx, const char *name, int64_t size_bytes)
{
    struct clean *c = ctx;
    struct ckpt_id id;

    if (!layout_parse_id(name + c->skip, ".json", &id))
        return collect(ctx, name, size_bytes);
    c->kept_bytes += size_bytes;
    return 0;
}

static int collect_any(void *ctx, const char *name, int64_t size_bytes)
{
    struct clean *c = ctx;

    (void)size_bytes;
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

static int remove_collected(struct clean *c, const char *what, store_each_fn fn, struct err *e)
{
    struct layout_name prefix = layout_prefix(c->job, what);
    int rc = check_cancel(c, e);

    c->skip = strlen(prefix.s);
    if (!rc)
        rc = c->job->store->ops->list(c->job->store, prefix.s, fn, c, e);
    if (!rc)
        rc = layout_remove(c->job, &c->remove, e);
    names_deinit(&c->remove);
    return rc;
}

/* Keeps doomed checkpoints whose manifest was put back because a pin was written meanwhile. */
static int keep_rescued(struct clean *c, const struct layout_ids *left, struct err *e)
{
    int rc = 0;

    for (size_t i = 0; !rc && i < c->removed_ids.n; i++) {
        if (c->removed_ids.v[i].attempt > c->attempt || layout_has_id(left, c->removed_ids.v[i]))
            continue;
        rc = keep_checkpoint(c, c->removed_ids.v[i], e);
        if (rc == ERR_CORRUPT || rc == ERR_NOT_FOUND)
            rc = 0; /* damaged, or removed by another cleaner */
    }
    return rc;
}

static int remove_manifests(struct clean *c, struct err *e)
{
    struct layout_ids left = {0};
    int rc = 0;

    for (size_t i = 0; !rc && i < c->removed_ids.n; i++)
        if (c->removed_ids.v[i].attempt <= c->attempt)
            rc = condemn(c->job, c->removed_ids.v[i], e);
    if (!rc)
        rc = put_back_pinned(c->job, &left, e);
    if (!rc)
        rc = keep_rescued(c, &left, e);
    for (size_t i = 0; !rc && i < left.n; i++)
        if (left.v[i].attempt <= c->attempt) {
            struct layout_name name = layout_removing(c->job, left.v[i]);

            names_add(&c->remove, mem_strdup(name.s));
        }
    /* A later attempt may have put manifests back: then this one must not remove any. */
    if (!rc)
        rc = fence_check(c->job, c->attempt, e);
    if (!rc)
        rc = layout_remove(c->job, &c->remove, e);
    names_deinit(&c->remove);
    layout_ids_deinit(&left);
    return rc;
}

static int check_arguments(
    const struct ckpt_job *j, int64_t attempt, struct ckpt_keep keep, struct err *e)
{
    if (attempt < 1 || attempt > CKPT_NUMBER_MAX ||
        keep.newest < (attempt == CKPT_CLOSED ? 0 : 1) || keep.every < 0)
        return err_set(e, ERR_INVALID,
            "clean for attempt %" PRId64 ", keep %d, every %d: out of range", attempt, keep.newest,
            keep.every);
    return layout_check_job(j, e);
}

int ckpt_clean(const struct ckpt_job *j, int64_t attempt, struct ckpt_keep keep,
    const atomic_int *cancel, int64_t *ret_kept_bytes, struct err *e)
{
    return ckpt_clean_with(j, attempt, keep, NULL, cancel, ret_kept_bytes, e);
}

int ckpt_clean_with(const struct ckpt_job *j, int64_t attempt, struct ckpt_keep keep,
    struct ckpt_seen *seen, const atomic_int *cancel, int64_t *ret_kept_bytes, struct err *e)
{
    struct clean c = {.job = j,
        .attempt = attempt,
        .keep = keep,
        .cancel = cancel,
        .named = seen ? seen_named(seen) : NULL};
    int rc = check_arguments(j, attempt, keep, e);

    if (c.named)
        named_start(c.named);
    if (!rc)
        rc = fence_check(j, attempt, e);
    if (!rc)
        rc = put_back_pinned(j, NULL, e);
    if (!rc)
        rc = choose_kept(&c, e);
    if (!rc)
        rc = remove_manifests(&c, e);
    if (!rc)
        rc = remove_collected(&c, "manifests/", collect_torn, e);
    if (!rc)
        rc = remove_collected(&c, "chunks/", collect, e);
    if (!rc)
        /* cleaning runs only while no rank's save is under way */
        rc = remove_collected(&c, "gang/", collect, e);
    if (!rc)
        rc = remove_collected(&c, "fences/", collect_old_fence, e);
    if (!rc && keep.newest == 0)
        rc = remove_collected(&c, "damaged/", collect_any, e);
    if (!rc && c.named)
        named_end(c.named);
    if (!rc && ret_kept_bytes)
        *ret_kept_bytes = c.kept_bytes;
    smap_deinit(&c.kept);
    layout_ids_deinit(&c.removed_ids);
    if (c.n_read >= MANIFEST_LARGE)
        mem_trim();
    return rc ? err_wrap(e, "clean the checkpoints of job %" PRId64, j->job) : 0;
}

bool clean_for_space(const struct ckpt_job *j, int64_t attempt, struct ckpt_keep keep,
    const struct manifest *being_saved, const atomic_int *cancel)
{
    struct clean c = {.job = j, .attempt = attempt, .keep = keep, .cancel = cancel};
    struct layout_ids before = {0}, after = {0};
    struct err e;
    int rc = layout_list_ids(j, &before, &e);
    bool may = !rc && keep.newest > 1 && before.n >= (size_t)keep.newest;

    c.keep.newest--;
    if (may)
        rc = fence_check(j, attempt, &e);
    if (may && !rc)
        rc = put_back_pinned(j, NULL, &e);
    if (may && !rc)
        rc = choose_kept(&c, &e);
    if (may && !rc && being_saved)
        keep_objects(&c, being_saved);
    if (may && !rc)
        rc = remove_manifests(&c, &e);
    if (may && !rc)
        rc = remove_collected(&c, "chunks/", collect, &e);
    if (may && !rc)
        rc = layout_list_ids(j, &after, &e);
    if (rc)
        log_warn("could not make space in a full store", log_i("job", j->job), log_err(&e));
    bool gained = may && !rc && after.n < before.n;
    smap_deinit(&c.kept);
    layout_ids_deinit(&c.removed_ids);
    layout_ids_deinit(&before);
    layout_ids_deinit(&after);
    return gained;
}

/* ---- removing one checkpoint for a user ---- */

static int remove_one(const struct ckpt_job *j, struct ckpt_id id, struct err *e)
{
    struct layout_name manifest = layout_manifest(j, id), removing = layout_removing(j, id),
                       pin = layout_pin(j, id);
    const char *const names[] = {removing.s};
    struct err ignored;
    int64_t size;
    int rc = j->store->ops->stat(j->store, manifest.s, &size, e);

    if (rc == ERR_NOT_FOUND)
        return err_set(e, ERR_NOT_FOUND, "there is no such checkpoint");
    /* look for a pin before and after the manifest is condemned */
    for (int passes = 0; !rc && passes < 2; passes++) {
        int found = j->store->ops->stat(j->store, pin.s, &size, e);

        if (found == ERR_NOT_FOUND)
            rc = passes == 0 ? condemn(j, id, e) : 0;
        else
            rc = found ? found : err_set(e, ERR_CONFLICT, "it is pinned: unpin it first");
    }
    if (rc) {
        put_back(j, id, &ignored);
        return rc;
    }
    return j->store->ops->remove(j->store, names, 1, e);
}

/* Records the deletion, so that the next attempt does not report the checkpoint as lost. */
static int note_deleted(const struct ckpt_job *j, struct ckpt_id id, struct err *e)
{
    struct layout_name name = layout_deleted(j, id);
    int rc = j->store->ops->create(j->store, name.s, "", 0, e);

    return rc == ERR_CONFLICT ? 0 : rc;
}

int ckpt_remove(const struct ckpt_job *j, struct ckpt_id id, struct err *e)
{
    bool closed = false;
    int rc = layout_check_job(j, e);

    if (!rc)
        rc = ckpt_is_closed(j, &closed, e);
    if (!rc)
        rc = remove_one(j, id, e);
    if (!rc && !closed)
        rc = note_deleted(j, id, e);
    if (!rc && closed)
        rc = ckpt_clean(j, CKPT_CLOSED, (struct ckpt_keep){.newest = CKPT_KEEP_ALL}, NULL, NULL, e);
    return rc ? err_wrap(e, "remove checkpoint %" PRId64 ".%" PRId64 " of job %" PRId64, id.attempt,
                    id.sequence, j->job)
              : 0;
}
