/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/str.h"
#include "base/vtimers.h"
#include "scheduler/tick.h"

#define LEASE_MS 30000

/* A tick over a disk that the test fills and empties. */
struct bench {
    struct vtimers vt;
    struct commit_port port;
    struct tick *tick;
    struct model *model;
    struct planner *planner;
    bool full, under_way;
    int told, refused;
};

static void on_start(struct commit_port *port, const struct db_batch *b)
{
    struct bench *w = (struct bench *)((char *)port - offsetof(struct bench, port));
    (void)b;
    w->under_way = true;
}

static void on_effects(void *ctx, const struct db_batch *committed)
{
    (void)ctx, (void)committed;
}

static void on_fatal(void *ctx, const struct err *e)
{
    (void)ctx;
    fail_msg("%s", e->text);
}

static void on_told(void *ctx, const struct err *e, int64_t id)
{
    struct bench *w = ctx;
    (void)id;
    w->told += !e;
    w->refused += e != NULL;
}

static void run(struct bench *w, int64_t ms)
{
    vtimers_advance(&w->vt, ms);
    while (w->under_way) {
        struct err e;
        w->under_way = false;
        tick_committed(w->tick, w->full ? err_set(&e, ERR_NO_SPACE, "full") : 0, &e);
        vtimers_advance(&w->vt, 0);
    }
}

static int set_up(void **state)
{
    static struct bench w;
    struct model_options o = {.cluster_uid = "0123456789abcdef", .lease_ms = LEASE_MS};
    w = (struct bench){.port = {on_start}};
    vtimers_init(&w.vt, 1700000000000);
    w.model = model_create(&o);
    w.planner = planner_create();
    w.tick = tick_create(&(struct tick_options){.model = w.model,
        .planner = w.planner,
        .timers = &w.vt.timers,
        .commit = &w.port,
        .effects = on_effects,
        .fatal = on_fatal,
        .ctx = &w});
    *state = &w;
    return 0;
}

static int tear_down(void **state)
{
    struct bench *w = *state;
    tick_destroy(w->tick);
    planner_destroy(w->planner);
    model_destroy(w->model);
    vtimers_deinit(&w->vt);
    return 0;
}

static void post_pool(struct bench *w, const char *name, tick_reply_fn reply)
{
    struct pool_row pool = {0};
    struct event ev = {.type = EV_POOL, .pool = &pool};
    STR_COPY(pool.name, name);
    tick_post(w->tick, &ev, reply, w);
}

static void post_join(struct bench *w)
{
    struct node_row node = {.name = "n1",
        .pool = "base",
        .total = {.cpus = 4, .memory_mib = 1024},
        .notice_deadline = WALL_NONE,
        .joined_at = WALL_NONE,
        .gone_at = WALL_NONE};
    struct event ev = {.type = EV_JOIN, .join = {.node = &node, .instance = CORE_ID_NONE}};
    STR_COPY(node.key_hash, "k1");
    tick_post(w->tick, &ev, on_told, w);
}

static void a_full_disk_keeps_what_came_and_refuses_what_comes(void **state)
{
    struct bench *w = *state;
    w->full = true;
    post_pool(w, "base", on_told);
    run(w, 0);
    assert_true(tick_is_full(w->tick));
    post_pool(w, "other", on_told);
    run(w, 0);
    assert_int_equal(w->told, 0);
    assert_int_equal(w->refused, 1);
    w->full = false;
    run(w, 60000);
    assert_int_equal(w->told, 1);
    assert_false(tick_is_full(w->tick));
    assert_non_null(model_pool(w->model, "base"));
    assert_null(model_pool(w->model, "other"));
}

/* Their heartbeats could not be taken. */
static void a_full_disk_costs_no_node_its_lease(void **state)
{
    struct bench *w = *state;
    post_pool(w, "base", on_told);
    post_join(w);
    run(w, 0);
    assert_int_equal(w->told, 2);
    w->full = true;
    post_pool(w, "other", on_told);
    run(w, 0);
    run(w, LEASE_MS);
    w->full = false;
    run(w, LEASE_MS);
    run(w, 0);
    assert_false(tick_is_full(w->tick));
    assert_int_equal(model_node(w->model, 1)->row.state, NODE_UP);
    run(w, LEASE_MS + 1);
    assert_int_equal(model_node(w->model, 1)->row.state, NODE_LOST);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_full_disk_keeps_what_came_and_refuses_what_comes),
        TEST(a_full_disk_costs_no_node_its_lease),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
