/* SPDX-License-Identifier: Apache-2.0
 *
 * Saving: scan -> cut -> chunks -> scan again -> manifest. A few threads handle the chunks: each is
 * read, hashed, and found in the store or written; small files share objects, as pack.h says.
 *
 * Invariants (of ckpt.h), and where they are kept.
 *  1. The manifest is created after chunk_for_each has returned 0 and the store has flushed what
 *     was put, or found, below chunks/<own attempt>/: every chunk it names is durable.
 *  2. The fence is checked before the work, again right before the manifest is created, and once
 *     more after it: a manifest created while a later attempt claimed the job is not acknowledged.
 *  4. put_chunk only ever names objects below chunks/<own attempt>/.
 * A save captures one moment of the directory: if the scan after all reading differs from the scan
 * before, nothing is committed. A chunk of files that have not changed since the last save read it
 * (seen.h) is not read again.
 *
 * A save that fails or is killed leaves chunks that nothing names; the next save of the attempt
 * finds and uses them, and cleaning removes what is still unnamed. The program need not fsync the
 * directory: it is read through the page cache, and the copy in the store is durable.
 */
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "ckpt/clean.h"
#include "ckpt/gang.h"
#include "ckpt/save_deadline.h"
#include "ckpt/store/fence.h"
#include "ckpt/store/layout.h"
#include "ckpt/own.h"
#include "ckpt/pack.h"
#include "ckpt/scan.h"
#include "ckpt/seen.h"
#include "ckpt/snapshot.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define STEP_BYTES ((size_t)128 << 10) /* read and hashed at a time, to stay in the CPU cache */

/* Chunks that one thread handles at a time: one that is an object, or neighbours that are to be in
 * packs, with at most CKPT_CHUNK_BYTES together. */
struct save_part {
    size_t first, n;
};

struct save {
    const struct ckpt_job *job;
    const char *dir;                /* the source directory; NULL with a snapshot */
    struct ckpt_snapshot *snapshot; /* the source snapshot; NULL with a directory */
    int root_fd;
    struct scan scan;
    struct manifest manifest;    /* being built; scan has the stamps of its entries */
    struct manifest previous;    /* the newest in the store, or empty */
    struct own own;              /* content of chunks/<own attempt>/ */
    struct smap previous_chunks; /* hash -> its struct manifest_chunk: objects, packs included */
    struct packs packs;
    struct save_part *parts;
    size_t n_parts;
    atomic_int_least64_t stored_bytes, reused_bytes, unread_bytes;
    struct seen_save seen;
    int64_t deadline_ms, started_ms;  /* for storing chunks, monotonic; deadline 0 = none */
    int64_t total_bytes, read_bytes;  /* all content; content that is not known from stamps */
    struct ckpt_pace own_pace, *pace; /* pace->done_bytes counts towards read_bytes */
    struct gang_meeting gang;         /* gang.job is NULL without other ranks */
    struct ckpt_keep keep;            /* newest 0 = a full store removes no checkpoint for it */
};

/* The newest manifest shows which content the store has. Without it (none, damaged, written by a
 * later belay) the save is a full one. */
static int load_previous(struct save *s, struct err *e)
{
    struct layout_ids ids;
    struct ckpt_id newest = {0};
    struct err why;
    int rc = layout_list_ids(s->job, &ids, e);
    size_t n = ids.n;

    if (n)
        newest = ids.v[0];
    layout_ids_deinit(&ids);
    if (rc)
        return rc;
    if (n && layout_compare_ids(newest, s->manifest.id) >= 0)
        return err_set(e, ERR_CONFLICT,
            "checkpoint %" PRId64 ".%" PRId64 " of job %" PRId64 " exists already; %" PRId64
            "-%" PRId64 " would not be the newest",
            newest.attempt, newest.sequence, s->job->job, s->manifest.id.attempt,
            s->manifest.id.sequence);
    if (n && layout_read_chunks(s->job, newest, &s->previous, &why))
        log_warn("the previous checkpoint cannot be read: saving everything",
            log_i("job", s->job->job), log_err(&why));
    /* Content encrypted with another key, or unencrypted, has other bytes. */
    if (s->previous.key != s->manifest.key)
        manifest_deinit(&s->previous);
    for (size_t i = 0; i < s->previous.n_chunks; i++)
        if (!s->previous.chunks[i].pack)
            smap_put(&s->previous_chunks, s->previous.chunks[i].sha256, &s->previous.chunks[i]);
    for (size_t i = 0; i < s->previous.n_packs; i++)
        smap_put(&s->previous_chunks, s->previous.packs[i].sha256, &s->previous.packs[i]);
    return 0;
}

