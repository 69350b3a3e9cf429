/* SPDX-License-Identifier: Apache-2.0
 *
 * belay cost --weekly-report: what a team, or all teams, spent in a week, for people.
 */
#ifndef BELAY_CLI_REPORTS_REPORT_H
#define BELAY_CLI_REPORTS_REPORT_H

#include "cli/cli.h"

struct report_options {
    const char *team; /* NULL for all */
    struct wall from; /* a Monday */
    const char *html; /* NULL for no page */
    /* an address and a URL, to which belayd sends the report; it is then printed only with json;
     * may be NULL */
    const char *mail, *post;
    bool json;
};

/* Returns the exit code. */
int report_run(const struct report_options *o);

/* The Monday of the last completed week. */
struct wall report_last_week(struct wall now);

#endif
