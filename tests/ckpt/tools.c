/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/ckpt/tools.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/prng.h"
#include "base/str.h"
#include "ckpt/scan.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void check_ok(int rc, const struct err *e, const char *what, const char *file, int line)
{
    if (rc == 0)
        return;
    print_error("%s: %s: %s\n", what, err_kind_name((enum err_kind)rc), e->text);
    _fail(file, line);
}

void check_kind(int kind, int rc, const struct err *e, const char *what, const char *file, int line)
{
    if (rc == kind && (int)e->kind == kind && e->text[0])
        return;
    print_error("%s: expected %s, got %s (%s)\n", what, err_kind_name((enum err_kind)kind),
        err_kind_name((enum err_kind)rc), rc ? e->text : "");
    _fail(file, line);
}

void scratch_init(struct scratch *s)
{
    const char *base = getenv("TMPDIR");
    struct err e;
    char url[400];

    if (!base) /* avoid a disk if possible, because of thousands of fsyncs */
        base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    memset(s, 0, sizeof(*s));
    snprintf(s->dir, sizeof(s->dir), "%s/belay-test-XXXXXX", base);
    assert_non_null(mkdtemp(s->dir));
    snprintf(s->tree, sizeof(s->tree), "%s/tree", s->dir);
    snprintf(s->out, sizeof(s->out), "%s/out", s->dir);
    snprintf(s->store, sizeof(s->store), "%s/store", s->dir);
    snprintf(url, sizeof(url), "file://%s", s->store);
    assert_int_equal(mkdir(s->tree, 0700), 0);
    s->job = (struct ckpt_job){.cluster = "lab", .job = 7};
    if (getenv("BELAY_TEST_ENCRYPT")) {
        s->crypt.encrypts = true;
        OK(crypt_add(&s->crypt, SCRATCH_KEY, &e));
        s->job.crypt = &s->crypt;
    }
    OK(store_open(url, NULL, &s->job.store, &e));
}

void scratch_deinit(struct scratch *s)
{
    struct err e;

    store_close(s->job.store);
    OK(fs_remove_tree(s->dir, &e));
}

int scratch_setup(void **state)
{
    struct scratch *s = mem_alloc(sizeof(*s));

    scratch_init(s);
    *state = s;
    return 0;
}

int scratch_teardown(void **state)
{
    scratch_deinit(*state);
    free(*state);
    return 0;
}

char *path_in(const char *dir, const char *name)
{
    static char paths[8][1024];
    static unsigned int next;
    char *path = paths[next++ % 8];

    snprintf(path, sizeof(paths[0]), "%s/%s", dir, name);
    return path;
}

static void set_old_time(const char *path)
{
    struct timespec times[2] = {
        {.tv_sec = 1000000000, .tv_nsec = 123456789}, {1000000000, 123456789}};

    assert_int_equal(utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW), 0);
}

