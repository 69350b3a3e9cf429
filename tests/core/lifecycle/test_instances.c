/* SPDX-License-Identifier: Apache-2.0
 *
 * Pools, offers, prices, and instances from intent to end.
 */
#include "scheduler/core/forecast/explain.h"
#include "tests/core/lab.h"

#include "base/str.h"
#include <string.h>

/* A pool "burst" of up to 4 machines of 4 cpus, one job that needs one, and the launch decided. */
#define QUEUE_MS SECONDS_MS(3600)

static void start(struct lab *l)
{
    lab_init(l);
    lab_elastic(l, "burst", 4, "m5", 4);
    lab_submit_cpus(l, 4);
    lab_plan(l);
}

static struct offer *spot(const struct lab *l)
{
    return model_offer(l->m, 1);
}

static int refuse(struct lab *l, int64_t instance, bool capacity)
{
    struct event ev = {.type = EV_LAUNCH_REFUSED, .refused = {instance, capacity, "no capacity"}};
    return lab_try(l, &ev, NULL);
}

static void gone(struct lab *l, int64_t instance, bool reclaimed)
{
    lab_apply(l, (struct event){.type = EV_INSTANCE_GONE,
                     .gone = {instance, reclaimed, WALL_NONE, "terminated"}});
}

static void a_launch_is_an_intent_with_a_token_before_anything_else(void **state)
{
    (void)state;
    struct lab l;
    start(&l);
    lab_take(&l);
    const struct instance_row *r = lab_instance_row(&l, 1);
    assert_int_equal(r->state, INSTANCE_INTENDED);
    assert_string_equal(r->token, "belay-0123456789abcdef-1");
    assert_string_equal(r->pool, "burst");
    assert_string_equal(r->type, "m5");
    assert_string_equal(r->zone, "z1");
    assert_int_equal(r->market, MARKET_SPOT);
    assert_int_equal(r->price_uusd_h, LAB_SPOT_UUSD_H);
    assert_int_equal(r->on_demand_uusd_h, LAB_ON_DEMAND_UUSD_H);
    assert_string_equal(r->provider_id, "");
    assert_false(
        wall_is_set(r->launched_at) || wall_is_set(r->joined_at) || wall_is_set(r->ended_at));
    assert_ptr_equal(model_instance_by_token(l.m, r->token), model_instance(l.m, 1));
    assert_int_equal(spot(&l)->row.launches, 1);
    assert_int_equal(model_pool(l.m, "burst")->n_nodes, 1);
    assert_string_equal(lab_history(&l, "launch")->text, "m5 spot in z1 at $1.00/h for pool burst");
    lab_deinit(&l);
}

static void a_launch_beyond_the_pool_is_refused(void **state)
{
    (void)state;
    struct lab l;
    start(&l);
    for (int k = 0; k < 3; k++)
        lab_apply(&l, (struct event){.type = EV_LAUNCH, .launch.offer = 1});
    struct event fifth = {.type = EV_LAUNCH, .launch.offer = 1},
                 unknown = {.type = EV_LAUNCH, .launch.offer = 77};
    assert_int_equal(lab_try(&l, &fifth, NULL), ERR_CONFLICT);
    assert_int_equal(lab_try(&l, &unknown, NULL), ERR_CONFLICT);
    lab_deinit(&l);
}

static void the_answer_names_the_machine(void **state)
{
    (void)state;
    struct lab l;
    start(&l);
    lab_wait(&l, 800);
    lab_launched(&l, 1);
    const struct instance *i = model_instance(l.m, 1);
    assert_int_equal(i->row.state, INSTANCE_LAUNCHED);
    assert_int_equal(i->row.launched_at.ms, l.now.wall.ms);
    assert_ptr_equal(model_instance_by_provider_id(l.m, "r1", "i-1"), i);
    assert_null(model_instance_by_provider_id(l.m, "r2", "i-1"));
    lab_take(&l);
    assert_int_equal(lab_history(&l, "launched")->a, 800);
    lab_launched(&l, 1);                      /* repeated: ignored */
    lab_launched(&l, 9);                      /* unknown: ignored */
    assert_int_equal(refuse(&l, 1, true), 0); /* too late: it exists */
    lab_take(&l);
    assert_true(changes_is_empty(&l.c));
    lab_deinit(&l);
}

