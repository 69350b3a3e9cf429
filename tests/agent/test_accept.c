/* SPDX-License-Identifier: Apache-2.0
 *
 * Checkpoints that are accepted before they are stored. The store is held up for as long as a test wants: it is the
 * emulator's S3, a process of its own, which can be stopped.
 */
#include "world.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/time.h"
#include "ckpt/ckpt.h"
#include "tests/ckpt/s3_server.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

/* Does what the test says, by files in the control directory: go.K makes commit K, poke writes to a file in place,
 * exit ends it. */
static const char program[] =
    "#!/bin/sh\n"
    "cd \"$BELAY_CONTROL_DIR\"\n"
    "d=$BELAY_CHECKPOINT_DIR\n"
    "[ \"$BELAY_RESTORED\" = 1 ] && { cat \"$d/n\"; exit; }\n"
    "head -c ${1:-3000000} /dev/zero >\"$d/large\"\n"
    "k=1\n"
    "while :; do\n"
    "  if [ -e go.$k ]; then\n"
    "    echo $k >\"$d/n\"\n"
    "    echo \"{\\\"progress\\\":$k,\\\"wait\\\":$(cat go.$k)}\" >c; mv c commit.$k\n"
    "    while [ ! -e result.$k ]; do sleep 0.01; done\n"
    "    cat result.$k; echo\n"
    "    grep -q '\"stop\":true' result.$k && exit 85\n"
    "    k=$((k + 1))\n"
    "  fi\n"
    "  [ -e poke ] && { printf x | dd of=\"$d/large\" conv=notrunc status=none; mv poke poked; }\n"
    "  [ -e exit ] && exit $(cat exit)\n"
    "  sleep 0.01\n"
    "done\n";

/* ---- the store ---- */

static pid_t server;
static struct store_net *net; /* of this process */

_Noreturn static void serve(int fd)
{
    static struct s3_server s; /* as large as an emulator is */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    s3_server_start(&s, "");
    if (write(fd, &s.port, sizeof(s.port)) != sizeof(s.port))
        _exit(1);
    for (;;)
        pause();
}

static int start_server(void)
{
    int fds[2], port;
    assert_int_equal(pipe(fds), 0);
    fflush(NULL);
    server = fork();
    if (server == 0)
        serve(fds[1]);
    assert_int_equal(read(fds[0], &port, sizeof(port)), sizeof(port));
    close(fds[0]);
    close(fds[1]);
    return port;
}

static void on_want(void *ctx, enum store_keys_kind kind)
{
    (void)ctx, (void)kind; /* they are there */
}

static struct world *create(void **state)
{
    struct world *w = world_create(state, "token: t\nprovider: aws\n");
    struct store_keys k = {.expires = WALL_NONE};
    free(w->store_url);
    w->store_url = mem_printf("s3://jobs/agent?endpoint=http://127.0.0.1:%d", start_server());
    net = store_net_create(on_want, NULL);
    STR_COPY(k.access_key, S3_SERVER_ACCESS);
    STR_COPY(k.secret_key, S3_SERVER_SECRET);
    store_auth_set(store_net_auth(net, STORE_KEYS_AWS), &k);
    return w;
}

static int teardown(void **state)
{
    kill(server, SIGCONT);
    int rc = world_teardown(state);
    kill(server, SIGKILL);
    waitpid(server, NULL, 0);
    store_net_destroy(net);
    return rc;
}

static void hold_up(void)
{
    assert_int_equal(kill(server, SIGSTOP), 0);
}

static void let_go_on(void)
{
    assert_int_equal(kill(server, SIGCONT), 0);
}

static struct world *start(void **state)
{
    struct world *w = create(state);
    STR_COPY(world_want(w, 1, 1, program)->method, "coop");
    world_start_agent(w);
    world_until(w, is_running, 1, "the task runs");
    return w;
}

/* ---- the program ---- */

static char *control(struct world *w, const char *name)
{
    char *relative = mem_printf("control/%s", name), *path = world_task_path(w, 1, 1, relative);
    free(relative);
    return path;
}

