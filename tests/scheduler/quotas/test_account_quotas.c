/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/vtimers.h"
#include "scheduler/account_quotas.h"
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>

/* A provider that answers on request of the test. */
struct fake {
    struct cloud_driver base;
    cloud_quotas_fn done;
    void *ctx;
    int n_calls;
};

static void fake_quotas(struct cloud_driver *d, const char *region,
    const struct cloud_machine *machines, size_t n, cloud_quotas_fn done, void *ctx)
{
    struct fake *f = (struct fake *)d;
    assert_string_equal(region, "r");
    assert_int_equal(n, 2);
    assert_string_equal(machines[1].type, "big");
    assert_null(f->done);
    f->done = done;
    f->ctx = ctx;
    f->n_calls++;
}

static const struct cloud_driver_ops full = {.provider = "aws",
                                         .quotas = fake_quotas,
                                         .quotas_page = "the console"},
                                     without = {.provider = "lambda",
                                         .quotas_page = "the dashboard"},
                                     owned = {.provider = "static"};

struct rig {
    struct vtimers vt;
    struct fake fakes[4]; /* two that answer, one without an API, one without quotas */
    struct account_quotas *q;
    int answers;
    char said[256];
};

static bool nth_pool(void *ctx, size_t i, struct account_pool *ret_pool)
{
    struct rig *g = ctx;
    static const char *const names[] = {"a", "b", "c", "d", "reserved"};
    if (i >= 5)
        return false;
    *ret_pool = (struct account_pool){.pool = names[i],
        .region = "r",
        .driver = i < 4 ? &g->fakes[i].base : NULL,
        .machines = {{"small", CLOUD_SPOT, 2, 0}, {"big", CLOUD_SPOT, 8, 4}},
        .n_machines = 2};
    return true;
}

static int setup(void **state)
{
    struct rig *g = mem_alloc(sizeof(*g));
    vtimers_init(&g->vt, 1787400000000);
    g->fakes[0].base.ops = g->fakes[1].base.ops = &full;
    g->fakes[2].base.ops = &without;
    g->fakes[3].base.ops = &owned;
    g->q = account_quotas_create(
        &(struct account_quotas_options){.pool = nth_pool, .ctx = g, .timers = &g->vt.timers});
    *state = g;
    return 0;
}

static int teardown(void **state)
{
    struct rig *g = *state;
    account_quotas_destroy(g->q);
    vtimers_deinit(&g->vt);
    free(g);
    return 0;
}

/* "POOL:NAME=USED/LIMIT(GPUS)+" or "POOL!KIND"; + if every machine has a row. */
static void on_read(void *ctx, const struct account_reading *list, size_t n)
{
    struct rig *g = ctx;
    struct buf out = {0};
    g->answers++;
    for (size_t i = 0; i < n; i++) {
        const struct account_reading *r = &list[i];
        assert_non_null(r->page);
        buf_printf(&out, "%s%s", i > 0 ? " " : "", r->pool);
        if (r->why)
            buf_printf(&out, "!%s", err_kind_name(r->why->kind));
        for (size_t k = 0; k < r->n; k++)
            buf_printf(&out, ":%s=%lld/%lld(%d)", r->list[k].name, (long long)r->list[k].used,
                (long long)r->list[k].limit, (int)r->gpus[r->list[k].machine]);
        if (r->all_machines)
            buf_addc(&out, '+');
    }
    STR_COPY(g->said, buf_str(&out));
    buf_deinit(&out);
}

static void answer(struct rig *g, int i, enum err_kind kind, size_t n)
{
    const struct cloud_quota list[] = {
        {.name = "vcpus", .scope = "r", .machine = 0, .per_machine = 2, .limit = 8, .used = 3},
        {.name = "gpus", .scope = "r", .machine = 1, .per_machine = 4, .limit = 9, .used = -1}};
    struct err e = {.kind = kind};
    cloud_quotas_fn done = g->fakes[i].done;
    assert_non_null(done);
    g->fakes[i].done = NULL;
    done(g->fakes[i].ctx, kind == ERR_NONE ? NULL : &e, list, kind == ERR_NONE ? n : 0);
}