static void an_agent_may_join_before_the_answer(void **state)
{
    (void)state;
    struct lab l;
    start(&l);
    int64_t node = lab_join_instance(&l, 1, 4);
    assert_int_equal(model_instance(l.m, 1)->row.state, INSTANCE_RUNNING);
    assert_int_equal(model_instance(l.m, 1)->row.launched_at.ms, l.now.wall.ms);
    assert_int_equal(refuse(&l, 1, true), 0); /* impossible */
    assert_non_null(model_node(l.m, node));
    lab_wait(&l, 100);
    lab_launched(&l, 1);
    assert_string_equal(model_instance(l.m, 1)->row.provider_id, "i-1");
    assert_int_equal(model_instance(l.m, 1)->row.state, INSTANCE_RUNNING);
    assert_int_equal(model_instance(l.m, 1)->row.launched_at.ms, l.now.wall.ms - 100);
    lab_deinit(&l);
}

static void a_joined_machine_takes_its_price_and_market(void **state)
{
    (void)state;
    struct lab l;
    start(&l);
    lab_launched(&l, 1);
    const struct node *n = model_node(l.m, lab_join_instance(&l, 1, 4));
    assert_int_equal(n->row.market, MARKET_SPOT);
    assert_int_equal(n->row.price_uusd_h, LAB_SPOT_UUSD_H);
    assert_int_equal(n->row.on_demand_uusd_h, LAB_ON_DEMAND_UUSD_H);
    assert_string_equal(n->row.pool, "burst"); /* regardless of the agent's report */
    assert_int_equal(n->row.instance, 1);
    assert_int_equal(model_instance(l.m, 1)->row.node, n->row.id);
    lab_deinit(&l);
}

static void a_refused_offer_is_avoided_for_a_time_that_doubles(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 4, "m5", 4);
    struct job_row r = lab_job(4);
    r.spec.market = WISH_SPOT;
    lab_submit(&l, &r);
    int64_t ms = LAB_BACKOFF_MS;
    for (int k = 1; k <= 9; k++) {
        assert_int_equal(lab_plan(&l), 1);
        assert_int_equal(refuse(&l, k, true), 0);
        assert_null(model_instance(l.m, k));
        assert_int_equal(lab_plan(&l), 0);
        assert_int_equal(plan_wake(l.p, l.m, l.now).ms, l.now.mono.ms + ms);
        lab_wait(&l, ms - 1);
        assert_int_equal(lab_plan(&l), 0);
        lab_wait(&l, 1);
        ms = ms * 2 < 60 * LAB_BACKOFF_MS ? ms * 2 : 60 * LAB_BACKOFF_MS;
    }
    assert_int_equal(spot(&l)->row.refusals, 9);
    lab_take(&l);
    assert_string_equal(
        lab_history(&l, "launch-refused")->text, "m5 spot in z1: no capacity; avoided for 10m00s");
    assert_int_equal(lab_instance_row(&l, 9)->state, INSTANCE_GONE);
    assert_string_equal(lab_instance_row(&l, 9)->text, "no capacity");
    lab_plan(&l);
    lab_launched(&l, 10);
    lab_join_instance(&l, 10, 4);
    assert_int_equal(spot(&l)->row.refused_in_a_row, 0); /* a machine came */
    lab_deinit(&l);
}

static void refusals_of_one_moment_count_once(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 4, "m5", 4);
    for (int k = 0; k < 4; k++)
        lab_submit_cpus(&l, 4);
    assert_int_equal(lab_plan(&l), 4);
    for (int k = 1; k <= 4; k++)
        refuse(&l, k, true);
    assert_int_equal(spot(&l)->row.refusals, 4);
    assert_int_equal(spot(&l)->row.refused_in_a_row, 1);
    assert_int_equal(spot(&l)->row.avoid_until.ms, l.now.mono.ms + LAB_BACKOFF_MS);
    assert_int_equal(lab_plan(&l), 4); /* on-demand instead */
    assert_int_equal(model_instance(l.m, 5)->row.market, MARKET_ON_DEMAND);
    lab_deinit(&l);
}

