/* SPDX-License-Identifier: Apache-2.0
 *
 * Rent or buy, for examples computed by hand.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "money/plan.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NEAR(a, b, by) assert_true(fabs((a) - (b)) <= (by))

struct given {
    struct breakeven_plan plan;
    struct breakeven_result result;
};

static struct given *given(const char *text)
{
    struct given *g = mem_alloc(sizeof *g);
    struct err e;
    plan_init(&g->plan);
    if (plan_read("plan.yaml", text, strlen(text), &g->plan, &e) != 0 ||
        plan_complete(&g->plan, &e) != 0 || breakeven_run(&g->plan, &g->result, &e) != 0)
        fail_msg("%s", e.text);
    return g;
}

/* Dollars per productive GPU-hour. */
static double an_hour(const struct given *g, const struct breakeven_side *s, unsigned kinds)
{
    return (double)side_cost(s, kinds, g->plan.months) / 1e6 / g->result.productive_hours;
}

static double cents(double usd)
{
    return round(usd * 100) / 100;
}

/* Eight nodes of eight GPUs, used for 80 % of the time. */
#define NODES                                                                                      \
    "utilisation_percent: 80\n"                                                                    \
    "own:\n"                                                                                       \
    "  nodes: 8\n"                                                                                 \
    "  gpus_per_node: 8\n"                                                                         \
    "  node_usd: 425000\n"                                                                         \
    "  depreciation_years: 3\n"                                                                    \
    "  staff: 1.5\n"                                                                               \
    "  staff_usd_per_year: 250000\n"                                                               \
    "  network_usd_per_gpu_hour: 0.10\n"                                                           \
    "  usd_per_kwh: 0.10\n"
#define AT_0_56_KW NODES "  kw_per_gpu: 0.56\n  pue: 1.3\n"
#define AT_0_7_KW NODES "  kw_per_gpu: 0.7\n  pue: 1.5\n"
#define RENTED "rent:\n  - {name: rented, usd_per_gpu_hour: 5.25}\n"

static void a_gpu_hour_of_ones_own(void **state)
{
    (void)state;
    struct given *g = given(AT_0_56_KW RENTED);
    const struct breakeven_side *own = &g->result.own;
    double hardware = an_hour(g, own, ITEM_BIT(ITEM_HARDWARE)),
           staff = an_hour(g, own, ITEM_BIT(ITEM_STAFF)),
           power = an_hour(g, own, ITEM_BIT(ITEM_POWER)),
           network = an_hour(g, own, ITEM_BIT(ITEM_NETWORK));
    NEAR(cents(hardware), 2.53, 1e-9);
    NEAR(cents(staff), 0.84, 1e-9);
    NEAR(power, 0.091, 1e-6);
    NEAR(network, 0.10, 1e-6);
    /* $3.56 is the sum of the rounded items. Unrounded it is $3.554, which is shown. */
    NEAR(cents(cents(hardware) + cents(staff) + 0.091 + cents(network)), 3.56, 1e-9);
    NEAR(an_hour(g, own, ITEMS_ALL),
        425000.0 / 8 / (3 * 8760 * 0.8) + 1.5 * 250000 / 64 / 8760 / 0.8 + 0.56 * 1.3 * 0.1 / 0.8 +
            0.1,
        1e-6);
    NEAR(an_hour(g, own, ITEMS_ALL), 3.554, 5e-4);
    free(g);
}

/* 0.7 kW under load and nothing when idle gives 0.56 kW at a use of 80 %. */
static void power_follows_the_use_where_it_is_said(void **state)
{
    (void)state;
    struct given *g = given(NODES "  kw_per_gpu: 0.7\n  idle_kw_per_gpu: 0\n  pue: 1.3\n" RENTED);
    NEAR(an_hour(g, &g->result.own, ITEM_BIT(ITEM_POWER)), 0.091, 1e-6);
    free(g);
}

