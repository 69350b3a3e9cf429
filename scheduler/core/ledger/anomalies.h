/* SPDX-License-Identifier: Apache-2.0
 *
 * Days on which a user, a team or a pool spends far more than usual. scheduler/spend compares
 * the sums of the ledger and reports each finding (EV_ANOMALY), again at every review. A finding is
 * notified at most once for a subject and a day: the day is committed with the notifications, so a
 * restart repeats none. Days before the last one that was notified count as notified.
 */
#ifndef BELAY_SCHEDULER_CORE_LEDGER_ANOMALIES_H
#define BELAY_SCHEDULER_CORE_LEDGER_ANOMALIES_H

#include "scheduler/core/model/model.h"

#define ANOMALIES_MAX 20000  /* subjects that are remembered */
#define ANOMALY_DAYS_BACK 3  /* an older day is not notified any more */
#define ANOMALY_MAILS_MAX 16 /* addresses of the configuration */
#define ANOMALY_WEEKS_MAX 52 /* days before that a day is compared with */

/* Whether an anomaly of this subject and day was notified, or one of a later day. */
bool core_anomaly_is_told(
    const struct model *m, enum spend_of of, const char *subject, struct wall day);

/* The texts of an anomaly, without and with its numbers: "pool burst", "pool burst spent $40.00 on
 * Saturday 2026-11-28 UTC: usual is $9.50 (the median of 8 Saturdays)". */
#define ANOMALY_TEXT_MAX 256
void core_anomaly_text(const struct anomaly_row *a, char text[ANOMALY_TEXT_MAX]);

/* ERR_CORRUPT. */
int model_load_anomaly(struct model *m, const struct anomaly_row *r, struct err *e);
void anomalies_destroy_all(struct model *m);

#endif
