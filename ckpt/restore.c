/* SPDX-License-Identifier: Apache-2.0
 *
 * Restoring: for the newest checkpoint, then for earlier ones: read the manifest, build the tree in
 * a directory next to the target while verifying every chunk, and only then exchange the two by a
 * rename.
 *
 * Sources of a chunk, nearest first: already in place, from an interrupted restore; another tree of
 * this machine (with->nearby); the store. In every case its hash is verified.
 *
 *     dir              what the program sees
 *     dir.restoring    the tree being built. No other user ever had access, so its files may be
 *                      completed
 *     dir.restores     the hash of its manifest. Written once the tree is empty and removed before
 *                      the exchange: if it differs or is missing, dir.restoring is not used
 *
 * Invariant 3 of ckpt.h is kept here: nothing unverified ever appears at the target, and a
 * checkpoint is set aside only if its data is not what was saved (ERR_CORRUPT). Any other error
 * leaves store and target unchanged.
 *
 * The restored files are not fsynced: a crash of this machine ends the attempt, and the next one
 * restores again. Ownership and attributes other than user.* are not kept.
 */
#include "base/fs.h"
#include "base/mem.h"
#include "base/prng.h"
#include "base/str.h"
#include "ckpt/clone.h"
#include "ckpt/entry.h"
#include "ckpt/gang.h"
#include "ckpt/store/direct.h"
#include "ckpt/store/layout.h"
#include "ckpt/nearby.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HOLE_BYTES 4096
#define GANG_ROUNDS_MAX 100 /* each goes back by a checkpoint that failed to verify on some rank */

struct restore {
    const struct ckpt_job *job;
    const char *temp, *dir; /* build directory, target */
    const char *mark;       /* dir.restores; NULL if an interrupted restore is not continued */
    bool is_new;            /* dir must be missing or empty */
    struct ckpt_gang gang;
    const char *ranks_dir; /* may be NULL */
    int64_t from_attempt;
    bool only_reads;
    const atomic_int *cancel;
    struct ckpt_pace *pace;          /* may be NULL */
    int nearby[CKPT_NEARBY_MAX + 1]; /* descriptors of trees that may have the same chunks */
    size_t n_nearby, n_given;        /* the first n_given are the caller's */
    struct manifest manifest;
    struct manifest_objects objects;
    unsigned char *whole; /* per entry: its whole content is in one chunk */
    int root_fd;          /* of the directory being built; -1 = verify only */
    bool resumes;         /* continues an interrupted restore of this manifest */
    mode_t masked;        /* bits of a mode that a new file does not get */
    atomic_bool no_clones[CKPT_NEARBY_MAX + 2]; /* sources that share no blocks; restore_clone */
    struct direct_choice choice;
    atomic_llong reused; /* bytes of content not read from the store */
};

/* Marks each file whose content lies in one chunk and is therefore written with a single open. */
static unsigned char *find_whole(const struct manifest *m)
{
    unsigned char *whole = mem_array(m->n_entries + 1, 1);
    size_t c = 0;

    for (size_t i = 0; i < m->n_entries; i++) {
        const struct manifest_entry *entry = &m->entries[i];

        if (entry->type != MANIFEST_FILE || entry->size == 0 ||
            manifest_content(entry) != entry->size)
            continue;
        while (m->chunks[c].offset + m->chunks[c].size <= entry->offset)
            c++;
        whole[i] = entry->offset + entry->size <= m->chunks[c].offset + m->chunks[c].size;
    }
    return whole;
}

struct writing {
    const struct restore *restore;
    struct direct_choice *choice;
    const char *content;
    const struct manifest_entry *file; /* that fd is open on; NULL if none */
    int fd;
};

static void stop_writing(struct writing *w)
{
    if (w->file)
        close(w->fd);
    w->file = NULL;
}

/* Whether a file in one chunk gets its mode when it is created. (Attributes can be set only on a
 * file that its owner may write to.) */
static bool has_mode_at_once(const struct restore *r, const struct manifest_entry *file)
{
    bool has_xattrs = file->extra && file->extra->n_xattrs;

    return !has_xattrs && ((mode_t)file->mode & (r->masked | ~(mode_t)0777)) == 0;
}

