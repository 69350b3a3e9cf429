/* SPDX-License-Identifier: Apache-2.0
 *
 * Reservations for the head of the queue: the longest waiting job does not starve, and others run
 * where they do not delay it.
 */
#include "base/str.h"
#include "scheduler/core/model/text.h"
#include "scheduler/core/queue/queue.h"
#include "scheduler/core/queue/queue_walk.h"
#include "tests/core/lab.h"

#include <inttypes.h>

#define MINUTE_MS 60000LL
#define HOUR_MS (60 * MINUTE_MS)

/* The job that the node is reserved for. */
static int64_t kept_for(const struct lab *l, int64_t node)
{
    const struct shape *s = model_node(l->m, node)->reserved_for;
    return s ? s->head : CORE_ID_NONE;
}

/* Two nodes of 4 cpus with 3 used: on a for 2 hours, on b for 1. A job of 4 waits. */
struct pair {
    struct lab l;
    int64_t a, b, on_a, on_b, big;
};

static void make_pair(
    struct pair *p, int64_t limit_a, int64_t limit_b, const struct queue_policy *o)
{
    lab_init_for_days(&p->l, o, 0);
    p->a = lab_join(&p->l, "a", 4);
    p->on_a = lab_submit_nodes(&p->l, 1, 3, limit_a);
    lab_plan(&p->l);
    lab_wait(&p->l, 1);
    p->b = lab_join(&p->l, "b", 4);
    p->on_b = lab_submit_nodes(&p->l, 1, 3, limit_b);
    lab_plan(&p->l);
    lab_wait(&p->l, 1);
    p->big = lab_submit_nodes(&p->l, 1, 4, HOUR_MS);
    lab_plan(&p->l);
    assert_int_equal(lab_node_of(&p->l, p->on_a), p->a);
    assert_int_equal(lab_node_of(&p->l, p->on_b), p->b);
}

static void there_is_no_reservation_before_a_job_would_overtake(void **state)
{
    (void)state;
    struct pair p;
    make_pair(&p, 2 * HOUR_MS, HOUR_MS, NULL);
    assert_int_equal(kept_for(&p.l, p.a), CORE_ID_NONE);
    assert_int_equal(kept_for(&p.l, p.b), CORE_ID_NONE);
    int64_t small = lab_submit_nodes(&p.l, 1, 1, 0);
    lab_plan(&p.l);
    assert_int_equal(kept_for(&p.l, p.b), p.big); /* the first to have capacity for it */
    assert_int_equal(kept_for(&p.l, p.a), CORE_ID_NONE);
    assert_int_equal(lab_node_of(&p.l, small), p.a);
    lab_deinit(&p.l);
}

static void only_jobs_that_end_in_time_pass_a_reservation(void **state)
{
    (void)state;
    struct pair p;
    make_pair(&p, 2 * HOUR_MS, HOUR_MS, NULL);
    int64_t on_the_other = lab_submit_nodes(&p.l, 1, 1, 0),
            for_ever = lab_submit_nodes(&p.l, 1, 1, 0),
            too_long = lab_submit_nodes(&p.l, 1, 1, HOUR_MS + MINUTE_MS);
    int64_t in_time = lab_submit_nodes(&p.l, 1, 1, 30 * MINUTE_MS);
    lab_plan(&p.l);
    assert_int_equal(lab_node_of(&p.l, on_the_other), p.a);
    assert_true(!lab_runs(&p.l, for_ever) && !lab_runs(&p.l, too_long));
    assert_int_equal(lab_node_of(&p.l, in_time), p.b);
    lab_wait(&p.l, 30 * MINUTE_MS);
    lab_ended(&p.l, in_time, END_SUCCEEDED, 0);
    int64_t again = lab_submit_nodes(&p.l, 1, 1, 31 * MINUTE_MS),
            short_one = lab_submit_nodes(&p.l, 1, 1, 20 * MINUTE_MS);
    lab_plan(&p.l);
    assert_true(!lab_runs(&p.l, again));
    assert_int_equal(lab_node_of(&p.l, short_one), p.b);
    lab_wait(&p.l, 20 * MINUTE_MS);
    lab_ended(&p.l, short_one, END_TIMEOUT, 1);
    lab_wait(&p.l, 10 * MINUTE_MS);
    lab_ended(&p.l, p.on_b, END_SUCCEEDED, 0);
    lab_plan(&p.l);
    assert_int_equal(lab_node_of(&p.l, p.big), p.b);
    assert_int_equal(kept_for(&p.l, p.b), CORE_ID_NONE);
    lab_deinit(&p.l);
}

