/* SPDX-License-Identifier: Apache-2.0
 *
 * Checkpoints of several ranks: threads that meet in one store.
 */
#include "ckpt/gang.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/time.h"
#include "ckpt/layout.h"
#include "tests/ckpt/tools.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RANKS 4
#define SHORT_MS 2000

struct rank {
    struct scratch *s;
    pthread_t thread;
    struct ckpt_gang gang;
    struct ckpt_id id;
    int64_t progress, deadline_ms, before;
    char tree[400], out[400], ranks_dir[420];
    int rc;
    struct err e;
    struct ckpt_stats stats;
    struct ckpt_restored restored;
};

struct gang {
    struct rank ranks[RANKS + 1]; /* one that comes later */
};

static int64_t now_ms(void)
{
    return clock_mono(&clock_system).ms;
}

static void make_state(struct rank *r, int64_t number)
{
    struct err e;

    fs_remove_tree(r->tree, &e);
    OK(fs_mkdirs(r->tree, 0700, &e));
    make_tree(r->tree, number * 10 + r->gang.rank);
    write_random(r->tree, "own", 3u << 20, (uint64_t)(number * 10 + r->gang.rank));
    write_random(r->tree, "replicated", 5u << 20, (uint64_t)number);
}

static void gang_init(struct gang *g, struct scratch *s)
{
    *g = (struct gang){0};
    for (int32_t k = 0; k < RANKS; k++) {
        struct rank *r = &g->ranks[k];
        *r = (struct rank){.s = s, .gang = {k, RANKS}, .before = 2};
        snprintf(r->tree, sizeof(r->tree), "%s/tree-%d", s->dir, (int)k);
        snprintf(r->out, sizeof(r->out), "%s/out-%d", s->dir, (int)k);
        make_state(r, 1);
    }
    struct rank *later = &g->ranks[RANKS];
    later->s = s;
    snprintf(later->out, sizeof(later->out), "%s/out-%d", s->dir, RANKS);
}

static void *save_rank(void *ctx)
{
    struct rank *r = ctx;

    r->rc = ckpt_save_with(&r->s->job, r->id, r->tree, r->progress, NULL,
        &(struct ckpt_save_with){.gang = r->gang, .deadline_ms = r->deadline_ms}, &r->stats, &r->e);
    return NULL;
}

static void *restore_rank(void *ctx)
{
    struct rank *r = ctx;

    r->rc = ckpt_restore_with(&r->s->job, r->before, r->out,
        &(struct ckpt_restore_with){.gang = r->gang, .ranks_dir = *r->ranks_dir ? r->ranks_dir : NULL}, NULL,
        &r->restored, &r->e);
    return NULL;
}

static void all(struct gang *g, void *(*fn)(void *), int32_t n)
{
    for (int32_t k = 0; k < n; k++)
        assert_int_equal(pthread_create(&g->ranks[k].thread, NULL, fn, &g->ranks[k]), 0);
    for (int32_t k = 0; k < n; k++)
        assert_int_equal(pthread_join(g->ranks[k].thread, NULL), 0);
}

static void set_save(struct gang *g, int64_t attempt, int64_t sequence, int64_t progress)
{
    for (int32_t k = 0; k < RANKS; k++) {
        g->ranks[k].id = (struct ckpt_id){attempt, k == 0 ? sequence : 1};
        g->ranks[k].progress = progress;
        g->ranks[k].deadline_ms = 0;
    }
}

static void must(const struct rank *r)
{
    if (r->rc)
        fail_msg("rank %d: %s", (int)r->gang.rank, r->e.text);
}

static void save_all(struct gang *g, int64_t attempt, int64_t sequence, int64_t progress)
{
    set_save(g, attempt, sequence, progress);
    for (int32_t k = 1; k < RANKS; k++)
        g->ranks[k].id.sequence = sequence; /* they know what they have joined */
    all(g, save_rank, RANKS);
    for (int32_t k = 0; k < RANKS; k++) {
        must(&g->ranks[k]);
        assert_int_equal(g->ranks[k].stats.sequence, sequence);
    }
}

