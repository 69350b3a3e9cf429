/* SPDX-License-Identifier: Apache-2.0
 *
 * The effect of a pool file on a log of jobs: runs a replay (replay.h) and summarises it.
 */
#ifndef BELAY_REPLAY_STUDY_H
#define BELAY_REPLAY_STUDY_H

#include "base/json.h"
#include "replay/joblog.h"
#include "replay/market.h"
#include "replay/replay.h"

struct config;

/* Loads a pool file or a complete belayd configuration. Blocks. ERR_INVALID with FILE:LINE. */
int study_load_pools(const char *path, struct config **ret_config, struct err *e);
void study_free_pools(struct config *c); /* c may be NULL */

/* Machines of a reserved pool. */
struct study_owned {
    char pool[CORE_NAME_MAX];
    struct resources total;
    int32_t n;
    char names[HOSTS_TEXT_MAX]; /* "" for POOL-1, POOL-2 ... */
};

/* "base=4,cpus=8,memory=60G,gpus=1": four machines in the pool base. ",names=gpu[1-4]" at the end
 * names them. ERR_INVALID. */
int study_parse_owned(const char *text, struct study_owned *ret_owned, struct err *e);

#define STUDY_BY_PROVIDER (-1)

struct study_options {
    const char *file; /* name of the pool file, for people */
    /* config, log, traces, observed and owned are borrowed and must outlive the study */
    const struct config *config;
    const struct joblog *log;
    const struct traces *traces;
    const struct traces *observed; /* as traces, before the first job; NULL: nothing was observed */
    const struct study_owned *owned;
    size_t n_owned;
    int64_t boot_ms, restore_ms;
    int64_t boot_p95_ms;        /* as in replay.h */
    int64_t answer_ms, gone_ms; /* as in replay.h */
    int64_t save_ms;            /* for jobs without a value in the log; 0 = cannot be saved */
    int64_t notice_ms;          /* may be STUDY_BY_PROVIDER */
    int64_t trace_from_ms;      /* offset into the traces */
    int32_t trace_times;        /* as in replay_offer */
    int64_t after_ms;           /* the simulation ends this long after the last submit */
    uint64_t seed;
    void (*progress)(void *ctx, int64_t ended, int64_t of); /* may be NULL */
    void *ctx;
};

/* Results of a group of jobs. */
struct study_jobs {
    char name[CORE_NAME_MAX]; /* team; "" for all */
    int64_t jobs, ended, started;
    /* of the ended: interrupted more often than belayd retries, or past its deadline */
    int64_t given_up;
    int64_t uusd, lost_ms, reclaims, attempts;
    int64_t wait_mean_ms, wait_median_ms, wait_p95_ms,
        /* from submit to the first start, of started jobs */
        wait_max_ms;
    int64_t with_deadline, late, late_ms; /* late_ms: sum over late jobs */
};

/* Time of CPUs and of GPUs: that machines had, and that jobs used. */
struct study_use {
    double have_ms[2], used_ms[2];
};

struct study {
    char *file;
    struct replay_result r;
    struct study_jobs all;
    struct study_jobs *teams; /* by name */
    size_t n_teams;
    char (*pool_names)[CORE_NAME_MAX];
    struct replay_pool *pools; /* in the order of the file */
    /* in the same order: the jobs whose first start was in the pool, with all their cost and losses
     * in any pool */
    struct study_jobs *pool_jobs;
    size_t n_pools;
    struct replay_rack *racks;               /* of the configuration, in its order */
    const struct rack_options *rack_options; /* borrowed from the configuration */
    size_t n_racks;
    struct study_use free_use; /* with racks: use in the same study without power limits */
    /* total: machines, data transfer and stored checkpoints (r.spent of LEDGER_EGRESS and
     * LEDGER_STORAGE) */
    int64_t uusd;
    struct series series;
    struct wall start;
    int64_t *waits_ms; /* sorted, of started jobs */
    char **notes;      /* assumptions, one sentence each */
    size_t n_notes;
};

/* ERR_CONFIG, ERR_INVALID: the text names what does not fit together. */
int study_run(const struct study_options *o, struct study *ret_study, struct err *e);
void study_deinit(struct study *s);
struct study_use study_use(const struct study *s); /* sum over all pools */

/* Everything as JSON; docs/reference/simulate.md describes it. */
json_t *study_json(const struct study *studies, size_t n);

#endif
