/* SPDX-License-Identifier: Apache-2.0
 *
 * belay show JOB: everything about one job, its attempts, what they cost, and its last events;
 * --events: all events.
 */
#include "cli/drill.h"
#include "cli/events.h"
#include "cli/flags/grace.h"
#include "cli/flags/notify.h"
#include "cli/flags/retry.h"
#include "cli/html/job_page.h"
#include "cli/html/page.h"
#include "cli/reports/job_options.h"
#include "cli/reports/job_use.h"
#include "cli/timeline.h"
#include "cli/verbs.h"

#include "base/mem.h"
#include "base/str.h"
#include "job/attributes.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TIMELINE_WIDTH 64
#define TIMELINE_MARGIN 14

enum { VAL_EVENTS = 1, VAL_HTML };

struct request {
    bool events;
    char *html; /* NULL if not given */
};

static int on_option(void *ctx, int val, const char *arg)
{
    struct request *q = ctx;
    if (val == VAL_EVENTS) {
        q->events = true;
        return CLI_OK;
    }
    free(q->html);
    q->html = mem_strdup(arg);
    return CLI_OK;
}

static void print_money(const json_t *job)
{
    int64_t cost = cli_int(job, "cost_uusd", 0), on_demand = cli_int(job, "on_demand_uusd", 0);
    char a[32], b[32], saved[32];
    printf("cost          %s", cli_usd(cost, a, sizeof(a)));
    if (on_demand > 0)
        printf(" (on-demand: %s, %s)", cli_usd(on_demand, b, sizeof(b)),
            cli_saved(cost, on_demand, saved, sizeof(saved)));
    putchar('\n');
}

/* The current value of auto, and its basis. */
static void print_interval(const json_t *job, int64_t every_ms)
{
    char text[64];
    int64_t now_ms = cli_int(job, "save_interval_ms", 0), save_ms = cli_int(job, "save_ms", 0);
    int64_t pause_ms = cli_int(job, "pause_ms", save_ms);
    if (every_ms > 0 || now_ms == 0) {
        fputs(every_ms > 0 ? cli_duration(every_ms, text, sizeof(text)) : "auto", stdout);
        return;
    }
    printf("auto (%s: ", cli_duration(now_ms, text, sizeof(text)));
    if (save_ms > 0)
        printf("a save took %s, ", cli_duration(save_ms, text, sizeof(text)));
    else
        fputs("no save is measured yet, ", stdout);
    if (pause_ms < save_ms)
        printf("the program waited for %s of it, ", cli_duration(pause_ms, text, sizeof(text)));
    printf("%.3g reclaims an hour)", json_number_value(json_object_get(job, "reclaims_per_hour")));
}

static void print_checkpoint(const json_t *job)
{
    const json_t *last = json_object_get(job, "last_checkpoint");
    const json_t *how = json_object_get(job, "checkpoint");
    char text[64], age[32];
    if (str_eq(cli_text(how, "method"), "none")) {
        puts("checkpoints   none");
    } else {
        printf("checkpoints   %s, every ", cli_text(how, "method"));
        print_interval(job, cli_int(how, "every_ms", 0));
        if (*cli_text(how, "at") && !str_eq(cli_text(how, "at"), "-"))
            printf(" and daily at %s UTC", cli_text(how, "at"));
        printf(", keep %lld", (long long)cli_int(how, "keep", 0));
        if (cli_int(how, "keep_every", 0) > 0)
            printf(" and each whose sequence is a multiple of %lld",
                (long long)cli_int(how, "keep_every", 0));
        putchar('\n');
    }
    if (!json_is_object(last))
        return;
    str_format_bytes((uint64_t)cli_int(last, "bytes", 0), text, sizeof(text));
    printf("last          %lld.%lld, %s, %s ago", (long long)cli_int(last, "attempt", 0),
        (long long)cli_int(last, "sequence", 0), text, cli_ago(last, "saved_at", age, sizeof(age)));
    if (cli_int(last, "progress", -1) >= 0)
        printf(", step %lld", (long long)cli_int(last, "progress", -1));
    if (cli_int(job, "save_ms", 0) > 0)
        printf(", saved in %s", cli_duration(cli_int(job, "save_ms", 0), text, sizeof(text)));
    putchar('\n');
}

