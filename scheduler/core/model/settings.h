/* SPDX-License-Identifier: Apache-2.0
 *
 * Options of the model that may change while it lives (EV_SETTINGS).
 */
#ifndef BELAY_SCHEDULER_CORE_MODEL_SETTINGS_H
#define BELAY_SCHEDULER_CORE_MODEL_SETTINGS_H

#include "scheduler/core/lifecycle/node_failures.h"
#include "scheduler/core/lifecycle/retry_counts.h"
#include "scheduler/core/queue/policy.h"

/* As in struct model_options. */
struct model_settings {
    int32_t no_progress_max;
    struct node_failures_options node_failures;
    int64_t retention_ms;
    const struct retry_options *retries; /* borrowed until the next settings, like the policy */
    /* With the same QOS and the same weights of resources. The former one is still there. NULL: as
     * it is. */
    const struct queue_policy *policy;
};

#endif
