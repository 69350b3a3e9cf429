/* SPDX-License-Identifier: Apache-2.0
 *
 * A real agent with a prolog and an epilog: what they get, when they run, and what a failure does.
 */
#include "world.h"

#include "agent/task/task_hooks.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Scripts for the two; each may use $LOG, a file. */
static struct world *create(void **state, const char *prolog, const char *epilog)
{
    char *dir = mem_strdup("/tmp/belay-hooks-XXXXXX"), *text, *path, *extra;
    assert_non_null(mkdtemp(dir));
    const char *const scripts[] = {prolog, epilog}, *const names[] = {"prolog", "epilog"};
    for (int k = 0; k < 2; k++) {
        path = mem_printf("%s/%s", dir, names[k]);
        text = mem_printf("#!/bin/sh\nLOG=%s/log\n%s", dir, scripts[k]);
        world_write(path, text);
        assert_int_equal(chmod(path, 0755), 0);
        free(text);
        free(path);
    }
    extra =
        mem_printf("token: t\nprolog: %s/prolog\nepilog: %s/epilog\nhook_timeout: 2s\n", dir, dir);
    struct world *w = world_create(state, extra);
    free(extra);
    free(dir);
    return w;
}

/* The directory of the scripts, from the configuration. */
static char *hooks_dir(struct world *w)
{
    char *text = world_read(w->config), *at = strstr(text, "prolog: ") + strlen("prolog: ");
    char *dir = mem_strndup(at, strcspn(at, "\n") - strlen("/prolog"));
    free(text);
    return dir;
}

static int teardown(void **state)
{
    struct err e;
    char *dir = hooks_dir(*state);
    int rc = world_teardown(state);
    fs_remove_tree(dir, &e);
    free(dir);
    return rc;
}

static char *read_log(struct world *w)
{
    char *dir = hooks_dir(w), *path = mem_printf("%s/log", dir), *text = world_read(path);
    free(path);
    free(dir);
    return text;
}

static bool is_faulty(struct world *w, int64_t unused)
{
    (void)unused;
    return w->status.fault[0];
}

static void they_run_before_and_after_the_program(void **state)
{
    struct world *w = create(
        state, "echo $* >>$LOG; env | grep -c BELAY >>$LOG; pwd >>$LOG\n", "echo $* >>$LOG\n");
    char *dir = hooks_dir(w), *script = mem_printf("#!/bin/sh\necho job >>%s/log\n", dir);
    world_want(w, 7, 3, script);
    world_start_agent(w);
    world_until(w, has_ended, 7, "it has ended");
    assert_ended(w, 7, WIRE_END_SUCCEEDED, 0, "");
    char *log = read_log(w);
    assert_true(str_starts(log, "prolog 7 3"));
    char *job = strstr(log, "\njob\n"), *epilog = strstr(log, "\nepilog 7 3");
    assert_true(job && epilog && job < epilog);
    assert_string_equal(w->status.fault, "");
    free(log);
    free(script);
    free(dir);
}

static void a_failed_prolog_costs_the_job_nothing(void **state)
{
    struct world *w = create(state, "echo 'no such mount' >&2; exit 3\n", "echo epilog >>$LOG\n");
    world_want(w, 1, 1, "#!/bin/sh\nexit 0\n");
    world_start_agent(w);
    world_until(w, is_faulty, 0, "the node is faulty");
    world_until(w, has_ended, 1, "it has ended");
    assert_ended(w, 1, WIRE_END_CAPACITY, 0, "the prolog failed with exit code 3: no such mount");
    assert_true(
        str_starts(w->status.fault, "the prolog failed with exit code 3: no such mount (20"));
    assert_null(read_log(w)); /* the program has not run, so there is no epilog */
}

static void a_failed_epilog_changes_no_end(void **state)
{
    struct world *w = create(state, "", "exit 1\n");
    world_want(w, 1, 1, "#!/bin/sh\nexit 4\n");
    world_start_agent(w);
    world_until(w, has_ended, 1, "it has ended");
    assert_ended(w, 1, WIRE_END_FAILED, 4, "");
    world_until(w, is_faulty, 0, "the node is faulty");
    assert_true(str_starts(w->status.fault, "the epilog failed with exit code 1 (20"));
}

static void a_prolog_that_hangs_is_killed(void **state)
{
    struct world *w = create(state, "sleep 1000\n", "");
    world_want(w, 1, 1, "#!/bin/sh\nexit 0\n");
    world_start_agent(w);
    world_until(w, has_ended, 1, "it has ended");
    assert_ended(w, 1, WIRE_END_CAPACITY, 0, "the prolog failed: ");
    world_until(w, is_faulty, 0, "the node is faulty");
}

static bool has_log(struct world *w, int64_t unused)
{
    char *log = read_log(w);
    (void)unused;
    free(log);
    return log != NULL;
}

static void a_job_that_is_stopped_in_its_prolog_is_no_fault(void **state)
{
    struct world *w = create(state, "echo begun >>$LOG; exec sleep 1000\n", "");
    struct wire_desired_attempt *a = world_want(w, 1, 1, "#!/bin/sh\nexit 0\n");
    world_start_agent(w);
    world_until(w, has_log, 0, "the prolog runs");
    a->want = WIRE_STOP;
    a->reason = WIRE_END_CANCELLED;
    world_go(w);
    world_until(w, has_ended, 1, "it has ended");
    assert_ended(w, 1, WIRE_END_CANCELLED, 0, "");
    assert_string_equal(w->status.fault, "");
}

static void a_program_that_others_can_change_is_not_run(void **state)
{
    struct world *w = create(state, "", "");
    char *dir = hooks_dir(w), *path = mem_printf("%s/prolog", dir);
    struct err e;
    assert_int_equal(task_hooks_check(path, &e), 0);
    assert_int_equal(chmod(path, 0757), 0);
    assert_int_equal(task_hooks_check(path, &e), ERR_CONFIG);
    assert_non_null(strstr(e.text, "chmod go-w"));
    assert_int_equal(chmod(path, 0644), 0);
    assert_int_equal(task_hooks_check(path, &e), ERR_CONFIG);
    assert_int_equal(chmod(path, 0755), 0);
    assert_int_equal(chmod(dir, 0777), 0);
    assert_int_equal(task_hooks_check(path, &e), ERR_CONFIG);
    assert_int_equal(task_hooks_check("/nowhere/prolog", &e), ERR_CONFIG);
    assert_int_equal(task_hooks_check(dir, &e), ERR_CONFIG);
    world_want(w, 1, 1, "#!/bin/sh\nexit 0\n");
    world_start_agent(w);
    world_until(w, has_ended, 1, "it has ended");
    assert_ended(w, 1, WIRE_END_CAPACITY, 0, "the prolog was not run: others than root");
    free(path);
    free(dir);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(they_run_before_and_after_the_program, teardown),
        cmocka_unit_test_teardown(a_failed_prolog_costs_the_job_nothing, teardown),
        cmocka_unit_test_teardown(a_failed_epilog_changes_no_end, teardown),
        cmocka_unit_test_teardown(a_prolog_that_hangs_is_killed, teardown),
        cmocka_unit_test_teardown(a_job_that_is_stopped_in_its_prolog_is_no_fault, teardown),
        cmocka_unit_test_teardown(a_program_that_others_can_change_is_not_run, teardown),
    };
    return world_run(tests, sizeof(tests) / sizeof(*tests), argc, argv);
}
