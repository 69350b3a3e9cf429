/* SPDX-License-Identifier: Apache-2.0
 *
 * When the output of an attempt came to belayd, by belayd's wall clock, to the second: beside N.log
 * stands N.log.at, one record for each second in which something came, of where that began. Output
 * that all came within one second has none: then the time of the file (mtime) says when. That time
 * never goes back, whatever the clock does.
 *
 * It is a help for readers, not a record: where it could not be written, or was lost with the
 * power, output counts as come a little earlier.
 */
#ifndef BELAY_SCHEDULER_LOGS_TIMES_H
#define BELAY_SCHEDULER_LOGS_TIMES_H

#include "base/time.h"
#include <sys/stat.h>

/* of records: what comes in later seconds counts as of the last */
#define LOG_TIMES_BYTES_MAX (64 << 20)

/* At `offset` of the file at path, open as fd, there is something new; before: how it was before
 * that. */
void log_times_note(
    const char *path, int fd, const struct stat *before, int64_t offset, struct wall now);

/* Where what came at `since` or later begins in the file at path, which is now as st says; its
 * size: there is none. */
int64_t log_times_find(const char *path, const struct stat *st, struct wall since);

#endif
