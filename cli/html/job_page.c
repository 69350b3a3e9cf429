/* SPDX-License-Identifier: Apache-2.0
 *
 * See job_page.h. The timeline follows the rules of cli/timeline.c: a lane begins where the attempt
 * before it ended. What of an attempt was lost is known from the restart after it.
 */
#include "cli/html/job_page.h"

#include "base/mem.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/events.h"
#include "cli/html/job_charts.h"
#include "cli/html/page.h"
#include "cli/reports/job_options.h"
#include <stdio.h>
#include <stdlib.h>

#define LANES_MAX 40       /* the last attempts */
#define CHECKPOINTS_MAX 15 /* the last ones */
#define EVENTS_MAX 15      /* the last ones */
#define LANE_UNITS 1000.0  /* of the drawing, for the whole time */

/* ---- what was asked for ---- */

static void add_needs(const json_t *job, struct buf *out)
{
    char cpus[CLI_COUNT_MAX], gpus[CLI_COUNT_MAX], nodes[CLI_COUNT_MAX], at[CLI_LOCAL_MAX],
        text[64];
    const json_t *how = json_object_get(job, "checkpoint");
    const int64_t mib = cli_int(job, "memory_mib", 0), limit_ms = cli_int(job, "time_limit_ms", 0);
    html_fact(out, "Size", "%s, each %s, %s", cli_count(cli_int(job, "nodes", 1), "node", nodes),
        cli_count(cli_int(job, "cpus", 0), "cpu", cpus),
        cli_count(cli_int(job, "gpus", 0), "gpu", gpus));
    if (mib > 0)
        html_fact(out, "Memory", "%lld MiB", (long long)mib);
    html_fact(out, "Market, pool", "%s, %s", cli_text(job, "market"),
        json_is_string(json_object_get(job, "pool")) ? cli_text(job, "pool") : "any pool");
    html_fact(
        out, "Time limit", "%s", limit_ms > 0 ? cli_duration(limit_ms, text, sizeof text) : "none");
    if (json_is_string(json_object_get(job, "finish_by")))
        html_fact(out, "Finish by", "%s", cli_when(job, "finish_by", at));
    if (json_is_string(json_object_get(job, "deadline_at")))
        html_fact(out, "Deadline", "%s", cli_when(job, "deadline_at", at));
    if (json_is_integer(json_object_get(job, "max_uusd")))
        html_fact(
            out, "Most to spend", "%s", cli_usd(cli_int(job, "max_uusd", 0), text, sizeof text));
    if (json_is_object(how))
        html_fact(out, "Checkpoints", "%s, %s%s", cli_text(how, "method"),
            cli_int(how, "every_ms", 0) > 0 ? "every " : "at an interval that belay chooses",
            cli_int(how, "every_ms", 0) > 0
                ? cli_duration(cli_int(how, "every_ms", 0), text, sizeof text)
                : "");
}

static void add_asked(const json_t *job, struct buf *out)
{
    struct buf text = {0};
    html_card(out, "What it asked for");
    html_facts(out);
    add_needs(job, out);
    for (size_t i = 0; i < job_attributes_count; i++) {
        if (job_option_text(job, &job_attributes[i], &text))
            html_fact(out, job_option_name(&job_attributes[i]), "%s", buf_str(&text));
        buf_clear(&text);
    }
    buf_deinit(&text);
    html_facts_end(out);
    html_card_end(out);
}

/* ---- the timeline ---- */

struct scale {
    int64_t from_ms, to_ms;
};

static int64_t time_or(const json_t *o, const char *key, int64_t fallback_ms)
{
    struct wall at = cli_time(o, key);
    return wall_is_set(at) ? at.ms : fallback_ms;
}

static double x_of(const struct scale *s, int64_t at_ms)
{
    double x = LANE_UNITS * (double)(at_ms - s->from_ms) / (double)(s->to_ms - s->from_ms);
    return x < 0 ? 0 : x > LANE_UNITS ? LANE_UNITS : x;
}

