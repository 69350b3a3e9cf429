/* SPDX-License-Identifier: Apache-2.0
 *
 * Taking a snapshot: scan -> copy, clone or keep open each file -> wait until a write would change
 * a stamp -> scan again. If the second scan finds no change, the program did not touch its files
 * meanwhile, so all of them are of one moment. The content is read afterwards, from the snapshot.
 *
 * Small files are copied by a few threads, many with one write, so that a snapshot of thousands of
 * them takes less time than a save.
 *
 * A tree of too many files for a snapshot is left to a save for which the program waits. The first
 * scan ends where that is certain, so that such a save begins at once.
 */
#include "ckpt/snapshot.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/time.h"
#include "ckpt/chunk.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* limit of all copied bytes: 32 MiB take tens of milliseconds, and as much page cache */
#define COPIED_MAX (INT64_C(32) << 20)
#define COPIED_FILE_MAX (INT64_C(1) << 20) /* larger files are cloned or kept open where possible */
#define COPY_BYTES (256u << 10)
/* files up to this size are copied many at a time, by a few threads */
#define BATCH_FILE_MAX (INT64_C(64) << 10)
#define BATCH_FILES 256
#define KEPT_OPEN_MAX 512
#define COPY_ALIGN INT64_C(4096)
#define CLONE_ALIGN (INT64_C(64) << 10) /* no file system's blocks are larger */
/* limit of settle; a longer wait would not help: the clock was set back or stamps are coarse */
#define SETTLE_MS 100
#define SETTLE_CHECK_NS 2000000
#define SPOOL_NAME "snapshot.spool" /* unlinked at once */

struct snapshot_work {
    struct ckpt_snapshot *s;
    const struct ckpt_snapshot_how *how;
    int root_fd;
    int64_t copied_max;
    size_t kept_open_max;
    bool can_clone, can_keep_open;
    int64_t copied_left; /* as the first scan expects it */
    size_t kept_open_left;
    char *block;
    struct batch *batches;
    size_t n_batches;
    char why[160]; /* why there can be no snapshot; "" = no reason so far */
};

/* Small files, entries from `first` to before `end` that have a place in the spool, one after the
 * other. */
struct batch {
    size_t first, end, n_files;
    int64_t offset, bytes;
};

static size_t default_kept_open_max(void)
{
    struct rlimit l;
    rlim_t part = getrlimit(RLIMIT_NOFILE, &l) == 0 ? l.rlim_cur / 8 : 0;

    return part < KEPT_OPEN_MAX ? (size_t)part : KEPT_OPEN_MAX;
}

/* ---- the spool ---- */

/* Created with a name and unlinked at once, because not every file system has O_TMPFILE. */
static void open_spool(struct snapshot_work *t)
{
    char *path = mem_printf("%s/" SPOOL_NAME, t->how->scratch);

    unlink(path);
    t->s->spool = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (t->s->spool < 0)
        snprintf(t->why, sizeof(t->why), "no file could be created in %.60s: %s", t->how->scratch,
            strerror(errno));
    else
        unlink(path);
    free(path);
}

/* Whether the spool's file system shares blocks. */
static bool shares_blocks(struct snapshot_work *t)
{
    struct file_clone_range range = {
        .src_fd = t->s->spool, .src_length = CLONE_ALIGN, .dest_offset = CLONE_ALIGN};
    bool shares = t->s->spool >= 0 &&
                  pwrite(t->s->spool, t->block, CLONE_ALIGN, 0) == (ssize_t)CLONE_ALIGN &&
                  ioctl(t->s->spool, FICLONERANGE, &range) == 0;

    return t->s->spool >= 0 && ftruncate(t->s->spool, 0) == 0 && shares;
}

static void add_spooled(struct snapshot_work *t, size_t i, int64_t offset)
{
    struct ckpt_snapshot *s = t->s;

    s->files[i].how = SNAPSHOT_SPOOL;
    s->files[i].offset = offset;
    s->spool_end = offset + s->manifest.entries[i].size;
}

static int64_t next_offset(const struct ckpt_snapshot *s, int64_t align)
{
    return (s->spool_end + align - 1) / align * align;
}

