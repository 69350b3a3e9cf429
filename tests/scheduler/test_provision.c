/* SPDX-License-Identifier: Apache-2.0
 *
 * Provisioning against a provider that does what the test says: refusals, lost replies, listings that lag,
 * strays, machines that stop by themselves, terminates that fail.
 */
#include "tests/scheduler/lab.h"

#include "base/mem.h"
#include "base/str.h"
#include <stdlib.h>
#include <string.h>

#define SWEEP_MS 60000
#define BUSY_SWEEP_MS 5000
#define SETTLE_MS 30000
#define PRICE_MS 300000
#define MACHINES_MAX 16
#define CALLS_MAX 4000

enum call_kind { CALL_LAUNCH, CALL_LIST, CALL_TERMINATE, CALL_PRICES };

/* One call of the driver, until it is answered. */
struct call {
    enum call_kind kind;
    bool answered;
    struct mono at;
    char token[CLOUD_TOKEN_MAX], id[CLOUD_NAME_MAX], zone[CLOUD_NAME_MAX];
    enum cloud_market market;
    struct cloud_place others[CLOUD_ALTERNATIVES_MAX]; /* borrowed of offers, which stay */
    size_t n_others;
    char *user_data;
    cloud_refused_fn refused;
    union {
        cloud_launch_fn launched;
        cloud_list_fn listed;
        cloud_done_fn done;
        cloud_prices_fn prices;
    };
    void *ctx;
};

struct fixture {
    struct cloud_driver driver; /* first: ops get it */
    struct lab *lab;
    struct prng prng;
    struct call calls[CALLS_MAX];
    size_t n_calls;
    /* The provider's truth, for calls that are answered at once. */
    struct cloud_instance machines[MACHINES_MAX];
    size_t n_machines;
    bool by_hand[4]; /* calls of this kind wait for the test */
    enum err_kind launch_error, list_error, terminate_error;
    int n_released; /* of this driver */
    bool is_hiding; /* listings do not see where the machines are */
    struct provision_pool pool;
};

/* ---- the provider ---- */

static struct call *add_call(struct cloud_driver *d, enum call_kind kind, void *ctx)
{
    struct fixture *f = LIST_ENTRY(d, struct fixture, driver);
    assert_true(f->n_calls < CALLS_MAX);
    struct call *c = &f->calls[f->n_calls++];
    *c = (struct call){.kind = kind, .at = clock_mono(&f->lab->vt.clock), .ctx = ctx};
    return c;
}

static struct cloud_instance *machine(struct fixture *f, const char *token)
{
    for (size_t i = 0; i < f->n_machines; i++)
        if (str_eq(f->machines[i].token, token))
            return &f->machines[i];
    return NULL;
}

static struct cloud_instance *add_machine(struct fixture *f, const char *token)
{
    struct cloud_instance *m = &f->machines[f->n_machines++];
    *m = (struct cloud_instance){.state = CLOUD_RUNNING, .launched_at = WALL_NONE, .ended_at = WALL_NONE};
    snprintf(m->id, sizeof(m->id), "i-%zu", f->n_machines);
    STR_COPY(m->token, token);
    return m;
}

static void fake_launch(struct cloud_driver *d, const struct cloud_launch *l, cloud_launch_fn done, void *ctx)
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

static void fake_terminate(struct cloud_driver *d, const char *region, const char *const *ids, size_t n,
    cloud_done_fn done, void *ctx)
{
    (void)region;
    struct call *c = add_call(d, CALL_TERMINATE, ctx);
    assert_int_equal(n, 1);
    STR_COPY(c->id, ids[0]);
    c->done = done;
}

static void fake_prices(struct cloud_driver *d, const char *region, const char *const *types, size_t n,
    cloud_prices_fn done, void *ctx)
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

