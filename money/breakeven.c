/* SPDX-License-Identifier: Apache-2.0
 *
 * See breakeven.h, which has the formulas.
 *
 * Invariant: the monthly costs of a purchase add up to its price minus its resale value, to the
 * micro-dollar; so after its life, cash and cost are equal.
 */
#include "money/breakeven.h"

#include "base/mem.h"
#include "base/str.h"
#include <math.h>
#include <stdlib.h>

/* Limit of one amount, so that all sums fit into 63 bits. */
#define AMOUNT_MAX_UUSD 2e15
#define UTILISATION_MIN 0.01

const char *const breakeven_origin_names[] = {"default", "given", "catalogue", "measured", NULL};
const char *const rent_market_names[] = {"on-demand", "reserved", "spot", NULL};
const char *const breakeven_where_names[] = {"always", "never", "above", "below", NULL};

/* A plan under one what-if. */
struct world {
    const struct breakeven_plan *plan;
    const struct breakeven_what_if *w;
    double gpus;
    double productive_h; /* GPU-hours of work a month */
    double wall_h;       /* GPU-hours a month, used or not */
    bool is_overflow;    /* an amount exceeds AMOUNT_MAX_UUSD */
};

/* ---- figures ---- */

static double value(const struct figure *f)
{
    return (double)f->micro / BREAKEVEN_MICRO;
}

static double share(const struct figure *percent)
{
    return value(percent) / 100;
}

static double times(double of)
{
    return of > 0 ? of : 1;
}

static int64_t amount(struct world *w, double uusd)
{
    if (fabs(uusd) <= AMOUNT_MAX_UUSD)
        return llround(uusd);
    w->is_overflow = true;
    return 0;
}

/* The number of machines that do the same work in that month, relative to today's machines. */
static double size_then(const struct breakeven_what_if *w, int month)
{
    return month >= w->better_after ? 1 / times(w->better_times) : 1;
}

double breakeven_lost(double interruptions_h, double at_risk_h)
{
    return interruptions_h * at_risk_h;
}

/* ---- items ---- */

static struct breakeven_item *add_item(
    struct breakeven_side *s, enum breakeven_kind kind, const char *name)
{
    struct breakeven_item *i = &s->items[s->n_items++];
    i->kind = kind;
    STR_COPY(i->name, name);
    return i;
}

static void pay(struct breakeven_item *i, int month, int64_t uusd)
{
    i->cash[month] += uusd;
    i->cost[month] += uusd;
}

/* Books a purchase: cash is paid in `month`, cost is spread over the `life` months that begin with
 * it, and the resale value `back_uusd` is received after them. */
static void buy(struct breakeven_item *i, int month, int life, int64_t uusd, int64_t back_uusd)
{
    int64_t so_far = 0;
    i->cash[month] += uusd;
    if (month + life < BREAKEVEN_MONTHS)
        i->cash[month + life] -= back_uusd;
    for (int k = 0; k < life && month + k < BREAKEVEN_MONTHS; k++) {
        int64_t upto = (int64_t)((__extension__(__int128)(uusd - back_uusd)) * (k + 1) / life);
        i->cost[month + k] += upto - so_far;
        so_far = upto;
    }
}

static int64_t sum(const struct breakeven_side *s, unsigned kinds, int months, bool cash)
{
    int64_t total = 0;
    for (size_t i = 0; i < s->n_items; i++)
        for (int m = 0; (kinds & ITEM_BIT(s->items[i].kind)) && m < months; m++)
            total += cash ? s->items[i].cash[m] : s->items[i].cost[m];
    return total;
}

int64_t side_cash(const struct breakeven_side *s, unsigned kinds, int months)
{
    return sum(s, kinds, months, true);
}

int64_t side_cost(const struct breakeven_side *s, unsigned kinds, int months)
{
    return sum(s, kinds, months, false);
}

/* ---- owning ---- */

static int life_of(const struct breakeven_plan *p)
{
    return (int)lround(value(&p->own[OWN_YEARS]) * 12);
}

/* The fleet shrinks when better machines replace it, and so do the costs that depend on its
 * size. */
