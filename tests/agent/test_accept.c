/* SPDX-License-Identifier: Apache-2.0
 *
 * Checkpoints that are accepted before they are stored. A test can stall the store for as long as
 * it wants: it is the emulator's S3, a separate process, which can be stopped.
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
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

/* Obeys the test through files in the control directory: go.K makes commit K with its content, poke
 * writes to a file in place, exit ends the program. */
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
    "    mv go.$k commit.$k\n"
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
    static struct s3_server s; /* static, because it is as large as an emulator */
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
    (void)ctx, (void)kind; /* the credentials are already set */
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
    world_want(w, 1, 1, program)->method = WIRE_METHOD_COOP;
    world_start_agent(w);
    world_until(w, is_running, 1, "the task runs");
    return w;
}

/* ---- as one rank of two: the test plays the other ---- */

struct other {
    char url[256], tree[128];
    struct ckpt_gang gang;
    pthread_t thread;
    int64_t step, count; /* of the save; step 0 = restore */
    atomic_bool is_over;
    int rc;
    struct err e;
    struct ckpt_stats stats;
};

static void *play(void *ctx)
{
    struct other *o = ctx;
    const struct ckpt_save_with with = {.gang = o->gang};
    struct ckpt_restored restored;
    struct store *store;

    o->rc = store_open(o->url, &(struct store_options){.net = net}, &store, &o->e);
    if (o->rc == 0) {
        const struct ckpt_job j = {.store = store, .cluster = "lab", .job = 1};
        o->rc = o->step == 0
                    ? ckpt_restore_with(&j, 1, o->tree,
                          &(struct ckpt_restore_with){.gang = o->gang}, NULL, &restored, &o->e)
                    : ckpt_save_with(&j, (struct ckpt_id){1, o->count}, o->tree, o->step, NULL,
                          &with, &o->stats, &o->e);
        store_close(store);
    }
    atomic_store(&o->is_over, true);
    return NULL;
}

static void other_begins(struct other *o, int64_t step, int64_t count)
{
    o->step = step;
    o->count = count;
    atomic_store(&o->is_over, false);
    assert_int_equal(pthread_create(&o->thread, NULL, play, o), 0);
}

static void other_ends(struct world *w, struct other *o)
{
    int64_t end = clock_mono(&clock_system).ms + 20000;
    while (!atomic_load(&o->is_over) && clock_mono(&clock_system).ms < end)
        world_iterate(w);
    if (!atomic_load(&o->is_over))
        fail_msg("the other rank waits in vain at step %lld", (long long)o->step);
    assert_int_equal(pthread_join(o->thread, NULL), 0);
}

static void other_saves(struct world *w, struct other *o, int64_t step, int64_t count)
{
    other_begins(o, step, count);
    other_ends(w, o);
    if (o->rc)
        fail_msg("the other rank, step %lld: %s", (long long)step, o->e.text);
}

static void other_fails(struct world *w, struct other *o, const char *why)
{
    other_ends(w, o);
    assert_int_equal(o->rc, ERR_UNAVAILABLE);
    if (!strstr(o->e.text, why))
        fail_msg("%s, expected %s", o->e.text, why);
}

