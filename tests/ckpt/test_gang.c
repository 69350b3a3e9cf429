/* SPDX-License-Identifier: Apache-2.0
 *
 * Checkpoints of several ranks, which save and resume together.
 */
#include "tests/ckpt/gang_rig.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/time.h"
#include "ckpt/gang.h"
#include "ckpt/store/layout.h"
#include "tests/ckpt/store_fault.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void every_rank_gets_back_what_it_saved(void **state)
{
    struct scratch *s = *state;
    struct gang g;

    gang_init(&g, s);
    gang_save_all(&g, 1, 1, 100);
    assert_none_committed(s, 1);
    gang_all(&g, rank_restore, RANKS);
    for (int32_t k = 0; k < RANKS; k++) {
        rank_must(&g.ranks[k]);
        assert_int_equal(g.ranks[k].restored.id.sequence, 1);
        assert_int_equal(g.ranks[k].restored.progress, 100);
        assert_same_tree(g.ranks[k].tree, g.ranks[k].out);
    }
}

/* Readers that know nothing of ranks see one tree. */
static void a_gangs_checkpoint_is_one_like_any(void **state)
{
    struct scratch *s = *state;
    struct gang g;
    struct ckpt_stats stats;
    struct err e;

    gang_init(&g, s);
    gang_save_all(&g, 1, 1, 5);
    OK(ckpt_verify(&s->job, (struct ckpt_id){1, 1}, &e));
    OK(ckpt_get(&s->job, (struct ckpt_id){1, 1}, s->out, NULL, &stats, &e));
    char part[400];
    snprintf(part, sizeof(part), "%s/rank-0002", s->out);
    assert_same_tree(g.ranks[2].tree, part);
    assert_int_equal(stats.bytes, g.ranks[1].stats.bytes); /* each rank knows the total */
}

/* The number of different objects that a checkpoint names. */
static size_t count_named(struct scratch *s, struct ckpt_id id)
{
    struct manifest_objects o;
    struct smap names = {0};
    struct manifest m;
    struct err e;
    size_t n;

    OK(layout_read_manifest(&s->job, id, &m, &e));
    manifest_objects_init(&o, &m);
    for (size_t i = 0; i < o.n; i++) {
        const struct manifest_chunk *object =
            i < m.n_packs ? &m.packs[i] : &m.chunks[o.chunks[o.first[i]]];

        smap_put(&names, object->sha256, &names);
    }
    n = smap_size(&names);
    smap_deinit(&names);
    manifest_objects_deinit(&o);
    manifest_deinit(&m);
    return n;
}

/* Content common to all ranks is stored once, and cleaning leaves one checkpoint and no
 * messages. */
static void content_is_shared_and_cleaned(void **state)
{
    struct scratch *s = *state;
    struct gang g;
    struct err e;

    gang_init(&g, s);
    gang_save_all(&g, 1, 1, 1);
    size_t n = find_objects(s, "/chunks/", NULL, 1000);
    assert_in_range(n, 1, 3 * RANKS + 2);
    for (int32_t k = 0; k < RANKS; k++)
        rank_make_state(&g.ranks[k], 2);
    gang_save_all(&g, 1, 2, 2);
    OK(clean_job(&s->job, 1, 1, &e));
    assert_none_committed(s, 1);
    assert_int_equal(
        find_objects(s, "/chunks/", NULL, 1000), count_named(s, (struct ckpt_id){1, 2}));
    assert_in_range(find_objects(s, "/chunks/", NULL, 1000), n, n + RANKS);
    assert_int_equal(find_objects(s, "/gang/", NULL, 1000), 0);
    gang_all(&g, rank_restore, RANKS);
    for (int32_t k = 0; k < RANKS; k++) {
        rank_must(&g.ranks[k]);
        assert_same_tree(g.ranks[k].tree, g.ranks[k].out);
    }
}

