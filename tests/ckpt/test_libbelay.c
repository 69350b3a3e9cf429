/* SPDX-License-Identifier: Apache-2.0
 *
 * libbelay against an agent that is a thread of this test. The library keeps its last request in
 * static variables, so each test runs in a separate process.
 */
#include "base/fs.h"
#include "base/mem.h"
#include "base/time.h"
#include "ckpt/lib/belay.h"
#include "tests/ckpt/tools.h"
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct rig {
    struct scratch s;
    char control[400];
};

static void enter(struct rig *r)
{
    scratch_init(&r->s);
    snprintf(r->control, sizeof(r->control), "%s/control", r->s.dir);
    make_dir(r->s.dir, "control");
    setenv("BELAY_CONTROL_DIR", r->control, 1);
    setenv("BELAY_CHECKPOINT_DIR", r->s.tree, 1);
    setenv("BELAY_NOTICE_FILE", path_in(r->control, "notice"), 1);
    setenv("BELAY_RESTORED", "1", 1);
}

static void put(const struct rig *r, const char *name, const char *text)
{
    struct err e;

    OK(fs_write_atomic(path_in(r->control, name), text, strlen(text), 0600, &e));
}

static bool is_there(const struct rig *r, const char *name)
{
    return fs_exists(path_in(r->control, name));
}

static void assert_text(const struct rig *r, const char *name, const char *expected)
{
    struct buf text = {0};
    struct err e;

    OK(fs_read(path_in(r->control, name), 4096, &text, &e));
    assert_string_equal(buf_str(&text), expected);
    buf_deinit(&text);
}

/* Answers commit.<number> with result as soon as it exists. */
struct answer {
    struct rig *rig;
    int number;
    const char *result;
    pthread_t thread;
};

static void *answer_thread(void *ctx)
{
    struct answer *a = ctx;
    char commit[500], result[500];
    struct err e;

    snprintf(commit, sizeof(commit), "%s/commit.%d", a->rig->control, a->number);
    snprintf(result, sizeof(result), "%s/result.%d", a->rig->control, a->number);
    while (!fs_exists(commit))
        sched_yield();
    OK(fs_create_atomic(result, a->result, strlen(a->result), 0600, &e));
    return NULL;
}

static int commit_answered(struct rig *r, int number, const char *result, char *error, size_t size)
{
    struct answer a = {.rig = r, .number = number, .result = result};
    int rc;

    assert_int_equal(pthread_create(&a.thread, NULL, answer_thread, &a), 0);
    rc = belay_commit(5, 10, error, size);
    pthread_join(a.thread, NULL);
    return rc;
}

static void outside_belay_nothing_is_to_do(struct rig *r)
{
    unsetenv("BELAY_CONTROL_DIR");
    unsetenv("BELAY_CHECKPOINT_DIR");
    unsetenv("BELAY_NOTICE_FILE");
    assert_int_equal(belay_restored(), 0);
    assert_null(belay_checkpoint_dir());
    assert_int_equal(belay_restored_ranks(), 0);
    assert_int_equal(belay_should_checkpoint(), 0);
    assert_true(isinf(belay_seconds_left()));
    assert_int_equal(belay_commit(1, 2, NULL, 0), 0);
    assert_int_equal(belay_commit_wait(1, 2, NULL, 0), 0);
    assert_int_equal(belay_wait(NULL, 0), 0);
    assert_int_equal(belay_last_durable(NULL), 0);
    assert_int_equal(belay_progress(1, 2), 0);
    assert_int_equal(belay_waited(1), 0);
    assert_int_equal(belay_stopping(), 0);
    (void)r;
}

