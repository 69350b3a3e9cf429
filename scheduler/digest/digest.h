/* SPDX-License-Identifier: Apache-2.0
 *
 * The text of the morning digest: what happened in a period, from committed rows, and what runs,
 * waits and is nearly spent now, from the model. For the whole cluster, or for one user, who sees
 * only what is their own.
 */
#ifndef BELAY_SCHEDULER_DIGEST_DIGEST_H
#define BELAY_SCHEDULER_DIGEST_DIGEST_H

#include "base/buf.h"
#include "base/json.h"
#include "db/night.h"

#define DIGEST_WAITS_MAX 3
#define DIGEST_BUDGETS_MAX 8
#define DIGEST_BUDGET_PCT 80 /* a budget is near its end from here */

struct digest_wait {
    struct job_ref job;
    char name[CORE_NAME_MAX], user[CORE_NAME_MAX];
    char text[2 * CORE_TEXT_MAX];
};

struct digest_budget {
    char name[CORE_NAME_MAX];
    int64_t spent_uusd, cap_uusd;
};

struct digest {
    struct wall from, to;
    const struct time_zone *zone; /* of the times in the text; borrowed */
    char user[CORE_NAME_MAX];     /* "" = the whole cluster */
    /* now */
    int64_t running, running_uusd; /* jobs, and their cost so far */
    int64_t pending;
    struct digest_wait waits[DIGEST_WAITS_MAX]; /* the first of the queue */
    size_t n_waits;
    struct digest_budget budgets[DIGEST_BUDGETS_MAX];
    size_t n_budgets;
    /* in the period */
    struct night night;
};

/* Sets what is of now; from, to, zone and user are set. Examines the running jobs, and the queue
 * until it has enough. */
void digest_look(struct digest *d, const struct model *m, struct stamp now);
/* Sets what is of the period; for any thread. */
int digest_read(struct digest *d, struct db_reader *r, struct err *e);

/* Nothing ended, runs, waits, or cost anything. */
bool digest_is_empty(const struct digest *d);
/* One line. */
void digest_title(const struct digest *d, struct buf *out);
/* Lines ended by "\n", without control characters from names. */
void digest_text(const struct digest *d, struct buf *out);
/* Title, text and their numbers; a new reference. */
json_t *digest_json(const struct digest *d);

#endif