static const struct cloud_driver_ops fake_ops = {.provider = "aws",
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
    struct cloud_instance *m = machine(f, c->token);
    m = m ? m : add_machine(f, c->token);
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

static void answer(struct fixture *f, struct call *c)
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

/* Answers what waits for nobody's hand, until nothing moves any more. */
static void settle(struct fixture *f)
{
    bool moved = true;
    while (moved) {
        moved = false;
        lab_turn(f->lab);
        for (size_t i = 0; i < f->n_calls; i++) {
            if (!f->calls[i].answered && !f->by_hand[f->calls[i].kind]) {
                answer(f, &f->calls[i]);
                moved = true;
            }
        }
    }
}

/* Time passes in small steps, each answered. */
static void pass(struct fixture *f, int64_t ms)
{
    for (int64_t left = ms; left > 0; left -= 100) {
        lab_advance(f->lab, left < 100 ? left : 100);
        settle(f);
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

static int setup(void **state)
{
    struct fixture *f = mem_alloc(sizeof(*f));
    void *lab;
    lab_setup(&lab);
    f->lab = lab;
    f->driver.ops = &fake_ops;
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
    lab_turn(f->lab);
    add_provision(f);
    settle(f);
    f->lab->n_commits = 0;
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    void *lab = f->lab;
    lab_teardown(&lab);
    for (size_t i = 0; i < f->n_calls; i++)
        free(f->calls[i].user_data);
    free(f);
    return 0;
}

static void restart(struct fixture *f)
{
    lab_restart(f->lab);
    for (size_t i = 0; i < f->n_calls; i++)
        f->calls[i].answered = true; /* nobody waits for them any more */
    add_provision(f);
    settle(f);
}

static size_t count(const struct fixture *f, enum call_kind kind)
{
    size_t n = 0;
    for (size_t i = 0; i < f->n_calls; i++)
        n += f->calls[i].kind == kind;
    return n;
}

static struct call *last(struct fixture *f, enum call_kind kind)
{
    for (size_t i = f->n_calls; i-- > 0;)
        if (f->calls[i].kind == kind)
            return &f->calls[i];
    return NULL;
}

static struct instance *instance(struct fixture *f, int64_t id)
{
    return model_instance(f->lab->model, id);
}

/* A job that needs a machine. */
static void demand(struct fixture *f)
{
    lab_submit(f->lab, 4, NULL);
    settle(f);
}

static void end(struct fixture *f, int64_t id)
{
    struct event ev = {.type = EV_END_INSTANCE, .end_instance = {.instance = id}};
    lab_post(f->lab, (struct event){.type = EV_CANCEL, .cancel = {.job = 1}}, NULL);
    lab_post(f->lab, ev, NULL);
    settle(f);
}

static struct provision_stats stats(const struct fixture *f)
{
    struct provision_stats s;
    provision_get_stats(f->lab->provision, &s);
    return s;
}

/* ---- launching ---- */

static void a_launch_leaves_after_its_intent_is_on_disk(void **state)
{
    struct fixture *f = *state;
    f->lab->by_hand = true;
    lab_submit(f->lab, 4, NULL);
    lab_turn(f->lab);
    assert_int_equal(f->lab->under_way->changes.n_instances, 1);
    assert_int_equal(count(f, CALL_LAUNCH), 0);
    lab_commit(f->lab, 0);
    assert_int_equal(count(f, CALL_LAUNCH), 1);
    f->lab->by_hand = false;
    const struct call *c = last(f, CALL_LAUNCH);
    assert_string_equal(c->token, instance(f, 1)->row.token);
    assert_string_equal(c->zone, "z");
    assert_int_equal(c->market, CLOUD_SPOT);
    assert_non_null(strstr(c->user_data, c->token));
    settle(f);
    assert_int_equal(instance(f, 1)->row.state, INSTANCE_LAUNCHED);
    assert_string_equal(instance(f, 1)->row.provider_id, "i-1");
}

static void a_definite_refusal_ends_the_intent_and_nothing_else_does(void **state)
{
    static const struct {
        enum err_kind kind;
        bool definite;
    } kinds[] = {{ERR_NO_CAPACITY, true}, {ERR_QUOTA, true}, {ERR_DENIED, true}, {ERR_CONFIG, true},
        {ERR_UNSUPPORTED, true}, {ERR_CONFLICT, true}, {ERR_TIMEOUT, false}, {ERR_IO, false},
        {ERR_THROTTLED, false}, {ERR_UNAVAILABLE, false}, {ERR_INVALID, false}, {ERR_NOT_FOUND, false},
        {ERR_CORRUPT, false}, {ERR_INTERNAL, false}};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        struct fixture *f = *state;
        f->launch_error = kinds[i].kind;
        demand(f);
        pass(f, 1000);
        assert_int_equal(instance(f, 1) == NULL, kinds[i].definite);
        assert_int_equal(stats(f).refusals > 0, kinds[i].definite);
        teardown(state);
        setup(state);
    }
}

static void lost_replies_are_repeated_under_the_same_token(void **state)
{
    struct fixture *f = *state;
    f->launch_error = ERR_TIMEOUT;
    demand(f);
    pass(f, 200000);
    size_t n = count(f, CALL_LAUNCH);
    assert_true(n > 6); /* a flow's tries are not the end of it */
    for (size_t i = 0; i < f->n_calls; i++)
        if (f->calls[i].kind == CALL_LAUNCH) {
            assert_string_equal(f->calls[i].token, instance(f, 1)->row.token);
            assert_string_equal(f->calls[i].user_data, last(f, CALL_LAUNCH)->user_data);
        }
    assert_int_equal(stats(f).refusals, 0);
    f->launch_error = ERR_NONE;
    pass(f, 60000);
    assert_int_equal(instance(f, 1)->row.state, INSTANCE_LAUNCHED);
    assert_int_equal(f->n_machines, 1);
}

static void a_machine_whose_reply_was_lost_is_found_by_its_token(void **state)
{
    struct fixture *f = *state;
    f->launch_error = ERR_TIMEOUT;
    demand(f);
    add_machine(f, last(f, CALL_LAUNCH)->token); /* it was launched all the same */
    pass(f, 2 * SWEEP_MS);
    assert_int_equal(instance(f, 1)->row.state, INSTANCE_LAUNCHED);
    assert_string_equal(instance(f, 1)->row.provider_id, "i-1");
    assert_int_equal(count(f, CALL_TERMINATE), 0);
    assert_int_equal(stats(f).strays, 0);
}

/* Who may not call is refused whatever there is. */
static void a_refusal_after_a_lost_reply_is_not_believed(void **state)
{
    struct fixture *f = *state;
    f->launch_error = ERR_TIMEOUT;
    demand(f);
    f->launch_error = ERR_DENIED;
    add_machine(f, last(f, CALL_LAUNCH)->token);
    pass(f, 2 * SWEEP_MS);
    assert_int_equal(instance(f, 1)->row.state, INSTANCE_LAUNCHED);
    assert_int_equal(count(f, CALL_LAUNCH), 2);
    assert_int_equal(stats(f).refusals, 0);
    assert_int_equal(stats(f).strays, 0);
}

static void listings_settle_a_refusal_that_is_not_believed(void **state)
{
    struct fixture *f = *state;
    f->launch_error = ERR_TIMEOUT;
    demand(f);
    f->launch_error = ERR_DENIED;
    pass(f, SETTLE_MS - BUSY_SWEEP_MS);
    assert_int_equal(count(f, CALL_LAUNCH), 2);
    assert_int_equal(stats(f).refusals, 0);
    pass(f, 3 * BUSY_SWEEP_MS); /* there is none: asked again, and told to the job */
    assert_null(instance(f, 1));
    assert_true(stats(f).refusals > 0);
}

static void a_shortage_after_a_lost_reply_is_believed(void **state)
{
    struct fixture *f = *state;
    f->launch_error = ERR_TIMEOUT;
    demand(f);
    f->launch_error = ERR_NO_CAPACITY;
    pass(f, 1000);
    assert_null(instance(f, 1));
}

static void after_a_crash_a_refusal_is_not_believed(void **state)
{
    struct fixture *f = *state;
    f->by_hand[CALL_LAUNCH] = true;
    demand(f);
    add_machine(f, last(f, CALL_LAUNCH)->token);
    restart(f);
    f->by_hand[CALL_LAUNCH] = false;
    f->launch_error = ERR_CONFLICT; /* the pool's file says something else by now */
    pass(f, 2 * BUSY_SWEEP_MS);
    assert_int_equal(instance(f, 1)->row.state, INSTANCE_LAUNCHED);
    assert_int_equal(stats(f).strays, 0);
}

static void after_a_crash_an_intent_is_launched_under_its_token_again(void **state)
{
    struct fixture *f = *state;
    f->by_hand[CALL_LAUNCH] = true;
    demand(f);
    char token[CLOUD_TOKEN_MAX];
    STR_COPY(token, last(f, CALL_LAUNCH)->token);
    restart(f);
    assert_int_equal(count(f, CALL_LAUNCH), 2);
    assert_string_equal(last(f, CALL_LAUNCH)->token, token);
    f->by_hand[CALL_LAUNCH] = false;
    settle(f);
    assert_int_equal(instance(f, 1)->row.state, INSTANCE_LAUNCHED);
    assert_int_equal(f->n_machines, 1);
}

static void one_launch_an_instance_is_under_way(void **state)
{
    struct fixture *f = *state;
    f->by_hand[CALL_LAUNCH] = true;
    demand(f);
    pass(f, 10 * SWEEP_MS); /* sweeps see nothing of it and leave it alone */
    assert_int_equal(count(f, CALL_LAUNCH), 1);
    f->by_hand[CALL_LAUNCH] = false;
    settle(f);
    assert_int_equal(instance(f, 1)->row.state, INSTANCE_LAUNCHED);
}

/* Some providers show a machine that they are about to refuse. */
static void a_machine_that_is_listed_before_the_answer_may_still_be_refused(void **state)
{
    struct fixture *f = *state;
    f->by_hand[CALL_LAUNCH] = true;
    demand(f);
    add_machine(f, last(f, CALL_LAUNCH)->token);
    pass(f, 3 * BUSY_SWEEP_MS);
    assert_int_equal(instance(f, 1)->row.state, INSTANCE_INTENDED);
    assert_int_equal(count(f, CALL_TERMINATE), 0);
    f->launch_error = ERR_NO_CAPACITY;
    answer(f, last(f, CALL_LAUNCH));
    settle(f);
    assert_null(instance(f, 1));
    assert_int_equal(stats(f).refusals, 1);
    assert_string_equal(model_offer(f->lab->model, 1)->why, "scripted"); /* in the provider's words */
}

/* As a price does that is read meanwhile. */
static void a_row_that_changes_while_its_refusal_waits_for_a_commit_is_not_launched_again(void **state)
{
    struct fixture *f = *state;
    f->by_hand[CALL_LAUNCH] = true;
    demand(f);
    f->lab->by_hand = true;
    lab_submit(f->lab, 1, NULL);
    lab_turn(f->lab);
    assert_non_null(f->lab->under_way);
    f->launch_error = ERR_NO_CAPACITY;
    answer(f, last(f, CALL_LAUNCH));
    lab_turn(f->lab);
    assert_int_equal(stats(f).refusals, 1);
    assert_int_equal(instance(f, 1)->row.state, INSTANCE_INTENDED);
    provision_touch(f->lab->provision, 1);
    lab_turn(f->lab);
    assert_int_equal(count(f, CALL_LAUNCH), 1);
    f->lab->by_hand = false;
    lab_commit(f->lab, 0);
    settle(f);
    assert_null(instance(f, 1));
}

static void a_machine_that_ended_before_the_answer_is_gone(void **state)
{
    struct fixture *f = *state;
    f->by_hand[CALL_LAUNCH] = true;
    demand(f);
    struct cloud_instance *m = add_machine(f, last(f, CALL_LAUNCH)->token);
    m->state = CLOUD_GONE;
    m->reclaimed = true;
    answer(f, last(f, CALL_LAUNCH));
    settle(f);
    assert_null(instance(f, 1));
}

static void an_intent_that_is_ended_while_its_launch_is_out_is_terminated_when_it_is_known(void **state)
{
    struct fixture *f = *state;
    f->by_hand[CALL_LAUNCH] = true;
    demand(f);
    end(f, 1);
    assert_int_equal(instance(f, 1)->row.state, INSTANCE_ENDING);
    assert_int_equal(count(f, CALL_TERMINATE), 0);
    answer(f, last(f, CALL_LAUNCH));
    settle(f);
    assert_int_equal(count(f, CALL_TERMINATE), 1);
    assert_string_equal(last(f, CALL_TERMINATE)->id, "i-1");
    f->machines[0].state = CLOUD_GONE;
    pass(f, 2 * BUSY_SWEEP_MS);
    assert_null(instance(f, 1));
}

/* ---- ending ---- */

static void an_end_is_asked_for_after_its_commit_and_again_until_it_is_confirmed(void **state)
{
    struct fixture *f = *state;
    demand(f);
    f->by_hand[CALL_TERMINATE] = true;
    end(f, 1);
    assert_int_equal(count(f, CALL_TERMINATE), 1);
    pass(f, 3 * BUSY_SWEEP_MS);
    assert_int_equal(count(f, CALL_TERMINATE), 1); /* one at a time */
    f->by_hand[CALL_TERMINATE] = false;
    f->terminate_error = ERR_THROTTLED;
    settle(f);
    pass(f, 3 * BUSY_SWEEP_MS);
    assert_true(count(f, CALL_TERMINATE) > 2);
    f->terminate_error = ERR_NONE;
    pass(f, 2 * BUSY_SWEEP_MS);
    size_t n = count(f, CALL_TERMINATE);
    assert_int_equal(f->machines[0].state, CLOUD_STOPPING);
    pass(f, 5 * BUSY_SWEEP_MS);
    assert_int_equal(count(f, CALL_TERMINATE), n); /* it is on its way */
    assert_int_equal(instance(f, 1)->row.state, INSTANCE_ENDING);
    f->machines[0].state = CLOUD_GONE;
    pass(f, 2 * BUSY_SWEEP_MS);
    assert_null(instance(f, 1));
}

static void after_a_crash_an_end_is_asked_for_again(void **state)
{
    struct fixture *f = *state;
    demand(f);
    f->by_hand[CALL_TERMINATE] = true;
    end(f, 1);
    restart(f);
    assert_int_equal(count(f, CALL_TERMINATE), 2);
}

/* It still bills its disk. */
static void what_stopped_by_itself_is_terminated_too(void **state)
{
    struct fixture *f = *state;
    demand(f);
    f->machines[0].state = CLOUD_STOPPING;
    f->terminate_error = ERR_THROTTLED;
    end(f, 1);
    pass(f, 3 * BUSY_SWEEP_MS);
    assert_true(count(f, CALL_TERMINATE) > 2);
}

static void who_ends_many_does_not_put_the_sweep_off(void **state)
{
    struct fixture *f = *state;
    demand(f);
    f->by_hand[CALL_TERMINATE] = true;
    end(f, 1);
    size_t before = count(f, CALL_LIST);
    for (int i = 0; i < 10; i++) { /* something happens every second */
        pass(f, 1000);
        provision_touch(f->lab->provision, 1);
    }
    assert_true(count(f, CALL_LIST) > before);
}

/* ---- sweeping ---- */

static void a_machine_without_a_row_is_ended(void **state)
{
    struct fixture *f = *state;
    add_machine(f, "belay-somebody-7");
    pass(f, SWEEP_MS + 1000);
    assert_int_equal(count(f, CALL_TERMINATE), 1);
    assert_string_equal(last(f, CALL_TERMINATE)->id, "i-1");
    assert_int_equal(stats(f).strays, 1);
    f->machines[0].state = CLOUD_GONE;
    pass(f, 3 * SWEEP_MS);
    assert_int_equal(count(f, CALL_TERMINATE), 1);
}

static void a_stray_that_stands_still_is_ended_and_a_reclaimed_one_ends_by_itself(void **state)
{
    struct fixture *f = *state;
    add_machine(f, "")->state = CLOUD_STOPPING;
    struct cloud_instance *reclaimed = add_machine(f, "");
    reclaimed->state = CLOUD_STOPPING;
    reclaimed->reclaimed = true;
    pass(f, SWEEP_MS + 1000);
    assert_true(count(f, CALL_TERMINATE) >= 1);
    for (size_t i = 0; i < f->n_calls; i++)
        assert_true(f->calls[i].kind != CALL_TERMINATE || str_eq(f->calls[i].id, "i-1"));
}

static void a_second_machine_under_one_token_is_ended(void **state)
{
    struct fixture *f = *state;
    demand(f);
    add_machine(f, instance(f, 1)->row.token);
    pass(f, SWEEP_MS + 1000);
    assert_int_equal(count(f, CALL_TERMINATE), 1);
    assert_string_equal(last(f, CALL_TERMINATE)->id, "i-2");
    assert_string_equal(instance(f, 1)->row.provider_id, "i-1");
}

static void a_stray_that_cannot_be_ended_is_tried_again(void **state)
{
    struct fixture *f = *state;
    f->terminate_error = ERR_UNAVAILABLE;
    add_machine(f, "");
    pass(f, SWEEP_MS + 4 * BUSY_SWEEP_MS);
    assert_true(count(f, CALL_TERMINATE) >= 3);
}

static void a_machine_that_is_gone_ends_its_row(void **state)
{
    struct fixture *f = *state;
    demand(f);
    f->machines[0].state = CLOUD_GONE;
    f->machines[0].reclaimed = true;
    f->launch_error = ERR_NO_CAPACITY; /* no other in its place */
    pass(f, SWEEP_MS + 1000);
    assert_null(instance(f, 1));
}

static int see_end(void *ctx, const struct instance_row *row)
{
    *(int64_t *)ctx = row->ended_at.ms;
    return 0;
}

/* When the one instance ended, as it is stored. */
static int64_t stored_end_ms(struct fixture *f)
{
    struct err e;
    int64_t ms = TIME_NONE_MS;
    assert_int_equal(db_read_instances(f->lab->reader, false, see_end, &ms, &e), 0);
    return ms;
}

static void a_machine_is_paid_until_the_provider_says_it_ended(void **state)
{
    struct fixture *f = *state;
    demand(f);
    pass(f, 1000); /* the listing does not come with the end */
    const struct wall ended = clock_wall(&f->lab->vt.clock);
    f->machines[0].ended_at = ended;
    f->machines[0].state = CLOUD_GONE;
    f->launch_error = ERR_NO_CAPACITY;
    pass(f, SWEEP_MS + 1000);
    assert_null(instance(f, 1));
    assert_int_equal(stored_end_ms(f), ended.ms);
}

static void a_list_that_lags_ends_nothing_and_two_misses_after_the_settling_time_do(void **state)
{
    struct fixture *f = *state;
    demand(f);
    f->n_machines = 0; /* the list does not show it (yet) */
    f->launch_error = ERR_NO_CAPACITY;
    pass(f, SETTLE_MS - 1000);
    provision_touch(f->lab->provision, 1);
    assert_non_null(instance(f, 1));
    pass(f, SWEEP_MS);
    assert_non_null(instance(f, 1)); /* missed once: never enough */
    pass(f, SWEEP_MS);
    assert_null(instance(f, 1));
}

static void what_a_listing_could_not_see_is_not_missed(void **state)
{
    struct fixture *f = *state;
    demand(f);
    f->n_machines = 0;
    f->is_hiding = true;
    f->launch_error = ERR_NO_CAPACITY;
    pass(f, SETTLE_MS + 5 * SWEEP_MS);
    assert_non_null(instance(f, 1));
    f->is_hiding = false;
    pass(f, 3 * SWEEP_MS);
    assert_null(instance(f, 1));
}

static void a_listing_that_began_before_the_launch_was_answered_concludes_nothing(void **state)
{
    struct fixture *f = *state;
    f->by_hand[CALL_LIST] = true;
    pass(f, SWEEP_MS); /* a listing is out */
    demand(f);         /* launched and answered meanwhile */
    for (int i = 0; i < 3; i++) {
        struct call *c = last(f, CALL_LIST);
        c->answered = true;
        c->listed(c->ctx, NULL, NULL, 0); /* as it was before */
        lab_turn(f->lab);
        assert_non_null(instance(f, 1));
        pass(f, 1000);
    }
}

static void a_listing_that_fails_concludes_nothing_and_is_repeated(void **state)
{
    struct fixture *f = *state;
    demand(f);
    f->list_error = ERR_THROTTLED;
    pass(f, 5 * SWEEP_MS);
    assert_non_null(instance(f, 1));
    assert_true(stats(f).list_errors >= 4);
    f->list_error = ERR_NONE;
    f->machines[0].state = CLOUD_GONE;
    f->launch_error = ERR_NO_CAPACITY;
    pass(f, SWEEP_MS + 1000);
    assert_null(instance(f, 1));
}

static void one_listing_a_place_is_under_way(void **state)
{
    struct fixture *f = *state;
    f->by_hand[CALL_LIST] = true;
    size_t before = count(f, CALL_LIST);
    pass(f, 5 * SWEEP_MS);
    assert_int_equal(count(f, CALL_LIST), before + 1);
}

/* What a listing says is acted on at once, so the model must hold only what is on disk. */
static void a_listing_waits_for_the_commit_under_way(void **state)
{
    struct fixture *f = *state;
    f->by_hand[CALL_LIST] = true;
    pass(f, SWEEP_MS);
    f->lab->by_hand = true;
    lab_submit(f->lab, 1, NULL);
    lab_turn(f->lab);
    assert_non_null(f->lab->under_way);
    add_machine(f, "stray");
    answer(f, last(f, CALL_LIST));
    lab_turn(f->lab);
    assert_int_equal(count(f, CALL_TERMINATE), 0);
    lab_commit(f->lab, 0);
    assert_int_equal(count(f, CALL_TERMINATE), 1);
    f->lab->by_hand = false;
    if (f->lab->under_way)
        lab_commit(f->lab, 0);
}

static void machines_of_a_pool_that_is_not_configured_any_more_are_left_alone_and_complained_of(void **state)
{
    struct fixture *f = *state;
    demand(f);
    f->pool.name = NULL;
    size_t launches = count(f, CALL_LAUNCH);
    restart(f);
    end(f, 1);
    pass(f, 2 * SWEEP_MS);
    assert_int_equal(instance(f, 1)->row.state, INSTANCE_ENDING);
    assert_int_equal(count(f, CALL_LAUNCH), launches);
    assert_int_equal(count(f, CALL_TERMINATE), 0);
}

/* ---- prices ---- */

static void prices_are_read_at_the_start_and_now_and_then(void **state)
{
    struct fixture *f = *state;
    struct cloud_price price = {.zone = "z", .type = "t", .market = CLOUD_SPOT, .uusd_h = 77};
    f->by_hand[CALL_PRICES] = true;
    assert_int_equal(count(f, CALL_PRICES), 1);
    pass(f, PRICE_MS);
    assert_int_equal(count(f, CALL_PRICES), 2);
    pass(f, 2 * PRICE_MS);
    assert_int_equal(count(f, CALL_PRICES), 2); /* one at a time */
    struct call *c = last(f, CALL_PRICES);
    c->answered = true;
    price.score = 8;
    c->prices(c->ctx, NULL, &price, 1);
    settle(f);
    assert_int_equal(model_offer(f->lab->model, 1)->row.price_uusd_h, 77);
    assert_int_equal(model_offer(f->lab->model, 1)->score, 8);
    pass(f, PRICE_MS);
    c = last(f, CALL_PRICES);
    c->answered = true;
    price.score = 0;
    c->prices(c->ctx, NULL, &price, 1);
    settle(f);
    assert_int_equal(model_offer(f->lab->model, 1)->score, OFFER_SCORE_NONE);
}

static void prices_that_cannot_be_read_leave_the_last_ones(void **state)
{
    struct fixture *f = *state;
    struct err e;
    f->by_hand[CALL_PRICES] = true;
    pass(f, PRICE_MS);
    struct call *c = last(f, CALL_PRICES);
    c->answered = true;
    err_set(&e, ERR_THROTTLED, "slow down");
    c->prices(c->ctx, &e, NULL, 0);
    settle(f);
    assert_int_equal(model_offer(f->lab->model, 1)->row.price_uusd_h, 1);
    pass(f, PRICE_MS);
    assert_int_equal(count(f, CALL_PRICES), 3);
}

/* ---- pools that change ---- */

/* Another driver for the same provider: its calls are kept apart. */
static struct fixture *other_driver(struct fixture *f)
{
    struct fixture *o = mem_alloc(sizeof(*o));
    o->lab = f->lab;
    o->driver.ops = &fake_ops;
    return o;
}

static void free_other(struct fixture *o)
{
    for (size_t i = 0; i < o->n_calls; i++)
        free(o->calls[i].user_data);
    free(o);
}

static void a_launch_stays_with_its_driver_which_is_released_when_its_last_call_ends(void **state)
{
    struct fixture *f = *state, *o = other_driver(f);
    f->by_hand[CALL_LAUNCH] = true;
    demand(f);
    provision_add_pool(
        f->lab->provision, &(struct provision_pool){.name = "burst", .driver = &o->driver, .region = "r"});
    settle(f);
    assert_int_equal(f->n_released, 0);
    assert_int_equal(count(o, CALL_PRICES), 1); /* at once */
    size_t lists = count(f, CALL_LIST);
    struct err e;
    err_set(&e, ERR_TIMEOUT, "scripted");
    last(f, CALL_LAUNCH)->answered = true;
    last(f, CALL_LAUNCH)->launched(last(f, CALL_LAUNCH)->ctx, &e, NULL);
    pass(f, 1000);
    assert_int_equal(count(f, CALL_LAUNCH), 2); /* the same call again, with what it said before */
    assert_int_equal(count(o, CALL_LAUNCH), 0);
    f->by_hand[CALL_LAUNCH] = false;
    settle(f);
    assert_int_equal(f->n_released, 1);
    assert_int_equal(count(f, CALL_LIST), lists);
    assert_int_equal(instance(f, 1)->row.state, INSTANCE_LAUNCHED);
    end(f, 1);
    assert_int_equal(count(f, CALL_TERMINATE), 0); /* from now on by the new one */
    assert_string_equal(last(o, CALL_TERMINATE)->id, "i-1");
    assert_int_equal(f->n_released, 1);
    assert_int_equal(o->n_released, 0);
    provision_destroy(f->lab->provision);
    f->lab->provision = NULL;
    free_other(o);
}

static void a_pool_that_is_removed_is_listed_no_more(void **state)
{
    struct fixture *f = *state;
    f->by_hand[CALL_LIST] = true;
    pass(f, SWEEP_MS);
    size_t n = count(f, CALL_LIST);
    provision_remove_pool(f->lab->provision, "burst");
    provision_remove_pool(f->lab->provision, "nothing");
    settle(f);
    assert_int_equal(f->n_released, 0); /* its listing is under way */
    f->by_hand[CALL_LIST] = false;
    settle(f);
    assert_int_equal(f->n_released, 1);
    pass(f, 3 * SWEEP_MS);
    assert_int_equal(count(f, CALL_LIST), n);
    provision_add_pool(f->lab->provision, &f->pool); /* again */
    pass(f, SWEEP_MS);
    assert_int_equal(count(f, CALL_LIST), n + 1);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

/* ---- launches that may be answered from several offers ---- */

static void add_zones(struct fixture *f)
{
    struct pool_row pool = model_pool(f->lab->model, "burst")->row;
    struct offer_row offer = {.pool = "burst",
        .type = "t",
        .market = MARKET_SPOT,
        .total = {.cpus = 4, .memory_mib = 1024},
        .price_uusd_h = 1,
        .on_demand_uusd_h = 2,
        .avoid_until = MONO_NONE};
    pool.fleet = true;
    lab_post(f->lab, (struct event){.type = EV_POOL, .pool = &pool}, NULL);
    for (int k = 2; k <= 3; k++) {
        snprintf(offer.zone, sizeof offer.zone, "z%d", k);
        lab_post(f->lab, (struct event){.type = EV_OFFER, .offer = &offer}, NULL);
    }
    lab_turn(f->lab);
}

static void a_fleet_launch_goes_where_the_provider_says(void **state)
{
    struct fixture *f = *state;
    add_zones(f);
    f->by_hand[CALL_LAUNCH] = true;
    demand(f);
    struct call *c = last(f, CALL_LAUNCH);
    assert_string_equal(c->zone, "z");
    assert_int_equal(c->n_others, 2);
    assert_string_equal(c->others[0].zone, "z2");
    assert_string_equal(c->others[1].zone, "z3");
    struct cloud_instance *m = add_machine(f, c->token);
    struct cloud_place first = {"z", "t"};
    struct err e;
    STR_COPY(m->zone, "z3");
    STR_COPY(m->type, "t");
    err_set(&e, ERR_NO_CAPACITY, "none left");
    c->answered = true;
    c->refused(c->ctx, &first, &e);
    c->launched(c->ctx, NULL, m);
    settle(f);
    assert_string_equal(instance(f, 1)->row.zone, "z3");
    assert_int_equal(model_offer(f->lab->model, 1)->row.refusals, 1);
    assert_int_equal(model_offer(f->lab->model, 3)->row.refusals, 0);
    assert_int_equal(stats(f).strays, 0);
    pass(f, 2 * SWEEP_MS);
    assert_int_equal(instance(f, 1)->row.state, INSTANCE_LAUNCHED);
}

static void a_repeated_fleet_launch_is_the_same_after_a_crash(void **state)
{
    struct fixture *f = *state;
    add_zones(f);
    f->by_hand[CALL_LAUNCH] = true;
    demand(f);
    struct event ev = {.type = EV_OFFER_REFUSED,
        .offer_refused = {.instance = 1, .zone = "z2", .type = "t", .capacity = true}};
    lab_post(f->lab, ev, NULL);
    lab_turn(f->lab);
    restart(f);
    struct call *c = last(f, CALL_LAUNCH);
    assert_int_equal(count(f, CALL_LAUNCH), 2);
    assert_int_equal(c->n_others, 2);
    assert_string_equal(c->others[0].zone, "z2");
    assert_string_equal(c->others[1].zone, "z3");
}

/* The answer was lost: the listing tells where it is. */
static void a_fleet_launch_whose_answer_was_lost_is_adopted_where_it_is(void **state)
{
    struct fixture *f = *state;
    add_zones(f);
    f->by_hand[CALL_LAUNCH] = true;
    demand(f);
    struct cloud_instance *m = add_machine(f, last(f, CALL_LAUNCH)->token);
    struct err e;
    STR_COPY(m->zone, "z2");
    STR_COPY(m->type, "t");
    err_set(&e, ERR_INVALID, "the reply was cut off");
    last(f, CALL_LAUNCH)->answered = true;
    last(f, CALL_LAUNCH)->launched(last(f, CALL_LAUNCH)->ctx, &e, NULL);
    f->launch_error = ERR_INVALID;
    f->by_hand[CALL_LAUNCH] = false;
    pass(f, 4 * SWEEP_MS);
    assert_string_equal(instance(f, 1)->row.provider_id, m->id);
    assert_string_equal(instance(f, 1)->row.zone, "z2");
    assert_int_equal(instance(f, 1)->offer->row.id, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_launch_leaves_after_its_intent_is_on_disk),
        TEST(a_definite_refusal_ends_the_intent_and_nothing_else_does),
        TEST(lost_replies_are_repeated_under_the_same_token),
        TEST(a_refusal_after_a_lost_reply_is_not_believed),
        TEST(listings_settle_a_refusal_that_is_not_believed),
        TEST(a_shortage_after_a_lost_reply_is_believed),
        TEST(after_a_crash_a_refusal_is_not_believed),
        TEST(a_machine_whose_reply_was_lost_is_found_by_its_token),
        TEST(after_a_crash_an_intent_is_launched_under_its_token_again),
        TEST(one_launch_an_instance_is_under_way),
        TEST(a_machine_that_is_listed_before_the_answer_may_still_be_refused),
        TEST(a_row_that_changes_while_its_refusal_waits_for_a_commit_is_not_launched_again),
        TEST(a_machine_that_ended_before_the_answer_is_gone),
        TEST(an_intent_that_is_ended_while_its_launch_is_out_is_terminated_when_it_is_known),
        TEST(an_end_is_asked_for_after_its_commit_and_again_until_it_is_confirmed),
        TEST(after_a_crash_an_end_is_asked_for_again),
        TEST(what_stopped_by_itself_is_terminated_too),
        TEST(who_ends_many_does_not_put_the_sweep_off),
        TEST(a_machine_without_a_row_is_ended),
        TEST(a_stray_that_stands_still_is_ended_and_a_reclaimed_one_ends_by_itself),
        TEST(a_second_machine_under_one_token_is_ended),
        TEST(a_stray_that_cannot_be_ended_is_tried_again),
        TEST(a_machine_that_is_gone_ends_its_row),
        TEST(a_machine_is_paid_until_the_provider_says_it_ended),
        TEST(a_list_that_lags_ends_nothing_and_two_misses_after_the_settling_time_do),
        TEST(what_a_listing_could_not_see_is_not_missed),
        TEST(a_listing_that_began_before_the_launch_was_answered_concludes_nothing),
        TEST(a_listing_that_fails_concludes_nothing_and_is_repeated),
        TEST(one_listing_a_place_is_under_way),
        TEST(a_listing_waits_for_the_commit_under_way),
        TEST(machines_of_a_pool_that_is_not_configured_any_more_are_left_alone_and_complained_of),
        TEST(prices_are_read_at_the_start_and_now_and_then),
        TEST(prices_that_cannot_be_read_leave_the_last_ones),
        TEST(a_launch_stays_with_its_driver_which_is_released_when_its_last_call_ends),
        TEST(a_pool_that_is_removed_is_listed_no_more),
        TEST(a_fleet_launch_goes_where_the_provider_says),
        TEST(a_repeated_fleet_launch_is_the_same_after_a_crash),
        TEST(a_fleet_launch_whose_answer_was_lost_is_adopted_where_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
