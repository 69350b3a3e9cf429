/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps: the layout of their tasks on several nodes, the parameters of a part, the program of each
 * task, and the output of a task prolog.
 */
#include "base/mem.h"
#include "base/time.h"
#include "cli/slurm/layout.h"
#include "cli/slurm/part.h"
#include "cli/slurm/step_parts.h"
#include "cli/slurm/programs.h"
#include "cli/slurm/step_prolog.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

/* "0,1|2,3": the tasks of each node. */
static void check(
    const struct layout_ask *ask, bool cyclic, const char *counts, const char *expected)
{
    struct layout l;
    struct err e;
    struct buf text = {0};
    assert_int_equal(layout_make(ask, &l, &e), 0);
    l.cyclic = cyclic;
    layout_format(&l, &text);
    assert_string_equal(buf_str(&text), counts);
    buf_clear(&text);
    for (int64_t node = 0; node < l.nodes; node++)
        for (int64_t i = 0; i < layout_count(&l, node); i++)
            buf_printf(&text, "%s%lld",
                i      ? ","
                : node ? "|"
                       : "",
                (long long)layout_task(&l, node, i));
    assert_string_equal(buf_str(&text), expected);
    buf_deinit(&text);
}

static void tasks_are_laid_out_as_slurm_does_it(void **state)
{
    (void)state;
    check(&(struct layout_ask){.job_nodes = 4}, false, "1(x4)", "0|1|2|3");
    check(&(struct layout_ask){.job_nodes = 3, .tasks = 5}, false, "2(x2),1", "0,1|2,3|4");
    check(&(struct layout_ask){.job_nodes = 3, .tasks = 5}, true, "2(x2),1", "0,3|1,4|2");
    check(&(struct layout_ask){.job_nodes = 3, .tasks = 4}, false, "2,1(x2)", "0,1|2|3");
    /* no node without a task */
    check(&(struct layout_ask){.job_nodes = 4, .tasks = 2}, false, "1(x2)", "0|1");
    check(&(struct layout_ask){.job_nodes = 4, .nodes_min = 2, .nodes_max = 2}, false, "1(x2)",
        "0|1");
    check(&(struct layout_ask){.job_nodes = 4, .nodes_min = 2, .nodes_max = 9, .tasks_per_node = 2},
        false, "2(x4)", "0,1|2,3|4,5|6,7");
    check(&(struct layout_ask){.job_nodes = 2, .nodes_min = 1, .nodes_max = 1, .tasks = 3}, false,
        "3", "0,1,2");
}

static void check_refused(const struct layout_ask *ask, const char *expected)
{
    struct layout l;
    struct err e;
    assert_int_equal(layout_make(ask, &l, &e), ERR_INVALID);
    assert_non_null(strstr(e.text, expected));
}

static void what_cannot_be_laid_out_is_refused(void **state)
{
    (void)state;
    check_refused(&(struct layout_ask){.job_nodes = 1, .nodes_min = 2, .nodes_max = 2},
        "Only 1 node can be used, asked for 2");
    check_refused(&(struct layout_ask){.job_nodes = 2, .tasks = 5, .tasks_per_node = 2},
        "5 tasks on 2 nodes are more than 2 for each");
    check_refused(
        &(struct layout_ask){.job_nodes = 2, .tasks = LAYOUT_TASKS_MAX + 1}, "at most 65536 tasks");
    check_refused(
        &(struct layout_ask){.job_nodes = 256, .tasks_per_node = 4096}, "at most 65536 tasks");
}

static const char key[] = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

static void tell(struct buf *out)
{
    char shell[] = "sh", option[] = "-c", command[] = "echo \xff", empty[] = "", a[] = "A=1",
         b[] = "B=two\nlines";
    char address[] = "10.0.0.1", cwd[] = "/home/ann/x y";
    char *argv[] = {shell, option, command, empty, NULL}, *env[] = {a, b, NULL};
    const int64_t ids[] = {2, 3};
    struct part p = {.address = address,
        .port = 40001,
        .step = {.output = "out.%t", .labels = true, .cpus_per_task = 2},
        .on = {.step = 7,
            .tasks = 5,
            .nodes = 3,
            .node = 1,
            .ids = ids,
            .n = 2,
            .nodelist = "a,b,c",
            .per_node = "2(x2),1"},
        .cwd = cwd,
        .argv = argv,
        .env = env};
    memcpy(p.key, key, sizeof(key));
    part_format(&p, out);
}

