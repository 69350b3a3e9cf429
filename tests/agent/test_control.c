/* SPDX-License-Identifier: Apache-2.0
 *
 * The agent's side of the file protocol, in a directory that its program owns and may fill with
 * anything.
 */
#include "agent/task/control.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"

#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

struct rig {
    char dir[32]; /* the task's directory */
    struct control c;
    int fd; /* the control directory */
};

static int make_rig(void **state)
{
    struct rig *r = mem_alloc(sizeof(*r));
    STR_COPY(r->dir, "/tmp/belay-control-XXXXXX");
    if (!mkdtemp(r->dir))
        return -1;
    char *path = mem_printf("%s/control", r->dir);
    int rc = mkdir(path, 0700);
    free(path);
    control_init(&r->c);
    control_open(&r->c, r->dir);
    r->fd = r->c.fd;
    *state = r;
    return rc || r->fd < 0;
}

static int drop_rig(void **state)
{
    struct rig *r = *state;
    struct err e;
    control_close(&r->c);
    int rc = fs_remove_tree(r->dir, &e);
    free(r);
    return rc;
}

static void put(const struct rig *r, const char *name, const char *text)
{
    int fd = openat(r->fd, name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    struct err e;
    assert_true(fd >= 0);
    assert_int_equal(fs_write_all(fd, text, strlen(text), &e), 0);
    close(fd);
}

static void assert_content(const struct rig *r, const char *name, const char *expected)
{
    char text[512] = "";
    int fd = openat(r->fd, name, O_RDONLY);
    assert_true(fd >= 0);
    assert_true(read(fd, text, sizeof(text) - 1) >= 0);
    close(fd);
    assert_string_equal(text, expected);
}

static bool exists(const struct rig *r, const char *name)
{
    return faccessat(r->fd, name, F_OK, 0) == 0;
}

static void a_request_has_its_reason_and_deadline(void **state)
{
    struct rig *r = *state;
    struct err e;
    assert_int_equal(control_request(&r->c, 7, "notice", 1787400120000, &e), 0);
    assert_content(r, "request", "{\"id\":7,\"reason\":\"notice\",\"deadline_ms\":1787400120000}");
    assert_int_equal(control_request(&r->c, 8, "periodic", CONTROL_NONE, &e), 0);
    assert_content(r, "request", "{\"id\":8,\"reason\":\"periodic\",\"deadline_ms\":null}");
    control_request_done(&r->c);
    assert_false(exists(r, "request"));
}

static void a_notice_has_the_remaining_time(void **state)
{
    struct rig *r = *state;
    struct err e;
    assert_int_equal(control_notice(&r->c, "reclaim", 1787400120000, 1787400000500, &e), 0);
    assert_content(r, "notice",
        "{\"kind\":\"reclaim\",\"deadline_ms\":1787400120000,\"deadline\":\"2026-08-22T12:02:00Z\","
        "\"seconds_left\":119.5}");
    assert_int_equal(control_notice(&r->c, "rebalance", CONTROL_NONE, 1, &e), 0);
    assert_content(r, "notice", "{\"kind\":\"rebalance\",\"deadline_ms\":null}");
}

static void commits_are_served_in_their_order_and_answered_once(void **state)
{
    struct rig *r = *state;
    const struct control_answer good = {.attempt = 2, .sequence = 5};
    int64_t k;
    assert_int_equal(control_next_commit(&r->c, &k), CONTROL_NOTHING);
    put(r, "commit.10", "{}");
    put(r, "commit.9", "{}");
    assert_int_equal(control_next_commit(&r->c, &k), CONTROL_COMMIT);
    assert_int_equal(k, 9);
    control_answer(&r->c, 9, &good);
    assert_content(r, "result.9", "{\"ok\":true,\"attempt\":2,\"sequence\":5,\"stop\":false}");
    assert_false(exists(r, "commit.9"));
    assert_int_equal(control_next_commit(&r->c, &k), CONTROL_COMMIT);
    assert_int_equal(k, 10);
}

static void a_commit_that_the_program_removed_is_not_served(void **state)
{
    struct rig *r = *state;
    int64_t k;
    put(r, "commit.1", "{}");
    put(r, "result.1", "{\"ok\":false}");
    assert_int_equal(control_next_commit(&r->c, &k), CONTROL_NOTHING);
    assert_false(exists(r, "commit.1"));
    assert_content(r, "result.1", "{\"ok\":false}");
}

static void an_answer_does_not_replace_the_programs_own(void **state)
{
    struct rig *r = *state;
    const struct control_answer good = {.attempt = 1, .sequence = 1};
    put(r, "commit.1", "{}");
    put(r, "result.1", "{\"ok\":false}");
    control_answer(&r->c, 1, &good);
    assert_content(r, "result.1", "{\"ok\":false}");
}

static void a_failure_is_answered_with_its_reason(void **state)
{
    struct rig *r = *state;
    struct err e;
    const struct control_answer bad = {.failed = &e};
    err_set(&e, ERR_NO_SPACE, "the \"store\" is full");
    put(r, "commit.1", "{}");
    control_answer(&r->c, 1, &bad);
    assert_content(r, "result.1", "{\"ok\":false,\"error\":\"the \\\"store\\\" is full\"}");
}

static void old_results_are_removed_but_not_the_newest(void **state)
{
    struct rig *r = *state;
    int64_t k;
    for (int i = 1; i <= 20; i++) {
        char name[32];
        snprintf(name, sizeof(name), "result.%d", i);
        put(r, name, "{}");
    }
    assert_int_equal(control_next_commit(&r->c, &k), CONTROL_NOTHING);
    assert_true(exists(r, "result.20"));
    assert_true(exists(r, "result.13"));
    assert_false(exists(r, "result.12"));
}

static void other_names_are_not_touched(void **state)
{
    struct rig *r = *state;
    static const char *const names[] = {"commit.", "commit.0", "commit.-1", "commit.1x",
        "commit.01", "xcommit.1", "commit.99999999999999999999"};
    int64_t k;
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        put(r, names[i], "{}");
    assert_int_equal(control_next_commit(&r->c, &k), CONTROL_NOTHING);
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        assert_true(exists(r, names[i]));
}

static void numbers_are_optional_and_never_negative(void **state)
{
    struct rig *r = *state;
    struct control_numbers n;
    struct err e;
    put(r, "progress", "{\"done\":3,\"total\":null,\"later\":[]}\n");
    assert_int_equal(control_read_progress(&r->c, &n, &e), 0);
    assert_int_equal(n.done, 3);
    assert_true(n.total == CONTROL_NONE);
    static const char *const bad[] = {"", "3", "[]", "{\"done\":-1}", "{\"done\":1.5}",
        "{\"done\":\"3\"}", "{\"done\":3", "{\"total\":true}", "{\"done\":99999999999999999999}"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        put(r, "progress", bad[i]);
        if (control_read_progress(&r->c, &n, &e) != ERR_INVALID)
            fail_msg("taken: %s", bad[i]);
    }
}

static void waits_for_other_ranks_are_read(void **state)
{
    struct rig *r = *state;
    static const char *const bad[] = {"", "[]", "{}", "{\"ms\":-1}", "{\"ms\":1.5}",
        "{\"ms\":null}", "{\"ms\":99999999999999999999}"};
    assert_int_equal(control_read_waited(&r->c), -1);
    put(r, "waited", "{\"ms\":61500}\n");
    assert_int_equal(control_read_waited(&r->c), 61500);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        put(r, "waited", bad[i]);
        assert_int_equal(control_read_waited(&r->c), -1);
    }
}

