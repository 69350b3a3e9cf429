/* SPDX-License-Identifier: Apache-2.0
 *
 * The list of verbs. Each NAME has a `struct verb verb_NAME` in NAME.c, here, in admin/ or in
 * reports/; but attach is in exec.c, release in hold.c, and slurm in slurm/slurm_verb.c. A new verb
 * is a row, at its place in `belay --help`, and a line in meson.build.
 */
#ifndef BELAY_CLI_VERBS_H
#define BELAY_CLI_VERBS_H

#include "cli/cli.h"

/* clang-format off */
#define VERBS(VERB) \
    VERB(up) \
    VERB(down) \
    VERB(submit) \
    VERB(run) \
    VERB(list) \
    VERB(top) \
    VERB(show) \
    VERB(why) \
    VERB(diagnose) \
    VERB(exec) \
    VERB(attach) \
    VERB(logs) \
    VERB(cancel) \
    VERB(update) \
    VERB(requeue) \
    VERB(hold) \
    VERB(release) \
    VERB(drill) \
    VERB(cron) \
    VERB(checkpoint) \
    VERB(nodes) \
    VERB(shares) \
    VERB(quotas) \
    VERB(budget) \
    VERB(pools) \
    VERB(offers) \
    VERB(cost) \
    VERB(breakeven) \
    VERB(advise) \
    VERB(simulate) \
    VERB(audit) \
    VERB(admin) \
    VERB(slurm) \
    VERB(token) \
    VERB(completion) \
    VERB(version)
/* clang-format on */

#define VERB_DECLARE(name) extern const struct verb verb_##name;
VERBS(VERB_DECLARE)
#undef VERB_DECLARE

#endif
