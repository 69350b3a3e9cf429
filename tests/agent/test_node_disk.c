/* SPDX-License-Identifier: Apache-2.0
 *
 * A real agent whose own disk is full: its directory is a small tmpfs, in a mount namespace of this
 * process. Run as root; otherwise there is nothing to test.
 */
#include "rights.h"
#include "world.h"

#include "agent/disk.h"
#include "agent/supervisor/env.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE 4096
#define DISK "size=16m"
#define NOBODY 65534

static bool can_mount;

static char *in_node(struct world *w, const char *name)
{
    return mem_printf("%s/node/%s", w->dir, name);
}

static struct world *create(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    char *node = in_node(w, "");
    if (!can_mount)
        skip();
    assert_int_equal(mkdir(node, 0711), 0);
    assert_int_equal(mount("belay-test", node, "tmpfs", 0, DISK), 0);
    free(node);
    return w;
}

static bool has_no_tasks(struct world *w, int64_t unused)
{
    char *path = in_node(w, "tasks/*");
    glob_t found = {0};
    bool none = glob(path, 0, NULL, &found) == GLOB_NOMATCH;
    (void)unused;
    globfree(&found);
    free(path);
    return none;
}

/* Before world_teardown, which removes the mount point. */
static int teardown(void **state)
{
    struct world *w = *state;
    char *node = in_node(w, ""), *ballast = in_node(w, "ballast");
    unlink(ballast);
    w->deaf = w->deaf_to_output = false;
    for (size_t i = 0; i < WORLD_WANTS; i++)
        w->wants[i].a.job = 0;
    if (w->agent) {
        world_go(w);
        world_until(w, has_no_tasks, 0, "the tasks are gone");
        world_kill_agent(w, SIGTERM);
    }
    umount2(node, MNT_DETACH);
    free(ballast);
    free(node);
    return world_teardown(state);
}

/* Fills the disk except for this many pages. */
static void fill(struct world *w, int pages)
{
    static const char page[PAGE];
    char *path = in_node(w, "ballast");
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    off_t size = 0;
    assert_true(fd >= 0);
    for (ssize_t n; (n = write(fd, page, PAGE)) > 0;)
        size += n;
    assert_int_equal(errno, ENOSPC);
    assert_int_equal(ftruncate(fd, (size + PAGE - 1) / PAGE * PAGE - (off_t)pages * PAGE), 0);
    close(fd);
    free(path);
}

static void make_space(struct world *w)
{
    char *path = in_node(w, "ballast");
    assert_int_equal(unlink(path), 0);
    free(path);
}

/* ---- starts ---- */

static bool has_space(struct world *w, int64_t unused)
{
    (void)unused;
    return w->status.seq > 0 && !w->status.disk_full[0];
}

static bool ended_or_runs(struct world *w, int64_t job)
{
    return has_ended(w, job) || is_running(w, job);
}

/* The space ends at each step of a start: the job's directory, its supervisor's records, the record
 * of its end. */
static void a_start_without_space_is_no_loss_of_the_node(void **state)
{
    struct world *w = create(state);
    int refused = 0, done = 0;
    world_start_agent(w);
    world_want(w, 1, 1, "#!/bin/sh\n");
    world_until(w, has_ended, 1, "the node works");
    for (int pages = 0; done < 2 && pages < 32; pages++) {
        int64_t job = 2 + pages;
        world_forget(w, job - 1);
        world_go(w);
        world_until(w, is_forgotten, job - 1, "the one before is cleared away");
        fill(w, pages);
        world_want(w, job, 1, "#!/bin/sh\nexit 0\n");
        world_go(w);
        world_until(w, ended_or_runs, job, "it has ended, or has started");
        make_space(w); /* for the record of its end */
        world_until(w, has_ended, job, "it has ended");
        const struct wire_attempt_status *s = world_reported(w, job);
        if (s->end != WIRE_END_CAPACITY && s->end != WIRE_END_SUCCEEDED)
            fail_msg("with %d pages it ended as %s: %s", pages,
                wire_word_name(wire_end_names, (int)s->end), s->text);
        if (s->end == WIRE_END_CAPACITY && !strstr(s->text, "No space left on device"))
            fail_msg("with %d pages: %s", pages, s->text);
        refused += s->end == WIRE_END_CAPACITY;
        done += s->end == WIRE_END_SUCCEEDED;
    }
    assert_true(refused >= 3);
    assert_int_equal(done, 2);
}

