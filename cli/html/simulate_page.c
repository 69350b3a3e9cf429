/* SPDX-License-Identifier: Apache-2.0
 *
 * See simulate_page.h. A page has one column a file of pools while few of them fit beside each
 * other; more are put into further tables.
 */
#include "cli/html/simulate_page.h"

#include "base/str.h"
#include "cli/cli.h"
#include "cli/html/page.h"
#include "cli/reports/simulate_sums.h"
#include <stdio.h>
#include <stdlib.h>

#define FILES_MAX 16
#define FILES_BESIDE 5 /* files in one table */
#define SAMPLES 12     /* rows of the table of a plot */

extern const char simulate_js[];

/* ---- sums ---- */

static void add_sums(const struct simulate_page *p, struct buf *out)
{
    const struct sums_wanted w = sums_find(p->studies, p->n);
    for (size_t first = 0; first < p->n; first += FILES_BESIDE) {
        struct sums_column columns[FILES_BESIDE];
        const char *names[FILES_BESIDE + 2] = {"Figure"};
        size_t n = 0;
        for (; n < FILES_BESIDE && first + n < p->n; n++) {
            names[n + 1] = p->studies[first + n].file;
            sums_fill(&columns[n], &p->studies[first + n], &w);
        }
        struct html_table t;
        html_table(&t, out, "Sums of the whole time, for each file of pools", names, 1);
        for (size_t line = 0; line < columns[0].n; line++) {
            const char *name = columns[0].names[line];
            html_row(&t, false);
            /* an em space for each level: blanks at the start of a cell are not shown */
            html_cell(&t, "%s%s", *name == ' ' ? "\u2003" : "", *name == ' ' ? name + 2 : name);
            for (size_t i = 0; i < n; i++)
                html_cell(&t, "%s", columns[i].texts[line]);
        }
        html_table_end(&t);
    }
}

static void add_stats(const struct study *s, struct buf *out)
{
    char text[32];
    const struct study_use use = study_use(s);
    html_stats(out);
    html_stat(out, "Cost", "%s", cli_usd(s->uusd, text, sizeof text));
    html_stat(
        out, "Jobs that ended", "%lld of %lld", (long long)s->all.ended, (long long)s->all.jobs);
    html_stat(out, "Wait, median", "%s", cli_duration(s->all.wait_median_ms, text, sizeof text));
    if (s->all.with_deadline > 0)
        html_stat(
            out, "Late", "%lld of %lld", (long long)s->all.late, (long long)s->all.with_deadline);
    html_stat(out, "Reclaims", "%lld", (long long)s->r.reclaims);
    if (use.have_ms[1] > 0)
        html_stat(out, "GPUs in use", "%.1f %%", 100 * use.used_ms[1] / use.have_ms[1]);
    html_stats_end(out);
}

/* ---- plots ---- */

/* One line of a plot over time. */
struct line {
    const json_t *values;
    int64_t bin_ms, length_ms;
    bool is_summed;
};

static struct line line_of(const struct simulate_page *p, size_t i, const char *key, bool is_summed)
{
    const json_t *s = json_array_get(json_object_get(p->result, "simulations"), i),
                 *o = json_object_get(s, "over_time");
    return (struct line){
        json_object_get(o, key), cli_int(o, "bin_ms", 0), cli_int(s, "length_ms", 0), is_summed};
}

/* The value at a time since the start; negative after the line's end. */
static double value_at(const struct line *l, int64_t at_ms)
{
    const size_t n = json_array_size(l->values),
                 bin = l->bin_ms > 0 ? (size_t)(at_ms / l->bin_ms) : 0;
    double sum = 0;
    if (n == 0 || at_ms > l->length_ms)
        return -1;
    const size_t last = bin < n ? bin : n - 1;
    for (size_t k = l->is_summed ? 0 : last; k <= last; k++)
        sum += json_number_value(json_array_get(l->values, k));
    return sum;
}

