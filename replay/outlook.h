/* SPDX-License-Identifier: Apache-2.0
 *
 * Cost and finish time of one job on each offer that it could run on, and on all of them as belay
 * chooses: simulated from many starting points in the traces.
 */
#ifndef BELAY_REPLAY_OUTLOOK_H
#define BELAY_REPLAY_OUTLOOK_H

#include "replay/study.h"

#define OUTLOOK_STARTS 50 /* default */
#define OUTLOOK_STARTS_MAX 100000
#define OUTLOOK_WORK_MAX_MS (100LL * 86400 * 1000)

struct outlook_options {
    /* Options of the studies; its log, owned machines and trace start are ignored. Reserved pools
     * are left out. */
    struct study_options study;
    /* submit, finish_by, declared_ms and texts are ignored; time_limit_ms bounds the work that is
     * reckoned with */
    struct log_job job;
    int64_t within_ms; /* deadline after its submit; 0 = none */
    int32_t starts;    /* 1 .. OUTLOOK_STARTS_MAX, spread evenly over the traces */
};

struct outlook {
    struct offer_row offer; /* pool "" = all offers */
    int32_t starts;         /* 1 if no trace is used */
    int32_t done, late;     /* of the starts */
    int64_t mean_uusd, median_uusd, p95_uusd;
    int64_t data_uusd; /* the part of the mean for data transfer and storage */
    /* from submit to end; INT64_MAX if the job was not done within the simulated time */
    int64_t median_ms, p95_ms, fastest_ms;
    double reclaims; /* mean */
};

/* All offers together first, then each offer that it could run on: fewest late runs first, then
 * lowest mean cost. The caller frees the list. ERR_INVALID: no machine is large enough,
 * job.constraints is malformed; or study_run's error. */
int outlook_run(
    const struct outlook_options *o, struct outlook **ret_list, size_t *ret_n, struct err *e);

/* The same for all offers together only. */
int outlook_run_all(const struct outlook_options *o, struct outlook *ret_outlook, struct err *e);

/* The worst case of the work, which is reckoned with until the job reports progress. */
struct outlook_margin {
    int64_t worst_ms;
    int32_t margin_pct; /* of the configuration */
    bool is_limited;    /* by the time limit */
};
struct outlook_margin outlook_margin_of(const struct outlook_options *o);

/* By how much no plan meets the deadline: the fastest run exceeds it by this, and so do all runs,
 * among them one on-demand, or boot and work alone. 0: some plan may, or there is no deadline. */
int64_t outlook_infeasible_ms(
    const struct outlook *list, size_t n, const struct outlook_options *o);

/* The first `shown` of the n. */
json_t *outlook_json(
    const struct outlook *list, size_t n, size_t shown, const struct outlook_options *o);

#endif
