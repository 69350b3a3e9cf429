/* SPDX-License-Identifier: Apache-2.0
 *
 * When the output of an attempt reached belayd, by belayd's wall clock, to the second. The file
 * N.log.at next to N.log has one record for each second in which output arrived, with the offset
 * where that began. Output that arrived within a single second has no records: then the time of the
 * file (mtime) applies. The recorded time never decreases, whatever the clock does.
 *
 * It is an aid for readers, not a reliable record: where it could not be written, or was lost in a
 * power failure, output counts as arrived a little earlier.
 */
#ifndef BELAY_SCHEDULER_LOGS_TIMES_H
#define BELAY_SCHEDULER_LOGS_TIMES_H

#include "base/time.h"
#include <sys/stat.h>

/* of records: output of later seconds counts as of the last one */
#define LOG_TIMES_BYTES_MAX (64 << 20)

/* Records that there is new output at `offset` of the file at path, open as fd; before is the
 * file's state before that. */
void log_times_note(
    const char *path, int fd, const struct stat *before, int64_t offset, struct wall now);

/* Returns where the output of `since` or later begins in the file at path, whose current state is
 * st; the file's size if there is none. */
int64_t log_times_find(const char *path, const struct stat *st, struct wall since);

#endif