static void a_part_gets_its_description_byte_for_byte(void **state)
{
    (void)state;
    struct buf text = {0};
    struct part p;
    struct err e;
    tell(&text);
    assert_int_equal(part_parse(buf_str(&text), text.len, &p, &e), 0);
    assert_string_equal(p.address, "10.0.0.1");
    assert_string_equal(p.key, key);
    assert_int_equal(p.port, 40001);
    assert_string_equal(p.step.output, "out.%t");
    assert_null(p.step.error);
    assert_true(p.step.labels);
    assert_false(p.step.quiet);
    assert_int_equal(p.on.tasks, 5);
    assert_int_equal(p.on.n, 2);
    assert_int_equal(p.on.ids[1], 3);
    assert_string_equal(p.on.per_node, "2(x2),1");
    assert_string_equal(p.cwd, "/home/ann/x y");
    assert_string_equal(p.argv[2], "echo \xff");
    assert_string_equal(p.argv[3], "");
    assert_null(p.argv[4]);
    assert_string_equal(p.env[1], "B=two\nlines");
    assert_null(p.env[2]);
    part_deinit(&p);
    for (size_t n = 0; n < text.len; n++) { /* truncated at every length */
        assert_int_equal(part_parse(buf_str(&text), n, &p, &e), ERR_INVALID);
        part_deinit(&p);
    }
    buf_addc(&text, 'x');
    assert_int_equal(part_parse(buf_str(&text), text.len, &p, &e), ERR_INVALID);
    part_deinit(&p);
    buf_deinit(&text);
}

static void what_no_srun_tells_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"\n", "{}\n", "[]\n", "{\"port\": 0}\n",
        ("{\"address\":\"a\",\"port\":1,\"key\":\"short\",\"step\":0,\"tasks\":1,\"nodes\":1,"
         "\"node\":0,\"ids\":[0],\"nodelist\":\"a\","
         "\"per_node\":\"1\",\"n_args\":1,\"n_env\":0}\n"),
        "{\"address\":\"a\",\"port\":1,\"key\":\"x\",\"step\":0,\"tasks\":1,\"nodes\":1,\"node\":0,"
        "\"ids\":[1],\"n_args\":1,\"n_env\":0}\n"};
    struct part p;
    struct err e;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(part_parse(bad[i], strlen(bad[i]), &p, &e), ERR_INVALID);
        part_deinit(&p);
    }
}

/* A starter that has not ended proves nothing: its part may be about to connect, and its tasks
 * would never end. */
static void a_part_that_is_signalled_before_it_connects_is_called_off(void **state)
{
    (void)state;
    char server[] = "https://127.0.0.1:1", address[] = "127.0.0.1", none[] = "", a[] = "a",
         b[] = "b";
    const struct step_nodes nodes = {
        .server = server, .ca = none, .token = none, .address = address, .names = {a, b}, .n = 2};
    const struct layout layout = {.nodes = 2, .tasks = 2};
    const struct step s = {.program = "srun", .quiet = true};
    char *argv[] = {a, NULL};
    const struct parts_ask ask = {.s = &s,
        .nodes = &nodes,
        .layout = &layout,
        .ranks = (const int64_t[]){0, 1},
        .nodelist = "a,b",
        .per_node = "1(x2)",
        .argv = argv};
    struct parts *p = NULL;
    struct err e;
    assert_int_equal(parts_create(&ask, &p, &e), 0);
    assert_true(parts_start(p));
    assert_false(parts_are_over(p));
    parts_signal(p, SIGTERM);
    assert_true(parts_are_over(p));
    assert_true(parts_have_failed(p));
    assert_int_equal(parts_exit_code(p), 1);
    parts_destroy(p);
}

