/* SPDX-License-Identifier: Apache-2.0
 *
 * The agent's side of the file protocol, in a directory that its program owns and may fill with anything.
 */
#include "agent/control.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

struct room {
    char dir[32];
    int fd;
};

static int make_room(void **state)
{
    struct room *r = mem_alloc(sizeof(*r));
    STR_COPY(r->dir, "/tmp/belay-control-XXXXXX");
    if (!mkdtemp(r->dir))
        return -1;
    r->fd = open(r->dir, O_RDONLY | O_DIRECTORY);
    *state = r;
    return r->fd < 0;
}

static int leave_room(void **state)
{
    struct room *r = *state;
    struct err e;
    close(r->fd);
    int rc = fs_remove_tree(r->dir, &e);
    free(r);
    return rc;
}

static void put(const struct room *r, const char *name, const char *text)
{
    int fd = openat(r->fd, name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    struct err e;
    assert_true(fd >= 0);
    assert_int_equal(fs_write_all(fd, text, strlen(text), &e), 0);
    close(fd);
}

static void assert_content(const struct room *r, const char *name, const char *expected)
{
    char text[512] = "";
    int fd = openat(r->fd, name, O_RDONLY);
    assert_true(fd >= 0);
    assert_true(read(fd, text, sizeof(text) - 1) >= 0);
    close(fd);
    assert_string_equal(text, expected);
}

static bool exists(const struct room *r, const char *name)
{
    return faccessat(r->fd, name, F_OK, 0) == 0;
}

static void a_request_says_what_is_wanted_and_until_when(void **state)
{
    struct room *r = *state;
    struct err e;
    assert_int_equal(control_request(r->fd, 7, "notice", 1787400120000, &e), 0);
    assert_content(r, "request", "{\"id\":7,\"reason\":\"notice\",\"deadline_ms\":1787400120000}");
    assert_int_equal(control_request(r->fd, 8, "periodic", CONTROL_NONE, &e), 0);
    assert_content(r, "request", "{\"id\":8,\"reason\":\"periodic\",\"deadline_ms\":null}");
    control_request_done(r->fd);
    assert_false(exists(r, "request"));
}

static void a_notice_says_how_long_is_left(void **state)
{
    struct room *r = *state;
    struct err e;
    assert_int_equal(control_notice(r->fd, "reclaim", 1787400120000, 1787400000500, &e), 0);
    assert_content(r, "notice",
        "{\"kind\":\"reclaim\",\"deadline_ms\":1787400120000,\"deadline\":\"2026-08-22T12:02:00Z\","
        "\"seconds_left\":119.5}");
    assert_int_equal(control_notice(r->fd, "rebalance", CONTROL_NONE, 1, &e), 0);
    assert_content(r, "notice", "{\"kind\":\"rebalance\",\"deadline_ms\":null}");
}

static void commits_are_served_in_their_order_and_answered_once(void **state)
{
    struct room *r = *state;
    const struct control_answer good = {.attempt = 2, .sequence = 5};
    int64_t k;
    assert_false(control_next_commit(r->fd, &k));
    put(r, "commit.10", "{}");
    put(r, "commit.9", "{}");
    assert_true(control_next_commit(r->fd, &k));
    assert_int_equal(k, 9);
    control_answer(r->fd, 9, &good);
    assert_content(r, "result.9", "{\"ok\":true,\"attempt\":2,\"sequence\":5,\"stop\":false}");
    assert_false(exists(r, "commit.9"));
    assert_true(control_next_commit(r->fd, &k));
    assert_int_equal(k, 10);
}

static void a_commit_that_its_program_has_given_up_is_not_served(void **state)
{
    struct room *r = *state;
    int64_t k;
    put(r, "commit.1", "{}");
    put(r, "result.1", "{\"ok\":false}");
    assert_false(control_next_commit(r->fd, &k));
    assert_false(exists(r, "commit.1"));
    assert_content(r, "result.1", "{\"ok\":false}");
}

static void an_answer_does_not_replace_the_programs_own(void **state)
{
    struct room *r = *state;
    const struct control_answer good = {.attempt = 1, .sequence = 1};
    put(r, "commit.1", "{}");
    put(r, "result.1", "{\"ok\":false}");
    control_answer(r->fd, 1, &good);
    assert_content(r, "result.1", "{\"ok\":false}");
}

static void a_failure_is_answered_in_words(void **state)
{
    struct room *r = *state;
    struct err e;
    const struct control_answer bad = {.failed = &e};
    err_set(&e, ERR_NO_SPACE, "the \"store\" is full");
    put(r, "commit.1", "{}");
    control_answer(r->fd, 1, &bad);
    assert_content(r, "result.1", "{\"ok\":false,\"error\":\"the \\\"store\\\" is full\"}");
}

static void old_results_are_cleared_away_but_not_the_newest(void **state)
{
    struct room *r = *state;
    int64_t k;
    for (int i = 1; i <= 20; i++) {
        char name[32];
        snprintf(name, sizeof(name), "result.%d", i);
        put(r, name, "{}");
    }
    assert_false(control_next_commit(r->fd, &k));
    assert_true(exists(r, "result.20"));
    assert_true(exists(r, "result.13"));
    assert_false(exists(r, "result.12"));
}

static void names_that_are_no_commits_are_left_alone(void **state)
{
    struct room *r = *state;
    static const char *const names[] = {"commit.", "commit.0", "commit.-1", "commit.1x", "commit.01",
        "xcommit.1", "commit.99999999999999999999"};
    int64_t k;
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        put(r, names[i], "{}");
    assert_false(control_next_commit(r->fd, &k));
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        assert_true(exists(r, names[i]));
}

static void numbers_are_optional_and_never_negative(void **state)
{
    struct room *r = *state;
    struct control_numbers n;
    struct err e;
    put(r, "progress", "{\"done\":3,\"total\":null,\"later\":[]}\n");
    assert_int_equal(control_read_progress(r->fd, &n, &e), 0);
    assert_int_equal(n.done, 3);
    assert_true(n.total == CONTROL_NONE);
    static const char *const bad[] = {"", "3", "[]", "{\"done\":-1}", "{\"done\":1.5}", "{\"done\":\"3\"}",
        "{\"done\":3", "{\"total\":true}", "{\"done\":99999999999999999999}"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        put(r, "progress", bad[i]);
        if (control_read_progress(r->fd, &n, &e) != ERR_INVALID)
            fail_msg("taken: %s", bad[i]);
    }
}

static void waits_for_other_ranks_are_read(void **state)
{
    struct room *r = *state;
    static const char *const bad[] = {"", "[]", "{}", "{\"ms\":-1}", "{\"ms\":1.5}", "{\"ms\":null}", "{\"ms\":99999999999999999999}"};
    assert_int_equal(control_read_waited(r->fd), -1);
    put(r, "waited", "{\"ms\":61500}\n");
    assert_int_equal(control_read_waited(r->fd), 61500);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        put(r, "waited", bad[i]);
        assert_int_equal(control_read_waited(r->fd), -1);
    }
}