static void remount(struct world *w, unsigned long flags)
{
    char *node = in_node(w, "");
    assert_int_equal(mount(NULL, node, NULL, MS_REMOUNT | flags, DISK), 0);
    free(node);
}

static void check_not_started(struct world *w, int64_t job, const char *why)
{
    world_go(w);
    world_until(w, has_ended, job, "it has ended");
    const struct wire_attempt_status *s = world_reported(w, job);
    assert_string_equal(wire_word_name(wire_end_names, (int)s->end), "capacity");
    assert_int_equal(s->exit_code, 0);
    char *expected = mem_printf(why, w->dir);
    if (!strstr(s->text, expected))
        fail_msg("job %d: %s, not: %s", (int)job, s->text, expected);
    free(expected);
}

/* Whatever the start tries first: script, directory, input. A script that names no program is still
 * the job's own fault, and so is the job's own directory. */
static void a_node_that_lets_nothing_be_executed_is_no_fault_of_the_job(void **state)
{
    static char open_input[] = WIRE_INPUT_OPEN;
    struct world *w = create(state);
    world_start_agent(w);
    world_want(w, 1, 1, "#!/etc/passwd\n");
    STR_COPY(world_want(w, 2, 1, "#!/bin/sh\n")->cwd, "/nowhere");
    world_go(w);
    for (int job = 1; job <= 2; job++) {
        world_until(w, has_ended, job, "it has ended");
        assert_int_equal(world_reported(w, job)->end, WIRE_END_FAILED);
        assert_int_equal(world_reported(w, job)->exit_code, 126);
    }
    remount(w, MS_NOEXEC);
    world_want(w, 3, 1, "#!/bin/sh\n");
    check_not_started(w, 3,
        "jobs cannot be executed in %s/node/tasks/3-1: its file system is mounted noexec: mount it "
        "with exec");
    remount(w, 0);
    char *tasks = in_node(w, "tasks");
    assert_int_equal(chmod(tasks, 0700), 0);
    for (int job = 4; job <= 5; job++) {
        struct wire_desired_attempt *a = world_want(w, job, 1, "#!/bin/sh\n");
        STR_COPY(a->user, "nobody");
        STR_COPY(a->cwd, "/");
        a->input = job == 5 ? open_input : NULL;
        char *why = mem_printf("jobs cannot be executed in %%s/node/tasks/%d-1: other users than "
                               "root cannot pass %s: chmod o+x it",
            job, tasks);
        check_not_started(w, job, why);
        free(why);
    }
    assert_true(has_space(w, 0)); /* other jobs may start here */
    free(tasks);
}

/* Although the job's files free no space before they are removed. */
static void the_end_of_a_job_is_recorded_on_a_full_disk(void **state)
{
    struct world *w = create(state);
    world_start_agent(w);
    for (int job = 1; job <= 2; job++) {
        world_want(w, job, 1,
            "#!/bin/sh\nwhile [ ! -e \"$BELAY_CONTROL_DIR/go\" ]; do sleep 0.02; done\nexit 7\n");
        world_go(w);
        world_until(w, is_running, job, "it runs");
    }
    fill(w, 0);
    for (int job = 1; job <= 2; job++) {
        world_task_write(w, job, 1, "control/go", "");
    }
    for (int job = 1; job <= 2; job++) {
        world_until(w, has_ended, job, "it has ended");
        assert_int_equal(world_reported(w, job)->end, WIRE_END_FAILED);
        assert_int_equal(world_reported(w, job)->exit_code, 7);
    }
    make_space(w);
}

static void kill_supervisor(struct world *w, int64_t job)
{
    char *path = world_task_path(w, job, 1, "supervisor.pid"), *text = world_read(path);
    assert_true(text && atoi(text) > 1);
    assert_int_equal(kill(atoi(text), SIGKILL), 0);
    free(text);
    free(path);
}