/* A root agent must not read other users' files for a program, nor hang on a pipe. */
static void an_accepted_commit_gets_its_outcome(void **state)
{
    struct rig *r = *state;
    const struct control_answer accepted = {.attempt = 2, .sequence = 5, .accepted = true};
    const struct control_answer stored = {.attempt = 2, .sequence = 7};
    struct control_numbers n;
    struct err e;
    put(r, "commit.1", "{\"progress\":1,\"wait\":false}");
    assert_int_equal(control_read_commit(&r->c, 1, &n, &e), 0);
    assert_true(n.may_go_on);
    put(r, "commit.2", "{\"wait\":true}");
    assert_int_equal(control_read_commit(&r->c, 2, &n, &e), 0);
    assert_false(n.may_go_on);
    put(r, "commit.2", "{}");
    assert_int_equal(control_read_commit(&r->c, 2, &n, &e), 0);
    assert_false(n.may_go_on);
    put(r, "commit.2", "{\"wait\":0}");
    assert_int_equal(control_read_commit(&r->c, 2, &n, &e), ERR_INVALID);
    control_answer(&r->c, 1, &accepted);
    assert_content(r, "result.1",
        "{\"ok\":true,\"attempt\":2,\"sequence\":5,\"stop\":false,\"durable\":false}");
    control_stored(&r->c, 1, 2, &stored);
    assert_content(r, "stored.1", "{\"ok\":true,\"attempt\":2,\"sequence\":7}");
    assert_content(r, "stored.2", "{\"ok\":true,\"attempt\":2,\"sequence\":7}");
    control_stored(&r->c, 1, 1000000000000, &stored); /* the last few */
    assert_content(r, "stored.999999999993", "{\"ok\":true,\"attempt\":2,\"sequence\":7}");
}