static int plan_tree(struct save *s, struct err *e)
{
    int rc = scan_tree(s->root_fd, &s->manifest, &s->scan, e);

    if (rc)
        return rc;
    manifest_cut(&s->manifest);
    rc = manifest_lay_out(&s->manifest, e);
    if (!rc)
        seen_plan(&s->seen, &s->manifest, &s->scan);
    return rc;
}

static void plan_parts(struct save *s)
{
    const struct manifest *m = &s->manifest;
    struct save_part *p = NULL;
    int64_t bytes = 0;

    s->parts = mem_array(m->n_chunks + 1, sizeof(*p));
    for (size_t i = 0; i < m->n_chunks; i++) {
        if (!p || !m->chunks[i].pack || !m->chunks[p->first].pack ||
            bytes + m->chunks[i].size > (int64_t)CKPT_CHUNK_BYTES) {
            p = &s->parts[s->n_parts++];
            p->first = i;
            bytes = 0;
        }
        p->n++;
        bytes += m->chunks[i].size;
    }
}

static void plan_chunks(struct save *s)
{
    plan_parts(s);
    s->total_bytes = manifest_bytes(&s->manifest);
    for (size_t i = 0; i < s->manifest.n_chunks; i++)
        s->read_bytes +=
            seen_find(&s->seen, i, &s->manifest.chunks[i]) ? 0 : s->manifest.chunks[i].size;
}

static int check_time(struct save *s, struct err *e)
{
    int64_t now = clock_mono(&clock_system).ms, done = atomic_load(&s->pace->done_bytes);

    if (s->deadline_ms == 0)
        return 0;
    return save_deadline_check(&(struct save_deadline){.total_bytes = s->total_bytes,
                                   .left_bytes = s->read_bytes - done,
                                   .done_bytes = done,
                                   .took_ms = now - s->started_ms,
                                   .time_left_ms = s->deadline_ms - now},
        e);
}

/* ---- reading ---- */

struct reading {
    struct save *save;
    size_t chunk;
    struct chunk_work *work;
    char *to;                          /* where the chunk's content goes */
    const struct manifest_entry *file; /* that fd is open on; NULL if none */
    int fd;
};

static void stop_reading(struct reading *r)
{
    if (r->file)
        close(r->fd);
    r->file = NULL;
}

static int open_file(struct reading *r, const struct manifest_entry *file, struct err *e)
{
    const struct save *s = r->save;
    int rc = scan_open_entry(
        s->root_fd, &s->scan, (size_t)(file - s->manifest.entries), file->path, &r->fd, e);

    if (!rc)
        r->file = file;
    return rc;
}

static int read_piece(void *ctx, const struct manifest_piece *p, struct err *e)
{
    struct reading *r = ctx;
    struct save *s = r->save;
    char *to = r->to + p->chunk_offset;
    size_t entry = (size_t)(p->file - s->manifest.entries);
    int rc = 0;

    if (!s->snapshot && r->file != p->file) {
        stop_reading(r);
        rc = open_file(r, p->file, e);
        if (!rc)
            seen_reads(&s->seen, r->chunk, r->fd);
    }
    for (size_t at = 0, n; !rc && at < p->n; at += n) {
        int64_t offset = p->file_offset + (int64_t)at;

        n = p->n - at < STEP_BYTES ? p->n - at : STEP_BYTES;
        rc = s->snapshot ? snapshot_read(s->snapshot, entry, p->file, to + at, n, offset, e)
                         : scan_read(r->fd, to + at, n, offset, p->file->path, e);
        if (!rc)
            chunk_hash_add(r->work, to + at, n);
    }
    return rc;
}

/* Reads chunk i to `to`, and sets its hash. */
static int read_chunk(struct save *s, struct chunk_work *w, size_t i, char *to, struct err *e)
{
    struct manifest_chunk *c = &s->manifest.chunks[i];
    struct reading r = {.save = s, .chunk = i, .work = w, .to = to};
    int rc;

    chunk_hash_begin(w);
    rc = manifest_each_piece(&s->manifest, c, read_piece, &r, e);
    stop_reading(&r);
    if (rc)
        return rc;
    chunk_hash_end(w, c->sha256);
    atomic_fetch_add(&s->pace->done_bytes, c->size);
    return 0;
}

