/* SPDX-License-Identifier: Apache-2.0
 *
 * Machines that a pool keeps without demand, by hour of the week.
 */
#include "tests/core/lab.h"

#include "base/mem.h"
#include "base/str.h"
#include "scheduler/core/supply/base_load.h"
#include <inttypes.h>
#include <string.h>

#define MINUTE_MS 60000LL
#define BOOT_MS (2 * MINUTE_MS)
#define SPRING_S 1711846800 /* 2024-03-31T01:00:00Z: 02:00 becomes 03:00 in "Odd" */

static int load_odd(void *ctx, const char *name, struct time_zone *ret_zone, struct err *e)
{
    (void)ctx;
    if (!str_eq(name, "Odd"))
        return err_set(e, ERR_NOT_FOUND, "there is no time zone '%s'", name);
    ret_zone->n = 2;
    ret_zone->spans = mem_array(2, sizeof *ret_zone->spans);
    ret_zone->spans[0] = (struct zone_span){INT64_MIN, 3600};
    ret_zone->spans[1] = (struct zone_span){SPRING_S, 7200};
    return 0;
}

static const struct zone_source source = {.load = load_odd};

struct world {
    struct lab l;
    struct zones zones;
};

static struct wall moment(const char *iso)
{
    struct wall at;
    assert_int_equal(time_parse_iso(iso, &at, NULL), 0);
    return at;
}

/* A pool "burst" of up to 8 machines, each with 8 CPUs. */
static void set_up(struct world *w, const char *iso)
{
    *w = (struct world){.zones.source = &source};
    struct model_options o = {.cluster_uid = "0123456789abcdef",
        .lease_ms = 400LL * 24 * 60 * MINUTE_MS,
        .zones = &w->zones};
    w->l = (struct lab){.m = model_create(&o), .p = planner_create(), .now = {.mono = {5000}}};
    w->l.now.wall = moment(iso);
    lab_elastic(&w->l, "burst", 8, "large", 8);
}

static void tear_down(struct world *w)
{
    lab_deinit(&w->l);
    zones_deinit(&w->zones);
}

static void set_base(struct world *w, int32_t min_nodes, int32_t warm_nodes, const char *windows)
{
    struct pool_row p = lab_pool(&w->l, "burst");
    p.min_nodes = min_nodes;
    p.warm_nodes = warm_nodes;
    STR_COPY(p.windows, windows);
    lab_set_pool(&w->l, p);
}

static const struct pool *burst(const struct world *w)
{
    return model_pool(w->l.m, "burst");
}

static int64_t launches(const struct world *w)
{
    int64_t n = 0;
    LIST_FOREACH (&burst(w)->offers, l)
        n += LIST_ENTRY(l, struct offer, in_pool)->row.launches;
    return n;
}

static int64_t coming(const struct world *w)
{
    return burst(w)->n_coming;
}

/* Machines whose boot is over join. Returns when the next one does, or limit. */
static struct wall join_booted(struct world *w, struct wall limit)
{
    int64_t ready = CORE_ID_NONE;
    LIST_FOREACH (model_instances(w->l.m), li) {
        const struct instance *i = LIST_ENTRY(li, struct instance, in_all);
        if (i->row.state != INSTANCE_INTENDED)
            continue;
        if (i->row.intended_at.ms + BOOT_MS <= w->l.now.wall.ms) {
            ready = i->row.id;
            break;
        }
        limit.ms =
            i->row.intended_at.ms + BOOT_MS < limit.ms ? i->row.intended_at.ms + BOOT_MS : limit.ms;
    }
    if (ready == CORE_ID_NONE)
        return limit;
    lab_bring_up(&w->l, ready, 8);
    return w->l.now.wall;
}

static int64_t first_ending(const struct world *w)
{
    LIST_FOREACH (model_instances(w->l.m), l)
        if (LIST_ENTRY(l, struct instance, in_all)->row.state == INSTANCE_ENDING)
            return LIST_ENTRY(l, struct instance, in_all)->row.id;
    return CORE_ID_NONE;
}

static void end_ending(struct world *w)
{
    for (int64_t id; (id = first_ending(w)) != CORE_ID_NONE;)
        lab_apply(&w->l,
            (struct event){.type = EV_INSTANCE_GONE, .gone = {id, false, WALL_NONE, "terminated"}});
}

