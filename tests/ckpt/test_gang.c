/* SPDX-License-Identifier: Apache-2.0
 *
 * Checkpoints of several ranks, which are threads with one store.
 */
#include "ckpt/gang.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/time.h"
#include "ckpt/store/layout.h"
#include "tests/ckpt/store_fault.h"
#include "tests/ckpt/tools.h"
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

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

/* Takes a snapshot of the tree for the next save. */
static void take_snapshot(struct rank *r)
{
    const struct ckpt_snapshot_how how = {.scratch = r->s->dir};
    struct ckpt_snapshot_stats stats;
    struct err e;

    OK(ckpt_snapshot_take(r->tree, &how, NULL, &r->snapshot, &stats, &e));
    assert_non_null(r->snapshot);
}

static void *restore_rank(void *ctx)
{
    struct rank *r = ctx;

    r->rc = ckpt_restore_with(&r->s->job, r->before, r->out,
        &(struct ckpt_restore_with){
            .gang = r->gang, .ranks_dir = *r->ranks_dir ? r->ranks_dir : NULL},
        NULL, &r->restored, &r->e);
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
        g->ranks[k].id = (struct ckpt_id){attempt, sequence};
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

/* Seen as one tree by readers that know nothing of ranks. */
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
    assert_int_equal(stats.bytes, g.ranks[1].stats.bytes); /* each rank knows the total */
}

/* Content common to all ranks is stored once, and cleaning leaves one checkpoint and no
 * messages. */
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
    assert_non_null(strstr(g.ranks[0].e.text, "has not reached this checkpoint"));
    for (int32_t k = 1; k < RANKS - 1; k++)
        assert_int_equal(g.ranks[k].rc, ERR_UNAVAILABLE); /* rank 0 has reported its failure */
    assert_none_committed(s, 0);
    save_rank(&g.ranks[3]); /* too late: it joins a save that the others have given up */
    assert_int_equal(g.ranks[3].rc, ERR_UNAVAILABLE);
    save_all(&g, 1, 2, 2);
}

/* ---- a full store ---- */

/* Two checkpoints, as many as are kept, and a third to be saved in a store that will be full. */
static void begin_full(struct gang *g, struct scratch *s)
{
    gang_init(g, s);
    for (int64_t n = 1; n <= 3; n++) {
        for (int32_t k = 0; k < RANKS; k++) {
            g->ranks[k].keep = 2;
            make_state(&g->ranks[k], n);
        }
        if (n <= 2)
            save_all(g, 1, n, n);
    }
    set_save(g, 1, 3, 3);
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
    all(g, restore_rank, RANKS);
    for (int32_t k = 0; k < RANKS; k++) {
        must(&g->ranks[k]);
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
    save_all(&g, 1, 3, 3);
    assert_int_equal(atomic_load(&f.struck), 1);
    s->job.store = f.inner;
    assert_is_gone(s, 1);
    OK(ckpt_verify(&s->job, (struct ckpt_id){1, 2}, &e));
    OK(ckpt_verify(&s->job, (struct ckpt_id){1, 3}, &e));
    assert_all_resume_from(&g, 3);
}

/* Whichever rank finds the store full, all get that error, and the next save has room. */
static void a_chunk_that_does_not_fit_makes_room_for_the_next_save(void **state)
{
    struct scratch *s = *state;

    for (int at = 1; at <= 9; at += 4) {
        struct store_fault f;
        struct gang g;
        struct err e;

        s->job.job = 10 + at;
        begin_full(&g, s);
        fill(s, &f, "/chunks/", at);
        all(&g, save_rank, RANKS);
        assert_int_equal(atomic_load(&f.struck), 1);
        s->job.store = f.inner;
        for (int32_t k = 0; k < RANKS; k++)
            assert_int_equal(g.ranks[k].rc, ERR_NO_SPACE);
        assert_is_gone(s, 1);
        OK(ckpt_verify(&s->job, (struct ckpt_id){1, 2}, &e));
        save_all(&g, 1, 4, 4);
        OK(ckpt_verify(&s->job, (struct ckpt_id){1, 4}, &e));
        assert_all_resume_from(&g, 4);
    }
}

/* A restarted agent might resume such a save, so the chunks that it names must be kept. */
static void a_failure_that_cannot_be_told_gives_nothing_up(void **state)
{
    struct scratch *s = *state;
    struct store_fault f;
    struct gang g;
    struct err e;

    begin_full(&g, s);
    for (int32_t k = 0; k < RANKS; k++)
        g.ranks[k].deadline_ms = now_ms() + SHORT_MS;
    fill(s, &f, NULL, 6); /* the first is "open", of rank 0 */
    f.mode = FAULT_ONWARD;
    all(&g, save_rank, RANKS);
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
    restore_with_others(&g, 5, RANKS, RANKS); /* and the parts of others are gone */
}

/* A gang of only one rank saves as a gang. */
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

/* A gang resumes only from a checkpoint that was verified completely. */
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
    all(&g, restore_rank, RANKS); /* a restarted agent reports the same */
    for (int32_t k = 0; k < RANKS; k++)
        must(&g.ranks[k]);
}

