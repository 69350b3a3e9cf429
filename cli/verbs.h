/* SPDX-License-Identifier: Apache-2.0
 *
 * The list of verbs. Each NAME has a `struct verb verb_NAME` in NAME.c, here, in admin/, reports/
 * or top/; but attach is in exec.c, logout in login.c, release in hold.c, and slurm in
 * slurm/slurm_verb.c. A new verb is a row with its group, at its place in `belay --help`, and a
 * line in meson.build.
 */
#ifndef BELAY_CLI_VERBS_H
#define BELAY_CLI_VERBS_H

#include "cli/cli.h"

/* clang-format off */
#define VERBS(VERB) \
    VERB(MACHINE, up) \
    VERB(MACHINE, down) \
    VERB(JOBS, submit) \
    VERB(JOBS, run) \
    VERB(JOBS, list) \
    VERB(JOBS, top) \
    VERB(JOBS, show) \
    VERB(JOBS, why) \
    VERB(JOBS, diagnose) \
    VERB(JOBS, exec) \
    VERB(JOBS, attach) \
    VERB(JOBS, logs) \
    VERB(JOBS, cancel) \
    VERB(JOBS, update) \
    VERB(JOBS, requeue) \
    VERB(JOBS, hold) \
    VERB(JOBS, release) \
    VERB(JOBS, drill) \
    VERB(JOBS, cron) \
    VERB(JOBS, calendar) \
    VERB(JOBS, checkpoint) \
    VERB(JOBS, digest) \
    VERB(CLUSTER, console) \
    VERB(CLUSTER, nodes) \
    VERB(CLUSTER, reservation) \
    VERB(CLUSTER, shares) \
    VERB(CLUSTER, quotas) \
    VERB(CLUSTER, budget) \
    VERB(CLUSTER, pools) \
    VERB(CLUSTER, offers) \
    VERB(MONEY, cost) \
    VERB(MONEY, breakeven) \
    VERB(MONEY, advise) \
    VERB(MONEY, simulate) \
    VERB(ADMIN, audit) \
    VERB(ADMIN, admin) \
    VERB(ADMIN, slurm) \
    VERB(ADMIN, login) \
    VERB(ADMIN, logout) \
    VERB(ADMIN, whoami) \
    VERB(ADMIN, secret) \
    VERB(ADMIN, token) \
    VERB(ADMIN, completion) \
    VERB(ADMIN, version)
/* clang-format on */

#define VERB_DECLARE(group, name) extern const struct verb verb_##name;
VERBS(VERB_DECLARE)
#undef VERB_DECLARE

#endif