/* Decides and boots machines as the time passes. */
static void until(struct world *w, const char *iso)
{
    const struct wall at = moment(iso);
    for (;;) {
        lab_plan(&w->l);
        end_ending(w);
        struct wall next = join_booted(w, at);
        if (next.ms == w->l.now.wall.ms && next.ms < at.ms)
            continue;
        struct mono wake = plan_wake(w->l.p, w->l.m, w->l.now);
        if (mono_is_set(wake) && wake.ms - w->l.now.mono.ms < next.ms - w->l.now.wall.ms)
            next.ms = w->l.now.wall.ms + wake.ms - w->l.now.mono.ms;
        if (w->l.now.wall.ms >= at.ms)
            break;
        lab_wait(&w->l, next.ms - w->l.now.wall.ms);
    }
}

static void the_least_is_launched_kept_and_replaced(void **state)
{
    struct world w;
    (void)state;
    set_up(&w, "2024-01-01T10:00:00Z");
    set_base(&w, 2, 0, "");
    lab_plan(&w.l);
    assert_int_equal(coming(&w), 2);
    until(&w, "2024-01-01T12:00:00Z"); /* long beyond idle_timeout */
    assert_int_equal(burst(&w)->n_up, 2);
    assert_int_equal(launches(&w), 2);
    int64_t lost = LIST_ENTRY(list_first(model_nodes(w.l.m)), struct node, in_all)->row.id;
    lab_notice(&w.l, lost, NOTICE_TYPE_RECLAIM, 120000);
    lab_plan(&w.l);
    assert_int_equal(coming(&w), 1);
    set_base(&w, 0, 0, "");
    until(&w, "2024-01-01T13:00:00Z");
    assert_int_equal(burst(&w)->n_nodes, 0);
    tear_down(&w);
}

static void warm_nodes_are_beyond_those_with_jobs(void **state)
{
    struct world w;
    (void)state;
    set_up(&w, "2024-01-01T10:00:00Z");
    set_base(&w, 0, 1, "");
    until(&w, "2024-01-01T11:00:00Z");
    assert_int_equal(burst(&w)->n_up, 1);
    int64_t job = lab_submit_cpus(&w.l, 8);
    lab_plan(&w.l);
    assert_true(lab_runs(&w.l, job)); /* at once */
    assert_int_equal(coming(&w), 1);
    until(&w, "2024-01-01T12:00:00Z");
    assert_int_equal(burst(&w)->n_up, 2);
    lab_started(&w.l, job);
    lab_ended(&w.l, job, END_SUCCEEDED, 0);
    until(&w, "2024-01-01T13:00:00Z");
    assert_int_equal(burst(&w)->n_up, 1);
    assert_int_equal(launches(&w), 2);
    tear_down(&w);
}

/* 1 is Sunday, 2 Monday, .. 64 Saturday: 62 is mon-fri. 2024-01-01 is a Monday. */
static void a_window_has_its_machines_when_it_opens_and_lets_them_go_when_it_closes(void **state)
{
    struct world w;
    (void)state;
    set_up(&w, "2024-01-01T05:00:00Z");
    set_base(&w, 1, 0, "office 62 480 1080 UTC 4 0\nlunch 62 720 780 UTC 6 0\n");
    until(&w, "2024-01-01T07:50:00Z");
    assert_int_equal(burst(&w)->n_nodes, 1);
    until(&w, "2024-01-01T08:00:00Z"); /* one boot was observed: two minutes */
    assert_int_equal(burst(&w)->n_up, 4);
    until(&w, "2024-01-01T12:00:00Z");
    assert_int_equal(burst(&w)->n_up, 6);
    until(&w, "2024-01-01T12:59:00Z");
    assert_int_equal(burst(&w)->n_up, 6);
    until(&w, "2024-01-01T13:05:00Z");
    assert_int_equal(burst(&w)->n_up, 4);
    until(&w, "2024-01-01T17:59:59Z");
    assert_int_equal(burst(&w)->n_up, 4);
    until(&w, "2024-01-01T18:05:00Z");
    assert_int_equal(burst(&w)->n_nodes, 1);
    until(&w, "2024-01-01T23:00:00Z");
    assert_int_equal(launches(&w), 6);
    tear_down(&w);
}

static void a_window_with_less_ends_nothing_before_it_opens(void **state)
{
    struct world w;
    (void)state;
    set_up(&w, "2024-01-01T05:00:00Z");
    set_base(&w, 3, 0, "night 127 1200 360 UTC 0 0\n");
    until(&w, "2024-01-01T05:59:00Z");
    assert_int_equal(burst(&w)->n_up + coming(&w), 3); /* on their way to six o'clock */
    until(&w, "2024-01-01T06:00:00Z");
    assert_int_equal(burst(&w)->n_up, 3);
    until(&w, "2024-01-01T19:59:59Z");
    assert_int_equal(burst(&w)->n_up, 3);
    until(&w, "2024-01-01T20:05:00Z");
    assert_int_equal(burst(&w)->n_nodes, 0);
    assert_int_equal(launches(&w), 3);
    tear_down(&w);
}