/* ---- programs that continue, each at its own speed ---- */

#define SAVES 3
#define NOT_THERE (-2) /* step of a save that a rank skips */

/* The saves of one rank in order: step, own count and result of each. */
struct course {
    struct rank *rank;
    pthread_t thread;
    int64_t steps[SAVES], counts[SAVES];
    struct ckpt_snapshot *snapshots[SAVES];
    int rc[SAVES];
    struct err e[SAVES];
    int64_t sequence[SAVES];
    bool left_out[SAVES];
};

struct courses {
    struct course of[RANKS];
};

static void *run_course(void *ctx)
{
    struct course *c = ctx;
    struct rank *r = c->rank;

    for (int i = 0; i < SAVES; i++) {
        if (c->steps[i] == NOT_THERE)
            continue;
        r->snapshot = c->snapshots[i];
        r->progress = c->steps[i];
        r->id = (struct ckpt_id){1, c->counts[i]};
        save_rank(r);
        c->rc[i] = r->rc;
        c->e[i] = r->e;
        c->sequence[i] = r->stats.sequence;
        c->left_out[i] = r->stats.left_out;
    }
    return NULL;
}

/* All are at steps 1, 2, 3 and count so. */
static void courses_init(struct courses *all_of, struct gang *g, struct scratch *s)
{
    gang_init(g, s);
    for (int32_t k = 0; k < RANKS; k++) {
        all_of->of[k] = (struct course){.rank = &g->ranks[k]};
        for (int i = 0; i < SAVES; i++)
            all_of->of[k].steps[i] = all_of->of[k].counts[i] = i + 1;
    }
}

/* Sets the rank's tree to a small state of that step. */
static void be_at(struct rank *r, int64_t step)
{
    make_tree(r->tree, step * 10 + r->gang.rank);
}

static void prepare_course(struct course *c)
{
    for (int i = 0; i < SAVES; i++) {
        if (c->steps[i] == NOT_THERE)
            continue;
        be_at(c->rank, c->steps[i]);
        take_snapshot(c->rank);
        c->snapshots[i] = c->rank->snapshot;
        c->rank->snapshot = NULL;
    }
}

static void start_course(struct course *c)
{
    assert_int_equal(pthread_create(&c->thread, NULL, run_course, c), 0);
}

static void end_course(struct course *c)
{
    assert_int_equal(pthread_join(c->thread, NULL), 0);
}

static void run_courses(struct courses *all_of)
{
    for (int32_t k = 0; k < RANKS; k++)
        prepare_course(&all_of->of[k]);
    for (int32_t k = 0; k < RANKS; k++)
        start_course(&all_of->of[k]);
    for (int32_t k = 0; k < RANKS; k++)
        end_course(&all_of->of[k]);
}

/* Save i of each rank is the checkpoint of this sequence. */
static void assert_saved(const struct courses *all_of, int i, int64_t sequence)
{
    for (int32_t k = 0; k < RANKS; k++) {
        if (all_of->of[k].rc[i])
            fail_msg("save %d of rank %d: %s", i, (int)k, all_of->of[k].e[i].text);
        assert_int_equal(all_of->of[k].sequence[i], sequence);
    }
}

static void assert_failed(const struct course *c, int i, const char *why)
{
    assert_int_equal(c->rc[i], ERR_UNAVAILABLE);
    if (!strstr(c->e[i].text, why))
        fail_msg("%s, expected %s", c->e[i].text, why);
}

/* Each rank restores its state of that step. */
static void assert_resumes_at(struct gang *g, int64_t step)
{
    all(g, restore_rank, RANKS);
    for (int32_t k = 0; k < RANKS; k++) {
        must(&g->ranks[k]);
        assert_int_equal(g->ranks[k].restored.progress, step);
        assert_tree_is(g->ranks[k].out, step * 10 + k);
    }
}

static void ranks_of_different_speeds_save_the_same_steps(void **state)
{
    struct courses c;
    struct gang g;

    courses_init(&c, &g, *state);
    run_courses(&c);
    for (int i = 0; i < SAVES; i++)
        assert_saved(&c, i, i + 1);
    assert_none_committed(*state, SAVES);
    assert_resumes_at(&g, SAVES);
}

