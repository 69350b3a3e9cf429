/* SPDX-License-Identifier: Apache-2.0
 *
 * belay quotas: current use of the limits of users and teams.
 */
#include "cli/list_table.h"
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

static int run(int argc, const char **argv)
{
    return list_verb(&verb_quotas, "/api/v1/quotas", "quotas", columns, argc, argv);
}

const struct verb verb_quotas = {"quotas", CLI_NO_WORDS,
    "list users' and teams' use of their limits", run, NULL, false, .lists = true,
    .examples = "belay quotas\n"};