static void clock_changes_move_windows(void **state)
{
    struct world w;
    (void)state;
    set_up(&w, "2024-03-31T00:00:00Z");
    /* Sundays 03:00 to 04:00 in Odd: the clocks jump from 02:00 to 03:00 at 01:00Z */
    set_base(&w, 0, 0, "early 1 180 240 Odd 2 0\n");
    until(&w, "2024-03-31T00:50:00Z");
    assert_int_equal(burst(&w)->n_up, 0);
    until(&w, "2024-03-31T01:00:00Z");
    assert_int_equal(burst(&w)->n_up, 2);
    until(&w, "2024-03-31T01:59:00Z");
    assert_int_equal(burst(&w)->n_up, 2);
    until(&w, "2024-03-31T02:05:00Z");
    assert_int_equal(burst(&w)->n_nodes, 0);
    tear_down(&w);
}

static void no_limit_is_exceeded(void **state)
{
    struct world w;
    (void)state;
    set_up(&w, "2024-01-01T10:00:00Z");
    struct pool_row p = lab_pool(&w.l, "burst");
    p.min_nodes = 5;
    p.max_nodes = 3;
    lab_set_pool(&w.l, p);
    lab_plan(&w.l);
    assert_int_equal(coming(&w), 3);
    p.max_nodes = 8;
    p.max_uusd_h = 4 * LAB_SPOT_UUSD_H + LAB_SPOT_UUSD_H / 2;
    lab_set_pool(&w.l, p);
    lab_plan(&w.l);
    assert_int_equal(coming(&w), 4);
    lab_apply(&w.l, (struct event){.type = EV_LIMITS, .limits = {.max_nodes = 4}});
    p.max_uusd_h = 0;
    lab_set_pool(&w.l, p);
    lab_plan(&w.l);
    assert_int_equal(coming(&w), 4);
    tear_down(&w);
}

static void jobs_take_what_is_coming_and_add_what_they_need(void **state)
{
    struct world w;
    (void)state;
    set_up(&w, "2024-01-01T10:00:00Z");
    set_base(&w, 2, 0, "");
    lab_plan(&w.l);
    for (int k = 0; k < 3; k++)
        lab_submit_cpus(&w.l, 8);
    lab_plan(&w.l);
    assert_int_equal(coming(&w), 3); /* two of the base load, and one more */
    tear_down(&w);
}

static void a_node_that_takes_no_work_is_replaced(void **state)
{
    struct world w;
    (void)state;
    set_up(&w, "2024-01-01T10:00:00Z");
    set_base(&w, 1, 0, "");
    until(&w, "2024-01-01T10:05:00Z");
    int64_t node = LIST_ENTRY(list_first(model_nodes(w.l.m)), struct node, in_all)->row.id;
    lab_apply(&w.l, (struct event){.type = EV_DRAIN, .drain.node = node});
    lab_plan(&w.l);
    assert_int_equal(coming(&w), 1);
    until(&w, "2024-01-01T10:30:00Z");
    assert_int_equal(burst(&w)->n_up, 1);
    assert_int_equal(burst(&w)->n_nodes, 1);
    tear_down(&w);
}

static void what_holds_and_what_comes_next_is_known(void **state)
{
    struct world w;
    struct base_view v;
    (void)state;
    set_up(&w, "2024-01-01T05:00:00Z");
    set_base(&w, 1, 0, "office 62 480 1080 UTC 4 2\n");
    core_base_load(burst(&w), w.l.now.wall, &v);
    assert_int_equal(v.now.min_nodes, 1);
    assert_null(v.now.window);
    assert_int_equal(v.next.min_nodes, 4);
    assert_int_equal(v.next.warm_nodes, 2);
    assert_string_equal(v.next.window->window.name, "office");
    assert_int_equal(v.next_at.ms, moment("2024-01-01T08:00:00Z").ms);
    assert_true(v.launches_from.ms < v.next_at.ms);
    const struct job_row row = lab_job(1);
    int64_t job = lab_submit(&w.l, &row);
    assert_true(lab_has_reason(&w.l, job, "base-load",
        "pool burst keeps at least 1 node, 0 without a job (outside of windows); from "
        "2024-01-01T08:00:00"));
    assert_true(lab_has_reason(
        &w.l, job, "base-load", "(UTC): at least 4 nodes, 2 without a job (window office)"));
    core_base_load(burst(&w), moment("2024-01-05T09:00:00Z"), &v);
    assert_int_equal(v.now.min_nodes, 4);
    assert_int_equal(v.next.min_nodes, 1);
    assert_int_equal(v.next_at.ms, moment("2024-01-05T18:00:00Z").ms);
    assert_false(wall_is_set(v.launches_from));
    set_base(&w, 3, 0, "");
    core_base_load(burst(&w), w.l.now.wall, &v);
    assert_int_equal(v.now.min_nodes, 3);
    assert_false(wall_is_set(v.next_at));
    tear_down(&w);
}

