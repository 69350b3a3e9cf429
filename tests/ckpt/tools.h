/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the tests of ckpt: a scratch directory with a store and trees.
 */
#ifndef BELAY_TESTS_CKPT_TOOLS_H
#define BELAY_TESTS_CKPT_TOOLS_H

#include "base/buf.h"
#include "base/map.h"
#include "ckpt/ckpt.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define OK(call) check_ok((call), &e, #call, __FILE__, __LINE__)
#define FAILS(kind, call) check_kind((kind), (call), &e, #call, __FILE__, __LINE__)
void check_ok(int rc, const struct err *e, const char *what, const char *file, int line);
void check_kind(
    int kind, int rc, const struct err *e, const char *what, const char *file, int line);

struct scratch {
    char dir[256];   /* removed by scratch_deinit */
    char tree[300];  /* dir/tree: the source of saves */
    char out[300];   /* dir/out: the target of restores */
    char store[300]; /* dir/store: the store's root */
    struct ckpt_job job;
    /* job.crypt, if BELAY_TEST_ENCRYPT is in the environment: then everything is encrypted */
    struct ckpt_crypt crypt;
};

#define SCRATCH_KEY "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

/* An empty tree and an open store; job 7 of cluster "lab". */
void scratch_init(struct scratch *s);
void scratch_deinit(struct scratch *s);
/* Setup and teardown for cmocka: *state is a struct scratch. */
int scratch_setup(void **state);
int scratch_teardown(void **state);

char *path_in(const char *dir, const char *name); /* borrowed until the 8th next call */
/* Files get times of 2001, so writing twice gives the same file. */
void write_text(const char *dir, const char *name, const char *text);
void write_bytes(const char *dir, const char *name, const void *p, size_t n);
void make_dir(const char *dir, const char *name);

/* A small tree that is a function of its number: nested directories, a link, an empty file, modes,
 * old times. The file "common" is the same in all. */
void make_tree(const char *dir, int64_t number);
/* n bytes that do not compress, a function of seed. */
void write_random(const char *dir, const char *name, size_t n, uint64_t seed);

/* Fails unless both trees have the same entries, types, contents, modes, user attributes and
 * modification times. */
void assert_same_tree(const char *a, const char *b);
bool is_same_tree(const char *a, const char *b);
/* Fails unless dir is what make_tree(number) makes. */
void assert_tree_is(const char *dir, int64_t number);

/* saves the tree; fails on errors */
struct ckpt_stats save(struct scratch *s, int64_t attempt, int64_t sequence);
/* restores to out; fails on errors */
struct ckpt_restored restore(struct scratch *s, int64_t before_attempt);

/* ckpt_clean with keep.newest = keep */
int clean_job(const struct ckpt_job *j, int64_t attempt, int keep, struct err *e);

/* A copy of all objects of the store in files, to restore them. Zeroed is empty. */
#define SNAPSHOT_MAX 32
struct snapshot {
    char names[SNAPSHOT_MAX][600];
    struct buf content[SNAPSHOT_MAX];
    size_t n;
};
void snapshot_take(struct scratch *s, struct snapshot *snap); /* snap must be empty */
/* removes everything else */
void snapshot_put_back(struct scratch *s, const struct snapshot *snap);
void snapshot_deinit(struct snapshot *snap);

/* Full names of the objects whose name contains part, in order; count only if names is NULL. */
size_t find_objects(struct scratch *s, const char *part, char names[][600], size_t max);

/* Log lines are discarded until log_set_sink(NULL, NULL). */
void discard_log(void);

#endif