static int write_spool(
    const struct ckpt_snapshot *s, const char *p, size_t n, int64_t to, struct err *e)
{
    for (size_t put = 0; put < n;) {
        ssize_t n_put = pwrite(s->spool, p + put, n - put, to + (int64_t)put);

        if (n_put < 0 && errno != EINTR)
            return err_errno(e, errno, "write a copy of the checkpoint directory");
        put += n_put < 0 ? 0 : (size_t)n_put;
    }
    return 0;
}

static int copy_range(struct snapshot_work *t, int fd, int64_t to,
    const struct manifest_extent *range, const char *path, struct err *e)
{
    for (int64_t done = 0; done < range->size;) {
        size_t n = range->size - done < COPY_BYTES ? (size_t)(range->size - done) : COPY_BYTES;
        int rc = scan_read(fd, t->block, n, range->offset + done, path, e);

        if (!rc)
            rc = write_spool(t->s, t->block, n, to + range->offset + done, e);
        if (rc)
            return rc;
        done += (int64_t)n;
    }
    return 0;
}

/* Copies file i to the spool; *ret_kept is false if the spool's file system is full. */
static int copy(struct snapshot_work *t, size_t i, int fd, bool *ret_kept, struct err *e)
{
    const struct manifest_entry *file = &t->s->manifest.entries[i];
    const struct manifest_extent whole = {0, file->size};
    bool sparse = file->extra && file->extra->is_sparse;
    const struct manifest_extent *v = sparse ? file->extra->data : &whole;
    size_t n = sparse ? file->extra->n_data : 1;
    int64_t offset = next_offset(t->s, COPY_ALIGN);
    int rc = 0;

    for (size_t k = 0; !rc && k < n; k++)
        rc = copy_range(t, fd, offset, &v[k], file->path, e);
    *ret_kept = rc == 0;
    if (rc)
        return rc == ERR_NO_SPACE ? 0 : rc;
    add_spooled(t, i, offset);
    t->s->stats.copied_bytes += manifest_content(file);
    return 0;
}

/* False if the file system cannot share blocks, or has no space for the metadata. */
static bool clone(struct snapshot_work *t, size_t i, int fd)
{
    struct file_clone_range range = {
        .src_fd = fd, .dest_offset = (uint64_t)next_offset(t->s, CLONE_ALIGN)};

    if (!t->can_clone || ioctl(t->s->spool, FICLONERANGE, &range)) {
        t->can_clone = false;
        return false;
    }
    add_spooled(t, i, (int64_t)range.dest_offset);
    t->s->stats.cloned_bytes += manifest_content(&t->s->manifest.entries[i]);
    return true;
}

/* ---- many small files ---- */

static bool is_for_batch(const struct manifest_entry *file)
{
    return file->type == MANIFEST_FILE && file->size > 0 && file->size <= BATCH_FILE_MAX &&
           !(file->extra && file->extra->is_sparse);
}

/* Gives small files their places in the spool, as far as they may be copied. */
static void plan_batches(struct snapshot_work *t)
{
    struct ckpt_snapshot *s = t->s;
    struct batch *b = NULL;

    t->batches = mem_array(s->n_files + 1, sizeof(*b));
    for (size_t i = 0; i < s->n_files; i++) {
        const struct manifest_entry *file = &s->manifest.entries[i];

        if (!is_for_batch(file) || s->spool_end + file->size > t->copied_max)
            continue;
        if (!b || b->n_files == BATCH_FILES || b->bytes + file->size > (int64_t)COPY_BYTES) {
            b = &t->batches[t->n_batches++];
            *b = (struct batch){.first = i, .offset = s->spool_end};
        }
        add_spooled(t, i, s->spool_end);
        b->end = i + 1;
        b->n_files++;
        b->bytes += file->size;
    }
}

static int read_batched(
    struct snapshot_work *t, const struct batch *b, size_t i, char *to, struct err *e)
{
    struct snapshot_file *f = &t->s->files[i];
    const struct manifest_entry *file = &t->s->manifest.entries[i];
    int fd, rc = scan_open_entry(t->root_fd, &t->s->scan, i, file->path, &fd, e);

    if (rc)
        return rc;
    f->is_quiet = seen_has_no_writer(fd);
    rc = scan_read(fd, to + (f->offset - b->offset), (size_t)file->size, 0, file->path, e);
    close(fd);
    return rc;
}

