/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables of the configuration that the model borrows (struct settings_tables), with what the
 * configuration cannot have: the zones of windows, budgets and the digest as this machine knows
 * them.
 */
#ifndef BELAY_SCHEDULER_TABLES_H
#define BELAY_SCHEDULER_TABLES_H

#include "db/db.h"
#include "scheduler/config/config.h"
#include "scheduler/core/model/settings.h"

struct tables {
    struct settings_tables other; /* what it points to is owned by this struct, or is c's */
    struct window *windows;
    struct budget_options *budgets;
    struct notify_hook *hooks;
    struct digest_options digest; /* with its zone, also if none is sent */
    struct job_labels_text *labels;
};

/* Calendars, racks and licences stay those of c, which outlives the model's use of the tables.
 * ERR_INVALID: a time zone is not known. */
int tables_create(
    const struct config *c, struct zones *zones, struct tables **ret_tables, struct err *e);
/* Reads the labels of all stored live jobs, for other budgets. */
int tables_read_labels(struct tables *t, struct db_reader *r, struct err *e);
/* t may be NULL. */
void tables_destroy(struct tables *t);

#endif
