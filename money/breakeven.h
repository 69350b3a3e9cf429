/* SPDX-License-Identifier: Apache-2.0
 *
 * Rent or buy: the cost of owning GPUs, item by item and month by month, compared with each way to
 * rent the same work. Pure: no clock, no files; the same plan gives the same numbers.
 *
 * Units. Money is integer micro-dollars where it is added up; rates are doubles. A year has 8760
 * hours and a month 730 (8760 / 12); daily values count 30 days a month, as in bills of storage and
 * egress. G is the number of GPUs owned, u the utilisation: the productive share of all their
 * hours. There are two kinds of hours:
 *     wall hours            G x 730 a month: hours in which an owned or reserved GPU costs
 *     productive hours      G x 730 x u a month: the work, the same for owning and renting
 *
 * Owning, a month.
 *     hardware              nodes x price x (1 - resale) / months of depreciation       wall
 *     spares                hardware x share, bought with it, without resale             wall
 *     maintenance           hardware x share a year / 12                                 wall
 *     power                 (kW at work x u + kW idle x (1 - u)) x G x 730 x PUE x price of a kWh
 *     space                 nodes x price, and kW at work x G x price                    wall
 *     network               a line by the month (wall), traffic by the productive hour
 *     staff                 people x salary / 12                                         wall
 *     other                 by the month, or once, spread over the depreciation          wall
 * When the depreciation is over the hardware is bought again (refresh: at this share of the first
 * price).
 *
 * Renting, a month, p being the price of a GPU-hour.
 *     on-demand             p x productive hours x (1 + share of boot and idle time)
 *     reserved              p x wall hours, used or not, for the term, and then for another
 *     spot                  p x productive hours x (1 + r x (work at risk + restart) + saves), r
 *                           interruptions an hour: to first order: repeated work is not
 *                           interrupted again. Hours without a spot machine cost the on-demand
 *                           price.
 *     egress, storage, staff, as given
 *
 * Each item has two rows of months: cash, when it is paid, and cost, which spreads purchases over
 * their life. Cash minus cost is the remaining value. The month of break-even uses cash, everything
 * else uses cost. Break-even utilisation: both sides' costs are straight lines over u, F + V x u;
 * they meet at (F_own - F_rent) / (V_rent - V_own).
 *
 * Not modelled: interest and taxes (they can be given as other items), and price changes, except by
 * a what-if.
 */
#ifndef BELAY_MONEY_BREAKEVEN_H
#define BELAY_MONEY_BREAKEVEN_H

#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BREAKEVEN_MONTHS 60
#define BREAKEVEN_MONTH_HOURS 730.0
#define BREAKEVEN_MONTH_DAYS 30.0
#define BREAKEVEN_MICRO 1000000
#define BREAKEVEN_RENTS_MAX 16
#define BREAKEVEN_OTHERS_MAX 16
#define BREAKEVEN_WHAT_IFS_MAX 8
#define BREAKEVEN_ITEMS_MAX (8 + BREAKEVEN_OTHERS_MAX)
#define BREAKEVEN_NAME_MAX 80
#define BREAKEVEN_SOURCE_MAX 160

/* ---- input ---- */

/* A figure in millionths of its unit, and its origin. */
enum breakeven_origin { FIGURE_DEFAULT, FIGURE_GIVEN, FIGURE_CATALOGUE, FIGURE_MEASURED };
extern const char *const breakeven_origin_names[];

struct figure {
    int64_t micro;
    enum breakeven_origin origin;
    char source[BREAKEVEN_SOURCE_MAX]; /* source of a figure that was not given */
};

#define RENT_BIT(market) (1u << (market))

struct figure_info {
    const char *key, *unit;
    int64_t min, max, fallback; /* also in millionths */
    const char *source;         /* source of the fallback */
    bool whole;                 /* must be an integer */
    unsigned markets;           /* RENT_BITs of the markets that it applies to; 0 = all */
    int needs;                  /* 1 + the figure without which it is ignored; 0 = none */
};

enum own_figure {
    OWN_NODES,
    OWN_GPUS,
    OWN_NODE_USD,
    OWN_YEARS,
    OWN_RESALE,
    OWN_SPARES,
    OWN_MAINTENANCE,
    OWN_REFRESH,
    OWN_KW,
    OWN_IDLE_KW,
    OWN_PUE,
    OWN_KWH,
    OWN_SPACE_NODE,
    OWN_SPACE_KW,
    OWN_NETWORK_HOUR,
    OWN_NETWORK_MONTH,
    OWN_STAFF,
    OWN_STAFF_USD,
    OWN_FIGURES
};
extern const struct figure_info own_figures[OWN_FIGURES];

enum rent_figure {
    RENT_USD_HOUR, /* of one machine, before discounts */
    RENT_GPUS,
    RENT_DISCOUNT,
    RENT_TERM,
    RENT_UPFRONT,
    RENT_INTERRUPTIONS,
    RENT_AT_RISK,
    RENT_RESTART,
    RENT_SAVING,
    RENT_WITHOUT_SPOT,
    RENT_ON_DEMAND_USD_HOUR,
    RENT_IDLE,
    RENT_EGRESS_GB,
    RENT_EGRESS_USD,
    RENT_STORAGE_GB,
    RENT_STORAGE_USD,
    RENT_STAFF,
    RENT_STAFF_USD,
    RENT_FIGURES
};
extern const struct figure_info rent_figures[RENT_FIGURES];