/* For example because its program could not write the state of step 1. */
static void one_that_was_not_there_meets_the_others_at_the_next(void **state)
{
    struct courses c;
    struct gang g;

    courses_init(&c, &g, *state);
    c.of[3] = (struct course){.rank = &g.ranks[3], .steps = {NOT_THERE, 2, 3}, .counts = {0, 1, 2}};
    run_courses(&c);
    /* A late rank finds that rank 0, which knew of the failure, has continued. */
    for (int32_t k = 0; k < 3; k++)
        assert_failed(&c.of[k], 0,
            k == 0 ? "rank 3 could not save: it has none of step 1, and is past it"
                   : "all ranks have to commit at the same steps");
    assert_saved(&c, 1, 2);
    assert_saved(&c, 2, 3);
    assert_resumes_at(&g, 3);
}

static void what_rank_0_was_not_there_for_is_left_out(void **state)
{
    struct courses c;
    struct gang g;

    courses_init(&c, &g, *state);
    c.of[0] = (struct course){.rank = &g.ranks[0], .steps = {NOT_THERE, 2, 3}, .counts = {0, 1, 2}};
    run_courses(&c);
    for (int32_t k = 1; k < RANKS; k++) {
        assert_failed(&c.of[k], 0, "rank 0 has no checkpoint of step 1 and is at 2");
        assert_true(c.of[k].left_out[0]);
        assert_int_equal(c.of[k].sequence[0], 0);
    }
    assert_saved(&c, 1, 1);
    assert_saved(&c, 2, 2);
    assert_resumes_at(&g, 3);
}

/* At a notice two ranks drop their queued save, and two have not got the notice yet. */
static void what_some_ranks_drop_is_none_for_all(void **state)
{
    struct courses c;
    struct gang g;

    courses_init(&c, &g, *state);
    c.of[0].steps[1] = c.of[2].steps[1] = NOT_THERE;
    run_courses(&c);
    assert_saved(&c, 0, 1);
    for (int32_t k = 1; k < RANKS; k += 2)
        assert_true(c.of[k].left_out[1]);
    assert_saved(&c, 2, 3);
    assert_none_committed(*state, 2);
    assert_resumes_at(&g, 3);
}

static void ranks_that_have_counted_differently_agree_again(void **state)
{
    struct courses c;
    struct gang g;

    courses_init(&c, &g, *state);
    c.of[1].counts[0] = 7;
    c.of[2].counts[1] = 9;
    c.of[3].counts[2] = 1;
    run_courses(&c);
    for (int i = 0; i < SAVES; i++)
        assert_saved(&c, i, i + 1);
    assert_resumes_at(&g, SAVES);
}

static void what_a_rank_cannot_even_take_fails_for_all_at_once(void **state)
{
    struct gang g;
    struct err why;
    int64_t before = now_ms();

    gang_init(&g, *state);
    set_save(&g, 1, 1, 5);
    err_set(&why, ERR_UNSUPPORTED, "it has a pipe");
    for (int32_t k = 0; k < RANKS; k++)
        if (k != 2)
            take_snapshot(&g.ranks[k]);
    g.ranks[2].refused = &why;
    g.ranks[2].progress = -1; /* nor its step */
    all(&g, save_rank, RANKS);
    assert_true(now_ms() - before < GANG_WAIT_MS / 4);
    assert_int_equal(g.ranks[2].rc, ERR_UNSUPPORTED);
    for (int32_t k = 0; k < RANKS; k++) {
        assert_int_equal(g.ranks[k].stats.sequence, 1);
        assert_true(k == 2 || strstr(g.ranks[k].e.text, "rank 2 could not save: it has a pipe"));
    }
    g.ranks[2].refused = NULL;
    save_all(&g, 1, 2, 6);
    assert_none_committed(*state, 1);
}

/* Ranks that continue would combine two moments into one checkpoint. */
static void ranks_that_go_on_have_to_tell_their_step(void **state)
{
    struct gang g;

    gang_init(&g, *state);
    set_save(&g, 1, 1, 5);
    take_snapshot(&g.ranks[0]);
    g.ranks[1].progress = -1;
    all(&g, save_rank, RANKS);
    for (int32_t k = 0; k < RANKS; k++) {
        assert_int_equal(g.ranks[k].rc, ERR_UNAVAILABLE);
        assert_non_null(strstr(
            g.ranks[k].e.text, "rank 1 does not report its step with the commit, but rank 0 does"));
    }
    assert_none_committed(*state, 0);
    save_all(&g, 1, 2, -1); /* and need not if all wait */
    assert_none_committed(*state, 1);
}