/* From them, and from times that are stored anyway, the parts of a restart are computed. */
static void the_last_part_of_a_boot_and_the_first_progress_are_stored(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 4, "m5", 4);
    int64_t job = lab_submit_cpus(&l, 4);
    assert_int_equal(lab_plan(&l), 1);
    lab_launched(&l, 1);
    lab_wait(&l, 60000);
    struct node_row r = {.name = "vm", .total = {.cpus = 4, .memory_mib = 16384}, .key_hash = "k"};
    /* not longer than the machine exists, whatever its agent reports */
    struct event ev = {.type = EV_JOIN, .join = {.node = &r, .instance = 1, .start_ms = INT64_MAX}};
    lab_apply(&l, ev);
    assert_int_equal(model_instance(l.m, 1)->row.start_ms, 60000);
    assert_int_equal(lab_plan(&l), 1);
    struct event done = {
        .type = EV_PROGRESS, .progress = {.job = job, .attempt = 1, .done = 5, .first_ms = 700}};
    lab_apply(&l, done); /* before the start */
    const struct attempt_row *a = &job_attempt(model_job(l.m, job))->row;
    assert_int_equal(a->warm_up_ms, 0);
    lab_started(&l, job);
    lab_apply(&l, done);
    assert_int_equal(a->warm_up_ms, 700);
    done.progress.first_ms = 9000; /* only the first counts */
    lab_apply(&l, done);
    assert_int_equal(a->warm_up_ms, 700);
    lab_deinit(&l);
}

/* One machine that joins after boot_ms and is reclaimed life_ms later. Returns how long its offer
 * is avoided then. */
static int64_t live_and_be_reclaimed(
    struct lab *l, int64_t instance, int64_t boot_ms, int64_t life_ms)
{
    assert_int_equal(lab_plan(l), 1);
    lab_launched(l, instance);
    lab_wait(l, boot_ms);
    int64_t node = lab_join_instance(l, instance, 4);
    lab_wait(l, life_ms);
    lab_notice(l, node, NOTICE_TYPE_RECLAIM, 120000);
    gone(l, instance, true);
    struct mono until = spot(l)->row.avoid_until;
    return mono_is_set(until) && until.ms > l->now.mono.ms ? until.ms - l->now.mono.ms : 0;
}

static void an_offer_that_reclaims_right_after_the_boot_is_avoided_for_a_time_that_doubles(
    void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 4, "m5", 4);
    struct job_row r = lab_job(4);
    r.spec.market = WISH_SPOT;
    int64_t job = lab_submit(&l, &r), ms = LAB_BACKOFF_MS, instance = 1;
    for (int k = 1; k <= 9; k++) {
        assert_int_equal(live_and_be_reclaimed(&l, instance++, 60000, 59999), ms);
        assert_int_equal(spot(&l)->early_reclaims_in_a_row, k);
        assert_int_equal(lab_plan(&l), 0);
        lab_wait(&l, ms);
        ms = ms * 2 < 60 * LAB_BACKOFF_MS ? ms * 2 : 60 * LAB_BACKOFF_MS;
    }
    assert_int_equal(spot(&l)->row.refused_in_a_row, 0);
    /* it was worth its boot */
    assert_int_equal(live_and_be_reclaimed(&l, instance++, 60000, 60000), 0);
    assert_int_equal(spot(&l)->early_reclaims_in_a_row, 0);
    assert_int_equal(live_and_be_reclaimed(&l, instance, 60000, 0), LAB_BACKOFF_MS);
    struct reason why[EXPLAIN_REASONS_MAX];
    size_t n = core_explain(l.m, l.now, job, why, EXPLAIN_REASONS_MAX), k = 0;
    while (k < n && !str_eq(why[k].code, "offer-reclaims"))
        k++;
    assert_true(k < n);
    assert_string_equal(why[k].text,
        "m5 spot in z1 reclaims its machines soon after they boot (1 in a row); tried "
        "again in 10s: reclaimed 0ms after it joined");
    lab_deinit(&l);
}

static void a_configuration_fault_avoids_the_offer_for_long(void **state)
{
    (void)state;
    struct lab l;
    start(&l);
    refuse(&l, 1, false);
    assert_int_equal(spot(&l)->row.avoid_until.ms, l.now.mono.ms + 60 * LAB_BACKOFF_MS);
    lab_deinit(&l);
}

/* ---- machines that wait in the provider's queue ---- */

static void queued(struct lab *l, int64_t instance)
{
    struct event ev = {.type = EV_LAUNCHED,
        .launched = {.instance = instance, .provider_id = "j-1", .is_queued = true}};
    lab_apply(l, ev);
}

