/* SPDX-License-Identifier: Apache-2.0
 *
 * A gang whose ranks are threads with one store.
 */
#ifndef BELAY_TESTS_CKPT_GANG_RIG_H
#define BELAY_TESTS_CKPT_GANG_RIG_H

#include "ckpt/gang.h"
#include "tests/ckpt/tools.h"
#include <pthread.h>

#define RANKS 4
#define SHORT_MS 2000

struct rank {
    struct scratch *s;
    pthread_t thread;
    struct ckpt_gang gang;
    struct ckpt_id id;
    int64_t progress, deadline_ms, before;
    struct ckpt_snapshot *snapshot; /* to be saved instead of the tree: the program has continued */
    const struct err *refused;
    int keep; /* checkpoints to keep, in a full store */
    char tree[400], out[400], ranks_dir[420];
    int rc;
    struct err e;
    struct ckpt_stats stats;
    struct ckpt_restored restored;
};

struct gang {
    struct rank ranks[RANKS + 1]; /* and a later one */
};

void rank_make_state(struct rank *r, int64_t number);
void gang_init(struct gang *g, struct scratch *s);
void *rank_save(void *ctx);
/* Takes a snapshot of the tree for the next save. */
void rank_take_snapshot(struct rank *r);
void *rank_restore(void *ctx);
void gang_all(struct gang *g, void *(*fn)(void *), int32_t n);
void gang_set_save(struct gang *g, int64_t attempt, int64_t sequence, int64_t progress);
void rank_must(const struct rank *r);
void gang_save_all(struct gang *g, int64_t attempt, int64_t sequence, int64_t progress);
void assert_none_committed(struct scratch *s, size_t n);

#endif