static void programs_go_to_the_other_nodes(void **state)
{
    (void)state;
    char file[] = "p.conf", cwd[] = "/", address[] = "10.0.0.1";
    char *argv[] = {file, NULL}, *env[] = {NULL};
    const int64_t ids[] = {1};
    struct part p = {.address = address,
        .port = 1,
        .step = {.programs = "* echo \xff\n", .prolog = "/bin/pro", .epilog = "/bin/epi"},
        .on = {.tasks = 2,
            .nodes = 2,
            .node = 1,
            .ids = ids,
            .n = 1,
            .nodelist = "a,b",
            .per_node = "1(x2)"},
        .cwd = cwd,
        .argv = argv,
        .env = env};
    struct buf text = {0};
    struct part read;
    struct err e;
    memcpy(p.key, key, sizeof(key));
    part_format(&p, &text);
    assert_int_equal(part_parse(buf_str(&text), text.len, &read, &e), 0);
    assert_string_equal(read.step.programs, "* echo \xff\n");
    assert_string_equal(read.step.prolog, "/bin/pro");
    assert_string_equal(read.step.epilog, "/bin/epi");
    assert_string_equal(read.argv[0], "p.conf");
    assert_null(read.argv[1]);
    part_deinit(&read);
    for (size_t n = 0; n < text.len; n++) {
        assert_int_equal(part_parse(buf_str(&text), n, &read, &e), ERR_INVALID);
        part_deinit(&read);
    }
    buf_deinit(&text);
}

/* ---- programs ---- */

/* expected: its words, each in <> */
static void check_words(const char *text, int64_t tasks, int64_t task, const char *expected)
{
    char more[] = "more %t";
    char *const rest[] = {more, NULL};
    struct buf all = {0};
    char **words;
    struct err e;
    if (programs_check(text, tasks, &e) != 0 || programs_words(text, task, rest, &words, &e) != 0)
        fail_msg("%s", e.text);
    for (char **w = words; *w; w++)
        buf_printf(&all, "<%s>", *w);
    assert_string_equal(buf_str(&all), expected);
    buf_deinit(&all);
    mem_free_texts(words);
}

/* As observed with srun of Slurm 22.05. */
static void each_task_has_its_program(void **state)
{
    (void)state;
    static const char manual[] = "####\n# srun -n8 -l --multi-prog silly.conf\n4-6\t "
                                 "hostname\n1,7\t echo  task:%t\n0,2-3\t echo  offset:%o\n";
    check_words(manual, 8, 0, "<echo><offset:0><more %t>");
    check_words(manual, 8, 2, "<echo><offset:1><more %t>");
    check_words(manual, 8, 3, "<echo><offset:2><more %t>");
    check_words(manual, 8, 6, "<hostname><more %t>");
    check_words(manual, 8, 7, "<echo><task:7><more %t>");
    check_words("0,2 a %t %o\n* star %t %o", 5, 2, "<a><2><1><more %t>");
    check_words("0,2 a %t %o\n* star %t %o", 5, 3, "<star><3><3><more %t>");
    check_words("3,0-1 a %o %t\n2 b %o\n", 4, 0, "<a><1><0><more %t>");
    check_words("\n  \n# c\n  0 echo a\r\n\t1\techo   b    c \n", 2, 1, "<echo><b><c><more %t>");
    check_words("0 sh -c 'echo \"$0\" %t %o x  y' '%t' a'%t'\\ b'c%o'%o", 1, 0,
        "<sh><-c><echo \"$0\" %t %o x  y><%t><a%t bc%o0><more %t>");
    check_words("0 echo \"a  b %t\" \\%t %% %x '' $HOME # no remark", 1, 0,
        "<echo><\"a><b><0\"><%t><%%><%x><><$HOME><#><no><remark><more %t>");
    check_words("0 echo a\\\n b c\n1 d", 2, 0, "<echo><a><b><c><more %t>");
    check_words("0 echo a\\\n b c\n1 d", 2, 1, "<d><more %t>");
}

