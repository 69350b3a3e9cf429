/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps on several nodes: how their tasks are laid out, and what a part is told.
 */
#include "base/mem.h"
#include "cli/layout.h"
#include "cli/parts.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* "0,1|2,3": the tasks of each node. */
static void check(const struct layout_ask *ask, bool cyclic, const char *counts, const char *expected)
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
            buf_printf(&text, "%s%lld", i ? "," : node ? "|" : "", (long long)layout_task(&l, node, i));
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
    check(&(struct layout_ask){.job_nodes = 4, .tasks = 2}, false, "1(x2)", "0|1"); /* none for nothing */
    check(&(struct layout_ask){.job_nodes = 4, .nodes_min = 2, .nodes_max = 2}, false, "1(x2)", "0|1");
    check(&(struct layout_ask){.job_nodes = 4, .nodes_min = 2, .nodes_max = 9, .tasks_per_node = 2}, false, "2(x4)", "0,1|2,3|4,5|6,7");
    check(&(struct layout_ask){.job_nodes = 2, .nodes_min = 1, .nodes_max = 1, .tasks = 3}, false, "3", "0,1,2");
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
    check_refused(&(struct layout_ask){.job_nodes = 1, .nodes_min = 2, .nodes_max = 2}, "Only 1 node can be used, asked for 2");
    check_refused(&(struct layout_ask){.job_nodes = 2, .tasks = 5, .tasks_per_node = 2}, "5 tasks on 2 nodes are more than 2 for each");
    check_refused(&(struct layout_ask){.job_nodes = 2, .tasks = LAYOUT_TASKS_MAX + 1}, "at most 65536 tasks");
    check_refused(&(struct layout_ask){.job_nodes = 256, .tasks_per_node = 4096}, "at most 65536 tasks");
}

static const char key[] = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

static void tell(struct buf *out)
{
    char shell[] = "sh", option[] = "-c", command[] = "echo \xff", empty[] = "", a[] = "A=1", b[] = "B=two\nlines";
    char address[] = "10.0.0.1", cwd[] = "/home/ann/x y";
    char *argv[] = {shell, option, command, empty, NULL}, *env[] = {a, b, NULL};
    const int64_t ids[] = {2, 3};
    struct part p = {.address = address,
        .port = 40001,
        .step = {.output = "out.%t", .labels = true, .cpus_per_task = 2},
        .place = {.step = 7, .tasks = 5, .nodes = 3, .node = 1, .ids = ids, .n = 2, .nodelist = "a,b,c", .per_node = "2(x2),1"},
        .cwd = cwd,
        .argv = argv,
        .env = env};
    memcpy(p.key, key, sizeof(key));
    part_format(&p, out);
}

static void a_part_is_told_all_byte_for_byte(void **state)
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
    assert_int_equal(p.place.tasks, 5);
    assert_int_equal(p.place.n, 2);
    assert_int_equal(p.place.ids[1], 3);
    assert_string_equal(p.place.per_node, "2(x2),1");
    assert_string_equal(p.cwd, "/home/ann/x y");
    assert_string_equal(p.argv[2], "echo \xff");
    assert_string_equal(p.argv[3], "");
    assert_null(p.argv[4]);
    assert_string_equal(p.env[1], "B=two\nlines");
    assert_null(p.env[2]);
    part_deinit(&p);
    for (size_t n = 0; n < text.len; n++) { /* cut off anywhere */
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
        ("{\"address\":\"a\",\"port\":1,\"key\":\"short\",\"step\":0,\"tasks\":1,\"nodes\":1,\"node\":0,\"ids\":[0],\"nodelist\":\"a\","
        "\"per_node\":\"1\",\"n_args\":1,\"n_env\":0}\n"),
        "{\"address\":\"a\",\"port\":1,\"key\":\"x\",\"step\":0,\"tasks\":1,\"nodes\":1,\"node\":0,\"ids\":[1],\"n_args\":1,\"n_env\":0}\n"};
    struct part p;
    struct err e;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(part_parse(bad[i], strlen(bad[i]), &p, &e), ERR_INVALID);
        part_deinit(&p);
    }
}

/* That its starter has not ended says nothing: the part may be about to connect, and nobody would end its tasks. */
static void a_part_that_is_signalled_before_it_connects_is_called_off(void **state)
{
    (void)state;
    char server[] = "https://127.0.0.1:1", address[] = "127.0.0.1", none[] = "", a[] = "a", b[] = "b";
    const struct step_nodes nodes = {.server = server, .ca = none, .token = none, .address = address, .names = {a, b}, .n = 2};
    const struct layout layout = {.nodes = 2, .tasks = 2};
    const struct step s = {.program = "srun", .quiet = true};
    char *argv[] = {a, NULL};
    const struct parts_ask ask = {.s = &s, .nodes = &nodes, .layout = &layout, .ranks = (const int64_t[]){0, 1}, .nodelist = "a,b", .per_node = "1(x2)", .argv = argv};
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tasks_are_laid_out_as_slurm_does_it),
        cmocka_unit_test(what_cannot_be_laid_out_is_refused),
        cmocka_unit_test(a_part_is_told_all_byte_for_byte),
        cmocka_unit_test(what_no_srun_tells_is_refused),
        cmocka_unit_test(a_part_that_is_signalled_before_it_connects_is_called_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
