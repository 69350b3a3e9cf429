/* SPDX-License-Identifier: Apache-2.0
 *
 * The programs of examples/ under a small agent with a real store: interrupted and resumed, they
 * give the same result as undisturbed.
 */
#include "tests/ckpt/fake_agent.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/prng.h"
#include "base/str.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PYTHON "/usr/bin/python3"
#define NUMPY "/usr/lib/python3/dist-packages/numpy"

/* The line of the output that contains text, without its end; NULL if there is none. Free it. */
static char *line_with(const struct fake_attempt *a, const char *text)
{
    const char *at = a->output.data ? strstr(a->output.data, text) : NULL;

    if (!at)
        return NULL;
    while (at > a->output.data && at[-1] != '\n')
        at--;
    return mem_strndup(at, strcspn(at, "\n"));
}

static void assert_has(const struct fake_attempt *a, const char *text)
{
    if (a->output.data && strstr(a->output.data, text))
        return;
    print_error("no \"%s\" in the output:\n%s\n", text, buf_str(&a->output));
    fail();
}

static void assert_exit(const struct fake_attempt *a, int exit_code)
{
    if (a->exit_code == exit_code)
        return;
    print_error("exit code %d instead of %d:\n%s\n", a->exit_code, exit_code, buf_str(&a->output));
    fail();
}

/* Runs one attempt from scratch; returns the line of its result. */
static char *undisturbed(const struct fake_attempt *like, const char *result)
{
    struct fake_attempt a = *like;
    struct scratch s;
    char *line;

    scratch_init(&s);
    a.attempt = 1;
    a.ask_at = NULL;
    a.output = (struct buf){0};
    fake_attempt_run(&s, &a);
    assert_exit(&a, 0);
    line = line_with(&a, result);
    assert_non_null(line);
    buf_deinit(&a.output);
    scratch_deinit(&s);
    return line;
}

/* An attempt that a notice ends, and one that resumes it: the result is that of an undisturbed
 * run. */
static void interrupted_is_undisturbed(struct fake_attempt *like, const char *result)
{
    char *expected = undisturbed(like, result), *got;
    struct fake_attempt first = *like, second = *like;
    struct scratch s;

    scratch_init(&s);
    first.attempt = 1;
    first.reason = "notice";
    fake_attempt_run(&s, &first);
    assert_exit(&first, 85);
    assert_int_equal(first.commits, 1);
    assert_int_equal(first.restored_progress, INT64_MIN);
    second.attempt = 2;
    second.ask_at = NULL;
    fake_attempt_run(&s, &second);
    assert_exit(&second, 0);
    assert_has(&second, "resumed at step ");
    if (!first.signal)
        assert_true(
            second.restored_progress > 0 && second.restored_progress == first.last_progress);
    got = line_with(&second, result);
    assert_non_null(got);
    assert_string_equal(got, expected);
    free(got);
    free(expected);
    buf_deinit(&first.output);
    buf_deinit(&second.output);
    scratch_deinit(&s);
}

static void the_shell_example_resumes_where_it_was(void **state)
{
    const char *const argv[] = {EXAMPLES "/counter.sh", "40", NULL};
    struct fake_attempt a = {.argv = argv, .path_add = SHIM_DIR, .ask_at = "step 7 "};

    (void)state;
    setenv("COUNTER_PAUSE", "0.02", 1);
    interrupted_is_undisturbed(&a, "sum of squares");
}

static void the_c_example_resumes_where_it_was(void **state)
{
    const char *const argv[] = {COUNTER, "50000000000", NULL};
    struct fake_attempt first = {
        .attempt = 1, .argv = argv, .ask_at = "from step", .reason = "notice"};
    struct fake_attempt second = {.attempt = 2, .ask_at = NULL};
    const char *rest[] = {COUNTER, NULL, NULL};
    char total[32], *expected, *got;
    struct scratch s;

    /* It would run for minutes, but the notice ends it. The total of the next attempt is a little
     * larger, so that it ends. */
    (void)state;
    scratch_init(&s);
    fake_attempt_run(&s, &first);
    assert_exit(&first, 85);
    assert_int_equal(first.commits, 1);
    assert_true(first.last_progress > 0);
    snprintf(total, sizeof(total), "%lld", (long long)first.last_progress + 1234567);
    rest[1] = total;
    second.argv = rest;
    fake_attempt_run(&s, &second);
    assert_exit(&second, 0);
    assert_has(&second, "resumed at step ");
    assert_int_equal(second.restored_progress, first.last_progress);
    expected = undisturbed(&second, " x ");
    got = line_with(&second, " x ");
    assert_string_equal(got, expected);
    free(got);
    free(expected);
    buf_deinit(&first.output);
    buf_deinit(&second.output);
    scratch_deinit(&s);
}