static void tell(struct world *w, const char *name, const char *text)
{
    char *path = control(w, name), *temp = control(w, "told");
    world_write(temp, text);
    assert_int_equal(rename(temp, path), 0);
    free(path);
    free(temp);
}

/* Waits for a file of the program's or the agent's, which has to have a text. */
static void await(struct world *w, const char *name, const char *expected)
{
    char *path = control(w, name), *text = NULL;
    int64_t end = clock_mono(&clock_system).ms + 20000;
    while (!(text = world_read(path)) && clock_mono(&clock_system).ms < end)
        world_turn(w);
    if (!text || !strstr(text, expected))
        fail_msg("%s: %s, expected %s", name, text ? text : "is not there", expected);
    free(text);
    free(path);
}

static bool is_there(struct world *w, const char *name)
{
    char *path = control(w, name);
    bool there = access(path, F_OK) == 0;
    free(path);
    return there;
}

static void commit(struct world *w, int k, bool wait)
{
    char name[32];
    snprintf(name, sizeof(name), "go.%d", k);
    tell(w, name, wait ? "true" : "false");
}

static void commit_accepted(struct world *w, int k)
{
    char name[32];
    snprintf(name, sizeof(name), "result.%d", k);
    commit(w, k, false);
    await(w, name, "\"durable\":false");
}

/* The first checkpoint is stored, and nothing more. */
static struct world *start_and_hold_up(void **state)
{
    struct world *w = start(state);
    commit_accepted(w, 1);
    await(w, "stored.1", "{\"ok\":true,\"attempt\":1,\"sequence\":1}");
    world_until(w, has_checkpoint, 1, "it is told");
    hold_up();
    return w;
}

static int note_sequence(void *ctx, const struct ckpt_info *info)
{
    char *list = ctx;
    size_t n = strlen(list);
    snprintf(list + n, 64 - n, "%lld ", (long long)info->id.sequence);
    return 0;
}

/* What is stored, the newest first. */
static const char *stored(struct world *w)
{
    static char list[64];
    struct store *store;
    struct err e;
    assert_int_equal(store_open(w->store_url, &(struct store_options){.net = net}, &store, &e), 0);
    const struct ckpt_job j = {.store = store, .cluster = "lab", .job = 1};
    list[0] = '\0';
    assert_int_equal(ckpt_list(&j, note_sequence, list, &e), 0);
    store_close(store);
    return list;
}

static void notice_in(struct world *w, int64_t ms)
{
    char iso[TIME_ISO_MAX];
    time_format_iso((struct wall){clock_wall(&clock_system).ms + ms}, iso);
    buf_clear(&w->action);
    buf_printf(&w->action, "{\"action\": \"terminate\", \"time\": \"%.19sZ\"}", iso);
}

/* ---- */

static void a_program_goes_on_while_it_is_stored_and_learns_when_it_is(void **state)
{
    struct world *w = start_and_hold_up(state);
    const struct wire_checkpoint *c = &world_told(w, 1)->checkpoints[0];
    assert_int_equal(c->progress, 1);
    assert_in_range(c->pause_ms, 0, c->took_ms);
    commit_accepted(w, 2);
    assert_false(is_there(w, "stored.2"));
    assert_int_equal(world_told(w, 1)->phase, WIRE_RUNNING);
    let_go_on();
    await(w, "stored.2", "{\"ok\":true,\"attempt\":1,\"sequence\":2}");
    commit(w, 3, true);
    await(w, "result.3", "{\"ok\":true,\"attempt\":1,\"sequence\":3,\"stop\":false}");
    assert_false(is_there(w, "stored.3"));
}