static void set_patience(struct lab *l, int64_t ms)
{
    struct pool_row r = lab_pool(l, "burst");
    r.queue_patience_ms = ms;
    lab_set_pool(l, r);
}

static void a_queued_machine_is_free_and_boots_from_its_start(void **state)
{
    (void)state;
    struct lab l;
    struct event ev;
    start(&l);
    queued(&l, 1);
    lab_wait(&l, 10 * LAB_BOOT_MS); /* without a patience it may wait for ever */
    assert_int_equal(lab_plan(&l), 0);
    queued(&l, 1); /* reported again */
    const struct instance_row *r = &model_instance(l.m, 1)->row;
    assert_int_equal(r->state, INSTANCE_QUEUED);
    assert_string_equal(r->provider_id, "j-1");
    assert_false(wall_is_set(r->launched_at));
    assert_int_equal(core_instance_uusd(r, l.now.wall), 0);
    struct event started = {.type = EV_LAUNCHED, .launched = {.instance = 1, .provider_id = "j-1"}};
    lab_apply(&l, started);
    assert_int_equal(r->state, INSTANCE_LAUNCHED);
    assert_int_equal(r->launched_at.ms, l.now.wall.ms);
    queued(&l, 1); /* it went back to the queue: it has to join in time all the same */
    assert_int_equal(r->state, INSTANCE_LAUNCHED);
    lab_plan(&l);
    assert_int_equal(plan_wake(l.p, l.m, l.now).ms, l.now.mono.ms + LAB_BOOT_MS);
    lab_wait(&l, LAB_BOOT_MS);
    assert_true(lab_decision(&l, &ev));
    assert_string_equal(ev.end_instance.text, "did not join for 10m00s");
    lab_deinit(&l);
}

static void a_queued_machine_may_join_before_its_start_is_seen(void **state)
{
    (void)state;
    struct lab l;
    start(&l);
    queued(&l, 1);
    lab_wait(&l, QUEUE_MS);
    lab_join_instance(&l, 1, 4);
    const struct instance_row *r = &model_instance(l.m, 1)->row;
    assert_int_equal(r->state, INSTANCE_RUNNING);
    assert_int_equal(r->launched_at.ms, l.now.wall.ms); /* the wait before costs nothing */
    lab_deinit(&l);
}

static void a_queue_beyond_the_patience_is_no_capacity(void **state)
{
    (void)state;
    struct lab l;
    struct event ev;
    start(&l);
    set_patience(&l, QUEUE_MS);
    queued(&l, 1);
    lab_plan(&l);
    assert_int_equal(plan_wake(l.p, l.m, l.now).ms, l.now.mono.ms + QUEUE_MS);
    lab_wait(&l, QUEUE_MS);
    assert_true(lab_decision(&l, &ev));
    assert_int_equal(ev.type, EV_END_INSTANCE);
    assert_string_equal(ev.end_instance.text, "waited in the provider's queue for 1h00m");
    lab_apply(&l, ev);
    assert_int_equal(model_instance(l.m, 1)->row.state, INSTANCE_ENDING);
    assert_int_equal(spot(&l)->row.refusals, 1);
    assert_int_equal(spot(&l)->row.avoid_until.ms, l.now.mono.ms + LAB_BACKOFF_MS);
    assert_int_equal(lab_pool(&l, "burst").boots.failed, 0); /* it never started */
    assert_int_equal(lab_plan(&l), 1);                       /* another, on-demand */
    gone(&l, 1, false);
    assert_null(model_instance(l.m, 1));
    lab_deinit(&l);
}

static void a_machine_that_leaves_the_queue_unstarted_is_no_failed_boot(void **state)
{
    (void)state;
    struct lab l;
    start(&l);
    queued(&l, 1);
    gone(&l, 1, false);
    assert_null(model_instance(l.m, 1));
    assert_int_equal(spot(&l)->row.avoid_until.ms, l.now.mono.ms + LAB_BACKOFF_MS);
    assert_int_equal(lab_pool(&l, "burst").boots.failed, 0);
    lab_deinit(&l);
}

