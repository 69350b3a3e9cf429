/* SPDX-License-Identifier: Apache-2.0
 *
 * The history of the emulated cloud, in order: one JSON object per entry, {"seq": 1, "at": ...,
 * "what": ..., ...}.
 */
#ifndef BELAY_EMULATOR_JOURNAL_H
#define BELAY_EMULATOR_JOURNAL_H

#include "base/json.h"
#include "base/time.h"

#define JOURNAL_MAX 100000 /* entries kept; older ones are dropped */

struct journal {
    json_t **entries; /* oldest first */
    size_t n;
    int64_t last_seq; /* of the newest entry; 0 = none yet */
};

void journal_deinit(struct journal *j);

/* details: an object, taken over and extended; may be NULL. */
void journal_add(struct journal *j, struct wall at, const char *what, json_t *details);

/* A new array of at most max entries with seq > after. */
json_t *journal_after(const struct journal *j, int64_t after, size_t max);

#endif