static void commits_that_an_earlier_agent_accepted_get_their_outcome(void **state)
{
    static const char *const odd[] = {"", "[]",
        "{\"ok\":true,\"durable\":false,\"sequence\":\"x\"}",
        "{\"ok\":true,\"durable\":0,\"sequence\":1}",
        "{\"ok\":false,\"durable\":false,\"sequence\":1}", "{\"ok\":true,\"sequence\":1}"};
    struct rig *r = *state;
    control_settle(&r->c, 3, 0); /* nothing to settle */
    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
        char name[32];
        struct stat st;
        put(r, "result.1", odd[i]);
        control_settle(&r->c, 3, 0);
        snprintf(name, sizeof(name), "stored.1");
        assert_int_equal(fstatat(r->fd, name, &st, 0), -1);
    }
    put(r, "result.1", "{\"ok\":true,\"durable\":false,\"sequence\":4}");
    put(r, "result.2", "{\"ok\":true,\"durable\":false,\"sequence\":5}");
    put(r, "result.3", "{\"ok\":true,\"durable\":false,\"sequence\":6}");
    put(r, "stored.1", "answered");
    control_settle(&r->c, 3, 5);
    assert_content(r, "stored.1", "answered");
    assert_content(r, "stored.2", "{\"ok\":true,\"attempt\":3,\"sequence\":5}");
    assert_content(r, "stored.3",
        "{\"ok\":false,\"error\":\"the belay agent was restarted while this checkpoint was being "
        "stored\"}");
}

static void links_pipes_and_large_files_are_not_read(void **state)
{
    struct rig *r = *state;
    struct control_numbers n;
    struct err e;
    put(r, "real", "{\"done\":3}");
    assert_int_equal(symlinkat("real", r->fd, "progress"), 0);
    assert_true(control_read_progress(&r->c, &n, &e) < 0);
    assert_int_equal(unlinkat(r->fd, "progress", 0), 0);
    assert_int_equal(mkfifoat(r->fd, "progress", 0600), 0);
    assert_int_equal(control_read_progress(&r->c, &n, &e), ERR_INVALID);
    assert_int_equal(unlinkat(r->fd, "progress", 0), 0);
    assert_int_equal(control_read_progress(&r->c, &n, &e), ERR_NOT_FOUND);
    char *large = mem_alloc(5000);
    memset(large, ' ', 4999);
    put(r, "progress", large);
    assert_int_equal(control_read_progress(&r->c, &n, &e), ERR_INVALID);
    free(large);
}

static void a_link_in_the_agents_way_is_replaced_not_followed(void **state)
{
    struct rig *r = *state;
    struct err e;
    put(r, "precious", "untouched");
    assert_int_equal(symlinkat("precious", r->fd, "control-new"), 0);
    assert_int_equal(symlinkat("precious", r->fd, "request"), 0);
    assert_int_equal(control_request(&r->c, 1, "evict", CONTROL_NONE, &e), 0);
    assert_content(r, "precious", "untouched");
    struct stat st;
    assert_int_equal(fstatat(r->fd, "request", &st, AT_SYMLINK_NOFOLLOW), 0);
    assert_true(S_ISREG(st.st_mode));
}

/* ---- bounded costs ---- */

static int names_in(const char *path, const char *prefix)
{
    DIR *d = opendir(path);
    int n = 0;
    assert_non_null(d);
    for (const struct dirent *entry; (entry = readdir(d));)
        n += str_starts(entry->d_name, prefix);
    closedir(d);
    return n;
}

static void put_many(const struct rig *r, const char *prefix, int n)
{
    for (int i = 1; i <= n; i++) {
        char name[40];
        snprintf(name, sizeof(name), "%s%d", prefix, i);
        put(r, name, "");
    }
}

static enum control_found looks_until_done(struct rig *r, int64_t *ret_k, int *ret_looks)
{
    enum control_found found;
    *ret_looks = 0;
    do {
        found = control_next_commit(&r->c, ret_k);
        ++*ret_looks;
    } while (found == CONTROL_MORE && *ret_looks < 1000);
    return found;
}

static void very_many_names_are_read_in_many_looks(void **state)
{
    struct rig *r = *state;
    int64_t k = 0;
    int looks;
    put_many(r, "name", 3000);
    put(r, "commit.7", "{}");
    assert_int_equal(looks_until_done(r, &k, &looks), CONTROL_COMMIT);
    assert_int_equal(k, 7);
    assert_true(looks > 3000 / CONTROL_SCAN_MAX);
}

static void very_many_results_are_removed_in_many_looks(void **state)
{
    struct rig *r = *state;
    int64_t k;
    int looks;
    put_many(r, "result.", 1000);
    put_many(r, "commit.", 1000);
    assert_int_equal(looks_until_done(r, &k, &looks), CONTROL_NOTHING);
    assert_true(looks > 2000 / CONTROL_SCAN_MAX);
    char *path = mem_printf("%s/control", r->dir);
    assert_int_equal(names_in(path, "commit."), 0);
    assert_int_equal(names_in(path, "result."), 8);
    assert_true(exists(r, "result.1000"));
    free(path);
}