static void own_hardware(
    struct world *w, struct breakeven_side *s, double ret_size[BREAKEVEN_MONTHS])
{
    const struct figure *f = w->plan->own;
    struct breakeven_item *hardware = add_item(s, ITEM_HARDWARE, "hardware"),
                          *spares = add_item(s, ITEM_SPARES, "spares"),
                          *maintenance = add_item(s, ITEM_MAINTENANCE, "maintenance");
    double price = value(&f[OWN_NODES]) * (double)f[OWN_NODE_USD].micro;
    int life = life_of(w->plan);
    for (int m = 0; m < BREAKEVEN_MONTHS; m += life) {
        double size = m > 0 ? size_then(w->w, m) : 1,
               paid = price * size * (m > 0 ? share(&f[OWN_REFRESH]) : 1);
        buy(hardware, m, life, amount(w, paid), amount(w, paid * share(&f[OWN_RESALE])));
        buy(spares, m, life, amount(w, paid * share(&f[OWN_SPARES])), 0);
        for (int k = m; k < m + life && k < BREAKEVEN_MONTHS; k++) {
            ret_size[k] = size;
            pay(maintenance, k, amount(w, paid * share(&f[OWN_MAINTENANCE]) / 12));
        }
    }
}

static void own_running(
    struct world *w, struct breakeven_side *s, const double size[BREAKEVEN_MONTHS])
{
    const struct figure *f = w->plan->own;
    struct breakeven_item *power = add_item(s, ITEM_POWER, "power"),
                          *space = add_item(s, ITEM_SPACE, "space"),
                          *network = add_item(s, ITEM_NETWORK, "network"),
                          *staff = add_item(s, ITEM_STAFF, "staff");
    double kwh = value(&f[OWN_KW]) * w->productive_h +
                 value(&f[OWN_IDLE_KW]) * (w->wall_h - w->productive_h);
    double power_uusd =
        kwh * value(&f[OWN_PUE]) * (double)f[OWN_KWH].micro * times(w->w->power_times);
    double space_uusd = value(&f[OWN_NODES]) * (double)f[OWN_SPACE_NODE].micro +
                        w->gpus * value(&f[OWN_KW]) * (double)f[OWN_SPACE_KW].micro;
    double network_uusd =
        (double)f[OWN_NETWORK_MONTH].micro + w->productive_h * (double)f[OWN_NETWORK_HOUR].micro;
    for (int m = 0; m < BREAKEVEN_MONTHS; m++) {
        pay(power, m, amount(w, power_uusd * size[m]));
        pay(space, m, amount(w, space_uusd * size[m]));
        pay(network, m, amount(w, network_uusd));
        pay(staff, m, amount(w, value(&f[OWN_STAFF]) * (double)f[OWN_STAFF_USD].micro / 12));
    }
}

static void own_side(struct world *w, struct breakeven_side *s)
{
    double size[BREAKEVEN_MONTHS];
    *s = (struct breakeven_side){.name = "own"};
    own_hardware(w, s, size);
    own_running(w, s, size);
    for (size_t i = 0; i < w->plan->n_others; i++) {
        const struct breakeven_other *o = &w->plan->others[i];
        struct breakeven_item *item = add_item(s, ITEM_OTHER, o->name);
        buy(item, 0, life_of(w->plan), o->once_uusd, 0);
        for (int m = 0; m < BREAKEVEN_MONTHS; m++)
            pay(item, m, o->month_uusd);
    }
}

/* ---- renting ---- */

/* Price of a GPU-hour in micro-dollars. */
static double price_of(const struct breakeven_rent *r, enum rent_figure usd_hour)
{
    double discount = usd_hour == RENT_USD_HOUR ? share(&r->f[RENT_DISCOUNT]) : 0;
    return (double)r->f[usd_hour].micro * (1 - discount) / value(&r->f[RENT_GPUS]);
}

static void rent_reserved(struct world *w, const struct breakeven_rent *r, struct breakeven_side *s)
{
    struct breakeven_item *machines = add_item(s, ITEM_MACHINES, "reserved machines");
    int term = (int)lround(value(&r->f[RENT_TERM]));
    double upfront = share(&r->f[RENT_UPFRONT]);
    for (int m = 0; m < BREAKEVEN_MONTHS; m += term) {
        double month = price_of(r, RENT_USD_HOUR) * w->wall_h * size_then(w->w, m);
        int64_t due = amount(w, month * (1 - upfront));
        buy(machines, m, term, amount(w, month * term * upfront), 0);
        for (int k = m; k < m + term && k < BREAKEVEN_MONTHS; k++) {
            pay(machines, k, due);
            s->owed[k] = due * (m + term - k - 1);
        }
    }
}

/* Books `of` micro-dollars a month, less from the month in which better machines do the work. */
static double pay_hours(struct world *w, struct breakeven_item *i, double of)
{
    for (int m = 0; m < BREAKEVEN_MONTHS; m++)
        pay(i, m, amount(w, of * size_then(w->w, m)));
    return of;
}

