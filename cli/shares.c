/* SPDX-License-Identifier: Apache-2.0
 *
 * belay shares: what users and teams have used of their shares.
 */
#include "cli/lists.h"
#include "cli/verbs.h"

static const struct list_column columns[] = {
    {"TEAM", "team", COLUMN_TEXT},
    {"SHARE", "share", COLUMN_REAL},
    {"USED", "part", COLUMN_REAL},
    {"USER", "user", COLUMN_TEXT},
    {"SHARES", "shares", COLUMN_INT},
    {"CPU HOURS", "cpu_hours", COLUMN_REAL},
    {"CPUS NOW", "cpus", COLUMN_REAL},
    {"RUNNING", "running", COLUMN_INT},
    {"PENDING", "pending", COLUMN_INT},
    {"FAIR SHARE", "fair_ms", COLUMN_DURATION},
    {NULL, NULL, COLUMN_TEXT},
};

static int no_options(void *ctx, int val, const char *arg)
{
    (void)ctx, (void)val, (void)arg;
    return CLI_USAGE;
}

static int run(int argc, const char **argv)
{
    struct cli_args a;
    int rc = cli_parse(&verb_shares, argc, argv, false, no_options, NULL, &a);
    if (rc == 0 && a.n_rest > 0) {
        cli_error("belay shares takes no arguments");
        rc = CLI_USAGE;
    } else if (rc == 0) {
        rc = list_print("/api/v1/shares", "shares", columns, a.json);
    }
    cli_args_deinit(&a);
    return rc < 0 ? CLI_OK : rc;
}

const struct verb verb_shares = {
    "shares", "[OPTION...]", "list what users and teams have used of their shares", run, NULL, false};