enum rent_market { RENT_ON_DEMAND, RENT_RESERVED, RENT_SPOT };
extern const char *const rent_market_names[];
/* the source of figures that are 0 for that reason */
#define FIGURE_NOT_COUNTED "not counted: nothing was said of it"

struct breakeven_rent {
    char name[BREAKEVEN_NAME_MAX];
    enum rent_market market;
    struct figure f[RENT_FIGURES];
    char gpu_model[24]; /* from the catalogue; "" = machine not in the catalogue */
};

struct breakeven_other {
    char name[BREAKEVEN_NAME_MAX];
    int64_t once_uusd, month_uusd;
};

/* A what-if. Zeroed = no change; a factor of 0 means 1. */
struct breakeven_what_if {
    char name[BREAKEVEN_NAME_MAX];
    double utilisation_points; /* added; the result is limited to 1 .. 100 % */
    double spot_times, power_times;
    /* machines with this multiple of work per dollar become available to rent and buy ... */
    double better_times;
    /* ... after this many months. Owned and reserved machines stay until the end of their term */
    int better_after;
};

struct breakeven_plan {
    struct figure utilisation; /* percent */
    int months;                /* period over which costs are averaged; 1 .. BREAKEVEN_MONTHS */
    struct figure own[OWN_FIGURES];
    struct breakeven_other others[BREAKEVEN_OTHERS_MAX];
    size_t n_others;
    struct breakeven_rent rents[BREAKEVEN_RENTS_MAX];
    size_t n_rents;
    struct breakeven_what_if what_ifs[BREAKEVEN_WHAT_IFS_MAX];
    size_t n_what_ifs;
    bool what_ifs_given;
};

/* ---- output ---- */

enum breakeven_kind {
    ITEM_HARDWARE,
    ITEM_SPARES,
    ITEM_MAINTENANCE,
    ITEM_POWER,
    ITEM_SPACE,
    ITEM_NETWORK,
    ITEM_STAFF,
    ITEM_OTHER,
    ITEM_MACHINES,
    ITEM_LOST,
    ITEM_RESTARTS,
    ITEM_SAVES,
    ITEM_ON_DEMAND,
    ITEM_IDLE,
    ITEM_EGRESS,
    ITEM_STORAGE,
    ITEM_KINDS
};
#define ITEM_BIT(kind) (1u << (kind))
#define ITEMS_ALL (~0u)
#define ITEMS_NO_STAFF (ITEMS_ALL & ~ITEM_BIT(ITEM_STAFF))
#define ITEMS_HARDWARE_POWER (ITEM_BIT(ITEM_HARDWARE) | ITEM_BIT(ITEM_POWER))

struct breakeven_item {
    enum breakeven_kind kind;
    char name[BREAKEVEN_NAME_MAX];
    int64_t cash[BREAKEVEN_MONTHS], cost[BREAKEVEN_MONTHS]; /* micro-dollars per month */
};

/* Owning, or one way to rent. */
struct breakeven_side {
    char name[BREAKEVEN_NAME_MAX];
    struct breakeven_item items[BREAKEVEN_ITEMS_MAX];
    size_t n_items;
    /* payments still due after each month for a term that has begun */
    int64_t owed[BREAKEVEN_MONTHS];
};

/* The sums of the items of these kinds over the first months. */
int64_t side_cash(const struct breakeven_side *s, unsigned kinds, int months);
int64_t side_cost(const struct breakeven_side *s, unsigned kinds, int months);

/* Where owning costs less: above this utilisation, below it, always or never (within 0 and 100
 * %). */
enum breakeven_where { OWN_ALWAYS, OWN_NEVER, OWN_ABOVE, OWN_BELOW };
extern const char *const breakeven_where_names[];
struct breakeven_point {
    enum breakeven_where where;
    double utilisation; /* 0 .. 1, for the middle two */
};

/* Cost as a function of the utilisation: per wall hour, plus per productive hour; micro-dollars per
 * GPU. */
struct breakeven_line {
    double fixed, productive;
};
struct breakeven_point breakeven_intersect(struct breakeven_line own, struct breakeven_line rent);

struct breakeven_versus {
    struct breakeven_line line; /* renting */
    /* hardware_power: owning with only these two costs */
    struct breakeven_point all, without_staff, hardware_power;
    /* first month, from 1, at whose end less has been paid for owning than for renting; 0 = not
     * within BREAKEVEN_MONTHS */
    int month;
    int behind_from; /* a later month in which that is no longer true; 0 = none */
};

struct breakeven_outcome { /* of a what-if */
    double own_uusd_hour;  /* per productive GPU-hour, over the plan's months */
    double rent_uusd_hour[BREAKEVEN_RENTS_MAX];
    struct breakeven_versus versus[BREAKEVEN_RENTS_MAX];
};

struct breakeven_result {
    double gpus, utilisation;
    double productive_hours; /* of all GPUs, over the plan's months */
    struct breakeven_side own, rents[BREAKEVEN_RENTS_MAX];
    struct breakeven_line own_line;
    struct breakeven_versus versus[BREAKEVEN_RENTS_MAX];
    struct breakeven_outcome outcomes[BREAKEVEN_WHAT_IFS_MAX];
};

/* ERR_INVALID: sums too large. *ret_result is too large for the stack. */
int breakeven_run(
    const struct breakeven_plan *p, struct breakeven_result *ret_result, struct err *e);

/* ---- parts, for tests and texts ---- */

/* GPU-hours lost per hour of a GPU with this rate of interruptions per hour, each losing this many
 * hours of work. */
double breakeven_lost(double interruptions_h, double at_risk_h);

#endif
