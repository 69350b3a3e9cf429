/* SPDX-License-Identifier: Apache-2.0
 *
 * `belay-agent host` with real processes: one claim, whose processes end with it, and every
 * malformed request.
 */
#include "agent/host.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/uv/proc.h"
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define CLUSTER "\"cluster\":\"lab\""

/* Writes its own pid and that of a child in its own session, then stays. Opening the FIFO waits for
 * the reader. */
#define STAYS                                                                                      \
    "#!/bin/sh\\nsetsid sleep 1000 &\\necho $$ $! >\\\"$BELAY_NODE_DIR/../fifo\\\"\\nexec sleep "  \
    "1000\\n"
#define ENDS "#!/bin/sh\\nexit 0\\n"

struct rig {
    char dir[64];
    int code;
    json_t *reply;
    char state[16], id[17], error[32];
};

static int setup(void **state)
{
    struct rig *g = mem_alloc(sizeof(*g));
    STR_COPY(g->dir, "/tmp/belay-host-XXXXXX");
    assert_non_null(mkdtemp(g->dir));
    char *fifo = mem_printf("%s/fifo", g->dir);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    free(fifo);
    *state = g;
    return 0;
}

static int teardown(void **state)
{
    struct rig *g = *state;
    json_decref(g->reply);
    fs_remove_tree(g->dir, NULL);
    free(g);
    return 0;
}

static void keep_reply(struct rig *g, const char *text)
{
    struct err e;
    json_decref(g->reply);
    g->reply = NULL;
    if (json_parse(text, strlen(text), 65536, &g->reply, &e) != 0)
        fail_msg("%s: %s", e.text, text);
    const json_t *c = json_object_get(g->reply, "claim");
    const char *state = json_string_value(json_object_get(c, "state")),
               *id = json_string_value(json_object_get(c, "id"));
    const char *error = json_string_value(json_object_get(g->reply, "error"));
    STR_COPY(g->state, state ? state : "");
    STR_COPY(g->id, id ? id : "");
    STR_COPY(g->error, error ? error : "");
}

static void ask(struct rig *g, const char *request, int expected)
{
    char *command =
        mem_printf("exec \"$BELAY_AGENT\" host --dir %s <<'END'\n%s\nEND\n", g->dir, request);
    char text[4096];
    FILE *f = popen(command, "r");
    assert_non_null(f);
    text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
    g->code = WEXITSTATUS(pclose(f));
    free(command);
    keep_reply(g, text);
    if (g->code != expected)
        fail_msg("%d: %s", g->code, text);
}

static void claim(struct rig *g, const char *token, const char *script)
{
    char *request = mem_printf("{\"host\":1,\"do\":\"claim\",\"token\":\"%s\"," CLUSTER
                               ",\"user_data\":\"%s\"}",
        token, script);
    ask(g, request, 0);
    free(request);
}

static void release(struct rig *g, const char *id, int expected)
{
    char *request = mem_printf("{\"host\":1,\"do\":\"release\",\"id\":\"%s\"}", id);
    ask(g, request, expected);
    free(request);
}

/* Waits for STAYS to write its pids. */
static void read_pids(struct rig *g, long pids[2])
{
    char *path = mem_printf("%s/fifo", g->dir);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%ld %ld", &pids[0], &pids[1]), 2);
    fclose(f);
    free(path);
}

static pid_t holder(struct rig *g)
{
    char *path = mem_printf("%s/hold", g->dir);
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_int_equal(fcntl(fd, F_GETLK, &l), 0);
    close(fd);
    free(path);
    return l.l_type == F_UNLCK ? 0 : l.l_pid;
}

