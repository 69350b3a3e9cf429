/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/base/tools.h"

#include "scheduler/metrics/exposition.h"
#include "scheduler/metrics/series.h"
#include <stdio.h>
#include <string.h>

static void values_of_labels_are_escaped_and_cut(void **state)
{
    (void)state;
    struct metric_labels l = {0};
    metric_labels_add(&l, "team", "a\"b\\c\nd");
    metric_labels_add(&l, "qos", ""); /* is absent */
    metric_labels_add(&l, "pool", "p");
    assert_string_equal(l.text, "team=\"a\\\"b\\\\c\\nd\",pool=\"p\"");
    char longest[2 * METRIC_VALUE_MAX];
    memset(longest, '"', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    struct metric_labels all = {0};
    for (int i = 0; i < METRIC_LABELS_MAX; i++)
        metric_labels_add(&all, "a_name_of_common_size", longest);
    assert_int_equal(strlen(all.text),
        METRIC_LABELS_MAX * (2 * METRIC_VALUE_MAX + strlen("a_name_of_common_size=\"\",")) - 1);
}

static void a_histogram_counts_in_the_first_bucket_that_has_the_value(void **state)
{
    (void)state;
    struct histogram h = {.bounds = histogram_waits};
    histogram_add(&h, 0);
    histogram_add(&h, 1); /* not above the bound */
    histogram_add(&h, 1.5);
    histogram_add(&h, 1e9);
    assert_int_equal(h.counts[0], 2);
    assert_int_equal(h.counts[1], 1);
    assert_int_equal(h.counts[HISTOGRAM_BOUNDS], 1);
    assert_int_equal(histogram_count(&h), 4);
    struct buf out = {0};
    struct exposition x = {.out = &out};
    exposition_family(&x, METRIC_HISTOGRAM, "wait_seconds", "Waits.");
    exposition_histogram(&x, "a=\"b\"", &h);
    assert_non_null(strstr(out.data, "wait_seconds_bucket{a=\"b\",le=\"1\"} 2\n"));
    assert_non_null(strstr(out.data, "wait_seconds_bucket{a=\"b\",le=\"5\"} 3\n"));
    assert_non_null(strstr(out.data, "wait_seconds_bucket{a=\"b\",le=\"+Inf\"} 4\n"));
    assert_non_null(strstr(out.data, "wait_seconds_count{a=\"b\"} 4\n"));
    buf_deinit(&out);
}

static void both_formats_name_counters_as_they_should(void **state)
{
    (void)state;
    struct buf out = {0};
    struct exposition x = {.out = &out};
    exposition_one(&x, METRIC_COUNTER, "a", "Help.", 0.1);
    exposition_end(&x);
    assert_string_equal(out.data, "# HELP a_total Help.\n# TYPE a_total counter\na_total 0.1\n");
    buf_clear(&out);
    x.open_metrics = true;
    exposition_one(&x, METRIC_COUNTER, "a", "Help.", 3);
    exposition_end(&x);
    assert_string_equal(out.data, "# HELP a Help.\n# TYPE a counter\na_total 3\n# EOF\n");
    buf_deinit(&out);
}

static void labels_that_users_choose_make_few_series(void **state)
{
    (void)state;
    struct series s = {0};
    for (int i = 0; i < 10 * SERIES_MAX; i++) {
        struct metric_labels l = {0};
        char team[32];
        snprintf(team, sizeof team, "team%d", i);
        metric_labels_add(&l, "state", "running");
        metric_labels_add(&l, "team", team);
        series_get(&s, &l, NULL)->value++;
    }
    assert_int_equal(smap_size(&s.by_labels), SERIES_MAX + 1);
    struct metric_labels other = {0};
    metric_labels_add(&other, "state", "other");
    metric_labels_add(&other, "team", "other");
    assert_true(series_get(&s, &other, NULL)->value == 9.0 * SERIES_MAX);
    series_deinit(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_of_labels_are_escaped_and_cut),
        cmocka_unit_test(a_histogram_counts_in_the_first_bucket_that_has_the_value),
        cmocka_unit_test(both_formats_name_counters_as_they_should),
        cmocka_unit_test(labels_that_users_choose_make_few_series),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