static void break_even_utilisation(void **state)
{
    (void)state;
    const struct breakeven_line rent = {.productive = 5.25}, own = {.fixed = 18628.0 / 8760};
    struct breakeven_point at = breakeven_intersect(own, rent);
    assert_int_equal(at.where, OWN_ABOVE);
    NEAR(at.utilisation, 0.405, 5e-4);
    /* The same for a plan: hardware and power cost $18,628 per year and GPU, 54 % of the total with
     * staff and network. */
    struct given *g = given(AT_0_7_KW RENTED);
    const struct breakeven_versus *v = &g->result.versus[0];
    NEAR((double)side_cost(&g->result.own, ITEMS_HARDWARE_POWER, 36) / 1e6 / 64 / 3, 18628, 0.5);
    NEAR(v->hardware_power.utilisation, 0.405, 5e-4);
    NEAR(v->all.utilisation, 0.54, 5e-3);
    assert_true(v->without_staff.utilisation > v->hardware_power.utilisation);
    assert_true(v->without_staff.utilisation < v->all.utilisation);
    free(g);
    g = given(AT_0_56_KW RENTED);
    NEAR(g->result.versus[0].all.utilisation, 0.54, 5e-3);
    free(g);
}

static void lines_meet_once_or_never(void **state)
{
    (void)state;
    struct breakeven_point at =
        breakeven_intersect((struct breakeven_line){1, 0}, (struct breakeven_line){2, 0});
    assert_int_equal(at.where, OWN_ALWAYS);
    at = breakeven_intersect((struct breakeven_line){3, 0}, (struct breakeven_line){0, 2});
    assert_int_equal(at.where, OWN_NEVER);
    at = breakeven_intersect((struct breakeven_line){1, 4}, (struct breakeven_line){2, 0});
    assert_int_equal(at.where, OWN_BELOW);
    NEAR(at.utilisation, 0.25, 1e-9);
    at = breakeven_intersect((struct breakeven_line){1, 1}, (struct breakeven_line){1, 1});
    assert_int_equal(at.where, OWN_ALWAYS);
}

static void small_examples(void **state)
{
    (void)state;
    NEAR(breakeven_lost(0.02, 0.5), 0.01, 1e-12);
}

static void spot_with_its_overheads(void **state)
{
    (void)state;
    struct given *g = given(NODES "rent:\n"
                                  "  - {market: spot, usd_per_hour: 19.66, gpus: 8, "
                                  "interruptions_percent_per_hour: 2, at_risk_minutes: 30,\n"
                                  "     restart_minutes: 0, saving_percent: 0, egress_gb_per_day: "
                                  "140, egress_usd_per_gb: 0.09}\n"
                                  "  - {market: spot, usd_per_hour: 19.66, gpus: 8, "
                                  "interruptions_percent_per_hour: 0, saving_percent: 0,\n"
                                  "     without_spot_percent: 25, on_demand_usd_per_hour: 98.32}\n"
                                  "  - {type: azure/Standard_ND96isr_H100_v5}\n");
    const struct breakeven_side *spot = &g->result.rents[0], *dry = &g->result.rents[1],
                                *on_demand = &g->result.rents[2];
    double machines = an_hour(g, spot, ITEM_BIT(ITEM_MACHINES));
    NEAR(machines, 19.66 / 8, 1e-6);
    NEAR(an_hour(g, spot, ITEM_BIT(ITEM_LOST)), 0.01 * machines, 1e-6); /* 0.01 GPU-hours of each */
    assert_int_equal(side_cost(spot, ITEM_BIT(ITEM_EGRESS), 1), 378000000);
    NEAR(an_hour(g, dry, ITEMS_ALL), (0.75 * 19.66 + 0.25 * 98.32) / 8, 1e-6);
    NEAR(an_hour(g, on_demand, ITEMS_ALL), 98.32 / 8, 1e-6);
    NEAR(1 - machines / an_hour(g, on_demand, ITEMS_ALL), 0.80, 5e-4);
    free(g);
}

