/* SPDX-License-Identifier: Apache-2.0
 *
 * belay advise without an argument, --reclaim and --forgotten (advise_jobs.c), and --anomalies
 * (advise_anomalies.c). All but advise_get return the exit code.
 */
#ifndef BELAY_CLI_REPORTS_ADVISE_H
#define BELAY_CLI_REPORTS_ADVISE_H

#include "cli/cli.h"
#include <stdbool.h>
#include <stdint.h>

/* belayd's advice on all running jobs, from all pages: {"items", "looked_at"}, most expensive
 * first; a new reference. */
int advise_get(struct client *c, const char *user, json_t **ret_reply, struct err *e);
int advise_jobs(const char *user, bool json); /* user may be NULL: all users */
/* for_ms < 0: as configured in belayd; volumes: own, all or none; instances: all or none; NULL for
 * belayd's default. */
int advise_forgotten(
    const char *user, int64_t for_ms, const char *volumes, const char *instances, bool json);
int advise_anomalies(int64_t days, bool json);
int advise_reclaim(const char *job, bool json);

#endif
