/* SPDX-License-Identifier: Apache-2.0
 *
 * belay advise --anomalies: days on which far more was spent than usual.
 */
#include "cli/reports/advise.h"

#include "base/buf.h"
#include "cli/list_table.h"
#include <stdio.h>

static void print_table(const json_t *items)
{
    static const char *const columns[] = {"OF", "NAME", "DAY", "SPENT", "USUAL", "LIMIT", "WEEKS"};
    struct table *t = table_create();
    size_t i;
    json_t *v;
    for (i = 0; i < sizeof(columns) / sizeof(columns[0]); i++)
        table_column(t, columns[i], i > 2);
    json_array_foreach(items, i, v)
    {
        static const char *const amounts[] = {"uusd", "usual_uusd", "limit_uusd"};
        char text[32];
        table_row(t);
        table_cell(t, "%s", cli_text(v, "of"));
        table_cell(t, "%s", cli_text(v, "subject"));
        table_cell(t, "%s", cli_text(v, "day"));
        for (size_t k = 0; k < sizeof(amounts) / sizeof(amounts[0]); k++)
            table_cell(t, "%s", cli_usd(cli_int(v, amounts[k], 0), text, sizeof(text)));
        table_cell(t, "%lld", (long long)cli_int(v, "weeks", 0));
    }
    table_print(t);
}

static void print(const json_t *reply)
{
    const json_t *items = json_object_get(reply, "items");
    long long days = (long long)cli_int(reply, "days", 0);
    char least[32];
    if (json_array_size(items) > 0)
        print_table(items);
    else
        printf(
            "No user, team or pool spent far more than usual in the last %lld days (UTC).\n", days);
    printf(
        "\nA day is compared with the same weekday of up to %lld weeks before. USUAL is their "
        "median, LIMIT %lld deviations above it, but at least %s above it. Without spending %lld "
        "or more weeks before, a day is not judged.\n",
        (long long)cli_int(reply, "weeks", 0), (long long)cli_int(reply, "deviations", 0),
        cli_usd(cli_int(reply, "at_least_uusd", 0), least, sizeof(least)),
        (long long)cli_int(reply, "weeks_needed", 0));
    if (json_is_true(json_object_get(reply, "more")))
        printf("There are more: choose fewer days (--days).\n");
}

int advise_anomalies(int64_t days, bool json)
{
    struct buf path = {0};
    buf_printf(&path, "/api/v1/anomalies?days=%lld", (long long)days);
    json_t *reply = cli_get(buf_str(&path));
    buf_deinit(&path);
    if (!reply)
        return CLI_FAILED;
    if (json)
        cli_print_json(reply);
    else
        print(reply);
    json_decref(reply);
    return CLI_OK;
}