static void assert_none_committed(struct scratch *s, size_t n)
{
    assert_int_equal(find_objects(s, "/manifests/", NULL, 100), n);
}

static void every_rank_gets_back_what_it_saved(void **state)
{
    struct scratch *s = *state;
    struct gang g;

    gang_init(&g, s);
    save_all(&g, 1, 1, 100);
    assert_none_committed(s, 1);
    all(&g, restore_rank, RANKS);
    for (int32_t k = 0; k < RANKS; k++) {
        must(&g.ranks[k]);
        assert_int_equal(g.ranks[k].restored.id.sequence, 1);
        assert_int_equal(g.ranks[k].restored.progress, 100);
        assert_same_tree(g.ranks[k].tree, g.ranks[k].out);
    }
}

/* As one tree, for whoever looks at it without knowing of ranks. */
static void a_gangs_checkpoint_is_one_like_any(void **state)
{
    struct scratch *s = *state;
    struct gang g;
    struct ckpt_stats stats;
    struct err e;

    gang_init(&g, s);
    save_all(&g, 1, 1, 5);
    OK(ckpt_verify(&s->job, (struct ckpt_id){1, 1}, &e));
    OK(ckpt_get(&s->job, (struct ckpt_id){1, 1}, s->out, NULL, &stats, &e));
    char part[400];
    snprintf(part, sizeof(part), "%s/rank-0002", s->out);
    assert_same_tree(g.ranks[2].tree, part);
    assert_int_equal(stats.bytes, g.ranks[1].stats.bytes); /* each rank knows of all */
}

/* What all ranks hold alike is stored once, and cleaning leaves one checkpoint and nothing of how it was made. */
static void content_is_shared_and_cleaned(void **state)
{
    struct scratch *s = *state;
    struct gang g;
    struct err e;

    gang_init(&g, s);
    save_all(&g, 1, 1, 1);
    size_t n = find_objects(s, "/chunks/", NULL, 1000);
    assert_in_range(n, 1, 3 * RANKS + 2);
    for (int32_t k = 0; k < RANKS; k++)
        make_state(&g.ranks[k], 2);
    save_all(&g, 1, 2, 2);
    OK(clean_job(&s->job, 1, 1, &e));
    assert_none_committed(s, 1);
    assert_int_equal(find_objects(s, "/chunks/", NULL, 1000), n);
    assert_int_equal(find_objects(s, "/gang/", NULL, 1000), 0);
    all(&g, restore_rank, RANKS);
    for (int32_t k = 0; k < RANKS; k++) {
        must(&g.ranks[k]);
        assert_same_tree(g.ranks[k].tree, g.ranks[k].out);
    }
}

static void one_that_cannot_save_fails_all_at_once(void **state)
{
    struct scratch *s = *state;
    struct gang g;

    gang_init(&g, s);
    assert_int_equal(mkfifo(path_in(g.ranks[2].tree, "pipe"), 0600), 0);
    set_save(&g, 1, 1, 1);
    int64_t before = now_ms();
    all(&g, save_rank, RANKS);
    assert_true(now_ms() - before < GANG_WAIT_MS / 4);
    assert_int_equal(g.ranks[2].rc, ERR_UNSUPPORTED);
    for (int32_t k = 0; k < RANKS; k++) {
        if (k == 2)
            continue;
        assert_int_equal(g.ranks[k].rc, ERR_UNAVAILABLE);
        assert_non_null(strstr(g.ranks[k].e.text, "rank 2 could not save"));
        assert_non_null(strstr(g.ranks[k].e.text, "pipe"));
    }
    assert_none_committed(s, 0);
    unlink(path_in(g.ranks[2].tree, "pipe"));
    save_all(&g, 1, 2, 2);
    assert_none_committed(s, 1);
}

