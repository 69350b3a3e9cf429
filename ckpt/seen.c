/* SPDX-License-Identifier: Apache-2.0
 *
 * Entries are per chunk, not per file: 72 bytes for 4 MiB, whatever the number of files. A chunk is
 * identified by the SHA-256 of the stamps and positions of its pieces of files.
 */
#include "ckpt/seen.h"
#include "base/mem.h"
#include "base/str.h"
#include <assert.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <openssl/evp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <time.h>

#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC 0x58465342
#endif
#define NS_PER_SECOND INT64_C(1000000000)
/* stamps advance with the timer tick, which is at most 10 ms; doubled as a margin */
#define GRANULARITY_NS INT64_C(20000000)
#define COARSE_NS (2 * NS_PER_SECOND)   /* where stamps are whole seconds */
#define CLOCK_SLACK_NS INT64_C(1000000) /* tolerance between two results of clock_distance */
#define CLOCK_TRIES 16

struct seen_chunk {
    struct seen_key key;
    unsigned char sha256[32];
    int64_t stored;
};

struct ckpt_seen {
    struct seen_chunk *v; /* by key */
    size_t n;
    int64_t distance_ns; /* clock_distance when the entries were recorded */
    struct named named;
};

struct ckpt_seen *ckpt_seen_create(void)
{
    return mem_alloc(sizeof(struct ckpt_seen));
}

void ckpt_seen_destroy(struct ckpt_seen *seen)
{
    if (!seen)
        return;
    free(seen->v);
    named_deinit(&seen->named);
    free(seen);
}

struct named *seen_named(struct ckpt_seen *seen)
{
    return &seen->named;
}

static int64_t clock_ns(clockid_t id)
{
    struct timespec t;

    clock_gettime(id, &t);
    return t.tv_sec * NS_PER_SECOND + t.tv_nsec;
}

/* CLOCK_REALTIME - CLOCK_BOOTTIME, in ns. Both are slewed alike, so the difference changes only
 * when the real-time clock is set. */
static int64_t clock_distance(void)
{
    int64_t best = INT64_MAX, distance = 0;

    for (int i = 0; i < CLOCK_TRIES && best > CLOCK_SLACK_NS / 4; i++) {
        int64_t before = clock_ns(CLOCK_BOOTTIME), real = clock_ns(CLOCK_REALTIME);
        int64_t took = clock_ns(CLOCK_BOOTTIME) - before;

        if (took < best) {
            best = took;
            distance = real - before;
        }
    }
    return distance;
}

static bool is_trusted(int fd, uint64_t *ret_dev)
{
    struct statfs fs;
    struct stat st;

    if (fstatfs(fd, &fs) || fstat(fd, &st))
        return false;
    *ret_dev = st.st_dev;
    return fs.f_type == EXT4_SUPER_MAGIC || fs.f_type == XFS_SUPER_MAGIC ||
           fs.f_type == BTRFS_SUPER_MAGIC;
}

void seen_begin(struct seen_save *u, int root_fd)
{
    *u = (struct seen_save){.distance_ns = clock_distance()};
    u->usable = is_trusted(root_fd, &u->dev);
    u->start_ns = clock_ns(CLOCK_REALTIME_COARSE);
}

void seen_attach(struct seen_save *u, struct ckpt_seen *seen)
{
    u->seen = seen;
    if (!seen || (u->usable && llabs(u->distance_ns - seen->distance_ns) <= CLOCK_SLACK_NS))
        return;
    free(seen->v);
    seen->v = NULL;
    seen->n = 0;
    seen->distance_ns = u->distance_ns;
}

static bool is_settled(const struct seen_save *u, const struct scan_stamp *stamp, int64_t now_ns)
{
    int64_t margin = stamp->ctime_ns % NS_PER_SECOND == 0 ? COARSE_NS : GRANULARITY_NS;

    return stamp->dev == u->dev && stamp->ctime_ns < now_ns - margin;
}

bool seen_would_notice(const struct seen_save *u, const struct scan_stamp *stamp)
{
    return u->usable && is_settled(u, stamp, clock_ns(CLOCK_REALTIME_COARSE));
}