static double most_of(const struct line *l)
{
    double most = 0;
    for (size_t k = 0; k < json_array_size(l->values); k++) {
        const double v = json_number_value(json_array_get(l->values, k));
        most = v > most ? v : most;
    }
    return most;
}

static void add_samples(struct buf *out, const char *caption, const char *const *names,
    const struct line *lines, size_t n)
{
    struct html_table t;
    int64_t length_ms = 0;
    for (size_t i = 0; i < n; i++)
        length_ms = lines[i].length_ms > length_ms ? lines[i].length_ms : length_ms;
    html_table(&t, out, caption, names, 1);
    for (int64_t k = 0; k <= SAMPLES; k++) {
        char after[32];
        html_row(&t, false);
        html_cell(&t, "after %s", cli_duration(length_ms * k / SAMPLES, after, sizeof after));
        for (size_t i = 0; i < n; i++) {
            const double v = value_at(&lines[i], length_ms * k / SAMPLES);
            if (v < 0)
                html_cell(&t, "-");
            else
                html_cell(&t, lines[i].is_summed ? "$%.2f" : "%.1f", v);
        }
    }
    html_table_end(&t);
}

static void add_spent(const struct simulate_page *p, struct buf *out)
{
    const char *names[FILES_MAX + 2] = {"Time"};
    struct line lines[FILES_MAX];
    struct buf said = {0};
    for (size_t i = 0; i < p->n && i < FILES_MAX; i++) {
        char usd[32], after[32];
        names[i + 1] = p->studies[i].file;
        lines[i] = line_of(p, i, "spent_usd", true);
        buf_printf(&said, "%s%s has spent %s after %s", i > 0 ? "; " : "", p->studies[i].file,
            cli_usd(p->studies[i].uusd, usd, sizeof usd),
            cli_duration(p->studies[i].r.end_ms, after, sizeof after));
    }
    buf_adds(&said, ".");
    html_plot(out, "spent", "Spent so far", buf_str(&said));
    add_samples(out, "Dollars spent so far", names, lines, p->n);
    html_plot_end(out);
    buf_deinit(&said);
}

static void add_waiting(const struct simulate_page *p, struct buf *out)
{
    const char *names[FILES_MAX + 2] = {"Time"};
    struct line lines[FILES_MAX];
    struct buf said = {0};
    for (size_t i = 0; i < p->n && i < FILES_MAX; i++) {
        names[i + 1] = p->studies[i].file;
        lines[i] = line_of(p, i, "waiting", false);
        buf_printf(&said, "%sat most %.1f jobs wait with %s", i > 0 ? "; " : "", most_of(&lines[i]),
            p->studies[i].file);
    }
    buf_adds(&said, ". Averages over each interval of the plot.");
    html_plot(out, "waiting", "Jobs waiting", buf_str(&said));
    add_samples(out, "Jobs waiting", names, lines, p->n);
    html_plot_end(out);
    buf_deinit(&said);
}

/* The distribution of waits: the wait that so many percent of the jobs did not exceed. */
static void add_waits(const struct simulate_page *p, struct buf *out)
{
    static const int percents[] = {10, 25, 50, 75, 90, 95, 99, 100};
    const char *names[FILES_MAX + 2] = {"Part of the jobs"};
    struct html_table t;
    struct buf said = {0};
    for (size_t i = 0; i < p->n && i < FILES_MAX; i++) {
        char median[32], p95[32], most[32];
        const struct study_jobs *g = &p->studies[i].all;
        names[i + 1] = p->studies[i].file;
        buf_printf(&said,
            "%s%s: half of the jobs waited at most %s, 95 of 100 at most %s, all at most "
            "%s.",
            i > 0 ? " " : "", p->studies[i].file,
            cli_duration(g->wait_median_ms, median, sizeof median),
            cli_duration(g->wait_p95_ms, p95, sizeof p95),
            cli_duration(g->wait_max_ms, most, sizeof most));
    }
    html_plot(out, "waits", "How long jobs waited", buf_str(&said));
    html_table(&t, out, "The longest wait of this part of the jobs", names, 1);
    for (size_t k = 0; k < sizeof percents / sizeof percents[0]; k++) {
        html_row(&t, false);
        html_cell(&t, "%d %%", percents[k]);
        for (size_t i = 0; i < p->n && i < FILES_MAX; i++) {
            const int64_t n = p->studies[i].all.started;
            if (n > 0)
                html_cell_ms(&t, p->studies[i].waits_ms[(n - 1) * percents[k] / 100]);
            else
                html_cell(&t, "-");
        }
    }
    html_table_end(&t);
    html_plot_end(out);
    buf_deinit(&said);
}