static int open_file(
    struct writing *w, const struct manifest_entry *file, bool is_whole, struct err *e)
{
    bool has_mode = is_whole && has_mode_at_once(w->restore, file);
    int root_fd = w->restore->root_fd, fd;

    if (is_whole && w->restore->resumes)
        unlinkat(root_fd, file->path, 0);
    fd = openat(root_fd, file->path,
        O_WRONLY | O_NOFOLLOW | O_CLOEXEC | (is_whole ? O_CREAT | O_EXCL : 0),
        has_mode ? (mode_t)file->mode : 0600);
    if (fd < 0)
        return err_errno(e, errno, "open '%.300s' of the checkpoint", file->path);
    w->file = file;
    w->fd = fd;
    return 0;
}

/* Does the work of entry_finish while the file is open. */
static int finish_new(int fd, const struct manifest_entry *file, bool has_mode, struct err *e)
{
    struct entry_times times = entry_times(file);
    int rc = entry_set_xattrs(fd, file, e);

    if (!rc && ((!has_mode && fchmod(fd, (mode_t)file->mode)) || futimens(fd, times.v)))
        rc = err_errno(e, errno, "finish '%.300s' of the checkpoint", file->path);
    return rc;
}

static bool is_zero(const char *p, size_t n)
{
    return n == 0 || (p[0] == 0 && memcmp(p, p + 1, n - 1) == 0);
}

/* Leaves blocks of zeros as holes, for holes too small to be recorded by the save. */
static int write_sparse(
    struct direct_choice *choice, int fd, const char *p, size_t n, int64_t offset, struct err *e)
{
    int rc = 0;

    while (!rc && n > 0) {
        size_t block = HOLE_BYTES - (size_t)(offset % HOLE_BYTES);

        block = block < n ? block : n;
        if (!is_zero(p, block))
            rc = direct_write_at(choice, fd, p, block, offset, e);
        p += block;
        offset += (int64_t)block;
        n -= block;
    }
    return rc;
}

static int write_piece(void *ctx, const struct manifest_piece *p, struct err *e)
{
    struct writing *w = ctx;
    bool is_sparse = p->file->extra && p->file->extra->is_sparse;
    bool is_whole = w->restore->whole[p->file - w->restore->manifest.entries];
    int rc = 0;

    if (w->file != p->file) {
        stop_writing(w);
        rc = open_file(w, p->file, is_whole, e);
    }
    if (!rc && is_sparse)
        rc = write_sparse(w->choice, w->fd, w->content + p->chunk_offset, p->n, p->file_offset, e);
    else if (!rc)
        rc = direct_write_at(
            w->choice, w->fd, w->content + p->chunk_offset, p->n, p->file_offset, e);
    if (rc)
        rc = err_wrap(e, "write '%.300s' of the checkpoint", p->file->path);
    return rc || !is_whole ? rc
                           : finish_new(w->fd, p->file, has_mode_at_once(w->restore, p->file), e);
}

/* Repeats finish_new for a file in one chunk: an interrupted restore may not have reached it. */
static int finish_piece(void *ctx, const struct manifest_piece *p, struct err *e)
{
    const struct restore *r = ctx;
    int fd, rc = 0;

    if (!r->whole[p->file - r->manifest.entries])
        return 0;
    fd = openat(r->root_fd, p->file->path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fchmod(fd, 0600))
        rc = err_errno(e, errno, "finish '%.300s' of the checkpoint", p->file->path);
    if (!rc)
        rc = finish_new(fd, p->file, false, e);
    if (fd >= 0)
        close(fd);
    return rc;
}

/* True if the chunk is already in place. */
static bool is_in_place(struct restore *r, const struct manifest_chunk *c, struct chunk_work *w)
{
    struct err ignored;

    return r->resumes && nearby_read(r->root_fd, &r->manifest, c, w) &&
           manifest_each_piece(&r->manifest, c, finish_piece, r, &ignored) == 0;
}