static void one_that_cannot_save_fails_all_at_once(void **state)
{
    struct scratch *s = *state;
    struct gang g;

    gang_init(&g, s);
    assert_int_equal(mkfifo(path_in(g.ranks[2].tree, "pipe"), 0600), 0);
    gang_set_save(&g, 1, 1, 1);
    int64_t before = clock_system_ms();
    gang_all(&g, rank_save, RANKS);
    assert_true(clock_system_ms() - before < GANG_WAIT_MS / 4);
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
    gang_save_all(&g, 1, 2, 2);
    assert_none_committed(s, 1);
}

static void one_that_does_not_come_leaves_nothing(void **state)
{
    struct scratch *s = *state;
    struct gang g;

    gang_init(&g, s);
    gang_set_save(&g, 1, 1, 1);
    for (int32_t k = 0; k < RANKS; k++)
        g.ranks[k].deadline_ms = clock_system_ms() + SHORT_MS + GANG_WAIT_MS * (k != 0);
    gang_all(&g, rank_save, RANKS - 1);
    assert_int_equal(g.ranks[0].rc, ERR_TIMEOUT);
    assert_non_null(strstr(g.ranks[0].e.text, "has not reached this checkpoint"));
    for (int32_t k = 1; k < RANKS - 1; k++)
        assert_int_equal(g.ranks[k].rc, ERR_UNAVAILABLE); /* rank 0 has reported its failure */
    assert_none_committed(s, 0);
    rank_save(&g.ranks[3]); /* too late: it joins a save that the others have abandoned */
    assert_int_equal(g.ranks[3].rc, ERR_UNAVAILABLE);
    gang_save_all(&g, 1, 2, 2);
}

/* ---- a full store ---- */

/* Two checkpoints, as many as are kept, and a third to be saved in a store that will be full. */
static void begin_full(struct gang *g, struct scratch *s)
{
    gang_init(g, s);
    for (int64_t n = 1; n <= 3; n++) {
        for (int32_t k = 0; k < RANKS; k++) {
            g->ranks[k].keep = 2;
            rank_make_state(&g->ranks[k], n);
        }
        if (n <= 2)
            gang_save_all(g, 1, n, n);
    }
    gang_set_save(g, 1, 3, 3);
}

static void fill(struct scratch *s, struct store_fault *f, const char *of, int at)
{
    store_fault_init(f, s->job.store, FAULT_ONCE, at);
    f->kind = ERR_NO_SPACE;
    f->of = of;
    f->of_writes = true;
    s->job.store = &f->base;
}

static void assert_all_resume_from(struct gang *g, int64_t sequence)
{
    gang_all(g, rank_restore, RANKS);
    for (int32_t k = 0; k < RANKS; k++) {
        rank_must(&g->ranks[k]);
        assert_int_equal(g->ranks[k].restored.id.sequence, sequence);
        assert_int_equal(g->ranks[k].restored.damaged, 0);
        assert_same_tree(g->ranks[k].tree, g->ranks[k].out);
    }
}

static void assert_is_gone(struct scratch *s, int64_t sequence)
{
    struct err e;

    FAILS(ERR_NOT_FOUND, ckpt_verify(&s->job, (struct ckpt_id){1, sequence}, &e));
}

/* Everything that the others have stored by then is kept. */
static void a_manifest_that_does_not_fit_takes_the_oldests_place(void **state)
{
    struct scratch *s = *state;
    struct store_fault f;
    struct gang g;
    struct err e;

    begin_full(&g, s);
    fill(s, &f, "/manifests/", 1);
    gang_save_all(&g, 1, 3, 3);
    assert_int_equal(atomic_load(&f.struck), 1);
    s->job.store = f.inner;
    assert_is_gone(s, 1);
    OK(ckpt_verify(&s->job, (struct ckpt_id){1, 2}, &e));
    OK(ckpt_verify(&s->job, (struct ckpt_id){1, 3}, &e));
    assert_all_resume_from(&g, 3);
}