/* ---- storing ---- */

/* The content's stored size if our own attempt has the object, else 0. An object of an impossible
 * size, or another than the previous manifest says (expected; 0 = any), is damaged: it is set
 * aside, so that it is written again. */
static int64_t find_own(struct save *s, const struct layout_name *name,
    const struct manifest_chunk *c, int64_t expected)
{
    struct err why;
    int64_t size = own_size(&s->own, name->s),
            stored = size - layout_chunk_bytes(s->manifest.key, 0);

    if (size < 0)
        return 0;
    if (stored >= 1 && stored <= c->size && (!expected || stored == expected))
        return stored;
    err_set(&why, ERR_CORRUPT, "it has %" PRId64 " bytes", size);
    layout_set_aside(s->job, name->s, &why);
    own_remove(&s->own, name->s);
    return 0;
}

/* As find_own, for an object that may have been created since the store was listed. */
static int find_new(struct save *s, const struct layout_name *name, const struct manifest_chunk *c,
    int64_t *ret_stored, struct err *e)
{
    int64_t size;
    int rc = s->job->store->ops->stat(s->job->store, name->s, &size, e);

    *ret_stored = 0;
    if (rc)
        return rc == ERR_NOT_FOUND ? 0 : rc;
    own_add(&s->own, name->s, size);
    *ret_stored = find_own(s, name, c, 0);
    return 0;
}

/* Links content of an earlier attempt to a name of this one, if it is stored as its manifest
 * says. */
static int link_previous(struct save *s, const struct layout_name *name,
    const struct manifest_chunk *known, struct err *e)
{
    struct layout_name from =
        layout_chunk(s->job, s->previous.key, s->previous.id.attempt, known->sha256);
    int64_t size;
    int rc = s->job->store->ops->stat(s->job->store, from.s, &size, e);

    if (rc)
        return rc == ERR_NOT_FOUND ? 0 : rc;
    if (size != layout_chunk_bytes(s->previous.key, known->stored))
        return 0;
    rc = s->job->store->ops->link(s->job->store, from.s, name->s, e);
    return rc == ERR_CONFLICT || rc == ERR_NOT_FOUND || rc == ERR_UNSUPPORTED ? 0 : rc;
}

static int write_chunk(struct save *s, struct chunk_work *w, const struct layout_name *name,
    struct manifest_chunk *c, struct err *e)
{
    const struct crypt_key *key = s->manifest.key;
    size_t stored, n;
    void *p;
    int rc;

    chunk_pack(w, (size_t)c->size, &p, &stored);
    n = (size_t)layout_chunk_bytes(key, (int64_t)stored);
    if (key) {
        struct layout_name what = layout_chunk_seal(s->job, name);

        crypt_seal(key, what.s, p, stored);
    }
    bool has_hash = !key && p == w->content && !c->pack; /* a pack's is another one */
    rc = store_put(s->job->store, name->s, p, n, has_hash ? c->sha256 : NULL, e);
    if (rc == ERR_CONFLICT) { /* another chunk of this save has the same content */
        rc = find_new(s, name, c, &c->stored, e);
        if (!rc && !c->stored)
            rc = err_set(e, ERR_UNAVAILABLE, "chunk %s has disappeared from the store", name->s);
        return rc;
    }
    if (rc)
        return rc;
    own_add(&s->own, name->s, (int64_t)n);
    c->stored = (int64_t)stored;
    atomic_fetch_add(&s->stored_bytes, (int64_t)n);
    return 0;
}

/* Stores the content in w below this attempt, durable once flushed, and fills c. */
static int put_chunk(struct save *s, struct chunk_work *w, struct manifest_chunk *c, struct err *e)
{
    struct layout_name name =
        layout_chunk(s->job, s->manifest.key, s->manifest.id.attempt, c->sha256);
    const struct manifest_chunk *known = smap_get(&s->previous_chunks, c->sha256);
    bool known_own = known && s->previous.id.attempt == s->manifest.id.attempt;
    int rc = 0;

    c->stored = find_own(s, &name, c, known_own ? known->stored : 0);
    if (!c->stored && known && !known_own) {
        rc = link_previous(s, &name, known, e);
        if (!rc)
            rc = find_new(s, &name, c, &c->stored, e);
    }
    if (rc || !c->stored)
        return rc ? rc : write_chunk(s, w, &name, c, e);
    atomic_fetch_add(&s->reused_bytes, c->size);
    return 0;
}