/* The start of the attempt: earlier work is saved, or was lost before. */
static struct wall start_of(const json_t *attempts, int64_t attempt)
{
    struct wall start = WALL_NONE;
    for (size_t i = 0; i < json_array_size(attempts); i++) {
        const json_t *a = json_array_get(attempts, i);
        if (cli_int(a, "attempt", 0) == attempt)
            start = cli_time(a, "started_at");
    }
    return start;
}

/* For a running job in a pool with a policy for idle GPUs. */
static void print_idle_gpus(const json_t *job)
{
    char since[CLI_LOCAL_MAX], parks[CLI_LOCAL_MAX];
    struct wall parks_at = cli_time(job, "idle_gpus_parks_at");
    if (!wall_is_set(cli_time(job, "idle_gpus_since")))
        return;
    printf("idle GPUs     since %s", cli_local(cli_time(job, "idle_gpus_since"), false, since));
    if (wall_is_set(parks_at))
        printf(": it is saved and held at %s (belay update %s idle-gpus=keep prevents it)",
            cli_local(parks_at, false, parks), cli_text(job, "ref"));
    putchar('\n');
}

/* For a running job whose last save failed: since when nothing was saved, why, and how much work
 * that puts at risk. */
static void print_failed_save(const json_t *v)
{
    const json_t *failed = json_object_get(v, "failed_save");
    const json_t *last = json_object_get(json_object_get(v, "job"), "last_checkpoint");
    char at[CLI_LOCAL_MAX], lost[32];
    if (!json_is_object(failed))
        return;
    struct wall saved = cli_time(last, "saved_at"),
                start = start_of(json_object_get(v, "attempts"), cli_int(failed, "attempt", 0));
    bool has_saved = wall_is_set(saved);
    struct wall from = !wall_is_set(start) || (has_saved && saved.ms > start.ms) ? saved : start;
    printf("save failed   no save since %s%s: %s\n", has_saved ? "" : "it started at ",
        cli_local(has_saved ? saved : start, false, at), cli_text(failed, "text"));
    if (!wall_is_set(from))
        return;
    int64_t ms = clock_wall(&clock_system).ms - from.ms;
    printf("              %s of work would be lost if it were stopped now\n",
        cli_duration(ms > 0 ? ms : 0, lost, sizeof(lost)));
}

static void print_priority(const json_t *job)
{
    static const struct {
        const char *key, *what;
    } parts[] = {
        {"fair_ms", "fair share"}, {"qos_ms", "QOS"}, {"size_ms", "size"}, {"nice_ms", "nice"}};
    const json_t *p = json_object_get(job, "priority");
    char text[64];
    if (!json_is_object(p))
        return;
    printf("priority      like that of a job that waited %s: ",
        cli_duration(cli_int(p, "total_ms", 0), text, sizeof(text)));
    printf("its waiting %s", cli_duration(cli_int(p, "age_ms", 0), text, sizeof(text)));
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        int64_t ms = cli_int(p, parts[i].key, 0);
        if (ms != 0)
            printf(", %s %s%s", parts[i].what, ms < 0 ? "-" : "",
                cli_duration(ms < 0 ? -ms : ms, text, sizeof(text)));
    }
    putchar('\n');
}

/* Checkpoints kept after the job's end, in addition to pinned ones. In the state `cleaning` with
 * all kept they are only measured, for the cost. */