static void a_machine_that_never_joins_is_ended_and_its_offer_avoided(void **state)
{
    (void)state;
    struct lab l;
    struct event ev;
    start(&l);
    lab_wait(&l, 10 * LAB_BOOT_MS); /* the provider does not answer: nothing to end yet */
    assert_int_equal(lab_plan(&l), 0);
    lab_launched(&l, 1);
    lab_plan(&l);
    assert_int_equal(plan_wake(l.p, l.m, l.now).ms, l.now.mono.ms + LAB_BOOT_MS);
    lab_wait(&l, LAB_BOOT_MS);
    assert_true(lab_decision(&l, &ev));
    assert_int_equal(ev.type, EV_END_INSTANCE);
    assert_string_equal(ev.end_instance.text, "did not join for 10m00s");
    lab_apply(&l, ev);
    assert_int_equal(model_instance(l.m, 1)->row.state, INSTANCE_ENDING);
    assert_int_equal(spot(&l)->row.avoid_until.ms, l.now.mono.ms + LAB_BACKOFF_MS);
    assert_int_equal(lab_plan(&l), 1); /* another, on-demand */
    struct node_row late = {.name = "late", .key_hash = "k", .total = {4, 0, 1}};
    struct event join = {.type = EV_JOIN, .join = {&late, 1}};
    assert_int_equal(lab_try(&l, &join, NULL), ERR_CONFLICT);
    gone(&l, 1, false);
    assert_int_equal(lab_try(&l, &join, NULL), ERR_CONFLICT);
    lab_deinit(&l);
}

static void a_machine_that_dies_while_it_boots_is_as_good_as_refused(void **state)
{
    (void)state;
    struct lab l;
    start(&l);
    lab_launched(&l, 1);
    gone(&l, 1, false);
    assert_null(model_instance(l.m, 1));
    assert_int_equal(spot(&l)->row.refused_in_a_row, 1);
    assert_true(mono_is_set(spot(&l)->row.avoid_until));
    lab_deinit(&l);
}

static void an_ending_instance_only_learns_its_name(void **state)
{
    (void)state;
    struct lab l;
    start(&l);
    lab_apply(&l, (struct event){.type = EV_END_INSTANCE, .end_instance = {1, "not wanted"}});
    lab_apply(&l, (struct event){.type = EV_END_INSTANCE, .end_instance = {1, "again"}});
    assert_int_equal(model_instance(l.m, 1)->row.state, INSTANCE_ENDING);
    lab_launched(&l, 1);
    assert_int_equal(model_instance(l.m, 1)->row.state, INSTANCE_ENDING);
    assert_string_equal(model_instance(l.m, 1)->row.provider_id, "i-1");
    gone(&l, 1, false);
    lab_take(&l);
    assert_int_equal(lab_instance_row(&l, 1)->state, INSTANCE_GONE);
    assert_string_equal(lab_instance_row(&l, 1)->text, "not wanted");
    assert_int_equal(model_pool(l.m, "burst")->n_nodes, 0);
    assert_null(model_instance_by_token(l.m, "belay-0123456789abcdef-1"));
    assert_null(model_instance_by_provider_id(l.m, "r1", "i-1"));
    /* no effect */
    lab_apply(&l, (struct event){.type = EV_END_INSTANCE, .end_instance = {1, "late"}});
    lab_deinit(&l);
}

static void an_ending_intent_that_is_refused_is_gone(void **state)
{
    (void)state;
    struct lab l;
    start(&l);
    lab_apply(&l, (struct event){.type = EV_END_INSTANCE, .end_instance = {1, "not wanted"}});
    refuse(&l, 1, true);
    assert_null(model_instance(l.m, 1));
    lab_deinit(&l);
}

static void an_instance_with_jobs_is_not_ended(void **state)
{
    (void)state;
    struct lab l;
    start(&l);
    lab_join_instance(&l, 1, 4);
    lab_plan(&l);
    struct event ev = {.type = EV_END_INSTANCE, .end_instance = {1, "oops"}};
    assert_int_equal(lab_try(&l, &ev, NULL), ERR_CONFLICT);
    lab_deinit(&l);
}

