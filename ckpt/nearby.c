/* SPDX-License-Identifier: Apache-2.0 */
#include "ckpt/nearby.h"
#include "base/str.h"
#include "ckpt/scan.h"
#include <sys/stat.h>
#include <unistd.h>

struct reading {
    int root_fd;
    char *content;
    const struct manifest_entry *file; /* the file open as fd; NULL if none */
    int fd;
};

static void stop_reading(struct reading *r)
{
    if (r->file)
        close(r->fd);
    r->file = NULL;
}

static bool open_file(struct reading *r, const struct manifest_entry *file)
{
    struct stat st;
    int fd = scan_open(r->root_fd, file->path);

    if (fd < 0)
        return false;
    if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
        close(fd);
        return false;
    }
    r->file = file;
    r->fd = fd;
    return true;
}

/* Non-zero if the piece cannot be read here: the caller then uses another source of the chunk. */
static int read_piece(void *ctx, const struct manifest_piece *p, struct err *e)
{
    struct reading *r = ctx;

    if (r->file != p->file) {
        stop_reading(r);
        if (!open_file(r, p->file))
            return 1;
    }
    return scan_read(r->fd, r->content + p->chunk_offset, p->n, p->file_offset, p->file->path, e);
}

bool nearby_read(
    int root_fd, const struct manifest *m, const struct manifest_chunk *c, struct chunk_work *w)
{
    struct reading r = {.root_fd = root_fd, .content = w->content};
    char hash[CHUNK_HEX_SIZE];
    struct err ignored;
    int missing = manifest_each_piece(m, c, read_piece, &r, &ignored);

    stop_reading(&r);
    if (missing)
        return false;
    chunk_hash_with(w, w->content, (size_t)c->size, hash);
    return str_eq(hash, c->sha256);
}
