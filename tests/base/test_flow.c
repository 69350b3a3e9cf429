/* SPDX-License-Identifier: Apache-2.0
 *
 * Virtual timers, and flows on them. A flow's life is written down as a text: r0 = step 0 ran, c0 =
 * cancelled, u0 = undone, D or E = done well or with an error.
 */
#include "tests/base/tools.h"

#include "base/buf.h"
#include "base/flow.h"
#include "base/str.h"
#include "base/vtimers.h"

/* ---- timers ---- */

struct bell {
    struct timer timer;
    struct vtimers *vt;
    struct buf *heard;
    char name;
    struct bell *starts, *stops; /* from inside its callback */
};

static void ring(struct timer *t, void *ctx)
{
    struct bell *b = ctx;
    assert_false(timer_is_running(t));
    buf_printf(b->heard, "%c%lld ", b->name, (long long)clock_mono(&b->vt->clock).ms);
    if (b->starts)
        timer_start(&b->vt->timers, &b->starts->timer, 5);
    if (b->stops)
        timer_stop(&b->vt->timers, &b->stops->timer);
}

static void hang(struct bell *b, struct vtimers *vt, struct buf *heard, char name)
{
    *b = (struct bell){.vt = vt, .heard = heard, .name = name};
    timer_init(&b->timer, ring, b);
}

static void timers_run_in_order_of_time_then_of_start(void **state)
{
    struct vtimers vt;
    struct buf heard = {0};
    struct bell a, b, c, d;
    int64_t due;
    (void)state;
    vtimers_init(&vt, 1000000);
    hang(&a, &vt, &heard, 'a');
    hang(&b, &vt, &heard, 'b');
    hang(&c, &vt, &heard, 'c');
    hang(&d, &vt, &heard, 'd');
    assert_false(vtimers_next(&vt, &due));
    assert_false(vtimers_run_next(&vt));
    timer_start(&vt.timers, &a.timer, 20);
    timer_start(&vt.timers, &b.timer, 10);
    timer_start(&vt.timers, &c.timer, 10);
    timer_start(&vt.timers, &d.timer, 10);
    b.starts = &a; /* restarted: due at 15 now */
    b.stops = &d;
    assert_true(vtimers_next(&vt, &due) && due == 10);
    assert_string_equal(buf_str(&heard), ""); /* nothing runs inside of start */
    vtimers_advance(&vt, 12);
    assert_string_equal(buf_str(&heard), "b10 c10 ");
    assert_int_equal(clock_mono(&vt.clock).ms, 12);
    assert_int_equal(clock_wall(&vt.clock).ms, 1000012);
    vtimers_set_wall(&vt, 5);
    assert_int_equal(clock_wall(&vt.clock).ms, 5);
    vtimers_advance(&vt, 100);
    assert_string_equal(buf_str(&heard), "b10 c10 a15 ");
    timer_start(&vt.timers, &a.timer, INT64_MAX); /* never, and no overflow */
    assert_true(timer_is_running(&a.timer));
    timer_stop(&vt.timers, &a.timer);
    timer_stop(&vt.timers, &a.timer);
    timer_start(&vt.timers, &a.timer, 1);
    vtimers_deinit(&vt);
    assert_false(timer_is_running(&a.timer));
    buf_deinit(&heard);
}

#define BELLS 200

/* Random starts and stops against the rule itself: the next is the least due, of equals the first started. */
static void the_heap_agrees_with_the_rule(void **state)
{
    struct vtimers vt;
    struct buf heard = {0};
    struct bell bells[BELLS];
    int64_t due[BELLS], order[BELLS], next_order = 1, t;
    struct prng p;
    (void)state;
    prng_init(&p, 2);
    vtimers_init(&vt, 0);
    for (size_t i = 0; i < BELLS; i++) {
        hang(&bells[i], &vt, &heard, 'x');
        order[i] = 0;
    }
    for (int round = 0; round < 20000; round++) {
        size_t i = prng_below(&p, BELLS), first = BELLS;
        switch (prng_below(&p, 3)) {
        case 0:
            due[i] = clock_mono(&vt.clock).ms + (int64_t)prng_below(&p, 50);
            order[i] = next_order++;
            timer_start(&vt.timers, &bells[i].timer, due[i] - clock_mono(&vt.clock).ms);
            break;
        case 1:
            order[i] = 0;
            timer_stop(&vt.timers, &bells[i].timer);
            break;
        default:
            for (size_t k = 0; k < BELLS; k++)
                if (order[k] && (first == BELLS || due[k] < due[first] ||
                                    (due[k] == due[first] && order[k] < order[first])))
                    first = k;
            assert_int_equal(vtimers_next(&vt, &t), first != BELLS);
            if (first == BELLS)
                break;
            assert_int_equal(t, due[first]);
            vtimers_run_next(&vt);
            assert_false(timer_is_running(&bells[first].timer));
            order[first] = 0;
        }
    }
    vtimers_deinit(&vt);
    buf_deinit(&heard);
}

/* ---- flows ---- */

enum how { WELL, FAIL_IO, FAIL_QUOTA, HANG, HANG_THEN_WELL };

