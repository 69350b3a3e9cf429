/* SPDX-License-Identifier: Apache-2.0
 *
 * A replay: the real core takes its decisions over a market that follows recorded traces and a list
 * of jobs, in virtual time. Nothing goes wrong in belayd here (that is simtest/world.h's): it
 * answers what a pool file costs, how long jobs wait and what reclaims take. The same input gives
 * the same result, event for event.
 */
#ifndef BELAY_REPLAY_REPLAY_H
#define BELAY_REPLAY_REPLAY_H

#include "cloud/trace.h"
#include "scheduler/core/model/model.h"
#include "replay/series.h"

/* Machines that belong to us: there from the start to the end, and paid for all the time. */
struct replay_owned {
    const char *pool; /* of options.pools, not elastic */
    struct resources total;
    int32_t n;
    const char *names; /* as many hosts (job/hosts.h); NULL: POOL-1, POOL-2 ... */
};

struct replay_offer {
    struct offer_row row; /* pool, zone, type, market, rank, total, prices */
    /* how many can be had, and perhaps the price; begins anew at its end. NULL: no bound */
    const struct trace *trace;
    int64_t trace_from_ms; /* where in it the replay begins */
    /* its counts are multiplied by this; 0: where it is not 0 any number can be had */
    int32_t trace_times;
    bool prices_too;   /* its prices hold, if it has any */
    int64_t notice_ms; /* before a machine is taken back; 0: without notice */
};

struct replay_job {
    const char *name, *user, *team, *pool; /* NULL: nothing is said. Borrowed */
    const char *extras;                    /* as core/placement/constraints.h has it; likewise */
    int64_t submit_ms;                     /* after the start, in order */
    struct resources need;
    int32_t nodes; /* 0 is the same as 1 */
    enum market_wish wish;
    int64_t work_ms; /* of undisturbed running, > 0 */
    /* one save takes so long, in which its program waits; 0: it cannot be checkpointed */
    int64_t save_ms;
    int64_t every_ms; /* between periodic saves; 0: as belay chooses */
    int64_t ckpt_bytes;
    /* after the start: as submit --deadline says, it ends when it could not make it any more; 0:
     * none */
    int64_t deadline_ms;
    /* after the start: as submit --finish-by says, to be done by then for the least money; 0:
     * whenever */
    int64_t finish_ms;
    int64_t told_ms;       /* as submit --work says; 0: what it is */
    int64_t time_limit_ms; /* what the queue is planned by; it is not ended by it. 0: none */
};

#define REPLAY_NEVER (-1)

/* What became of a job. */
struct replay_outcome {
    /* after the start; REPLAY_NEVER. Started: its program first ran */
    int64_t started_ms, ended_ms;
    enum end_kind end; /* SUCCEEDED, or what used its last retry up */
    size_t pool;       /* where it started, of options.pools; n_pools: nowhere */
    int64_t uusd, lost_ms;
    int64_t attempts, reclaims;
};

/* What became of a pool. */
struct replay_pool {
    int64_t launches, refusals, reclaims;
    int64_t uusd;
    /* node time and money by enum ledger_kind, owned machines' idle time left out */
    int64_t ms[LEDGER_KINDS], spent[LEDGER_KINDS];
    /* of cpus and of GPUs: that its machines had, and that jobs held */
    double have_ms[2], used_ms[2];
};

/* What a rack of options.limits drew, in watts. */
struct replay_rack {
    int64_t most_w, now_w;
    double watt_ms; /* summed up to the end */
};

/* What a reclaim cost a job whose program ran. */
struct replay_loss {
    int64_t job, attempt;
    int64_t save_ms;
    int64_t interval_ms; /* to the periodic save that was next when its machine went */
    int64_t work_ms;     /* done, and in no checkpoint: it is done again */
    int64_t counted_ms;  /* what the core counts as lost: up to the moment at which it knew */
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
    /* what the model is made with; the cluster's id and the lease are the replay's */
    struct model_options limits;
    struct wall start; /* ms 0: 2026-01-01 */
    int64_t boot_ms;   /* from the provider's answer to the join */
    int64_t answer_ms; /* to a launch; 0: 2 s */
    /* from the decision that it ends until a machine is not paid for any more; 0: 30 s */
    int64_t gone_ms;
    int64_t restore_ms; /* of a checkpoint */
    int64_t until_ms;   /* the end, whatever is left; required */
    /* after the last job it goes on until no machine is left that is not owned */
    bool runs_out;
    uint64_t seed; /* which machine goes when some have to */
    /* of each such reclaim; NULL: nobody looks */
    void (*lost)(void *ctx, const struct replay_loss *l);
    /* at each end of a job; NULL: nobody looks */
    void (*progress)(void *ctx, int64_t ended);
    void *ctx;
    /* Where more is written down; NULL: not wanted. */
    struct replay_outcome *outcomes; /* n_jobs */
    struct replay_pool *by_pool;     /* n_pools, zeroed */
    struct replay_rack *by_rack;     /* limits.n_racks, zeroed */
    struct series *series;
};

struct replay_result {
    int64_t finished; /* jobs that did all of their work */
    int64_t end_ms;   /* when the last one finished, or until_ms */
    int64_t uusd[3];  /* by enum market; owned: until end_ms */
    /* node time and money by enum ledger_kind, owned machines' idle time left out */
    int64_t ms[LEDGER_KINDS], spent[LEDGER_KINDS];
    int64_t on_demand_uusd; /* what the useful time alone costs on-demand */
    int64_t launches, refusals, reclaims, moves, attempts;
    int64_t launches_in_hour; /* at most, from any moment on */
    int64_t wait_ms;          /* from submit to the first start, summed over finished jobs */
    int64_t spent_time_ms;    /* from submit to the end, summed over finished jobs */
};

/* ERR_CONFIG: what the core refuses of the pools, offers or jobs. */
int replay_run(const struct replay_options *o, struct replay_result *ret_result, struct err *e);

#endif
