/* SPDX-License-Identifier: Apache-2.0
 *
 * What a database of belayd's knows of the past: the jobs that ran, and when spot machines could be
 * had, at what price. Read while belayd runs, or from a copy; nothing is written.
 */
#ifndef BELAY_REPLAY_HISTORY_H
#define BELAY_REPLAY_HISTORY_H

#include "replay/joblog.h"
#include "replay/market.h"

/* The file is a database of SQLite's. Blocks, like the others here. */
bool history_is_database(const char *path);

/* Jobs that have ended. What they did is what the ledger calls useful: what was lost, and what
 * saves, restores and waiting took, is left out. ERR_CONFIG: another version's; ERR_CORRUPT,
 * ERR_IO. */
int history_read_jobs(const char *path, struct joblog *ret_log, struct err *e);

/* A trace for each spot offer that was ever tried, which begins at `start`; where nothing is known
 * of that time, when the first was tried. There were machines where one was alive or was answered
 * last, and none where the last was refused or taken back; the price is the mean that the one which
 * was there has cost. */
int history_read_traces(const char *path, struct wall start, struct traces *t, struct err *e);

#endif
