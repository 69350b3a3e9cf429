/* SPDX-License-Identifier: Apache-2.0 */
#include "money/breakeven_json.h"

#include <math.h>

static const int horizons[] = {12, 24, 36, 60};
#define N_HORIZONS (sizeof horizons / sizeof horizons[0])

static void set(json_t *o, const char *key, json_t *v)
{
    json_object_set_new(o, key, v);
}

static void set_int(json_t *o, const char *key, int64_t v)
{
    set(o, key, json_integer((json_int_t)v));
}

static json_t *figure_json(const struct figure_info *info, const struct figure *f)
{
    json_t *o = json_object();
    set(o, "figure", json_text(info->key));
    set(o, "value", json_real((double)f->micro / BREAKEVEN_MICRO));
    set(o, "unit", json_text(info->unit));
    set(o, "origin", json_text(breakeven_origin_names[f->origin]));
    set(o, "source", json_text(f->source));
    return o;
}

static json_t *months_json(const int64_t v[BREAKEVEN_MONTHS])
{
    json_t *a = json_array();
    for (int m = 0; m < BREAKEVEN_MONTHS; m++)
        json_array_append_new(a, json_integer((json_int_t)v[m]));
    return a;
}

static json_t *item_json(
    const struct breakeven_item *i, const struct breakeven_plan *p, double productive_hours)
{
    json_t *o = json_object();
    int64_t cost = 0;
    for (int m = 0; m < p->months; m++)
        cost += i->cost[m];
    set(o, "item", json_text(i->name));
    set_int(o, "cost_uusd", cost);
    set_int(o, "cost_uusd_per_month", llround((double)cost / p->months));
    set_int(o, "uusd_per_productive_gpu_hour", llround((double)cost / productive_hours));
    set(o, "cash_uusd", months_json(i->cash));
    set(o, "monthly_cost_uusd", months_json(i->cost));
    return o;
}

static json_t *horizon_json(const struct breakeven_side *s, int months)
{
    json_t *o = json_object();
    int64_t paid = side_cash(s, ITEMS_ALL, months), cost = side_cost(s, ITEMS_ALL, months);
    set_int(o, "months", months);
    set_int(o, "paid_uusd", paid);
    set_int(o, "value_left_uusd", paid - cost);
    set_int(o, "cost_uusd", cost);
    set_int(o, "owed_uusd", s->owed[months - 1]);
    return o;
}

static json_t *line_json(struct breakeven_line l)
{
    json_t *o = json_object();
    set(o, "uusd_per_gpu_hour", json_real(l.fixed));
    set(o, "uusd_per_productive_gpu_hour", json_real(l.productive));
    return o;
}

static json_t *side_json(const struct breakeven_side *s, struct breakeven_line line,
    const struct breakeven_plan *p, double productive_hours)
{
    json_t *o = json_object(), *items = json_array(), *over = json_array(), *paid = json_array();
    int64_t so_far = 0;
    for (size_t i = 0; i < s->n_items; i++)
        json_array_append_new(items, item_json(&s->items[i], p, productive_hours));
    for (size_t i = 0; i < N_HORIZONS; i++)
        json_array_append_new(over, horizon_json(s, horizons[i]));
    for (int m = 0; m < BREAKEVEN_MONTHS; m++) {
        for (size_t i = 0; i < s->n_items; i++)
            so_far += s->items[i].cash[m];
        json_array_append_new(paid, json_integer((json_int_t)so_far));
    }
    set(o, "name", json_text(s->name));
    set_int(o, "uusd_per_productive_gpu_hour",
        llround((double)side_cost(s, ITEMS_ALL, p->months) / productive_hours));
    set(o, "items", items);
    set(o, "over", over);
    set(o, "paid_so_far_uusd", paid);
    set(o, "line", line_json(line));
    return o;
}

static json_t *point_json(struct breakeven_point at)
{
    json_t *o = json_object();
    bool is_at = at.where == OWN_ABOVE || at.where == OWN_BELOW;
    set(o, "owning_costs_less", json_text(breakeven_where_names[at.where]));
    set(o, "utilisation", is_at ? json_real(at.utilisation) : json_null());
    return o;
}