static void add_span(
    const struct scale *s, const char *kind, int64_t from_ms, int64_t to_ms, struct buf *out)
{
    char text[32];
    if (to_ms <= from_ms)
        return;
    buf_printf(out,
        "<rect class=\"part-%s\" x=\"%.1f\" y=\"3\" width=\"%.1f\" height=\"12\">"
        "<title>%s for %s</title></rect>",
        kind, x_of(s, from_ms), x_of(s, to_ms) - x_of(s, from_ms), kind,
        cli_duration(to_ms - from_ms, text, sizeof text));
}

static void add_mark(
    const struct scale *s, const char *kind, int64_t at_ms, const char *what, struct buf *out)
{
    const double x = x_of(s, at_ms);
    buf_printf(out, "<rect class=\"part-%s\" x=\"%.1f\" y=\"0\" width=\"4\" height=\"18\"><title>",
        kind, x > LANE_UNITS - 4 ? LANE_UNITS - 4 : x);
    html_text(out, what);
    buf_adds(out, "</title></rect>");
}

static void add_saves(
    const struct scale *s, const json_t *checkpoints, int64_t attempt, struct buf *out)
{
    for (size_t i = 0; i < json_array_size(checkpoints); i++) {
        const json_t *c = json_array_get(checkpoints, i);
        struct wall at = cli_time(c, "saved_at");
        if (cli_int(c, "attempt", 0) == attempt && wall_is_set(at) && at.ms >= s->from_ms)
            add_mark(s, "save", at.ms, "saved", out);
    }
}

/* Whether the machine went away. */
static bool is_reclaim(const json_t *attempt)
{
    return str_eq(cli_text(attempt, "end"), "reclaimed") ||
           str_eq(cli_text(attempt, "end"), "node-lost");
}

/* Draws an attempt; the job was free since `free_ms`. Returns when the attempt ended, or now. */
static int64_t add_lane(const struct scale *s, const json_t *a, const json_t *next, const json_t *v,
    int64_t free_ms, struct buf *out)
{
    const json_t *r = json_object_get(a, "restart");
    const int64_t ended = time_or(a, "ended_at", s->to_ms),
                  started = time_or(a, "started_at", ended),
                  assigned = time_or(a, "assigned_at", ended),
                  boot = assigned - cli_int(r, "launch_ms", 0) - cli_int(r, "boot_ms", 0) -
                         cli_int(r, "agent_ms", 0) - cli_int(r, "place_ms", 0),
                  booting = boot > free_ms ? boot : free_ms,
                  lost_ms = cli_int(json_object_get(next, "restart"), "lost_ms", 0),
                  lost = ended - lost_ms > started ? ended - lost_ms : started;
    buf_printf(out,
        "<div class=\"lane\"><span class=\"lane-name\">%lld</span><svg viewBox=\"0 0 1000 18\" "
        "preserveAspectRatio=\"none\" aria-hidden=\"true\">",
        (long long)cli_int(a, "attempt", 0));
    add_span(s, "wait", free_ms, booting, out);
    add_span(s, "boot", booting, assigned, out);
    add_span(s, "restore", assigned, started < ended ? started : ended, out);
    add_span(s, "useful", started, lost, out);
    add_span(s, "lost", lost, ended, out);
    add_saves(s, json_object_get(v, "checkpoints"), cli_int(a, "attempt", 0), out);
    if (json_is_string(json_object_get(a, "ended_at")))
        add_mark(s, is_reclaim(a) ? "reclaim" : "end", ended, cli_text(a, "end"), out);
    buf_adds(out, "</svg></div>\n");
    return ended;
}

/* Rank 0 of each attempt, oldest first. Borrowed entries; the caller frees the list. */
static const json_t **attempts_of(const json_t *v, size_t *ret_n)
{
    const json_t *all = json_object_get(v, "attempts");
    const json_t **list = mem_array(json_array_size(all) + 1, sizeof *list);
    size_t n = 0;
    for (size_t i = 0; i < json_array_size(all); i++)
        if (cli_int(json_array_get(all, i), "rank", 0) == 0)
            list[n++] = json_array_get(all, i);
    *ret_n = n;
    return list;
}