/* If the spool's file system is full, keep_file tries the other ways for each file of the batch. */
static int copy_batch(void *ctx, struct chunk_work *w, size_t n, struct err *e)
{
    struct snapshot_work *t = ctx;
    struct batch *b = &t->batches[n];
    struct snapshot_file *files = t->s->files;
    int rc = 0;

    for (size_t i = b->first; !rc && i < b->end; i++)
        if (files[i].how == SNAPSHOT_SPOOL)
            rc = read_batched(t, b, i, w->content, e);
    if (!rc)
        rc = write_spool(t->s, w->content, (size_t)b->bytes, b->offset, e);
    if (rc != ERR_NO_SPACE)
        return rc;
    for (size_t i = b->first; i < b->end; i++)
        files[i].how = SNAPSHOT_NOTHING;
    b->bytes = 0;
    return 0;
}

static int copy_batches(struct snapshot_work *t, const atomic_int *cancel, struct err *e)
{
    int rc;

    plan_batches(t);
    rc = chunk_for_each(t->n_batches, copy_batch, t, cancel, e);
    for (size_t i = 0; i < t->n_batches; i++)
        t->s->stats.copied_bytes += t->batches[i].bytes;
    free(t->batches);
    return rc;
}

/* ---- keeping files open ---- */

static bool keep_open(struct snapshot_work *t, size_t i, int fd)
{
    struct ckpt_snapshot *s = t->s;
    struct snapshot_file *f = &s->files[i];
    struct stat st;

    if (!t->can_keep_open || !f->is_quiet || s->n_kept_open == t->kept_open_max ||
        s->scan.stamps[i].dev != s->seen.dev || fstat(fd, &st))
        return false;
    f->how = SNAPSHOT_KEPT_OPEN;
    f->fd = fd;
    f->links = st.st_nlink;
    s->n_kept_open++;
    s->stats.kept_open_bytes += manifest_content(&s->manifest.entries[i]);
    return true;
}

static bool would_notice(const struct ckpt_snapshot *s)
{
    for (size_t i = 0; i < s->n_files; i++)
        if (s->files[i].how == SNAPSHOT_KEPT_OPEN &&
            !seen_would_notice(&s->seen, &s->scan.stamps[i]))
            return false;
    return true;
}

/* Waits until a write to any file kept open would change its stamps: two writes within one clock
 * tick leave the same stamps. */
static void settle(struct snapshot_work *t)
{
    const struct timespec pause = {.tv_nsec = SETTLE_CHECK_NS};
    int64_t end = clock_system_ms() + SETTLE_MS;

    while (t->s->n_kept_open && !would_notice(t->s)) {
        if (clock_system_ms() > end) {
            snprintf(t->why, sizeof(t->why),
                "its modification times are in the future, or are whole seconds");
            return;
        }
        nanosleep(&pause, NULL);
    }
}

/* ---- each file ---- */

static int keep_open_file(struct snapshot_work *t, size_t i, int fd, struct err *e)
{
    struct ckpt_snapshot *s = t->s;
    const struct manifest_entry *file = &s->manifest.entries[i];
    int64_t size = manifest_content(file), left = t->copied_max - s->stats.copied_bytes;
    bool is_small = size <= COPIED_FILE_MAX, kept = false;
    int rc = 0;

    s->files[i].is_quiet = seen_has_no_writer(fd);
    if (is_small && size <= left)
        rc = copy(t, i, fd, &kept, e);
    if (rc || kept || clone(t, i, fd) || keep_open(t, i, fd))
        return rc;
    if (!is_small && size <= left)
        rc = copy(t, i, fd, &kept, e);
    if (!rc && !kept)
        snprintf(t->why, sizeof(t->why), "'%.60s' is %s", file->path,
            !t->can_keep_open
                ? "too large to be copied, and its file system cannot share its blocks"
            : !s->files[i].is_quiet ? "too large to be copied, and open for writing or mapped"
                                    : "one of too many files to be copied or kept open");
    return rc;
}

