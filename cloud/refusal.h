/* SPDX-License-Identifier: Apache-2.0
 *
 * A provider's refusals as data: one table from its codes to what they mean for the caller. Where
 * in a reply the code stands is the driver's to know.
 */
#ifndef BELAY_CLOUD_REFUSAL_H
#define BELAY_CLOUD_REFUSAL_H

#include "base/err.h"
#include <stddef.h>

/* The last row of a table is zeroed. */
struct refusal {
    /* A '*' at one end stands for anything there. "HTTP 404": that status with a code which is in
     * no row, or without one. */
    const char *code;
    enum err_kind kind;
    const char *hint; /* what to do; NULL: the message says it */
    unsigned flags;   /* the driver's own */
};

/* The first row that the code fits; NULL: none. */
const struct refusal *refusal_find(const struct refusal *table, const char *code);

/* What a status means by itself: its row of the table, else what it means to everyone. other: that
 * it is nothing special. */
enum err_kind refusal_kind_of_status(const struct refusal *table, int status, enum err_kind other);

/* "WHO refused: CODE: MESSAGE; to do: HINT". message "": none; r: the code's row, or NULL. Returns
 * kind. */
int refusal_set(const char *who, enum err_kind kind, const char *code, const char *message,
    const struct refusal *r, struct err *e);

/* The reply does not come from WHO: an empty body, an HTML page, or `otherwise` ("not an EC2 error
 * document"). Returns kind. */
int refusal_set_stray(const char *who, enum err_kind kind, int status, const char *body, size_t n,
    const char *otherwise, struct err *e);

#endif