/* End of a job's attempt after the loss of its machine. */
static enum end_kind end_when_gone(bool noticed, bool reclaimed)
{
    struct lab l;
    start(&l);
    lab_launched(&l, 1);
    int64_t node = lab_join_instance(&l, 1, 4);
    lab_plan(&l);
    lab_wait(&l, 3600000);
    if (noticed)
        lab_notice(&l, node, NOTICE_TYPE_RECLAIM, 120000);
    gone(&l, 1, reclaimed);
    assert_null(model_node(l.m, node));
    enum end_kind end = model_job(l.m, 1)->row.end;
    assert_int_equal(model_job(l.m, 1)->row.state, JOB_PENDING);
    assert_int_equal(model_job(l.m, 1)->row.reclaims, 1);
    assert_int_equal(spot(&l)->row.reclaims, 1); /* spot machines do not vanish by themselves */
    assert_int_equal(spot(&l)->row.up_ms, 3600000);
    lab_take(&l);
    assert_true(lab_instance_row(&l, 1)->reclaimed);
    lab_deinit(&l);
    return end;
}

static void a_machine_gone_with_notice_was_reclaimed_else_lost(void **state)
{
    (void)state;
    assert_int_equal(end_when_gone(true, true), END_RECLAIMED);
    assert_int_equal(end_when_gone(true, false), END_RECLAIMED);
    assert_int_equal(end_when_gone(false, false), END_NODE_LOST);
    assert_int_equal(end_when_gone(false, true), END_NODE_LOST);
}

static void the_reclaim_rate_is_learned(void **state)
{
    (void)state;
    struct lab l;
    start(&l);
    lab_launched(&l, 1);
    struct node *n = model_node(l.m, lab_join_instance(&l, 1, 4));
    double before = core_reclaims_per_hour(n);
    assert_true(before > 0.0499 && before < 0.0501);
    spot(&l)->row.reclaims = 19;
    spot(&l)->row.up_ms = 20 * 3600000;
    double after = core_reclaims_per_hour(n); /* (19 + 1) / (20 + 20) */
    assert_true(after > 0.4999 && after < 0.5001);
    double owned = core_reclaims_per_hour(model_node(l.m, lab_join(&l, "n1", 2)));
    assert_true(owned > 0.0499 && owned < 0.0501);
    lab_deinit(&l);
}

static void a_machine_smaller_than_promised_is_remembered(void **state)
{
    (void)state;
    struct lab l;
    start(&l);
    lab_launched(&l, 1);
    lab_join_instance(&l, 1, 2);           /* the job needs 4 */
    assert_int_equal(lab_plan(&l), 0 + 1); /* on-demand is tried, spot m5 not again */
    assert_int_equal(model_instance(l.m, 2)->row.market, MARKET_ON_DEMAND);
    lab_launched(&l, 2);
    lab_join_instance(&l, 2, 2);
    assert_int_equal(lab_plan(&l), 0); /* then it waits, instead of launching machines forever */
    struct reason r[EXPLAIN_REASONS_MAX];
    assert_int_equal(core_explain(l.m, l.now, 1, r, EXPLAIN_REASONS_MAX), 1);
    assert_string_equal(r[0].code, "too-large");
    lab_deinit(&l);
}

static void a_price_changes_offers_and_running_machines(void **state)
{
    (void)state;
    struct lab l;
    start(&l);
    struct event ev = {.type = EV_PRICE, .price = {"r1", "z1", "m5", MARKET_SPOT, 1234567}};
    lab_take(&l);
    lab_apply(&l, ev);
    assert_int_equal(spot(&l)->row.price_uusd_h, 1234567);
    assert_int_equal(model_instance(l.m, 1)->row.price_uusd_h, 1234567);
    lab_take(&l);
    assert_int_equal(l.c.n_offers, 1);
    assert_int_equal(l.c.n_instances, 1);
    lab_apply(&l, ev); /* unchanged: no effect */
    ev.price.uusd_h = 5;
    STR_COPY(ev.price.zone, "z9"); /* elsewhere: no effect */
    lab_apply(&l, ev);
    lab_take(&l);
    assert_true(changes_is_empty(&l.c));
    struct event dear = {.type = EV_PRICE, .price = {"r1", "", "m5", MARKET_ON_DEMAND, 4000000}};
    lab_apply(&l, dear);
    assert_int_equal(spot(&l)->row.on_demand_uusd_h, 4000000);
    assert_int_equal(model_offer(l.m, 2)->row.price_uusd_h, 4000000);
    struct event bad = {.type = EV_PRICE, .price = {"r1", "z1", "m5", MARKET_SPOT, -1}};
    assert_int_equal(lab_try(&l, &bad, NULL), ERR_INVALID);
    lab_deinit(&l);
}