static void a_request_is_seen_and_gone_after_the_commit(struct rig *r)
{
    char error[100] = "";

    assert_int_equal(belay_restored(), 1);
    assert_string_equal(belay_checkpoint_dir(), r->s.tree);
    put(r, "request", "{\"id\":1,\"reason\":\"periodic\",\"deadline_ms\":null}");
    assert_int_equal(belay_should_checkpoint(), 1);
    unlink(path_in(r->control, "request"));
    assert_int_equal(
        commit_answered(r, 1, "{\"ok\":true,\"attempt\":1,\"sequence\":1,\"stop\":false}", error,
            sizeof(error)),
        0);
    assert_int_equal(belay_should_checkpoint(), 0); /* at once, not 20 ms later */
    assert_text(r, "commit.1", "{\"progress\":5,\"total\":10,\"wait\":false}\n");
    assert_int_equal(belay_stopping(), 0);
}

/* The directories of ranks 0 .. 2, as one text each. */
static void assert_dirs(const char *of_0, const char *of_1, const char *of_2)
{
    const char *expected[] = {of_0, of_1, of_2};
    char path[500];

    for (int rank = 0; rank < 3; rank++) {
        const char *found = belay_restored_dir(rank, path, sizeof(path));

        if (expected[rank])
            assert_string_equal(found ? found : "none", expected[rank]);
        else
            assert_null(found);
    }
}

static void what_each_rank_had_saved_is_found(struct rig *r)
{
    char everyone[300], ranks[2][400], path[64];

    snprintf(everyone, sizeof(everyone), "%s/everyone", r->s.dir);
    assert_int_equal(belay_restored_ranks(), 1);
    assert_dirs(r->s.tree, NULL, NULL);
    setenv("BELAY_RESTORED_RANKS", "3", 1); /* the same as now */
    setenv("BELAY_NODE_RANK", "2", 1);
    assert_int_equal(belay_restored_ranks(), 3);
    assert_dirs(NULL, NULL, r->s.tree);
    assert_int_equal(mkdir(everyone, 0700), 0);
    for (int k = 0; k < 2; k++) {
        snprintf(ranks[k], sizeof(ranks[k]), "%s/rank-%04d", everyone, k);
        assert_int_equal(mkdir(ranks[k], 0700), 0);
    }
    setenv("BELAY_RESTORED_RANKS", "2", 1);
    setenv("BELAY_RESTORED_DIR", everyone, 1);
    assert_int_equal(belay_restored_ranks(), 2);
    assert_dirs(ranks[0], ranks[1], NULL);
    assert_null(belay_restored_dir(-1, path, sizeof(path)));
    assert_null(belay_restored_dir(10000, path, sizeof(path)));
    assert_null(belay_restored_dir(0, path, 4));
    setenv("BELAY_RESTORED_RANKS", "2 or 3", 1);
    assert_int_equal(belay_restored_ranks(), 1);
    setenv("BELAY_RESTORED", "0", 1);
    assert_int_equal(belay_restored_ranks(), 0);
    assert_dirs(NULL, NULL, NULL);
}

static void a_save_at_a_notice_stops_the_program(struct rig *r)
{
    put(r, "request", "{\"id\":1,\"reason\":\"notice\",\"deadline_ms\":null}");
    assert_int_equal(
        commit_answered(r, 1, "{\"ok\":true,\"attempt\":1,\"sequence\":1}", NULL, 0), 0);
    assert_int_equal(belay_stopping(), 1);
}

static void the_answer_says_whether_to_stop(struct rig *r)
{
    put(r, "request", "{\"reason\":\"evict\",\"x\":{\"stop\":true}}");
    assert_int_equal(commit_answered(r, 1, "{\"ok\":true,\"stop\":false}", NULL, 0), 0);
    assert_int_equal(belay_stopping(), 0);
    unlink(path_in(r->control, "request"));
    assert_int_equal(
        commit_answered(
            r, 2, "{ \"other\": [1, {\"stop\": 2}], \"ok\" : true , \"stop\" : true }", NULL, 0),
        0);
    assert_int_equal(belay_stopping(), 1);
}