struct trial {
    struct vtimers vt;
    struct prng prng;
    struct flow flow;
    struct buf said;
    enum how how[3][4]; /* by step and try */
    int tries[3];
    bool at_once; /* completions inside of run */
    struct timer completion;
    enum how pending;
    int n_done;
    struct err e;
};

static void complete(struct trial *t, enum how how)
{
    struct err e;
    if (how == WELL || how == HANG_THEN_WELL) {
        flow_step_done(&t->flow, NULL);
    } else {
        err_set(&e, how == FAIL_QUOTA ? ERR_QUOTA : ERR_IO, "it broke");
        flow_step_done(&t->flow, &e);
    }
}

static void on_completion(struct timer *timer, void *ctx)
{
    struct trial *t = ctx;
    (void)timer;
    complete(t, t->pending);
}

static void run(struct trial *t, int step)
{
    enum how how = t->how[step][t->tries[step]++];
    buf_printf(&t->said, "r%d ", step);
    t->pending = how;
    if (how == HANG || how == HANG_THEN_WELL)
        return;
    if (t->at_once)
        complete(t, how);
    else
        timer_start(&t->vt.timers, &t->completion, 10);
}

static void cancel(struct trial *t, int step)
{
    buf_printf(&t->said, "c%d ", step);
    timer_start(&t->vt.timers, &t->completion, 5);
}

static void undo(struct trial *t, int step)
{
    buf_printf(&t->said, "u%d ", step);
    flow_undo_done(&t->flow);
}

#define STEP(n)                                                                                              \
    static void run_##n(struct flow *f, void *ctx)                                                           \
    {                                                                                                        \
        (void)f;                                                                                             \
        run(ctx, n);                                                                                         \
    }                                                                                                        \
    static void cancel_##n(struct flow *f, void *ctx)                                                        \
    {                                                                                                        \
        (void)f;                                                                                             \
        cancel(ctx, n);                                                                                      \
    }                                                                                                        \
    static void undo_##n(struct flow *f, void *ctx)                                                          \
    {                                                                                                        \
        (void)f;                                                                                             \
        undo(ctx, n);                                                                                        \
    }
STEP(0)
STEP(1)
STEP(2)

static const struct flow_step steps[] = {
    {"zero", run_0, cancel_0, undo_0, 100, 3, 50, 1000},
    {"one", run_1, cancel_1, undo_1, 100, 3, 50, 1000},
    {"two", run_2, cancel_2, undo_2, 100, 1, 50, 1000},
};

static void on_done(struct flow *f, void *ctx, const struct err *e)
{
    struct trial *t = ctx;
    assert_false(flow_is_running(f));
    buf_adds(&t->said, e ? "E" : "D");
    t->n_done++;
    if (e)
        t->e = *e;
}

static void begin(struct trial *t)
{
    vtimers_init(&t->vt, 0);
    prng_init(&t->prng, 1);
    timer_init(&t->completion, on_completion, t);
    flow_start(&t->flow, "launch", steps, LEN(steps), &t->vt.timers, &t->prng, t, on_done);
    assert_int_equal(t->n_done, 0);
}

static void finish(struct trial *t, const char *said)
{
    while (vtimers_run_next(&t->vt))
        ;
    assert_string_equal(buf_str(&t->said), said);
    assert_int_equal(t->n_done, 1);
    assert_false(flow_is_running(&t->flow));
    buf_deinit(&t->said);
    vtimers_deinit(&t->vt);
}

static void steps_run_one_after_the_other(void **state)
{
    struct trial t = {0}, at_once = {.at_once = true};
    (void)state;
    begin(&t);
    assert_true(flow_is_running(&t.flow));
    finish(&t, "r0 r1 r2 D");
    begin(&at_once);
    finish(&at_once, "r0 r1 r2 D");
}

static void a_retryable_error_is_tried_again(void **state)
{
    struct trial t = {.how = {{FAIL_IO, FAIL_IO, WELL}}};
    (void)state;
    begin(&t);
    finish(&t, "r0 r0 r0 r1 r2 D");
}

static void the_last_try_that_fails_undoes_what_was_done(void **state)
{
    struct trial t = {.how = {{0}, {FAIL_IO, FAIL_IO, FAIL_IO}}};
    (void)state;
    begin(&t);
    finish(&t, "r0 r1 r1 r1 u0 E");
    assert_err(&t.e, ERR_IO, "launch: one: it broke");
}

static void an_answer_is_not_tried_again(void **state)
{
    struct trial t = {.how = {{0}, {0}, {FAIL_QUOTA}}};
    (void)state;
    begin(&t);
    finish(&t, "r0 r1 r2 u1 u0 E");
    assert_err(&t.e, ERR_QUOTA, "launch: two: it broke");
    assert_true(flow_is_retryable(ERR_THROTTLED) && flow_is_retryable(ERR_UNAVAILABLE));
    assert_false(flow_is_retryable(ERR_QUOTA) || flow_is_retryable(ERR_CANCELLED));
}

