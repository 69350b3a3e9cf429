/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables and arithmetic: names, legal transitions, the tree, money, intervals, truncated texts.
 */
#include "tests/core/lab.h"

#include "base/prng.h"
#include "base/str.h"
#include "scheduler/core/lifecycle/save_interval.h"
#include "scheduler/core/model/resources.h"
#include "scheduler/core/model/text.h"
#include <stdlib.h>
#include <string.h>

static void the_legal_transitions_are_those_of_the_diagrams(void **state)
{
    (void)state;
    /* rows: from; columns: to; 1: legal */
    static const char *const jobs[] = {"01011", "10101", "00001", "00001", "00000"};
    static const char *const attempts[] = {"0111", "0011", "0001", "0000"};
    static const char *const nodes[] = {"01111", "10111", "11011", "11101", "00000"};
    static const char *const ckpt_gc[] = {"010", "101", "000"};
    static const char *const drills[] = {
        "010011", "001011", "000111", "000010", "000000", "000000"};
    static const char *const depends[] = {"0111", "0000", "0001", "0000"};
    static const char *const crons[] = {"011", "101", "000"};
    static const char *const instances[] = {
        "011111", "001111", "000111", "000011", "000001", "000000"};
    const struct {
        const struct sm *sm;
        const char *const *legal;
        int n;
    } all[] = {{&job_sm, jobs, 5}, {&attempt_sm, attempts, 4}, {&node_sm, nodes, 5},
        {&instance_sm, instances, 6}, {&ckpt_gc_sm, ckpt_gc, 3}, {&drill_sm, drills, 6},
        {&depend_sm, depends, 4}, {&cron_sm, crons, 3}};
    for (size_t k = 0; k < sizeof all / sizeof all[0]; k++)
        for (int from = 0; from < all[k].n; from++)
            for (int to = 0; to < all[k].n; to++)
                if (sm_allowed(all[k].sm, from, to) != (all[k].legal[from][to] == '1'))
                    fail_msg("%s: %s to %s", all[k].sm->thing, sm_name(all[k].sm, from),
                        sm_name(all[k].sm, to));
}

static size_t count(const char *const *names)
{
    size_t n = 0;
    while (names[n])
        n++;
    return n;
}

static void every_number_has_a_name(void **state)
{
    (void)state;
    assert_int_equal(count(event_type_names), EV_RESERVATION_DUE + 1);
    assert_string_equal(event_type_names[EV_CRON_DUE], "cron-due");
    assert_string_equal(event_type_names[EV_CRON_RUN], "cron-run");
    assert_int_equal(count(cron_overlap_names), CRON_REPLACE + 1);
    assert_int_equal(count(cron_catch_up_names), CATCH_UP_ALL + 1);
    assert_int_equal(count(cron_outcome_names), CRON_REFUSED + 1);
    assert_string_equal(event_type_names[EV_NODE_LOST], "node-lost");
    assert_string_equal(event_type_names[EV_PLACE], "place");
    assert_int_equal(count(end_kind_names), END_DEADLINE + 1);
    assert_string_equal(end_kind_names[END_NODE_LOST], "node-lost");
    assert_string_equal(end_kind_names[END_CHECKPOINTED], "checkpointed");
    assert_int_equal(count(hold_names), HOLD_OPERATOR + 1);
    assert_int_equal(count(idle_gpus_then_names), IDLE_GPUS_PARK + 1);
    assert_int_equal(count(depend_kind_names), DEPEND_SINGLETON + 1);
    assert_int_equal(count(market_names), MARKET_ON_DEMAND + 1);
    assert_int_equal(count(market_wish_names), WISH_ON_DEMAND + 1);
    assert_string_equal(event_type_names[EV_CLEANED], "cleaned");
    assert_int_equal(count(ckpt_method_names), CKPT_CRIU + 1);
    assert_int_equal(count(ckpt_after_names), AFTER_ALL + 1);
    assert_int_equal(count(ckpt_gc_keep_names), CKPT_GC_KEEP_NONE + 1);
    assert_int_equal(count(notice_type_names), NOTICE_TYPE_RECLAIM + 1);
    assert_int_equal(count(ledger_kind_names), LEDGER_KINDS);
    assert_string_equal(sm_name(&instance_sm, INSTANCE_ENDING), "ending");
    assert_string_equal(sm_name(&node_sm, NODE_DRAINING), "draining");
}

