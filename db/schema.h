/* SPDX-License-Identifier: Apache-2.0
 *
 * The schema's versions, as texts. migrate.c applies them.
 */
#ifndef BELAY_DB_SCHEMA_H
#define BELAY_DB_SCHEMA_H

struct schema {
    const char *baseline; /* makes version 1 in an empty database; has the table meta */
    /* steps[i] takes version i + 1 to i + 2; ends with NULL. No BEGIN or COMMIT in them */
    const char *const *steps;
};

extern const struct schema belay_schema;

#endif