/* A root agent must not read other people's files for a program, nor hang on a pipe. */
static void an_accepted_commit_is_told_what_came_of_it(void **state)
{
    const struct room *r = *state;
    const struct control_answer accepted = {.attempt = 2, .sequence = 5, .accepted = true};
    const struct control_answer stored = {.attempt = 2, .sequence = 7};
    struct control_numbers n;
    struct err e;
    put(r, "commit.1", "{\"progress\":1,\"wait\":false}");
    assert_int_equal(control_read_commit(r->fd, 1, &n, &e), 0);
    assert_true(n.may_go_on);
    put(r, "commit.2", "{\"wait\":true}");
    assert_int_equal(control_read_commit(r->fd, 2, &n, &e), 0);
    assert_false(n.may_go_on);
    put(r, "commit.2", "{}");
    assert_int_equal(control_read_commit(r->fd, 2, &n, &e), 0);
    assert_false(n.may_go_on);
    put(r, "commit.2", "{\"wait\":0}");
    assert_int_equal(control_read_commit(r->fd, 2, &n, &e), ERR_INVALID);
    control_answer(r->fd, 1, &accepted);
    assert_content(
        r, "result.1", "{\"ok\":true,\"attempt\":2,\"sequence\":5,\"stop\":false,\"durable\":false}");
    control_stored(r->fd, 1, 2, &stored);
    assert_content(r, "stored.1", "{\"ok\":true,\"attempt\":2,\"sequence\":7}");
    assert_content(r, "stored.2", "{\"ok\":true,\"attempt\":2,\"sequence\":7}");
    control_stored(r->fd, 1, 1000000000000, &stored); /* the last few */
    assert_content(r, "stored.999999999993", "{\"ok\":true,\"attempt\":2,\"sequence\":7}");
}