static void one_that_does_not_come_leaves_nothing(void **state)
{
    struct scratch *s = *state;
    struct gang g;

    gang_init(&g, s);
    set_save(&g, 1, 1, 1);
    for (int32_t k = 0; k < RANKS; k++)
        g.ranks[k].deadline_ms = now_ms() + SHORT_MS + GANG_WAIT_MS * (k != 0);
    all(&g, save_rank, RANKS - 1);
    assert_int_equal(g.ranks[0].rc, ERR_TIMEOUT);
    assert_non_null(strstr(g.ranks[0].e.text, "has not come to this checkpoint"));
    for (int32_t k = 1; k < RANKS - 1; k++)
        assert_int_equal(g.ranks[k].rc, ERR_UNAVAILABLE); /* rank 0 has told them */
    assert_none_committed(s, 0);
    save_rank(&g.ranks[3]); /* too late: it joins what the others have given up */
    assert_int_equal(g.ranks[3].rc, ERR_UNAVAILABLE);
    save_all(&g, 1, 2, 2);
}

static void ranks_at_different_steps_do_not_commit(void **state)
{
    struct scratch *s = *state;
    struct gang g;

    gang_init(&g, s);
    set_save(&g, 1, 1, 100);
    g.ranks[3].progress = 101;
    all(&g, save_rank, RANKS);
    for (int32_t k = 0; k < RANKS; k++) {
        assert_int_equal(g.ranks[k].rc, ERR_UNAVAILABLE);
        assert_non_null(strstr(g.ranks[k].e.text, "rank 3 is at 101, another at 100"));
    }
    assert_none_committed(s, 0);
}

static void a_fenced_gang_cannot_commit(void **state)
{
    struct scratch *s = *state;
    struct gang g;
    struct err e;

    gang_init(&g, s);
    OK(ckpt_fence(&s->job, 2, &e));
    set_save(&g, 1, 1, 1);
    all(&g, save_rank, RANKS);
    for (int32_t k = 0; k < RANKS; k++)
        assert_true(g.ranks[k].rc == ERR_CONFLICT || g.ranks[k].rc == ERR_UNAVAILABLE);
    assert_int_equal(g.ranks[0].rc, ERR_CONFLICT);
    assert_none_committed(s, 0);
}

/* Only rank 1 can see that its content of the newest is damaged; all go back. */
/* The content that only this rank has, of checkpoint 1.2. */
static void damage_own(struct scratch *s, int32_t rank)
{
    struct manifest m;
    struct err e;

    OK(layout_read_manifest(&s->job, (struct ckpt_id){1, 2}, &m, &e));
    OK(gang_slice(&m, rank, &e));
    const struct manifest_chunk *own = NULL;
    for (size_t i = 0; i < m.n_chunks; i++)
        if (m.chunks[i].size == 3u << 20)
            own = &m.chunks[i];
    assert_non_null(own);
    struct layout_name name = layout_chunk(&s->job, m.key, 1, own->sha256);
    assert_int_equal(truncate(path_in(s->store, name.s), 1000), 0);
    manifest_deinit(&m);
}

static void all_resume_from_the_same_checkpoint(void **state)
{
    struct scratch *s = *state;
    struct gang g;

    gang_init(&g, s);
    save_all(&g, 1, 1, 100);
    for (int32_t k = 0; k < RANKS; k++)
        make_state(&g.ranks[k], 2);
    save_all(&g, 1, 2, 200);
    damage_own(s, 1);
    all(&g, restore_rank, RANKS);
    int damaged = 0;
    for (int32_t k = 0; k < RANKS; k++) {
        must(&g.ranks[k]);
        assert_int_equal(g.ranks[k].restored.id.sequence, 1);
        assert_int_equal(g.ranks[k].restored.progress, 100);
        damaged += g.ranks[k].restored.damaged;
        make_state(&g.ranks[k], 1);
        assert_same_tree(g.ranks[k].tree, g.ranks[k].out);
    }
    assert_int_equal(damaged, 1);
}

