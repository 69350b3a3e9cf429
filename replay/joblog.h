/* SPDX-License-Identifier: Apache-2.0
 *
 * A log of jobs, of belay or of another scheduler: what each asked for, when it came, and how long
 * it ran. Read from
 *
 *   CSV                 columns by the names in its first line (docs/reference/simulate.md), such
 *                       as the output of sacct --parsable2
 *   .swf                the Standard Workload Format (Feitelson), version 2
 *   JSON                what `belay list --all --json` prints
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
#define JOBLOG_UNSAID (-1)
#define JOBLOG_EVERY_MIN_MS 1000 /* as submit has it */

struct log_job {
    const char *name, *user, *team, *pool; /* "": not said. The log's */
    /* what it asks for beside its size (core/placement/constraints.h); NULL: nothing. Logs say what
     * it reads only */
    const char *extras;
    /* it ends when it could not be done by finish_by any more (submit --deadline) */
    bool ends_late;
    struct wall submit, finish_by; /* finish_by: WALL_NONE */
    int64_t work_ms;               /* > 0: it ran for so long */
    /* what was said of that when it came (submit --work); 0: nothing */
    int64_t told_ms;
    struct resources need; /* of each node */
    int32_t nodes;
    /* need.cpus are of all nodes together, and nobody says how many nodes that were */
    bool is_spread;
    enum market_wish wish;
    int64_t time_limit_ms; /* 0: none */
    int64_t save_ms;       /* 0: it cannot be saved; JOBLOG_UNSAID */
    int64_t every_ms;      /* as submit --checkpoint-every says; 0: as belay would choose */
    int64_t ckpt_bytes;    /* JOBLOG_UNSAID */
};

struct joblog {
    struct log_job *jobs; /* by submit */
    size_t n;
    size_t n_never_ran;
    char ignored[256]; /* columns that nothing is known of, for people; "" */
    struct smap texts; /* -> themselves; owned */
};

/* The n bytes of a file; its name chooses .swf, its content the others. ERR_INVALID with FILE:LINE,
 * or the job's number. */
int joblog_parse(
    const char *file, const char *text, size_t n, struct joblog *ret_log, struct err *e);
void joblog_deinit(struct joblog *l);

/* Keeps those that were submitted in from .. to, the latter excluded; WALL_NONE: no bound. */
void joblog_select(struct joblog *l, struct wall from, struct wall to);

/* ---- for the readers ---- */

/* A text of the log's own: one for all that are the same. */
const char *joblog_text(struct joblog *l, const char *text, size_t n);
/* What it reads at each start. */
void joblog_set_input(struct joblog *l, struct log_job *j, const struct input *in);
/* Adds a job that asks for a cpu and nothing else. NULL: there are too many. */
struct log_job *joblog_add(struct joblog *l);
/* By submit, in the order of the log where that is the same. */
void joblog_sort(struct joblog *l);
int joblog_read_csv(const char *file, const char *text, size_t n, struct joblog *l, struct err *e);
int joblog_read_swf(const char *file, const char *text, size_t n, struct joblog *l, struct err *e);
int joblog_read_json(const char *file, const char *text, size_t n, struct joblog *l, struct err *e);

/* "2026-08-01T00:00:00Z", the same without the Z or with a blank for the T (UTC as well), or
 * seconds since 1970. */
int joblog_time(const char *text, struct wall *ret_at, struct err *e);

#endif