static void print_leftover(const json_t *left, bool has_saved)
{
    const char *keep = cli_text(left, "keep");
    char at[CLI_LOCAL_MAX];
    bool is_all = str_eq(keep, "all");
    const char *what = is_all                 ? "all checkpoints"
                       : str_eq(keep, "last") ? "the last checkpoint"
                                              : "none";
    if (!json_is_object(left) || (!has_saved && cli_int(left, "tries", 0) == 0))
        return;
    printf("kept          ");
    if (!has_saved)
        printf("nothing was saved");
    else if (str_eq(cli_text(left, "state"), "done") || is_all)
        printf("%s", what);
    else if (str_eq(cli_text(left, "state"), "cleaning"))
        printf("%s; the rest is being removed", what);
    else
        printf("all checkpoints until %s, then %s", cli_when(left, "due_at", at), what);
    putchar('\n');
    if (cli_int(left, "tries", 0) > 0)
        printf("              cleaning has failed %lld times: see its events clean-failed, or "
               "belayd's log\n",
            (long long)cli_int(left, "tries", 0));
}

/* The end `cancelled` of an attempt means a cancel, or a requeue if the job continued. */
static const char *end_of(const json_t *attempt, const json_t *job)
{
    bool goes_on = !str_eq(cli_text(job, "state"), "ended") ||
                   cli_int(attempt, "attempt", 0) < cli_int(job, "attempts", 0);
    const char *end = cli_text(attempt, "end");
    return str_eq(end, "cancelled") && goes_on ? "requeued" : end;
}

/* Bytes fetched of the bytes restored: the others were on the node already. */
static void print_fetched(struct table *t, const json_t *attempt)
{
    char fetched[32], all[32];
    int64_t bytes = cli_int(attempt, "restored_bytes", 0);
    if (bytes <= 0) {
        table_cell(t, "-");
        return;
    }
    str_format_bytes((uint64_t)cli_int(attempt, "fetched_bytes", 0), fetched, sizeof(fetched));
    str_format_bytes((uint64_t)bytes, all, sizeof(all));
    table_cell(t, "%s of %s", fetched, all);
}

static void print_attempts(const json_t *attempts, const json_t *job)
{
    struct table *t = table_create();
    size_t i;
    json_t *a;
    char started[32];
    bool is_gang = cli_int(job, "nodes", 1) > 1;
    table_column(t, "ATTEMPT", true);
    if (is_gang)
        table_column(t, "RANK", true);
    table_column(t, "NODE", true);
    table_column(t, "STATE", false);
    table_column(t, "END", false);
    table_column(t, "RESUMED AT", false);
    table_column(t, "FETCHED", TABLE_RIGHT | TABLE_EXTRA);
    table_column(t, "STARTED", true);
    table_column(t, "CHECKPOINTS", true);
    table_column(t, "WHY", TABLE_SENTENCE);
    json_array_foreach(attempts, i, a)
    {
        const json_t *from = json_object_get(a, "restored");
        table_row(t);
        table_cell(t, "%lld", (long long)cli_int(a, "attempt", 0));
        if (is_gang)
            table_cell(t, "%lld", (long long)cli_int(a, "rank", 0));
        table_cell(t, "%lld", (long long)cli_int(a, "node", 0));
        table_cell(t, "%s", cli_text(a, "state"));
        table_cell(t, "%s", end_of(a, job));
        if (!json_is_object(from))
            table_cell(t, "the beginning");
        else if (cli_int(a, "restored_progress", -1) >= 0)
            table_cell(t, "step %lld", (long long)cli_int(a, "restored_progress", -1));
        else
            table_cell(t, "%lld.%lld", (long long)cli_int(from, "attempt", 0),
                (long long)cli_int(from, "sequence", 0));
        print_fetched(t, a);
        table_cell(t, "%s", cli_ago(a, "started_at", started, sizeof(started)));
        table_cell(t, "%lld", (long long)cli_int(a, "checkpoints", 0));
        table_cell(t, "%s", cli_text(a, "text"));
    }
    table_print(t);
}

static bool has_restarts(const json_t *attempts)
{
    size_t i;
    json_t *a;
    json_array_foreach(attempts, i, a)
    {
        if (json_is_object(json_object_get(a, "restart")))
            return true;
    }
    return false;
}

/* What each restart consisted of. DOWN: from the stop to the program's start, the sum of the parts
 * after LOST and before WARM-UP. */
