/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/scheduler/rig.h"

#include "base/mem.h"
#include "base/str.h"
#include <stdlib.h>
#include <string.h>

/* ---- the provider ---- */

static struct call *add_call(struct cloud_driver *d, enum call_kind kind, void *ctx)
{
    struct fixture *f = LIST_ENTRY(d, struct fixture, driver);
    assert_true(f->n_calls < CALLS_MAX);
    struct call *c = &f->calls[f->n_calls++];
    *c = (struct call){.kind = kind, .at = clock_mono(&f->lab->vt.clock), .ctx = ctx};
    return c;
}

struct cloud_instance *rig_machine(struct fixture *f, const char *token)
{
    for (size_t i = 0; i < f->n_machines; i++)
        if (str_eq(f->machines[i].token, token))
            return &f->machines[i];
    return NULL;
}

struct cloud_instance *rig_add_machine(struct fixture *f, const char *token)
{
    struct cloud_instance *m = &f->machines[f->n_machines++];
    *m = (struct cloud_instance){
        .state = CLOUD_RUNNING, .launched_at = WALL_NONE, .ended_at = WALL_NONE};
    snprintf(m->id, sizeof(m->id), "i-%zu", f->n_machines);
    STR_COPY(m->token, token);
    return m;
}

static void fake_launch(
    struct cloud_driver *d, const struct cloud_launch *l, cloud_launch_fn done, void *ctx)
{
    struct call *c = add_call(d, CALL_LAUNCH, ctx);
    STR_COPY(c->token, l->token);
    STR_COPY(c->zone, l->zone);
    c->user_data = mem_strdup(l->user_data);
    c->market = l->market;
    c->launched = done;
    c->refused = l->refused;
    c->n_others = l->n_alternatives;
    for (size_t i = 0; i < l->n_alternatives; i++)
        c->others[i] = l->alternatives[i];
}

static void fake_list(
    struct cloud_driver *d, const char *region, const char *cluster, cloud_list_fn done, void *ctx)
{
    (void)region, (void)cluster;
    add_call(d, CALL_LIST, ctx)->listed = done;
}

static void fake_terminate(struct cloud_driver *d, const char *region, const char *const *ids,
    size_t n, cloud_done_fn done, void *ctx)
{
    (void)region;
    struct call *c = add_call(d, CALL_TERMINATE, ctx);
    assert_int_equal(n, 1);
    STR_COPY(c->id, ids[0]);
    c->done = done;
}

static void fake_prices(struct cloud_driver *d, const char *region, const char *const *types,
    size_t n, cloud_prices_fn done, void *ctx)
{
    (void)region, (void)types;
    assert_int_equal(n, 1);
    add_call(d, CALL_PRICES, ctx)->prices = done;
}

static bool fake_hides(const struct cloud_driver *d, const char *id)
{
    assert_true(str_starts(id, "i-"));
    return LIST_ENTRY(d, struct fixture, driver)->is_hiding;
}

const struct cloud_driver_ops rig_ops = {.provider = "aws",
    .hides = fake_hides,
    .launch = fake_launch,
    .list = fake_list,
    .terminate = fake_terminate,
    .prices = fake_prices};

static void answer_launch(struct fixture *f, struct call *c)
{
    struct err e;
    if (f->launch_error) {
        err_set(&e, f->launch_error, "scripted");
        c->launched(c->ctx, &e, NULL);
        return;
    }
    struct cloud_instance *m = rig_machine(f, c->token);
    m = m ? m : rig_add_machine(f, c->token);
    c->launched(c->ctx, NULL, m);
}

static void answer_terminate(struct fixture *f, struct call *c)
{
    struct err e;
    if (f->terminate_error) {
        err_set(&e, f->terminate_error, "scripted");
        c->done(c->ctx, &e);
        return;
    }
    for (size_t i = 0; i < f->n_machines; i++)
        if (str_eq(f->machines[i].id, c->id) && f->machines[i].state != CLOUD_GONE)
            f->machines[i].state = CLOUD_STOPPING;
    c->done(c->ctx, NULL);
}

static void answer_list(struct fixture *f, struct call *c)
{
    struct err e;
    if (f->list_error) {
        err_set(&e, f->list_error, "scripted");
        c->listed(c->ctx, &e, NULL, 0);
    } else {
        c->listed(c->ctx, NULL, f->machines, f->n_machines);
    }
}

void rig_answer(struct fixture *f, struct call *c)
{
    c->answered = true;
    if (c->kind == CALL_LAUNCH)
        answer_launch(f, c);
    else if (c->kind == CALL_LIST)
        answer_list(f, c);
    else if (c->kind == CALL_TERMINATE)
        answer_terminate(f, c);
    else
        c->prices(c->ctx, NULL, NULL, 0);
}