/* Whichever rank finds the store full, all get that error, and the next save has space. */
static void a_chunk_that_does_not_fit_makes_space_for_the_next_save(void **state)
{
    struct scratch *s = *state;

    for (int at = 1; at <= 9; at += 4) {
        struct store_fault f;
        struct gang g;
        struct err e;

        s->job.job = 10 + at;
        begin_full(&g, s);
        fill(s, &f, "/chunks/", at);
        gang_all(&g, rank_save, RANKS);
        assert_int_equal(atomic_load(&f.struck), 1);
        s->job.store = f.inner;
        for (int32_t k = 0; k < RANKS; k++)
            assert_int_equal(g.ranks[k].rc, ERR_NO_SPACE);
        assert_is_gone(s, 1);
        OK(ckpt_verify(&s->job, (struct ckpt_id){1, 2}, &e));
        gang_save_all(&g, 1, 4, 4);
        OK(ckpt_verify(&s->job, (struct ckpt_id){1, 4}, &e));
        assert_all_resume_from(&g, 4);
    }
}

static void report_full(void *scratch)
{
    const struct gang_meeting rank_2 = {
        .job = &((struct scratch *)scratch)->job, .gang = {2, RANKS}, .id = {1, 3}};
    struct err full;

    err_set(&full, ERR_NO_SPACE, "no space left");
    full.of_store = true;
    assert_true(gang_fail(&rank_2, &full));
}

/* Rank 0 makes space as soon as a rank found the store full. Another rank's chunk may then be gone
 * between two of its calls. */
static void a_chunk_removed_meanwhile_is_a_full_store(void **state)
{
    struct scratch *s = *state;
    struct store_fault gone, full;
    struct gang g;

    begin_full(&g, s);
    fill(s, &gone, "/chunks/", 1);
    gone.kind = ERR_UNAVAILABLE;
    fill(s, &full, "/chunks/", 1);
    full.mode = FAULT_HOOK;
    full.hook = report_full;
    full.hook_ctx = s;
    gang_all(&g, rank_save, 1);
    s->job.store = gone.inner;
    assert_int_equal(atomic_load(&full.struck), 1);
    assert_int_equal(atomic_load(&gone.struck), 1);
    assert_int_equal(g.ranks[0].rc, ERR_NO_SPACE);
    assert_is_gone(s, 1);
}

/* A restarted agent might resume such a save, so the chunks that it names must be kept. */
static void a_failure_that_cannot_be_reported_removes_nothing(void **state)
{
    struct scratch *s = *state;
    struct store_fault f;
    struct gang g;
    struct err e;

    begin_full(&g, s);
    for (int32_t k = 0; k < RANKS; k++)
        g.ranks[k].deadline_ms = clock_system_ms() + SHORT_MS;
    fill(s, &f, NULL, 6); /* the first is "open", of rank 0 */
    f.mode = FAULT_ONWARD;
    gang_all(&g, rank_save, RANKS);
    s->job.store = f.inner;
    for (int32_t k = 0; k < RANKS; k++)
        assert_int_not_equal(g.ranks[k].rc, 0);
    OK(ckpt_verify(&s->job, (struct ckpt_id){1, 1}, &e));
    OK(ckpt_verify(&s->job, (struct ckpt_id){1, 2}, &e));
}

static void ranks_at_different_steps_do_not_commit(void **state)
{
    struct scratch *s = *state;
    struct gang g;

    gang_init(&g, s);
    gang_set_save(&g, 1, 1, 100);
    g.ranks[3].progress = 101;
    gang_all(&g, rank_save, RANKS);
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
    gang_set_save(&g, 1, 1, 1);
    gang_all(&g, rank_save, RANKS);
    bool is_seen = false;
    for (int32_t k = 0; k < RANKS; k++) {
        assert_true(g.ranks[k].rc == ERR_CONFLICT || g.ranks[k].rc == ERR_UNAVAILABLE);
        is_seen |= g.ranks[k].rc == ERR_CONFLICT;
    }
    assert_true(is_seen); /* by the first; others, rank 0 too, may have its failure first */
    assert_none_committed(s, 0);
}