static void print_restarts(const json_t *attempts, bool is_gang)
{
    static const struct {
        const char *column, *key;
    } parts[] = {{"LOST", "lost_ms"}, {"WAIT", "wait_ms"}, {"LAUNCH", "launch_ms"},
        {"BOOT", "boot_ms"}, {"AGENT", "agent_ms"}, {"PLACE", "place_ms"},
        {"PREPARE", "prepare_ms"}, {"RESTORE", "restore_ms"}};
    struct table *t = table_create();
    char text[32];
    size_t i;
    json_t *a;
    table_column(t, "RESTART", true);
    if (is_gang)
        table_column(t, "RANK", true);
    for (size_t k = 0; k < sizeof(parts) / sizeof(parts[0]); k++)
        table_column(t, parts[k].column, true);
    table_column(t, "DOWN", true);
    table_column(t, "WARM-UP", true);
    json_array_foreach(attempts, i, a)
    {
        const json_t *r = json_object_get(a, "restart");
        int64_t down_ms = 0;
        if (!json_is_object(r))
            continue;
        table_row(t);
        table_cell(t, "%lld", (long long)cli_int(a, "attempt", 0));
        if (is_gang)
            table_cell(t, "%lld", (long long)cli_int(a, "rank", 0));
        for (size_t k = 0; k < sizeof(parts) / sizeof(parts[0]); k++) {
            int64_t ms = cli_int(r, parts[k].key, 0);
            table_cell(t, "%s", cli_duration(ms, text, sizeof(text)));
            down_ms += k > 0 ? ms : 0;
        }
        table_cell(t, "%s", cli_duration(down_ms, text, sizeof(text)));
        int64_t warm_ms = cli_int(r, "warm_up_ms", -1);
        table_cell(t, "%s", warm_ms < 0 ? "-" : cli_duration(warm_ms, text, sizeof(text)));
    }
    table_print(t);
}

/* The certificate that covers the job, and the job's own last drill if that is another. */
static void print_drills(const json_t *v)
{
    const json_t *drills = json_object_get(v, "drills"),
                 *certificate = json_object_get(v, "certificate");
    const json_t *last = json_array_get(drills, json_array_size(drills) - 1);
    if (json_is_object(certificate))
        drill_print(certificate);
    if (last && !json_equal(last, certificate))
        drill_print(last);
}

static void print_nodes(const json_t *job)
{
    long long most = cli_int(job, "nodes", 1), least = cli_int(job, "nodes_min", most);
    if (most == 1)
        return;
    if (least < most)
        printf("%lld to %lld nodes (the last attempt has %lld; on a loss: %s), each with ", least,
            most, (long long)cli_int(job, "ranks", 0), cli_text(job, "on_loss"));
    else
        printf("%lld nodes, each with ", most);
    if (str_eq(cli_text(job, "script_on"), "first"))
        printf("(the script on the first) ");
}

static void print_retries(const json_t *job)
{
    struct buf text = {0};
    retry_format(job, &text);
    printf("retries       %s\n",
        json_is_false(json_object_get(job, "requeue")) ? "none: --no-requeue" : buf_str(&text));
    buf_deinit(&text);
}

static void print_grace(const json_t *v)
{
    struct buf text = {0};
    grace_format(json_object_get(json_object_get(v, "spec"), "launch"), &text);
    if (text.len > 0)
        printf("signal        %s: sent this many seconds before its time limit\n", buf_str(&text));
    buf_deinit(&text);
}

/* The script's environment. */
static void print_launch(const json_t *v)
{
    const json_t *launch = json_object_get(json_object_get(v, "spec"), "launch");
    const char *image = cli_string(json_object_get(launch, "image"));
    const char *workdir = cli_string(json_object_get(launch, "workdir"));
    if (image && *image)
        printf("image         %s\n", image);
    if (workdir && *workdir)
        printf("workdir       uploaded, %.12s\n", workdir);
}

static void print_notify(const json_t *v)
{
    struct buf text = {0};
    notify_format(json_object_get(v, "spec"), cli_text(json_object_get(v, "job"), "user"), &text);
    if (text.len > 0)
        printf("notify        %s\n", buf_str(&text));
    buf_deinit(&text);
}