/* True if the unread chunk is still in the store. */
static bool find_unread(struct save *s, size_t i)
{
    struct manifest_chunk *c = &s->manifest.chunks[i];
    struct layout_name name;
    bool found;

    if (!seen_find(&s->seen, i, c))
        return false;
    if (c->pack) {
        found = packs_find(&s->packs, c);
    } else {
        name = layout_chunk(s->job, s->manifest.key, s->manifest.id.attempt, c->sha256);
        c->stored = find_own(s, &name, c, c->stored);
        found = c->stored != 0;
    }
    atomic_fetch_add(&s->unread_bytes, found ? c->size : 0);
    atomic_fetch_add(&s->reused_bytes, found ? c->size : 0);
    return found;
}

static int save_object(struct save *s, struct chunk_work *w, size_t i, struct err *e)
{
    int rc = check_time(s, e);

    if (rc || find_unread(s, i))
        return rc;
    rc = read_chunk(s, w, i, w->content, e);
    return rc ? rc : put_chunk(s, w, &s->manifest.chunks[i], e);
}

/* Adds a chunk that is to be in a pack to c, whose bytes are w's, unless an old pack has it. */
static int gather(
    struct save *s, struct chunk_work *w, size_t i, struct pack_content *c, struct err *e)
{
    struct manifest_chunk *chunk = &s->manifest.chunks[i];
    int rc = check_time(s, e);

    if (rc || find_unread(s, i))
        return rc;
    rc = read_chunk(s, w, i, (char *)w->content + c->n_bytes, e);
    if (rc)
        return rc;
    if (!packs_find(&s->packs, chunk) && packs_claim(&s->packs, i))
        pack_append(c, (uint32_t)i, (size_t)chunk->size);
    else
        atomic_fetch_add(&s->reused_bytes, chunk->size);
    return 0;
}

/* Stores the pack with this content, which is in w. */
static int put_pack(
    struct save *s, struct chunk_work *w, const struct pack_content *c, struct err *e)
{
    struct manifest_chunk pack = {.size = (int64_t)c->n_bytes, .pack = MANIFEST_NO_PACK};
    /* without packs, neighbouring files shared chunks: this may be the content of one */
    bool by_content = s->previous.n_chunks && !s->previous.n_packs;
    int rc;

    if (by_content)
        chunk_hash(w->content, c->n_bytes, pack.sha256);
    else
        packs_name(&s->packs, c, w, &pack);
    rc = put_chunk(s, w, &pack, e);
    if (!rc)
        packs_place(&s->packs, c, &pack);
    return rc;
}

static int save_part(void *ctx, struct chunk_work *w, size_t i, struct err *e)
{
    struct save *s = ctx;
    const struct save_part *p = &s->parts[i];
    struct pack_content c = {.bytes = w->content};
    bool is_whole;
    int rc = 0;

    if (!s->manifest.chunks[p->first].pack)
        return save_object(s, w, p->first, e);
    for (size_t k = 0; !rc && k < p->n; k++)
        rc = gather(s, w, p->first + k, &c, e);
    is_whole = c.n_bytes >= PACK_ALONE_BYTES;
    if (!rc && c.n_bytes && (is_whole || packs_add_rest(&s->packs, &c))) {
        w->content = c.bytes;
        rc = put_pack(s, w, &c, e);
    }
    free(c.chunks);
    return rc;
}

/* The last pack. */
static int save_rest(void *ctx, struct chunk_work *w, size_t i, struct err *e)
{
    struct save *s = ctx;

    (void)i;
    memcpy(w->content, s->packs.rest.bytes, s->packs.rest.n_bytes);
    return put_pack(s, w, &s->packs.rest, e);
}

/* Finds an old pack that is worth keeping in the store, or links it to a name of this attempt. */
static int find_pack(void *ctx, struct chunk_work *w, size_t i, struct err *e)
{
    struct save *s = ctx;
    const struct manifest_chunk *pack = &s->previous.packs[i];
    struct layout_name name =
        layout_chunk(s->job, s->manifest.key, s->manifest.id.attempt, pack->sha256);
    bool is_own = s->previous.id.attempt == s->manifest.id.attempt;
    int64_t stored;
    int rc = 0;

    (void)w;
    if (!s->packs.old[i].is_used)
        return 0;
    stored = find_own(s, &name, pack, pack->stored);
    if (!stored && !is_own) {
        rc = link_previous(s, &name, pack, e);
        if (!rc)
            rc = find_new(s, &name, pack, &stored, e);
    }
    s->packs.old[i].is_used = stored == pack->stored;
    return rc;
}

