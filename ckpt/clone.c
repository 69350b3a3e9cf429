/* SPDX-License-Identifier: Apache-2.0 */
#include "ckpt/clone.h"
#include "base/str.h"
#include "ckpt/scan.h"
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define ALIGN (INT64_C(64) << 10)       /* no file system's blocks are larger */
#define CLONED_MIN (INT64_C(256) << 10) /* smaller chunks are copied as fast */

enum clone_result clone_range(int from, int64_t from_offset, int to, int64_t offset, int64_t n)
{
    struct file_clone_range range = {.src_fd = from,
        .src_offset = (uint64_t)from_offset,
        .src_length = (uint64_t)n,
        .dest_offset = (uint64_t)offset};
    struct stat in, out;

    if (fstat(from, &in) || fstat(to, &out) || from_offset % ALIGN || offset % ALIGN ||
        in.st_size < from_offset + n || out.st_size < offset + n)
        return CLONE_MISSING;
    if (n % ALIGN && (in.st_size != from_offset + n || out.st_size != offset + n))
        return CLONE_MISSING;
    return ioctl(to, FICLONERANGE, &range) == 0 ? CLONE_DONE : CLONE_REFUSED;
}

struct cloning {
    const struct clone_source *from;
    int root_fd;
    const struct manifest_chunk *chunk;
    char *content; /* receives what was cloned */
};

static enum clone_result clone_piece(
    const struct clone_source *from, const struct manifest_piece *p, int to)
{
    enum clone_result result;
    int fd;

    if (from->store)
        return store_clone(from->store, from->name, to, p->file_offset, (int64_t)p->n);
    fd = scan_open(from->root_fd, p->file->path);
    if (fd < 0)
        return CLONE_MISSING;
    result = clone_range(fd, p->file_offset, to, p->file_offset, (int64_t)p->n);
    close(fd);
    return result;
}

/* Non-zero if the piece must be written. */
static int clone_and_read(void *ctx, const struct manifest_piece *p, struct err *e)
{
    struct cloning *x = ctx;
    enum clone_result result;
    int to, rc = 1;

    /* a file in one chunk is created when it is written */
    if (p->n != (size_t)x->chunk->size || p->file->size == x->chunk->size || p->file->extra)
        return 1;
    to = openat(x->root_fd, p->file->path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (to < 0)
        return 1;
    result = clone_piece(x->from, p, to);
    if (result == CLONE_DONE)
        rc = scan_read(to, x->content, p->n, p->file_offset, p->file->path, e);
    if (result == CLONE_REFUSED)
        atomic_store(x->from->never, true);
    close(to);
    return rc;
}

bool clone_chunk(const struct clone_source *from, int root_fd, const struct manifest *m,
    const struct manifest_chunk *c, struct chunk_work *w)
{
    struct cloning x = {.from = from, .root_fd = root_fd, .chunk = c, .content = w->content};
    char hash[CHUNK_HEX_SIZE];
    struct err ignored;

    if (c->pack || c->size < CLONED_MIN || atomic_load(from->never) ||
        manifest_each_piece(m, c, clone_and_read, &x, &ignored))
        return false;
    chunk_hash_with(w, w->content, (size_t)c->size, hash);
    return str_eq(hash, c->sha256);
}
