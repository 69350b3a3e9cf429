/* SPDX-License-Identifier: Apache-2.0
 *
 * kill -9 in the middle of saves: afterwards the newest checkpoint is the last acknowledged one, or
 * the complete one that was under way.
 */
#include "tests/ckpt/tools.h"
#include "base/fs.h"
#include "base/prng.h"
#include "tests/ckpt/store_fault.h"
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define KILLS 40

static void make_state(struct scratch *s, int64_t number)
{
    make_tree(s->tree, number);
    write_random(s->tree, "large", (2u << 20) + (size_t)number, (uint64_t)number);
}

/* The child: saves state after state, and reports the number of each when it is acknowledged. */
_Noreturn static void save_for_ever(struct scratch *s, int64_t number, int fd)
{
    struct ckpt_stats stats;
    struct err e;

    for (;; number++) {
        make_state(s, number);
        if (ckpt_save(&s->job, (struct ckpt_id){1, number}, s->tree, number, NULL, &stats, &e) ||
            write(fd, &number, sizeof(number)) != sizeof(number))
            _exit(1);
        if (number % 3 == 0 && clean_job(&s->job, 1, 2, &e))
            _exit(1);
    }
}

static int64_t read_acknowledged(int fd, int64_t last)
{
    int64_t number;

    while (read(fd, &number, sizeof(number)) == sizeof(number))
        last = number;
    return last;
}

/* Checks that state `acknowledged` or the next one is restored; returns its number. */
static int64_t check_restored(struct scratch *s, int64_t acknowledged)
{
    struct ckpt_restored r = restore(s, 2);

    assert_int_equal(r.damaged, 0);
    if (acknowledged > 0)
        assert_in_range(r.id.sequence, acknowledged, acknowledged + 1);
    else
        assert_in_range(r.id.sequence, 0, 1);
    if (r.id.sequence > 0) {
        make_state(s, r.id.sequence);
        assert_same_tree(s->tree, s->out);
    }
    return r.id.sequence;
}

static void killed_at_any_moment_the_last_acknowledged_or_the_next_is_there_whole(void **state)
{
    struct scratch *s = *state;
    struct prng prng;
    int64_t newest = 0;

    prng_init(&prng, 11);
    /* On a busy machine kills come later, until some saves have completed. */
    for (int64_t i = 0; i < KILLS || newest <= 5; i++) {
        int fds[2], status;
        int64_t ns = prng_range(&prng, 0, 40000000) * (1 + i / KILLS);
        struct timespec moment = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
        pid_t pid;

        assert_true(i < 50 * KILLS);
        assert_int_equal(pipe(fds), 0);
        fflush(NULL);
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0)
            save_for_ever(s, newest + 1, fds[1]);
        close(fds[1]);
        nanosleep(&moment, NULL); /* the random moment of the kill, not a wait for an event */
        kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status));
        newest = check_restored(s, read_acknowledged(fds[0], newest));
        close(fds[0]);
    }
}

struct last_act {
    struct scratch *s;
    bool pins;
    int fd;
};

/* With pins, pins the checkpoint being cleaned before the kill. */
static void pin_and_die(void *ctx)
{
    struct last_act *act = ctx;
    struct err e;
    char ok = act->pins && ckpt_pin(&act->s->job, (struct ckpt_id){1, 2}, &e) == 0;

    if (write(act->fd, &ok, 1) == 1)
        kill(getpid(), SIGKILL);
}

static void check_cleaned(struct scratch *s, bool pinned)
{
    struct ckpt_stats stats;
    struct err e;

    for (int i = 1; i <= 5; i++) {
        struct ckpt_id id = {1, i};
        bool stays = i == 1 || i == 5 || (i == 2 && pinned);

        if (!stays) {
            FAILS(ERR_NOT_FOUND, ckpt_verify(&s->job, id, &e));
            continue;
        }
        OK(ckpt_get(&s->job, id, s->out, NULL, &stats, &e));
        make_state(s, i);
        assert_same_tree(s->tree, s->out);
        OK(fs_remove_tree(s->out, &e));
    }
    assert_int_equal(find_objects(s, "/removing/", NULL, 0), 0);
    assert_int_equal(find_objects(s, "/manifests/", NULL, 0), 2 + pinned);
    /* a large file and a pack of each; 2 also has a part of 1's pack */
    assert_int_equal(find_objects(s, "/chunks/", NULL, 0), 2 * (2 + pinned));
}

/* False once the cleaning makes fewer calls than `at`. First checks what must be kept. */
static bool clean_killed_at_call(int at, bool pins)
{
    struct scratch s;
    struct store_fault f;
    struct err e;
    int fds[2], status;
    char pinned = 0;
    pid_t pid;

    scratch_init(&s);
    for (int i = 1; i <= 5; i++) {
        make_state(&s, i);
        save(&s, 1, i);
    }
    OK(ckpt_pin(&s.job, (struct ckpt_id){1, 1}, &e));
    assert_int_equal(pipe(fds), 0);
    fflush(NULL);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct scratch direct = s;
        struct last_act act = {.s = &direct, .pins = pins, .fd = fds[1]};

        store_fault_init(&f, s.job.store, FAULT_HOOK, at);
        f.hook = pin_and_die;
        f.hook_ctx = &act;
        s.job.store = &f.base;
        _exit(clean_job(&s.job, 1, 1, &e) != 0);
    }
    close(fds[1]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) || (WIFEXITED(status) && WEXITSTATUS(status) == 0));
    if (read(fds[0], &pinned, 1) != 1)
        assert_false(WIFSIGNALED(status));
    close(fds[0]);
    OK(ckpt_verify(&s.job, (struct ckpt_id){1, 1}, &e));
    OK(ckpt_verify(&s.job, (struct ckpt_id){1, 5}, &e));
    assert_int_equal(restore(&s, 2).id.sequence, 5);
    OK(fs_remove_tree(s.out, &e));
    OK(clean_job(&s.job, 1, 1, &e));
    check_cleaned(&s, pinned);
    scratch_deinit(&s);
    return WIFSIGNALED(status);
}

static void a_cleaning_that_is_killed_at_any_call_takes_nothing_that_stays(void **state)
{
    (void)state;
    for (int pins = 0; pins < 2; pins++) {
        int at = 1;

        while (clean_killed_at_call(at, pins))
            at++;
        assert_in_range(at, 10, 100);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            killed_at_any_moment_the_last_acknowledged_or_the_next_is_there_whole, scratch_setup,
            scratch_teardown),
        cmocka_unit_test(a_cleaning_that_is_killed_at_any_call_takes_nothing_that_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