static void what_is_bought_costs_what_was_paid(void **state)
{
    (void)state;
    struct given *g =
        given("own: {nodes: 3, node_usd: 100000.01, depreciation_years: 2, resale_percent: 10, "
              "spares_percent: 5, maintenance_percent_per_year: 12,\n"
              "      refresh_percent: 50, space_usd_per_node_month: 100, space_usd_per_kw_month: "
              "10, kw_per_gpu: 0.5, network_usd_per_month: 77,\n"
              "      other: [{name: installation, usd_once: 2400, usd_per_month: 5}]}\n" RENTED);
    const struct breakeven_side *own = &g->result.own;
    const int64_t price = 3 * 100000010000;
    const unsigned hardware = ITEM_BIT(ITEM_HARDWARE);
    assert_int_equal(side_cash(own, hardware, 24), price);
    assert_int_equal(side_cost(own, hardware, 24), price - price / 10);
    assert_int_equal(side_cost(own, hardware, 12), (price - price / 10) / 2);
    /* bought again, after the first is sold */
    assert_int_equal(side_cash(own, hardware, 25), price + price / 2 - price / 10);
    assert_int_equal(side_cost(own, ITEM_BIT(ITEM_SPARES), 24), price / 20);
    assert_int_equal(side_cost(own, ITEM_BIT(ITEM_MAINTENANCE), 12), price / 100 * 12);
    assert_int_equal(side_cost(own, ITEM_BIT(ITEM_SPACE), 1), (3 * 100 + 24 / 2 * 10) * 1000000LL);
    assert_int_equal(side_cost(own, ITEM_BIT(ITEM_NETWORK), 2), 154000000);
    assert_int_equal(side_cash(own, ITEM_BIT(ITEM_OTHER), 1), 2405000000);
    assert_int_equal(side_cost(own, ITEM_BIT(ITEM_OTHER), 24), 2520000000);
    int64_t all = 0;
    for (int kind = 0; kind < ITEM_KINDS; kind++)
        all += side_cost(own, ITEM_BIT(kind), BREAKEVEN_MONTHS);
    assert_int_equal(all, side_cost(own, ITEMS_ALL, BREAKEVEN_MONTHS));
    free(g);
}

static void reserved_machines_cost_used_or_not(void **state)
{
    (void)state;
    const char *text =
        "own: {node_usd: 400000}\n"
        "utilisation_percent: 50\n"
        "rent:\n"
        "  - {market: reserved, usd_per_hour: 50, gpus: 8, term_months: 36, upfront_percent: 50}\n"
        "  - {market: reserved, type: aws/p5.48xlarge, discount_percent: 40}\n";
    struct given *g = given(text);
    const struct breakeven_side *three = &g->result.rents[0], *one = &g->result.rents[1];
    const int64_t month = 50 * 730 * 1000000LL;
    assert_int_equal(side_cost(three, ITEMS_ALL, 1), month);
    assert_int_equal(side_cash(three, ITEMS_ALL, 1), 18 * month + month / 2);
    assert_int_equal(side_cash(three, ITEMS_ALL, 36), 36 * month);
    assert_int_equal(three->owed[0], 35 * month / 2);
    assert_int_equal(three->owed[35], 0);
    NEAR(an_hour(g, one, ITEMS_ALL), 55.04 * 0.6 / 8 / 0.5, 1e-6);
    assert_string_equal(one->name, "aws/p5.48xlarge reserved, 12 months");
    free(g);
}

/* Owned: $1,000,000 at once; rented: $100,000 a month. */
static void the_month_of_break_even_is_that_of_the_money(void **state)
{
    (void)state;
    struct given *g =
        given("utilisation_percent: 100\n"
              "own: {gpus_per_node: 1, node_usd: 1000000, depreciation_years: 2, kw_per_gpu: 0}\n"
              "rent: [{usd_per_gpu_hour: 136.986301}]\n");
    assert_int_equal(g->result.versus[0].month, 11); /* at $99,999.99973 a month */
    assert_int_equal(g->result.versus[0].behind_from, 0);
    free(g);
    g = given("utilisation_percent: 100\n"
              "own: {gpus_per_node: 1, node_usd: 1000000, depreciation_years: 2, kw_per_gpu: 0}\n"
              "rent: [{usd_per_gpu_hour: 60}, {usd_per_gpu_hour: 10}]\n");
    assert_int_equal(g->result.versus[0].month, 23);
    assert_int_equal(g->result.versus[0].behind_from, 25);
    assert_int_equal(g->result.versus[1].month, 0);
    assert_int_equal(g->result.versus[1].all.where, OWN_NEVER);
    free(g);
}