static int write_chunk(
    struct restore *r, const struct manifest_chunk *c, const void *content, struct err *e)
{
    struct writing writing = {.restore = r, .choice = &r->choice, .content = content};
    int rc;

    if (r->root_fd < 0)
        return 0;
    rc = manifest_each_piece(&r->manifest, c, write_piece, &writing, e);
    stop_writing(&writing);
    return rc;
}

/* Restores c by sharing the blocks of the tree nearby[from] or, if that is n_nearby, of its object
 * in the store. */
static bool restore_clone(
    struct restore *r, const struct manifest_chunk *c, struct chunk_work *w, size_t from)
{
    struct clone_source source = {.never = &r->no_clones[from]};
    struct layout_name name;

    if (r->root_fd < 0)
        return false;
    if (from < r->n_nearby) {
        source.root_fd = r->nearby[from];
    } else {
        if (r->manifest.key || c->stored != c->size)
            return false;
        name = layout_chunk(r->job, NULL, r->manifest.id.attempt, c->sha256);
        source.store = r->job->store;
        source.name = name.s;
    }
    return clone_chunk(&source, r->root_fd, &r->manifest, c, w);
}

/* Restores c if it is in place, or *ret_found is true and its content in w, from nearby. */
static bool is_here(
    struct restore *r, const struct manifest_chunk *c, struct chunk_work *w, bool *ret_in_place)
{
    bool is_nearby = false;

    *ret_in_place = is_in_place(r, c, w);
    for (size_t i = 0; i < r->n_nearby && !*ret_in_place; i++)
        *ret_in_place = restore_clone(r, c, w, i);
    for (size_t i = 0; i < r->n_nearby && !*ret_in_place && !is_nearby; i++)
        is_nearby = nearby_read(r->nearby[i], &r->manifest, c, w);
    if (*ret_in_place || is_nearby)
        atomic_fetch_add(&r->reused, c->size);
    return *ret_in_place || is_nearby;
}

/* Restores a chunk that needs no reading from the store; *ret_done says if it was one. */
static int restore_here(struct restore *r, const struct manifest_chunk *c, struct chunk_work *w,
    bool *ret_done, struct err *e)
{
    bool in_place;

    *ret_done = is_here(r, c, w, &in_place);
    return *ret_done && !in_place ? write_chunk(r, c, w->content, e) : 0;
}

/* Restores all chunks of object i of r->objects, which is read if one of them needs it. */
static int restore_object(void *ctx, struct chunk_work *w, size_t i, struct err *e)
{
    struct restore *r = ctx;
    const struct manifest *m = &r->manifest;
    size_t first = r->objects.first[i], n = r->objects.first[i + 1] - first, n_left = 0;
    const uint32_t *chunks = r->objects.chunks + first;
    uint32_t *left = mem_array(n + 1, sizeof(*left));
    const void *content = NULL;
    bool is_pack = i < m->n_packs;
    int rc = 0;

    for (size_t k = 0; !rc && k < n; k++) {
        bool done;

        rc = restore_here(r, &m->chunks[chunks[k]], w, &done, e);
        if (!done)
            left[n_left++] = chunks[k];
    }
    if (!rc && n_left && !is_pack && restore_clone(r, &m->chunks[left[0]], w, r->n_nearby))
        n_left = 0;
    if (!rc && n_left)
        rc = is_pack ? layout_read_pack(r->job, m, &m->packs[i], left, n_left, w, &content, e)
                     : layout_read_chunk(r->job, m, &m->chunks[left[0]], w, &content, e);
    for (size_t k = 0; !rc && k < n_left; k++) {
        const struct manifest_chunk *c = &m->chunks[left[k]];

        rc = write_chunk(r, c, (const char *)content + (is_pack ? c->at : 0), e);
    }
    for (size_t k = 0; !rc && r->pace && k < n; k++)
        atomic_fetch_add(&r->pace->done_bytes, m->chunks[chunks[k]].size);
    free(left);
    return rc;
}