/* Each rank gets what it had, and all that the others had, to share it out anew. */
static void restore_with_others(struct gang *g, int64_t before, int32_t nodes, int32_t saved_by)
{
    char part[460];
    for (int32_t k = 0; k < nodes; k++) {
        struct rank *r = &g->ranks[k];
        r->gang = (struct ckpt_gang){k, nodes};
        r->before = before;
        char *dir = mem_printf("%s-ranks", r->out);
        STR_COPY(r->ranks_dir, dir);
        free(dir);
    }
    all(g, restore_rank, nodes);
    for (int32_t k = 0; k < nodes; k++) {
        const struct rank *r = &g->ranks[k];
        must(r);
        assert_int_equal(r->restored.ranks, saved_by);
        assert_int_equal(r->restored.id.sequence, 1);
        if (k < saved_by)
            assert_same_tree(g->ranks[k].tree, r->out);
        else
            assert_int_equal(r->restored.stats.files, 0);
        for (int32_t other = 0; other < saved_by; other++) {
            snprintf(part, sizeof(part), "%s/rank-%04d", r->ranks_dir, (int)other);
            if (nodes == saved_by)
                assert_int_equal(access(r->ranks_dir, F_OK), -1);
            else
                assert_same_tree(g->ranks[other].tree, part);
        }
    }
}

static void fewer_or_more_ranks_find_what_all_have_saved(void **state)
{
    struct scratch *s = *state;
    struct gang g;

    gang_init(&g, s);
    save_all(&g, 1, 1, 100);
    restore_with_others(&g, 2, RANKS - 1, RANKS);
    restore_with_others(&g, 3, RANKS + 1, RANKS);
    restore_with_others(&g, 4, 1, RANKS);
    restore_with_others(&g, 5, RANKS, RANKS); /* and what was put there for others is gone */
}

/* A gang that is down to one rank saves as a gang. */
static void one_rank_alone_saves_as_a_gang(void **state)
{
    struct scratch *s = *state;
    struct gang g;

    gang_init(&g, s);
    g.ranks[0].gang.nodes = 1;
    set_save(&g, 1, 1, 7);
    all(&g, save_rank, 1);
    must(&g.ranks[0]);
    assert_int_equal(g.ranks[0].stats.sequence, 1);
    restore_with_others(&g, 2, 2, 1);
}

/* Whoever resumes, resumes from what was verified as a whole. */
static void damage_to_a_rank_that_is_no_more_counts(void **state)
{
    struct scratch *s = *state;
    struct gang g;

    gang_init(&g, s);
    save_all(&g, 1, 1, 100);
    for (int32_t k = 0; k < RANKS; k++)
        make_state(&g.ranks[k], 2);
    save_all(&g, 1, 2, 200);
    damage_own(s, RANKS - 1);
    for (int32_t k = 0; k < RANKS; k++)
        make_state(&g.ranks[k], 1);
    restore_with_others(&g, 2, RANKS - 1, RANKS);
}

static void a_first_start_is_agreed_upon_too(void **state)
{
    struct scratch *s = *state;
    struct gang g;

    gang_init(&g, s);
    all(&g, restore_rank, RANKS);
    for (int32_t k = 0; k < RANKS; k++) {
        must(&g.ranks[k]);
        assert_int_equal(g.ranks[k].restored.id.attempt, 0);
    }
    all(&g, restore_rank, RANKS); /* an agent that was restarted in between tells the same */
    for (int32_t k = 0; k < RANKS; k++)
        must(&g.ranks[k]);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, scratch_setup, scratch_teardown)
    const struct CMUnitTest tests[] = {
        TEST(fewer_or_more_ranks_find_what_all_have_saved),
        TEST(one_rank_alone_saves_as_a_gang),
        TEST(damage_to_a_rank_that_is_no_more_counts),
        TEST(every_rank_gets_back_what_it_saved),
        TEST(a_gangs_checkpoint_is_one_like_any),
        TEST(content_is_shared_and_cleaned),
        TEST(one_that_cannot_save_fails_all_at_once),
        TEST(one_that_does_not_come_leaves_nothing),
        TEST(ranks_at_different_steps_do_not_commit),
        TEST(a_fenced_gang_cannot_commit),
        TEST(all_resume_from_the_same_checkpoint),
        TEST(a_first_start_is_agreed_upon_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