static void who_commits_faster_than_it_is_stored_has_the_newest_stored_next(void **state)
{
    struct world *w = start_and_hold_up(state);
    for (int k = 2; k <= 5; k++)
        commit_accepted(w, k);
    let_go_on();
    await(w, "stored.2", "{\"ok\":true,\"attempt\":1,\"sequence\":");
    await(w, "stored.3", "{\"ok\":true,\"attempt\":1,\"sequence\":5}");
    await(w, "stored.4", "{\"ok\":true,\"attempt\":1,\"sequence\":5}");
    await(w, "stored.5", "{\"ok\":true,\"attempt\":1,\"sequence\":5}");
    assert_non_null(strstr(stored(w), "5 "));
    assert_null(strstr(stored(w), "4 "));
}

static void a_commit_that_waits_is_newer_than_what_is_kept(void **state)
{
    struct world *w = start_and_hold_up(state);
    commit_accepted(w, 2);
    commit_accepted(w, 3);
    commit(w, 4, true);
    await(w, "commit.4", "");
    let_go_on();
    await(w, "result.4", "{\"ok\":true,\"attempt\":1,\"sequence\":4,\"stop\":false}");
    await(w, "stored.3", "{\"ok\":true,\"attempt\":1,\"sequence\":4}");
}

static void an_agent_that_is_killed_while_it_stores_leaves_nothing_half(void **state)
{
    struct world *w = start_and_hold_up(state);
    commit_accepted(w, 2);
    world_kill_agent(w, SIGKILL);
    let_go_on();
    world_start_agent(w);
    await(w, "stored.2", "{\"ok\":false,\"error\":\"the belay agent was restarted");
    assert_string_equal(stored(w), "1 ");
    commit_accepted(w, 3);
    await(w, "stored.3", "\"ok\":true");
}

static bool is_two_stored(struct world *w, int64_t unused)
{
    (void)unused;
    return strstr(stored(w), "2 ") != NULL;
}

static void what_a_program_commits_before_it_succeeds_is_stored(void **state)
{
    struct world *w = start_and_hold_up(state);
    commit_accepted(w, 2);
    tell(w, "exit", "0");
    await(w, "../exit.json", "");
    assert_false(has_ended(w, 1));
    let_go_on();
    world_until(w, has_ended, 1, "the attempt ended");
    assert_string_equal(world_told(w, 1)->end, "succeeded");
    assert_true(is_two_stored(w, 0));
}

static void what_a_program_commits_before_it_fails_is_stored(void **state)
{
    struct world *w = start_and_hold_up(state);
    commit_accepted(w, 2);
    commit_accepted(w, 3);
    tell(w, "exit", "3");
    await(w, "../exit.json", "");
    let_go_on();
    world_until(w, has_ended, 1, "the attempt ended");
    assert_string_equal(world_told(w, 1)->end, "failed");
    assert_non_null(strstr(stored(w), "3 "));
}

static void exit_85_stores_the_directory_in_place_of_what_is_kept(void **state)
{
    struct world *w = start_and_hold_up(state);
    commit_accepted(w, 2);
    commit_accepted(w, 3);
    tell(w, "exit", "85");
    await(w, "../exit.json", "");
    let_go_on();
    world_until(w, has_ended, 1, "the attempt ended");
    assert_string_equal(world_told(w, 1)->end, "checkpointed");
    assert_int_equal(stored(w)[0], '4');
}

static void at_a_notice_the_newest_is_stored_and_only_then_the_program_is_told(void **state)
{
    struct world *w = start_and_hold_up(state);
    commit_accepted(w, 2);
    commit_accepted(w, 3);
    notice_in(w, 60000);
    await(w, "request", "notice");
    commit(w, 4, false);
    await(w, "commit.4", "");
    assert_false(is_there(w, "result.4"));
    let_go_on();
    await(w, "result.4", "\"stop\":true");
    await(w, "stored.3", "{\"ok\":true,\"attempt\":1,\"sequence\":4}");
    world_until(w, has_ended, 1, "the attempt ended");
    assert_string_equal(world_told(w, 1)->end, "reclaimed");
    assert_int_equal(stored(w)[0], '4');
}

static bool is_on_ext4(const struct world *w)
{
    struct statfs fs;
    if (statfs(w->dir, &fs) == 0 && fs.f_type == EXT4_SUPER_MAGIC)
        return true;
    print_message("SKIP: %s is not on ext4\n", w->dir);
    return false;
}