static int keep_file(struct snapshot_work *t, size_t i, struct err *e)
{
    struct ckpt_snapshot *s = t->s;
    int fd, rc = scan_open_entry(t->root_fd, &s->scan, i, s->manifest.entries[i].path, &fd, e);

    if (rc)
        return rc;
    rc = keep_open_file(t, i, fd, e);
    if (s->files[i].how != SNAPSHOT_KEPT_OPEN)
        close(fd);
    return rc;
}

static int piece_has_writer(void *ctx, const struct manifest_piece *p, struct err *e)
{
    const struct snapshot_work *t = ctx;

    (void)e;
    return !t->s->files[p->file - t->s->manifest.entries].is_quiet;
}

/* Chunks of a file that is open for writing cannot be identified by its stamps. */
static void exclude_written(struct snapshot_work *t)
{
    struct ckpt_snapshot *s = t->s;

    for (size_t c = 0; c < s->manifest.n_chunks; c++)
        if (manifest_each_piece(&s->manifest, &s->manifest.chunks[c], piece_has_writer, t, NULL))
            seen_exclude(&s->seen, c);
}

static int keep_files(struct snapshot_work *t, const atomic_int *cancel, struct err *e)
{
    struct ckpt_snapshot *s = t->s;
    int rc;

    s->n_files = s->manifest.n_entries;
    s->files = mem_array(s->n_files + 1, sizeof(s->files[0]));
    rc = copy_batches(t, cancel, e);
    for (size_t i = 0; !rc && !*t->why && i < s->n_files; i++) {
        const struct manifest_entry *file = &s->manifest.entries[i];

        if (cancel && atomic_load(cancel))
            rc = err_set(e, ERR_CANCELLED, "cancelled");
        else if (file->type == MANIFEST_FILE && manifest_content(file) > 0 &&
                 s->files[i].how == SNAPSHOT_NOTHING)
            rc = keep_file(t, i, e);
    }
    if (!rc && !*t->why)
        exclude_written(t);
    return rc;
}

/* The choice of keep_open_file for a file of so many bytes. */
static bool has_room(void *ctx, int64_t bytes)
{
    struct snapshot_work *t = ctx;
    bool fits = bytes <= t->copied_left;

    if (bytes == 0 || t->can_clone)
        return true;
    if (t->kept_open_left > 0 && !(fits && bytes <= COPIED_FILE_MAX)) {
        t->kept_open_left--;
        return true;
    }
    t->copied_left -= fits ? bytes : 0;
    return fits;
}

static int scan_files(struct snapshot_work *t, struct err *e)
{
    struct ckpt_snapshot *s = t->s;
    int rc;

    t->copied_left = t->copied_max;
    t->kept_open_left = t->can_keep_open ? t->kept_open_max : 0;
    rc = scan_tree_while(t->root_fd, &s->manifest, has_room, t, &s->scan, e);
    s->stats.is_too_large = rc == ERR_CANCELLED;
    if (rc == ERR_CANCELLED)
        snprintf(t->why, sizeof(t->why), "%s",
            t->can_keep_open
                ? "it has too many files to be copied or kept open"
                : "it is too large to be copied, and its file system cannot share its blocks");
    return rc == ERR_CANCELLED ? 0 : rc;
}

static int take(struct snapshot_work *t, const atomic_int *cancel, struct err *e)
{
    struct ckpt_snapshot *s = t->s;
    int rc;

    seen_begin(&s->seen, t->root_fd);
    open_spool(t);
    t->can_clone = shares_blocks(t);
    t->can_keep_open = s->seen.usable && !t->how->in_place;
    rc = *t->why ? 0 : scan_files(t, e);
    if (rc || *t->why)
        return rc;
    manifest_cut(&s->manifest);
    rc = manifest_lay_out(&s->manifest, e);
    if (rc)
        return rc;
    seen_plan(&s->seen, &s->manifest, &s->scan);
    rc = keep_files(t, cancel, e);
    if (!rc && !*t->why)
        settle(t);
    return rc || *t->why ? rc : scan_check_unchanged(t->root_fd, &s->manifest, &s->scan, e);
}

int ckpt_snapshot_take(const char *dir, const struct ckpt_snapshot_how *how,
    const atomic_int *cancel, struct ckpt_snapshot **ret, struct ckpt_snapshot_stats *ret_stats,
    struct err *e)
{
    int64_t start = clock_system_ms();
    struct snapshot_work t = {.how = how,
        .copied_max = how->copied_max ? how->copied_max : COPIED_MAX,
        .kept_open_max = how->kept_open_max ? (size_t)how->kept_open_max : default_kept_open_max()};
    int rc;

