/* SPDX-License-Identifier: Apache-2.0
 *
 * An audit: what the providers list, the instance rows and the ledger, held against each other.
 * Pure: the caller listed and reads the database. Call in this order: every listing, every ledger
 * sum, every row by number, every gap, the end.
 *
 * What is only on its way is no difference: a launch without an answer yet, an end that is asked
 * for, and what a provider's lagging list (settle_ms) does not show yet or still shows.
 */
#ifndef BELAY_SCHEDULER_AUDIT_H
#define BELAY_SCHEDULER_AUDIT_H

#include "cloud/driver.h"
#include "db/db.h"
#include "scheduler/config/config.h"

enum audit_kind {
    /* the provider could not be asked: nothing is known of that pool's machines */
    AUDIT_NOT_LISTED,
    AUDIT_NO_ROW,      /* a machine that carries our tag, and no live row */
    AUDIT_NO_INSTANCE, /* a live row, and no machine */
    AUDIT_DIFFERS,     /* type, market or zone */
    AUDIT_NO_POOL,     /* a live row whose pool is not configured: nobody can end it */
    /* the ledger does not add up to time and cost of an instance or an attempt */
    AUDIT_LEDGER
};
extern const char *const audit_kind_names[]; /* "not-listed" ... */

struct audit_difference {
    enum audit_kind kind;
    char provider[16], region[CORE_NAME_MAX], pool[CORE_NAME_MAX]; /* "": none, or not known */
    char provider_id[CLOUD_NAME_MAX];                              /* "" */
    int64_t instance;                                              /* CORE_ID_NONE */
    /* what is expected and what is there */
    char text[CORE_TEXT_MAX];
};
typedef void (*audit_fn)(void *ctx, const struct audit_difference *d);

struct audit;

/* True: the pool's listing could not see where this instance is (driver.h, hides). */
typedef bool (*audit_hides_fn)(void *ctx, const char *pool, const char *provider_id);

/* config: the pools in force, borrowed; fn is told of each difference, in the calls below. */
struct audit *audit_create(const struct config *config, int64_t settle_ms, audit_fn fn, void *ctx);
/* Before the rows; without it every listing is whole. Gets audit_create's ctx. */
void audit_set_hides(struct audit *a, audit_hides_fn hides);
void audit_destroy(struct audit *a); /* NULL is fine */

/* What the provider listed for this pool, from this moment on; e not NULL: it could not. list is
 * borrowed until the end; what two pools of one account both list counts once. */
void audit_listing(struct audit *a, const char *pool, struct wall began, const struct err *e,
    const struct cloud_instance *list, size_t n);
void audit_ledger_sum(struct audit *a, const struct ledger_sum *sum);
void audit_row(struct audit *a, const struct instance_row *row);
void audit_ledger_node(struct audit *a, const struct ledger_node *node);
void audit_ledger_gap(struct audit *a, const struct ledger_gap *gap);
void audit_rollup_gap(struct audit *a, const char *text);
void audit_end(struct audit *a);

/* How much was looked at. */
struct audit_counts {
    int64_t pools, machines, rows, differences;
};
void audit_get_counts(const struct audit *a, struct audit_counts *ret_counts);

#endif
