/* SPDX-License-Identifier: Apache-2.0
 *
 * A provider's refusals as data: a table from its error codes to our error kinds. The driver
 * extracts the code from a reply.
 */
#ifndef BELAY_CLOUD_REFUSAL_H
#define BELAY_CLOUD_REFUSAL_H

#include "base/err.h"
#include <stddef.h>

/* The last row of a table is zeroed. */
struct refusal {
    /* A '*' at one end matches any text there. "HTTP 404": that status with an unlisted code, or
     * without a code. */
    const char *code;
    enum err_kind kind;
    const char *hint; /* what to do; NULL if the message says it */
    unsigned flags;   /* defined by the driver */
};

/* The first row that matches the code; NULL if none. */
const struct refusal *refusal_find(const struct refusal *table, const char *code);

/* The kind of a bare status: its row in the table, else its general meaning, else `other`. */
enum err_kind refusal_kind_of_status(const struct refusal *table, int status, enum err_kind other);

/* "WHO refused: CODE: MESSAGE; to do: HINT". message may be ""; r: the code's row, or NULL. Returns
 * kind. */
int refusal_set(const char *who, enum err_kind kind, const char *code, const char *message,
    const struct refusal *r, struct err *e);

/* For a reply that is not from WHO: an empty body, an HTML page, or `otherwise` ("not an EC2 error
 * document"). Returns kind. */
int refusal_set_stray(const char *who, enum err_kind kind, int status, const char *body, size_t n,
    const char *otherwise, struct err *e);

#endif
