/* SPDX-License-Identifier: Apache-2.0
 *
 * The schema's versions, as texts. migrate.c applies them.
 */
#ifndef BELAY_DB_SCHEMA_H
#define BELAY_DB_SCHEMA_H

struct schema {
    const char *baseline; /* creates version 1 in an empty database; includes the table meta */
    /* steps[i] migrates version i + 1 to i + 2; ends with NULL. No BEGIN or COMMIT in them */
    const char *const *steps;
};

extern const struct schema belay_schema;

#endif