/* Flushes even if this save wrote nothing: chunks that it found may be of an unfinished save that
 * did not flush them. */
static int flush_chunks(struct save *s, struct err *e)
{
    struct layout_name prefix = layout_chunk(s->job, s->manifest.key, s->manifest.id.attempt, "");

    return s->manifest.n_chunks ? store_flush(s->job->store, prefix.s, e) : 0;
}

static int store_chunks(struct save *s, const atomic_int *cancel, struct err *e)
{
    struct layout_name prefix = layout_chunk(s->job, s->manifest.key, s->manifest.id.attempt, "");
    struct err ignored;
    int rc;

    s->started_ms = clock_mono(&clock_system).ms;
    atomic_store(&s->pace->started_ms, s->started_ms);
    atomic_store(&s->pace->total_bytes, s->read_bytes);
    rc = own_init(&s->own, s->job->store, prefix.s, e);
    packs_init(&s->packs, &s->manifest, &s->previous, s->gang.job ? s->gang.gang.nodes : 1,
        s->deadline_ms == 0);
    if (!rc)
        rc = chunk_for_each(s->previous.n_packs, find_pack, s, cancel, e);
    if (!rc)
        rc = chunk_for_each(s->n_parts, save_part, s, cancel, e);
    if (!rc)
        rc = chunk_for_each(s->packs.rest.n_bytes > 0, save_rest, s, cancel, e);
    if (!rc)
        packs_finish(&s->packs);
    packs_deinit(&s->packs);
    own_deinit(&s->own);
    if (rc && rc != ERR_CANCELLED)
        flush_chunks(s, &ignored); /* so that the next save finds them */
    if (!rc)
        rc = s->snapshot ? snapshot_check(s->snapshot, &s->manifest, e)
                         : scan_check_unchanged(s->root_fd, &s->manifest, &s->scan, e);
    if (!rc)
        seen_end(&s->seen, &s->manifest);
    return rc ? rc : flush_chunks(s, e);
}

static int commit(struct save *s, struct err *e)
{
    struct manifest total;
    int rc;

    s->manifest.saved_at = clock_wall(&clock_system);
    if (!s->gang.job)
        return layout_commit(s->job, &s->manifest, e);
    rc = gang_commit(&s->gang, &s->manifest, &total, e);
    if (rc)
        return rc;
    manifest_deinit(&s->manifest);
    s->manifest = total;
    return 0;
}

static int check_arguments(const struct ckpt_job *j, struct ckpt_id id, int64_t progress,
    const struct ckpt_gang *gang, struct err *e)
{
    if (gang->nodes > CKPT_GANG_MAX || gang->rank < 0 ||
        (gang->nodes > 0 && gang->rank >= gang->nodes))
        return err_set(e, ERR_INVALID, "rank %" PRId32 " of %" PRId32 ": out of range", gang->rank,
            gang->nodes);
    if (id.attempt < 1 || id.attempt > CKPT_NUMBER_MAX || id.sequence < 1 ||
        id.sequence > CKPT_NUMBER_MAX || progress < -1)
        return err_set(e, ERR_INVALID,
            "checkpoint %" PRId64 ".%" PRId64 ", progress %" PRId64 ": out of range", id.attempt,
            id.sequence, progress);
    return layout_check_job(j, e);
}

/* Removes the oldest checkpoint from a full store. being_saved: the new checkpoint's manifest if
 * all of its chunks are stored; if NULL, chunks stored so far are removed, too. */
static bool give_up_oldest(const struct save *s, const struct manifest *being_saved,
    const atomic_int *cancel, const struct err *full)
{
    if (!clean_for_space(s->job, s->manifest.id.attempt, s->keep, being_saved, cancel))
        return false;
    log_warn("the store is full: removed the oldest checkpoint to make space for a new one",
        log_i("job", s->job->job), log_i("keep", s->keep.newest), log_err(full));
    return true;
}