static void a_failed_commit_says_why(struct rig *r)
{
    static const struct {
        const char *result, *error;
    } cases[] = {
        {"{\"ok\":false,\"error\":\"the \\\"store\\\" is\\nfull \\u00e4\"}",
            "the \"store\" is full ?"},
        {"{\"ok\":false}", "is malformed"},
        {"", "is malformed"},
        {"{", "is malformed"},
        {"{\"ok\"", "is malformed"},
        {"{\"ok\":", "is malformed"},
        {"{\"ok\":tru}", "is malformed"},
        {"[true]", "is malformed"},
        {"{\"ok\":\"true\"}", "is malformed"},
        {"{\"error\":\"unended", "is malformed"},
        {"{\"a\":[[[[}", "is malformed"},
        {"{\"error\":\"\\", "is malformed"},
    };

    put(r, "request", "{\"reason\":\"notice\"}");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char error[64] = "";

        assert_int_equal(commit_answered(r, (int)i + 1, cases[i].result, error, sizeof(error)), -1);
        if (!strstr(error, cases[i].error))
            print_error("%s: %s\n", cases[i].result, error);
        assert_non_null(strstr(error, cases[i].error));
        assert_int_equal(belay_stopping(), 0);
    }
}

static void a_commit_without_an_agent_is_given_up_for_good(struct rig *r)
{
    char error[100];
    struct err e;

    setenv("BELAY_COMMIT_TIMEOUT_S", "1", 1);
    assert_int_equal(belay_commit(1, -1, error, sizeof(error)), -1);
    assert_non_null(strstr(error, "did not answer"));
    assert_text(r, "commit.1", "{\"progress\":1,\"total\":null,\"wait\":false}\n");
    /* A restarted agent finds that the answer exists. */
    FAILS(ERR_CONFLICT, fs_create_atomic(path_in(r->control, "result.1"), "x", 1, 0600, &e));
    assert_int_equal(commit_answered(r, 2, "{\"ok\":true}", error, sizeof(error)), 0);
    assert_int_equal(rmdir(r->control), -1);
    setenv("BELAY_CONTROL_DIR", path_in(r->s.dir, "none"), 1);
    assert_int_equal(belay_commit(1, -1, error, sizeof(error)), -1);
    assert_non_null(strstr(error, "/none"));
}

static void numbers_go_on_from_the_greatest(struct rig *r)
{
    put(r, "result.7", "{}");
    put(r, "commit.3", "{}");
    put(r, "commit.09", "{}");
    put(r, "commit.99x", "{}");
    put(r, "commit.-5", "{}");
    assert_int_equal(commit_answered(r, 8, "{\"ok\":true}", NULL, 0), 0);
}

static void two_processes_never_share_a_number(struct rig *r)
{
    pid_t pids[4];
    int status;

    setenv("BELAY_COMMIT_TIMEOUT_S", "1", 1);
    for (int i = 0; i < 4; i++) {
        pids[i] = fork();
        assert_true(pids[i] >= 0);
        if (pids[i] == 0)
            _exit(belay_commit(i, -1, NULL, 0) == -1 ? 0 : 1);
    }
    for (int i = 0; i < 4; i++) {
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
    }
    assert_true(is_there(r, "commit.4") && !is_there(r, "commit.5"));
}

static void accept(struct rig *r, int number, long long progress)
{
    struct answer a = {.rig = r,
        .number = number,
        .result = "{\"ok\":true,\"attempt\":1,\"sequence\":1,\"stop\":false,\"durable\":false}"};

    assert_int_equal(pthread_create(&a.thread, NULL, answer_thread, &a), 0);
    assert_int_equal(belay_commit(progress, 100, NULL, 0), 0);
    pthread_join(a.thread, NULL);
}

static void *store_third(void *ctx)
{
    put(ctx, "stored.3", "{\"ok\":false,\"error\":\"full\"}");
    return NULL;
}