static void without_time_limits_the_longest_running_job_is_expected_to_end_first(void **state)
{
    (void)state;
    struct pair p;
    make_pair(&p, 0, 0, NULL);
    int64_t small = lab_submit_nodes(&p.l, 1, 1, 0),
            limited = lab_submit_nodes(&p.l, 1, 1, 100 * HOUR_MS);
    lab_plan(&p.l);
    assert_int_equal(kept_for(&p.l, p.a), p.big);
    assert_int_equal(lab_node_of(&p.l, small), p.b);
    /* known ends come before unknown ones */
    assert_int_equal(lab_node_of(&p.l, limited), p.a);
    lab_deinit(&p.l);
    make_pair(&p, 0, 1000 * HOUR_MS, NULL);
    lab_submit_nodes(&p.l, 1, 1, 0);
    lab_plan(&p.l);
    assert_int_equal(kept_for(&p.l, p.b), p.big);
    lab_deinit(&p.l);
}

static void a_job_that_leaves_enough_capacity_needs_no_time_limit(void **state)
{
    (void)state;
    struct lab l;
    lab_init_for_days(&l, NULL, 0);
    int64_t node = lab_join(&l, "a", 16);
    lab_submit_nodes(&l, 1, 14, HOUR_MS);
    lab_plan(&l);
    int64_t big = lab_submit_nodes(&l, 1, 15, HOUR_MS),
            fits_next_to = lab_submit_nodes(&l, 1, 1, 0), not_both = lab_submit_nodes(&l, 1, 1, 0);
    lab_plan(&l);
    assert_int_equal(kept_for(&l, node), big);
    assert_true(lab_runs(&l, fits_next_to));
    assert_true(!lab_runs(&l, not_both));
    lab_deinit(&l);
}

static void there_are_no_reservations_where_they_are_disabled(void **state)
{
    (void)state;
    struct pair p;
    struct queue_policy o = queue_policy_defaults;
    o.reserve = 0;
    make_pair(&p, 2 * HOUR_MS, HOUR_MS, &o);
    int64_t first = lab_submit_nodes(&p.l, 1, 1, 0), second = lab_submit_nodes(&p.l, 1, 1, 0);
    lab_plan(&p.l);
    assert_true(lab_runs(&p.l, first) && lab_runs(&p.l, second));
    lab_deinit(&p.l);
}

static void a_drained_node_loses_its_reservation(void **state)
{
    (void)state;
    struct pair p;
    make_pair(&p, 2 * HOUR_MS, HOUR_MS, NULL);
    int64_t first = lab_submit_nodes(&p.l, 1, 1, MINUTE_MS);
    lab_plan(&p.l);
    assert_int_equal(kept_for(&p.l, p.b), p.big);
    lab_ended(&p.l, first, END_SUCCEEDED, 0);
    lab_apply(&p.l, (struct event){.type = EV_DRAIN, .drain.node = p.b});
    assert_int_equal(kept_for(&p.l, p.b), CORE_ID_NONE);
    int64_t small = lab_submit_nodes(&p.l, 1, 1, 0);
    lab_plan(&p.l);
    assert_int_equal(kept_for(&p.l, p.a), p.big);
    assert_true(!lab_runs(&p.l, small));
    lab_apply(&p.l, (struct event){.type = EV_CANCEL, .cancel = {.job = p.big, .by = "ann"}});
    lab_plan(&p.l);
    /* others fit there now, although no capacity was freed */
    assert_int_equal(kept_for(&p.l, p.a), CORE_ID_NONE);
    assert_int_equal(lab_node_of(&p.l, small), p.a);
    lab_deinit(&p.l);
}