static void what_an_agent_before_has_accepted_is_settled(void **state)
{
    static const char *const odd[] = {"", "[]", "{\"ok\":true,\"durable\":false,\"sequence\":\"x\"}",
        "{\"ok\":true,\"durable\":0,\"sequence\":1}", "{\"ok\":false,\"durable\":false,\"sequence\":1}",
        "{\"ok\":true,\"sequence\":1}"};
    const struct room *r = *state;
    control_settle(r->fd, 3, 0); /* there is nothing */
    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
        char name[32];
        struct stat st;
        put(r, "result.1", odd[i]);
        control_settle(r->fd, 3, 0);
        snprintf(name, sizeof(name), "stored.1");
        assert_int_equal(fstatat(r->fd, name, &st, 0), -1);
    }
    put(r, "result.1", "{\"ok\":true,\"durable\":false,\"sequence\":4}");
    put(r, "result.2", "{\"ok\":true,\"durable\":false,\"sequence\":5}");
    put(r, "result.3", "{\"ok\":true,\"durable\":false,\"sequence\":6}");
    put(r, "stored.1", "told");
    control_settle(r->fd, 3, 5);
    assert_content(r, "stored.1", "told");
    assert_content(r, "stored.2", "{\"ok\":true,\"attempt\":3,\"sequence\":5}");
    assert_content(r, "stored.3",
        "{\"ok\":false,\"error\":\"the belay agent was restarted while this checkpoint was being stored\"}");
}

static void links_pipes_and_large_files_are_not_read(void **state)
{
    struct room *r = *state;
    struct control_numbers n;
    struct err e;
    put(r, "real", "{\"done\":3}");
    assert_int_equal(symlinkat("real", r->fd, "progress"), 0);
    assert_true(control_read_progress(r->fd, &n, &e) < 0);
    assert_int_equal(unlinkat(r->fd, "progress", 0), 0);
    assert_int_equal(mkfifoat(r->fd, "progress", 0600), 0);
    assert_int_equal(control_read_progress(r->fd, &n, &e), ERR_INVALID);
    assert_int_equal(unlinkat(r->fd, "progress", 0), 0);
    assert_int_equal(control_read_progress(r->fd, &n, &e), ERR_NOT_FOUND);
    char *large = mem_alloc(5000);
    memset(large, ' ', 4999);
    put(r, "progress", large);
    assert_int_equal(control_read_progress(r->fd, &n, &e), ERR_INVALID);
    free(large);
}

static void a_link_in_the_agents_way_is_replaced_not_followed(void **state)
{
    struct room *r = *state;
    struct err e;
    put(r, "precious", "untouched");
    assert_int_equal(symlinkat("precious", r->fd, ".agent-new"), 0);
    assert_int_equal(symlinkat("precious", r->fd, "request"), 0);
    assert_int_equal(control_request(r->fd, 1, "evict", CONTROL_NONE, &e), 0);
    assert_content(r, "precious", "untouched");
    struct stat st;
    assert_int_equal(fstatat(r->fd, "request", &st, AT_SYMLINK_NOFOLLOW), 0);
    assert_true(S_ISREG(st.st_mode));
}

#define room_test(f) cmocka_unit_test_setup_teardown(f, make_room, leave_room)

int main(void)
{
    const struct CMUnitTest tests[] = {
        room_test(a_request_says_what_is_wanted_and_until_when),
        room_test(a_notice_says_how_long_is_left),
        room_test(commits_are_served_in_their_order_and_answered_once),
        room_test(a_commit_that_its_program_has_given_up_is_not_served),
        room_test(an_answer_does_not_replace_the_programs_own),
        room_test(a_failure_is_answered_in_words),
        room_test(old_results_are_cleared_away_but_not_the_newest),
        room_test(names_that_are_no_commits_are_left_alone),
        room_test(numbers_are_optional_and_never_negative),
        room_test(waits_for_other_ranks_are_read),
        room_test(an_accepted_commit_is_told_what_came_of_it),
        room_test(what_an_agent_before_has_accepted_is_settled),
        room_test(links_pipes_and_large_files_are_not_read),
        room_test(a_link_in_the_agents_way_is_replaced_not_followed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
