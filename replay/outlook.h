/* SPDX-License-Identifier: Apache-2.0
 *
 * What one job would cost, and when it would be done, on each offer that it could run on and on all
 * of them as belay chooses: it is played from many moments of the traces on.
 */
#ifndef BELAY_REPLAY_OUTLOOK_H
#define BELAY_REPLAY_OUTLOOK_H

#include "replay/study.h"

#define OUTLOOK_STARTS 50 /* usual */
#define OUTLOOK_STARTS_MAX 100000
#define OUTLOOK_WORK_MAX_MS (100LL * 86400 * 1000)

struct outlook_options {
    /* What a study is made with; its log, its owned machines and where in the traces it begins are
     * not asked. Reserved pools are left out. */
    struct study_options study;
    struct log_job job; /* submit, finish_by and texts are not asked */
    int64_t within_ms;  /* it has to be done so long after its submit; 0: at any time */
    int32_t starts;     /* 1 .. OUTLOOK_STARTS_MAX, evenly over the traces */
};

struct outlook {
    struct offer_row offer; /* pool "": all of them */
    int32_t starts;         /* 1 where nothing depends on it */
    int32_t done, late;     /* of those */
    int64_t mean_uusd, median_uusd, p95_uusd;
    int64_t data_uusd;         /* of the mean, what is for data on its way, and kept */
    int64_t median_ms, p95_ms; /* from the submit to the end; INT64_MAX: it was not done by then */
    double reclaims;           /* mean */
};

/* All of them together first, then the offers on which it could run: those on which it is late
 * least often before others, then by mean cost. The caller frees. ERR_INVALID: no machine is large
 * enough, job.extras cannot be read; what study_run says. */
int outlook_run(
    const struct outlook_options *o, struct outlook **ret_list, size_t *ret_n, struct err *e);

json_t *outlook_json(const struct outlook *list, size_t n, const struct outlook_options *o);

#endif
