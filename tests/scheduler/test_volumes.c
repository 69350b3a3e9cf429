/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/vtimers.h"
#include "scheduler/volumes.h"
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>

#define DRIVERS 3

/* A provider that answers on request of the test. */
struct fake {
    struct cloud_driver base;
    cloud_volumes_fn done;
    void *ctx;
    int n_calls;
    char cluster[CLOUD_NAME_MAX]; /* "" for all */
};

static void fake_volumes(struct cloud_driver *d, const char *region, const char *cluster,
    cloud_volumes_fn done, void *ctx)
{
    struct fake *f = (struct fake *)d;
    assert_string_equal(region, "r");
    assert_null(f->done);
    f->done = done;
    f->ctx = ctx;
    f->n_calls++;
    STR_COPY(f->cluster, cluster ? cluster : "");
}

/* Two instances at once, or none of the first pool. */
static void fake_list(
    struct cloud_driver *d, const char *region, const char *cluster, cloud_list_fn done, void *ctx)
{
    struct fake *f = (struct fake *)d;
    const struct cloud_instance list[] = {{.id = "i-1"}, {.id = "i-2", .cluster = "lab"}};
    assert_string_equal(region, "r");
    assert_null(cluster);
    f->n_calls++;
    done(ctx, NULL, list, 2);
}

static const struct cloud_driver_ops fake_ops = {.provider = "aws",
                                         .volumes = fake_volumes,
                                         .list = fake_list,
                                         .lists_account = true},
                                     without_ops = {.provider = "lambda", .list = fake_list};

struct rig {
    struct vtimers vt;
    struct fake fakes[DRIVERS];
    struct volumes *v;
    int answers;
    char said[256]; /* the last result: ids, then !POOL KIND of the missing pools */
};

static bool nth_pool(void *ctx, size_t i, struct volumes_pool *ret_pool)
{
    struct rig *g = ctx;
    static const char *const names[] = {"a", "b", "c", "none"};
    *ret_pool = (struct volumes_pool){.pool = names[i < 4 ? i : 3],
        .region = "r",
        .driver = i < DRIVERS ? &g->fakes[i].base : NULL};
    return i <= DRIVERS;
}

static int setup(void **state)
{
    struct rig *g = mem_alloc(sizeof(*g));
    vtimers_init(&g->vt, 1787400000000);
    for (int i = 0; i < DRIVERS; i++)
        g->fakes[i].base.ops = i < 2 ? &fake_ops : &without_ops;
    g->v = volumes_create(&(struct volumes_options){
        .pool = nth_pool, .ctx = g, .timers = &g->vt.timers, .cluster_uid = "lab"});
    *state = g;
    return 0;
}

static int teardown(void **state)
{
    struct rig *g = *state;
    volumes_destroy(g->v);
    vtimers_deinit(&g->vt);
    free(g);
    return 0;
}

static void on_read(void *ctx, const struct volumes_reading *r)
{
    struct rig *g = ctx;
    struct buf out = {0};
    g->answers++;
    for (size_t i = 0; i < r->n_found; i++)
        buf_printf(
            &out, "%s ", r->found[i].volume ? r->found[i].volume->id : r->found[i].instance->id);
    for (size_t i = 0; i < r->n_missing; i++)
        buf_printf(&out, "!%s %s ", r->missing[i].pool, err_kind_name(r->missing[i].why->kind));
    STR_COPY(g->said, buf_str(&out));
    buf_deinit(&out);
}

/* id2 "": one volume. */
static void answer(struct rig *g, int i, const char *id, const char *id2)
{
    struct fake *f = &g->fakes[i];
    struct cloud_volume list[2] = {0};
    cloud_volumes_fn done = f->done;
    STR_COPY(list[0].id, id);
    STR_COPY(list[1].id, id2);
    assert_non_null(done);
    f->done = NULL;
    done(f->ctx, NULL, list, *id2 ? 2 : 1);
}

static void refuse(struct rig *g, int i)
{
    struct fake *f = &g->fakes[i];
    struct err e = {ERR_DENIED, "no"};
    cloud_volumes_fn done = f->done;
    assert_non_null(done);
    f->done = NULL;
    done(f->ctx, &e, NULL, 0);
}

static void pass(struct rig *g, int64_t ms)
{
    vtimers_advance(&g->vt, ms);
}

static void who_asks_meanwhile_or_soon_afterwards_gets_the_same_answer(void **state)
{
    struct rig *g = *state;
    volumes_read(g->v, false, on_read, g);
    volumes_read(g->v, false, on_read, g);
    assert_string_equal(g->fakes[0].cluster, "lab");
    answer(g, 0, "v1", "v2");
    assert_int_equal(g->answers, 0);
    answer(g, 1, "v2", "v3"); /* the pools share an account */
    assert_int_equal(g->answers, 2);
    assert_string_equal(g->said, "v1 v2 v3 ");
    pass(g, VOLUMES_KEEP_MS - 1);
    volumes_read(g->v, false, on_read, g);
    assert_int_equal(g->answers, 3);
    assert_int_equal(g->fakes[0].n_calls, 1);
    pass(g, 1);
    volumes_read(g->v, false, on_read, g);
    assert_int_equal(g->answers, 3);
    assert_int_equal(g->fakes[0].n_calls, 2);
    answer(g, 1, "v4", "");
    answer(g, 0, "v5", "");
    assert_string_equal(g->said, "v5 v4 ");
}

