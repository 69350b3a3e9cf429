/* SPDX-License-Identifier: Apache-2.0
 *
 * A replay: the real core makes its decisions over a market that follows recorded traces and a list
 * of jobs, in virtual time. belayd itself never fails here (simtest/world.h covers failures): a
 * replay answers what a pool file costs, how long jobs wait, and what reclaims cost. The same input
 * gives the same result, event for event.
 */
#ifndef BELAY_REPLAY_REPLAY_H
#define BELAY_REPLAY_REPLAY_H

#include "cloud/trace.h"
#include "scheduler/core/model/model.h"
#include "replay/series.h"

/* Owned machines: present and paid for from start to end. */
struct replay_owned {
    const char *pool; /* of options.pools, not elastic */
    struct resources total;
    int32_t n;
    const char *names; /* a list of n hosts (job/hosts.h); NULL for POOL-1, POOL-2 ... */
};

struct replay_offer {
    struct offer_row row; /* pool, zone, type, market, rank, total, prices */
    /* number of available machines, and possibly the price; begins again at its end; NULL for
     * unlimited */
    const struct trace *trace;
    int64_t trace_from_ms; /* offset into the trace */
    /* machines for each one of its counts; 0 = unlimited wherever the count is not 0 */
    int32_t trace_times;
    bool prices_too; /* use the trace's prices, if it has any */
    /* availability before the start, which the core has observed; may be NULL */
    const struct trace *observed;
    int64_t notice_ms; /* time of notice before a machine is reclaimed; 0 = none */
};

struct replay_job {
    const char *name, *user, *team, *pool; /* NULL if absent. Borrowed */
    /* in the form of core/placement/constraints.h; borrowed, may be NULL */
    const char *constraints;
    int64_t submit_ms; /* after the start, in order */
    struct resources need;
    int32_t nodes; /* 0 means 1 */
    enum market_wish wish;
    int64_t work_ms; /* run time without interruptions, > 0 */
    /* duration of a save, during which the program waits; 0 = cannot be checkpointed */
    int64_t save_ms;
    int64_t every_ms; /* between periodic saves; 0 = belay's choice */
    int64_t ckpt_bytes;
    /* submit --deadline, after the start: the job is given up when it can no longer end by then; 0
     * = none */
    int64_t deadline_ms;
    /* submit --finish-by, after the start: done by then at minimum cost; 0 = none */
    int64_t finish_ms;
    int64_t declared_ms;   /* submit --work; 0 = work_ms */
    int64_t time_limit_ms; /* used for planning the queue only; it does not end the job. 0 = none */
};

#define REPLAY_NEVER (-1)

/* The outcome of a job. */
struct replay_outcome {
    /* after the start, or REPLAY_NEVER; started_ms: when its program first ran */
    int64_t started_ms, ended_ms;
    enum end_kind end; /* SUCCEEDED, or the end that used up its last retry */
    size_t pool;       /* pool of its first start, index of options.pools; n_pools if none */
    int64_t uusd, lost_ms;
    int64_t attempts, reclaims;
};

/* Totals of a pool. */
struct replay_pool {
    int64_t launches, refusals, reclaims;
    int64_t uusd;
    /* node time and money by enum ledger_kind, without the idle time of owned machines */
    int64_t ms[LEDGER_KINDS], spent[LEDGER_KINDS];
    /* CPU time and GPU time, in ms: of its machines, and held by jobs */
    double have_ms[2], used_ms[2];
};

/* Power of a rack of options.limits, in watts. */
struct replay_rack {
    int64_t most_w, now_w;
    double watt_ms; /* integral up to the end */
};

/* What a running job lost by a reclaim. */
struct replay_loss {
    int64_t job, attempt;
    int64_t save_ms;
    int64_t interval_ms; /* between the periodic saves at that time */
    int64_t work_ms;     /* done but not in any checkpoint: repeated */
    int64_t counted_ms;  /* time that the core counts as lost: until it learned of the reclaim */
};

struct replay_options {
    const struct pool_row *pools;
    size_t n_pools;
    const struct replay_owned *owned;
    size_t n_owned;
    const struct replay_offer *offers;
    size_t n_offers;
    const struct replay_job *jobs;
    size_t n_jobs;
    /* the model's options; the cluster's id and the lease are set by the replay */
    struct model_options limits;
    struct wall start; /* ms 0 = 2026-01-01 */
    int64_t boot_ms;   /* from the provider's answer to the join; the median, if boot_p95_ms > 0 */
    /* > boot_ms: boots vary, and one in 20 takes longer than this; 0 = all take boot_ms */
    int64_t boot_p95_ms;
    int64_t answer_ms; /* time to answer a launch; 0 = 2 s */
    /* from the decision to end a machine until it is no longer paid for; 0 = 30 s */
    int64_t gone_ms;
    int64_t restore_ms; /* of a checkpoint */
    int64_t until_ms;   /* the end, in any case; required */
    /* continue after the last job until only owned machines are left */
    bool runs_out;
    uint64_t seed; /* selects the machines that are reclaimed, and the times of boots */
    /* called for each reclaim of a running job; may be NULL */
    void (*lost)(void *ctx, const struct replay_loss *l);
    /* called at each end of a job; may be NULL */
    void (*progress)(void *ctx, int64_t ended);
    void *ctx;
    /* Detailed results; each may be NULL. */
    struct replay_outcome *outcomes; /* n_jobs */
    struct replay_pool *by_pool;     /* n_pools, zeroed */
    struct replay_rack *by_rack;     /* limits.n_racks, zeroed */
    struct series *series;
};

struct replay_result {
    int64_t finished; /* jobs that completed their work */
    int64_t end_ms;   /* when the last job finished, or until_ms */
    int64_t uusd[3];  /* by enum market; owned: until end_ms */
    /* node time and money by enum ledger_kind, without the idle time of owned machines */
    int64_t ms[LEDGER_KINDS], spent[LEDGER_KINDS];
    int64_t on_demand_uusd; /* cost of the useful time alone on on-demand */
    int64_t launches, refusals, reclaims, moves, attempts;
    int64_t launches_in_hour; /* maximum in any hour */
    int64_t wait_ms;          /* from submit to the first start, sum over finished jobs */
    int64_t spent_time_ms;    /* from submit to the end, sum over finished jobs */
};

/* ERR_CONFIG: pools, offers or jobs that the core refuses. */
int replay_run(const struct replay_options *o, struct replay_result *ret_result, struct err *e);

#endif