static void what_ifs(void **state)
{
    (void)state;
    struct given *g =
        given(AT_0_56_KW "rent:\n"
                         "  - {usd_per_gpu_hour: 5.25}\n"
                         "  - {market: spot, usd_per_gpu_hour: 2, interruptions_percent_per_hour: "
                         "0, saving_percent: 0}\n"
                         "  - {market: reserved, usd_per_gpu_hour: 3, term_months: 24}\n");
    const struct breakeven_outcome *less = &g->result.outcomes[0], *better = &g->result.outcomes[1],
                                   *dearer = &g->result.outcomes[2];
    assert_int_equal(g->plan.n_what_ifs, 3);
    NEAR(less->own_uusd_hour / 1e6, (3.5539721 - 0.1) * 0.8 / 0.7 + 0.1, 1e-5);
    NEAR(less->rent_uusd_hour[0] / 1e6, 5.25, 1e-6);
    /* From month 19 on, a third is rented; what is reserved for two years continues for six months
     * more. */
    NEAR(better->rent_uusd_hour[0] / 1e6, 5.25 * (18 + 18 / 3.0) / 36, 1e-6);
    NEAR(better->rent_uusd_hour[2] / 1e6, 3 / 0.8 * (24 + 12 / 3.0) / 36, 1e-6);
    NEAR(better->own_uusd_hour / 1e6, 3.5539721, 1e-5);
    assert_true(better->versus[0].all.utilisation > g->result.versus[0].all.utilisation);
    NEAR(dearer->rent_uusd_hour[1] / 1e6, 4, 1e-6);
    NEAR(dearer->rent_uusd_hour[0] / 1e6, 5.25, 1e-6);
    free(g);
}

static void nothing_is_hidden_in_a_total(void **state)
{
    (void)state;
    struct given *g =
        given("own: {node_usd: 425000}\nrent: [{type: azure/Standard_ND96isr_H100_v5}]\n");
    const struct breakeven_plan *p = &g->plan;
    assert_int_equal(p->rents[0].f[RENT_USD_HOUR].micro, 98320000);
    assert_int_equal(p->rents[0].f[RENT_USD_HOUR].origin, FIGURE_CATALOGUE);
    assert_string_equal(p->rents[0].f[RENT_USD_HOUR].source, "list price of 2026-06-18, eastus");
    assert_int_equal(p->own[OWN_NODE_USD].origin, FIGURE_GIVEN);
    assert_string_equal(p->own[OWN_STAFF].source, FIGURE_NOT_COUNTED);
    for (int i = 0; i < OWN_FIGURES; i++)
        assert_true(p->own[i].origin == FIGURE_GIVEN || p->own[i].source[0]);
    for (int i = 0; i < RENT_FIGURES; i++)
        assert_true(p->rents[0].f[i].origin == FIGURE_GIVEN || p->rents[0].f[i].source[0]);
    assert_int_equal(p->own[OWN_IDLE_KW].micro, p->own[OWN_KW].micro);
    free(g);
}