static void pass(struct rig *g, int64_t ms)
{
    vtimers_advance(&g->vt, ms);
}

static void who_asks_meanwhile_or_soon_afterwards_gets_the_same_answer(void **state)
{
    struct rig *g = *state;
    account_quotas_read(g->q, on_read, g);
    account_quotas_read(g->q, on_read, g);
    answer(g, 1, ERR_NONE, 1);
    assert_int_equal(g->answers, 0);
    answer(g, 0, ERR_NONE, 2);
    assert_int_equal(g->answers, 2);
    assert_string_equal(g->said, "a:vcpus=3/8(0):gpus=-1/9(4)+ b:vcpus=3/8(0) c!unsupported");
    pass(g, ACCOUNT_QUOTAS_KEEP_MS - 1);
    account_quotas_read(g->q, on_read, g);
    assert_int_equal(g->answers, 3);
    assert_int_equal(g->fakes[0].n_calls, 1);
    pass(g, 1);
    account_quotas_read(g->q, on_read, g);
    assert_int_equal(g->fakes[0].n_calls, 2);
    answer(g, 0, ERR_NONE, 0);
    answer(g, 1, ERR_NONE, 0);
    assert_string_equal(g->said, "a b c!unsupported");
}

static void a_refusal_takes_nothing_from_the_rest_and_is_asked_again_earlier(void **state)
{
    struct rig *g = *state;
    account_quotas_read(g->q, on_read, g);
    answer(g, 0, ERR_DENIED, 0);
    answer(g, 1, ERR_NONE, 1);
    assert_string_equal(g->said, "a!denied b:vcpus=3/8(0) c!unsupported");
    pass(g, ACCOUNT_QUOTAS_RETRY_MS - 1);
    account_quotas_read(g->q, on_read, g);
    assert_int_equal(g->fakes[0].n_calls, 1);
    pass(g, 1);
    account_quotas_read(g->q, on_read, g);
    assert_int_equal(g->fakes[0].n_calls, 2);
    answer(g, 0, ERR_NONE, 1);
    answer(g, 1, ERR_NONE, 1);
    assert_string_equal(g->said, "a:vcpus=3/8(0) b:vcpus=3/8(0) c!unsupported");
}

static void nobody_waits_for_ever(void **state)
{
    struct rig *g = *state;
    account_quotas_read(g->q, on_read, g);
    answer(g, 0, ERR_NONE, 1);
    pass(g, ACCOUNT_QUOTAS_WAIT_MS - 1);
    assert_int_equal(g->answers, 0);
    pass(g, 1);
    assert_string_equal(g->said, "a:vcpus=3/8(0) b!timeout c!unsupported");
    account_quotas_read(g->q, on_read, g); /* joins the call in progress */
    assert_int_equal(g->answers, 2);
    assert_int_equal(g->fakes[1].n_calls, 1);
    answer(g, 1, ERR_NONE, 1);
    assert_int_equal(g->answers, 2);
    account_quotas_read(g->q, on_read, g);
    assert_string_equal(g->said, "a:vcpus=3/8(0) b:vcpus=3/8(0) c!unsupported");
}

static void who_still_waits_at_the_end_is_forgotten(void **state)
{
    struct rig *g = *state;
    account_quotas_read(g->q, on_read, g);
    answer(g, 0, ERR_NONE, 1);
    account_quotas_destroy(g->q);
    g->q = NULL;
    assert_int_equal(g->answers, 0);
}

int main(void)
{
#define RIG(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        RIG(who_asks_meanwhile_or_soon_afterwards_gets_the_same_answer),
        RIG(a_refusal_takes_nothing_from_the_rest_and_is_asked_again_earlier),
        RIG(nobody_waits_for_ever),
        RIG(who_still_waits_at_the_end_is_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
