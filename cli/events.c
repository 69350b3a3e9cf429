/* SPDX-License-Identifier: Apache-2.0
 *
 * belay show: the events of a job. The text of an event is belayd's; the words for its kind are
 * here, in one table. Lines are never cut: the reason of a failure is at their end.
 */
#include "cli/events.h"

#include "base/str.h"
#include "cli/cli.h"
#include <stdio.h>

#define LAST 5 /* events that `belay show` prints without --events */

const struct event_name event_names[] = {
    {"submitted", "submitted"},
    {"updated", "changed"},
    {"held", "held"},
    {"released", "released"},
    {"eligible", "may start"},
    {"pace", "purchase changed"},
    {"placed", "placed"},
    {"restored", "restored"},
    {"damaged", "damaged checkpoint"},
    {"store-refused", "store refused"},
    {"no-credentials", "no credentials"},
    {"started", "started"},
    {"enter", "command run in it"},
    {"save", "save requested"},
    {"saved", "saved"},
    {"save-failed", "save failed"},
    {"restore-failed", "restore failed"},
    {"output-cut", "output cut off"},
    {"in-vain", "no progress"},
    {"time-limit", "time limit near"},
    {"notice", "provider's notice"},
    {"move", "moves"},
    {"prefetch", "prefetch begun"},
    {"prefetched", "prefetched"},
    {"prefetch-failed", "prefetch failed"},
    {"park", "paused"},
    {"preempt", "preempted by QOS"},
    {"reclaim", "preempted by quota"},
    {"requeue", "requeue requested"},
    {"requeue-dropped", "requeue dropped"},
    {"idle-gpus", "idle GPUs"},
    {"cancel", "cancelled"},
    {"ended", "ended"},
    {"requeued", "requeued"},
    {"settled", "nodes settled"},
    {"drill", "drill started"},
    {"drill-passed", "drill passed"},
    {"drill-compared", "result compared"},
    {"drill-failed", "drill failed"},
    {"drill-interrupted", "drill interrupted"},
    {"cleaned", "checkpoints removed"},
    {"clean-failed", "cleaning failed"},
    {"not-told", "notice not sent"},
    /* of budgets, nodes and machines */
    {"budget", "budget"},
    {"base-load", "base load"},
    {"reservation", "maintenance"},
    {"reservation-over", "maintenance over"},
    {"late", "late cron entry"},
    {"spend-anomaly", "unusual spending"},
    {"joined", "node joined"},
    {"lost", "node lost"},
    {"returned", "node back"},
    {"drain", "node drained"},
    {"auto-drain", "drained by belay"},
    {"undrain", "node undrained"},
    {"throttled", "node throttled"},
    {"recovered", "node recovered"},
    {"disk-full", "disk full"},
    {"disk-room", "disk has space"},
    {"fault", "node faulty"},
    {"gone", "gone"},
    {"launch", "launch requested"},
    {"launched", "launched"},
    {"launch-refused", "launch refused"},
    {"offer-refused", "offer refused"},
    {"boot-failed", "boot failed"},
    {"boot-console", "console output"},
    {"boots-again", "boots again"},
    {"ending", "being ended"},
};
const size_t event_names_count = sizeof(event_names) / sizeof(event_names[0]);

const char *event_words(const char *kind)
{
    for (size_t i = 0; i < event_names_count; i++)
        if (str_eq(event_names[i].kind, kind))
            return event_names[i].words;
    return kind;
}

json_t *events_get(int64_t job)
{
    json_t *all = json_array();
    int64_t after = 0;
    for (size_t n = 1; n > 0;) {
        const char *path =
            CLI_PATH("/api/v1/jobs/%lld/events?after=%lld", (long long)job, (long long)after);
        json_t *page = cli_get(path);
        if (!page) {
            json_decref(all);
            return NULL;
        }
        json_t *events = json_object_get(page, "events");
        n = json_array_size(events);
        json_array_extend(all, events);
        after = cli_int(page, "last", after);
        json_decref(page);
    }
    return all;
}

void events_print(const json_t *events)
{
    struct table *t = table_create();
    char at[CLI_LOCAL_MAX];
    int width = fold_columns() > 0 ? 0 : EVENT_WORDS_MAX; /* alike in all outputs */
    size_t i;
    json_t *e;
    table_column(t, "WHEN", 0);
    table_column(t, "ATTEMPT", TABLE_RIGHT);
    table_column(t, "EVENT", 0);
    table_column(t, "WHAT", TABLE_SENTENCE);
    json_array_foreach((json_t *)(uintptr_t)events, i, e)
    {
        table_row(t);
        table_cell(t, "%s", cli_local(cli_time(e, "at"), true, at));
        if (cli_int(e, "attempt", 0) > 0)
            table_cell(t, "%lld", (long long)cli_int(e, "attempt", 0));
        else
            table_cell(t, "-");
        table_cell(t, "%-*s", width, event_words(cli_text(e, "kind")));
        table_cell(t, "%s", cli_text(e, "text"));
    }
    table_print(t);
}

bool events_print_last(int64_t job)
{
    json_t *page = cli_get(CLI_PATH("/api/v1/jobs/%lld/events?tail=%d", (long long)job, LAST + 1));
    json_t *events = json_object_get(page, "events");
    if (!page)
        return false;
    bool has_earlier = json_array_size(events) > LAST;
    if (has_earlier)
        json_array_remove(events, 0);
    putchar('\n');
    events_print(events);
    if (has_earlier)
        printf("(all events: belay show --events %lld)\n", (long long)job);
    json_decref(page);
    return true;
}
