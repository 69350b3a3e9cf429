/* SPDX-License-Identifier: Apache-2.0
 *
 * belay quotas: what the jobs of users and teams come to, against what they may.
 */
#include "cli/lists.h"
#include "cli/verbs.h"

static const struct list_column columns[] = {
    {"TEAM", "team", COLUMN_TEXT},
    {"USER", "user", COLUMN_TEXT},
    {"RUNNING", "running", COLUMN_OF},
    {"SUBMITTED", "submitted", COLUMN_OF},
    {"GPUS", "gpus", COLUMN_OF},
    {"USD/H", "usd_per_hour", COLUMN_OF},
    {"CPUS", "cpus", COLUMN_OF},
    {"QUOTA", "quota_cpus", COLUMN_REAL},
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
    int rc = cli_parse(&verb_quotas, argc, argv, false, no_options, NULL, &a);
    if (rc == 0 && a.n_rest > 0) {
        cli_error("belay quotas takes no arguments");
        rc = CLI_USAGE;
    } else if (rc == 0) {
        rc = list_print("/api/v1/quotas", "quotas", columns, a.json);
    }
    cli_args_deinit(&a);
    return rc < 0 ? CLI_OK : rc;
}

const struct verb verb_quotas = {
    "quotas", "[OPTION...]", "list what users and teams use of what they may", run, NULL, false};