static void an_accepted_commit_is_durable_or_lost_later(struct rig *r)
{
    long long progress = -5;
    char error[100] = "";
    pthread_t thread;

    assert_int_equal(belay_last_durable(&progress), 0);
    assert_int_equal(belay_wait(error, sizeof(error)), 0); /* nothing to wait for */
    accept(r, 1, 11);
    accept(r, 2, 22);
    assert_int_equal(belay_last_durable(&progress), 0);
    assert_int_equal(progress, -5);
    put(r, "stored.1", "{\"ok\":true,\"attempt\":1,\"sequence\":1}");
    assert_int_equal(belay_last_durable(&progress), 1);
    assert_int_equal(progress, 11);
    put(r, "stored.2", "{\"ok\":true,\"attempt\":1,\"sequence\":2}");
    assert_int_equal(belay_wait(NULL, 0), 0);
    assert_int_equal(belay_last_durable(NULL), 1);
    accept(r, 3, 33);
    assert_int_equal(pthread_create(&thread, NULL, store_third, r), 0);
    assert_int_equal(belay_wait(error, sizeof(error)), -1);
    pthread_join(thread, NULL);
    assert_string_equal(error, "full");
    assert_int_equal(belay_last_durable(&progress), 1);
    assert_int_equal(progress, 22);
}

static void a_commit_that_waits_is_durable_at_once(struct rig *r)
{
    struct answer a = {.rig = r, .number = 2, .result = "{\"ok\":true,\"stop\":false}"};
    long long progress;
    char error[100];

    accept(r, 1, 11);
    assert_int_equal(pthread_create(&a.thread, NULL, answer_thread, &a), 0);
    assert_int_equal(belay_commit_wait(22, 100, NULL, 0), 0);
    pthread_join(a.thread, NULL);
    assert_text(r, "commit.2", "{\"progress\":22,\"total\":100}\n");
    assert_int_equal(belay_last_durable(&progress), 1);
    assert_int_equal(progress, 22);
    assert_int_equal(belay_wait(NULL, 0), 0); /* newer than the first */
    for (int i = 3; i <= 12; i++)
        accept(r, i, i);
    setenv("BELAY_COMMIT_TIMEOUT_S", "1", 1);
    assert_int_equal(belay_wait(error, sizeof(error)), -1);
    assert_string_equal(error, "it is not durable yet");
    for (int i = 5; i <= 12; i++) {
        char name[32];

        snprintf(name, sizeof(name), "stored.%d", i); /* earlier ones are not remembered */
        put(r, name, "{\"ok\":true}");
    }
    assert_int_equal(belay_wait(NULL, 0), 0);
}

static void seconds_left_is_the_nearest_deadline(struct rig *r)
{
    long long now = clock_wall(&clock_system).ms;
    char text[200];

    assert_true(isinf(belay_seconds_left()));
    put(r, "notice", "{\"kind\":\"rebalance\",\"deadline_ms\":null}");
    assert_true(isinf(belay_seconds_left()));
    snprintf(text, sizeof(text), "{\"kind\":\"reclaim\",\"deadline\":\"x\",\"deadline_ms\":%lld}",
        now + 100000);
    put(r, "notice", text);
    assert_true(belay_seconds_left() > 80 && belay_seconds_left() <= 100);
    snprintf(
        text, sizeof(text), "{\"id\":1,\"reason\":\"notice\",\"deadline_ms\":%lld}", now + 50000);
    put(r, "request", text);
    assert_true(belay_seconds_left() > 30 && belay_seconds_left() <= 50);
    snprintf(text, sizeof(text), "{\"deadline_ms\":%lld}", now - 50000);
    put(r, "notice", text);
    assert_true(belay_seconds_left() == 0);
}

static void progress_reaches_the_disk_now_and_then_and_at_the_end(struct rig *r)
{
    int64_t start = clock_mono(&clock_system).ms, elapsed;
    ino_t last = 0;
    int changes = 0;

    for (int i = 0; i < 5000; i++) {
        struct stat st;

        assert_int_equal(belay_progress(i, 5000), 0);
        assert_int_equal(stat(path_in(r->control, "progress"), &st), 0);
        changes += st.st_ino != last;
        last = st.st_ino;
    }
    elapsed = clock_mono(&clock_system).ms - start;
    assert_in_range(changes, 1, 2 + elapsed / 200);
    assert_int_equal(belay_progress(5000, 5000), 0);
    assert_text(r, "progress", "{\"done\":5000,\"total\":5000}\n");
    setenv("BELAY_CONTROL_DIR", path_in(r->s.dir, "none"), 1);
    assert_int_equal(belay_progress(20, 20), -1);
}