    *ret = NULL;
    t.root_fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (t.root_fd < 0)
        return err_errno(e, errno, "open the checkpoint directory %s", dir);
    t.s = mem_alloc(sizeof(*t.s));
    t.s->spool = -1;
    t.block = mem_alloc(COPY_BYTES);
    rc = take(&t, cancel, e);
    close(t.root_fd);
    free(t.block);
    t.s->stats.took_ms = clock_system_ms() - start;
    if (!rc)
        *ret_stats = t.s->stats;
    if (!rc && !*t.why) {
        *ret = t.s;
        return 0;
    }
    ckpt_snapshot_destroy(t.s);
    if (!rc)
        err_set(e, ERR_UNSUPPORTED, "%s", t.why);
    else
        err_wrap(e, "take a snapshot");
    return rc;
}

bool ckpt_snapshot_stays_too_large(const struct ckpt_stats *saved)
{
    return saved->files > INT64_C(2) * KEPT_OPEN_MAX && saved->bytes > 2 * COPIED_MAX;
}

/* ---- reading ---- */

/* Adding or removing a name also changes the change time. */
static bool is_as_kept(const struct ckpt_snapshot *s, size_t i, const struct manifest_entry *file)
{
    const struct snapshot_file *f = &s->files[i];
    struct stat st;

    if (fstat(f->fd, &st) || st.st_size != file->size ||
        scan_stamp_ns(&st.st_mtim) != file->mtime_ns)
        return false;
    return st.st_nlink != f->links || scan_stamp_ns(&st.st_ctim) == s->scan.stamps[i].ctime_ns;
}

static int check_kept_open(
    struct ckpt_snapshot *s, size_t i, const struct manifest_entry *file, struct err *e)
{
    if (s->files[i].how != SNAPSHOT_KEPT_OPEN || is_as_kept(s, i, file))
        return 0;
    atomic_store(&s->disturbed, true);
    return err_set(e, ERR_UNAVAILABLE,
        "'%.200s' was written to in place while it was being stored: nothing was committed. From "
        "now on no file of this attempt is kept open; to continue while large files are stored, "
        "write a new file and rename it",
        file->path);
}

int snapshot_read(struct ckpt_snapshot *s, size_t i, const struct manifest_entry *file, char *p,
    size_t n, int64_t offset, struct err *e)
{
    const struct snapshot_file *f = &s->files[i];
    bool is_kept_open = f->how == SNAPSHOT_KEPT_OPEN;
    int64_t at = is_kept_open ? offset : f->offset + offset;

    while (n > 0) {
        ssize_t got = pread(is_kept_open ? f->fd : s->spool, p, n, at);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return err_errno(e, errno, "read '%.300s'", file->path);
        if (got == 0)
            break;
        p += got;
        at += got;
        n -= (size_t)got;
    }
    if (n > 0 && !is_kept_open)
        return err_set(e, ERR_IO, "the snapshot of '%.300s' is too short", file->path);
    return check_kept_open(s, i, file, e);
}

int snapshot_check(struct ckpt_snapshot *s, const struct manifest *m, struct err *e)
{
    int rc = 0;

    for (size_t i = 0; !rc && i < s->n_files; i++)
        rc = check_kept_open(s, i, &m->entries[i], e);
    return rc;
}

bool ckpt_snapshot_was_disturbed(const struct ckpt_snapshot *snapshot)
{
    return atomic_load(&snapshot->disturbed);
}

void ckpt_snapshot_destroy(struct ckpt_snapshot *s)
{
    if (!s)
        return;
    bool is_large = s->n_files >= MANIFEST_LARGE;
    for (size_t i = 0; i < s->n_files; i++)
        if (s->files[i].how == SNAPSHOT_KEPT_OPEN)
            close(s->files[i].fd);
    if (s->spool >= 0)
        close(s->spool);
    free(s->files);
    manifest_deinit(&s->manifest);
    scan_deinit(&s->scan);
    seen_save_deinit(&s->seen);
    free(s);
    if (is_large)
        mem_trim();
}
