/* SPDX-License-Identifier: Apache-2.0
 *
 * A real agent whose store of checkpoints does not answer: a mount whose server is away, in a mount
 * namespace of this process. Run as root, with FUSE; otherwise there is nothing to test.
 */
#include "rights.h"
#include "saving.h"

#include "agent/task/record.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#define HANGING_MAX 20 /* more than libuv has threads */

/* Mounts whose server does not answer: each access waits until end(). */
static struct hanging {
    char *path;
    int server;
} hanging[HANGING_MAX];
static size_t n_hanging;

static bool can_hang;

static bool mount_hanging(const char *path, int server)
{
    char options[64];
    snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", server);
    return mount("hanging", path, "fuse", MS_NOSUID | MS_NODEV, options) == 0;
}

static bool hang(const char *path)
{
    struct err e;
    int server = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    if (server < 0 || fs_mkdirs(path, 0700, &e) != 0 || !mount_hanging(path, server)) {
        if (server >= 0)
            close(server);
        return false;
    }
    hanging[n_hanging++] = (struct hanging){mem_strdup(path), server};
    return true;
}

static void answer_all(void)
{
    while (n_hanging > 0) {
        struct hanging *h = &hanging[--n_hanging];
        umount2(h->path, MNT_DETACH);
        close(h->server); /* ends the waiting accesses */
        free(h->path);
    }
}

static struct world *begin(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    if (!can_hang)
        skip();
    return w;
}

static int end(void **state)
{
    answer_all();
    return world_teardown(state);
}

/* Makes the whole store hang, or the part of one job. */
static void hang_store(struct world *w, int64_t job)
{
    char *path = job ? mem_printf("%s/store/lab/jobs/%lld", w->dir, (long long)job)
                     : mem_printf("%s/store", w->dir);
    assert_true(hang(path));
    free(path);
}

/* Commits when there is `save` in its control directory; again when there is `again`, without
 * waiting until that is stored; ends when there is `end`. */
static const char script[] = "#!/bin/sh\n"
                             "cd \"$BELAY_CONTROL_DIR\"\n"
                             "while [ ! -e save ]; do [ -e end ] && exit 0; sleep 0.05; done\n"
                             "echo state >\"$BELAY_CHECKPOINT_DIR/state\"\n"
                             "echo '{\"progress\":5}' >c; mv c commit.1\n"
                             "while [ ! -e result.1 ]; do [ -e end ] && exit 0; sleep 0.05; done\n"
                             "cat result.1; echo\n"
                             "while [ ! -e again ]; do [ -e end ] && exit 0; sleep 0.05; done\n"
                             "echo '{\"progress\":6,\"wait\":false}' >c; mv c commit.2\n"
                             "while [ ! -e result.2 ]; do [ -e end ] && exit 0; sleep 0.05; done\n"
                             "echo \"again $(cat result.2)\"\n"
                             "while [ ! -e end ]; do sleep 0.05; done\n";

static struct wire_desired_attempt *want(struct world *w, int64_t job, const char *user)
{
    struct wire_desired_attempt *a = world_want(w, job, 1, script);
    a->method = WIRE_METHOD_COOP;
    a->store_wait_ms = 5000; /* 15 s, the minimum; a fifth of it until it is reported */
    STR_COPY(a->user, user);
    STR_COPY(a->cwd, "/");
    return a;
}

static bool is_failing_or_ended(struct world *w, int64_t job)
{
    return has_failed_save(w, job) || has_ended(w, job);
}

/* ---- a restarted agent ---- */

/* Stored, but the agent was killed before it recorded that. */
static void forget_save(struct world *w)
{
    char *path = world_task_path(w, 1, 1, "state.json");
    struct task_state s;
    struct err e;
    assert_int_equal(record_read_state(path, &s, &e), 0);
    s.reported.n_checkpoints = 0;
    s.saving = true;
    assert_int_equal(record_write_state(path, &s, &e), 0);
    record_deinit_state(&s);
    free(path);
}

/* The next agent looks for the save in the store, which hangs by then. */
static struct world *restart(void **state)
{
    struct world *w = begin(state);
    want(w, 1, "");
    world_start_agent(w);
    world_until(w, is_running, 1, "it runs");
    world_task_write(w, 1, 1, "control/save", "");
    world_until(w, output_has_result, 1, "it is saved");
    world_kill_agent(w, SIGKILL);
    forget_save(w);
    hang_store(w, 0);
    world_forget_reports(w);
    world_start_agent(w);
    return w;
}

static void an_agent_that_looks_for_a_save_reports_that_the_store_hangs(void **state)
{
    struct world *w = restart(state);
    world_until(w, is_failing_or_ended, 1, "the store's silence is reported");
    assert_non_null(strstr(world_reported(w, 1)->save_error, "has not answered for"));
    assert_true(is_running(w, 1));
    world_task_write(w, 1, 1, "control/end", "");
    world_until(w, has_ended, 1, "it ends, and its attempt too");
    assert_end(w, WIRE_END_SUCCEEDED);
}

static bool is_answered_again(struct world *w, int64_t job)
{
    return strstr(world_output(w, job), "again {") != NULL;
}

static bool has_stored_again(struct world *w, int64_t job)
{
    const struct wire_attempt_status *s = world_reported(w, job);
    return has_checkpoint(w, job) && s->checkpoints[s->n_checkpoints - 1].sequence == 2;
}