static void machines_of_the_catalogue_come_with_their_like(void **state)
{
    (void)state;
    struct breakeven_plan p;
    struct err e;
    plan_init(&p);
    assert_int_equal(plan_add_type(&p, "aws/p5.48xlarge", &e), 0);
    assert_int_equal(p.n_rents, 3);
    assert_string_equal(p.rents[0].name, "aws/p5.48xlarge on-demand");
    assert_string_equal(p.rents[1].name, "aws/p5.48xlarge spot");
    assert_string_equal(p.rents[2].name, "lambda/gpu_8x_h100_sxm5 on-demand");
    assert_int_not_equal(plan_add_type(&p, "aws/p5.48xlarge2", &e), 0);
    assert_non_null(strstr(e.text, "did you mean \"p5.48xlarge\"?"));
    assert_int_not_equal(plan_add_type(&p, "p5", &e), 0);
    assert_non_null(strstr(e.text, "expected PROVIDER/TYPE"));
    assert_int_not_equal(plan_add_type(&p, "aws/m5.2xlarge", &e), 0);
    assert_int_equal(plan_add_price(&p, RENT_RESERVED, "36=2.10", &e), 0);
    assert_string_equal(p.rents[3].name, "reserved, 36 months at $2.10");
    assert_int_equal(p.rents[3].f[RENT_TERM].micro, 36000000);
    assert_int_equal(plan_add_price(&p, RENT_SPOT, "2.46", &e), 0);
    assert_string_equal(p.rents[4].name, "spot at $2.46");
    static const char *const no_terms[] = {"2.10", "=2.10", "0=2.10", "61=2.10", "1.5=2", "a=2",
        "36=", "36=-1", "36=2=2", "11111111111111111111111111111111111111111=2"};
    for (size_t i = 0; i < sizeof no_terms / sizeof no_terms[0]; i++) {
        struct breakeven_plan one;
        plan_init(&one);
        assert_int_equal(plan_add_price(&one, RENT_RESERVED, no_terms[i], &e), ERR_INVALID);
    }
    for (int i = 5; i < BREAKEVEN_RENTS_MAX; i++)
        assert_int_equal(plan_add_price(&p, RENT_ON_DEMAND, "3.5", &e), 0);
    assert_int_equal(plan_add_price(&p, RENT_ON_DEMAND, "3.5", &e), ERR_INVALID);
    assert_int_equal(plan_add_type(&p, "aws/p5.48xlarge", &e), ERR_INVALID);
    assert_string_equal(e.text, "at most 16 ways to rent can be compared at once");
    assert_int_equal(p.n_rents, BREAKEVEN_RENTS_MAX);
    assert_int_equal(plan_set_utilisation(&p, "0.8", &e), 0);
    assert_int_equal(p.utilisation.micro, 80000000);
    assert_int_equal(plan_set_utilisation(&p, "80%", &e), 0);
    assert_int_equal(p.utilisation.micro, 80000000);
    assert_int_equal(plan_set_utilisation(&p, "72.5", &e), 0);
    assert_int_equal(p.utilisation.micro, 72500000);
    static const char *const wrong[] = {"", "%", "0", "101", "-3", "much", "0.1%", "1e2",
        "99999999999999999999999999999999999999999999"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_int_equal(plan_set_utilisation(&p, wrong[i], &e), ERR_INVALID);
}

static void mistakes_are_reported_with_their_line(void **state)
{
    (void)state;
    static const struct {
        const char *text, *part;
    } wrong[] = {
        {"own: 5", "plan.yaml:1: own: expected a mapping"},
        {"own: {node_usd: cheap}", "plan.yaml:1: node_usd: expected a number in 0 .. 1000000000, $ "
                                   "a node, found \"cheap\""},
        {"own:\n  node_usd: -5", "plan.yaml:2: node_usd: expected a number"},
        {"own:\n  nodes: 1.5", "plan.yaml:2: nodes: expected a whole number in 1 .. 100000"},
        {"own:\n  nodes: [1]", "plan.yaml:2: nodes: expected a number, found a list"},
        {"own:\n  pue: 0.9", "plan.yaml:2: pue: expected a number in 1 .. 5"},
        {"own:\n  node_us: 5", "plan.yaml:2: unknown key \"node_us\"; did you mean \"node_usd\"?"},
        {"own:\n  other:\n  - {name: rent}",
            "plan.yaml:3: expected a name, and usd_once, usd_per_month or both"},
        {"own:\n  other: {a: b}", "plan.yaml:2: other: expected a list"},
        {"utilisation_percent: 0",
            "plan.yaml:1: utilisation_percent: expected a number in 1 .. 100"},
        {"months: 61", "plan.yaml:1: months: expected an integer in 1 .. 60"},
        {"months: 36\nyears: 3", "plan.yaml:2: unknown key \"years\""},
        {"rent:\n- {}", "plan.yaml:2: what does it cost? Give usd_per_hour and gpus"},
        {"rent:\n- 5", "plan.yaml:2: expected a mapping"},
        {"rent:\n- {market: bazaar}",
            "plan.yaml:2: market: expected one of on-demand, reserved, spot"},
        {"rent:\n- {market: spot, type: azure/Standard_ND96isr_H100_v5}",
            "plan.yaml:2: what does it cost? The catalogue has no spot price of it"},
        {"rent:\n- type: aws/p5.48xlarge2",
            "plan.yaml:2: type: \"p5.48xlarge2\" is not known; did you mean \"p5.48xlarge\"?"},
        {"rent:\n- type: p5",
            "plan.yaml:2: type: expected PROVIDER/TYPE of aws, azure, gcp or lambda"},
        {"rent:\n- {type: aws/p5.48xlarge,\n   region: eu-west-1}",
            "plan.yaml:3: region: the catalogue has prices of us-east-1 alone: give usd_per_hour"},
        {"rent:\n- {type: aws/m5.2xlarge}", "plan.yaml:2: type: m5.2xlarge has no GPUs"},
        {"rent:\n- {market: reserved, type: aws/p5.48xlarge}",
            "plan.yaml:2: the catalogue has no prices of reserved machines"},
        {"rent:\n- {usd_per_hour: 5,\n   term_months: 12}",
            "plan.yaml:3: term_months: does not apply to on-demand machines"},
        {"rent:\n- {usd_per_gpu_hour: 5,\n   gpus: 8}",
            "plan.yaml:2: usd_per_gpu_hour: is the price of one GPU"},
        {"rent:\n- {market: spot, usd_per_hour: 5, without_spot_percent: 5}",
            "plan.yaml:2: without_spot_percent needs on_demand_usd_per_hour"},
        {"rent:\n- {usd_per_hour: 5,\n   region: mars}",
            "plan.yaml:3: region: is of a type of the catalogue"},
        {"what_if:\n- {name: a, after_months: 5}", "plan.yaml:2: after_months is of better_times"},
        {"what_if:\n- {name: a}", "plan.yaml:2: what is different?"},
        {"what_if:\n- {utilisation_points: -10}", "plan.yaml:2: \"name\" is missing"},
        {"what_if:\n- {name: a, utilisation_points: --10}",
            "plan.yaml:2: utilisation_points: expected a number in -100 .. 100, found \"--10\""},
        {"what_if:\n- {name: a, better_times: 0.5}",
            "plan.yaml:2: better_times: expected a number in 1 .. 100"},
        {"rent: [[]]", "plan.yaml:1: expected a mapping, found a list"},
        {"a: &b c", "plan.yaml:1:"},
        {"- a", "plan.yaml:1: expected a mapping, found a list"},
    };
    struct breakeven_plan *p = mem_alloc(sizeof *p);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct err e = {0};
        plan_init(p);
        if (plan_read("plan.yaml", wrong[i].text, strlen(wrong[i].text), p, &e) != ERR_INVALID ||
            !strstr(e.text, wrong[i].part))
            fail_msg("of %s: %s", wrong[i].text, e.text);
    }
    struct err e;
    plan_init(p);
    assert_int_equal(plan_complete(p, &e), ERR_INVALID);
    assert_non_null(strstr(e.text, "what does a node cost?"));
    p->own[OWN_NODE_USD].micro = 1;
    assert_int_equal(plan_complete(p, &e), ERR_INVALID);
    assert_non_null(strstr(e.text, "what is it compared with?"));
    free(p);
}

