/* SPDX-License-Identifier: Apache-2.0
 *
 * Programs through base/runner.h: their input and output, and every way to end.
 */
#include "base/mem.h"
#include "base/str.h"
#include "base/uv/loop.h"
#include "base/uv/runner.h"
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

struct rig {
    uv_loop_t loop;
    struct runner *runner;
    int n_done, exit_code;
    struct err e;
    struct buf output, errors;
};

static int setup(void **state)
{
    struct rig *g = mem_alloc(sizeof(*g));
    uv_loop_init(&g->loop);
    g->runner = uv_runner_create(&g->loop);
    *state = g;
    return 0;
}

static int teardown(void **state)
{
    struct rig *g = *state;
    uv_runner_destroy(g->runner);
    uv_loop_finish(&g->loop);
    buf_deinit(&g->output);
    buf_deinit(&g->errors);
    free(g);
    return 0;
}

static void on_done(void *ctx, const struct err *e, const struct runner_result *r)
{
    struct rig *g = ctx;
    g->n_done++;
    g->e = e ? *e : (struct err){0};
    assert_true((e == NULL) != (r == NULL));
    if (r) {
        g->exit_code = r->exit_code;
        buf_clear(&g->output);
        buf_clear(&g->errors);
        buf_add(&g->output, buf_str(&r->output), r->output.len);
        buf_add(&g->errors, buf_str(&r->errors), r->errors.len);
    }
}

static struct run *start(struct rig *g, const char *script, const char *input, int64_t timeout_ms)
{
    const char *argv[] = {"sh", "-c", script, NULL};
    struct runner_command c = {.argv = argv,
        .input = input,
        .input_len = input ? strlen(input) : 0,
        .timeout_ms = timeout_ms,
        .max_output_bytes = 1000};
    g->n_done = 0;
    struct run *r = runner_start(g->runner, &c, on_done, g);
    assert_int_equal(g->n_done, 0);
    return r;
}

static void run(struct rig *g, const char *script, const char *input, int expected)
{
    start(g, script, input, 20000);
    uv_run(&g->loop, UV_RUN_DEFAULT);
    assert_int_equal(g->n_done, 1);
    if (g->e.kind != (enum err_kind)expected)
        fail_msg("%s: %s", err_kind_name(g->e.kind), g->e.text);
}

static void input_outputs_and_exit_code_are_passed(void **state)
{
    struct rig *g = *state;
    run(g, "cat; echo why >&2; exit 3", "hello\n", 0);
    assert_int_equal(g->exit_code, 3);
    assert_string_equal(buf_str(&g->output), "hello\n");
    assert_string_equal(buf_str(&g->errors), "why\n");
    run(g, "kill -9 $$", NULL, 0);
    assert_int_equal(g->exit_code, RUNNER_SIGNAL_BASE + 9);
    assert_int_equal(g->output.len, 0);
}

static void a_program_that_does_not_read_its_input_ends(void **state)
{
    struct rig *g = *state;
    char *much = mem_alloc(1000001);
    memset(much, 'x', 1000000);
    run(g, "exec <&-; echo done", much, 0);
    assert_string_equal(buf_str(&g->output), "done\n");
    free(much);
}

static void the_environment_is_minimal(void **state)
{
    struct rig *g = *state;
    setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
    setenv("SSH_AUTH_SOCK", "/tmp/agent", 1);
    run(g, "env | cut -d= -f1 | grep -v -e PWD -e SHLVL -e '^_$' | sort", NULL, 0);
    assert_string_equal(buf_str(&g->output), "HOME\nLANG\nPATH\n");
}

static void excess_output_is_an_error_and_the_tail_of_stderr_is_kept(void **state)
{
    struct rig *g = *state;
    run(g, "yes", NULL, ERR_INVALID);
    run(g, "yes 123456789 | head -n 500 >&2; echo last >&2", NULL, 0);
    assert_int_equal(g->errors.len, RUNNER_ERRORS_MAX);
    assert_true(str_ends(buf_str(&g->errors), "\nlast\n"));
}

static void a_missing_program_is_an_error(void **state)
{
    struct rig *g = *state;
    const char *argv[] = {"/nonexistent/program", NULL};
    struct runner_command c = {.argv = argv, .timeout_ms = 1000, .max_output_bytes = 10};
    runner_start(g->runner, &c, on_done, g);
    assert_int_equal(g->n_done, 0);
    uv_run(&g->loop, UV_RUN_DEFAULT);
    assert_int_equal(g->n_done, 1);
    assert_int_equal(g->e.kind, ERR_NOT_FOUND);
}

static void the_deadline_kills_the_process_group(void **state)
{
    struct rig *g = *state;
    start(g, "sleep 1000 & sleep 1000", NULL, 50);
    uv_run(&g->loop, UV_RUN_DEFAULT);
    assert_int_equal(g->n_done, 1);
    assert_int_equal(g->e.kind, ERR_TIMEOUT);
}

static void cancel_completes_once_and_asynchronously(void **state)
{
    struct rig *g = *state;
    struct run *r = start(g, "sleep 1000", NULL, 20000);
    runner_cancel(g->runner, r);
    runner_cancel(g->runner, r);
    runner_cancel(g->runner, NULL);
    assert_int_equal(g->n_done, 0);
    uv_run(&g->loop, UV_RUN_DEFAULT);
    assert_int_equal(g->n_done, 1);
    assert_int_equal(g->e.kind, ERR_CANCELLED);
}

static void destroy_kills_running_programs(void **state)
{
    struct rig *g = *state;
    start(g, "sleep 1000", NULL, 20000);
    uv_run(&g->loop, UV_RUN_NOWAIT);
    uv_runner_destroy(g->runner);
    g->runner = NULL;
    assert_int_equal(g->n_done, 1);
    assert_int_equal(g->e.kind, ERR_CANCELLED);
    uv_run(&g->loop, UV_RUN_DEFAULT);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(input_outputs_and_exit_code_are_passed),
        TEST(a_program_that_does_not_read_its_input_ends),
        TEST(the_environment_is_minimal),
        TEST(excess_output_is_an_error_and_the_tail_of_stderr_is_kept),
        TEST(a_missing_program_is_an_error),
        TEST(the_deadline_kills_the_process_group),
        TEST(cancel_completes_once_and_asynchronously),
        TEST(destroy_kills_running_programs),
    };
    signal(SIGPIPE, SIG_IGN); /* as in every program of ours */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
