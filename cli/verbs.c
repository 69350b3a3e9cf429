/* SPDX-License-Identifier: Apache-2.0
 *
 * The list of verbs, in the order of `belay --help`.
 */
#include "cli/verbs.h"

#include <stddef.h>

const struct verb *const cli_verbs[] = {&verb_up, &verb_down, &verb_submit, &verb_run, &verb_list,
    &verb_top, &verb_show, &verb_why, &verb_diagnose, &verb_exec, &verb_attach, &verb_logs,
    &verb_cancel, &verb_update, &verb_requeue, &verb_hold, &verb_release, &verb_drill, &verb_cron,
    &verb_checkpoint, &verb_nodes, &verb_shares, &verb_quotas, &verb_budget, &verb_pools,
    &verb_offers, &verb_cost, &verb_breakeven, &verb_advise, &verb_simulate, &verb_audit,
    &verb_slurm, &verb_token, &verb_completion, &verb_version, NULL};
