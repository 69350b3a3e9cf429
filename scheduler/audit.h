/* SPDX-License-Identifier: Apache-2.0
 *
 * An audit cross-checks the providers' listings, the instance rows and the ledger. Pure: the caller
 * lists the instances and reads the database. Call in this order: every listing, every ledger sum,
 * every row by number, every gap, the end.
 *
 * Operations in progress are not differences: a launch without an answer yet, a requested end, and
 * what a provider's lagging list (settle_ms) does not show yet or still shows.
 */
#ifndef BELAY_SCHEDULER_AUDIT_H
#define BELAY_SCHEDULER_AUDIT_H

#include "cloud/driver.h"
#include "db/db.h"
#include "scheduler/config/config.h"

enum audit_kind {
    /* the provider could not be queried: the pool's machines are unknown */
    AUDIT_NOT_LISTED,
    AUDIT_NO_ROW,      /* a machine that carries our tag, and no live row */
    AUDIT_NO_INSTANCE, /* a live row, and no machine */
    AUDIT_DIFFERS,     /* type, market or zone */
    AUDIT_NO_POOL,     /* a live row whose pool is not configured, so it cannot be terminated */
    /* the ledger does not add up to time and cost of an instance or an attempt */
    AUDIT_LEDGER
};
extern const char *const audit_kind_names[]; /* "not-listed" ... */

struct audit_difference {
    enum audit_kind kind;
    char provider[16], region[CORE_NAME_MAX], pool[CORE_NAME_MAX]; /* "" = none or unknown */
    char provider_id[CLOUD_NAME_MAX];                              /* "" */
    int64_t instance;                                              /* CORE_ID_NONE */
    /* the expected and the actual value */
    char text[CORE_TEXT_MAX];
};
typedef void (*audit_fn)(void *ctx, const struct audit_difference *d);

struct audit;

/* Returns true if the pool's listing could not see this instance's place (driver.h, hides). */
typedef bool (*audit_hides_fn)(void *ctx, const char *pool, const char *provider_id);

/* config has the pools in force, borrowed; fn is called for each difference, inside the calls
 * below. */
struct audit *audit_create(const struct config *config, int64_t settle_ms, audit_fn fn, void *ctx);
/* Call before the rows; without it every listing is complete. hides gets audit_create's ctx. */
void audit_set_hides(struct audit *a, audit_hides_fn hides);
void audit_destroy(struct audit *a); /* a may be NULL */

/* The provider's listing for this pool, begun at this moment; e is not NULL if it failed. list is
 * borrowed until the end; machines that two pools of one account both list count once. */
void audit_listing(struct audit *a, const char *pool, struct wall began, const struct err *e,
    const struct cloud_instance *list, size_t n);
void audit_ledger_sum(struct audit *a, const struct ledger_sum *sum);
void audit_row(struct audit *a, const struct instance_row *row);
void audit_ledger_node(struct audit *a, const struct ledger_node *node);
void audit_ledger_gap(struct audit *a, const struct ledger_gap *gap);
void audit_rollup_gap(struct audit *a, const char *text);
void audit_end(struct audit *a);

/* How much was checked. */
struct audit_counts {
    int64_t pools, machines, rows, differences;
};
void audit_get_counts(const struct audit *a, struct audit_counts *ret_counts);

#endif