static void check_no_programs(const char *text, const char *expected)
{
    char *const none[] = {NULL};
    char **words;
    struct err e;
    if (programs_check(text, 2, &e) != ERR_INVALID || !strstr(e.text, expected))
        fail_msg("\"%s\" is not in \"%s\"", expected, e.text);
    /* without a check the result is an error or a program */
    for (int64_t task = 0; task < 2; task++)
        if (programs_words(text, task, none, &words, &e) == 0)
            mem_free_texts(words);
}

static void programs_that_are_not_one_for_each_task_are_refused(void **state)
{
    (void)state;
    check_no_programs("", "there is no program for task 0");
    check_no_programs("0 a\n", "there is no program for task 1");
    check_no_programs("0-1 a\n1 b\n", "line 2: task 1 has a program already");
    check_no_programs("* a\n1 b\n", "line 2: the line of *, for all remaining tasks");
    check_no_programs("0-5 a\n", "line 1: there is no task 5: the step has 2");
    check_no_programs("x a\n", "line 1: expected tasks, as 0,2-3 or *, found \"x a\"");
    for (size_t i = 0; i < 8; i++)
        check_no_programs((const char *const[]){"1-0 a", "0, 1 a", "0- a", "-1 a", "0,,1 a", "** a",
                              "0-1-2 a", "99999999999999999999 a"}[i],
            "line 1: expected tasks");
    check_no_programs("# a\n0-1\n", "line 2: expected a program after the tasks");
    check_no_programs("0-1 '' a\n", "line 1: expected a program after the tasks");
    check_no_programs("0 a\\\nb\n1 echo 'b c\n", "line 3: expected a closing '");
}

static void what_stands_in_front_of_a_task_changes_its_environment(void **state)
{
    (void)state;
    static const char said[] = "export A_STEP=b c =d\nnoise\nexport NO_VALUE\nexport =x\nunset "
                               "A_GONE\nunset \nunset A=B\nexport A_LAST=";
    setenv("A_GONE", "1", 1);
    step_prolog_apply(said, strlen(said));
    assert_string_equal(getenv("A_STEP"), "b c =d");
    assert_null(getenv("A_GONE"));
    assert_null(getenv("NO_VALUE"));
    assert_string_equal(getenv("A_LAST"), "");
}

/* ---- connections ---- */

#define OTHER_KEY "ff112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

struct shake {
    int fd;
    const char *key;
    int64_t part;
    struct part_tls *tls;
    int rc;
    struct err e;
};

static void *connect_part(void *ctx)
{
    struct shake *s = ctx;
    s->rc = part_tls_connect(
        s->fd, s->part, s->key, clock_mono(&clock_system).ms + 20000, &s->tls, &s->e);
    if (s->rc != 0)
        shutdown(s->fd, SHUT_RDWR);
    return NULL;
}

static const char *key_of_three(void *ctx, int64_t part)
{
    (void)ctx;
    return part == 3 ? key : NULL;
}

/* The outcome on srun's side. */
static int greet(int fd, struct part_tls *t, int64_t *ret_part)
{
    int rc;
    while ((rc = part_tls_greet(t, ret_part)) == 0) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        assert_int_equal(poll(&p, 1, 20000), 1);
    }
    return rc;
}

static int meet(struct shake *s, int fds[2], struct part_tls **ret_server)
{
    pthread_t thread;
    int64_t part = -1;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    assert_int_equal(fcntl(fds[0], F_SETFL, O_NONBLOCK), 0);
    s->fd = fds[1];
    *ret_server = part_tls_accept(fds[0], key_of_three, NULL);
    assert_int_equal(pthread_create(&thread, NULL, connect_part, s), 0);
    int rc = greet(fds[0], *ret_server, &part);
    if (rc != 1)
        shutdown(fds[0], SHUT_RDWR);
    pthread_join(thread, NULL);
    if (rc == 1)
        assert_int_equal(part, s->part);
    return rc;
}