static void a_flow_without_a_name_tells_errors_as_its_steps_do(void **state)
{
    struct trial t = {.how = {{0}, {0}, {FAIL_QUOTA}}};
    (void)state;
    begin(&t);
    t.flow.name = NULL;
    finish(&t, "r0 r1 r2 u1 u0 E");
    assert_err(&t.e, ERR_QUOTA, "it broke");
}

static void a_deadline_hastens_and_counts_as_a_try(void **state)
{
    struct trial t = {.how = {{HANG, WELL}}};
    (void)state;
    begin(&t);
    finish(&t, "r0 c0 r0 r1 r2 D");
}

static void a_deadline_that_is_met_after_all_is_a_success(void **state)
{
    struct trial t = {.how = {{HANG_THEN_WELL}}};
    (void)state;
    begin(&t);
    finish(&t, "r0 c0 r1 r2 D");
}

static void a_deadline_of_the_only_try_is_a_timeout(void **state)
{
    struct trial t = {.how = {{0}, {0}, {HANG}}};
    (void)state;
    begin(&t);
    finish(&t, "r0 r1 r2 c2 u1 u0 E");
    assert_err(&t.e, ERR_TIMEOUT, "launch: two: did not finish within 100 ms");
}

/* Cancelled after k timers have run, for every k. */
static void a_cancel_at_any_moment_leaves_nothing_behind(void **state)
{
    int succeeded = 0;
    (void)state;
    for (int k = 0; k < 12; k++) {
        struct trial t = {.how = {{FAIL_IO, WELL}}};
        begin(&t);
        for (int i = 0; i < k && t.n_done == 0; i++)
            vtimers_run_next(&t.vt);
        flow_cancel(&t.flow);
        flow_cancel(&t.flow);
        while (vtimers_run_next(&t.vt))
            ;
        assert_int_equal(t.n_done, 1);
        if (str_ends(buf_str(&t.said), "D")) {
            succeeded++;
        } else {
            assert_int_equal(t.e.kind, ERR_CANCELLED);
            for (int step = 0; step < 3; step++) { /* what finished was undone, once */
                char undone[4] = {'u', (char)('0' + step), ' ', 0},
                     ran[4] = {'r', (char)('0' + step), ' ', 0};
                const char *u = strstr(buf_str(&t.said), undone);
                assert_true(!u || (strstr(buf_str(&t.said), ran) && !strstr(u + 1, undone)));
            }
        }
        buf_deinit(&t.said);
        vtimers_deinit(&t.vt);
    }
    assert_in_range(succeeded, 1, 6);
}

static void a_step_that_finishes_while_it_is_cancelled_is_undone(void **state)
{
    struct trial t = {.how = {{0}, {HANG_THEN_WELL}}};
    (void)state;
    begin(&t);
    for (int i = 0; i < 3; i++) /* start, completion of zero, run of one */
        vtimers_run_next(&t.vt);
    flow_cancel(&t.flow);
    finish(&t, "r0 r1 c1 u1 u0 E");
    assert_int_equal(t.e.kind, ERR_CANCELLED);
}

static void an_abandoned_flow_says_nothing(void **state)
{
    struct trial t = {0};
    (void)state;
    begin(&t);
    flow_abandon(&t.flow);
    flow_abandon(&t.flow);
    assert_false(flow_is_running(&t.flow));
    assert_false(vtimers_run_next(&t.vt));
    flow_cancel(&t.flow);
    assert_int_equal(t.n_done, 0);
    vtimers_deinit(&t.vt);
}

static void start_twice(void *arg)
{
    struct trial *t = arg;
    flow_start(&t->flow, "launch", steps, LEN(steps), &t->vt.timers, &t->prng, t, on_done);
}

static void completions_come_exactly_once(void **state)
{
    struct trial t = {0};
    (void)state;
    begin(&t);
    assert_true(dies(start_twice, &t));
    while (vtimers_run_next(&t.vt))
        ;
    assert_true(dies((void (*)(void *))flow_undo_done, &t.flow));
    buf_deinit(&t.said);
    vtimers_deinit(&t.vt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(timers_run_in_order_of_time_then_of_start),
        cmocka_unit_test(the_heap_agrees_with_the_rule),
        cmocka_unit_test(steps_run_one_after_the_other),
        cmocka_unit_test(a_retryable_error_is_tried_again),
        cmocka_unit_test(the_last_try_that_fails_undoes_what_was_done),
        cmocka_unit_test(an_answer_is_not_tried_again),
        cmocka_unit_test(a_flow_without_a_name_tells_errors_as_its_steps_do),
        cmocka_unit_test(a_deadline_hastens_and_counts_as_a_try),
        cmocka_unit_test(a_deadline_that_is_met_after_all_is_a_success),
        cmocka_unit_test(a_deadline_of_the_only_try_is_a_timeout),
        cmocka_unit_test(a_cancel_at_any_moment_leaves_nothing_behind),
        cmocka_unit_test(a_step_that_finishes_while_it_is_cancelled_is_undone),
        cmocka_unit_test(an_abandoned_flow_says_nothing),
        cmocka_unit_test(completions_come_exactly_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