static void a_job_ahead_takes_the_reserved_capacity(void **state)
{
    (void)state;
    struct pair p;
    static struct policy_qos urgent[] = {{"urgent", 24 * HOUR_MS}};
    struct queue_policy o = queue_policy_defaults;
    o.qos = urgent;
    o.n_qos = 1;
    make_pair(&p, 2 * HOUR_MS, HOUR_MS, &o);
    int64_t small = lab_submit_nodes(&p.l, 1, 1, 0);
    lab_plan(&p.l);
    assert_int_equal(lab_node_of(&p.l, small), p.a);
    assert_int_equal(kept_for(&p.l, p.b), p.big);
    struct job_row r = lab_job(1);
    STR_COPY(r.spec.qos, "urgent");
    int64_t urgent_one = lab_submit(&p.l, &r);
    lab_plan(&p.l);
    assert_int_equal(lab_node_of(&p.l, urgent_one), p.b);
    assert_int_equal(kept_for(&p.l, p.b), CORE_ID_NONE); /* the reservation had become invalid */
    lab_deinit(&p.l);
}

static void launches_serve_where_a_pool_may_grow(void **state)
{
    (void)state;
    struct lab l;
    lab_init_for_days(&l, NULL, 0);
    lab_elastic(&l, "burst", 2, "m5", 4);
    lab_submit_nodes(&l, 1, 3, HOUR_MS);
    lab_plan(&l);
    int64_t node = lab_bring_up(&l, 1, 4);
    lab_plan(&l);
    lab_submit_nodes(&l, 1, 4, HOUR_MS);
    int64_t small = lab_submit_nodes(&l, 1, 1, 0);
    lab_plan(&l);
    assert_int_equal(lab_node_of(&l, small), node);
    assert_int_equal(kept_for(&l, node), CORE_ID_NONE);
    lab_bring_up(&l, 2, 4);
    lab_plan(&l);
    int64_t big = lab_submit_nodes(&l, 1, 4, HOUR_MS); /* no third machine will come */
    lab_ended(&l, small, END_SUCCEEDED, 0);
    int64_t late = lab_submit_nodes(&l, 1, 1, 0);
    lab_plan(&l);
    assert_int_equal(kept_for(&l, node), big);
    assert_true(!lab_runs(&l, late));
    lab_deinit(&l);
}

static void a_gang_gets_the_nodes_that_are_free_together_first(void **state)
{
    (void)state;
    struct lab l;
    int64_t node[4], on[4];
    lab_init_for_days(&l, NULL, 0);
    for (int k = 0; k < 4; k++) {
        char name[8];
        text_format(name, sizeof name, "n%d", k);
        node[k] = lab_join(&l, name, 4);
        on[k] = lab_submit_nodes(&l, 1, 3, (5 - k) * HOUR_MS);
        lab_plan(&l);
        assert_int_equal(lab_node_of(&l, on[k]), node[k]);
    }
    int64_t gang = lab_submit_nodes(&l, 2, 4, HOUR_MS),
            small = lab_submit_nodes(&l, 1, 1, 2 * HOUR_MS + MINUTE_MS);
    lab_plan(&l);
    assert_int_equal(kept_for(&l, node[3]), gang);
    assert_int_equal(kept_for(&l, node[2]), gang);
    assert_int_equal(kept_for(&l, node[1]), CORE_ID_NONE);
    assert_true(lab_runs(&l, small)); /* it ends before the gang has both */
    lab_ended(&l, on[3], END_SUCCEEDED, 0);
    if (lab_node_of(&l, small) == node[3])
        lab_ended(&l, small, END_SUCCEEDED, 0);
    lab_ended(&l, on[2], END_SUCCEEDED, 0);
    if (model_job(l.m, small))
        lab_ended(&l, small, END_SUCCEEDED, 0);
    lab_plan(&l);
    assert_true(lab_runs(&l, gang));
    lab_deinit(&l);
}

static void why_explains_a_reservation(void **state)
{
    (void)state;
    struct pair p;
    struct reason why[EXPLAIN_REASONS_MAX];
    make_pair(&p, 2 * HOUR_MS, HOUR_MS, NULL);
    lab_submit_nodes(&p.l, 1, 1, 0);
    int64_t small = lab_submit_nodes(&p.l, 1, 1, 0);
    lab_plan(&p.l);
    size_t n = core_explain(p.l.m, p.l.now, p.big, why, EXPLAIN_REASONS_MAX), k = 0;
    while (k < n && !str_eq(why[k].code, "reserved"))
        k++;
    assert_true(k < n);
    assert_string_equal(why[k].text, "b is reserved for it: it starts there in 59m59s, by the time "
                                     "limits of the jobs there, or elsewhere before");
    n = core_explain(p.l.m, p.l.now, small, why, EXPLAIN_REASONS_MAX);
    for (k = 0; k < n && !str_eq(why[k].code, "reserved-for");)
        k++;
    assert_true(k < n);
    assert_string_equal(why[k].text,
        "1 node has capacity, reserved for job 3, expected to start in 59m59s, by the "
        "time limits of the jobs there; with a --time it might run until then");
    lab_deinit(&p.l);
}