static int restore_objects(struct restore *r, struct err *e)
{
    int rc;

    manifest_objects_init(&r->objects, &r->manifest);
    rc = chunk_for_each(r->objects.n, restore_object, r, r->cancel, e);
    manifest_objects_deinit(&r->objects);
    return rc;
}

static int build_tree(struct restore *r, struct err *e)
{
    const struct manifest *m = &r->manifest;
    int rc = 0;

    r->whole = find_whole(m);
    for (size_t i = 0; !rc && i < m->n_entries; i++)
        rc = r->whole[i] ? 0 : entry_make(r->root_fd, r->resumes, &m->entries[i], e);
    if (!rc)
        rc = restore_objects(r, e);
    for (size_t i = 0; !rc && i < m->n_entries; i++)
        rc = entry_link(r->root_fd, r->resumes, &m->entries[i], e);
    for (size_t i = m->n_entries; !rc && i > 0; i--)
        rc = r->whole[i - 1] ? 0 : entry_finish(r->root_fd, r->resumes, &m->entries[i - 1], e);
    free(r->whole);
    r->whole = NULL;
    return rc;
}

static bool is_marked(const struct restore *r)
{
    struct buf text = {0};
    struct err ignored;
    bool yes = r->mark && r->manifest.id.attempt &&
               fs_read(r->mark, CHUNK_HEX_SIZE, &text, &ignored) == 0 &&
               str_eq(buf_str(&text), r->manifest.sha256);

    buf_deinit(&text);
    return yes;
}

static int remove_mark(const struct restore *r, struct err *e)
{
    return r->mark && unlink(r->mark) && errno != ENOENT ? err_errno(e, errno, "remove %s", r->mark)
                                                         : 0;
}

/* Makes an empty directory of mode 0700, with a mark that names the manifest. */
static int make_root(const struct restore *r, struct err *e)
{
    int rc = remove_mark(r, e);

    if (!rc)
        rc = fs_remove_tree(r->temp, e);
    if (!rc && mkdir(r->temp, 0700))
        rc = err_errno(e, errno, "create directory %s", r->temp);
    if (!rc && r->mark && r->manifest.id.attempt)
        rc = fs_write_atomic(r->mark, r->manifest.sha256, strlen(r->manifest.sha256), 0600, e);
    return rc;
}

/* The process's umask, which cannot be read without changing it, and what a default ACL denies. */
static mode_t find_masked(const struct restore *r)
{
    struct stat st;
    int fd = openat(r->root_fd, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0777);
    mode_t masked = fd >= 0 && fstat(fd, &st) == 0 ? 0777 & ~st.st_mode : 0777;

    if (fd >= 0)
        close(fd);
    return masked;
}

static int open_root(struct restore *r, struct err *e)
{
    const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    int rc;

    r->root_fd = is_marked(r) ? open(r->temp, flags) : -1;
    r->resumes = r->root_fd >= 0;
    if (!r->resumes) {
        rc = make_root(r, e);
        if (rc)
            return rc;
        r->root_fd = open(r->temp, flags);
        if (r->root_fd < 0)
            return err_errno(e, errno, "open directory %s", r->temp);
    }
    r->masked = find_masked(r);
    return 0;
}