static void add_keys(struct buf *out)
{
    static const char *const keys[][2] = {{"wait", "waiting"}, {"boot", "machine boots"},
        {"restore", "preparing and restoring"}, {"useful", "running"}, {"lost", "lost: done again"},
        {"save", "saved"}, {"reclaim", "machine lost"}, {"end", "ended otherwise"}};
    buf_adds(out, "<ul class=\"keys\">");
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        buf_printf(out, "<li><span class=\"key part-%s\"></span>%s</li>\n", keys[i][0], keys[i][1]);
    buf_adds(out, "</ul>\n");
}

static void add_attempt(const json_t *a, const json_t *next, struct html_table *t)
{
    char at[CLI_LOCAL_MAX];
    const struct wall started = cli_time(a, "started_at"), ended = cli_time(a, "ended_at");
    html_row(t, false);
    html_cell_int(t, cli_int(a, "attempt", 0));
    html_cell(t, "%lld", (long long)cli_int(a, "node", 0));
    html_cell(t, "%s", cli_when(a, "started_at", at));
    if (wall_is_set(started) && wall_is_set(ended))
        html_cell_ms(t, ended.ms - started.ms);
    else
        html_cell(t, "-");
    html_cell_int(t, cli_int(a, "checkpoints", 0));
    html_cell_ms(t, cli_int(json_object_get(next, "restart"), "lost_ms", 0));
    html_cell(t, "%s", cli_text(a, "end"));
    html_cell(t, "%s", cli_text(a, "text"));
}

static void add_lanes(const struct scale *s, const json_t *v, const json_t **list, size_t first,
    size_t n, int64_t free_ms, struct buf *out)
{
    char from[CLI_LOCAL_MAX], to[CLI_LOCAL_MAX];
    for (size_t i = first; i < n; i++)
        free_ms = add_lane(s, list[i], i + 1 < n ? list[i + 1] : NULL, v, free_ms, out);
    buf_printf(out, "<p class=\"axis\"><span>%s</span><span>%s</span></p>\n",
        cli_local((struct wall){s->from_ms}, true, from),
        cli_local((struct wall){s->to_ms}, true, to));
    add_keys(out);
}

static void add_timeline(const json_t *v, struct wall now, struct buf *out)
{
    const json_t *job = json_object_get(v, "job");
    size_t n;
    const json_t **list = attempts_of(v, &n);
    const size_t first = n > LANES_MAX ? n - LANES_MAX : 0;
    const int64_t free_ms = first > 0 ? time_or(list[first - 1], "ended_at", now.ms)
                                      : time_or(job, "submitted_at", now.ms);
    const struct scale s = {free_ms, time_or(job, "ended_at", now.ms)};
    struct html_table t;
    html_card(out, "Attempts over time");
    if (n == 0)
        html_p(out, "hint", "It has not started yet.");
    else if (s.to_ms > s.from_ms)
        add_lanes(&s, v, list, first, n, free_ms, out);
    if (n > 0) {
        html_table(&t, out, first > 0 ? "The last attempts" : "Attempts",
            (const char *const[]){
                "Attempt", "Node", "Started", "Ran for", "Checkpoints", "Lost", "End", "Why", NULL},
            1u | 64u | 128u);
        for (size_t i = first; i < n; i++)
            add_attempt(list[i], i + 1 < n ? list[i + 1] : NULL, &t);
        html_table_end(&t);
    }
    html_card_end(out);
    free(list);
}

/* ---- where seconds and dollars went ---- */

static const struct {
    const char *kind, *name, *color;
} kinds[] = {{"useful", "useful", "useful"}, {"lost", "lost: done again", "lost"},
    {"boot", "boot", "boot"}, {"start", "start", "boot"}, {"restore", "restore", "restore"},
    {"save", "save", "save"}, {"gang-wait", "waiting for other nodes of the job", "wait"},
    {"idle", "idle", "wait"}, {"egress", "data transfer", "3"},
    {"storage", "checkpoints kept", "5"}};
#define KINDS (sizeof kinds / sizeof kinds[0])

struct sum {
    int64_t ms, uusd;
    bool is_any;
};