static void rent_by_the_hour(
    struct world *w, const struct breakeven_rent *r, struct breakeven_side *s)
{
    double uusd = price_of(r, RENT_USD_HOUR) * w->productive_h, all;
    if (r->market == RENT_SPOT) {
        double interruptions = share(&r->f[RENT_INTERRUPTIONS]),
               without = share(&r->f[RENT_WITHOUT_SPOT]);
        uusd *= times(w->w->spot_times) * (1 - without);
        all = pay_hours(w, add_item(s, ITEM_MACHINES, "spot machines"), uusd);
        all += pay_hours(w, add_item(s, ITEM_LOST, "work lost to interruptions"),
            uusd * breakeven_lost(interruptions, value(&r->f[RENT_AT_RISK]) / 60));
        all += pay_hours(w, add_item(s, ITEM_RESTARTS, "restarts"),
            uusd * interruptions * value(&r->f[RENT_RESTART]) / 60);
        all += pay_hours(w, add_item(s, ITEM_SAVES, "saves"), uusd * share(&r->f[RENT_SAVING]));
        all += pay_hours(w, add_item(s, ITEM_ON_DEMAND, "on-demand, while there is no spot"),
            price_of(r, RENT_ON_DEMAND_USD_HOUR) * w->productive_h * without);
    } else {
        all = pay_hours(w, add_item(s, ITEM_MACHINES, "on-demand machines"), uusd);
    }
    pay_hours(w, add_item(s, ITEM_IDLE, "boot and idle time"), all * share(&r->f[RENT_IDLE]));
}

static void rent_side(struct world *w, const struct breakeven_rent *r, struct breakeven_side *s)
{
    *s = (struct breakeven_side){0};
    STR_COPY(s->name, r->name);
    if (r->market == RENT_RESERVED)
        rent_reserved(w, r, s);
    else
        rent_by_the_hour(w, r, s);
    struct breakeven_item *egress = add_item(s, ITEM_EGRESS, "egress"),
                          *storage = add_item(s, ITEM_STORAGE, "storage"),
                          *staff = add_item(s, ITEM_STAFF, "staff");
    double traffic =
        value(&r->f[RENT_EGRESS_GB]) * BREAKEVEN_MONTH_DAYS * (double)r->f[RENT_EGRESS_USD].micro;
    for (int m = 0; m < BREAKEVEN_MONTHS; m++) {
        pay(egress, m, amount(w, traffic));
        pay(storage, m,
            amount(w, value(&r->f[RENT_STORAGE_GB]) * (double)r->f[RENT_STORAGE_USD].micro));
        pay(staff, m,
            amount(w, value(&r->f[RENT_STAFF]) * (double)r->f[RENT_STAFF_USD].micro / 12));
    }
}

/* ---- comparison ---- */

struct breakeven_point breakeven_intersect(struct breakeven_line own, struct breakeven_line rent)
{
    double gap = own.fixed - rent.fixed, slope = rent.productive - own.productive;
    double at = slope != 0 ? gap / slope : -1;
    double when_idle = own.fixed - rent.fixed,
           when_full = own.fixed + own.productive - rent.fixed - rent.productive;
    if (when_idle <= 0 && when_full <= 0)
        return (struct breakeven_point){.where = OWN_ALWAYS};
    if (when_idle > 0 && when_full > 0)
        return (struct breakeven_point){.where = OWN_NEVER};
    return (struct breakeven_point){
        .where = when_idle > 0 ? OWN_ABOVE : OWN_BELOW, .utilisation = at};
}

static struct world world_of(
    const struct breakeven_plan *p, const struct breakeven_what_if *w, double utilisation)
{
    struct world of = {
        .plan = p, .w = w, .gpus = value(&p->own[OWN_NODES]) * value(&p->own[OWN_GPUS])};
    of.wall_h = of.gpus * BREAKEVEN_MONTH_HOURS;
    of.productive_h = of.wall_h * utilisation;
    return of;
}

static double utilisation_in(const struct breakeven_plan *p, const struct breakeven_what_if *w)
{
    double u = share(&p->utilisation) + w->utilisation_points / 100;
    return u < UTILISATION_MIN ? UTILISATION_MIN : u > 1 ? 1 : u;
}

/* Owning and every way of renting, under one what-if and one utilisation. */
struct sides {
    struct breakeven_side own, rents[BREAKEVEN_RENTS_MAX];
    bool is_overflow;
};

static void fill_sides(const struct breakeven_plan *p, const struct breakeven_what_if *w,
    double utilisation, struct sides *s)
{
    struct world of = world_of(p, w, utilisation);
    own_side(&of, &s->own);
    for (size_t i = 0; i < p->n_rents; i++)
        rent_side(&of, &p->rents[i], &s->rents[i]);
    s->is_overflow = of.is_overflow;
}

/* Cost per GPU-hour, used or not, as a linear function of utilisation through its values at 0 and
 * at 1. */
