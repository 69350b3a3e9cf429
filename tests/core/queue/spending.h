/* SPDX-License-Identifier: Apache-2.0
 *
 * A cluster under budgets: nodes at $1 an hour from November 2026 on, whose jobs save and stop when
 * they are to be parked.
 */
#ifndef BELAY_TESTS_CORE_QUEUE_SPENDING_H
#define BELAY_TESTS_CORE_QUEUE_SPENDING_H

#include "tests/core/lab.h"

#define HOUR_MS 3600000LL
#define USD 1000000LL
#define NOV_1 1793491200000LL /* 2026-11-01T00:00Z */
#define DEC_1 (NOV_1 + 30 * 24 * HOUR_MS)

/* A budget "all" that notifies at 50, 80 and 100 percent. */
struct budget_options spending_monthly(int64_t usd, enum budget_action at_limit);
/* One pool at $1 per node-hour; the lease of a node is longer than any test. */
void spending_begin(struct lab *l, const struct budget_options *b, size_t n);
struct job_row spending_job(const char *user, int32_t cpus, int64_t limit_ms);
int64_t spending_submit(struct lab *l, const char *user, int32_t cpus, int64_t limit_ms);
struct budget_view spending_view(const struct lab *l, size_t i);
/* As belayd: wakes when a decision is due. Each stopping job has saved and ended 10 s later. */
void spending_run_until(struct lab *l, struct wall at);
void spending_run_for(struct lab *l, int64_t ms);
/* Number of notifications in the outbox that this percentage is spent. */
int spending_letters(const struct lab *l, int32_t pct);

#endif