static void what_cannot_be_is_refused(void **state)
{
    (void)state;
    struct pair p;
    make_pair(&p, HOUR_MS, HOUR_MS, NULL);
    const int64_t none[] = {99}, twice[] = {p.a, p.a};
    struct event bad[] = {
        {.type = EV_RESERVE, .reserve = {.job = 77}},
        {.type = EV_RESERVE, .reserve = {.job = p.on_a}},
        {.type = EV_RESERVE, .reserve = {.job = p.big, .nodes = none, .n_nodes = 1}},
        {.type = EV_RESERVE, .reserve = {.job = p.big, .nodes = twice, .n_nodes = 2}},
    };
    for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++)
        assert_int_equal(lab_try(&p.l, &bad[k], NULL), ERR_CONFLICT);
    lab_deinit(&p.l);
}

/* ---- under load ---- */

struct load {
    struct lab l;
    uint64_t random;
    int64_t *ends; /* by job: time of its end; 0: not placed */
    size_t n_ends;
};

static uint64_t draw(struct load *w, uint64_t below)
{
    w->random = w->random * 6364136223846793005ULL + 1442695040888963407ULL;
    return (w->random >> 33) % below;
}

static void apply(struct load *w, struct event ev)
{
    ev.now = w->l.now;
    if (core_apply(w->l.m, &ev, NULL, &w->l.e))
        fail_msg("%s: %s", event_type_names[ev.type], w->l.e.text);
}

static void end_those_due(struct load *w)
{
    LIST_FOREACH (model_nodes(w->l.m), ln) {
        const struct node *n = LIST_ENTRY(ln, struct node, in_all);
        LIST_FOREACH (&n->attempts, la) {
            const struct attempt *a = LIST_ENTRY(la, struct attempt, on_node);
            /* between half of its limit and all of it */
            int64_t limit = a->job->row.spec.time_limit_ms,
                    ran = w->l.now.wall.ms - a->row.assigned_at.ms;
            if (ran >= limit / 2 + (a->row.job * 7919) % 100 * limit / 200)
                apply(w,
                    (struct event){.type = EV_ATTEMPT_ENDED,
                        .ended = {a->row.job, a->row.attempt, a->row.node, END_SUCCEEDED, 0, ""}});
        }
    }
}

static void decide(struct load *w)
{
    struct event ev;
    while (plan_next(w->l.p, w->l.m, w->l.now, &ev))
        apply(w, ev);
}

static void keep_busy(struct load *w)
{
    struct model_counts c;
    for (model_counts(w->l.m, &c); c.pending < 40; c.pending++) {
        struct job_row r = lab_job((int32_t)(1 + draw(w, 3)));
        r.spec.time_limit_ms = (1 + (int64_t)draw(w, 6)) * 20 * MINUTE_MS;
        apply(w, (struct event){.type = EV_SUBMIT, .submit.job = &r});
    }
}

/* Wait in ms of a gang on all nodes with always 40 small jobs of up to two hours pending; at most a
 * week. */
static int64_t wait_of_a_gang(int32_t reserve)
{
    struct load w = {.random = 5};
    struct queue_policy o = queue_policy_defaults;
    o.reserve = reserve;
    lab_init_for_days(&w.l, &o, 0);
    for (int k = 0; k < 8; k++) {
        char name[8];
        text_format(name, sizeof name, "n%d", k);
        lab_join(&w.l, name, 4);
    }
    int64_t gang = 0, from = w.l.now.wall.ms + 4 * HOUR_MS, most = 7 * 24 * HOUR_MS;
    while (!gang || (!lab_runs(&w.l, gang) && w.l.now.wall.ms - from < most)) {
        if (!gang && w.l.now.wall.ms >= from)
            gang = lab_submit_nodes(&w.l, 8, 4, HOUR_MS);
        end_those_due(&w);
        keep_busy(&w);
        decide(&w);
        lab_wait(&w.l, MINUTE_MS);
        lab_take(&w.l);
    }
    assert_int_equal(model_check(w.l.m, &w.l.e), 0);
    int64_t waited = w.l.now.wall.ms - from;
    lab_deinit(&w.l);
    return waited;
}

