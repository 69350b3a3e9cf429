/* SPDX-License-Identifier: Apache-2.0
 *
 * A log of jobs, of belay or of another scheduler: each job's request, submit time and run time.
 * Read from
 *
 *   CSV                 columns by the names in its first line (docs/reference/simulate.md), such
 *                       as the output of sacct --parsable2
 *   .swf                the Standard Workload Format (Feitelson), version 2
 *   JSON                the output of `belay list --all --json`
 *   belayd's database   replay/history.h
 *
 * Jobs that never ran are left out, and counted.
 */
#ifndef BELAY_REPLAY_JOBLOG_H
#define BELAY_REPLAY_JOBLOG_H

#include "base/map.h"
#include "scheduler/core/placement/constraints.h"

#define JOBLOG_BYTES_MAX (256u << 20)
#define JOBLOG_JOBS_MAX 1000000
#define JOBLOG_RUN_MAX_MS (366LL * 86400 * 1000) /* of one job */
#define JOBLOG_UNKNOWN (-1)
#define JOBLOG_EVERY_MIN_MS 1000 /* as for submit */

struct log_job {
    const char *name, *user, *team, *pool; /* "" if absent. Owned by the log */
    /* constraints (core/placement/constraints.h), of which logs have only the input; may be NULL */
    const char *constraints;
    /* the job is given up when it can no longer end by finish_by (submit --deadline) */
    bool ends_late;
    struct wall submit, finish_by; /* finish_by may be WALL_NONE */
    int64_t work_ms;               /* > 0: time it ran */
    /* the estimate given at submit (--work); 0 = none */
    int64_t declared_ms;
    struct resources need; /* of each node */
    int32_t nodes;
    /* need.cpus is of all nodes together, and their number is unknown */
    bool is_spread;
    enum market_wish wish;
    int64_t time_limit_ms; /* 0 = none */
    int64_t save_ms;       /* 0 = cannot be saved; may be JOBLOG_UNKNOWN */
    int64_t every_ms;      /* as submit --checkpoint-every; 0 = belay's choice */
    int64_t ckpt_bytes;    /* may be JOBLOG_UNKNOWN */
};

struct joblog {
    struct log_job *jobs; /* by submit time */
    size_t n;
    size_t n_never_ran;
    char ignored[256]; /* unknown columns, for people; may be "" */
    struct smap texts; /* text -> itself; owned */
};

/* Parses the n bytes of a file; its name selects .swf, its content the other formats. ERR_INVALID
 * with FILE:LINE, or the job's number. */
int joblog_parse(
    const char *file, const char *text, size_t n, struct joblog *ret_log, struct err *e);
void joblog_deinit(struct joblog *l);

/* Keeps the jobs submitted at or after `from` and before `to`; WALL_NONE for no bound. */
void joblog_select(struct joblog *l, struct wall from, struct wall to);

/* ---- for the readers ---- */

/* A text owned by the log; equal texts share one copy. */
const char *joblog_text(struct joblog *l, const char *text, size_t n);
/* Sets the input that the job reads at each start. */
void joblog_set_input(struct joblog *l, struct log_job *j, const struct input *in);
/* Adds a job that requests one CPU and nothing else. NULL if there are too many. */
struct log_job *joblog_add(struct joblog *l);
/* By submit time; stable. */
void joblog_sort(struct joblog *l);
int joblog_read_csv(const char *file, const char *text, size_t n, struct joblog *l, struct err *e);
int joblog_read_swf(const char *file, const char *text, size_t n, struct joblog *l, struct err *e);
int joblog_read_json(const char *file, const char *text, size_t n, struct joblog *l, struct err *e);

/* "2026-08-01T00:00:00Z"; without the Z, or with a blank in place of the T, it is UTC too; or
 * seconds since 1970. */
int joblog_time(const char *text, struct wall *ret_at, struct err *e);

#endif