/* It must not count as a start without space: the job would run again. */
static void the_end_of_a_job_that_ran_waits_for_space(void **state)
{
    struct world *w = create(state);
    world_start_agent(w);
    world_want(w, 1, 1, "#!/bin/sh\nexec sleep 1000\n");
    world_until(w, is_running, 1, "it runs");
    fill(w, 0);
    kill_supervisor(w, 1);
    world_until_said(w, "the record of a task's end waits for space");
    make_space(w);
    world_until(w, has_ended, 1, "it has ended");
    assert_int_not_equal(world_reported(w, 1)->end, WIRE_END_CAPACITY);
    assert_string_equal(world_reported(w, 1)->text, "supervisor died");
}

static bool is_full(struct world *w, int64_t unused)
{
    (void)unused;
    return w->status.disk_full[0];
}

static void take_the_reserve(struct world *w)
{
    char *path = in_node(w, DISK_RESERVE_FILE);
    assert_int_equal(truncate(path, 0), 0);
    free(path);
    fill(w, 0);
}

static bool is_reported(struct world *w, int64_t job)
{
    return world_reported(w, job) != NULL;
}

static void want_stopped(struct world *w, int64_t job)
{
    struct wire_desired_attempt *a = &world_find(w, job)->a;
    a->want = WIRE_STOP;
    a->reason = WIRE_END_CANCELLED;
    a->kill_wait_ms = 1000;
    world_go(w);
}

/* Otherwise the job that has filled it could not be stopped, and the others would run again. */
static void an_agent_starts_on_a_full_disk_and_stops_the_job_that_filled_it(void **state)
{
    struct world *w = create(state);
    world_start_agent(w);
    world_want(w, 1, 1, "#!/bin/sh\nexec sleep 1000\n");
    world_want(w, 2, 1,
        "#!/bin/sh\ncat /dev/zero >\"$BELAY_CHECKPOINT_DIR/x\" 2>/dev/null\nexec sleep 1000\n");
    world_until(w, is_running, 1, "it runs");
    world_until(w, is_running, 2, "the filler runs");
    take_the_reserve(w);
    for (int i = 0; i < 2; i++) {
        world_kill_agent(w, i == 0 ? SIGKILL : SIGTERM);
        world_forget_reports(w);
        world_start_agent(w);
        world_until(w, is_reported, 1, "the agent has started");
        world_until(w, is_running, 1, "it still runs");
        world_until(w, is_running, 2, "so does the filler");
    }
    want_stopped(w, 2);
    make_space(w);
    world_until(w, has_ended, 2, "the filler is stopped");
    assert_int_equal(world_reported(w, 2)->end, WIRE_END_CANCELLED);
    world_forget(w, 2);
    world_go(w);
    world_until(w, is_forgotten, 2, "its files are removed");
    world_until(w, has_space, 0, "the node has space again");
    assert_true(is_running(w, 1));
}

/* Also if the agent is killed before the stop is complete. */
static void a_stop_is_recorded_on_a_full_disk(void **state)
{
    struct world *w = create(state);
    world_start_agent(w);
    world_want(w, 1, 1,
        "#!/bin/sh\ntrap 'touch \"$BELAY_CONTROL_DIR/asked\"' TERM\n"
        "while :; do sleep 0.02; done\n");
    world_until(w, is_running, 1, "it runs");
    fill(w, 0);
    want_stopped(w, 1);
    world_until_said(w, "stopping");
    world_kill_agent(w, SIGKILL);
    char *path = world_task_path(w, 1, 1, "state.json"), *text = world_read(path);
    assert_true(text && strstr(text, "\"stop\":\"cancelled\""));
    world_forget_reports(w);
    world_start_agent(w);
    world_until(w, has_ended, 1, "it has ended");
    assert_int_equal(world_reported(w, 1)->end, WIRE_END_CANCELLED);
    free(text);
    free(path);
}

static bool has_renewed(struct world *w, int64_t n)
{
    return w->n_renews >= n;
}

/* Otherwise the node is lost when its certificate expires. */
static void a_certificate_is_renewed_on_a_full_disk(void **state)
{
    struct world *w = create(state);
    w->cert_life_ms = 3000;
    world_start_agent(w);
    world_until(w, has_space, 0, "the node works");
    fill(w, 0);
    for (int n = w->n_renews + 1, last = n + 2; n <= last; n++)
        world_until(w, has_renewed, n, "the certificate is renewed");
    assert_false(world_log_has(w, strerror(ENOSPC)));
    make_space(w);
}

/* ---- reports ---- */