static json_t *versus_json(const struct breakeven_versus *v)
{
    json_t *o = json_object();
    set(o, "utilisation", point_json(v->all));
    set(o, "without_staff", point_json(v->without_staff));
    set(o, "hardware_and_power", point_json(v->hardware_power));
    set(o, "month", v->month ? json_integer(v->month) : json_null());
    set(o, "behind_again", v->behind_from ? json_integer(v->behind_from) : json_null());
    return o;
}

static json_t *outcome_json(
    const struct breakeven_plan *p, size_t at, const struct breakeven_outcome *outcome)
{
    const struct breakeven_what_if *w = &p->what_ifs[at];
    json_t *o = json_object(), *rents = json_array();
    set(o, "name", json_text(w->name));
    set(o, "utilisation_points", json_real(w->utilisation_points));
    set(o, "spot_price_times", json_real(w->spot_times > 0 ? w->spot_times : 1));
    set(o, "power_price_times", json_real(w->power_times > 0 ? w->power_times : 1));
    set(o, "better_times", json_real(w->better_times > 0 ? w->better_times : 1));
    set_int(o, "after_months", w->better_after);
    set_int(o, "own_uusd_per_productive_gpu_hour", llround(outcome->own_uusd_hour));
    for (size_t i = 0; i < p->n_rents; i++) {
        json_t *r = json_object();
        set(r, "name", json_text(p->rents[i].name));
        set_int(r, "uusd_per_productive_gpu_hour", llround(outcome->rent_uusd_hour[i]));
        set(r, "break_even", versus_json(&outcome->versus[i]));
        json_array_append_new(rents, r);
    }
    set(o, "rent", rents);
    return o;
}

/* Yearly cost of an owned GPU, adding one kind of cost after the other. */
static json_t *years_json(const struct breakeven_plan *p, const struct breakeven_result *r)
{
    json_t *o = json_object();
    double years = r->gpus * p->months / 12;
    set_int(o, "all", llround((double)side_cost(&r->own, ITEMS_ALL, p->months) / years));
    set_int(
        o, "without_staff", llround((double)side_cost(&r->own, ITEMS_NO_STAFF, p->months) / years));
    set_int(o, "hardware_and_power",
        llround((double)side_cost(&r->own, ITEMS_HARDWARE_POWER, p->months) / years));
    return o;
}

static json_t *rent_json(
    const struct breakeven_plan *p, const struct breakeven_result *r, size_t at)
{
    const struct breakeven_rent *rent = &p->rents[at];
    json_t *figures = json_array(),
           *o = side_json(&r->rents[at], r->versus[at].line, p, r->productive_hours);
    for (int i = 0; i < RENT_FIGURES; i++)
        if (rent_figures[i].markets == 0 || (rent_figures[i].markets & RENT_BIT(rent->market)))
            json_array_append_new(figures, figure_json(&rent_figures[i], &rent->f[i]));
    set(o, "market", json_text(rent_market_names[rent->market]));
    set(o, "figures", figures);
    set(o, "break_even", versus_json(&r->versus[at]));
    return o;
}

json_t *breakeven_json(const struct breakeven_plan *p, const struct breakeven_result *r)
{
    static const struct figure_info utilisation = {
        .key = "utilisation_percent", .unit = "% of a GPU's hours"};
    json_t *o = json_object(), *figures = json_array(), *rents = json_array(),
           *what_ifs = json_array();
    set(o, "gpus", json_real(r->gpus));
    set(o, "utilisation", json_real(r->utilisation));
    set_int(o, "months", p->months);
    set(o, "productive_gpu_hours", json_real(r->productive_hours));
    json_array_append_new(figures, figure_json(&utilisation, &p->utilisation));
    for (int i = 0; i < OWN_FIGURES; i++)
        json_array_append_new(figures, figure_json(&own_figures[i], &p->own[i]));
    json_t *own = side_json(&r->own, r->own_line, p, r->productive_hours);
    set(own, "figures", figures);
    set(own, "uusd_per_gpu_year", years_json(p, r));
    set(o, "own", own);
    for (size_t i = 0; i < p->n_rents; i++)
        json_array_append_new(rents, rent_json(p, r, i));
    set(o, "rent", rents);
    for (size_t i = 0; i < p->n_what_ifs; i++)
        json_array_append_new(what_ifs, outcome_json(p, i, &r->outcomes[i]));
    set(o, "what_if", what_ifs);
    return o;
}