/* The procurement now; for a finished job how long before or after the deadline it ended. */
static void print_finish_by(const json_t *job)
{
    struct wall by, ended;
    char in[32], at[CLI_LOCAL_MAX];
    const char *pace = cli_text(job, "pace");
    bool is_done = str_eq(cli_text(job, "end"), "succeeded") &&
                   time_parse_iso(cli_text(job, "ended_at"), &ended, NULL) == 0 &&
                   time_parse_iso(cli_text(job, "finish_by"), &by, NULL) == 0;
    printf("finish by     %s", cli_when(job, "finish_by", at));
    if (is_done) {
        cli_duration(ended.ms > by.ms ? ended.ms - by.ms : by.ms - ended.ms, in, sizeof in);
        printf(", done %s %s\n", in, ended.ms > by.ms ? "late" : "early");
    } else {
        printf(str_eq(cli_text(job, "state"), "ended") ? "\n" : ", now %s\n",
            str_eq(pace, "free") ? "any market" : pace);
    }
}

static void print_options(const json_t *job)
{
    struct buf text = {0};
    for (size_t i = 0; i < job_attributes_count; i++) {
        const struct job_attribute *a = &job_attributes[i];
        if (job_option_text(job, a, &text))
            printf("%-13s %s\n", job_option_name(a), buf_str(&text));
        buf_clear(&text);
    }
    buf_deinit(&text);
}

static void print_times(const json_t *job)
{
    char usd[32], at[CLI_LOCAL_MAX];
    if (cli_int(job, "cron", 0) > 0)
        printf("cron          entry %lld, for %s\n", (long long)cli_int(job, "cron", 0),
            json_is_string(json_object_get(job, "cron_at")) ? cli_when(job, "cron_at", at)
                                                            : "no time: by hand");
    if (json_is_string(json_object_get(job, "begin_at")))
        printf("begins        not before %s\n", cli_when(job, "begin_at", at));
    if (json_is_string(json_object_get(job, "finish_by")))
        print_finish_by(job);
    if (json_is_integer(json_object_get(job, "max_uusd")))
        printf("max usd       %s in all\n", cli_usd(cli_int(job, "max_uusd", 0), usd, sizeof usd));
    if (json_is_integer(json_object_get(job, "max_uusd_per_hour")))
        printf(
            "max usd/h     %s\n", cli_usd(cli_int(job, "max_uusd_per_hour", 0), usd, sizeof usd));
    if (json_is_string(json_object_get(job, "deadline_at")))
        printf("deadline      %s\n", cli_when(job, "deadline_at", at));
}

static void print_expects(const json_t *e)
{
    char usd[32], at[CLI_LOCAL_MAX], late[CLI_LOCAL_MAX];
    if (!json_is_object(e))
        return;
    printf("              %s\n", cli_text(e, "why"));
    if (json_is_string(json_object_get(e, "done_at")))
        printf("expected      done %s (95th percentile: %s), for %s more\n",
            cli_when(e, "done_at", at), cli_when(e, "late_at", late),
            cli_usd(cli_int(e, "cost_uusd", 0), usd, sizeof(usd)));
}