static void a_claim_runs_once_and_ends_whole(void **state)
{
    struct rig *g = *state;
    long pids[2];
    char id[17];
    ask(g, "{\"host\":1,\"do\":\"list\"}", 0);
    assert_true(json_is_null(json_object_get(g->reply, "claim")));
    claim(g, "t1", STAYS);
    assert_string_equal(g->state, "running");
    STR_COPY(id, g->id);
    read_pids(g, pids);
    claim(g, "t1", "#!/bin/sh\\nnot this\\n");
    assert_string_equal(g->id, id);
    claim(g, "t2", ENDS); /* another token: the reply shows the existing claim */
    assert_string_equal(g->id, id);
    assert_true(proc_start_ticks((pid_t)pids[0]) != 0 && proc_start_ticks((pid_t)pids[1]) != 0);
    release(g, "0000000000000000", 1);
    assert_string_equal(g->error, "not-found");
    release(g, id, 0);
    assert_true(proc_start_ticks((pid_t)pids[0]) == 0 && proc_start_ticks((pid_t)pids[1]) == 0);
    assert_int_equal(holder(g), 0);
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(g->reply, "last"), "id")), id);
    char *script = mem_printf("%s/script", g->dir); /* it contained a secret */
    assert_false(fs_exists(script));
    free(script);
    release(g, id, 0);
    claim(g, "t2", STAYS);
    assert_string_not_equal(g->id, id);
    read_pids(g, pids);
    release(g, g->id, 0);
}

static void an_ended_program_stays_claimed_and_is_not_started_again(void **state)
{
    struct rig *g = *state;
    claim(g, "t1", ENDS);
    for (int i = 0; i < 1000 && holder(g) != 0; i++)
        waitpid(-1, NULL, WNOHANG);
    while (holder(g) != 0)
        ask(g, "{\"host\":1,\"do\":\"list\"}", 0);
    claim(g, "t1", STAYS);
    assert_string_equal(g->state, "ended");
    release(g, g->id, 0);
}

static void processes_of_a_killed_holder_end_with_the_claim(void **state)
{
    struct rig *g = *state;
    long pids[2];
    claim(g, "t1", STAYS);
    read_pids(g, pids);
    kill(holder(g), SIGKILL);
    while (holder(g) != 0)
        continue;
    ask(g, "{\"host\":1,\"do\":\"list\"}", 0);
    assert_string_equal(g->state, "ended");
    assert_true(proc_start_ticks((pid_t)pids[0]) != 0);
    release(g, g->id, 0);
    assert_true(proc_start_ticks((pid_t)pids[0]) == 0 && proc_start_ticks((pid_t)pids[1]) == 0);
}

static void a_damaged_claim_is_not_taken_for_none(void **state)
{
    struct rig *g = *state;
    char *path = mem_printf("%s/claim.json", g->dir);
    assert_int_equal(fs_write_atomic(path, "{\"id\"", 5, 0600, NULL), 0);
    ask(g, "{\"host\":1,\"do\":\"list\"}", 1);
    assert_string_equal(g->error, "corrupt");
    ask(g, "{\"host\":1,\"do\":\"claim\",\"token\":\"t\"," CLUSTER ",\"user_data\":\"\"}", 1);
    assert_string_equal(g->error, "corrupt");
    free(path);
}

static void malformed_requests_are_refused(void **state)
{
    static const char *const wrong[] = {"", "{", "[]", "{}", "{\"host\":1}",
        "{\"host\":2,\"do\":\"list\"}", "{\"host\":1,\"do\":\"dance\"}",
        "{\"host\":1,\"do\":\"list\",\"more\":1}", "{\"host\":1,\"do\":\"claim\"}",
        "{\"host\":1,\"do\":\"claim\",\"token\":\"\"," CLUSTER ",\"user_data\":\"\"}",
        "{\"host\":1,\"do\":\"claim\",\"token\":7," CLUSTER ",\"user_data\":\"\"}",
        "{\"host\":1,\"do\":\"release\"}",
        "{\"host\":1,\"do\":\"release\",\"id\":\"0123456789abcdef0\"}", NULL};
    struct host_request q;
    struct err e;
    (void)state;
    for (size_t i = 0; wrong[i]; i++)
        if (host_request_parse(wrong[i], strlen(wrong[i]), &q, &e) != ERR_INVALID)
            fail_msg("taken: %s", wrong[i]);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_claim_runs_once_and_ends_whole),
        TEST(an_ended_program_stays_claimed_and_is_not_started_again),
        TEST(processes_of_a_killed_holder_end_with_the_claim),
        TEST(a_damaged_claim_is_not_taken_for_none),
        TEST(malformed_requests_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