static void sums_that_cannot_be_added_up_are_refused(void **state)
{
    (void)state;
    const char *text = "own: {nodes: 100000, node_usd: 1000000}\n" RENTED;
    struct given *g = mem_alloc(sizeof *g);
    struct err e;
    plan_init(&g->plan);
    assert_int_equal(plan_read("plan.yaml", text, strlen(text), &g->plan, &e), 0);
    assert_int_equal(plan_complete(&g->plan, &e), 0);
    assert_int_equal(breakeven_run(&g->plan, &g->result, &e), ERR_INVALID);
    assert_non_null(strstr(e.text, "wrong unit?"));
    free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gpu_hour_of_ones_own),
        cmocka_unit_test(power_follows_the_use_where_it_is_said),
        cmocka_unit_test(break_even_utilisation),
        cmocka_unit_test(lines_meet_once_or_never),
        cmocka_unit_test(small_examples),
        cmocka_unit_test(spot_with_its_overheads),
        cmocka_unit_test(what_is_bought_costs_what_was_paid),
        cmocka_unit_test(reserved_machines_cost_used_or_not),
        cmocka_unit_test(the_month_of_break_even_is_that_of_the_money),
        cmocka_unit_test(what_ifs),
        cmocka_unit_test(nothing_is_hidden_in_a_total),
        cmocka_unit_test(machines_of_the_catalogue_come_with_their_like),
        cmocka_unit_test(mistakes_are_reported_with_their_line),
        cmocka_unit_test(sums_that_cannot_be_added_up_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
