/* SPDX-License-Identifier: Apache-2.0
 *
 * Executes the commands of bench/checkpoint.py: reads one per line from stdin, and answers each
 * with a line on stdout, {"ms":...,...} or an error.
 *     fill FILE MIB SEED     write random bytes
 *     disk DIR MIB           write files of 4 MiB into DIR in parallel, past the page cache, each
 *                            fsynced: the write limit of the disk
 *     load DIR MIB           read them back: the read limit
 *     read FILE              read FILE into the page cache
 *     evict DIR              drop everything below DIR from the page cache
 *     save DIR               save as the next checkpoint of one attempt; skip unchanged files
 *     snapshot DIR           take a snapshot beside DIR: the time that a program waits
 *     forget                 forget which files were read before
 *     encrypt                encrypt from now on
 *     restore DIR
 * The store is a directory or S3, with the keys in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.
 */
#include "base/fs.h"
#include "base/mem.h"
#include "base/prng.h"
#include "base/str.h"
#include "ckpt/chunk.h"
#include "ckpt/store/direct.h"
#include "ckpt/store/store_net.h"
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCK (4u << 20)

struct bench {
    struct ckpt_job job;
    struct ckpt_crypt crypt;
    struct ckpt_seen *seen;
    int64_t sequence;
    char *block;
    struct ckpt_stats stats;
};

static int fill(struct bench *b, const char *path, const char *mib, const char *seed, struct err *e)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), rc = 0;
    struct prng prng;

    if (fd < 0)
        return err_errno(e, errno, "create %s", path);
    prng_init(&prng, strtoull(seed, NULL, 10));
    for (long left = strtol(mib, NULL, 10); !rc && left > 0; left--) {
        for (size_t i = 0; i < (1u << 20) / 8; i++)
            ((uint64_t *)(void *)b->block)[i] = prng_u64(&prng);
        rc = fs_write_all(fd, b->block, 1u << 20, e);
    }
    if (!rc && fsync(fd))
        rc = err_errno(e, errno, "sync %s", path);
    close(fd);
    return rc;
}

static int read_through(struct bench *b, const char *from, struct err *e)
{
    int in = open(from, O_RDONLY | O_CLOEXEC), rc = 0;
    ssize_t n = 1;

    while (in >= 0 && n > 0)
        n = read(in, b->block, BLOCK);
    if (in < 0 || n < 0)
        rc = err_errno(e, errno, "read %s", from);
    if (in >= 0)
        close(in);
    return rc;
}

struct disk {
    const char *dir, *block;
    bool writes;
};

static int move_file(void *ctx, struct chunk_work *w, size_t i, struct err *e)
{
    const struct disk *d = ctx;
    char *path = mem_printf("%s/%zu", d->dir, i);
    int rc = 0, fd = -1;

    if (!d->writes) {
        rc = direct_read(path, BLOCK, &w->object, e);
    } else {
        fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        rc = fd < 0 ? err_errno(e, errno, "create %s", path) : direct_write(fd, d->block, BLOCK, e);
    }
    if (!rc && fd >= 0 && fsync(fd))
        rc = err_errno(e, errno, "sync %s", path);
    if (fd >= 0)
        close(fd);
    free(path);
    return rc;
}

static int disk(const struct bench *b, const char *dir, const char *mib, bool writes, struct err *e)
{
    struct disk d = {.dir = dir, .block = b->block, .writes = writes};
    int rc = fs_mkdirs(dir, 0700, e);

    return rc ? rc : chunk_for_each(strtoul(mib, NULL, 10) / (BLOCK >> 20), move_file, &d, NULL, e);
}