/* It first waits for the jobs before it, then for the running ones. */
static void the_wait_of_the_largest_gang_is_bounded(void **state)
{
    (void)state;
    int64_t without = wait_of_a_gang(0), with = wait_of_a_gang(8);
    print_message("a gang of all nodes waits for %.1f h, without capacity kept for it %.1f h%s\n",
        (double)with / HOUR_MS, (double)without / HOUR_MS,
        without >= 7 * 24 * HOUR_MS ? " and more" : "");
    assert_true(with < 6 * HOUR_MS);
    assert_true(without >= 7 * 24 * HOUR_MS);
}

static int64_t last_end(const struct load *w)
{
    int64_t last = 0;
    LIST_FOREACH (model_nodes(w->l.m), ln) {
        LIST_FOREACH (&LIST_ENTRY(ln, struct node, in_all)->attempts, la) {
            const struct attempt *a = LIST_ENTRY(la, struct attempt, on_node);
            int64_t end = a->row.assigned_at.ms + a->job->row.spec.time_limit_ms;
            last = end > last ? end : last;
        }
    }
    return last;
}

static int64_t first_in_queue(const struct model *m)
{
    struct queue_walk w = {0};
    queue_walk_begin(&w, m);
    const struct shape *s = queue_walk_next(&w);
    int64_t job = s ? s->head : CORE_ID_NONE;
    queue_walk_end(&w);
    return job;
}

/* Small jobs arrive forever. Once the gang is first in the queue it waits only for jobs running
 * then, up to their time limits. Returns the unused part of that bound. */
static int64_t left_of_its_bound(uint64_t seed)
{
    struct load w = {.random = seed};
    int64_t gang = 0, bound = 0;
    lab_init_for_days(&w.l, NULL, 0);
    for (int k = 0; k < 8; k++) {
        char name[8];
        text_format(name, sizeof name, "n%d", k);
        lab_join(&w.l, name, 4);
    }
    for (int64_t from = w.l.now.wall.ms + 2 * HOUR_MS; !gang || !lab_runs(&w.l, gang);
         lab_wait(&w.l, MINUTE_MS)) {
        if (!gang && w.l.now.wall.ms >= from)
            gang = lab_submit_nodes(&w.l, 8, 4, HOUR_MS);
        end_those_due(&w);
        keep_busy(&w);
        decide(&w);
        if (bound == 0 && gang && !lab_runs(&w.l, gang) && first_in_queue(w.l.m) == gang)
            bound = last_end(&w) + MINUTE_MS; /* one tick */
        if (bound > 0 && w.l.now.wall.ms > bound)
            fail_msg("a gang of all nodes waits longer than what ran when it came to the front "
                     "(seed %" PRIu64 ")",
                seed);
        lab_take(&w.l);
    }
    int64_t left = bound - (w.l.now.wall.ms - MINUTE_MS);
    lab_deinit(&w.l);
    return left;
}

static void a_gang_at_the_front_waits_for_what_runs_then(void **state)
{
    (void)state;
    int64_t least = INT64_MAX;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        int64_t left = left_of_its_bound(seed);
        least = left < least ? left : least;
    }
    print_message("of the time limits of what ran when a gang came to the front, at least %" PRId64
                  " min were left when it started\n",
        (int64_t)(least / MINUTE_MS));
    assert_true(least >= 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_is_no_reservation_before_a_job_would_overtake),
        cmocka_unit_test(only_jobs_that_end_in_time_pass_a_reservation),
        cmocka_unit_test(without_time_limits_the_longest_running_job_is_expected_to_end_first),
        cmocka_unit_test(a_job_that_leaves_enough_capacity_needs_no_time_limit),
        cmocka_unit_test(there_are_no_reservations_where_they_are_disabled),
        cmocka_unit_test(a_drained_node_loses_its_reservation),
        cmocka_unit_test(a_job_ahead_takes_the_reserved_capacity),
        cmocka_unit_test(launches_serve_where_a_pool_may_grow),
        cmocka_unit_test(a_gang_gets_the_nodes_that_are_free_together_first),
        cmocka_unit_test(why_explains_a_reservation),
        cmocka_unit_test(what_cannot_be_is_refused),
        cmocka_unit_test(the_wait_of_the_largest_gang_is_bounded),
        cmocka_unit_test(a_gang_at_the_front_waits_for_what_runs_then),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