/* Only rank 1 can detect that its content of the newest is damaged; all go back. */
/* Damages the content that only this rank has in checkpoint 1.2. */
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
    gang_save_all(&g, 1, 1, 100);
    for (int32_t k = 0; k < RANKS; k++)
        rank_make_state(&g.ranks[k], 2);
    gang_save_all(&g, 1, 2, 200);
    damage_own(s, 1);
    gang_all(&g, rank_restore, RANKS);
    int damaged = 0;
    for (int32_t k = 0; k < RANKS; k++) {
        rank_must(&g.ranks[k]);
        assert_int_equal(g.ranks[k].restored.id.sequence, 1);
        assert_int_equal(g.ranks[k].restored.progress, 100);
        damaged += g.ranks[k].restored.damaged;
        rank_make_state(&g.ranks[k], 1);
        assert_same_tree(g.ranks[k].tree, g.ranks[k].out);
    }
    assert_int_equal(damaged, 1);
}

/* Each rank gets its own part, and all others' parts, for redistribution. */
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
    gang_all(g, rank_restore, nodes);
    for (int32_t k = 0; k < nodes; k++) {
        const struct rank *r = &g->ranks[k];
        rank_must(r);
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
    gang_save_all(&g, 1, 1, 100);
    restore_with_others(&g, 2, RANKS - 1, RANKS);
    restore_with_others(&g, 3, RANKS + 1, RANKS);
    restore_with_others(&g, 4, 1, RANKS);
    restore_with_others(&g, 5, RANKS, RANKS); /* and the parts of others are gone */
}

/* A gang of only one rank saves as a gang. */
static void one_rank_alone_saves_as_a_gang(void **state)
{
    struct scratch *s = *state;
    struct gang g;

    gang_init(&g, s);
    g.ranks[0].gang.nodes = 1;
    gang_set_save(&g, 1, 1, 7);
    gang_all(&g, rank_save, 1);
    rank_must(&g.ranks[0]);
    assert_int_equal(g.ranks[0].stats.sequence, 1);
    restore_with_others(&g, 2, 2, 1);
}

/* A gang resumes only from a checkpoint that was verified completely. */
static void damage_to_a_rank_that_is_no_more_counts(void **state)
{
    struct scratch *s = *state;
    struct gang g;

    gang_init(&g, s);
    gang_save_all(&g, 1, 1, 100);
    for (int32_t k = 0; k < RANKS; k++)
        rank_make_state(&g.ranks[k], 2);
    gang_save_all(&g, 1, 2, 200);
    damage_own(s, RANKS - 1);
    for (int32_t k = 0; k < RANKS; k++)
        rank_make_state(&g.ranks[k], 1);
    restore_with_others(&g, 2, RANKS - 1, RANKS);
}

static void a_first_start_is_agreed_upon_too(void **state)
{
    struct scratch *s = *state;
    struct gang g;

    gang_init(&g, s);
    gang_all(&g, rank_restore, RANKS);
    for (int32_t k = 0; k < RANKS; k++) {
        rank_must(&g.ranks[k]);
        assert_int_equal(g.ranks[k].restored.id.attempt, 0);
    }
    gang_all(&g, rank_restore, RANKS); /* a restarted agent reports the same */
    for (int32_t k = 0; k < RANKS; k++)
        rank_must(&g.ranks[k]);
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
        TEST(a_manifest_that_does_not_fit_takes_the_oldests_place),
        TEST(a_chunk_that_does_not_fit_makes_space_for_the_next_save),
        TEST(a_chunk_removed_meanwhile_is_a_full_store),
        TEST(a_failure_that_cannot_be_reported_removes_nothing),
        TEST(ranks_at_different_steps_do_not_commit),
        TEST(a_fenced_gang_cannot_commit),
        TEST(all_resume_from_the_same_checkpoint),
        TEST(a_first_start_is_agreed_upon_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