static bool says_waited(const struct rig *r, const char *text)
{
    struct buf found = {0};
    struct err e;

    OK(fs_read(path_in(r->control, "waited"), 4096, &found, &e));
    bool same = strcmp(buf_str(&found), text) == 0;
    buf_deinit(&found);
    return same;
}

static void waits_for_other_ranks_add_up(struct rig *r)
{
    int64_t start = clock_mono(&clock_system).ms;

    assert_int_equal(belay_waited(0.25), 0);
    assert_text(r, "waited", "{\"ms\":250}\n");
    assert_int_equal(belay_waited(-1), 0);
    assert_int_equal(belay_waited(NAN), 0);
    assert_int_equal(belay_waited(INFINITY), 0);
    assert_int_equal(belay_waited(0.5), 0);
    while (!says_waited(r, "{\"ms\":750}\n")) { /* reported once a second */
        assert_int_equal(belay_waited(1e-9), 0);
        assert_true(clock_mono(&clock_system).ms - start < 60000);
    }
    setenv("BELAY_CONTROL_DIR", path_in(r->s.dir, "none"), 1);
    while (belay_waited(1e-9) == 0)
        assert_true(clock_mono(&clock_system).ms - start < 60000);
}

typedef void (*rig_fn)(struct rig *r);

static void in_a_process_of_its_own(rig_fn fn)
{
    int status;
    pid_t pid;

    fflush(NULL);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct rig r;

        enter(&r);
        fn(&r);
        scratch_deinit(&r.s);
        exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

#define ALONE(name)                                                                                \
    static void test_##name(void **state)                                                          \
    {                                                                                              \
        (void)state;                                                                               \
        in_a_process_of_its_own(name);                                                             \
    }

ALONE(outside_belay_nothing_is_to_do)
ALONE(a_request_is_seen_and_gone_after_the_commit)
ALONE(what_each_rank_had_saved_is_found)
ALONE(a_save_at_a_notice_stops_the_program)
ALONE(the_answer_says_whether_to_stop)
ALONE(a_failed_commit_says_why)
ALONE(a_commit_without_an_agent_is_given_up_for_good)
ALONE(numbers_go_on_from_the_greatest)
ALONE(two_processes_never_share_a_number)
ALONE(an_accepted_commit_is_durable_or_lost_later)
ALONE(a_commit_that_waits_is_durable_at_once)
ALONE(seconds_left_is_the_nearest_deadline)
ALONE(progress_reaches_the_disk_now_and_then_and_at_the_end)
ALONE(waits_for_other_ranks_add_up)

int main(void)
{
#define TEST(name)                                                                                 \
    {                                                                                              \
#name, test_##name, NULL, NULL, NULL                                                       \
    }
    const struct CMUnitTest tests[] = {
        TEST(outside_belay_nothing_is_to_do),
        TEST(a_request_is_seen_and_gone_after_the_commit),
        TEST(what_each_rank_had_saved_is_found),
        TEST(a_save_at_a_notice_stops_the_program),
        TEST(the_answer_says_whether_to_stop),
        TEST(a_failed_commit_says_why),
        TEST(a_commit_without_an_agent_is_given_up_for_good),
        TEST(numbers_go_on_from_the_greatest),
        TEST(two_processes_never_share_a_number),
        TEST(an_accepted_commit_is_durable_or_lost_later),
        TEST(a_commit_that_waits_is_durable_at_once),
        TEST(seconds_left_is_the_nearest_deadline),
        TEST(progress_reaches_the_disk_now_and_then_and_at_the_end),
        TEST(waits_for_other_ranks_add_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