/* gang_meeting.make_space: called on rank 0 when all ranks have stored their parts. */
static bool give_up_for_parts(void *ctx, const struct manifest *total, const struct err *full)
{
    const struct save *s = ctx;

    return give_up_oldest(s, total, s->gang.cancel, full);
}

static int save_planned(struct save *s, const atomic_int *cancel, struct err *e)
{
    int rc;

    plan_chunks(s);
    rc = store_chunks(s, cancel, e);
    if (rc == ERR_NO_SPACE && !s->gang.job && give_up_oldest(s, NULL, cancel, e)) {
        /* cleaning has removed all unnamed chunks, including this save's */
        atomic_store(&s->pace->done_bytes, 0);
        atomic_store(&s->stored_bytes, 0);
        atomic_store(&s->reused_bytes, 0);
        atomic_store(&s->unread_bytes, 0);
        rc = store_chunks(s, cancel, e);
    }
    scan_deinit(&s->scan); /* its memory is needed for the manifest's text */
    if (rc)
        return rc;
    rc = commit(s, e);
    if (rc == ERR_NO_SPACE && !s->gang.job && give_up_oldest(s, &s->manifest, cancel, e))
        rc = commit(s, e);
    return rc;
}

static int save_tree(
    struct save *s, struct ckpt_seen *seen, const atomic_int *cancel, struct err *e)
{
    int rc;

    s->root_fd = open(s->dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (s->root_fd < 0)
        return err_errno(e, errno, "open the checkpoint directory %s", s->dir);
    rc = fence_check(s->job, s->manifest.id.attempt, e);
    if (!rc)
        rc = load_previous(s, e);
    if (seen) {
        seen_begin(&s->seen, s->root_fd);
        seen_attach(&s->seen, seen);
    }
    if (!rc)
        rc = plan_tree(s, e);
    if (!rc)
        rc = save_planned(s, cancel, e);
    close(s->root_fd);
    return rc;
}

static int save_kept(
    struct save *s, struct ckpt_seen *seen, const atomic_int *cancel, struct err *e)
{
    int rc = fence_check(s->job, s->manifest.id.attempt, e);

    seen_attach(&s->seen, seen);
    if (!rc)
        rc = load_previous(s, e);
    return rc ? rc : save_planned(s, cancel, e);
}

static int join_gang(
    struct save *s, const struct ckpt_save_with *with, const atomic_int *cancel, struct err *e)
{
    int64_t deadline_ms =
        with->deadline_ms ? with->deadline_ms : clock_mono(&clock_system).ms + GANG_WAIT_MS;
    int rc;

