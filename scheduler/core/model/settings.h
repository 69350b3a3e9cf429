/* SPDX-License-Identifier: Apache-2.0
 *
 * Options of the model that may change while it lives (EV_SETTINGS). The former ones must still be
 * there when the event is applied; afterwards the model has left them.
 */
#ifndef BELAY_SCHEDULER_CORE_MODEL_SETTINGS_H
#define BELAY_SCHEDULER_CORE_MODEL_SETTINGS_H

#include "scheduler/core/lifecycle/node_failures.h"
#include "scheduler/core/lifecycle/retry_counts.h"
#include "scheduler/core/model/model.h"

/* The labels of a live job. */
struct job_labels_text {
    int64_t job;
    char *json;
};

/* Other tables than the model has, borrowed until the next ones, apart from the licences and the
 * labels. */
struct settings_tables {
    struct model_tables to;
    /* Else they are the same ones, at another place. Budgets of another window are others. */
    bool has_other_budgets, has_other_racks;
    /* With other budgets: of all stored live jobs that have labels, by job. */
    const struct job_labels_text *labels;
    size_t n_labels;
};

/* As in struct model_options. */
struct model_settings {
    int64_t lease_ms, store_wait_ms;
    int32_t no_progress_max;
    struct node_failures_options node_failures;
    int64_t retention_ms;
    const struct retry_options *retries; /* borrowed until the next settings, like the policy */
    /* With the same weights of resources. NULL: as it is. */
    const struct queue_policy *policy;
    const struct settings_tables *tables; /* NULL: as they are */
};

/* What EV_SETTINGS would refuse, without a change: ERR_CONFLICT names the live jobs and the cron
 * entries that could never run any more. */
int core_check_settings(const struct model *m, const struct model_settings *s, struct err *e);

#endif
