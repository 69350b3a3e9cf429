/* SPDX-License-Identifier: Apache-2.0
 *
 * Rent or buy: what GPUs of one's own cost, item by item and month by month, against each way to
 * rent the same work. Pure: no clock, no files, the same plan gives the same numbers.
 *
 * Units. Money is integer micro-dollars where it is added up; rates are doubles. A year has 8760
 * hours and a month 730 (8760 / 12); what is given by the day counts 30 days a month, as bills of
 * storage and egress do. G is the number of GPUs owned, u the utilisation, the share of all their
 * hours that is productive. There are two kinds of hours:
 *     wall hours            G x 730 a month: a GPU that is owned or reserved costs in each
 *     productive hours      G x 730 x u a month: the work, which is the same however it is done
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
 *                           interruptions an hour: to the first order, that is, what is lost is not
 *                           lost again while it is done again. Hours in which there is no spot
 *                           machine cost the on-demand price.
 *     egress, storage, staff, as given
 *
 * Each item has two rows of months: cash, when it is paid, and cost, which spreads what is bought
 * over its life. What cash is ahead of cost is the value that is left. The month of break-even is
 * by cash, all else by cost. Break-even utilisation: both sides' costs are straight lines over u, F
 * + V x u; they meet at (F_own - F_rent) / (V_rent - V_own).
 *
 * Left out: interest and taxes (they can be given as other items), and that prices change unless a
 * what-if says so.
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

/* ---- what is given ---- */

/* A figure in millionths of its unit, and where it is from. */
enum breakeven_origin { FIGURE_DEFAULT, FIGURE_GIVEN, FIGURE_CATALOGUE, FIGURE_MEASURED };
extern const char *const breakeven_origin_names[];

struct figure {
    int64_t micro;
    enum breakeven_origin origin;
    char source[BREAKEVEN_SOURCE_MAX]; /* of what was not given: who says so */
};

#define RENT_BIT(market) (1u << (market))

struct figure_info {
    const char *key, *unit;
    int64_t min, max, fallback; /* millionths too */
    const char *source;         /* of the fallback */
    bool whole;                 /* no decimals */
    unsigned markets;           /* RENT_BITs of those that it is of; 0: all */
    int needs;                  /* 1 + the figure without which it does not count; 0 = none */
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
    RENT_USD_HOUR, /* of one machine; a discount is taken off it */
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
    char gpu_model[24]; /* as the catalogue says; "": it does not know the machine */
};

struct breakeven_other {
    char name[BREAKEVEN_NAME_MAX];
    int64_t once_uusd, month_uusd;
};

/* What else could be. Of a zeroed one nothing is different; 0 times is read as once. */
struct breakeven_what_if {
    char name[BREAKEVEN_NAME_MAX];
    double utilisation_points; /* added; the utilisation stays within 1 and 100 % */
    double spot_times, power_times;
    /* machines that do so many times the work for the same money are there to be rented and
     * bought... */
    double better_times;
    /* ...after so many months. What is owned and reserved stays what it is to the end of its
     * time */
    int better_after;
};

struct breakeven_plan {
    struct figure utilisation; /* percent */
    int months;                /* that costs are averaged over; 1 .. BREAKEVEN_MONTHS */
    struct figure own[OWN_FIGURES];
    struct breakeven_other others[BREAKEVEN_OTHERS_MAX];
    size_t n_others;
    struct breakeven_rent rents[BREAKEVEN_RENTS_MAX];
    size_t n_rents;
    struct breakeven_what_if what_ifs[BREAKEVEN_WHAT_IFS_MAX];
    size_t n_what_ifs;
    bool what_ifs_given;
};

/* ---- what comes of it ---- */

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
    int64_t cash[BREAKEVEN_MONTHS], cost[BREAKEVEN_MONTHS]; /* micro-dollars of each month */
};

/* Owning, or one way to rent. */
struct breakeven_side {
    char name[BREAKEVEN_NAME_MAX];
    struct breakeven_item items[BREAKEVEN_ITEMS_MAX];
    size_t n_items;
    /* after each month: what a term that was begun obliges to pay still */
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
    double utilisation; /* 0 .. 1, of the middle two */
};

/* A cost over the utilisation: of each wall hour, and of each productive hour besides;
 * micro-dollars of one GPU. */
struct breakeven_line {
    double fixed, productive;
};
struct breakeven_point breakeven_meet(struct breakeven_line own, struct breakeven_line rent);

struct breakeven_versus {
    struct breakeven_line line; /* of renting */
    /* the last: of owning nothing but these two */
    struct breakeven_point all, without_staff, hardware_power;
    /* at the end of which owning has been paid less for than renting, from 1; 0: not within
     * BREAKEVEN_MONTHS */
    int month;
    int behind_again; /* a later one in which that is no longer so; 0 = none */
};

struct breakeven_outcome { /* of a what-if */
    double own_uusd_hour;  /* of a productive GPU-hour, over the plan's months */
    double rent_uusd_hour[BREAKEVEN_RENTS_MAX];
    struct breakeven_versus versus[BREAKEVEN_RENTS_MAX];
};

struct breakeven_result {
    double gpus, utilisation;
    double productive_hours; /* over the plan's months, of all GPUs */
    struct breakeven_side own, rents[BREAKEVEN_RENTS_MAX];
    struct breakeven_line own_line;
    struct breakeven_versus versus[BREAKEVEN_RENTS_MAX];
    struct breakeven_outcome outcomes[BREAKEVEN_WHAT_IFS_MAX];
};

/* ERR_INVALID: sums beyond what can be added up. *ret_result is large: not for the stack. */
int breakeven_run(
    const struct breakeven_plan *p, struct breakeven_result *ret_result, struct err *e);

/* ---- parts, for tests and texts ---- */

/* GPU-hours lost in each hour of a GPU that is interrupted so often an hour, with so many hours'
 * work at risk each time. */
double breakeven_lost(double interruptions_h, double at_risk_h);

#endif
