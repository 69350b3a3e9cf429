/* SPDX-License-Identifier: Apache-2.0
 *
 * The words of a job's options, as they are stored and shown (see spec.h).
 */
#include "job/spec.h"

const char *const market_wish_names[] = {"any", "spot", "on-demand", NULL};
const char *const ckpt_method_names[] = {"none", "signal", "coop", "criu", NULL};
const char *const ckpt_after_names[] = {"auto", "delete", "last", "all", NULL};
const char *const gang_loss_names[] = {"shrink", "wait", NULL};
const char *const script_on_names[] = {"each", "first", NULL};
const char *const retry_kind_names[] = {
    "failed", "timeout", "node-lost", "reclaimed", "evicted", "drained", NULL};

const struct retries retries_usual = {{[RETRY_FAILED] = 0,
    [RETRY_TIMEOUT] = 0,
    [RETRY_NODE_LOST] = 100,
    [RETRY_RECLAIMED] = RETRIES_UNLIMITED,
    [RETRY_EVICTED] = RETRIES_UNLIMITED,
    [RETRY_DRAINED] = RETRIES_UNLIMITED}};