static void a_directory_with_the_name_of_a_commit_is_answered_once(void **state)
{
    static const char *const names[] = {
        "commit.1", "commit.1/x", ".agent-new", "control-new", "request", "request/x"};
    struct rig *r = *state;
    struct control_numbers n;
    struct err e;
    int64_t k;
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        assert_int_equal(mkdirat(r->fd, names[i], 0700), 0);
    assert_int_equal(control_next_commit(&r->c, &k), CONTROL_COMMIT);
    assert_int_equal(control_read_commit(&r->c, k, &n, &e), ERR_INVALID);
    control_answer(&r->c, k, &(struct control_answer){.failed = &e});
    assert_true(exists(r, "result.1"));
    assert_false(exists(r, "commit.1"));
    assert_int_equal(control_next_commit(&r->c, &k), CONTROL_NOTHING);
    assert_int_equal(control_request(&r->c, 7, "user", CONTROL_NONE, &e), 0);
    assert_content(r, "request", "{\"id\":7,\"reason\":\"user\",\"deadline_ms\":null}");
}

/* Freeing the blocks of a large file takes long, so it is kept until the task is removed, on a
 * thread. */
static void a_large_entry_is_moved_aside(void **state)
{
    struct rig *r = *state;
    const struct control_answer good = {.attempt = 1, .sequence = 1};
    char *large = mem_alloc(1 << 20);
    memset(large, 'x', (1 << 20) - 1);
    put(r, "commit.1", "{}");
    put(r, "commit.2", large);
    control_answer(&r->c, 1, &good);
    assert_int_equal(names_in(r->dir, "discarded."), 0);
    control_answer(&r->c, 2, &good);
    assert_false(exists(r, "commit.2"));
    assert_int_equal(names_in(r->dir, "discarded."), 1);
    put(r, "request", large);
    control_request_done(&r->c);
    assert_false(exists(r, "request"));
    assert_int_equal(names_in(r->dir, "discarded."), 2);
    put(r, "request", large);
    struct err e;
    assert_int_equal(control_request(&r->c, 7, "user", CONTROL_NONE, &e), 0);
    assert_int_equal(names_in(r->dir, "discarded."), 3);
    free(large);
}

static void a_commit_that_is_removed_is_not_found(void **state)
{
    struct rig *r = *state;
    struct control_numbers n;
    struct err e;
    assert_int_equal(control_read_commit(&r->c, 3, &n, &e), ERR_NOT_FOUND);
    assert_string_equal(e.text, "there is no commit.3");
}

/* An open() that waits for the end of a lease takes 45 s. */
static void a_file_under_a_lease_is_not_waited_for(void **state)
{
    struct rig *r = *state;
    struct control_numbers n;
    struct err e;
    put(r, "progress", "{\"done\":1}");
    int fd = openat(r->fd, "progress", O_RDWR);
    signal(SIGIO, SIG_IGN);
    alarm(20);
    if (fcntl(fd, F_SETLEASE, F_WRLCK) == 0)
        assert_true(control_read_progress(&r->c, &n, &e) < 0);
    alarm(0);
    close(fd);
    assert_int_equal(control_read_progress(&r->c, &n, &e), 0);
}

#define rig_test(f) cmocka_unit_test_setup_teardown(f, make_rig, drop_rig)

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(a_request_has_its_reason_and_deadline),
        rig_test(a_notice_has_the_remaining_time),
        rig_test(commits_are_served_in_their_order_and_answered_once),
        rig_test(a_commit_that_the_program_removed_is_not_served),
        rig_test(an_answer_does_not_replace_the_programs_own),
        rig_test(a_failure_is_answered_with_its_reason),
        rig_test(old_results_are_removed_but_not_the_newest),
        rig_test(other_names_are_not_touched),
        rig_test(numbers_are_optional_and_never_negative),
        rig_test(waits_for_other_ranks_are_read),
        rig_test(an_accepted_commit_gets_its_outcome),
        rig_test(commits_that_an_earlier_agent_accepted_get_their_outcome),
        rig_test(links_pipes_and_large_files_are_not_read),
        rig_test(a_link_in_the_agents_way_is_replaced_not_followed),
        rig_test(very_many_names_are_read_in_many_looks),
        rig_test(very_many_results_are_removed_in_many_looks),
        rig_test(a_directory_with_the_name_of_a_commit_is_answered_once),
        rig_test(a_large_entry_is_moved_aside),
        rig_test(a_commit_that_is_removed_is_not_found),
        rig_test(a_file_under_a_lease_is_not_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
