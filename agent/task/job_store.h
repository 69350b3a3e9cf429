/* SPDX-License-Identifier: Apache-2.0
 *
 * A job's part of the store of checkpoints, opened for one piece of work, with the job's keys.
 */
#ifndef BELAY_AGENT_TASK_JOB_STORE_H
#define BELAY_AGENT_TASK_JOB_STORE_H

#include "base/wire/wire.h"
#include "ckpt/ckpt.h"
#include "ckpt/store/store.h"
#include <stdatomic.h>

/* Faults of the store that another attempt would meet again: the job is held (prepare_failed). */
enum task_store {
    STORE_IS_FINE, /* or not known */
    /* it has no marker: retried for a while, because it may still be mounted */
    STORE_IS_MISSING,
    /* it belongs to another cluster, or what it has of the job belongs to another job */
    STORE_IS_ANOTHER,
    STORE_HAS_LOST_IT, /* it lacks the job's last checkpoint */
    STORE_IS_DAMAGED,  /* all checkpoints of the job have failed verification */
    STORE_IS_REFUSED   /* CRIU could restore none of them */
};

/* Borrowed until job_store_close. */
struct job_store_of {
    const char *url, *cluster;
    const char *uid; /* of the cluster, as in the store's marker; "" = not checked */
    int64_t job;
    const struct wire_secrets *secrets; /* only its keys are used */
    struct store_net *net;
    const atomic_int *cancel;
    struct store_pulse *pulse;
};

struct job_store {
    struct store *store;
    struct ckpt_crypt crypt;
    struct ckpt_job job; /* points to the others */
};

/* Blocks. *ret_fault is STORE_IS_MISSING or STORE_IS_ANOTHER where these are the reason; otherwise
 * unchanged. */
int job_store_open(const struct job_store_of *of, struct job_store *ret_store,
    enum task_store *ret_fault, struct err *e);
void job_store_close(struct job_store *s); /* wipes the keys */

#endif
