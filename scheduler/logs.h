/* SPDX-License-Identifier: Apache-2.0
 *
 * The output of jobs: one file an attempt under DIR/<job / 1000>/<job>/<attempt>.log, written at offsets that
 * the agent names (a repeated piece changes nothing), read as one continuous log with a line at each seam.
 */
#ifndef BELAY_SCHEDULER_LOGS_H
#define BELAY_SCHEDULER_LOGS_H

#include "base/buf.h"
#include "db/db.h"

#define LOGS_ATTEMPT_BYTES_MAX                                                                               \
    (4LL << 30) /* further output of an attempt is dropped, with a line that says so */

struct logs {
    char dir[1024];
};

int logs_open(struct logs *l, const char *dir, struct err *e);

/* Stores n bytes of an attempt's output at offset. *ret_size is how much belayd has without a gap: the agent
 * goes on from there. A piece beyond that is refused (nothing written) by telling the size. ERR_NO_SPACE,
 * ERR_IO. */
int logs_append(struct logs *l, int64_t job, int64_t attempt, int64_t offset, const void *p, size_t n,
    int64_t *ret_size, struct err *e);

/* Bytes of the job's continuous log from offset (negative: that far before the end), at most max. *ret_next
 * is the offset after them, *ret_at_end true when nothing more is there now. */
int logs_read(struct logs *l, struct db_reader *r, int64_t job, int64_t offset, size_t max, struct buf *out,
    int64_t *ret_next, bool *ret_at_end, struct err *e);

#endif
