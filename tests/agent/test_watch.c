/* SPDX-License-Identifier: Apache-2.0
 *
 * Watches of jobs' directories: a change causes a look soon, and a job with many changes does not
 * starve the others.
 */
#include "agent/watch.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/uv/loop.h"
#include "base/uv/timers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#define POLL_NEVER_MS 600000
#define UNTIL_MS 20000
#define CROWD 20

struct rig;

struct seen {
    struct rig *rig;
    struct watch *watch;
    int looks;
    bool goes_on, stops; /* requests another look; stops its watch */
};

struct rig {
    uv_loop_t loop;
    struct timers *timers;
    struct watches *watches;
    char dir[32];
    struct seen busy[CROWD], quiet;
    int busy_looks;
};

static int make_rig(void **state)
{
    struct rig *r = mem_alloc(sizeof(*r));
    uv_loop_init(&r->loop);
    r->timers = uv_timers_create(&r->loop);
    r->watches = watches_open(&r->loop, r->timers);
    STR_COPY(r->dir, "/tmp/belay-watch-XXXXXX");
    *state = r;
    return mkdtemp(r->dir) ? 0 : -1;
}

static int drop_rig(void **state)
{
    struct rig *r = *state;
    struct err e;
    for (int i = 0; i < CROWD; i++)
        watch_stop(r->busy[i].watch);
    watch_stop(r->quiet.watch);
    watches_close(r->watches);
    uv_timers_destroy(r->timers);
    uv_loop_finish(&r->loop);
    int rc = fs_remove_tree(r->dir, &e);
    free(r);
    return rc;
}

static void on_look(void *ctx)
{
    struct seen *s = ctx;
    s->looks++;
    s->rig->busy_looks += s != &s->rig->quiet;
    if (s->stops) {
        watch_stop(s->watch);
        s->watch = NULL;
    } else if (s->goes_on) {
        watch_trigger(s->watch);
    }
}

static char *in_dir(const struct rig *r, const char *name)
{
    return mem_printf("%s/%s", r->dir, name);
}

static void watch_dir(struct rig *r, struct seen *s, const char *name, int64_t poll_ms)
{
    char *path = in_dir(r, name);
    mkdir(path, 0700);
    s->rig = r;
    s->watch = watch_start(r->watches, path, 1, poll_ms, on_look, s);
    free(path);
}