static struct world *start_rank(void **state, int32_t rank, struct other *o)
{
    static struct wire_peer peers[2] = {{"a", "127.0.0.1"}, {"b", "127.0.0.1"}};
    struct world *w = create(state);
    struct wire_desired_attempt *a = world_want(w, 1, 1, program);
    a->method = WIRE_METHOD_COOP;
    a->rank = rank;
    a->peers = peers;
    a->n_peers = 2;
    *o = (struct other){.gang = {1 - rank, 2}};
    STR_COPY(o->url, w->store_url);
    snprintf(o->tree, sizeof(o->tree), "%s/other", w->dir);
    world_start_agent(w);
    other_saves(w, o, 0, 0); /* both must restore */
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

static void put_control(struct world *w, const char *name, const char *text)
{
    char *path = control(w, name), *temp = control(w, "temp");
    world_write(temp, text);
    assert_int_equal(rename(temp, path), 0);
    free(path);
    free(temp);
}

/* Waits for a file of the program or the agent, and checks its text. */
static void await(struct world *w, const char *name, const char *expected)
{
    char *path = control(w, name), *text = NULL;
    int64_t end = clock_mono(&clock_system).ms + 20000;
    while (!(text = world_read(path)) && clock_mono(&clock_system).ms < end)
        world_iterate(w);
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

static void commit_as(struct world *w, int k, const char *text)
{
    char name[32];
    snprintf(name, sizeof(name), "go.%d", k);
    put_control(w, name, text);
}

static void commit(struct world *w, int k, bool wait)
{
    char text[64];
    snprintf(text, sizeof(text), "{\"progress\":%d,\"wait\":%s}", k, wait ? "true" : "false");
    commit_as(w, k, text);
}

static void commit_accepted(struct world *w, int k)
{
    char name[32];
    snprintf(name, sizeof(name), "result.%d", k);
    commit(w, k, false);
    await(w, name, "\"durable\":false");
}

/* Stores the first checkpoint, then stalls the store. */
static struct world *start_and_hold_up(void **state)
{
    struct world *w = start(state);
    commit_accepted(w, 1);
    await(w, "stored.1", "{\"ok\":true,\"attempt\":1,\"sequence\":1}");
    world_until(w, has_checkpoint, 1, "it is reported");
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

/* The stored checkpoints, newest first. */
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

struct sought {
    const char *part;
    bool found;
};

static int note_name(void *ctx, const char *name, int64_t size_bytes)
{
    struct sought *s = ctx;
    (void)size_bytes;
    s->found = s->found || strstr(name, s->part);
    return 0;
}

/* Whether the gang's directory has an object of that name for the first save. */
static bool is_met(struct world *w, const char *what)
{
    struct sought s = {.part = what};
    struct store *store;
    struct err e;
    assert_int_equal(store_open(w->store_url, &(struct store_options){.net = net}, &store, &e), 0);
    assert_int_equal(store->ops->list(store, "lab/jobs/1/gang/", note_name, &s, &e), 0);
    store_close(store);
    return s.found;
}

static bool has_opened(struct world *w, int64_t unused)
{
    (void)unused;
    return is_met(w, "0000000001-open");
}

static bool has_part(struct world *w, int64_t rank)
{
    return is_met(w, rank == 0 ? "0000000001-part-0000" : "0000000001-part-0001");
}

/* ---- */

static void a_program_continues_while_its_commit_is_stored_and_gets_the_outcome(void **state)
{
    struct world *w = start_and_hold_up(state);
    const struct wire_checkpoint *c = &world_reported(w, 1)->checkpoints[0];
    assert_int_equal(c->progress, 1);
    assert_in_range(c->pause_ms, 0, c->took_ms);
    commit_accepted(w, 2);
    assert_false(is_there(w, "stored.2"));
    assert_int_equal(world_reported(w, 1)->phase, WIRE_RUNNING);
    let_go_on();
    await(w, "stored.2", "{\"ok\":true,\"attempt\":1,\"sequence\":2}");
    commit(w, 3, true);
    await(w, "result.3", "{\"ok\":true,\"attempt\":1,\"sequence\":3,\"stop\":false}");
    assert_false(is_there(w, "stored.3"));
}

static void of_commits_that_come_faster_than_the_store_the_newest_is_next(void **state)
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

static void a_waiting_commit_replaces_the_queued_one(void **state)
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

static void a_killed_agent_leaves_no_partial_checkpoint(void **state)
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

static void a_commit_before_a_success_is_stored(void **state)
{
    struct world *w = start_and_hold_up(state);
    commit_accepted(w, 2);
    put_control(w, "exit", "0");
    await(w, "../exit.json", "");
    assert_false(has_ended(w, 1));
    let_go_on();
    world_until(w, has_ended, 1, "the attempt ended");
    assert_int_equal(world_reported(w, 1)->end, WIRE_END_SUCCEEDED);
    assert_true(is_two_stored(w, 0));
}

static void a_commit_before_a_failure_is_stored(void **state)
{
    struct world *w = start_and_hold_up(state);
    commit_accepted(w, 2);
    commit_accepted(w, 3);
    put_control(w, "exit", "3");
    await(w, "../exit.json", "");
    let_go_on();
    world_until(w, has_ended, 1, "the attempt ended");
    assert_int_equal(world_reported(w, 1)->end, WIRE_END_FAILED);
    assert_non_null(strstr(stored(w), "3 "));
}

static void exit_85_stores_the_directory_instead_of_the_queued_commit(void **state)
{
    struct world *w = start_and_hold_up(state);
    commit_accepted(w, 2);
    commit_accepted(w, 3);
    put_control(w, "exit", "85");
    await(w, "../exit.json", "");
    let_go_on();
    world_until(w, has_ended, 1, "the attempt ended");
    assert_int_equal(world_reported(w, 1)->end, WIRE_END_CHECKPOINTED);
    assert_int_equal(stored(w)[0], '4');
}

static bool has_progress(struct world *w, int64_t job)
{
    const struct wire_attempt_status *s = world_reported(w, job);
    return s && s->done == 4;
}

/* The agent reads the progress and looks for commits in one scan. */
static void await_scan(struct world *w)
{
    put_control(w, "progress", "{\"done\":4}");
    world_until(w, has_progress, 1, "the agent has read the control directory");
}

static void at_a_notice_the_newest_is_stored_before_the_program_is_signalled(void **state)
{
    struct world *w = start_and_hold_up(state);
    commit_accepted(w, 2);
    commit_accepted(w, 3);
    world_notice_in(w, 60000);
    await(w, "request", "notice");
    commit(w, 4, false);
    await(w, "commit.4", "");
    await_scan(w);
    assert_false(is_there(w, "result.4"));
    let_go_on();
    await(w, "result.4", "\"stop\":true");
    await(w, "stored.3", "{\"ok\":true,\"attempt\":1,\"sequence\":4}");
    world_until(w, has_ended, 1, "the attempt ended");
    assert_int_equal(world_reported(w, 1)->end, WIRE_END_RECLAIMED);
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
    put_control(w, "poke", "");
    await(w, "poked", "");
    char *path = control(w, "poked");
    assert_int_equal(unlink(path), 0);
    free(path);
}

static void writes_in_place_are_detected_and_copies_made_from_then_on(void **state)
{
    struct world *w = start_and_hold_up(state);
    if (!is_on_ext4(w))
        return;
    commit_accepted(w, 2);
    write_in_place(w);
    let_go_on();
    await(w, "stored.2", "'large' was written to in place");
    world_until(w, has_failed_save, 1, "the failure is reported");
    assert_non_null(strstr(world_reported(w, 1)->save_error, "written to in place"));
    assert_null(strstr(stored(w), "2 "));
    hold_up();
    commit_accepted(w, 3);
    write_in_place(w);
    let_go_on();
    await(w, "stored.3", "\"ok\":true");
}

static void a_program_that_writes_large_files_in_place_waits_for_its_saves(void **state)
{
    char size[] = "40000000", *args[] = {size};
    struct world *w = create(state);
    struct wire_desired_attempt *a = world_want(w, 1, 1, program);
    a->method = WIRE_METHOD_COOP;
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

#define MANY 1100
#define MANY_BYTES (64u << 10)

/* More files than can be kept open, and more bytes than are copied. */
static char *write_many(struct world *w)
{
    char *dir = world_task_path(w, 1, 1, "checkpoint/many"), *block = mem_alloc(MANY_BYTES);
    assert_int_equal(mkdir(dir, 0700), 0);
    memset(block, 'x', MANY_BYTES);
    for (int i = 0; i < MANY; i++) {
        char *path = mem_printf("%s/%d", dir, i);
        struct err e;
        assert_int_equal(fs_write_atomic(path, block, MANY_BYTES, 0600, &e), 0);
        free(path);
    }
    free(block);
    return dir;
}

static void while_there_are_far_too_many_files_no_snapshot_is_tried(void **state)
{
    struct world *w = start(state);
    struct err e;
    if (!is_on_ext4(w))
        return;
    char *dir = write_many(w);
    commit(w, 1, false);
    await(w, "result.1", "{\"ok\":true,\"attempt\":1,\"sequence\":1,\"stop\":false}");
    /* not tried, although it would now succeed */
    assert_int_equal(fs_remove_tree(dir, &e), 0);
    free(dir);
    commit(w, 2, false);
    await(w, "result.2", "{\"ok\":true,\"attempt\":1,\"sequence\":2,\"stop\":false}");
    commit_accepted(w, 3);
    await(w, "stored.3", "{\"ok\":true,\"attempt\":1,\"sequence\":3}");
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

static void done_is_removed_after_the_snapshot(void **state)
{
    struct world *w = create(state);
    world_want(w, 1, 1, says_done)->method = WIRE_METHOD_SIGNAL;
    world_start_agent(w);
    world_until(w, is_running, 1, "the task runs");
    hold_up();
    put_control(w, "go", "");
    await(w, "gone", "");
    assert_false(has_checkpoint(w, 1));
    let_go_on();
    world_until(w, has_checkpoint, 1, "a checkpoint is reported");
    assert_string_equal(stored(w), "1 ");
}

/* ---- of a job of several nodes ---- */

static const char stored_as[] = "{\"ok\":true,\"attempt\":1,\"sequence\":%d}";

static void await_stored(struct world *w, int k, int sequence)
{
    char name[32], text[96];
    snprintf(name, sizeof(name), "stored.%d", k);
    snprintf(text, sizeof(text), stored_as, sequence);
    await(w, name, text);
}

/* One snapshot is being stored and one is queued, whatever the other ranks do; then it waits. */
static void check_goes_on(void **state, int32_t rank)
{
    struct other o;
    struct world *w = start_rank(state, rank, &o);
    commit_accepted(w, 1);
    commit_accepted(w, 2);
    commit(w, 3, false);
    await(w, "commit.3", "");
    assert_false(is_there(w, "stored.1"));
    for (int k = 1; k <= 3; k++) {
        assert_false(is_there(w, "result.3") && k == 1);
        other_saves(w, &o, k, k);
        assert_int_equal(o.stats.sequence, k);
        await_stored(w, k, k);
        await(w, "result.3", "\"durable\":false");
    }
    world_until(w, has_checkpoint, 1, "it is reported");
}

static void rank_0_continues_before_the_others_arrive(void **state)
{
    check_goes_on(state, 0);
}

static void another_rank_continues_before_rank_0_arrives(void **state)
{
    check_goes_on(state, 1);
}

static void a_rank_that_names_no_step_waits_for_the_others(void **state)
{
    struct other o;
    struct world *w = start_rank(state, 1, &o);
    commit_as(w, 1, "{\"wait\":false}");
    await(w, "commit.1", "");
    other_saves(w, &o, 7, 1);
    await(w, "result.1", "{\"ok\":true,\"attempt\":1,\"sequence\":1,\"stop\":false}");
}

static void a_malformed_commit_of_a_rank_does_not_block_the_others(void **state)
{
    struct other o;
    struct world *w = start_rank(state, 1, &o);
    commit_as(w, 1, "{\"progress\":\"much\"}");
    await(w, "result.1", "\"ok\":false");
    other_begins(&o, 1, 1);
    other_fails(w, &o, "rank 1 could not save: the program's commit.1");
    commit_accepted(w, 2);
    other_saves(w, &o, 2, 2);
    await_stored(w, 2, 2);
}

/* A pipe cannot be saved. */
static void a_failed_snapshot_of_a_rank_does_not_block_the_others(void **state)
{
    struct other o;
    struct world *w = start_rank(state, 1, &o);
    char *pipe = world_task_path(w, 1, 1, "checkpoint/pipe");
    assert_int_equal(mkfifo(pipe, 0600), 0);
    commit(w, 1, false);
    await(w, "result.1", "\"ok\":false");
    other_begins(&o, 1, 1);
    other_fails(w, &o, "'pipe' is a named pipe");
    assert_int_equal(unlink(pipe), 0);
    free(pipe);
    commit_accepted(w, 2);
    other_saves(w, &o, 2, 2);
    await_stored(w, 2, 2);
}

/* Its accepted checkpoints are lost, and the other rank learns of it at once. */
static void check_killed_while_it_goes_on(void **state, int32_t rank)
{
    struct other o;
    struct world *w = start_rank(state, rank, &o);
    commit_accepted(w, 1);
    world_until_said(w, "a checkpoint was accepted");
    if (rank == 0) /* rank 0 has opened the save, and the other stores its part */
        world_until(w, has_part, 0, "its part is stored");
    world_kill_agent(w, SIGKILL);
    other_begins(&o, 1, 1);
    if (rank == 0)
        world_until(w, has_part, 1, "the other's part is stored");
    else
        world_until(w, has_opened, 1, "the other has opened it");
    world_start_agent(w);
    await(w, "stored.1", "{\"ok\":false,\"error\":\"the belay agent was restarted");
    other_fails(w, &o, "its agent was restarted meanwhile");
    commit_accepted(w, 2);
    other_saves(w, &o, 2, 2);
    await_stored(w, 2, 2);
}

static void a_killed_agent_of_rank_0_does_not_block_the_others(void **state)
{
    check_killed_while_it_goes_on(state, 0);
}

static void a_killed_agent_of_another_rank_does_not_block_the_rest(void **state)
{
    check_killed_while_it_goes_on(state, 1);
}

/* A program that waits is served by the next agent: it is the same checkpoint, and the other rank
 * does not notice. */
static void check_killed_while_it_waits(void **state, int32_t rank)
{
    struct other o;
    struct world *w = start_rank(state, rank, &o);
    commit(w, 1, true);
    world_until(w, is_saving, 1, "it is being saved");
    if (rank == 0)
        world_until(w, has_opened, 1, "it is open");
    world_kill_agent(w, SIGKILL);
    world_forget_reports(w);
    world_start_agent(w);
    other_saves(w, &o, 1, 1);
    await(w, "result.1", "{\"ok\":true,\"attempt\":1,\"sequence\":1,\"stop\":false}");
    assert_string_equal(stored(w), "1 ");
}

static void rank_0_that_waits_is_served_by_the_next_agent(void **state)
{
    check_killed_while_it_waits(state, 0);
}

static void another_rank_that_waits_is_served_by_the_next_agent(void **state)
{
    check_killed_while_it_waits(state, 1);
}

static struct world *succeed_with_two_accepted(void **state, struct other *o)
{
    struct world *w = start_rank(state, 1, o);
    commit_accepted(w, 1);
    commit_accepted(w, 2);
    put_control(w, "exit", "0");
    await(w, "../exit.json", "");
    assert_false(has_ended(w, 1));
    return w;
}

static void a_rank_that_succeeded_stores_its_last_commit(void **state)
{
    struct other o;
    struct world *w = succeed_with_two_accepted(state, &o);
    other_saves(w, &o, 1, 1);
    assert_false(has_ended(w, 1));
    other_saves(w, &o, 2, 2);
    world_until(w, has_ended, 1, "the attempt ended");
    assert_int_equal(world_reported(w, 1)->end, WIRE_END_SUCCEEDED);
    assert_string_equal(stored(w), "2 1 ");
}

/* The other rank's agent was killed with accepted checkpoints, and its program has succeeded
 * too. */
static void a_rank_does_not_store_after_another_has_ended(void **state)
{
    struct other o;
    struct world *w = succeed_with_two_accepted(state, &o);
    world_find(w, 1)->a.gang_ended = true;
    world_go(w);
    world_until(w, has_ended, 1, "the attempt ended");
    assert_int_equal(world_reported(w, 1)->end, WIRE_END_SUCCEEDED);
    assert_string_equal(stored(w), "");
}

/* The queued save is skipped for the one that the node's end waits for. */
static void at_an_eviction_a_rank_stores_the_newest_before_it_stops(void **state)
{
    struct other o;
    struct world *w = start_rank(state, 1, &o);
    commit_accepted(w, 1);
    commit_accepted(w, 2);
    struct want *want = world_find(w, 1);
    want->a.want = WIRE_SAVE_STOP;
    want->a.reason = WIRE_END_GANG;
    world_go(w);
    await(w, "request", "evict");
    commit(w, 3, false);
    await(w, "commit.3", "");
    other_saves(w, &o, 3, 3);
    await(w, "result.3", "\"stop\":true");
    await_stored(w, 1, 3);
    await_stored(w, 2, 3);
    world_until(w, has_ended, 1, "the attempt ended");
    assert_int_equal(world_reported(w, 1)->end, WIRE_END_GANG);
    assert_string_equal(stored(w), "3 ");
}

int main(int argc, char **argv)
{
#define TEST(f) cmocka_unit_test_teardown(f, teardown)
    setenv("AWS_ACCESS_KEY_ID", S3_SERVER_ACCESS, 1);
    setenv("AWS_SECRET_ACCESS_KEY", S3_SERVER_SECRET, 1);
    const struct CMUnitTest tests[] = {
        TEST(a_program_continues_while_its_commit_is_stored_and_gets_the_outcome),
        TEST(of_commits_that_come_faster_than_the_store_the_newest_is_next),
        TEST(a_waiting_commit_replaces_the_queued_one),
        TEST(a_killed_agent_leaves_no_partial_checkpoint),
        TEST(a_commit_before_a_success_is_stored),
        TEST(a_commit_before_a_failure_is_stored),
        TEST(exit_85_stores_the_directory_instead_of_the_queued_commit),
        TEST(at_a_notice_the_newest_is_stored_before_the_program_is_signalled),
        TEST(writes_in_place_are_detected_and_copies_made_from_then_on),
        TEST(a_program_that_writes_large_files_in_place_waits_for_its_saves),
        TEST(while_there_are_far_too_many_files_no_snapshot_is_tried),
        TEST(done_is_removed_after_the_snapshot),
        TEST(rank_0_continues_before_the_others_arrive),
        TEST(another_rank_continues_before_rank_0_arrives),
        TEST(a_rank_that_names_no_step_waits_for_the_others),
        TEST(a_malformed_commit_of_a_rank_does_not_block_the_others),
        TEST(a_failed_snapshot_of_a_rank_does_not_block_the_others),
        TEST(a_killed_agent_of_rank_0_does_not_block_the_others),
        TEST(a_killed_agent_of_another_rank_does_not_block_the_rest),
        TEST(rank_0_that_waits_is_served_by_the_next_agent),
        TEST(another_rank_that_waits_is_served_by_the_next_agent),
        TEST(a_rank_that_succeeded_stores_its_last_commit),
        TEST(a_rank_does_not_store_after_another_has_ended),
        TEST(at_an_eviction_a_rank_stores_the_newest_before_it_stops),
    };
    return world_run(tests, sizeof(tests) / sizeof(tests[0]), argc, argv);
}
