/* SPDX-License-Identifier: Apache-2.0
 *
 * The words of a job's options, as they are stored and shown (see spec.h).
 */
#include "job/spec.h"

#include <signal.h>

const char *const market_wish_names[] = {"any", "spot", "on-demand", NULL};
const char *const ckpt_method_names[] = {"none", "signal", "coop", "criu", NULL};
const char *const ckpt_after_names[] = {"auto", "delete", "last", "all", NULL};
const char *const idle_gpus_wish_names[] = {"pool", "keep", NULL};
const char *const gang_loss_names[] = {"shrink", "wait", NULL};
const char *const script_on_names[] = {"each", "first", NULL};
const char *const retry_kind_names[] = {
    "failed", "timeout", "node-lost", "reclaimed", "evicted", "drained", NULL};

#define RETRIES_OF_DEFAULT                                                                         \
    {                                                                                              \
        {                                                                                          \
            [RETRY_FAILED] = 0, [RETRY_TIMEOUT] = 0, [RETRY_NODE_LOST] = 100,                      \
            [RETRY_RECLAIMED] = RETRIES_UNLIMITED, [RETRY_EVICTED] = RETRIES_UNLIMITED,            \
            [RETRY_DRAINED] = RETRIES_UNLIMITED                                                    \
        }                                                                                          \
    }
const struct retries retries_default = RETRIES_OF_DEFAULT;

const struct job_spec job_spec_default = {.need = {.cpus = 1},
    .nodes = 1,
    .nodes_min = 1,
    .ckpt_signal = SIGUSR1,
    .ckpt_every_ms = CKPT_EVERY_AUTO,
    .ckpt_keep = 3,
    .retries = RETRIES_OF_DEFAULT,
    .begin_at = {TIME_NONE_MS},
    .name = "job"};
