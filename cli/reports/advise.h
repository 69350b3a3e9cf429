/* SPDX-License-Identifier: Apache-2.0
 *
 * belay advise without a word for what: see advise_jobs.c. Exit codes.
 */
#ifndef BELAY_CLI_REPORTS_ADVISE_H
#define BELAY_CLI_REPORTS_ADVISE_H

#include "cli/cli.h"
#include <stdbool.h>
#include <stdint.h>

/* What belayd says of all running jobs, page by page: {"items", "looked_at"}, what costs most
 * first; a new reference. */
int advise_ask(struct client *c, const char *user, json_t **ret_reply, struct err *e);
int advise_jobs(const char *user, bool json); /* user NULL: of all */
/* for_ms < 0: as belayd's configuration says; volumes: own, all or none; NULL: as belayd holds
 * usual. */
int advise_forgotten(const char *user, int64_t for_ms, const char *volumes, bool json);
int advise_reclaim(const char *job, bool json);

#endif