static void all_is_another_question(void **state)
{
    struct rig *g = *state;
    volumes_read(g->v, false, on_read, g);
    answer(g, 0, "v1", "");
    answer(g, 1, "v1", "");
    volumes_read(g->v, true, on_read, g);
    assert_int_equal(g->answers, 1);
    assert_string_equal(g->fakes[0].cluster, "");
    answer(g, 0, "v1", "v2");
    answer(g, 1, "v1", "");
    assert_string_equal(g->said, "v1 v2 ");
}

static void a_refusal_takes_nothing_from_the_rest_and_is_asked_again_earlier(void **state)
{
    struct rig *g = *state;
    volumes_read(g->v, false, on_read, g);
    refuse(g, 0);
    answer(g, 1, "v1", "");
    assert_string_equal(g->said, "v1 !a denied ");
    pass(g, VOLUMES_RETRY_MS - 1);
    volumes_read(g->v, false, on_read, g);
    assert_int_equal(g->fakes[0].n_calls, 1);
    pass(g, 1);
    volumes_read(g->v, false, on_read, g);
    assert_int_equal(g->fakes[0].n_calls, 2);
    answer(g, 0, "v2", "");
    answer(g, 1, "v1", "");
    assert_string_equal(g->said, "v2 v1 ");
}

static void nobody_waits_for_ever(void **state)
{
    struct rig *g = *state;
    volumes_read(g->v, false, on_read, g);
    answer(g, 0, "v1", "");
    pass(g, VOLUMES_WAIT_MS - 1);
    assert_int_equal(g->answers, 0);
    pass(g, 1);
    assert_string_equal(g->said, "v1 !b timeout ");
    volumes_read(g->v, false, on_read, g); /* a later reader joins the call in progress */
    assert_int_equal(g->answers, 2);
    assert_string_equal(g->said, "v1 !b timeout ");
    assert_int_equal(g->fakes[1].n_calls, 1);
    answer(g, 1, "v2", "");
    assert_int_equal(g->answers, 2);
    volumes_read(g->v, false, on_read, g);
    assert_string_equal(g->said, "v1 v2 ");
}

static bool no_pool(void *ctx, size_t i, struct volumes_pool *ret_pool)
{
    (void)ctx, (void)i, (void)ret_pool;
    return false;
}

static void without_providers_the_answer_is_there_at_once(void **state)
{
    struct rig *g = *state;
    struct volumes *v = volumes_create(
        &(struct volumes_options){.pool = no_pool, .timers = &g->vt.timers, .cluster_uid = "lab"});
    volumes_read(v, false, on_read, g);
    assert_int_equal(g->answers, 1);
    assert_string_equal(g->said, "");
    volumes_destroy(v);
    volumes_destroy(NULL);
}

/* Drivers are destroyed first, which ends their calls; otherwise waiting readers are not called
 * back. */
static void who_still_waits_at_the_end_is_forgotten(void **state)
{
    struct rig *g = *state;
    volumes_read(g->v, false, on_read, g);
    answer(g, 0, "v1", "");
    volumes_destroy(g->v);
    g->v = NULL;
    assert_int_equal(g->answers, 0);
}

static void instances_of_the_accounts_are_read_once(void **state)
{
    struct rig *g = *state;
    volumes_read_instances(g->v, on_read, g);
    assert_int_equal(g->answers, 1);
    assert_string_equal(g->said, "i-1 i-2 "); /* of both pools: they are the same ones */
    volumes_read_instances(g->v, on_read, g);
    assert_int_equal(g->answers, 2);
    assert_int_equal(g->fakes[0].n_calls, 1);
    assert_int_equal(g->fakes[2].n_calls, 0); /* it cannot list an account */
    pass(g, VOLUMES_KEEP_MS);
    volumes_read_instances(g->v, on_read, g);
    assert_int_equal(g->fakes[0].n_calls, 2);
}

int main(void)
{
#define RIG(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        RIG(who_asks_meanwhile_or_soon_afterwards_gets_the_same_answer),
        RIG(all_is_another_question),
        RIG(instances_of_the_accounts_are_read_once),
        RIG(a_refusal_takes_nothing_from_the_rest_and_is_asked_again_earlier),
        RIG(nobody_waits_for_ever),
        RIG(without_providers_the_answer_is_there_at_once),
        RIG(who_still_waits_at_the_end_is_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