void write_bytes(const char *dir, const char *name, const void *p, size_t n)
{
    int fd = open(path_in(dir, name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
    struct err e;

    assert_true(fd >= 0);
    OK(fs_write_all(fd, p, n, &e));
    assert_int_equal(close(fd), 0);
    set_old_time(path_in(dir, name));
}

void write_text(const char *dir, const char *name, const char *text)
{
    write_bytes(dir, name, text, strlen(text));
}

void make_dir(const char *dir, const char *name)
{
    assert_int_equal(mkdir(path_in(dir, name), 0755), 0);
}

void write_random(const char *dir, const char *name, size_t n, uint64_t seed)
{
    uint64_t *p = mem_array(n / 8 + 1, 8);
    struct prng prng;

    prng_init(&prng, seed);
    for (size_t i = 0; i <= n / 8; i++)
        p[i] = prng_u64(&prng);
    write_bytes(dir, name, p, n);
    free(p);
}

void make_tree(const char *dir, int64_t number)
{
    static const char *const all[] = {"empty", "common", "number", "link", "sub/noise",
        "sub/deep/run", "sub/deep", "sub/closed", "sub"};
    char text[64];
    struct err e;

    OK(fs_remove_tree(dir, &e));
    assert_int_equal(mkdir(dir, 0700), 0);
    make_dir(dir, "sub");
    make_dir(dir, "sub/deep");
    make_dir(dir, "sub/closed");
    write_text(dir, "empty", "");
    write_text(
        dir, "common", "the same in every tree, the same in every tree, the same in every tree\n");
    snprintf(text, sizeof(text), "tree %lld\n", (long long)number);
    write_text(dir, "number", text);
    assert_int_equal(symlink("sub/noise", path_in(dir, "link")), 0);
    write_random(dir, "sub/noise", 300, (uint64_t)number);
    write_text(dir, "sub/deep/run", "#!/bin/sh\n");
    assert_int_equal(chmod(path_in(dir, "sub/deep/run"), 0755), 0);
    assert_int_equal(chmod(path_in(dir, "number"), 0400), 0);
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        set_old_time(path_in(dir, all[i]));
    assert_int_equal(chmod(path_in(dir, "sub/closed"), 0500), 0);
}

static void scan(const char *dir, struct manifest *ret)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct scan s;
    struct err e;

    assert_true(fd >= 0);
    OK(scan_tree(fd, ret, &s, &e));
    scan_deinit(&s);
    close(fd);
}

static bool same_content(const char *a, const char *b, const char *name)
{
    struct buf x = {0}, y = {0};
    struct err e;
    bool same;

    OK(fs_read(path_in(a, name), 1u << 30, &x, &e));
    OK(fs_read(path_in(b, name), 1u << 30, &y, &e));
    same = x.len == y.len && (x.len == 0 || memcmp(x.data, y.data, x.len) == 0);
    buf_deinit(&x);
    buf_deinit(&y);
    return same;
}

static bool same_xattrs(const struct manifest_extra *a, const struct manifest_extra *b)
{
    size_t n = a ? a->n_xattrs : 0;

    if (n != (b ? b->n_xattrs : 0))
        return false;
    for (size_t i = 0; i < n; i++) {
        const struct manifest_xattr *x = &a->xattrs[i], *y = &b->xattrs[i];

        if (!str_eq(x->name, y->name) || x->size != y->size ||
            memcmp(x->value, y->value, x->size) != 0)
            return false;
    }
    return true;
}

/* NULL, or the first path that differs (borrowed from x or y). */
static const char *first_difference(
    const char *a, const char *b, const struct manifest *x, const struct manifest *y)
{
    for (size_t i = 0; i < x->n_entries || i < y->n_entries; i++) {
        const struct manifest_entry *p, *q;

        if (i >= x->n_entries || i >= y->n_entries)
            return i >= x->n_entries ? y->entries[i].path : x->entries[i].path;
        p = &x->entries[i];
        q = &y->entries[i];
        if (!str_eq(p->path, q->path) || p->type != q->type || p->mode != q->mode ||
            p->mtime_ns != q->mtime_ns || !str_eq(p->target, q->target) || p->size != q->size ||
            !same_xattrs(p->extra, q->extra))
            return p->path;
        if (p->type == MANIFEST_FILE && !same_content(a, b, p->path))
            return p->path;
    }
    return NULL;
}

static bool compare_trees(const char *a, const char *b, bool tell)
{
    struct manifest x = {0}, y = {0};
    const char *difference;

    scan(a, &x);
    scan(b, &y);
    difference = first_difference(a, b, &x, &y);
    if (difference && tell)
        print_error("%s and %s differ in %s\n", a, b, difference);
    manifest_deinit(&x);
    manifest_deinit(&y);
    return !difference;
}

bool is_same_tree(const char *a, const char *b)
{
    return compare_trees(a, b, false);
}

void assert_same_tree(const char *a, const char *b)
{
    assert_true(compare_trees(a, b, true));
}

void assert_tree_is(const char *dir, int64_t number)
{
    char expected[600];
    struct err e;

    snprintf(expected, sizeof(expected), "%s.expected", dir);
    make_tree(expected, number);
    assert_same_tree(expected, dir);
    OK(fs_remove_tree(expected, &e));
}

struct ckpt_stats save(struct scratch *s, int64_t attempt, int64_t sequence)
{
    struct ckpt_stats stats = {0};
    struct err e;

    OK(ckpt_save(
        &s->job, (struct ckpt_id){attempt, sequence}, s->tree, sequence * 100, NULL, &stats, &e));
    return stats;
}

struct ckpt_restored restore(struct scratch *s, int64_t before_attempt)
{
    struct ckpt_restored restored = {0};
    struct err e;

    OK(ckpt_restore(&s->job, before_attempt, s->out, NULL, &restored, &e));
    return restored;
}

int clean_job(const struct ckpt_job *j, int64_t attempt, int keep, struct err *e)
{
    return ckpt_clean(j, attempt, (struct ckpt_keep){.newest = keep}, NULL, NULL, e);
}

struct search {
    const char *part;
    char (*names)[600];
    size_t n, max;
};

static int note_object(void *ctx, const char *name, int64_t size_bytes)
{
    struct search *f = ctx;

    (void)size_bytes;
    if (!strstr(name, f->part))
        return 0;
    if (f->names) {
        assert_true(f->n < f->max);
        snprintf(f->names[f->n], sizeof(f->names[0]), "%s", name);
    }
    f->n++;
    return 0;
}

size_t find_objects(struct scratch *s, const char *part, char names[][600], size_t max)
{
    struct search f = {.part = part, .names = names, .max = max};
    struct err e;

    OK(s->job.store->ops->list(s->job.store, "", note_object, &f, &e));
    return f.n;
}

void snapshot_take(struct scratch *s, struct snapshot *snap)
{
    struct err e;

    snap->n = find_objects(s, "", snap->names, SNAPSHOT_MAX);
    for (size_t i = 0; i < snap->n; i++)
        OK(fs_read(path_in(s->store, snap->names[i]), 1u << 24, &snap->content[i], &e));
}

void snapshot_put_back(struct scratch *s, const struct snapshot *snap)
{
    struct err e;

    OK(fs_remove_tree(path_in(s->store, "lab"), &e));
    for (size_t i = 0; i < snap->n; i++) {
        char *path = path_in(s->store, snap->names[i]);
        char *slash = strrchr(path, '/');

        *slash = '\0';
        OK(fs_mkdirs(path, 0700, &e));
        *slash = '/';
        write_bytes(s->store, snap->names[i], snap->content[i].data, snap->content[i].len);
    }
}

void snapshot_deinit(struct snapshot *snap)
{
    for (size_t i = 0; i < snap->n; i++)
        buf_deinit(&snap->content[i]);
    snap->n = 0;
}

static void ignore_log(void *ctx, enum log_level level, const char *line)
{
    (void)ctx;
    (void)level;
    (void)line;
}

void discard_log(void)
{
    log_set_sink(ignore_log, NULL);
}
