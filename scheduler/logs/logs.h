/* SPDX-License-Identifier: Apache-2.0
 *
 * The output of jobs: one file an attempt under DIR/<job / 1000>/<job>/<attempt>.log, written at
 * offsets that the agent names (a repeated piece changes nothing), read as one continuous log with
 * a line at each seam.
 *
 * Data that a reader has seen never changes: once the seam of a later attempt can be read, an
 * attempt's output is closed, and further output of it is dropped.
 *
 * Stored output is only removed by its age (logs/archiver.h). It is limited by attempt
 * (LOGS_ATTEMPT_BYTES_MAX), by job and by user (logs/quota.h), and leaves an eighth of the disk, at
 * most 256 MiB, to commits. On a disk that is almost full, agents keep output of those who store
 * most, and after a wait it is cut (logs/disk.h). At a limit the attempt's output is cut: a line
 * says so, the file N.log.cut keeps this state, and the agent gets the answer that everything has
 * arrived.
 *
 * Written output is on disk a second later, or earlier if a caller waits for it. While an attempt
 * is alive its agent has all of its output, and resumes at our size. Therefore only callers that
 * let the agent drop its output have to wait.
 */
#ifndef BELAY_SCHEDULER_LOGS_LOGS_H
#define BELAY_SCHEDULER_LOGS_LOGS_H

#include "base/buf.h"
#include "base/list.h"
#include "base/timers.h"
#include "db/db.h"
#include "scheduler/logs/disk.h"
#include "scheduler/logs/quota.h"
#include "scheduler/logs/syncer.h"

/* including holes; further output of an attempt is dropped, with a line that says so */
#define LOGS_ATTEMPT_BYTES_MAX (4LL << 30)
#define LOGS_OFFSET_MAX (1LL << 50)
#define LOGS_AWAIT_MS 10000 /* how long the next piece of an ended attempt's output is awaited */
/* the same after a piece that the agent was asked to keep: it tries at least every ten seconds */
#define LOGS_AWAIT_KEPT_MS 30000
/* after an attempt's end; an agent tries for twelve minutes */
#define LOGS_LATE_MS (15 * 60 * 1000)

/* Awaited output of this job will not arrive any more: output after it in the log can be read
 * now. */
typedef void (*logs_over_fn)(void *ctx, int64_t job);

/* The output of this attempt is cut from here on; why is a sentence without its full stop. */
typedef void (*logs_cut_fn)(void *ctx, int64_t job, int64_t attempt, int32_t rank, const char *why);

struct logs_stats {
    int64_t bytes, cuts; /* since logs_open */
};

struct logs {
    char dir[1024];
    struct log_quota *quota;
    struct log_disk *disk;
    logs_cut_fn cut; /* may be NULL */
    struct logs_stats stats;
    struct timers *timers;
    logs_over_fn over;
    void *ctx;
    struct list awaited;
    struct syncer *syncer;
};

/* loop and timers are borrowed. over runs from a timer, never inside a call. l must not be moved.
 * Jobs and users have no limit before logs_limit. */
int logs_open(struct logs *l, const char *dir, uv_loop_t *loop, struct timers *timers,
    logs_over_fn over, void *ctx, struct err *e);
/* cut is called with over's ctx. */
void logs_limit(struct logs *l, const struct log_limits *limits, logs_cut_fn cut);
/* Other limits, after logs_limit. */
void logs_set_limits(struct logs *l, const struct log_limits *limits);
/* db_path: the database, for who owns which output; wait_ms: how long agents keep output while the
 * disk is almost full (logs/disk.h). Before it, agents keep output for as long as that lasts. */
void logs_share_disk(struct logs *l, const char *db_path, int64_t wait_ms);
void logs_close(struct logs *l); /* no effect when zeroed; see syncer_destroy */

/* Stores n bytes of an attempt's output at offset (0 .. LOGS_OFFSET_MAX). p is NULL for a hole of n
 * bytes, which takes no disk space. *ret_size is how much belayd has without a gap: the agent
 * continues there. A piece beyond that is refused (nothing is written) by returning the size; a
 * dropped one by returning its end; for output that is cut, LOGS_OFFSET_MAX is returned, so that no
 * more is sent. ERR_NO_SPACE: the agent keeps it for now; ERR_IO. */
int logs_append(struct logs *l, struct db_reader *r, int64_t job, int64_t attempt, int32_t rank,
    int64_t offset, const void *p, size_t n, int64_t *ret_size, struct err *e);

/* Bytes of an attempt's output that belayd has, holes included; LOGS_OFFSET_MAX if it is cut: no
 * more is wanted. */
int64_t logs_stored(const struct logs *l, int64_t job, int64_t attempt, int32_t rank);

/* A live attempt was reported as ended after this many bytes. Until they have arrived, or nothing
 * has arrived for LOGS_AWAIT_MS, the log is incomplete and shows no later output. May be
 * repeated. */
void logs_await(struct logs *l, int64_t job, int64_t attempt, int32_t rank, int64_t bytes);

/* True if all written output of this attempt is on disk. */
bool logs_is_synced(const struct logs *l, int64_t job, int64_t attempt, int32_t rank);
/* True if more output of this attempt is accepted: it runs, its output is awaited, its job
 * continues (then the seam of the next attempt closes it), or it ended less than LOGS_LATE_MS
 * ago. */
bool logs_is_open(const struct logs *l, const struct attempt_row *a, bool job_goes_on);
/* True if output of it is awaited, so */
bool logs_is_awaited(const struct logs *l, int64_t job, int64_t attempt, int32_t rank);

/* A part of the log of one rank of a job: from the latest of these three positions. */
struct logs_part {
    /* attempt 0 = all, one after the other, with seams; else only its output, at offsets of its
     * own */
    int64_t job, attempt;
    int32_t rank;
    int64_t offset; /* negative = that far before the end */
    /* output of that time or later (logs/times.h); zeroed, or WALL_NONE = any time */
    struct wall since;
    int64_t tail; /* the last lines, 1 .. LOGS_TAIL_MAX; 0 = all */
};
#define LOGS_TAIL_MAX 1000000
#define LOGS_TAIL_BYTES_MAX (16 << 20) /* bytes that are searched for the last lines */

/* Reads at most max bytes of it. *ret_next is the offset after them; *ret_complete is true when
 * there is no more and none is awaited (for one attempt: and it has ended). ERR_NOT_FOUND if there
 * is no such attempt. */
int logs_read(struct logs *l, struct db_reader *r, const struct logs_part *part, size_t max,
    struct buf *out, int64_t *ret_next, bool *ret_complete, struct err *e);

#endif