static int evict(char *dir, struct err *e)
{
    char *const roots[] = {dir, NULL};
    FTS *walk = fts_open(roots, FTS_PHYSICAL, NULL);

    if (!walk)
        return err_errno(e, errno, "walk %s", dir);
    for (FTSENT *entry; (entry = fts_read(walk));) {
        int fd = entry->fts_info == FTS_F ? open(entry->fts_accpath, O_RDONLY | O_CLOEXEC) : -1;

        if (fd < 0)
            continue;
        /* without the flush of fdatasync, which takes a millisecond a file */
        sync_file_range(fd, 0, 0,
            SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
        posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        close(fd);
    }
    fts_close(walk);
    return 0;
}

static int save(struct bench *b, const char *dir, struct err *e)
{
    const struct ckpt_id id = {1, ++b->sequence};

    return ckpt_save_with(
        &b->job, id, dir, -1, NULL, &(struct ckpt_save_with){.seen = b->seen}, &b->stats, e);
}

/* stats.bytes is 0 if no snapshot is possible; then the program waits for the save. */
static int snapshot(struct bench *b, const char *dir, struct err *e)
{
    char *scratch = mem_printf("%s/..", dir);
    const struct ckpt_snapshot_how how = {.scratch = scratch};
    struct ckpt_snapshot_stats stats = {0};
    struct ckpt_snapshot *s = NULL;
    int rc = ckpt_snapshot_take(dir, &how, NULL, &s, &stats, e);

    b->stats.bytes = stats.copied_bytes + stats.cloned_bytes + stats.kept_open_bytes;
    ckpt_snapshot_destroy(s);
    free(scratch);
    return rc;
}

static int restore(struct bench *b, const char *dir, struct err *e)
{
    struct ckpt_restored restored;
    int rc = ckpt_restore(&b->job, 2, dir, NULL, &restored, e);

    b->stats = restored.stats;
    return rc;
}

static int encrypt(struct bench *b, struct err *e)
{
    char key[CRYPT_KEY_HEX + 1];
    int rc;

    random_hex(CRYPT_KEY_BYTES, key);
    rc = crypt_add(&b->crypt, key, e);
    b->crypt.encrypts = true;
    b->job.crypt = &b->crypt;
    return rc;
}

static int run(struct bench *b, char *line, struct err *e)
{
    char *words[4] = {NULL}, *rest = line;
    size_t n = 0;

    line[strcspn(line, "\n")] = '\0';
    while (n < 4 && (words[n] = strsep(&rest, " ")))
        n++;
    if (n == 4 && str_eq(words[0], "fill"))
        return fill(b, words[1], words[2], words[3], e);
    if (n == 3 && (str_eq(words[0], "disk") || str_eq(words[0], "load")))
        return disk(b, words[1], words[2], str_eq(words[0], "disk"), e);
    if (n == 2 && str_eq(words[0], "read"))
        return read_through(b, words[1], e);
    if (n == 2 && str_eq(words[0], "evict"))
        return evict(words[1], e);
    if (n == 2 && str_eq(words[0], "save"))
        return save(b, words[1], e);
    if (n == 2 && str_eq(words[0], "snapshot"))
        return snapshot(b, words[1], e);
    if (n == 2 && str_eq(words[0], "restore"))
        return restore(b, words[1], e);
    if (n == 1 && str_eq(words[0], "encrypt"))
        return encrypt(b, e);
    if (n != 1 || !str_eq(words[0], "forget"))
        return err_set(e, ERR_INVALID, "%s: no such command", line);
    ckpt_seen_destroy(b->seen);
    b->seen = ckpt_seen_create();
    return 0;
}

/* Peak memory since the last call, in KiB. */
static long take_peak(void)
{
    struct buf text = {0};
    struct err e;
    const char *line;
    long peak = 0;
    int fd;

    if (!fs_read("/proc/self/status", 1 << 16, &text, &e) &&
        (line = strstr(buf_str(&text), "VmHWM:")))
        peak = strtol(line + 6, NULL, 10);
    buf_deinit(&text);
    fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
    if (fd >= 0) {
        fs_write_all(fd, "5", 1, &e);
        close(fd);
    }
    return peak;
}

static struct store_net *make_net(void)
{
    struct store_net *net = store_net_create(NULL, NULL);
    const char *access_key = getenv("AWS_ACCESS_KEY_ID"),
               *secret_key = getenv("AWS_SECRET_ACCESS_KEY");
    struct store_keys k = {.kind = STORE_KEYS_AWS, .expires = WALL_NONE};

    if (access_key && secret_key && STR_COPY(k.access_key, access_key) &&
        STR_COPY(k.secret_key, secret_key))
        store_auth_set(store_net_auth(net, STORE_KEYS_AWS), &k);
    store_keys_wipe(&k);
    return net;
}

int main(int argc, char **argv)
{
    struct bench b = {.job = {.cluster = "bench", .job = 1},
        .seen = ckpt_seen_create(),
        .block = mem_pages(BLOCK)};
    const struct store_options o = {.net = make_net()};
    struct prng prng;
    char line[4096];
    struct err e;

    if (argc != 2 || store_open(argv[1], &o, &b.job.store, &e)) {
        fprintf(stderr, "usage: bench_checkpoint file:///STORE|s3://BUCKET/PREFIX?endpoint=URL\n");
        return 2;
    }
    prng_init(&prng, 1);
    for (size_t i = 0; i < BLOCK / 8; i++)
        ((uint64_t *)(void *)b.block)[i] = prng_u64(&prng);
    take_peak();
    while (fgets(line, sizeof(line), stdin)) {
        int64_t start = clock_mono(&clock_system).ms;

        b.stats = (struct ckpt_stats){0};
        if (run(&b, line, &e)) {
            printf("error: %s\n", e.text);
        } else {
            printf("{\"ms\":%lld,\"bytes\":%lld,\"stored\":%lld,\"reused\":%lld,\"unread\":%lld,"
                   "\"peak_kib\":%ld}\n",
                (long long)(clock_mono(&clock_system).ms - start), (long long)b.stats.bytes,
                (long long)b.stats.stored_bytes, (long long)b.stats.reused_bytes,
                (long long)b.stats.unread_bytes, take_peak());
        }
        fflush(stdout);
    }
    store_close(b.job.store);
    store_net_destroy(o.net);
    ckpt_seen_destroy(b.seen);
    free(b.block);
    return 0;
}