/* Answers calls that are not by hand, until there are none. */
void rig_settle(struct fixture *f)
{
    bool moved = true;
    while (moved) {
        moved = false;
        lab_tick(f->lab);
        for (size_t i = 0; i < f->n_calls; i++) {
            if (!f->calls[i].answered && !f->by_hand[f->calls[i].kind]) {
                rig_answer(f, &f->calls[i]);
                moved = true;
            }
        }
    }
}

/* Advances the time in small steps, answering in each. */
void rig_pass(struct fixture *f, int64_t ms)
{
    for (int64_t left = ms; left > 0; left -= 100) {
        lab_advance(f->lab, left < 100 ? left : 100);
        rig_settle(f);
    }
}

/* ---- the lab around it ---- */

static char *user_data(void *ctx, const struct instance_row *i, const struct provision_pool *pool)
{
    (void)ctx;
    return mem_printf("%s of %s", i->token, pool->name);
}

static void on_released(void *ctx, struct cloud_driver *driver)
{
    (void)ctx;
    LIST_ENTRY(driver, struct fixture, driver)->n_released++;
}

static void add_provision(struct fixture *f)
{
    f->lab->provision = provision_create(&(struct provision_options){.tick = f->lab->tick,
        .timers = &f->lab->vt.timers,
        .prng = &f->prng,
        .cluster_uid = f->lab->meta.cluster_uid,
        .sweep_ms = SWEEP_MS,
        .busy_sweep_ms = BUSY_SWEEP_MS,
        .settle_ms = SETTLE_MS,
        .price_ms = PRICE_MS,
        .user_data = user_data,
        .released = on_released,
        .ctx = f});
    if (f->pool.name)
        provision_add_pool(f->lab->provision, &f->pool);
    provision_start(f->lab->provision);
}

int rig_setup(void **state)
{
    struct fixture *f = mem_alloc(sizeof(*f));
    void *lab;
    lab_setup(&lab);
    f->lab = lab;
    f->driver.ops = &rig_ops;
    prng_init(&f->prng, 1);
    f->pool = (struct provision_pool){.name = "burst", .driver = &f->driver, .region = "r"};
    struct pool_row pool = {.name = "burst",
        .elastic = true,
        .provider = "aws",
        .region = "r",
        .max_nodes = 4,
        .idle_timeout_ms = 1000,
        .cooldown_ms = 1000,
        .boot_timeout_ms = 600000,
        .refusal_backoff_ms = 600000};
    struct offer_row offer = {.pool = "burst",
        .zone = "z",
        .type = "t",
        .market = MARKET_SPOT,
        .total = {.cpus = 4, .memory_mib = 1024},
        .price_uusd_h = 1,
        .on_demand_uusd_h = 2,
        .avoid_until = MONO_NONE};
    lab_post(f->lab, (struct event){.type = EV_POOL, .pool = &pool}, NULL);
    lab_post(f->lab, (struct event){.type = EV_OFFER, .offer = &offer}, NULL);
    lab_tick(f->lab);
    add_provision(f);
    rig_settle(f);
    f->lab->n_commits = 0;
    *state = f;
    return 0;
}

int rig_teardown(void **state)
{
    struct fixture *f = *state;
    void *lab = f->lab;
    lab_teardown(&lab);
    for (size_t i = 0; i < f->n_calls; i++)
        free(f->calls[i].user_data);
    free(f);
    return 0;
}

void rig_restart(struct fixture *f)
{
    lab_restart(f->lab);
    for (size_t i = 0; i < f->n_calls; i++)
        f->calls[i].answered = true; /* no caller is left */
    add_provision(f);
    rig_settle(f);
}

size_t rig_count(const struct fixture *f, enum call_kind kind)
{
    size_t n = 0;
    for (size_t i = 0; i < f->n_calls; i++)
        n += f->calls[i].kind == kind;
    return n;
}

struct call *rig_last(struct fixture *f, enum call_kind kind)
{
    for (size_t i = f->n_calls; i-- > 0;)
        if (f->calls[i].kind == kind)
            return &f->calls[i];
    return NULL;
}

struct instance *rig_instance(struct fixture *f, int64_t id)
{
    return model_instance(f->lab->model, id);
}

/* A job that needs a machine. */
void rig_demand(struct fixture *f)
{
    lab_submit(f->lab, 4, NULL);
    rig_settle(f);
}

void rig_end(struct fixture *f, int64_t id)
{
    struct event ev = {.type = EV_END_INSTANCE, .end_instance = {.instance = id}};
    lab_post(f->lab, (struct event){.type = EV_CANCEL, .cancel = {.job = 1}}, NULL);
    lab_post(f->lab, ev, NULL);
    rig_settle(f);
}

struct provision_stats rig_stats(const struct fixture *f)
{
    struct provision_stats s;
    provision_get_stats(f->lab->provision, &s);
    return s;
}