static void a_node_says_when_its_disk_is_full_and_when_it_has_space_again(void **state)
{
    struct world *w = create(state);
    world_start_agent(w);
    world_until(w, has_space, 0, "it has space");
    fill(w, (2 << 20) / PAGE - 8); /* a little less than the eighth that is kept */
    world_until(w, is_full, 0, "the full disk is reported");
    if (!strstr(w->status.disk_full, "of 16.0 MiB are free, and 2.0 MiB are kept"))
        fail_msg("%s", w->status.disk_full);
    fill(w, (2 << 20) / PAGE + 8); /* not yet enough more */
    world_want(w, 1, 1, "#!/bin/sh\n");
    world_go(w);
    world_until(w, has_ended, 1, "what belayd wants all the same is run");
    assert_int_equal(world_reported(w, 1)->end, WIRE_END_SUCCEEDED);
    assert_true(is_full(w, 0));
    make_space(w);
    world_until(w, has_space, 0, "it has space again");
}

/* With so few inodes none are reserved, so the disk is never reported as short of them. */
static void allow_no_more_files(struct world *w)
{
    struct statvfs v;
    char *node = in_node(w, ""), options[64];
    assert_int_equal(statvfs(node, &v), 0);
    long used = (long)(v.f_files - v.f_ffree);
    assert_true(used > 0 && used < 64);
    snprintf(options, sizeof(options), DISK ",nr_inodes=%ld", used);
    assert_int_equal(mount("belay-test", node, "tmpfs", MS_REMOUNT, options), 0);
    free(node);
}

/* A quota, for example: the file system has free space that this user may not use. */
static void a_start_that_found_no_space_is_reported_as_a_full_disk(void **state)
{
    struct world *w = create(state);
    world_start_agent(w);
    world_until(w, has_space, 0, "it has space");
    allow_no_more_files(w);
    world_want(w, 1, 1, "#!/bin/sh\n");
    world_go(w);
    world_until(w, has_ended, 1, "it is refused");
    assert_int_equal(world_reported(w, 1)->end, WIRE_END_CAPACITY);
    assert_true(is_full(w, 0)); /* in the same message */
    /* it is visible to all users, and the error of the start may name files of the job */
    if (!str_eq(w->status.disk_full, "a start found no space on it"))
        fail_msg("%s", w->status.disk_full);
}

/* The job may be larger than the disk, or than its user's quota: others still find space. */
static void a_job_that_does_not_fit_closes_no_node(void **state)
{
    struct world *w = create(state);
    struct err e;
    struct wire_desired_attempt *a = world_want(w, 1, 1,
        "#!/bin/sh\nhead -c 6291456 /dev/urandom >\"$BELAY_CHECKPOINT_DIR/state\"\n"
        "echo '{\"progress\":5}' >\"$BELAY_CONTROL_DIR/c\"\n"
        "ln \"$BELAY_CONTROL_DIR/c\" \"$BELAY_CONTROL_DIR/commit.1\"\nsleep 1000\n");
    a->method = WIRE_METHOD_COOP;
    world_start_agent(w);
    world_until(w, has_checkpoint, 1, "6 MiB are stored");
    world_forget(w, 1);
    world_go(w);
    world_until(w, has_no_tasks, 0, "it is gone");
    char *kept = in_node(w, "kept/1-1"); /* content that would make space if removed */
    assert_int_equal(fs_remove_tree(kept, &e), 0);
    free(kept);
    fill(w, (4 << 20) / PAGE);
    a = world_want(w, 1, 2, "#!/bin/sh\n");
    a->method = WIRE_METHOD_COOP;
    world_go(w);
    world_until(w, has_ended, 1, "they do not fit");
    assert_int_equal(world_reported(w, 1)->end, WIRE_END_CAPACITY);
    char *left = world_task_path(w, 1, 2, "checkpoint");
    assert_int_equal(access(left, F_OK), -1); /* what had fitted was removed */
    free(left);
    world_want(w, 2, 1, "#!/bin/sh\n");
    world_go(w);
    world_until(w, has_ended, 2, "another job has space");
    assert_int_equal(world_reported(w, 2)->end, WIRE_END_SUCCEEDED);
    assert_false(world_log_has(w, "a start found no space on it"));
    assert_true(world_log_has(w, "a start found no space on this node's disk"));
    make_space(w);
}

