/* SPDX-License-Identifier: Apache-2.0
 *
 * History from a belayd database: the jobs that ran, and when spot machines were available at what
 * price. Read while belayd runs, or from a copy; nothing is written.
 */
#ifndef BELAY_REPLAY_HISTORY_H
#define BELAY_REPLAY_HISTORY_H

#include "replay/joblog.h"
#include "replay/market.h"

/* Whether the file is an SQLite database. All functions here block. */
bool history_is_database(const char *path);

/* Ended jobs, with their useful time from the ledger: lost time and the time of saves, restores and
 * waits are left out. ERR_CONFIG: another version's database; ERR_CORRUPT, ERR_IO. */
int history_read_jobs(const char *path, struct joblog *ret_log, struct err *e);

/* A trace for each spot offer that was ever tried. It begins at `start`, or at the first try if
 * nothing is known of the time before. Machines were available while one was alive or the last
 * launch succeeded, and unavailable while the last launch was refused or the last machine
 * reclaimed. The price is the mean cost of the machine that was alive. */
int history_read_traces(const char *path, struct wall start, struct traces *t, struct err *e);

#endif