static void the_signal_example_resumes_where_it_was(void **state)
{
    const char *const argv[] = {PYTHON, EXAMPLES "/on_signal.py", "200000", NULL};
    struct fake_attempt a = {.argv = argv, .ask_at = "from step", .signal = SIGUSR1};

    (void)state;
    interrupted_is_undisturbed(&a, "digits");
}

static void a_periodic_save_does_not_stop_the_program(void **state)
{
    const char *const argv[] = {EXAMPLES "/counter.sh", "20", NULL};
    struct fake_attempt a = {.attempt = 1,
        .argv = argv,
        .path_add = SHIM_DIR,
        .ask_at = "step 5 ",
        .reason = "periodic"};
    struct scratch s;

    (void)state;
    setenv("COUNTER_PAUSE", "0.02", 1);
    scratch_init(&s);
    fake_attempt_run(&s, &a);
    assert_exit(&a, 0);
    assert_int_equal(a.commits, 1);
    assert_has(&a, "sum of squares 2870");
    buf_deinit(&a.output);
    scratch_deinit(&s);
}

static void a_refused_commit_does_not_stop_the_program(void **state)
{
    const char *const argv[] = {EXAMPLES "/counter.sh", "20", NULL};
    struct fake_attempt a = {.attempt = 1,
        .argv = argv,
        .path_add = SHIM_DIR,
        .ask_at = "step 5 ",
        .reason = "periodic",
        .refuse = "the store is full"};
    struct scratch s;

    (void)state;
    setenv("COUNTER_PAUSE", "0.02", 1);
    scratch_init(&s);
    fake_attempt_run(&s, &a);
    assert_exit(&a, 0);
    assert_has(&a, "the store is full");
    assert_has(&a, "sum of squares 2870");
    buf_deinit(&a.output);
    scratch_deinit(&s);
}

static void the_training_example_ends_with_the_same_weights(void **state)
{
    const char *const argv[] = {"./train.sh", "--steps", "120", "--seed", "3", NULL};
    struct fake_attempt a = {.argv = argv, .cwd = EXAMPLES "/fashion-mnist"};
    char at[32];
    uint64_t seed;
    struct prng prng;

    (void)state;
    if (access("/usr/share/datasets/fashion-mnist", R_OK) != 0 || access(NUMPY, R_OK) != 0) {
        print_message("SKIP: python3-numpy or dataset-fashion-mnist is not installed\n");
        return;
    }
    random_bytes(&seed, sizeof(seed));
    prng_init(&prng, seed);
    snprintf(at, sizeof(at), "step %d loss", 20 * (int)prng_range(&prng, 1, 4));
    print_message("asked at \"%s\"\n", at);
    a.ask_at = at;
    interrupted_is_undisturbed(&a, "weights sha256");
}

static void the_training_example_says_what_is_missing(void **state)
{
    const char *const argv[] = {PYTHON, "train.py", "--data", "/nonexistent", NULL};
    struct fake_attempt a = {.attempt = 1, .argv = argv, .cwd = EXAMPLES "/fashion-mnist"};
    struct scratch s;

    (void)state;
    if (access(NUMPY, R_OK) != 0) {
        print_message("SKIP: python3-numpy is not installed\n");
        return;
    }
    scratch_init(&s);
    fake_attempt_run(&s, &a);
    assert_exit(&a, 1);
    assert_has(&a, "apt install dataset-fashion-mnist");
    buf_deinit(&a.output);
    scratch_deinit(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_shell_example_resumes_where_it_was),
        cmocka_unit_test(the_c_example_resumes_where_it_was),
        cmocka_unit_test(the_signal_example_resumes_where_it_was),
        cmocka_unit_test(a_periodic_save_does_not_stop_the_program),
        cmocka_unit_test(a_refused_commit_does_not_stop_the_program),
        cmocka_unit_test(the_training_example_ends_with_the_same_weights),
        cmocka_unit_test(the_training_example_says_what_is_missing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