static void add_levels(const struct simulate_page *p, size_t i, struct buf *out)
{
    const struct line owned = line_of(p, i, "owned", false), spot = line_of(p, i, "spot", false),
                      demand = line_of(p, i, "on_demand", false),
                      running = line_of(p, i, "running", false),
                      waiting = line_of(p, i, "waiting", false);
    char said[160], id[32];
    snprintf(said, sizeof said,
        "At most %.1f owned, %.1f spot and %.1f on-demand machines are paid for at a time.",
        most_of(&owned), most_of(&spot), most_of(&demand));
    snprintf(id, sizeof id, "machines-%zu", i);
    html_plot(out, id, "Machines paid for", said);
    add_samples(out, "Machines paid for",
        (const char *const[]){"Time", "Owned", "Spot", "On-demand", NULL},
        (const struct line[]){owned, spot, demand}, 3);
    html_plot_end(out);
    snprintf(said, sizeof said, "At most %.1f jobs run at a time, and %.1f wait.",
        most_of(&running), most_of(&waiting));
    snprintf(id, sizeof id, "jobs-%zu", i);
    html_plot(out, id, "Jobs", said);
    add_samples(out, "Jobs", (const char *const[]){"Time", "Running", "Waiting", NULL},
        (const struct line[]){running, waiting}, 2);
    html_plot_end(out);
}

/* ---- one file ---- */

static void add_pools(const struct study *s, struct buf *out)
{
    struct html_table t;
    html_table(&t, out, "What ran in each pool, and what it cost",
        (const char *const[]){"Pool", "Jobs", "Wait, mean", "Wait, 95 of 100", "Late", "Cost",
            "CPUs in use", "GPUs in use", "Launches", "Refused", "Reclaims", NULL},
        1);
    for (size_t i = 0; i < s->n_pools; i++) {
        const struct replay_pool *p = &s->pools[i];
        const struct study_jobs *g = &s->pool_jobs[i];
        html_row(&t, false);
        html_cell(&t, "%s", s->pool_names[i]);
        html_cell_int(&t, g->jobs);
        html_cell_ms(&t, g->wait_mean_ms);
        html_cell_ms(&t, g->wait_p95_ms);
        html_cell_int(&t, g->late);
        html_cell_usd(&t, p->uusd);
        html_cell_part(&t, p->used_ms[0], p->have_ms[0]);
        html_cell_part(&t, p->used_ms[1], p->have_ms[1]);
        html_cell_int(&t, p->launches);
        html_cell_int(&t, p->refusals);
        html_cell_int(&t, p->reclaims);
    }
    html_table_end(&t);
}

static void add_times(const struct study *s, struct buf *out)
{
    static const enum ledger_kind kinds[] = {LEDGER_USEFUL, LEDGER_LOST, LEDGER_BOOT, LEDGER_START,
        LEDGER_RESTORE, LEDGER_SAVE, LEDGER_GANG_WAIT, LEDGER_IDLE};
    struct html_table t;
    html_table(&t, out, "What the time of each pool's machines was",
        (const char *const[]){"Pool", "Useful", "Lost", "Boot", "Start", "Restore", "Save",
            "Gang-wait", "Idle", NULL},
        1);
    for (size_t i = 0; i < s->n_pools; i++) {
        html_row(&t, false);
        html_cell(&t, "%s", s->pool_names[i]);
        for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
            html_cell_ms(&t, s->pools[i].ms[kinds[k]]);
    }
    html_table_end(&t);
}

