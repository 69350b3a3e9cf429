/* SPDX-License-Identifier: Apache-2.0
 *
 * The traces of a study, and which offer follows which trace. A file is named ZONE_TYPE.json or
 * ZONE_TYPE_COUNT.json, as the published ones are ("us-east-1a_v100_1.json"); TYPE is an instance
 * type, or the model of its GPUs.
 */
#ifndef BELAY_REPLAY_MARKET_H
#define BELAY_REPLAY_MARKET_H

#include "cloud/trace.h"
#include "scheduler/core/model/rows.h"

#define MARKET_TRACES_MAX 4096

struct market_trace {
    char *file;
    /* the offers that it is for, as ZONE, ZONE/TYPE or POOL/ZONE/TYPE; NULL: by the file's name */
    char *offer;
    bool is_explicit; /* the offer was given explicitly, as OFFER=FILE */
    char zone[CORE_NAME_MAX], type[CORE_NAME_MAX];
    int32_t count; /* number of GPUs in the file's name; 0 = none */
    struct trace trace;
};

struct traces {
    struct market_trace *list; /* ordered by file name within a directory */
    size_t n;
};

/* Reads a file, a directory (its *.json), or OFFER=FILE. ERR_NOT_FOUND, ERR_INVALID. */
int market_read(struct traces *t, const char *what, struct err *e);
/* Adds the trace as if given for that offer; takes it over. */
int market_add(
    struct traces *t, const char *offer, const char *file, struct trace *trace, struct err *e);
/* Whether the trace was given for this offer. */
bool market_is_for(const struct market_trace *t, const struct offer_row *o);
void market_deinit(struct traces *t);

/* The trace of a spot offer; NULL if none. *ret_prices: its prices are for such a machine.
 * Preference: given for the offer; its zone and type; its zone and GPU model (of several, the one
 * with its GPU count); the only one of its zone. */
const struct market_trace *market_find(
    const struct traces *t, const struct offer_row *o, bool *ret_prices);

#endif