static void add_split(const struct sum *sums, int64_t all, struct buf *out)
{
    buf_adds(out, "<div class=\"split\" aria-hidden=\"true\">");
    for (size_t k = 0; k < KINDS; k++)
        if (sums[k].uusd > 0)
            buf_printf(out, "<span class=\"part-%s\" style=\"width:%.2f%%\"></span>",
                kinds[k].color, 100.0 * (double)sums[k].uusd / (double)all);
    buf_adds(out, "</div>\n");
}

static void add_ledger(const json_t *v, struct buf *out)
{
    const json_t *ledger = json_object_get(v, "ledger");
    struct sum sums[KINDS] = {0}, all = {0};
    struct html_table t;
    for (size_t i = 0; i < json_array_size(ledger); i++) {
        const json_t *l = json_array_get(ledger, i);
        for (size_t k = 0; k < KINDS; k++) {
            if (!str_eq(cli_text(l, "kind"), kinds[k].kind))
                continue;
            sums[k].ms += cli_int(l, "ms", 0);
            sums[k].uusd += cli_int(l, "uusd", 0);
            sums[k].is_any = true;
            all.ms += cli_int(l, "ms", 0);
            all.uusd += cli_int(l, "uusd", 0);
        }
    }
    html_card(out, "Where seconds and dollars went");
    if (json_array_size(ledger) == 0) {
        html_p(out, "hint", "The ledger has its first row when an attempt ends.");
        html_card_end(out);
        return;
    }
    if (all.uusd > 0)
        add_split(sums, all.uusd, out);
    html_table(&t, out, "Time of machines and its cost, by what the time was",
        (const char *const[]){"What", "Time", "Cost", "Part of the cost", NULL}, 1);
    for (size_t k = 0; k < KINDS; k++) {
        if (!sums[k].is_any)
            continue;
        html_row(&t, false);
        html_cell(&t, "%s", kinds[k].name);
        html_cell_ms(&t, sums[k].ms);
        html_cell_usd(&t, sums[k].uusd);
        html_cell_part(&t, (double)sums[k].uusd, (double)all.uusd);
    }
    html_row(&t, true);
    html_cell(&t, "Together");
    html_cell_ms(&t, all.ms);
    html_cell_usd(&t, all.uusd);
    html_cell_part(&t, (double)all.uusd, (double)all.uusd);
    html_table_end(&t);
    html_card_end(out);
}

/* ---- checkpoints and events ---- */

static void add_checkpoints(const json_t *v, struct buf *out)
{
    const json_t *list = json_object_get(v, "checkpoints");
    const size_t n = json_array_size(list), shown = n > CHECKPOINTS_MAX ? CHECKPOINTS_MAX : n;
    struct html_table t;
    if (n == 0)
        return;
    html_card(out, "Checkpoints");
    html_table(&t, out,
        shown < n ? "The last checkpoints that are kept, newest first"
                  : "Checkpoints that are kept, newest first",
        (const char *const[]){"Checkpoint", "Saved", "Size", "In the store", "Took", NULL}, 1);
    for (size_t i = 0; i < shown; i++) {
        const json_t *c = json_array_get(list, i);
        char at[CLI_LOCAL_MAX], size[32], stored[32];
        str_format_bytes((uint64_t)cli_int(c, "bytes", 0), size, sizeof size);
        str_format_bytes((uint64_t)cli_int(c, "stored_bytes", 0), stored, sizeof stored);
        html_row(&t, false);
        html_cell(&t, "%lld.%lld", (long long)cli_int(c, "attempt", 0),
            (long long)cli_int(c, "sequence", 0));
        html_cell(&t, "%s", cli_when(c, "saved_at", at));
        html_cell(&t, "%s", size);
        html_cell(&t, "%s", stored);
        html_cell_ms(&t, cli_int(c, "took_ms", 0));
    }
    html_table_end(&t);
    html_card_end(out);
}

/* Saves are in the table of checkpoints, and would be most of the events. */
static bool is_shown(const json_t *event)
{
    return !str_eq(cli_text(event, "kind"), "saved") && !str_eq(cli_text(event, "kind"), "save");
}

