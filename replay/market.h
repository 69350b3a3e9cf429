/* SPDX-License-Identifier: Apache-2.0
 *
 * The traces that a study follows, and which offer follows which. A file is named ZONE_TYPE.json or
 * ZONE_TYPE_COUNT.json, as the published ones are ("us-east-1a_v100_1.json"); TYPE is an instance
 * type, or the model of its GPUs.
 */
#ifndef BELAY_REPLAY_MARKET_H
#define BELAY_REPLAY_MARKET_H

#include "cloud/trace.h"
#include "scheduler/core/model/types.h"

#define MARKET_TRACES_MAX 4096

struct market_trace {
    char *file;
    char *offer;  /* ZONE, ZONE/TYPE or POOL/ZONE/TYPE that it was given for; NULL: its name says */
    bool is_told; /* that offer was told by somebody, as OFFER=FILE */
    char zone[CORE_NAME_MAX], type[CORE_NAME_MAX];
    int32_t count; /* of its name; 0: none */
    struct trace trace;
};

struct traces {
    struct market_trace *list; /* by file, those of one directory */
    size_t n;
};

/* A file, a directory (its *.json), or OFFER=FILE. ERR_NOT_FOUND, ERR_INVALID. */
int market_read(struct traces *t, const char *what, struct err *e);
/* Takes it, as if it was given for that offer. */
int market_add(
    struct traces *t, const char *offer, const char *file, struct trace *trace, struct err *e);
/* Whether it was given for this one. */
bool market_is_for(const struct market_trace *t, const struct offer_row *o);
void market_deinit(struct traces *t);

/* The one for a spot offer; NULL: none. *ret_prices: its prices are of such a machine. In this
 * order: what was given for it; its zone and type; its zone and the model of its GPUs (of several
 * the one whose count is that of its GPUs); the only one of its zone. */
const struct market_trace *market_find(
    const struct traces *t, const struct offer_row *o, bool *ret_prices);

#endif
