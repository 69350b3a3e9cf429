/* SPDX-License-Identifier: Apache-2.0
 *
 * A real agent whose store is full: a server that answers writes with 507.
 */
#include "world.h"

#include "base/mem.h"
#include "base/str.h"
#include "tests/ckpt/object_server.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WAIT_MS 1500 /* the job's store_wait */

static const char commit_once[] =
    "#!/bin/sh\n"
    "cd \"$BELAY_CONTROL_DIR\"\n"
    "[ \"$BELAY_RESTORED\" = 1 ] && { cat \"$BELAY_CHECKPOINT_DIR/state\"; exit; }\n"
    "echo saved >\"$BELAY_CHECKPOINT_DIR/state\"\n"
    "echo '{\"progress\":5}' >c; mv c commit.1\n"
    "while [ ! -e result.1 ]; do sleep 0.02; done\n"
    "cat result.1; echo\n"
    "exit 3\n";

/* Exits with 85 when allowed; its arguments say which files it leaves. */
static const char leaves[] = "#!/bin/sh\n"
                             "cd \"$BELAY_CHECKPOINT_DIR\"\n"
                             "$1 state\n"
                             "while [ ! -e \"$BELAY_CONTROL_DIR/go\" ]; do sleep 0.02; done\n"
                             "exit 85\n";

static struct object_server server;

static struct world *create(void **state)
{
    struct world *w = world_create(state, "token: t\nprovider: aws\n");
    object_server_start(&server);
    free(w->store_url);
    w->store_url = mem_printf("s3://jobs/p?endpoint=http://127.0.0.1:%d", server.port);
    return w;
}

static int teardown(void **state)
{
    int rc = world_teardown(state);
    object_server_stop(&server);
    return rc;
}

static struct wire_desired_attempt *want(
    struct world *w, int64_t attempt, const char *script, enum wire_method method)
{
    struct wire_desired_attempt *a = world_want(w, 1, attempt, script);
    a->method = method;
    a->store_wait_ms = WAIT_MS;
    return a;
}

static const struct wire_attempt_status *ended(struct world *w, enum wire_end end)
{
    world_until(w, has_ended, 1, "it ended");
    const struct wire_attempt_status *s = world_reported(w, 1);
    if (s->end != end)
        fail_msg("it ended as %s: %s; its output: %s", wire_word_name(wire_end_names, (int)s->end),
            s->text, world_output(w, 1));
    return s;
}

static void next(struct world *w, int64_t attempt)
{
    world_forget(w, 1);
    world_go(w);
    world_until(w, is_forgotten, 1, "the attempt is cleared away");
    want(w, attempt, commit_once, WIRE_METHOD_COOP);
    world_go(w);
}

static bool is_refused(struct world *w, int64_t job)
{
    const struct wire_attempt_status *s = world_reported(w, job);
    return s && s->store_tries > 0 && strstr(s->store_error, "InsufficientStorage");
}

/* A restore only reads, so everything but the fence would work. */
static void an_attempt_without_its_fence_does_not_begin(void **state)
{
    struct world *w = create(state);
    want(w, 1, commit_once, WIRE_METHOD_COOP);
    world_start_agent(w);
    ended(w, WIRE_END_FAILED);
    assert_true(has_checkpoint(w, 1));
    object_server_order(&server, SERVER_FULL_ONWARD, 1);
    next(w, 2);
    world_until(w, is_refused, 1, "the full store is reported while the save is retried");
    const struct wire_attempt_status *s = ended(w, WIRE_END_STORE_AWAY);
    assert_non_null(strstr(s->text, "claim job 1 for attempt 2"));
    assert_non_null(strstr(s->text, "InsufficientStorage"));
    assert_string_equal(world_output(w, 1), "");
    object_server_order(&server, SERVER_FINE, 1);
    next(w, 3);
    ended(w, WIRE_END_SUCCEEDED);
    assert_string_equal(world_output(w, 1), "saved\n");
}

static const struct wire_attempt_status *exit_with(
    struct world *w, const char *command, enum server_fault fault, enum wire_end end)
{
    static char *args[1]; /* read until the end of the test */
    args[0] = (char *)command;
    struct wire_desired_attempt *a = want(w, 1, leaves, WIRE_METHOD_SIGNAL);
    a->args = args;
    a->n_args = 1;
    world_start_agent(w);
    world_until(w, is_running, 1, "the task runs");
    object_server_order(&server, fault, 1);
    world_task_write(w, 1, 1, "control/go", "");
    const struct wire_attempt_status *s = ended(w, end);
    assert_int_equal(s->exit_code, 85);
    assert_non_null(strstr(s->text, "its checkpoint could not be stored"));
    return s;
}

static void exit_85_on_a_full_store_is_no_lost_node(void **state)
{
    struct world *w = create(state);
    const struct wire_attempt_status *s =
        exit_with(w, "touch", SERVER_FULL_ONWARD, WIRE_END_STORE_AWAY);
    assert_non_null(strstr(s->text, "InsufficientStorage"));
    assert_true(has_failed_save(w, 1));
}

static void a_file_that_no_store_takes_is_no_fault_of_the_store(void **state)
{
    struct world *w = create(state);
    const struct wire_attempt_status *s = exit_with(w, "mkfifo", SERVER_FINE, WIRE_END_NODE_LOST);
    assert_non_null(strstr(s->text, "state"));
}

#define TEST(f) cmocka_unit_test_teardown(f, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_attempt_without_its_fence_does_not_begin),
        TEST(exit_85_on_a_full_store_is_no_lost_node),
        TEST(a_file_that_no_store_takes_is_no_fault_of_the_store),
    };
    setenv("AWS_ACCESS_KEY_ID", "A", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "S", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