/* Constraints other than the size. */
static void print_constraints(const json_t *job)
{
    struct buf words = {0};
    if (json_is_string(json_object_get(job, "gpu_model")) || cli_int(job, "gpu_memory_mib", 0) > 0)
        printf("gpus          %s, at least %lld MiB each\n",
            json_is_string(json_object_get(job, "gpu_model")) ? cli_text(job, "gpu_model")
                                                              : "of any model",
            (long long)cli_int(job, "gpu_memory_mib", 0));
    if (json_is_string(json_object_get(job, "constraint")))
        printf("features      %s\n", cli_text(job, "constraint"));
    if (json_is_true(json_object_get(job, "exclusive")))
        printf("nodes         not shared (--exclusive)\n");
    if (json_is_string(json_object_get(job, "nodelist")))
        printf("only on       %s\n", cli_text(job, "nodelist"));
    if (json_is_string(json_object_get(job, "exclude")))
        printf("never on      %s\n", cli_text(job, "exclude"));
    const json_t *input = json_object_get(job, "input");
    if (json_is_object(input)) {
        char size[32];
        str_format_bytes((uint64_t)cli_int(input, "bytes", 0), size, sizeof size);
        const char *location = cli_text(input, "place");
        printf("reads         %s, %s\n", size,
            str_eq(location, "store") ? "where the store of checkpoints is" : location);
    }
    cli_words(json_object_get(job, "resources"), &words);
    if (words.len)
        printf("resources     %s of each node\n", buf_str(&words));
    buf_clear(&words);
    cli_words(json_object_get(job, "licences"), &words);
    if (words.len)
        printf("licences      %s\n", buf_str(&words));
    buf_deinit(&words);
}

static int64_t percent(int64_t part, int64_t of)
{
    return of > 0 ? (int64_t)(100.0 * (double)part / (double)of + 0.5) : 0;
}

/* How much of its request the job used. */
static void print_used(const json_t *v)
{
    const json_t *job = json_object_get(v, "job");
    struct used u;
    char cpu[32], could[32], peak[32], asked[32], n_cpus[CLI_COUNT_MAX];
    if (!used_of(v, &u))
        return;
    int64_t cpus = cli_int(job, "cpus", 1) * u.ranks,
            requested_mib = cli_int(job, "memory_mib", 0) * u.ranks;
    printf("cpu used      %s of %s on %s: %lld %%\n", cli_duration(u.cpu_ms, cpu, sizeof(cpu)),
        cli_duration(u.ran_ms * cpus, could, sizeof(could)), cli_count(cpus, "cpu", n_cpus),
        (long long)percent(u.cpu_ms, u.ran_ms * cpus));
    if (u.peak_sum == 0)
        return;
    str_format_bytes((uint64_t)u.peak_sum, peak, sizeof(peak));
    str_format_bytes((uint64_t)requested_mib << 20, asked, sizeof(asked));
    printf("memory used   at most %s", peak);
    if (requested_mib > 0)
        printf(" of %s: %lld %%", asked, (long long)percent(u.peak_sum, requested_mib << 20));
    putchar('\n');
}

/* What the terminal has beside the numbers of attempts. */
static int timeline_width(void)
{
    int left = fold_columns() > 0 ? fold_columns() - TIMELINE_MARGIN : TIMELINE_WIDTH;
    return left > TIMELINE_WIDTH ? TIMELINE_WIDTH : left < TIMELINE_MARGIN ? TIMELINE_MARGIN : left;
}

static void print_job(const json_t *v)
{
    const json_t *job = json_object_get(v, "job");
    char age[32], lost[32], limit[32], memory[32] = "no memory limit", cpus[CLI_COUNT_MAX],
                                       gpus[CLI_COUNT_MAX];
    printf("job           %s \"%s\" of %s\n", cli_text(job, "ref"), cli_text(job, "name"),
        cli_text(job, "user"));
    printf("state         %s", cli_text(job, "state"));
    if (str_eq(cli_text(job, "state"), "ended"))
        printf(
            ": %s, exit code %lld", cli_text(job, "end"), (long long)cli_int(job, "exit_code", 0));
    printf("\nsubmitted     %s ago\n", cli_ago(job, "submitted_at", age, sizeof(age)));
    if (cli_int(job, "memory_mib", 0) > 0)
        snprintf(memory, sizeof(memory), "%lld MiB", (long long)cli_int(job, "memory_mib", 0));
    fputs("needs         ", stdout);
    print_nodes(job);
    printf("%s, %s, %s, market %s, pool %s, time limit %s\n",
        cli_count(cli_int(job, "cpus", 0), "cpu", cpus), memory,
        cli_count(cli_int(job, "gpus", 0), "gpu", gpus), cli_text(job, "market"),
        json_is_string(json_object_get(job, "pool")) ? cli_text(job, "pool") : "any",
        cli_int(job, "time_limit_ms", 0)
            ? cli_duration(cli_int(job, "time_limit_ms", 0), limit, sizeof(limit))
            : "none");
    print_constraints(job);
    print_times(job);
    print_options(job);
    print_expects(json_object_get(v, "expects"));
    print_launch(v);
    print_grace(v);
    print_notify(v);
    print_priority(job);
    print_checkpoint(job);
    print_failed_save(v);
    print_idle_gpus(job);
    print_leftover(
        json_object_get(v, "leftover"), json_array_size(json_object_get(v, "checkpoints")) > 0);
    printf("attempts      %lld, %lld ended by a reclaim or a lost node, %s of work lost\n",
        (long long)cli_int(job, "attempts", 0), (long long)cli_int(job, "reclaims", 0),
        cli_duration(cli_int(job, "lost_ms", 0), lost, sizeof(lost)));
    print_used(v);
    print_retries(job);
    print_money(job);
    print_drills(v);
    if (json_array_size(json_object_get(v, "attempts")) > 0) {
        putchar('\n');
        timeline_print(v, timeline_width());
        putchar('\n');
        print_attempts(json_object_get(v, "attempts"), job);
    }
    if (has_restarts(json_object_get(v, "attempts"))) {
        putchar('\n');
        print_restarts(json_object_get(v, "attempts"), cli_int(job, "nodes", 1) > 1);
    }
}