/* ---- output ---- */

static void assert_space(struct world *w)
{
    struct statvfs v;
    char *node = in_node(w, "");
    assert_int_equal(statvfs(node, &v), 0);
    if (v.f_bavail * v.f_frsize < 2 << 20)
        fail_msg("%lu KiB are free", v.f_bavail * v.f_frsize >> 10);
    assert_false(is_full(w, 0));
    free(node);
}

static bool has_more(struct world *w, int64_t job)
{
    return world_find(w, job)->output.len > 20 << 20;
}

/* Twice as much as fits on the disk: it waits for belayd, which gets all of it. */
static void output_that_belayd_has_makes_space_for_more(void **state)
{
    struct world *w = create(state);
    world_want(w, 1, 1, "#!/bin/sh\nseq -f %015.0f 0 2097151\n");
    world_start_agent(w);
    world_until(w, has_more, 1, "more than fits has arrived");
    assert_space(w);
    world_until(w, has_ended, 1, "it has ended");
    assert_int_equal(world_reported(w, 1)->end, WIRE_END_SUCCEEDED);
    const char *out = world_output(w, 1);
    assert_int_equal(strlen(out), 32 << 20);
    for (int i = 0; i < 2097152; i++)
        if (atoi(out + 16 * i) != i)
            fail_msg("line %d is %.16s", i, out + 16 * i);
}

/* Output on the node is released only after it is copied to the user's files, which are on another
 * disk. */
static void output_in_files_of_the_user_makes_space_too(void **state)
{
    static char one[] = "one", two[] = "two";
    struct world *w = create(state);
    struct wire_desired_attempt *a =
        world_want(w, 1, 1, "#!/bin/sh\nseq -f %015.0f 0 1048575\nseq -f %015.0f 0 1048575 >&2\n");
    STR_COPY(a->cwd, w->dir);
    a->output = one;
    a->error = two;
    world_start_agent(w);
    world_until(w, has_more, 1, "more than fits has arrived");
    assert_space(w);
    world_until(w, has_ended, 1, "it has ended");
    assert_int_equal(world_reported(w, 1)->end, WIRE_END_SUCCEEDED);
    assert_int_equal(strlen(world_output(w, 1)), 32 << 20);
    for (int k = 0; k < 2; k++) {
        char *path = mem_printf("%s/%s", w->dir, k == 0 ? one : two), *text = world_read(path);
        assert_int_equal(strlen(text), 16 << 20);
        for (int i = 0; i < 1048576; i++)
            if (atoi(text + 16 * i) != i)
                fail_msg("line %d of %s is %.16s", i, path, text + 16 * i);
        free(text);
        free(path);
    }
}

static bool is_cut(struct world *w, int64_t unused)
{
    (void)unused;
    return world_log_has(w, "a task's output is cut");
}

/* Whether all records exist; the output is not checked. */
static bool is_all_there(struct world *w, int64_t job)
{
    char *path = world_task_path(w, job, 1, "output.log"), *text = world_read(path);
    bool is = text && str_eq(text, "mine\n");
    free(text);
    free(path);
    return is;
}

/* belayd accepts no output meanwhile. The other job may belong to the same user. */
static void a_flood_takes_neither_the_agents_space_nor_that_of_others(void **state)
{
    struct world *w = create(state);
    w->deaf_to_output = true;
    world_want(w, 1, 1,
        "#!/bin/sh\nyes aaaa & while [ ! -e \"$BELAY_CONTROL_DIR/go\" ]; do sleep 0.02; done\n"
        "kill $!; wait; echo; echo over\n");
    world_start_agent(w);
    world_until(w, is_running, 1, "the flood has begun");
    for (int job = 2; job <= 4; job++) {
        world_want(w, job, 1, "#!/bin/sh\necho mine\n");
        world_go(w);
        world_until(w, is_reported_ended, job, "another job has ended");
        assert_int_equal(world_reported(w, job)->end, WIRE_END_SUCCEEDED);
        assert_true(is_all_there(w, job));
        assert_space(w);
    }
    world_until(w, is_cut, 1, "the flood is cut");
    assert_space(w);
    w->deaf_to_output = false;
    world_task_write(w, 1, 1, "control/go", "");
    world_until(w, has_ended, 1, "it goes on, and ends");
    assert_int_equal(world_reported(w, 1)->end, WIRE_END_SUCCEEDED);
    const char *out = world_output(w, 1), *note = strstr(out, "---- belay: output is missing");
    assert_true(note && strstr(note, " bytes of output are missing here ----\n"));
}