/* Renames temp to dir. If dir was not empty, temp then is its old content. */
static int exchange(const char *temp, const char *dir, bool is_new, struct err *e)
{
    char *old;
    int rc = 0;

    if (rename(temp, dir) == 0) /* dir was missing or empty */
        return 0;
    if (is_new && (errno == ENOTEMPTY || errno == EEXIST || errno == ENOTDIR))
        return err_set(
            e, ERR_CONFLICT, "%s is not empty: name a directory that is missing or empty", dir);
    if (is_new)
        return err_errno(e, errno, "put the checkpoint in place as %s", dir);
    if (renameat2(AT_FDCWD, temp, AT_FDCWD, dir, RENAME_EXCHANGE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return err_errno(e, errno, "put the checkpoint in place as %s", dir);
    old = mem_printf("%s.replaced", dir); /* the file system lacks RENAME_EXCHANGE */
    rc = fs_remove_tree(old, e);
    if (!rc && (rename(dir, old) || rename(temp, dir) || rename(old, temp)))
        rc = err_errno(e, errno, "put the checkpoint in place as %s", dir);
    free(old);
    return rc;
}

static int restore_one(
    struct restore *r, struct ckpt_id id, struct ckpt_restored *res, struct err *e);

/* Removes the build directory after a restore. It stays after a failure, for the next restore to
 * continue, unless the disk is full or its mark is missing. */
static void clear(struct restore *r, int rc)
{
    struct err ignored;

    if (rc == 0 || rc == ERR_NO_SPACE || !fs_exists(r->mark)) {
        remove_mark(r, &ignored);
        fs_remove_tree(r->temp, &ignored);
    }
}

/* Restores and verifies all ranks' parts, so that no rank resumes if another's part is damaged.
 * This rank's part can then be copied from there. */
static int restore_all_ranks(struct restore *r, struct ckpt_id id, struct err *e)
{
    char dir[GANG_RANK_DIR_MAX], *temp = mem_printf("%s.restoring", r->ranks_dir),
                                 *mark = mem_printf("%s.restores", r->ranks_dir), *own;
    struct restore all = {.job = r->job,
        .temp = temp,
        .dir = r->ranks_dir,
        .mark = mark,
        .cancel = r->cancel,
        .root_fd = -1};
    struct ckpt_restored res = {0};
    int rc = restore_one(&all, id, &res, e);

    clear(&all, rc);
    while (r->n_nearby > r->n_given)
        close(r->nearby[--r->n_nearby]);
    gang_rank_dir(r->gang.rank, dir);
    own = mem_printf("%s/%s", r->ranks_dir, dir);
    int fd = rc ? -1 : open(own, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0)
        r->nearby[r->n_nearby++] = fd;
    free(own);
    free(mark);
    free(temp);
    return rc;
}

static int slice(struct restore *r, struct ckpt_id id, int32_t *ret_ranks, struct err *e)
{
    int32_t ranks = gang_ranks(&r->manifest);
    int rc = 0;

    *ret_ranks = ranks;
    if (r->ranks_dir && ranks > 0 && ranks != r->gang.nodes)
        rc = restore_all_ranks(r, id, e);
    else if (r->ranks_dir)
        rc = fs_remove_tree(r->ranks_dir, e);
    return rc ? rc : gang_slice(&r->manifest, r->gang.rank, e);
}

/* Builds one checkpoint (id.attempt 0 = an empty one) and puts it in place. */
static int restore_one(
    struct restore *r, struct ckpt_id id, struct ckpt_restored *res, struct err *e)
{
    int rc = id.attempt ? layout_read_manifest(r->job, id, &r->manifest, e) : 0;

    int32_t ranks = 0;

    if (!rc && r->gang.nodes > 0)
        rc = slice(r, id, &ranks, e);
    atomic_store(&r->reused, 0);
    if (!rc)
        rc = open_root(r, e);
    if (!rc)
        rc = build_tree(r, e);
    if (!rc)
        rc = remove_mark(r, e);
    if (!rc)
        rc = exchange(r->temp, r->dir, r->is_new, e);
    if (!rc) {
        res->id = id;
        res->ranks = ranks;
        res->progress = id.attempt ? r->manifest.progress : -1;
        res->stats.bytes = manifest_bytes(&r->manifest);
        res->stats.files = manifest_files(&r->manifest);
        res->stats.reused_bytes = atomic_load(&r->reused);
    }
    if (r->root_fd >= 0)
        close(r->root_fd);
    r->root_fd = -1;
    manifest_deinit(&r->manifest);
    return rc;
}

/* newest: if not NULL, no newer checkpoint is used. */
static int restore_newest(struct restore *r, int64_t before_attempt, const struct ckpt_id *newest,
    struct ckpt_restored *res, struct err *e)
{
    struct layout_ids ids;
    int rc = layout_list_ids(r->job, &ids, e);

    for (size_t i = 0; !rc && i <= ids.n; i++) {
        struct ckpt_id id = i < ids.n ? ids.v[i] : (struct ckpt_id){0};

        if (id.attempt >= before_attempt || (i < ids.n && id.attempt < r->from_attempt) ||
            (newest && layout_compare_ids(id, *newest) > 0))
            continue;
        rc = restore_one(r, id, res, e);
        if (rc == ERR_CORRUPT && !r->only_reads) {
            struct layout_name name = layout_manifest(r->job, id);

            if (res->damaged++ == 0)
                STR_SHORTEN(res->damage, e->text);
            layout_set_aside(r->job, name.s, e);
            rc = 0;
        } else if (rc == ERR_NOT_FOUND && i < ids.n) {
            rc = 0; /* cleaned since it was listed */
        } else {
            break;
        }
    }
    layout_ids_deinit(&ids);
    return rc;
}

/* Repeats until all ranks have restored the same checkpoint: in each round every rank goes back to
 * the oldest one that any rank has restored. */
static int restore_gang(
    struct restore *r, int64_t before_attempt, struct ckpt_restored *res, struct err *e)
{
    const struct gang_meeting g = {.job = r->job,
        .gang = r->gang,
        .id.attempt = before_attempt,
        .deadline_ms = clock_mono(&clock_system).ms + GANG_WAIT_MS,
        .cancel = r->cancel};
    struct ckpt_id least = {0};
    bool agreed = false;
    int rc = restore_newest(r, before_attempt, NULL, res, e);

    for (int round = 1; !rc && !agreed && round <= GANG_ROUNDS_MAX; round++) {
        rc = gang_agree(&g, round, res->id, &least, &agreed, e);
        if (!rc && layout_compare_ids(res->id, least) > 0)
            rc = restore_newest(r, before_attempt, &least, res, e);
    }
    if (!rc && !agreed)
        rc = err_set(e, ERR_UNAVAILABLE, "the ranks cannot agree on a checkpoint to restore");
    return rc;
}

static int make_parent(const char *dir, struct err *e)
{
    const char *slash = strrchr(dir, '/');
    char *parent;
    int rc;

    if (dir[0] != '/' || slash[1] == '\0')
        return err_set(
            e, ERR_INVALID, "'%.300s' must be an absolute path without a '/' at its end", dir);
    if (slash == dir)
        return 0;
    parent = mem_strndup(dir, (size_t)(slash - dir));
    rc = fs_mkdirs(parent, 0700, e);
    free(parent);
    return rc;
}

static void open_nearby(struct restore *r, const struct ckpt_restore_with *with)
{
    for (size_t i = 0; i < CKPT_NEARBY_MAX && with->nearby[i]; i++) {
        int fd = open(with->nearby[i], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        if (fd >= 0)
            r->nearby[r->n_nearby++] = fd;
    }
    r->n_given = r->n_nearby;
}

int ckpt_restore_with(const struct ckpt_job *j, int64_t before_attempt, const char *dir,
    const struct ckpt_restore_with *with, const atomic_int *cancel,
    struct ckpt_restored *ret_restored, struct err *e)
{
    struct mono start = clock_mono(&clock_system);
    struct ckpt_restored res = {0};
    char *temp = mem_printf("%s.restoring", dir), *mark = mem_printf("%s.restores", dir);
    struct restore r = {.job = j,
        .temp = temp,
        .dir = dir,
        .mark = mark,
        .cancel = cancel,
        .gang = with->gang,
        .ranks_dir = with->ranks_dir,
        .from_attempt = with->from_attempt,
        .only_reads = with->only_reads,
        .root_fd = -1};
    int rc = layout_check_job(j, e);

    if (!rc)
        rc = make_parent(dir, e);
    if (!rc) {
        open_nearby(&r, with);
        rc = with->gang.nodes > 0 ? restore_gang(&r, before_attempt, &res, e)
                                  : restore_newest(&r, before_attempt, NULL, &res, e);
        clear(&r, rc);
    }
    for (size_t i = 0; i < r.n_nearby; i++)
        close(r.nearby[i]);
    free(temp);
    free(mark);
    if (rc)
        return err_wrap(e, "restore job %" PRId64, j->job);
    res.stats.took_ms = clock_mono(&clock_system).ms - start.ms;
    *ret_restored = res;
    return 0;
}

int ckpt_restore(const struct ckpt_job *j, int64_t before_attempt, const char *dir,
    const atomic_int *cancel, struct ckpt_restored *ret_restored, struct err *e)
{
    return ckpt_restore_with(
        j, before_attempt, dir, &(struct ckpt_restore_with){{0}}, cancel, ret_restored, e);
}

static int64_t bytes_of_chunks(const struct manifest *m)
{
    int64_t n = 0;

    for (size_t i = 0; i < m->n_chunks; i++)
        n += m->chunks[i].size;
    return n;
}

static int check_size(const struct ckpt_verify_with *with, int64_t bytes, struct err *e)
{
    char size[32], most[32];

    if (with->bytes_max == 0 || bytes <= with->bytes_max)
        return 0;
    str_format_bytes((uint64_t)bytes, size, sizeof(size));
    str_format_bytes((uint64_t)with->bytes_max, most, sizeof(most));
    return err_set(e, ERR_UNSUPPORTED, "it has %s, and at most %s are verified here", size, most);
}

int ckpt_verify_with(
    const struct ckpt_job *j, struct ckpt_id id, const struct ckpt_verify_with *with, struct err *e)
{
    struct restore r = {.job = j, .root_fd = -1, .cancel = with->cancel, .pace = with->pace};
    int rc = layout_check_job(j, e);

    if (!rc)
        rc = layout_read_manifest(j, id, &r.manifest, e);
    if (!rc)
        rc = check_size(with, bytes_of_chunks(&r.manifest), e);
    if (!rc && r.pace) {
        atomic_store(&r.pace->started_ms, clock_mono(&clock_system).ms);
        atomic_store(&r.pace->total_bytes, bytes_of_chunks(&r.manifest));
    }
    if (!rc)
        rc = restore_objects(&r, e);
    manifest_deinit(&r.manifest);
    return rc;
}

int ckpt_verify(const struct ckpt_job *j, struct ckpt_id id, struct err *e)
{
    return ckpt_verify_with(j, id, &(struct ckpt_verify_with){0}, e);
}

/* An early check; the rename checks again. */
static int check_new(const char *dir, struct err *e)
{
    const struct dirent *entry;
    DIR *d = opendir(dir);
    int rc = 0;

    if (!d && errno == ENOTDIR)
        return err_set(e, ERR_CONFLICT, "%s exists and is not a directory", dir);
    if (!d)
        return errno == ENOENT ? 0 : err_errno(e, errno, "read directory %s", dir);
    while (!rc && (entry = readdir(d)))
        if (!str_eq(entry->d_name, ".") && !str_eq(entry->d_name, ".."))
            rc = err_set(
                e, ERR_CONFLICT, "%s is not empty: name a directory that is missing or empty", dir);
    closedir(d);
    return rc;
}

int ckpt_get(const struct ckpt_job *j, struct ckpt_id id, const char *dir, const atomic_int *cancel,
    struct ckpt_stats *ret_stats, struct err *e)
{
    struct mono start = clock_mono(&clock_system);
    struct ckpt_restored res = {0};
    char unique[17];
    random_hex(8, unique);
    /* dir belongs to a user: a unique name avoids their files */
    char *temp = mem_printf("%s.%s", dir, unique);
    struct restore r = {
        .job = j, .temp = temp, .dir = dir, .is_new = true, .cancel = cancel, .root_fd = -1};
    struct err ignored;
    int rc = layout_check_job(j, e);

    if (!rc)
        rc = check_new(dir, e);
    if (!rc)
        rc = make_parent(dir, e);
    if (!rc) {
        rc = restore_one(&r, id, &res, e);
        fs_remove_tree(temp, &ignored);
    }
    free(temp);
    if (rc)
        return err_wrap(e, "get a checkpoint of job %" PRId64, j->job);
    res.stats.took_ms = clock_mono(&clock_system).ms - start.ms;
    *ret_stats = res.stats;
    return 0;
}
