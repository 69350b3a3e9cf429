/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares what each user, team and pool spent on the last days (UTC) with the same weekday of the
 * weeks before. Spending is that of the ledger's sums and of running attempts, whose cost so far is
 * divided over their days by time, as the ledger will divide it. The spending of the current day so
 * far is compared with whole days, so an excess is found before the day is over.
 *
 * The days before count from the first of these weekdays on which the subject had any record: a day
 * without spending after it is 0. A subject whose first record is less than SPEND_WEEKS_MIN weeks
 * old is not judged.
 */
#ifndef BELAY_SCHEDULER_SPEND_REVIEW_H
#define BELAY_SCHEDULER_SPEND_REVIEW_H

#include "db/db.h"
#include "telemetry/spend_anomaly.h"

#define SPEND_DAYS_MAX 28
#define SPEND_FINDINGS_MAX 500

struct spend_finding {
    struct anomaly_row row;
    int64_t limit_uusd;
    bool is_told; /* notified; false until spend_review_mark_told */
};

struct spend_review {
    struct spend_limits limits;
    struct wall now;
    int32_t days; /* to review: the current one and those before it */
    struct spend_running *running;
    size_t n_running;
    /* the result, the largest excess over the usual first */
    struct spend_finding *found;
    size_t n_found;
    bool more; /* beyond SPEND_FINDINGS_MAX */
};

/* Notes the running attempts; days is 1 .. SPEND_DAYS_MAX. Deinit *ret. */
void spend_review_init(struct spend_review *ret, const struct spend_limits *limits,
    const struct model *m, struct wall now, int32_t days);
/* Fills the result. May run on any thread. */
int spend_review_read(struct spend_review *s, struct db_reader *r, struct err *e);
void spend_review_mark_told(struct spend_review *s, const struct model *m);
void spend_review_deinit(struct spend_review *s);

#endif
