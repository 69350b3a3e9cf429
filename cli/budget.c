/* SPDX-License-Identifier: Apache-2.0
 *
 * belay budget: for each budget the amounts spent, set aside for running jobs, and left.
 */
#include "cli/list_table.h"
#include "cli/verbs.h"

#include "base/str.h"
#include <stdio.h>

static const struct list_column columns[] = {
    {"BUDGET", "name", COLUMN_TEXT},
    {"PERIOD", "period", COLUMN_TEXT},
    {"CAP", "cap_uusd", COLUMN_USD},
    {"SPENT", "spent_uusd", COLUMN_USD},
    {"SET ASIDE", "aside_uusd", COLUMN_USD},
    {"LEFT", "left_uusd", COLUMN_USD},
    {"USD/H", "uusd_per_hour", COLUMN_USD_H},
    {"JOBS", "jobs", COLUMN_INT},
    {"AT LIMIT", "at_limit", COLUMN_TEXT},
    {"STATE", "state", COLUMN_TEXT},
    {"UNTIL", "until", COLUMN_WHEN},
    {NULL, NULL, COLUMN_TEXT},
};

static void print_usd(const char *what, const json_t *b, const char *key, const char *more)
{
    char text[32];
    printf("%-14s$%s%s\n", what, cli_usd(cli_int(b, key, 0), text, sizeof(text)), more);
}

static void print_budget(const json_t *b)
{
    static const char *const of[] = {"team", "user", "pool", "job"};
    const json_t *match = json_object_get(b, "match");
    const char *name;
    char shown[CLI_NAME_MAX], since[CLI_LOCAL_MAX], until[CLI_LOCAL_MAX];
    json_t *value;
    bool any = false;
    printf("budget        %s\ncounts        ", cli_text(b, "name"));
    for (size_t k = 0; k < 4; k++)
        if (json_is_string(json_object_get(match, of[k]))) {
            printf("%s%s %s", any ? ", " : "", of[k], cli_text(match, of[k]));
            any = true;
        }
    json_object_foreach(json_object_get(match, "labels"), name, value)
    {
        printf("%slabel %s=%s", any ? ", " : "", cli_name(name, shown), cli_string(value));
        any = true;
    }
    printf("%s\n", any ? "" : "all jobs");
    printf("period        %s%s%s, %s to %s\n", cli_text(b, "period"),
        json_is_string(json_object_get(b, "window")) ? " " : "",
        json_is_string(json_object_get(b, "window")) ? cli_text(b, "window") : "",
        cli_when(b, "since", since), cli_when(b, "until", until));
    printf("state         %s; at its limit: %s\n", cli_text(b, "state"), cli_text(b, "at_limit"));
    print_usd("cap", b, "cap_uusd", "");
    print_usd("spent", b, "spent_uusd", "");
    print_usd("set aside", b, "aside_uusd", " for running jobs");
    print_usd("left", b, "left_uusd", "");
    print_usd("now", b, "uusd_per_hour", " an hour");
    printf("jobs          %lld running\n", (long long)cli_int(b, "jobs", 0));
    if (cli_int(b, "told_percent", 0) > 0)
        printf("notified at   %lld %%\n", (long long)cli_int(b, "told_percent", 0));
}

static int show(const char *name, bool json)
{
    json_t *v = cli_get("/api/v1/budgets"), *b;
    size_t i;
    if (!v)
        return CLI_FAILED;
    json_array_foreach(json_object_get(v, "budgets"), i, b)
    {
        if (!str_eq(cli_text(b, "name"), name))
            continue;
        if (json)
            cli_print_json(b);
        else
            print_budget(b);
        json_decref(v);
        return CLI_OK;
    }
    json_decref(v);
    cli_error("there is no budget \"%.63s\" (belay budget lists them)", name);
    return CLI_FAILED;
}

static int act(const struct cli_args *a)
{
    const char *action = a->n_rest > 0 ? a->rest[0] : "list";
    if (str_eq(action, "list") && a->n_rest <= 1)
        return list_print(a, "/api/v1/budgets", "budgets", columns);
    if (str_eq(action, "show") && a->n_rest == 2)
        return show(a->rest[1], a->json);
    cli_error(str_eq(action, "show") ? "expected a budget: belay budget show NAME"
                                     : "expected belay budget [list], or belay budget show NAME");
    return CLI_USAGE;
}

static int run(int argc, const char **argv)
{
    struct cli_args a;
    int rc = cli_parse(&verb_budget, argc, argv, false, NULL, NULL, &a);
    if (rc == 0)
        rc = act(&a);
    cli_args_deinit(&a);
    return rc < 0 ? CLI_OK : rc;
}

const struct verb verb_budget = {"budget", "[OPTION...] [list|show NAME]",
    "list budgets with the amounts spent, set aside and left", run, NULL, false, .lists = true,
    .examples = "belay budget\n"
                "belay budget show nlp\n"};