static struct breakeven_line line_of(const struct breakeven_plan *p,
    const struct breakeven_side *idle, const struct breakeven_side *full, unsigned kinds)
{
    double hours = world_of(p, &(struct breakeven_what_if){0}, 1).wall_h * p->months;
    double fixed = (double)side_cost(idle, kinds, p->months);
    return (struct breakeven_line){.fixed = fixed / hours,
        .productive = ((double)side_cost(full, kinds, p->months) - fixed) / hours};
}

static int64_t cash_in(const struct breakeven_side *s, int month)
{
    int64_t total = 0;
    for (size_t i = 0; i < s->n_items; i++)
        total += s->items[i].cash[month];
    return total;
}

static void find_month(
    const struct breakeven_side *own, const struct breakeven_side *rent, struct breakeven_versus *v)
{
    int64_t ahead = 0; /* cumulative cash for renting minus that for owning, in micro-dollars */
    for (int m = 0; m < BREAKEVEN_MONTHS && !v->behind_from; m++) {
        ahead += cash_in(rent, m) - cash_in(own, m);
        if (!v->month && ahead >= 0)
            v->month = m + 1;
        else if (v->month && ahead < 0)
            v->behind_from = m + 1;
    }
}

static void compare(const struct breakeven_plan *p, const struct sides *now,
    const struct sides *idle, const struct sides *full, size_t i, struct breakeven_versus *v)
{
    *v = (struct breakeven_versus){.line = line_of(p, &idle->rents[i], &full->rents[i], ITEMS_ALL)};
    struct breakeven_line rent_no_staff =
        line_of(p, &idle->rents[i], &full->rents[i], ITEMS_NO_STAFF);
    v->all = breakeven_intersect(line_of(p, &idle->own, &full->own, ITEMS_ALL), v->line);
    v->without_staff =
        breakeven_intersect(line_of(p, &idle->own, &full->own, ITEMS_NO_STAFF), rent_no_staff);
    v->hardware_power = breakeven_intersect(
        line_of(p, &idle->own, &full->own, ITEMS_HARDWARE_POWER), rent_no_staff);
    find_month(&now->own, &now->rents[i], v);
}

/* Fills s[0] at the planned utilisation, s[1] at 0 and s[2] at 1; false if an amount is too large.
 */
static bool fill_world(
    const struct breakeven_plan *p, const struct breakeven_what_if *w, struct sides *s)
{
    fill_sides(p, w, utilisation_in(p, w), &s[0]);
    fill_sides(p, w, 0, &s[1]);
    fill_sides(p, w, 1, &s[2]);
    return !s[0].is_overflow && !s[1].is_overflow && !s[2].is_overflow;
}

static bool fill_outcome(const struct breakeven_plan *p, const struct breakeven_what_if *w,
    struct sides *s, struct breakeven_outcome *o)
{
    bool fits = fill_world(p, w, s);
    double hours = world_of(p, w, utilisation_in(p, w)).productive_h * p->months;
    o->own_uusd_hour = (double)side_cost(&s[0].own, ITEMS_ALL, p->months) / hours;
    for (size_t i = 0; i < p->n_rents; i++) {
        o->rent_uusd_hour[i] = (double)side_cost(&s[0].rents[i], ITEMS_ALL, p->months) / hours;
        compare(p, &s[0], &s[1], &s[2], i, &o->versus[i]);
    }
    return fits;
}

int breakeven_run(
    const struct breakeven_plan *p, struct breakeven_result *ret_result, struct err *e)
{
    const struct breakeven_what_if as_it_is = {0};
    struct sides *s = mem_array(3, sizeof *s);
    struct breakeven_result *r = ret_result;
    bool fits = true;
    for (size_t i = 0; i < p->n_what_ifs; i++)
        fits = fill_outcome(p, &p->what_ifs[i], s, &r->outcomes[i]) && fits;
    fits = fill_world(p, &as_it_is, s) && fits;
    struct world w = world_of(p, &as_it_is, utilisation_in(p, &as_it_is));
    r->gpus = w.gpus;
    r->utilisation = utilisation_in(p, &as_it_is);
    r->productive_hours = w.productive_h * p->months;
    r->own = s[0].own;
    r->own_line = line_of(p, &s[1].own, &s[2].own, ITEMS_ALL);
    for (size_t i = 0; i < p->n_rents; i++) {
        r->rents[i] = s[0].rents[i];
        compare(p, &s[0], &s[1], &s[2], i, &r->versus[i]);
    }
    free(s);
    return fits ? 0
                : err_set(e, ERR_INVALID,
                      "more than $2,000,000,000 in one purchase or one month cannot be added up: "
                      "is a figure in the wrong unit?");
}