/* Writes the report, and prints nothing. */
static int write_page(int64_t id, const json_t *v, const char *file)
{
    struct buf page = {0};
    json_t *events = events_get(id);
    if (!events)
        return CLI_FAILED;
    json_t *load = cli_get(CLI_PATH("/api/v1/jobs/%lld/load", (long long)id));
    job_page_write(v, events, load, clock_wall(&clock_system), &page);
    json_decref(load);
    json_decref(events);
    return page_save(&page, file);
}

static int show_job(int64_t id, const char *html, bool as_json)
{
    json_t *v = cli_get(CLI_PATH("/api/v1/jobs/%lld", (long long)id));
    bool done = v;
    if (v && html)
        done = write_page(id, v, html) == CLI_OK;
    if (v && as_json) {
        cli_print_json(v);
    } else if (v && !html) {
        print_job(v);
        done = events_print_last(id);
    }
    json_decref(v);
    return done ? CLI_OK : CLI_FAILED;
}

static int show_events(int64_t id, bool as_json)
{
    json_t *events = events_get(id);
    if (!events)
        return CLI_FAILED;
    if (as_json) {
        json_t *v = json_pack("{s:O}", "events", events);
        cli_print_json(v);
        json_decref(v);
    } else {
        events_print(events);
    }
    json_decref(events);
    return CLI_OK;
}

static int run(int argc, const char **argv)
{
    struct cli_args a;
    int64_t id;
    struct request q = {0};
    int rc = cli_parse(&verb_show, argc, argv, false, on_option, &q, &a);
    if (rc == 0 && q.events && q.html) {
        cli_error("--events and --html exclude each other: the page has all events");
        rc = CLI_USAGE;
    }
    if (rc == 0)
        rc = cli_job_id(a.n_rest == 1 ? a.rest[0] : NULL, &id);
    if (rc == 0)
        rc = q.events ? show_events(id, a.json) : show_job(id, q.html, a.json);
    cli_args_deinit(&a);
    free(q.html);
    return rc < 0 ? CLI_OK : rc;
}

static const struct poptOption options[] = {
    {"events", 0, POPT_ARG_NONE, NULL, VAL_EVENTS,
        "print all its events, oldest first, and nothing else", NULL},
    {"html", 0, POPT_ARG_STRING, NULL, VAL_HTML,
        "write a report of the job as a page, self-contained in one file, instead of printing",
        "FILE"},
    POPT_TABLEEND,
};

const struct verb verb_show = {"show", "[OPTION...] JOB",
    "show one job, its attempts, its cost and its last events", run, options, false, .folds = true,
    .examples = "belay show 42\n"
                "belay show --html job.html 42\n"};