static void the_history_says_what_changed(void **state)
{
    struct world w;
    (void)state;
    set_up(&w, "2024-01-01T07:00:00Z");
    set_base(&w, 1, 0, "office 62 480 1080 UTC 4 2\n");
    until(&w, "2024-01-01T08:00:00Z");
    lab_take(&w.l);
    const struct history_row *h = lab_history(&w.l, "base-load");
    assert_non_null(h);
    assert_non_null(strstr(h->text, "pool burst keeps 4 nodes"));
    assert_non_null(strstr(h->text, "window office"));
    assert_int_equal(h->a, 4);
    tear_down(&w);
}

static void malformed_windows_are_refused(void **state)
{
    static const char *const bad[] = {"office", "office 62 480 1080 UTC 4\n",
        "office 0 480 1080 UTC 4 0\n", "office 128 480 1080 UTC 4 0\n",
        "office 62 1440 1080 UTC 4 0\n", "office 62 480 -1 UTC 4 0\n",
        "office 62 480 1080 U?C 4 0\n", "office 62 480 1080 UTC -4 0\n",
        "office 62 480 1080 UTC 4 10001\n", "office 62 480 1080 UTC 4 0 x\n",
        "office 62 480 1080 Mars/Base 4 0\n"};
    struct pool_window v[POOL_WINDOWS_MAX];
    struct world w;
    size_t n;
    (void)state;
    set_up(&w, "2024-01-01T07:00:00Z");
    for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
        struct pool_row p = lab_pool(&w.l, "burst");
        struct event ev = {.type = EV_POOL, .pool = &p};
        STR_COPY(p.windows, bad[k]);
        assert_true(lab_try(&w.l, &ev, NULL) < 0);
    }
    char nine[POOL_WINDOWS_TEXT_MAX] = "";
    for (int k = 0; k < POOL_WINDOWS_MAX + 1; k++)
        strcat(nine, "w 62 480 1080 UTC 4 0\n");
    assert_int_equal(pool_windows_parse(nine, v, &n, &w.l.e), ERR_INVALID);
    assert_int_equal(n, 0);
    tear_down(&w);
}

static void windows_of_the_longest_names_are_read_as_written(void **state)
{
    struct pool_window v[POOL_WINDOWS_MAX], read[POOL_WINDOWS_MAX];
    char text[POOL_WINDOWS_TEXT_MAX];
    struct err e;
    size_t n;
    (void)state;
    memset(v, 0, sizeof v);
    for (int k = 0; k < POOL_WINDOWS_MAX; k++) {
        memset(v[k].window.name, 'a' + k, WINDOW_NAME_MAX - 1);
        memset(v[k].tz, 'Z', ZONE_NAME_MAX - 1);
        v[k].window.days = 127;
        v[k].window.from_min = v[k].window.to_min = 1439;
        v[k].min_nodes = v[k].warm_nodes = POOL_BASE_MAX;
    }
    pool_windows_format(v, POOL_WINDOWS_MAX, text);
    assert_int_equal(pool_windows_parse(text, read, &n, &e), 0);
    assert_int_equal(n, POOL_WINDOWS_MAX);
    for (int k = 0; k < POOL_WINDOWS_MAX; k++) {
        assert_string_equal(read[k].window.name, v[k].window.name);
        assert_string_equal(read[k].tz, v[k].tz);
        assert_int_equal(read[k].window.to_min, 1439);
        assert_int_equal(read[k].warm_nodes, POOL_BASE_MAX);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_least_is_launched_kept_and_replaced),
        cmocka_unit_test(warm_nodes_are_beyond_those_with_jobs),
        cmocka_unit_test(a_window_has_its_machines_when_it_opens_and_lets_them_go_when_it_closes),
        cmocka_unit_test(a_window_with_less_ends_nothing_before_it_opens),
        cmocka_unit_test(clock_changes_move_windows),
        cmocka_unit_test(no_limit_is_exceeded),
        cmocka_unit_test(jobs_take_what_is_coming_and_add_what_they_need),
        cmocka_unit_test(a_node_that_takes_no_work_is_replaced),
        cmocka_unit_test(what_holds_and_what_comes_next_is_known),
        cmocka_unit_test(the_history_says_what_changed),
        cmocka_unit_test(malformed_windows_are_refused),
        cmocka_unit_test(windows_of_the_longest_names_are_read_as_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