static void add_teams(const struct study *s, struct buf *out)
{
    struct html_table t;
    html_table(&t, out, "Teams",
        (const char *const[]){"Team", "Jobs", "Cost", "Wait, mean", "Wait, median",
            "Wait, 95 of 100", "Late", "Reclaims", "Lost", NULL},
        1);
    for (size_t i = 0; i < s->n_teams; i++) {
        const struct study_jobs *g = &s->teams[i];
        html_row(&t, false);
        html_cell(&t, "%s", g->name);
        html_cell_int(&t, g->jobs);
        html_cell_usd(&t, g->uusd);
        html_cell_ms(&t, g->wait_mean_ms);
        html_cell_ms(&t, g->wait_median_ms);
        html_cell_ms(&t, g->wait_p95_ms);
        html_cell_int(&t, g->late);
        html_cell_int(&t, g->reclaims);
        html_cell_ms(&t, g->lost_ms);
    }
    html_table_end(&t);
}

static void add_racks(const struct study *s, struct buf *out)
{
    struct html_table t;
    html_table(&t, out, "Power of racks",
        (const char *const[]){"Rack", "Limit, kW", "Most, kW", "Mean, kW", NULL}, 1);
    for (size_t i = 0; i < s->n_racks; i++) {
        html_row(&t, false);
        html_cell(&t, "%s", s->rack_options[i].name);
        html_cell(&t, "%.2f", (double)s->rack_options[i].max_w / 1e3);
        html_cell(&t, "%.2f", (double)s->racks[i].most_w / 1e3);
        html_cell(
            &t, "%.2f", s->r.end_ms > 0 ? s->racks[i].watt_ms / (double)s->r.end_ms / 1e3 : 0);
    }
    html_table_end(&t);
}

static void add_study(const struct simulate_page *p, size_t i, struct buf *out)
{
    const struct study *s = &p->studies[i];
    html_card(out, s->file);
    if (p->n > 1)
        add_stats(s, out);
    add_levels(p, i, out);
    add_pools(s, out);
    add_times(s, out);
    add_teams(s, out);
    if (s->n_racks > 0)
        add_racks(s, out);
    for (size_t k = 0; k < s->n_notes; k++)
        html_p(out, "hint", "%s.", s->notes[k]);
    html_card_end(out);
}

void simulate_page_write(const struct simulate_page *p, struct buf *out)
{
    char start[TIME_ISO_MAX], files[CLI_COUNT_MAX];
    const struct study *s = p->studies;
    time_format_iso(s->start, start);
    struct buf lede = {0};
    buf_printf(&lede,
        "What %s of pools would have done with %lld jobs of %s, from %.10s %.5s UTC on. Seed %llu.",
        cli_count((int64_t)p->n, "file", files), (long long)s->all.jobs, p->jobs, start, start + 11,
        (unsigned long long)p->seed);
    page_begin(out, PAGE_FILE, "Simulation of pools", buf_str(&lede));
    buf_deinit(&lede);
    if (p->n == 1)
        add_stats(s, out);
    html_card(out, p->n > 1 ? "Side by side" : "Sums");
    add_sums(p, out);
    html_card_end(out);
    html_card(out, "Over time");
    add_spent(p, out);
    add_waiting(p, out);
    if (s->all.started > 1)
        add_waits(p, out);
    html_card_end(out);
    for (size_t i = 0; i < p->n; i++)
        add_study(p, i, out);
    if (p->n_never_ran > 0)
        html_p(out, "hint", "%zu jobs of the log never ran, and are left out.", p->n_never_ran);
    page_end(out, p->now, p->command, p->result, simulate_js);
}