static void what_rank_0_cannot_have_told_is_an_error(void **state)
{
    static const char *const texts[] = {"", "waits", "5", "5 ", "5 later", "x waits", "-2 waits",
        "5 waits ", "99999999999999999999 waits"};
    struct scratch *s = *state;
    struct gang g;
    struct err e;

    gang_init(&g, s);
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        struct layout_name name = layout_prefix(&s->job, "gang/0000000000/0000000001-open");
        char *digit = strstr(name.s, "0000000000") + 9;

        *digit = (char)('1' + i);
        OK(s->job.store->ops->create(s->job.store, name.s, texts[i], strlen(texts[i]), &e));
        g.ranks[1].id = (struct ckpt_id){(int64_t)i + 1, 1};
        g.ranks[1].progress = 5;
        save_rank(&g.ranks[1]);
        assert_int_equal(g.ranks[1].rc, ERR_CORRUPT);
    }
    assert_none_committed(s, 0);
}

/* ---- one of them is killed, or cannot reach the store, at each call ---- */

#define FEW 2

static void die(void *ctx)
{
    (void)ctx;
    kill(getpid(), SIGKILL);
}

/* Like a restarted agent: reports lost saves, and saves the next step. */
static void come_back(struct rank *r)
{
    struct err e;

    OK(ckpt_gang_lost(&r->s->job, (struct ckpt_id){1, 1}, &r->gang, &e));
    save_rank(r);
    must(r);
}

/* Rank `doomed` is killed before call `at` of its first save. False if it made fewer calls. */
static bool killed_at(int32_t doomed, int at)
{
    struct scratch s;
    struct store_fault f;
    struct courses c;
    struct gang g;
    struct rank *r = &g.ranks[doomed];
    struct course *other = &c.of[1 - doomed];
    bool was_killed;
    int status;
    pid_t pid;

    scratch_init(&s);
    courses_init(&c, &g, &s);
    for (int32_t k = 0; k < FEW; k++) {
        g.ranks[k].gang.nodes = FEW;
        c.of[k].steps[2] = NOT_THERE;
    }
    prepare_course(other);
    c.of[doomed].steps[1] = NOT_THERE;
    prepare_course(&c.of[doomed]);
    be_at(r, 2);
    take_snapshot(r);
    fflush(NULL);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct scratch own = s;

        store_fault_init(&f, s.job.store, FAULT_HOOK, at);
        f.hook = die;
        own.job.store = &f.base;
        r->s = &own;
        run_course(&c.of[doomed]);
        _exit(r->rc != 0);
    }
    ckpt_snapshot_destroy(c.of[doomed].snapshots[0]);
    start_course(other);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    was_killed = WIFSIGNALED(status);
    assert_true(was_killed || (WIFEXITED(status) && WEXITSTATUS(status) == 0));
    r->progress = 2;
    r->id = (struct ckpt_id){1, 2};
    come_back(r);
    end_course(other);
    if (other->rc[1])
        fail_msg("rank %d killed at call %d: %s", (int)doomed, at, other->e[1].text);
    assert_int_equal(other->sequence[1], r->stats.sequence);
    all(&g, restore_rank, FEW);
    for (int32_t k = 0; k < FEW; k++) {
        must(&g.ranks[k]);
        assert_int_equal(g.ranks[k].restored.progress, 2);
        assert_tree_is(g.ranks[k].out, 20 + k);
    }
    scratch_deinit(&s);
    return was_killed;
}

static void killed_at_any_call_it_meets_the_others_again(void **state)
{
    (void)state;
    if (getenv("BELAY_TEST_ENCRYPT")) /* makes the same calls */
        return;
    for (int32_t doomed = 0; doomed < FEW; doomed++) {
        int at = 1;

        while (killed_at(doomed, at))
            at++;
        assert_in_range(at, 10, 200);
    }
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
        TEST(a_chunk_that_does_not_fit_makes_room_for_the_next_save),
        TEST(a_failure_that_cannot_be_told_gives_nothing_up),
        TEST(ranks_at_different_steps_do_not_commit),
        TEST(a_fenced_gang_cannot_commit),
        TEST(all_resume_from_the_same_checkpoint),
        TEST(a_first_start_is_agreed_upon_too),
        TEST(ranks_of_different_speeds_save_the_same_steps),
        TEST(one_that_was_not_there_meets_the_others_at_the_next),
        TEST(what_rank_0_was_not_there_for_is_left_out),
        TEST(what_some_ranks_drop_is_none_for_all),
        TEST(ranks_that_have_counted_differently_agree_again),
        TEST(what_a_rank_cannot_even_take_fails_for_all_at_once),
        TEST(ranks_that_go_on_have_to_tell_their_step),
        TEST(what_rank_0_cannot_have_told_is_an_error),
        cmocka_unit_test(killed_at_any_call_it_meets_the_others_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
