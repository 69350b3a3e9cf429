/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/scheduler/lab.h"

#include "scheduler/core/model/model_access.h"
#include "scheduler/metrics/log_lag.h"
#include <stdlib.h>
#include <string.h>

static const struct mono start = {1000000};

static struct mono after_s(int64_t s)
{
    return (struct mono){start.ms + SECONDS_MS(s)};
}

/* Reports one attempt: what it wrote, and what belayd has of it. */
static void report(
    struct log_lag *g, const struct lab *lab, int64_t node, int64_t written, int64_t stored, int s)
{
    struct log_lag_report r = {
        .job = 7, .attempt = 1, .written_bytes = written, .stored_bytes = stored};
    log_lag_reported(g, lab->model, node, &r, 1, after_s(s));
}

/* Checks what a scrape shows of node "n". */
static void shows(const struct log_lag *g, const struct lab *lab, int s, int bytes, int seconds)
{
    struct buf out = {0};
    struct exposition x = {.out = &out};
    char line[128];
    log_lag_write(g, lab->model, after_s(s), &x);
    snprintf(
        line, sizeof(line), "\nbelay_node_log_lag_bytes{node=\"n\",pool=\"base\"} %d\n", bytes);
    assert_non_null(strstr(out.data, line));
    snprintf(
        line, sizeof(line), "\nbelay_node_log_lag_seconds{node=\"n\",pool=\"base\"} %d\n", seconds);
    assert_non_null(strstr(out.data, line));
    buf_deinit(&out);
}

static void output_that_does_not_arrive_is_behind_since_its_report(void **state)
{
    struct lab *lab = *state;
    int64_t node = lab_join(lab, "n", 8);
    struct log_lag *g = log_lag_create();
    report(g, lab, node, 100, 100, 0);
    shows(g, lab, 5, 0, 0);
    report(g, lab, node, 300, 100, 10);
    shows(g, lab, 10, 200, 0);
    report(g, lab, node, 500, 200, 20);
    shows(g, lab, 25, 300, 15);
    log_lag_arrived(g, node, 7, 1, 299);
    shows(g, lab, 30, 201, 20);
    log_lag_destroy(g);
}

/* Bytes of the last moment are always under way. */
static void output_that_arrives_while_more_is_written_is_not_behind(void **state)
{
    struct lab *lab = *state;
    int64_t node = lab_join(lab, "n", 8);
    struct log_lag *g = log_lag_create();
    for (int s = 0; s < 100; s += 10) {
        report(g, lab, node, 10 * s + 10, 10 * s, s);
        shows(g, lab, s, 10, 0);
        shows(g, lab, s + 9, 10, 9);
        log_lag_arrived(g, node, 7, 1, 10 * s + 10);
        shows(g, lab, s + 9, 0, 0);
    }
    assert_int_equal(log_lag_stored(g, node, 7, 1), 910);
    assert_int_equal(log_lag_stored(g, node, 7, 2), 0);
    log_lag_destroy(g);
}

static void a_node_counts_its_attempts_together(void **state)
{
    struct lab *lab = *state;
    int64_t node = lab_join(lab, "n", 8);
    struct log_lag *g = log_lag_create();
    struct log_lag_report two[] = {
        {.job = 7, .attempt = 1, .written_bytes = 50, .stored_bytes = 20},
        {.job = 8, .attempt = 3, .written_bytes = 50, .stored_bytes = 1 << 20}, /* cut */
    };
    log_lag_reported(g, lab->model, node, two, 2, start);
    struct log_lag_report swapped[] = {two[1], two[0]};
    swapped[0] =
        (struct log_lag_report){.job = 9, .attempt = 1, .written_bytes = 5, .stored_bytes = 0};
    log_lag_reported(g, lab->model, node, swapped, 2, after_s(60));
    shows(g, lab, 90, 35, 90);
    log_lag_reported(g, lab->model, node, swapped, 1, after_s(100)); /* job 7 has ended */
    shows(g, lab, 100, 5, 40);
    log_lag_destroy(g);
}

static void a_node_without_attempts_and_a_foreign_one_are_left_out(void **state)
{
    struct lab *lab = *state;
    int64_t node = lab_join(lab, "n", 8);
    struct log_lag *g = log_lag_create();
    struct buf out = {0};
    struct exposition x = {.out = &out};
    report(g, lab, node, 50, 20, 0);
    log_lag_reported(g, lab->model, node, NULL, 0, after_s(1));
    log_lag_arrived(g, node, 7, 1, 50);
    for (int64_t other = node + 1; other < node + 1000; other++)
        report(g, lab, other, 50, 20, 2);
    log_lag_write(g, lab->model, after_s(2), &x);
    assert_null(strstr(out.data, "node="));
    buf_deinit(&out);
    log_lag_destroy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(test) cmocka_unit_test_setup_teardown(test, lab_setup, lab_teardown)
        T(output_that_does_not_arrive_is_behind_since_its_report),
        T(output_that_arrives_while_more_is_written_is_not_behind),
        T(a_node_counts_its_attempts_together),
        T(a_node_without_attempts_and_a_foreign_one_are_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