struct item {
    int64_t key;
    struct tree_link link;
};

static int compare_item(const void *key, const struct tree_link *l)
{
    int64_t a = *(const int64_t *)key, b = TREE_ENTRY(l, struct item, link)->key;
    return (a > b) - (a < b);
}

/* Iterates both from a random key. */
static void check_tree(
    const struct tree *t, const struct item *items, const bool *in, int n, int64_t from)
{
    struct tree_link *l = tree_at_least(t, &from, compare_item);
    size_t seen = 0;
    for (int64_t k = from; k < n; k++) {
        if (!in[k])
            continue;
        assert_ptr_equal(l, &items[k].link);
        l = tree_next(l);
        seen++;
    }
    assert_null(l);
    assert_true(from > 0 || seen == t->n);
}

static void a_tree_keeps_its_order(void **state)
{
    (void)state;
    enum { N = 300 };
    struct item items[N] = {{0}};
    bool in[N] = {false};
    struct tree t = {0};
    struct prng r;
    prng_init(&r, 7);
    for (int k = 0; k < N; k++)
        items[k].key = k;
    for (int step = 0; step < 4000; step++) {
        int k = (int)prng_below(&r, N);
        if (in[k])
            tree_remove(&t, &items[k].link);
        else if (!tree_at_least(&t, &items[k].key, compare_item))
            tree_append(&t, &items[k].link);
        else
            tree_add(&t, &items[k].link, &items[k].key, compare_item);
        in[k] = !in[k];
        assert_int_equal(tree_has(&items[k].link), in[k]);
        if (step % 10 == 0)
            check_tree(&t, items, in, N, step % 30 ? (int64_t)prng_below(&r, N) : 0);
    }
    tree_remove(&t, &(struct tree_link){0}); /* no-op */
}

static int depth(const struct tree_link *l)
{
    if (!l)
        return 0;
    int a = depth(l->left), b = depth(l->right);
    return 1 + (a > b ? a : b);
}

static void a_tree_filled_in_order_stays_shallow(void **state)
{
    (void)state;
    enum { N = 100000 };
    struct item *items = calloc(N, sizeof *items);
    struct tree t = {0};
    for (int k = 0; k < N; k++) {
        items[k].key = k;
        tree_add(&t, &items[k].link, &items[k].key, compare_item);
    }
    assert_true(depth(t.root) < 70); /* 17 would be perfect */
    free(items);
}

static void money_is_rounded_to_the_nearest_and_does_not_overflow(void **state)
{
    (void)state;
    assert_int_equal(core_cost_uusd(0, 1000000), 0);
    assert_int_equal(core_cost_uusd(3600000, 123), 123);
    assert_int_equal(core_cost_uusd(1800, 1000), 1); /* 0.5 rounds up */
    assert_int_equal(core_cost_uusd(1799, 1000), 0);
    assert_int_equal(core_cost_uusd(3600001, 1000000), 1000000);
    int64_t ten_years = 10LL * 366 * 86400 * 1000;
    assert_int_equal(core_cost_uusd(ten_years, 1000000000), ten_years / 3600000 * 1000000000);
}

static void a_save_interval_follows_young_and_its_bounds(void **state)
{
    (void)state;
    /* save 10 s, one reclaim in 2 hours: sqrt(2 * 10 * 7200) = 379 s */
    assert_in_range(core_save_interval_ms(10000, 0.5), 379000, 380000);
    assert_int_equal(core_save_interval_ms(1, 100), 15000);
    assert_int_equal(core_save_interval_ms(600000, 0.01), 1800000);
    assert_int_equal(core_save_interval_ms(0, 0), core_save_interval_ms(1000, 0.05));
    assert_int_equal(core_save_interval_ms(-5, -1), core_save_interval_ms(1000, 0.05));
}