static void add_events(const json_t *events, struct buf *out)
{
    const size_t n = json_array_size(events);
    size_t first = n, count = 0;
    while (first > 0 && count < EVENTS_MAX)
        count += is_shown(json_array_get(events, --first));
    struct html_table t;
    if (count == 0)
        return;
    html_card(out, "Events");
    html_table(&t, out,
        first > 0 ? "The last events other than saves, oldest first"
                  : "All events other than saves, oldest first",
        (const char *const[]){"When", "What", "Details", NULL}, 1u | 2u | 4u);
    for (size_t i = first; i < n; i++) {
        const json_t *e = json_array_get(events, i);
        char at[CLI_LOCAL_MAX];
        if (!is_shown(e))
            continue;
        html_row(&t, false);
        html_cell(&t, "%s", cli_when(e, "at", at));
        html_cell(&t, "%s", event_words(cli_text(e, "kind")));
        html_cell(&t, "%s", cli_text(e, "text"));
    }
    html_table_end(&t);
    html_card_end(out);
}

/* ---- the page ---- */

static void add_stats(const json_t *job, struct buf *out)
{
    const int64_t cost = cli_int(job, "cost_uusd", 0),
                  on_demand = cli_int(job, "on_demand_uusd", 0);
    char text[32];
    html_stats(out);
    html_stat(out, "Cost", "%s", cli_usd(cost, text, sizeof text));
    if (on_demand > 0) {
        html_stat(out, "The same on-demand", "%s", cli_usd(on_demand, text, sizeof text));
        html_stat(out, "Compared", "%s", cli_saved(cost, on_demand, text, sizeof text));
    }
    html_stat(out, "Attempts", "%lld", (long long)cli_int(job, "attempts", 0));
    html_stat(out, "Reclaims survived", "%lld", (long long)cli_int(job, "reclaims", 0));
    html_stat(out, "Work lost", "%s", cli_duration(cli_int(job, "lost_ms", 0), text, sizeof text));
    html_stats_end(out);
}

/* Why it ended, or what it is doing: a sentence. */
static void add_end(const json_t *v, struct buf *out)
{
    const json_t *job = json_object_get(v, "job");
    size_t n;
    const json_t **list = attempts_of(v, &n);
    const json_t *last = n > 0 ? list[n - 1] : NULL;
    char at[CLI_LOCAL_MAX], took[32];
    free(list);
    if (!str_eq(cli_text(job, "state"), "ended")) {
        html_p(out, "notice", "It has not ended: it is %s.", cli_text(job, "state"));
        return;
    }
    const struct wall submitted = cli_time(job, "submitted_at"), ended = cli_time(job, "ended_at");
    const char *text = cli_string(json_object_get(last, "text"));
    html_p(out, "notice", "It ended at %s, %s after its submit: %s, exit code %lld.%s%s",
        cli_when(job, "ended_at", at),
        cli_duration(ended.ms > submitted.ms ? ended.ms - submitted.ms : 0, took, sizeof took),
        cli_text(job, "end"), (long long)cli_int(job, "exit_code", 0), text && *text ? " " : "",
        text ? text : "");
}

void job_page_write(
    const json_t *v, const json_t *events, const json_t *load, struct wall now, struct buf *out)
{
    const json_t *job = json_object_get(v, "job");
    const char *ref = json_is_string(json_object_get(job, "ref")) ? cli_text(job, "ref") : "";
    char id[CLI_JOB_MAX], at[CLI_LOCAL_MAX];
    snprintf(id, sizeof id, "%lld", (long long)cli_int(job, "id", 0));
    char *title = mem_printf("Job %s, %s", *ref ? ref : id, cli_text(job, "name"));
    char *lede = mem_printf(
        "Of %s, submitted at %s.", cli_text(job, "user"), cli_when(job, "submitted_at", at));
    page_begin(out, PAGE_FILE, title, lede);
    free(title);
    free(lede);
    add_stats(job, out);
    add_end(v, out);
    add_timeline(v, now, out);
    job_charts_progress(v, now, out);
    add_ledger(v, out);
    job_charts_load(job, load, out);
    add_asked(job, out);
    add_checkpoints(v, out);
    add_events(events, out);
    const char *words[] = {"show", "--html", "FILE", *ref ? ref : id};
    char *command = page_command(4, words);
    page_end(out, now, command, NULL, NULL);
    free(command);
}