static void offers_and_pools_are_checked(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 4, "m5", 4);
    struct offer_row o = {
        .pool = "burst", .zone = "z1", .type = "m6", .market = MARKET_SPOT, .total = {4, 0, 1}};
    struct event ev = {.type = EV_OFFER, .offer = &o};
    int64_t id = 0;
    assert_int_equal(lab_try(&l, &ev, &id), 0);
    o.price_uusd_h = 77; /* the same offer, changed */
    int64_t again = 0;
    assert_int_equal(lab_try(&l, &ev, &again), 0);
    assert_int_equal(again, id);
    o.total.cpus = 0;
    assert_int_equal(lab_try(&l, &ev, NULL), ERR_INVALID);
    o.total.cpus = 4;
    STR_COPY(o.pool, "base"); /* not elastic */
    assert_int_equal(lab_try(&l, &ev, NULL), ERR_NOT_FOUND);
    struct pool_row p = {.name = "base", .elastic = true};
    struct event pool = {.type = EV_POOL, .pool = &p};
    assert_int_equal(lab_try(&l, &pool, NULL), ERR_CONFLICT);
    p = (struct pool_row){.name = "x", .max_nodes = -1};
    assert_int_equal(lab_try(&l, &pool, NULL), ERR_INVALID);
    p = (struct pool_row){.name = ""};
    assert_int_equal(lab_try(&l, &pool, NULL), ERR_INVALID);
    lab_deinit(&l);
}

static void a_pool_does_not_move_with_machines_in_it(void **state)
{
    (void)state;
    struct lab l;
    start(&l);
    struct pool_row p = model_pool(l.m, "burst")->row;
    STR_COPY(p.region, "r2");
    struct event ev = {.type = EV_POOL, .pool = &p};
    assert_int_equal(lab_try(&l, &ev, NULL), ERR_CONFLICT);
    lab_deinit(&l);
}

static void an_owned_nodes_price_follows_its_pool(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    int64_t id = lab_join(&l, "n1", 4);
    struct pool_row p = {.name = "base", .usd_per_hour_uusd = 700000};
    lab_apply(&l, (struct event){.type = EV_POOL, .pool = &p});
    assert_int_equal(model_node(l.m, id)->row.price_uusd_h, 700000);
    lab_deinit(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_part_of_a_boot_and_the_first_progress_are_stored),
        cmocka_unit_test(a_launch_is_an_intent_with_a_token_before_anything_else),
        cmocka_unit_test(a_launch_beyond_the_pool_is_refused),
        cmocka_unit_test(the_answer_names_the_machine),
        cmocka_unit_test(an_agent_may_join_before_the_answer),
        cmocka_unit_test(a_joined_machine_takes_its_price_and_market),
        cmocka_unit_test(a_refused_offer_is_avoided_for_a_time_that_doubles),
        cmocka_unit_test(refusals_of_one_moment_count_once),
        cmocka_unit_test(
            an_offer_that_reclaims_right_after_the_boot_is_avoided_for_a_time_that_doubles),
        cmocka_unit_test(a_configuration_fault_avoids_the_offer_for_long),
        cmocka_unit_test(a_queued_machine_is_free_and_boots_from_its_start),
        cmocka_unit_test(a_queued_machine_may_join_before_its_start_is_seen),
        cmocka_unit_test(a_queue_beyond_the_patience_is_no_capacity),
        cmocka_unit_test(a_machine_that_leaves_the_queue_unstarted_is_no_failed_boot),
        cmocka_unit_test(a_machine_that_never_joins_is_ended_and_its_offer_avoided),
        cmocka_unit_test(a_machine_that_dies_while_it_boots_is_as_good_as_refused),
        cmocka_unit_test(an_ending_instance_only_learns_its_name),
        cmocka_unit_test(an_ending_intent_that_is_refused_is_gone),
        cmocka_unit_test(an_instance_with_jobs_is_not_ended),
        cmocka_unit_test(a_machine_gone_with_notice_was_reclaimed_else_lost),
        cmocka_unit_test(the_reclaim_rate_is_learned),
        cmocka_unit_test(a_machine_smaller_than_promised_is_remembered),
        cmocka_unit_test(a_price_changes_offers_and_running_machines),
        cmocka_unit_test(offers_and_pools_are_checked),
        cmocka_unit_test(a_pool_does_not_move_with_machines_in_it),
        cmocka_unit_test(an_owned_nodes_price_follows_its_pool),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
