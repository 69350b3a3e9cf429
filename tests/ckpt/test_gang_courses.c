/* SPDX-License-Identifier: Apache-2.0
 *
 * Ranks that continue after each save, every one at its own speed.
 */
#include "tests/ckpt/gang_rig.h"

#include "base/time.h"
#include "ckpt/store/layout.h"
#include "tests/ckpt/store_fault.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

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
        rank_save(r);
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

/* Sets the rank's tree to a small state of this step. */
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
        rank_take_snapshot(c->rank);
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
    gang_all(g, rank_restore, RANKS);
    for (int32_t k = 0; k < RANKS; k++) {
        rank_must(&g->ranks[k]);
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
            k == 0 ? "rank 3 could not save: it has no checkpoint of step 1, and is past it"
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
    int64_t before = clock_system_ms();

    gang_init(&g, *state);
    gang_set_save(&g, 1, 1, 5);
    err_set(&why, ERR_UNSUPPORTED, "it has a pipe");
    for (int32_t k = 0; k < RANKS; k++)
        if (k != 2)
            rank_take_snapshot(&g.ranks[k]);
    g.ranks[2].refused = &why;
    g.ranks[2].progress = -1; /* nor its step */
    gang_all(&g, rank_save, RANKS);
    assert_true(clock_system_ms() - before < GANG_WAIT_MS / 4);
    assert_int_equal(g.ranks[2].rc, ERR_UNSUPPORTED);
    for (int32_t k = 0; k < RANKS; k++) {
        assert_int_equal(g.ranks[k].stats.sequence, 1);
        assert_true(k == 2 || strstr(g.ranks[k].e.text, "rank 2 could not save: it has a pipe"));
    }
    g.ranks[2].refused = NULL;
    gang_save_all(&g, 1, 2, 6);
    assert_none_committed(*state, 1);
}

/* Ranks that continue would combine two moments into one checkpoint. */
static void ranks_that_continue_have_to_report_their_step(void **state)
{
    struct gang g;

    gang_init(&g, *state);
    gang_set_save(&g, 1, 1, 5);
    rank_take_snapshot(&g.ranks[0]);
    g.ranks[1].progress = -1;
    gang_all(&g, rank_save, RANKS);
    for (int32_t k = 0; k < RANKS; k++) {
        assert_int_equal(g.ranks[k].rc, ERR_UNAVAILABLE);
        assert_non_null(strstr(
            g.ranks[k].e.text, "rank 1 does not report its step with the commit, but rank 0 does"));
    }
    assert_none_committed(*state, 0);
    gang_save_all(&g, 1, 2, -1); /* and need not if all wait */
    assert_none_committed(*state, 1);
}

static void malformed_messages_of_rank_0_are_errors(void **state)
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
        rank_save(&g.ranks[1]);
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
    rank_save(r);
    rank_must(r);
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
    rank_take_snapshot(r);
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
    gang_all(&g, rank_restore, FEW);
    for (int32_t k = 0; k < FEW; k++) {
        rank_must(&g.ranks[k]);
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
        TEST(ranks_of_different_speeds_save_the_same_steps),
        TEST(one_that_was_not_there_meets_the_others_at_the_next),
        TEST(what_rank_0_was_not_there_for_is_left_out),
        TEST(what_some_ranks_drop_is_none_for_all),
        TEST(ranks_that_have_counted_differently_agree_again),
        TEST(what_a_rank_cannot_even_take_fails_for_all_at_once),
        TEST(ranks_that_continue_have_to_report_their_step),
        TEST(malformed_messages_of_rank_0_are_errors),
        cmocka_unit_test(killed_at_any_call_it_meets_the_others_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