static void a_share_is_that_of_the_dominant_resource(void **state)
{
    (void)state;
    struct resources total = {8, 4, 1000};
    assert_int_equal(resources_share(&(struct resources){2, 0, 100}, &total, 1000), 250);
    assert_int_equal(resources_share(&(struct resources){2, 0, 900}, &total, 1000), 900);
    assert_int_equal(resources_share(&(struct resources){1, 4, 1}, &total, 1000), 1000);
    assert_int_equal(resources_share(&(struct resources){8, 4, 2000}, &total, 1000), 1000);
    assert_int_equal(
        resources_share(&(struct resources){1, 0, 0}, &(struct resources){3, 0, 0}, 100), 33);
    struct resources huge = {1, 0, INT64_C(1) << 40};
    assert_int_equal(resources_share(&(struct resources){1, 0, INT64_C(1) << 39},
                         &(struct resources){4, 0, huge.memory_mib}, INT64_C(1) << 50),
        INT64_C(1) << 49);
}

static void what_fits_is_counted_by_the_scarcest(void **state)
{
    (void)state;
    struct resources available = {16, 2, 1000};
    assert_int_equal(resources_times(&available, &(struct resources){1, 1, 100}), 2);
    assert_int_equal(resources_times(&available, &(struct resources){1, 0, 300}), 3);
    assert_int_equal(resources_times(&available, &(struct resources){5, 0, 0}), 3);
    assert_int_equal(resources_times(&available, &(struct resources){17, 0, 0}), 0);
    assert_int_equal(resources_times(&available, &(struct resources){1, 3, 0}), 0);
}

static void a_wish_is_about_what_is_paid_by_the_hour(void **state)
{
    (void)state;
    assert_true(market_wish_allows(WISH_ANY, MARKET_SPOT) &&
                market_wish_allows(WISH_ANY, MARKET_ON_DEMAND));
    assert_true(market_wish_allows(WISH_SPOT, MARKET_SPOT) &&
                !market_wish_allows(WISH_SPOT, MARKET_ON_DEMAND));
    assert_true(market_wish_allows(WISH_ON_DEMAND, MARKET_ON_DEMAND) &&
                !market_wish_allows(WISH_ON_DEMAND, MARKET_SPOT));
    assert_true(market_wish_allows(WISH_SPOT, MARKET_OWNED) &&
                market_wish_allows(WISH_ON_DEMAND, MARKET_OWNED));
}

static void a_text_is_never_cut_within_a_character(void **state)
{
    (void)state;
    char out[8];
    text_format(out, sizeof out, "%s", "1234567");
    assert_string_equal(out, "1234567");
    text_format(out, sizeof out, "%s", "12345678");
    assert_string_equal(out, "1234567");
    text_format(out, sizeof out, "%s", "123456\xc3\xa9");
    assert_string_equal(out, "123456");
    text_format(out, sizeof out, "%s", "12345\xc3\xa9z");
    assert_string_equal(out, "12345\xc3\xa9");
    text_format(out, sizeof out, "%s", "12345\xe2\x82\xac");
    assert_string_equal(out, "12345");
    text_format(out, sizeof out, "%s", "1234\xf0\x9f\x98\x80");
    assert_string_equal(out, "1234");
    /* not UTF-8: truncated anywhere */
    text_format(out, sizeof out, "%s", "\x80\x80\x80\x80\x80\x80\x80\x80");
    assert_int_equal(strlen(out), 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_legal_transitions_are_those_of_the_diagrams),
        cmocka_unit_test(every_number_has_a_name),
        cmocka_unit_test(a_tree_keeps_its_order),
        cmocka_unit_test(a_tree_filled_in_order_stays_shallow),
        cmocka_unit_test(money_is_rounded_to_the_nearest_and_does_not_overflow),
        cmocka_unit_test(a_save_interval_follows_young_and_its_bounds),
        cmocka_unit_test(a_share_is_that_of_the_dominant_resource),
        cmocka_unit_test(what_fits_is_counted_by_the_scarcest),
        cmocka_unit_test(a_wish_is_about_what_is_paid_by_the_hour),
        cmocka_unit_test(a_text_is_never_cut_within_a_character),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
