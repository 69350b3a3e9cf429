/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/ckpt/gang_rig.h"

#include "base/fs.h"
#include <stdio.h>

void rank_make_state(struct rank *r, int64_t number)
{
    struct err e;

    fs_remove_tree(r->tree, &e);
    OK(fs_mkdirs(r->tree, 0700, &e));
    make_tree(r->tree, number * 10 + r->gang.rank);
    write_random(r->tree, "own", 3u << 20, (uint64_t)(number * 10 + r->gang.rank));
    write_random(r->tree, "replicated", 5u << 20, (uint64_t)number);
}

void gang_init(struct gang *g, struct scratch *s)
{
    *g = (struct gang){0};
    for (int32_t k = 0; k < RANKS; k++) {
        struct rank *r = &g->ranks[k];
        *r = (struct rank){.s = s, .gang = {k, RANKS}, .before = 2};
        snprintf(r->tree, sizeof(r->tree), "%s/tree-%d", s->dir, (int)k);
        snprintf(r->out, sizeof(r->out), "%s/out-%d", s->dir, (int)k);
        rank_make_state(r, 1);
    }
    struct rank *later = &g->ranks[RANKS];
    later->s = s;
    snprintf(later->out, sizeof(later->out), "%s/out-%d", s->dir, RANKS);
}

void *rank_save(void *ctx)
{
    struct rank *r = ctx;

    const struct ckpt_save_with with = {.gang = r->gang,
        .deadline_ms = r->deadline_ms,
        .refused = r->refused,
        .keep.newest = r->keep};

    r->rc = r->snapshot ? ckpt_save_snapshot(&r->s->job, r->id, r->snapshot, r->progress, NULL,
                              &with, &r->stats, &r->e)
                        : ckpt_save_with(&r->s->job, r->id, r->tree, r->progress, NULL, &with,
                              &r->stats, &r->e);
    ckpt_snapshot_destroy(r->snapshot);
    r->snapshot = NULL;
    return NULL;
}

void rank_take_snapshot(struct rank *r)
{
    const struct ckpt_snapshot_how how = {.scratch = r->s->dir};
    struct ckpt_snapshot_stats stats;
    struct err e;

    OK(ckpt_snapshot_take(r->tree, &how, NULL, &r->snapshot, &stats, &e));
    assert_non_null(r->snapshot);
}

void *rank_restore(void *ctx)
{
    struct rank *r = ctx;

    r->rc = ckpt_restore_with(&r->s->job, r->before, r->out,
        &(struct ckpt_restore_with){
            .gang = r->gang, .ranks_dir = *r->ranks_dir ? r->ranks_dir : NULL},
        NULL, &r->restored, &r->e);
    return NULL;
}

void gang_all(struct gang *g, void *(*fn)(void *), int32_t n)
{
    for (int32_t k = 0; k < n; k++)
        assert_int_equal(pthread_create(&g->ranks[k].thread, NULL, fn, &g->ranks[k]), 0);
    for (int32_t k = 0; k < n; k++)
        assert_int_equal(pthread_join(g->ranks[k].thread, NULL), 0);
}

void gang_set_save(struct gang *g, int64_t attempt, int64_t sequence, int64_t progress)
{
    for (int32_t k = 0; k < RANKS; k++) {
        g->ranks[k].id = (struct ckpt_id){attempt, sequence};
        g->ranks[k].progress = progress;
        g->ranks[k].deadline_ms = 0;
    }
}

void rank_must(const struct rank *r)
{
    if (r->rc)
        fail_msg("rank %d: %s", (int)r->gang.rank, r->e.text);
}

void gang_save_all(struct gang *g, int64_t attempt, int64_t sequence, int64_t progress)
{
    gang_set_save(g, attempt, sequence, progress);
    gang_all(g, rank_save, RANKS);
    for (int32_t k = 0; k < RANKS; k++) {
        rank_must(&g->ranks[k]);
        assert_int_equal(g->ranks[k].stats.sequence, sequence);
    }
}

void assert_none_committed(struct scratch *s, size_t n)
{
    assert_int_equal(find_objects(s, "/manifests/", NULL, 100), n);
}