static void a_program_continues_while_its_save_is_looked_for(void **state)
{
    struct world *w = restart(state);
    world_until(w, is_failing_or_ended, 1, "the store's silence is reported");
    world_task_write(w, 1, 1, "control/again", "");
    world_until(w, is_answered_again, 1, "its next commit is answered");
    assert_non_null(strstr(world_output(w, 1), "\"durable\":false"));
    assert_int_equal(world_reported(w, 1)->n_checkpoints, 0);
    answer_all();
    world_until(w, has_stored_again, 1, "it is stored when the store answers");
    const struct wire_attempt_status *s = world_reported(w, 1);
    assert_int_equal(s->checkpoints[s->n_checkpoints - 1].progress, 6);
}

static void an_attempt_whose_save_is_looked_for_can_be_cancelled(void **state)
{
    struct world *w = restart(state);
    world_until(w, is_running, 1, "it still runs");
    world_find(w, 1)->a.want = WIRE_STOP;
    world_find(w, 1)->a.reason = WIRE_END_CANCELLED;
    world_go(w);
    world_until(w, has_ended, 1, "it is cancelled");
    assert_end(w, WIRE_END_CANCELLED);
}

/* For example during an upgrade: the tasks are left to the next agent. */
static void an_agent_whose_store_hangs_ends_on_request(void **state)
{
    struct world *w = restart(state);
    world_until(w, is_failing_or_ended, 1, "the store's silence is reported");
    world_kill_agent(w, SIGTERM);
    assert_true(world_log_has(w, "ending although a store of checkpoints does not answer"));
    answer_all();
    world_forget_reports(w);
    world_start_agent(w);
    world_until(w, has_checkpoint, 1, "the next agent finds the save");
    assert_true(is_running(w, 1));
}

/* ---- many jobs ---- */

static bool is_restoring(struct world *w, int64_t job)
{
    const struct wire_attempt_status *s = world_reported(w, job);
    return s && s->phase == WIRE_RESTORING;
}

/* Of jobs 1 .. HANGING_MAX, at least one for each of libuv's threads. */
static bool are_enough(struct world *w, world_cond cond)
{
    int n = 0;
    for (int64_t job = 1; job <= HANGING_MAX; job++)
        n += cond(w, job);
    return n >= 16;
}

static bool are_restoring(struct world *w, int64_t unused)
{
    (void)unused;
    return are_enough(w, is_restoring);
}

static bool are_failing(struct world *w, int64_t unused)
{
    (void)unused;
    return are_enough(w, has_failed_save);
}

static bool all_run(struct world *w, int64_t unused)
{
    (void)unused;
    for (int64_t job = 1; job <= HANGING_MAX; job++) {
        if (!is_running(w, job))
            return false;
    }
    return true;
}

static void want_many(struct world *w)
{
    for (int64_t job = 1; job <= HANGING_MAX; job++)
        want(w, job, "nobody");
}

/* A job of another user, whose part of the store answers, and one without checkpoints. */
static void check_others(struct world *w)
{
    const int64_t saves = HANGING_MAX + 1, plain = HANGING_MAX + 2;
    world_want(w, plain, 1, "#!/bin/sh\n");
    want(w, saves, "");
    world_go(w);
    world_until(w, has_ended, plain, "a job without checkpoints has ended");
    world_forget(w, plain);
    world_go(w);
    world_until(w, is_forgotten, plain, "and is cleared away");
    world_until(w, is_running, saves, "another user's job starts");
    world_task_write(w, saves, 1, "control/save", "");
    world_until(w, has_checkpoint, saves, "it saves");
    world_task_write(w, saves, 1, "control/end", "");
    world_until(w, has_ended, saves, "it ends");
    assert_int_equal(world_reported(w, saves)->end, WIRE_END_SUCCEEDED);
    assert_int_equal(world_reported(w, saves)->failed_saves, 0);
    world_forget(w, saves);
    world_go(w);
    world_until(w, is_forgotten, saves, "and is cleared away");
}

static void starts_that_hang_leave_threads_to_others(void **state)
{
    struct world *w = begin(state);
    for (int64_t job = 1; job <= HANGING_MAX; job++)
        hang_store(w, job);
    want_many(w);
    world_start_agent(w);
    world_until(w, are_restoring, 0, "they look for their checkpoints");
    check_others(w);
}

static void saves_that_hang_leave_threads_to_others(void **state)
{
    struct world *w = begin(state);
    want_many(w);
    world_start_agent(w);
    world_until(w, all_run, 0, "they run");
    for (int64_t job = 1; job <= HANGING_MAX; job++) {
        hang_store(w, job);
        world_task_write(w, job, 1, "control/save", "");
    }
    world_until(w, are_failing, 0, "the store does not answer them");
    check_others(w);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(an_agent_that_looks_for_a_save_reports_that_the_store_hangs, end),
        cmocka_unit_test_teardown(a_program_continues_while_its_save_is_looked_for, end),
        cmocka_unit_test_teardown(an_attempt_whose_save_is_looked_for_can_be_cancelled, end),
        cmocka_unit_test_teardown(an_agent_whose_store_hangs_ends_on_request, end),
        cmocka_unit_test_teardown(starts_that_hang_leave_threads_to_others, end),
        cmocka_unit_test_teardown(saves_that_hang_leave_threads_to_others, end),
    };
    char dir[] = "/tmp/belay-hang-XXXXXX";
    can_hang = enter_own_mounts() && mkdtemp(dir) && hang(dir);
    answer_all();
    rmdir(dir);
    return world_run(tests, sizeof(tests) / sizeof(tests[0]), argc, argv);
}