    s->gang = (struct gang_meeting){.job = s->job,
        .gang = with->gang,
        .id = s->manifest.id,
        .progress = s->manifest.progress,
        .program_continues = s->snapshot || with->refused,
        .refused = with->refused,
        .deadline_ms = deadline_ms,
        .cancel = cancel,
        .make_space = give_up_for_parts,
        .space_ctx = s};
    rc = gang_join(&s->gang, e);
    s->manifest.id = s->gang.id;
    return rc;
}

/* Whether other ranks may be waiting for this one. A rank that failed before it joined reports its
 * own sequence, which is usually that of the open save. */
static bool must_report_failure(const struct save *s, int rc)
{
    const struct gang_meeting *g = &s->gang;
    bool by_itself = rc != ERR_TIMEOUT && rc != ERR_CANCELLED && !g->left_out && g->gang.rank > 0;

    return g->job && (g->joined || by_itself);
}

/* In a gang a save that does not fit fails, because other ranks may be storing chunks that no
 * manifest names yet. Space is made for the next save once the failure is recorded durably; if not
 * even that record fits, nothing is removed. */
static int fail_gang(const struct save *s, struct err *e)
{
    const struct gang_meeting *g = &s->gang;

    /* Chunks are missing because rank 0 made space after a failure: return that failure. It may
     * have removed them between two calls of this rank (ERR_UNAVAILABLE). */
    if (e->kind == ERR_NOT_FOUND || e->kind == ERR_UNAVAILABLE)
        gang_reason(g, e);
    bool is_reported = gang_fail(g, e);
    if (is_reported && e->kind == ERR_NO_SPACE && g->gang.rank == 0)
        give_up_oldest(s, NULL, g->cancel, e);
    return e->kind;
}

static int run_save(struct save *s, struct ckpt_id id, int64_t progress, const atomic_int *cancel,
    const struct ckpt_save_with *with, struct ckpt_stats *ret_stats, struct err *e)
{
    struct mono start = clock_mono(&clock_system);
    int rc = check_arguments(s->job, id, progress, &with->gang, e);

    if (rc)
        return rc;
    s->manifest.job = s->job->job;
    s->manifest.id = id;
    s->manifest.progress = progress;
    STR_COPY(s->manifest.cluster, s->job->cluster);
    if (s->job->crypt && s->job->crypt->encrypts && s->job->crypt->n)
        s->manifest.key = &s->job->crypt->keys[0];
    s->deadline_ms = with->deadline_ms;
    s->keep = with->keep;
    s->pace = with->pace ? with->pace : &s->own_pace;
    atomic_store(&s->pace->total_bytes, -1);
    atomic_store(&s->pace->done_bytes, 0);
    rc = with->gang.nodes > 0 ? join_gang(s, with, cancel, e) : 0;
    *ret_stats = (struct ckpt_stats){
        .sequence = s->gang.joined ? s->gang.id.sequence : 0, .left_out = s->gang.left_out};
    if (!rc)
        rc =
            s->snapshot ? save_kept(s, with->seen, cancel, e) : save_tree(s, with->seen, cancel, e);
    if (rc && must_report_failure(s, rc))
        rc = fail_gang(s, e);
    if (!rc && with->seen)
        named_add(seen_named(with->seen), s->job, &s->manifest);
    if (rc)
        return err_wrap(e, "save checkpoint %" PRId64 ".%" PRId64 " of job %" PRId64, id.attempt,
            s->manifest.id.sequence, s->job->job);
    *ret_stats = (struct ckpt_stats){
        .sequence = s->manifest.id.sequence,
        .files = manifest_files(&s->manifest),
        .bytes = manifest_bytes(&s->manifest),
        .stored_bytes = atomic_load(&s->stored_bytes),
        .reused_bytes = atomic_load(&s->reused_bytes),
        .unread_bytes = atomic_load(&s->unread_bytes),
        .took_ms = clock_mono(&clock_system).ms - start.ms,
    };
    return 0;
}

static void save_deinit(struct save *s)
{
    bool is_large = s->manifest.n_entries + s->previous.n_chunks >= MANIFEST_LARGE;

    manifest_deinit(&s->manifest);
    manifest_deinit(&s->previous);
    smap_deinit(&s->previous_chunks);
    free(s->parts);
    scan_deinit(&s->scan);
    seen_save_deinit(&s->seen);
    if (is_large)
        mem_trim();
}

int ckpt_save(const struct ckpt_job *j, struct ckpt_id id, const char *dir, int64_t progress,
    const atomic_int *cancel, struct ckpt_stats *ret_stats, struct err *e)
{
    return ckpt_save_with(j, id, dir, progress, cancel, &(struct ckpt_save_with){0}, ret_stats, e);
}

int ckpt_save_with(const struct ckpt_job *j, struct ckpt_id id, const char *dir, int64_t progress,
    const atomic_int *cancel, const struct ckpt_save_with *with, struct ckpt_stats *ret_stats,
    struct err *e)
{
    struct save s = {.job = j, .dir = dir};
    int rc = run_save(&s, id, progress, cancel, with, ret_stats, e);

    save_deinit(&s);
    return rc;
}

int ckpt_save_snapshot(const struct ckpt_job *j, struct ckpt_id id, struct ckpt_snapshot *snapshot,
    int64_t progress, const atomic_int *cancel, const struct ckpt_save_with *with,
    struct ckpt_stats *ret_stats, struct err *e)
{
    struct save s = {
        .job = j, .snapshot = snapshot, .manifest = snapshot->manifest, .seen = snapshot->seen};
    int rc;

    snapshot->manifest = (struct manifest){0};
    snapshot->seen = (struct seen_save){0};
    rc = run_save(&s, id, progress, cancel, with, ret_stats, e);
    save_deinit(&s);
    return rc;
}

int64_t ckpt_pace_left_ms(const struct ckpt_pace *pace)
{
    int64_t total = atomic_load(&pace->total_bytes), done = atomic_load(&pace->done_bytes);
    int64_t took = clock_mono(&clock_system).ms - atomic_load(&pace->started_ms);

    if (total < 0 || (done == 0 && total > 0))
        return -1;
    return total == 0 ? 0 : (int64_t)((double)took * (double)(total - done) / (double)done);
}
