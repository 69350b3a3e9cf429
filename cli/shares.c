/* SPDX-License-Identifier: Apache-2.0
 *
 * belay shares: how much of their shares users and teams have used.
 */
#include "cli/list_table.h"
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

static int run(int argc, const char **argv)
{
    return list_verb(&verb_shares, "/api/v1/shares", "shares", columns, argc, argv);
}

const struct verb verb_shares = {"shares", CLI_NO_WORDS,
    "list what users and teams have used of their shares", run, NULL, false, .lists = true,
    .examples = "belay shares\n"};
