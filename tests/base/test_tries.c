/* SPDX-License-Identifier: Apache-2.0
 *
 * Virtual timers, and tries of a call that use them. Their life is recorded as a text: r = run, D
 * or E = done with success or an error.
 */
#include "tests/base/tools.h"

#include "base/buf.h"
#include "base/str.h"
#include "base/tries.h"
#include "base/vtimers.h"

/* ---- timers ---- */

struct bell {
    struct timer timer;
    struct vtimers *vt;
    struct buf *heard;
    char name;
    struct bell *starts, *stops; /* inside its callback */
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

static void timers_run_by_due_time_then_by_start(void **state)
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
    b.starts = &a; /* restarted: now due at 15 */
    b.stops = &d;
    assert_true(vtimers_next(&vt, &due) && due == 10);
    assert_string_equal(buf_str(&heard), ""); /* nothing runs inside start */
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

/* Random starts and stops compared with the rule itself: next is the earliest due, among equals the
 * one started first. */
static void the_heap_agrees_with_a_linear_search(void **state)
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

/* ---- tries ---- */

enum how { WELL, FAIL_IO, FAIL_QUOTA, LATE, LATE_BUT_WELL };

struct trial {
    struct vtimers vt;
    struct prng prng;
    struct tries tries;
    struct buf said;
    enum how how[4]; /* by try */
    int n;
    bool at_once; /* completes inside run */
    struct timer completion;
    enum how pending;
    int n_done;
    struct err e;
};

static void complete(struct trial *t, enum how how)
{
    struct err e;
    if (how == WELL || how == LATE_BUT_WELL) {
        tries_ended(&t->tries, NULL);
    } else {
        err_set(&e, how == FAIL_QUOTA ? ERR_QUOTA : ERR_IO, "it broke");
        tries_ended(&t->tries, &e);
    }
}

static void on_completion(struct timer *timer, void *ctx)
{
    struct trial *t = ctx;
    (void)timer;
    complete(t, t->pending);
}

static void run(struct tries *tries, void *ctx)
{
    struct trial *t = ctx;
    enum how how = t->how[t->n++];
    (void)tries;
    buf_adds(&t->said, "r ");
    t->pending = how;
    if (t->at_once)
        complete(t, how);
    else
        timer_start(&t->vt.timers, &t->completion, how == LATE || how == LATE_BUT_WELL ? 150 : 10);
}

static void on_done(struct tries *tries, void *ctx, const struct err *e)
{
    struct trial *t = ctx;
    assert_false(tries_is_running(tries));
    buf_adds(&t->said, e ? "E" : "D");
    t->n_done++;
    if (e)
        t->e = *e;
}

static const struct tries_options options = {.run = run,
    .done = on_done,
    .deadline_ms = 100,
    .most = 3,
    .backoff_ms = 50,
    .backoff_cap_ms = 1000};

static void begin(struct trial *t)
{
    vtimers_init(&t->vt, 0);
    prng_init(&t->prng, 1);
    timer_init(&t->completion, on_completion, t);
    tries_start(&t->tries, &options, &t->vt.timers, &t->prng, t);
    assert_int_equal(t->n_done, 0);
}

static void finish(struct trial *t, const char *said)
{
    while (vtimers_run_next(&t->vt))
        ;
    assert_string_equal(buf_str(&t->said), said);
    assert_int_equal(t->n_done, 1);
    assert_false(tries_is_running(&t->tries));
    buf_deinit(&t->said);
    vtimers_deinit(&t->vt);
}

static void a_success_is_not_retried(void **state)
{
    struct trial t = {0}, at_once = {.at_once = true};
    (void)state;
    begin(&t);
    assert_true(tries_is_running(&t.tries));
    finish(&t, "r D");
    begin(&at_once);
    finish(&at_once, "r D");
}

static void a_retryable_error_is_retried(void **state)
{
    struct trial t = {.how = {FAIL_IO, FAIL_IO, WELL}},
                 at_once = {.how = {FAIL_IO, FAIL_IO, WELL}, .at_once = true};
    (void)state;
    begin(&t);
    finish(&t, "r r r D");
    begin(&at_once);
    finish(&at_once, "r r r D");
}

static void the_error_of_the_last_try_is_returned(void **state)
{
    struct trial t = {.how = {LATE, FAIL_IO, FAIL_IO}};
    (void)state;
    begin(&t);
    finish(&t, "r r r E");
    assert_err(&t.e, ERR_IO, "it broke");
}

static void a_definite_error_is_not_retried(void **state)
{
    struct trial t = {.how = {FAIL_QUOTA}};
    (void)state;
    begin(&t);
    finish(&t, "r E");
    assert_err(&t.e, ERR_QUOTA, "it broke");
    assert_true(tries_is_retryable(ERR_THROTTLED) && tries_is_retryable(ERR_UNAVAILABLE));
    assert_false(tries_is_retryable(ERR_QUOTA) || tries_is_retryable(ERR_CANCELLED));
}

static void a_success_after_the_deadline_is_a_success(void **state)
{
    struct trial t = {.how = {LATE_BUT_WELL}};
    (void)state;
    begin(&t);
    finish(&t, "r D");
}

static void a_timeout_counts_as_a_try(void **state)
{
    struct trial once = {.how = {LATE, WELL}}, t = {.how = {LATE, LATE, LATE}};
    (void)state;
    begin(&once);
    finish(&once, "r r D");
    begin(&t);
    finish(&t, "r r r E");
    assert_err(&t.e, ERR_TIMEOUT, "did not finish within 100 ms");
}

/* Cancelled after k timers have run, for every k; in either order, a try in progress ends by
 * itself. */
static void a_cancel_at_any_moment_completes_once(void **state)
{
    int succeeded = 0;
    (void)state;
    for (int k = 0; k < 8; k++) {
        struct trial t = {.how = {FAIL_IO, k % 2 ? WELL : LATE_BUT_WELL}};
        begin(&t);
        for (int i = 0; i < k && t.n_done == 0; i++)
            vtimers_run_next(&t.vt);
        int began = t.n;
        tries_cancel(&t.tries);
        tries_cancel(&t.tries);
        while (vtimers_run_next(&t.vt))
            ;
        assert_int_equal(t.n_done, 1);
        assert_int_equal(t.n, began); /* no further try begins */
        if (str_ends(buf_str(&t.said), "D"))
            succeeded++;
        else
            assert_int_equal(t.e.kind, ERR_CANCELLED);
        buf_deinit(&t.said);
        vtimers_deinit(&t.vt);
    }
    assert_in_range(succeeded, 1, 4);
}

static void a_success_during_a_cancel_is_cancelled(void **state)
{
    struct trial t = {.how = {LATE_BUT_WELL}};
    (void)state;
    begin(&t);
    vtimers_run_next(&t.vt); /* start */
    assert_int_equal(t.n, 1);
    tries_cancel(&t.tries);
    finish(&t, "r E");
    assert_int_equal(t.e.kind, ERR_CANCELLED);
}

static void an_abandoned_call_does_not_complete(void **state)
{
    struct trial t = {0};
    (void)state;
    begin(&t);
    tries_abandon(&t.tries);
    tries_abandon(&t.tries);
    assert_false(tries_is_running(&t.tries));
    assert_false(vtimers_run_next(&t.vt));
    tries_cancel(&t.tries);
    assert_int_equal(t.n_done, 0);
    vtimers_deinit(&t.vt);
}

static void start_twice(void *arg)
{
    struct trial *t = arg;
    tries_start(&t->tries, &options, &t->vt.timers, &t->prng, t);
}

static void end_twice(void *arg)
{
    tries_ended(arg, NULL);
}

static void each_call_completes_exactly_once(void **state)
{
    struct trial t = {0};
    (void)state;
    begin(&t);
    assert_true(dies(start_twice, &t));
    while (vtimers_run_next(&t.vt))
        ;
    assert_true(dies(end_twice, &t.tries));
    buf_deinit(&t.said);
    vtimers_deinit(&t.vt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(timers_run_by_due_time_then_by_start),
        cmocka_unit_test(the_heap_agrees_with_a_linear_search),
        cmocka_unit_test(a_success_is_not_retried),
        cmocka_unit_test(a_retryable_error_is_retried),
        cmocka_unit_test(the_error_of_the_last_try_is_returned),
        cmocka_unit_test(a_definite_error_is_not_retried),
        cmocka_unit_test(a_success_after_the_deadline_is_a_success),
        cmocka_unit_test(a_timeout_counts_as_a_try),
        cmocka_unit_test(a_cancel_at_any_moment_completes_once),
        cmocka_unit_test(a_success_during_a_cancel_is_cancelled),
        cmocka_unit_test(an_abandoned_call_does_not_complete),
        cmocka_unit_test(each_call_completes_exactly_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