static void leave(struct shake *s, int fds[2], struct part_tls *server)
{
    part_tls_free(server);
    part_tls_free(s->tls);
    close(fds[0]);
    close(fds[1]);
}

static void who_has_the_key_is_heard_and_nobody_reads_along(void **state)
{
    struct shake s = {.key = key, .part = 3};
    struct part_tls *server;
    struct buf in = {0};
    char raw[4096], words[] = "what the tasks have said";
    int fds[2];
    (void)state;
    assert_int_equal(meet(&s, fds, &server), 1);
    assert_int_equal(s.rc, 0);
    assert_true(part_tls_send(s.tls, words, sizeof(words)));
    ssize_t n = recv(fds[0], raw, sizeof(raw), MSG_PEEK);
    assert_true(n > (ssize_t)sizeof(words));
    assert_null(memmem(raw, (size_t)n, words, sizeof(words)));
    assert_true(part_tls_receive(server, &in));
    assert_int_equal(in.len, sizeof(words));
    assert_memory_equal(in.data, words, sizeof(words));
    assert_true(part_tls_receive(server, &in)); /* nothing now */
    assert_true(part_tls_send(server, "back", 4));
    buf_clear(&in);
    assert_true(part_tls_receive(s.tls, &in));
    assert_memory_equal(in.data, "back", 4);
    assert_int_equal(send(fds[1], raw, (size_t)n, 0), n); /* the same message again */
    buf_clear(&in);
    assert_false(part_tls_receive(server, &in));
    assert_int_equal(in.len, 0);
    leave(&s, fds, server);
    buf_deinit(&in);
}

static void who_has_another_key_or_is_not_expected_is_not(void **state)
{
    struct shake wrong = {.key = OTHER_KEY, .part = 3}, unexpected = {.key = key, .part = 4};
    struct part_tls *server;
    int fds[2];
    (void)state;
    assert_int_equal(meet(&wrong, fds, &server), -1);
    assert_true(wrong.rc == ERR_DENIED || wrong.rc == ERR_IO);
    leave(&wrong, fds, server);
    assert_int_equal(meet(&unexpected, fds, &server), -1);
    assert_true(unexpected.rc == ERR_DENIED || unexpected.rc == ERR_IO);
    leave(&unexpected, fds, server);
}

/* A part sends nothing to another listener at that port. */
static void a_server_without_the_key_gets_nothing(void **state)
{
    struct shake s = {.key = key, .part = 3};
    static const char alert[] = {0x15, 3, 3, 0, 2, 2, 40};
    pthread_t thread;
    char raw[4096];
    int fds[2];
    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    s.fd = fds[1];
    assert_int_equal(pthread_create(&thread, NULL, connect_part, &s), 0);
    ssize_t n = recv(fds[0], raw, sizeof(raw), 0);
    assert_true(n > 0);
    assert_null(memmem(raw, (size_t)n, key, 16));
    assert_int_equal(send(fds[0], alert, sizeof(alert), 0), sizeof(alert));
    pthread_join(thread, NULL);
    assert_int_equal(s.rc, ERR_DENIED);
    leave(&s, fds, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tasks_are_laid_out_as_slurm_does_it),
        cmocka_unit_test(what_cannot_be_laid_out_is_refused),
        cmocka_unit_test(a_part_gets_its_description_byte_for_byte),
        cmocka_unit_test(what_no_srun_tells_is_refused),
        cmocka_unit_test(a_part_that_is_signalled_before_it_connects_is_called_off),
        cmocka_unit_test(programs_go_to_the_other_nodes),
        cmocka_unit_test(each_task_has_its_program),
        cmocka_unit_test(programs_that_are_not_one_for_each_task_are_refused),
        cmocka_unit_test(who_has_the_key_is_heard_and_nobody_reads_along),
        cmocka_unit_test(who_has_another_key_or_is_not_expected_is_not),
        cmocka_unit_test(a_server_without_the_key_gets_nothing),
        cmocka_unit_test(what_stands_in_front_of_a_task_changes_its_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