struct planning {
    const struct seen_save *use;
    const struct manifest *m;
    const struct scan *scan;
    EVP_MD_CTX *hash;
    bool fits;
};

static int plan_piece(void *ctx, const struct manifest_piece *p, struct err *e)
{
    struct planning *x = ctx;
    const struct scan_stamp *stamp = &x->scan->stamps[p->file - x->m->entries];
    const int64_t what[] = {(int64_t)stamp->dev, (int64_t)stamp->ino, stamp->ctime_ns,
        p->file->mtime_ns, p->file->size, p->file_offset, (int64_t)p->n};

    (void)e;
    x->fits = x->fits && is_settled(x->use, stamp, x->use->start_ns);
    EVP_DigestUpdate(x->hash, what, sizeof(what));
    return !x->fits; /* no need to continue */
}

void seen_plan(struct seen_save *u, const struct manifest *m, const struct scan *scan)
{
    EVP_MD_CTX *hash;

    if (!u->usable)
        return;
    hash = EVP_MD_CTX_new();
    u->keys = mem_array(m->n_chunks + 1, sizeof(u->keys[0]));
    u->fits = mem_array(m->n_chunks + 1, 1);
    for (size_t i = 0; i < m->n_chunks; i++) {
        struct planning x = {.use = u, .m = m, .scan = scan, .hash = hash, .fits = true};
        unsigned int n;
        int ok = EVP_DigestInit_ex(hash, EVP_sha256(), NULL);

        manifest_each_piece(m, &m->chunks[i], plan_piece, &x, NULL);
        ok &= EVP_DigestFinal_ex(hash, u->keys[i].bytes, &n);
        assert(ok == 1 && n == SEEN_KEY_BYTES);
        u->fits[i] = x.fits;
    }
    EVP_MD_CTX_free(hash);
}

static int compare_keys(const void *a, const void *b)
{
    return memcmp(((const struct seen_chunk *)a)->key.bytes,
        ((const struct seen_chunk *)b)->key.bytes, SEEN_KEY_BYTES);
}

bool seen_find(const struct seen_save *u, size_t i, struct manifest_chunk *c)
{
    const struct seen_chunk *found;
    struct seen_chunk wanted;

    if (!u->seen || !u->usable || !u->fits[i] || u->seen->n == 0)
        return false;
    wanted.key = u->keys[i];
    found = bsearch(&wanted, u->seen->v, u->seen->n, sizeof(wanted), compare_keys);
    if (!found)
        return false;
    str_hex(found->sha256, sizeof(found->sha256), c->sha256);
    c->stored = found->stored;
    return true;
}

/* The kernel grants a read lease only if no process has the file open for writing. An open for
 * writing meanwhile waits until the lease is released; its SIGURG to us is ignored by default. */
bool seen_has_no_writer(int fd)
{
    if (fcntl(fd, F_SETSIG, SIGURG) || fcntl(fd, F_SETLEASE, F_RDLCK))
        return false;
    fcntl(fd, F_SETLEASE, F_UNLCK);
    return true;
}

void seen_reads(struct seen_save *u, size_t i, int fd)
{
    if (u->usable && u->fits[i] && !seen_has_no_writer(fd))
        u->fits[i] = false;
}

void seen_exclude(struct seen_save *u, size_t i)
{
    if (u->usable)
        u->fits[i] = false;
}

void seen_end(struct seen_save *u, const struct manifest *m)
{
    struct ckpt_seen *seen = u->seen;

    if (!seen || !u->usable)
        return;
    free(seen->v);
    seen->v = mem_array(m->n_chunks + 1, sizeof(seen->v[0]));
    seen->n = 0;
    for (size_t i = 0; i < m->n_chunks; i++)
        if (u->fits[i]) {
            struct seen_chunk *c = &seen->v[seen->n++];

            c->key = u->keys[i];
            c->stored = m->chunks[i].stored;
            str_unhex(m->chunks[i].sha256, c->sha256, sizeof(c->sha256));
        }
    if (seen->n)
        qsort(seen->v, seen->n, sizeof(seen->v[0]), compare_keys);
}

void seen_save_deinit(struct seen_save *u)
{
    free(u->keys);
    free(u->fits);
    *u = (struct seen_save){0};
}
