/* SPDX-License-Identifier: Apache-2.0
 *
 * Responses in turns, in virtual time: fairness between users, slices, pauses and the limit.
 */
#include "tests/base/tools.h"

#include "base/vtimers.h"
#include "scheduler/api/turns.h"

#define EACH_MS 4 /* duration of a response */

struct fixture {
    struct vtimers vt;
    struct turns turns;
    struct timer moment; /* fires a millisecond after it was requested */
    int n_moments;
    char said[4096]; /* one letter per response, '|' after a slice */
};

struct answer {
    struct turn turn; /* must be first */
    struct fixture *f;
    char letter;
    void *moment;
};

static void on_moment(struct timer *t, void *ctx)
{
    struct fixture *f = ctx;
    (void)t;
    f->n_moments++;
    turns_take(&f->turns, f);
    strcat(f->said, "|");
}

static void on_turns_wanted(void *ctx)
{
    struct fixture *f = ctx;
    assert_false(timer_is_running(&f->moment));
    timer_start(&f->vt.timers, &f->moment, 1);
}

static void run(struct turn *turn, void *moment)
{
    struct answer *a = (struct answer *)turn;
    char letter[2] = {a->letter, '\0'};
    a->moment = moment;
    strcat(a->f->said, letter);
    vtimers_stall(&a->f->vt, EACH_MS);
}

static void setup(struct fixture *f)
{
    *f = (struct fixture){0};
    vtimers_init(&f->vt, 1000000);
    timer_init(&f->moment, on_moment, f);
    turns_init(&f->turns, &f->vt.timers, on_turns_wanted, f);
}

static void teardown(struct fixture *f)
{
    timer_stop(&f->vt.timers, &f->moment);
    turns_deinit(&f->turns);
    vtimers_deinit(&f->vt);
}

static bool enter(struct fixture *f, struct answer *a, const char *user, char letter)
{
    *a = (struct answer){.turn.run = run, .f = f, .letter = letter};
    return turns_enter(&f->turns, user, &a->turn);
}

static void users_have_their_turns_one_after_the_other(void **state)
{
    (void)state;
    struct fixture f;
    struct answer ann[6], bob, cho;
    setup(&f);
    for (int i = 0; i < 6; i++)
        assert_true(enter(&f, &ann[i], "ann", (char)('a' + i)));
    assert_true(enter(&f, &bob, "bob", 'B'));
    assert_true(enter(&f, &cho, "cho", 'C'));
    assert_string_equal(f.said, ""); /* never at once */
    vtimers_advance(&f.vt, 1000);
    assert_string_equal(f.said, "aBC|bcd|ef|");
    assert_ptr_equal(cho.moment, &f);
    teardown(&f);
}

static void others_have_the_loop_for_as_long(void **state)
{
    (void)state;
    struct fixture f;
    struct answer ann[TURNS_PER_USER_MAX];
    setup(&f);
    int64_t from_ms = clock_mono(&f.vt.clock).ms;
    for (int i = 0; i < TURNS_PER_USER_MAX; i++)
        assert_true(enter(&f, &ann[i], "ann", 'a'));
    vtimers_advance(&f.vt, TURNS_PER_USER_MAX * EACH_MS); /* half of the total time */
    size_t n = 0;
    for (const char *p = f.said; *p; p++)
        n += *p == 'a';
    assert_in_range(n, TURNS_PER_USER_MAX / 2 - 6, TURNS_PER_USER_MAX / 2 + 3);
    assert_in_range(clock_mono(&f.vt.clock).ms - from_ms, 0, 2 * TURNS_PER_USER_MAX * EACH_MS);
    vtimers_advance(&f.vt, 10000);
    assert_int_equal(f.n_moments, (TURNS_PER_USER_MAX + 2) / 3);
    teardown(&f);
}

static void too_many_of_one_user_are_refused_and_no_others(void **state)
{
    (void)state;
    struct fixture f;
    struct answer ann[TURNS_PER_USER_MAX], one_more, bob;
    setup(&f);
    for (int i = 0; i < TURNS_PER_USER_MAX; i++)
        assert_true(enter(&f, &ann[i], "ann", 'a'));
    assert_false(enter(&f, &one_more, "ann", 'x'));
    assert_true(enter(&f, &bob, "bob", 'B'));
    vtimers_advance(&f.vt, 10000);
    assert_null(strchr(f.said, 'x'));
    assert_true(strchr(f.said, 'B') - f.said < 3);
    assert_true(enter(&f, &one_more, "ann", 'x')); /* those were answered */
    vtimers_advance(&f.vt, 10000);
    assert_non_null(strchr(f.said, 'x'));
    teardown(&f);
}

static void what_waits_at_the_end_is_dropped(void **state)
{
    (void)state;
    struct fixture f;
    struct answer ann, bob;
    setup(&f);
    assert_true(enter(&f, &ann, "ann", 'a'));
    assert_true(enter(&f, &bob, "bob", 'b'));
    assert_ptr_equal(turns_drop(&f.turns), &ann.turn);
    assert_ptr_equal(turns_drop(&f.turns), &bob.turn);
    assert_null(turns_drop(&f.turns));
    teardown(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(users_have_their_turns_one_after_the_other),
        cmocka_unit_test(others_have_the_loop_for_as_long),
        cmocka_unit_test(too_many_of_one_user_are_refused_and_no_others),
        cmocka_unit_test(what_waits_at_the_end_is_dropped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