static void make_name(const struct rig *r, const char *name)
{
    char *path = in_dir(r, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    close(fd);
    free(path);
}

static void on_late(struct timer *t, void *ctx)
{
    (void)t;
    *(bool *)ctx = true;
}

/* Runs the loop until s has had this many looks. */
static void until_looks(struct rig *r, const struct seen *s, int looks)
{
    bool is_late = false;
    struct timer late;
    timer_init(&late, on_late, &is_late);
    timer_start(r->timers, &late, UNTIL_MS);
    while (s->looks < looks && !is_late)
        uv_run(&r->loop, UV_RUN_ONCE);
    timer_stop(r->timers, &late);
    if (is_late)
        fail_msg("%d looks of %d in %d ms", s->looks, looks, UNTIL_MS);
}

static void a_change_is_looked_at(void **state)
{
    struct rig *r = *state;
    watch_dir(r, &r->quiet, "quiet", POLL_NEVER_MS);
    until_looks(r, &r->quiet, 1);
    make_name(r, "quiet/a");
    until_looks(r, &r->quiet, 2);
    make_name(r, "quiet/b");
    until_looks(r, &r->quiet, 3);
}

static void a_missing_directory_is_polled(void **state)
{
    struct rig *r = *state;
    char *path = in_dir(r, "later");
    r->quiet.rig = r;
    r->quiet.watch = watch_start(r->watches, path, 1, 10, on_look, &r->quiet);
    until_looks(r, &r->quiet, 3);
    free(path);
}

static void a_watch_may_stop_itself(void **state)
{
    struct rig *r = *state;
    r->busy[0].stops = true;
    watch_dir(r, &r->busy[0], "busy", 1);
    watch_dir(r, &r->quiet, "quiet", 1);
    until_looks(r, &r->quiet, 5);
    assert_int_equal(r->busy[0].looks, 1);
}

/* Two watches of one directory share its inotify watch. */
static void two_watches_of_one_directory_both_look(void **state)
{
    struct rig *r = *state;
    watch_dir(r, &r->quiet, "same", POLL_NEVER_MS);
    watch_dir(r, &r->busy[0], "same", POLL_NEVER_MS);
    until_looks(r, &r->quiet, 1);
    until_looks(r, &r->busy[0], 1);
    make_name(r, "same/a");
    until_looks(r, &r->quiet, 2);
    until_looks(r, &r->busy[0], 2);
    watch_stop(r->busy[0].watch);
    r->busy[0].watch = NULL;
    make_name(r, "same/b");
    until_looks(r, &r->quiet, 3);
}

static void frequent_changes_have_a_limited_number_of_looks(void **state)
{
    struct rig *r = *state;
    struct seen *s = &r->busy[0];
    s->goes_on = true;
    watch_dir(r, s, "busy", POLL_NEVER_MS);
    int64_t began_ms = clock_mono(r->timers->clock).ms;
    until_looks(r, s, WATCH_BURST + 10);
    assert_true(clock_mono(r->timers->clock).ms - began_ms >= 9 * WATCH_REFILL_MS);
    s->goes_on = false;
}

static void other_occasions_count_as_looks(void **state)
{
    struct rig *r = *state;
    int n = 0;
    watch_dir(r, &r->quiet, "quiet", POLL_NEVER_MS);
    until_looks(r, &r->quiet, 1);
    while (n < 10 * WATCH_BURST && watch_allows(r->quiet.watch)) {
        watch_count(r->quiet.watch);
        n++;
    }
    assert_in_range(n, 1, 5 * WATCH_BURST);
    until_looks(r, &r->quiet, 2); /* catches up with the look that was not allowed */
    assert_true(watch_allows(NULL));
    watch_count(NULL);
}

static void a_look_that_finds_nothing_is_free(void **state)
{
    struct rig *r = *state;
    watch_dir(r, &r->quiet, "quiet", POLL_NEVER_MS);
    until_looks(r, &r->quiet, 1);
    for (int i = 0; i < 10 * WATCH_BURST; i++)
        assert_true(watch_allows(r->quiet.watch));
}

static void due_watches_take_turns(void **state)
{
    struct rig *r = *state;
    for (int i = 0; i < CROWD; i++) {
        char name[16];
        snprintf(name, sizeof(name), "busy%d", i);
        r->busy[i].goes_on = true;
        watch_dir(r, &r->busy[i], name, POLL_NEVER_MS);
    }
    watch_dir(r, &r->quiet, "quiet", POLL_NEVER_MS);
    until_looks(r, &r->quiet, 1);
    int before = r->busy_looks;
    watch_trigger(r->quiet.watch);
    until_looks(r, &r->quiet, 2);
    assert_in_range(r->busy_looks - before, 0, 4 * CROWD);
}

/* Renames all the time, until it is killed. */
static pid_t start_storm(const struct rig *r)
{
    char *a = in_dir(r, "busy/a"), *b = in_dir(r, "busy/b");
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) {
            (void)!rename(a, b);
            (void)!rename(b, a);
        }
    }
    free(a);
    free(b);
    return pid;
}

/* A job that renames its files all the time causes few looks, and another job's change is seen
 * meanwhile. */
static void a_storm_of_changes_costs_few_looks(void **state)
{
    struct rig *r = *state;
    watch_dir(r, &r->busy[0], "busy", POLL_NEVER_MS);
    watch_dir(r, &r->quiet, "quiet", POLL_NEVER_MS);
    make_name(r, "busy/a");
    until_looks(r, &r->quiet, 1);
    until_looks(r, &r->busy[0], 1);
    int64_t began_ms = clock_mono(r->timers->clock).ms;
    pid_t storms[] = {start_storm(r), start_storm(r)};
    for (int i = 0; i < 20; i++) {
        char name[32];
        until_looks(r, &r->busy[0], 10 + 10 * i);
        snprintf(name, sizeof(name), "quiet/%d", i);
        make_name(r, name);
        until_looks(r, &r->quiet, 2 + i);
    }
    for (size_t i = 0; i < sizeof(storms) / sizeof(storms[0]); i++) {
        kill(storms[i], SIGKILL);
        waitpid(storms[i], NULL, 0);
    }
    int64_t ms = clock_mono(r->timers->clock).ms - began_ms;
    assert_true(r->busy[0].looks <= WATCH_BURST + 2 + ms / WATCH_REFILL_MS);
}

#define rig_test(f) cmocka_unit_test_setup_teardown(f, make_rig, drop_rig)

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(a_change_is_looked_at),
        rig_test(a_missing_directory_is_polled),
        rig_test(a_watch_may_stop_itself),
        rig_test(two_watches_of_one_directory_both_look),
        rig_test(frequent_changes_have_a_limited_number_of_looks),
        rig_test(other_occasions_count_as_looks),
        rig_test(a_look_that_finds_nothing_is_free),
        rig_test(due_watches_take_turns),
        rig_test(a_storm_of_changes_costs_few_looks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
