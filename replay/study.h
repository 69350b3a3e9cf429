/* SPDX-License-Identifier: Apache-2.0
 *
 * What a pool file would have made of a log of jobs: a replay of it (replay.h), and what people
 * want to know of that.
 */
#ifndef BELAY_REPLAY_STUDY_H
#define BELAY_REPLAY_STUDY_H

#include "base/json.h"
#include "replay/joblog.h"
#include "replay/market.h"
#include "replay/replay.h"

struct config;

/* A pool file or a whole configuration of belayd's. Blocks. ERR_INVALID with FILE:LINE. */
int study_load_pools(const char *path, struct config **ret_config, struct err *e);
void study_free_pools(struct config *c); /* NULL is fine */

/* Machines of a reserved pool. */
struct study_owned {
    char pool[CORE_NAME_MAX];
    struct resources total;
    int32_t n;
    char names[HOSTS_TEXT_MAX]; /* "": POOL-1, POOL-2 ... */
};

/* "base=4,cpus=8,memory=60G,gpus=1": four machines in the pool base. ",names=gpu[1-4]" at the end:
 * they are called so. ERR_INVALID. */
int study_parse_owned(const char *text, struct study_owned *ret_owned, struct err *e);

#define STUDY_BY_PROVIDER (-1)

struct study_options {
    const char *file;            /* of the pools, for people */
    const struct config *config; /* these four borrowed, and outlive the study */
    const struct joblog *log;
    const struct traces *traces;
    const struct study_owned *owned;
    size_t n_owned;
    int64_t boot_ms, restore_ms;
    int64_t answer_ms, gone_ms; /* as in replay.h */
    int64_t save_ms;            /* of jobs of which the log does not say; 0: they cannot be saved */
    int64_t notice_ms;          /* STUDY_BY_PROVIDER */
    int64_t trace_from_ms;      /* where in the traces it begins */
    int32_t trace_times;        /* as in replay_offer */
    int64_t after_ms;           /* it ends so long after the last submit at the latest */
    uint64_t seed;
    void (*progress)(void *ctx, int64_t ended, int64_t of); /* may be NULL */
    void *ctx;
};

/* How the jobs of somebody fared. */
struct study_jobs {
    char name[CORE_NAME_MAX]; /* of the team; "" of all */
    int64_t jobs, ended, started;
    int64_t given_up; /* of the ended: interrupted more often than belayd tries again */
    int64_t uusd, lost_ms, reclaims, attempts;
    int64_t wait_mean_ms, wait_median_ms, wait_p95_ms,
        /* from submit to the first start, of those that started */
        wait_max_ms;
    int64_t with_deadline, late, late_ms; /* late_ms: summed over those */
};

/* Of cpus and GPUs, what there was and what jobs held, times the time. */
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
    /* likewise: those that started there, with all that they cost and lost anywhere */
    struct study_jobs *pool_jobs;
    size_t n_pools;
    struct replay_rack *racks;               /* of the configuration, in its order */
    const struct rack_options *rack_options; /* borrowed from it */
    size_t n_racks;
    struct study_use free_use; /* where there are racks: of the same without them */
    /* all of it: machines, data on its way and checkpoints that are kept (r.spent of LEDGER_EGRESS
     * and LEDGER_STORAGE) */
    int64_t uusd;
    struct series series;
    struct wall start;
    int64_t *waits_ms; /* sorted, of those that started */
    char **notes;      /* what was assumed, a sentence each */
    size_t n_notes;
};

/* ERR_CONFIG with what does not go together, ERR_INVALID. */
int study_run(const struct study_options *o, struct study *ret_study, struct err *e);
void study_deinit(struct study *s);
struct study_use study_use(const struct study *s); /* of all pools */

/* Everything as JSON; docs/reference/simulate.md has its members. */
json_t *study_json(const struct study *studies, size_t n);

#endif