/* Makes writes beyond a user's quota fail, as file systems do for a root agent without
 * CAP_SYS_RESOURCE; for this process and the processes that it starts from now on. */
static bool give_no_more_to(uid_t user, unsigned nr, unsigned arg)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 3),
        BPF_STMT(
            BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args) + arg * sizeof(uint64_t)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, user, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EDQUOT),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {.len = sizeof(code) / sizeof(*code), .filter = code};
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static void check_users_quota(struct world *w, const char *what)
{
    static char token[] = "a token";
    static struct wire_peer itself = {"node-1", "127.0.0.1"};
    world_start_agent(w);
    struct wire_desired_attempt *a = world_want(w, 1, 1, "#!/bin/sh\n");
    STR_COPY(a->user, "nobody");
    a->job_token = token;
    a->script_on_first = true;
    a->peers = &itself;
    a->n_peers = 1;
    world_go(w);
    world_until(w, has_ended, 1, "it is refused");
    assert_int_equal(world_reported(w, 1)->end, WIRE_END_CAPACITY);
    assert_non_null(strstr(world_reported(w, 1)->text, what));
    assert_non_null(strstr(world_reported(w, 1)->text, " to nobody: Disk quota exceeded"));
    if (is_full(w, 0))
        fail_msg("the node is closed: %s", w->status.disk_full);
    world_want(w, 2, 1, "#!/bin/sh\n");
    world_go(w);
    world_until(w, has_ended, 2, "another job has space");
    assert_int_equal(world_reported(w, 2)->end, WIRE_END_SUCCEEDED);
}

/* The last two tests, because their filters stay. In the first one the script can still be
 * given. */
static void a_users_quota_met_by_a_secret_closes_no_node(void **state)
{
    struct world *w = create(state);
    if (!give_no_more_to(NOBODY, SYS_fchown, 1))
        skip();
    check_users_quota(w, "giving " TASK_STEPS " to nobody");
}

static void a_users_quota_closes_no_node(void **state)
{
    struct world *w = create(state);
#ifdef SYS_lchown
    const unsigned nr = SYS_lchown, arg = 1;
#else
    const unsigned nr = SYS_fchownat, arg = 2;
#endif
    if (!give_no_more_to(NOBODY, nr, arg))
        skip();
    check_users_quota(w, "giving /");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_start_without_space_is_no_loss_of_the_node, teardown),
        cmocka_unit_test_teardown(
            a_node_that_lets_nothing_be_executed_is_no_fault_of_the_job, teardown),
        cmocka_unit_test_teardown(the_end_of_a_job_is_recorded_on_a_full_disk, teardown),
        cmocka_unit_test_teardown(the_end_of_a_job_that_ran_waits_for_space, teardown),
        cmocka_unit_test_teardown(
            an_agent_starts_on_a_full_disk_and_stops_the_job_that_filled_it, teardown),
        cmocka_unit_test_teardown(a_stop_is_recorded_on_a_full_disk, teardown),
        cmocka_unit_test_teardown(a_certificate_is_renewed_on_a_full_disk, teardown),
        cmocka_unit_test_teardown(
            a_node_says_when_its_disk_is_full_and_when_it_has_space_again, teardown),
        cmocka_unit_test_teardown(output_that_belayd_has_makes_space_for_more, teardown),
        cmocka_unit_test_teardown(output_in_files_of_the_user_makes_space_too, teardown),
        cmocka_unit_test_teardown(
            a_flood_takes_neither_the_agents_space_nor_that_of_others, teardown),
        cmocka_unit_test_teardown(a_start_that_found_no_space_is_reported_as_a_full_disk, teardown),
        cmocka_unit_test_teardown(a_job_that_does_not_fit_closes_no_node, teardown),
        cmocka_unit_test_teardown(a_users_quota_met_by_a_secret_closes_no_node, teardown),
        cmocka_unit_test_teardown(a_users_quota_closes_no_node, teardown),
    };
    can_mount = enter_own_mounts();
    return world_run(tests, sizeof(tests) / sizeof(*tests), argc, argv);
}