static void write_in_place(struct world *w)
{
    tell(w, "poke", "");
    await(w, "poked", "");
    char *path = control(w, "poked");
    assert_int_equal(unlink(path), 0);
    free(path);
}

static void a_program_that_writes_in_place_is_noticed_and_has_copies_from_then_on(void **state)
{
    struct world *w = start_and_hold_up(state);
    if (!is_on_ext4(w))
        return;
    commit_accepted(w, 2);
    write_in_place(w);
    let_go_on();
    await(w, "stored.2", "'large' was written to in place");
    world_until(w, has_failed_save, 1, "the failure is told");
    assert_non_null(strstr(world_told(w, 1)->save_error, "written to in place"));
    assert_null(strstr(stored(w), "2 "));
    hold_up();
    commit_accepted(w, 3);
    write_in_place(w);
    let_go_on();
    await(w, "stored.3", "\"ok\":true");
}

static void or_waits_where_its_files_are_too_large_for_that(void **state)
{
    char size[] = "40000000", *args[] = {size};
    struct world *w = create(state);
    struct wire_desired_attempt *a = world_want(w, 1, 1, program);
    STR_COPY(a->method, "coop");
    a->args = args;
    a->n_args = 1;
    world_start_agent(w);
    world_until(w, is_running, 1, "the task runs");
    if (!is_on_ext4(w))
        return;
    hold_up();
    commit_accepted(w, 1);
    write_in_place(w);
    let_go_on();
    await(w, "stored.1", "'large' was written to in place");
    commit(w, 2, false);
    await(w, "result.2", "{\"ok\":true,\"attempt\":1,\"sequence\":2,\"stop\":false}");
}

/* ---- by .done ---- */

static const char says_done[] = "#!/bin/sh\n"
                                "cd \"$BELAY_CHECKPOINT_DIR\"\n"
                                "while [ ! -e \"$BELAY_CONTROL_DIR/go\" ]; do sleep 0.01; done\n"
                                "echo s >state\n"
                                ": >.done\n"
                                "while [ -e .done ]; do sleep 0.01; done\n"
                                ": >\"$BELAY_CONTROL_DIR/gone\"\n"
                                "sleep 1000\n";

static void done_is_taken_away_when_the_snapshot_stands(void **state)
{
    struct world *w = create(state);
    STR_COPY(world_want(w, 1, 1, says_done)->method, "signal");
    world_start_agent(w);
    world_until(w, is_running, 1, "the task runs");
    hold_up();
    tell(w, "go", "");
    await(w, "gone", "");
    assert_false(has_checkpoint(w, 1));
    let_go_on();
    world_until(w, has_checkpoint, 1, "a checkpoint is told");
    assert_string_equal(stored(w), "1 ");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_teardown(f, teardown)
    setenv("AWS_ACCESS_KEY_ID", S3_SERVER_ACCESS, 1);
    setenv("AWS_SECRET_ACCESS_KEY", S3_SERVER_SECRET, 1);
    const struct CMUnitTest tests[] = {
        TEST(a_program_goes_on_while_it_is_stored_and_learns_when_it_is),
        TEST(who_commits_faster_than_it_is_stored_has_the_newest_stored_next),
        TEST(a_commit_that_waits_is_newer_than_what_is_kept),
        TEST(an_agent_that_is_killed_while_it_stores_leaves_nothing_half),
        TEST(what_a_program_commits_before_it_succeeds_is_stored),
        TEST(what_a_program_commits_before_it_fails_is_stored),
        TEST(exit_85_stores_the_directory_in_place_of_what_is_kept),
        TEST(at_a_notice_the_newest_is_stored_and_only_then_the_program_is_told),
        TEST(a_program_that_writes_in_place_is_noticed_and_has_copies_from_then_on),
        TEST(or_waits_where_its_files_are_too_large_for_that),
        TEST(done_is_taken_away_when_the_snapshot_stands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
