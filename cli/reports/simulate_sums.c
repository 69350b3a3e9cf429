/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/reports/simulate_sums.h"

#include "base/str.h"
#include "cli/cli.h"
#include <stdio.h>

static char *add_line(struct sums_column *c, const char *name)
{
    c->names[c->n] = name;
    return c->texts[c->n++];
}

static void add_usd(struct sums_column *c, const char *name, int64_t uusd)
{
    cli_usd(uusd, add_line(c, name), sizeof c->texts[0]);
}

static void add_time(struct sums_column *c, const char *name, int64_t ms)
{
    cli_duration(ms, add_line(c, name), sizeof c->texts[0]);
}

static void add_count(struct sums_column *c, const char *name, int64_t n)
{
    snprintf(add_line(c, name), sizeof c->texts[0], "%lld", (long long)n);
}

static void add_part(struct sums_column *c, const char *name, double part, double whole)
{
    char *text = add_line(c, name);
    if (whole > 0)
        snprintf(text, sizeof c->texts[0], "%.1f %%", 100 * part / whole);
    else
        str_copy(text, sizeof c->texts[0], "-");
}

static void add_jobs(struct sums_column *c, const struct study_jobs *g, const struct sums_wanted *w)
{
    add_count(c, "jobs", g->jobs);
    add_count(c, "  ended", g->ended);
    if (w->given_up)
        add_count(c, "  given up", g->given_up);
    add_time(c, "wait, mean", g->wait_mean_ms);
    add_time(c, "  median", g->wait_median_ms);
    add_time(c, "  95 of 100", g->wait_p95_ms);
    add_time(c, "  longest", g->wait_max_ms);
    if (!w->deadlines)
        return;
    add_count(c, "with a deadline", g->with_deadline);
    add_count(c, "  late", g->late);
    add_time(c, "  late by, mean", g->late > 0 ? g->late_ms / g->late : 0);
}

static void add_use(struct sums_column *c, const struct study *s, const struct sums_wanted *w)
{
    const struct study_use use = study_use(s), *other = &s->free_use;
    double all_ms = 0;
    for (int k = 0; k < LEDGER_KINDS; k++)
        all_ms += (double)s->r.ms[k];
    add_part(c, "cpus in use", use.used_ms[0], use.have_ms[0]);
    if (w->racks)
        add_part(c, "  if racks had no limit", other->used_ms[0], other->have_ms[0]);
    if (w->gpus)
        add_part(c, "GPUs in use", use.used_ms[1], use.have_ms[1]);
    if (w->gpus && w->racks)
        add_part(c, "  if racks had no limit", other->used_ms[1], other->have_ms[1]);
    add_part(c, "useful time", (double)s->r.ms[LEDGER_USEFUL], all_ms);
}

void sums_fill(struct sums_column *c, const struct study *s, const struct sums_wanted *w)
{
    c->n = 0;
    add_usd(c, "cost", s->uusd);
    add_usd(c, "  owned", s->r.uusd[MARKET_OWNED]);
    add_usd(c, "  spot", s->r.uusd[MARKET_SPOT]);
    add_usd(c, "  on-demand", s->r.uusd[MARKET_ON_DEMAND]);
    if (w->data)
        add_usd(c, "  data transfer", s->r.spent[LEDGER_EGRESS]);
    if (w->storage)
        add_usd(c, "  checkpoints kept", s->r.spent[LEDGER_STORAGE]);
    add_usd(c, "useful time, on-demand", s->r.on_demand_uusd);
    add_jobs(c, &s->all, w);
    add_use(c, s, w);
    add_count(c, "reclaims", s->r.reclaims);
    add_time(c, "work lost", s->r.ms[LEDGER_LOST]);
    add_count(c, "launches", s->r.launches);
    add_count(c, "  refused", s->r.refusals);
    add_time(c, "time until the last end", s->r.end_ms);
}

struct sums_wanted sums_find(const struct study *s, size_t n)
{
    struct sums_wanted w = {0};
    for (size_t i = 0; i < n; i++) {
        w.deadlines = w.deadlines || s[i].all.with_deadline > 0;
        w.given_up = w.given_up || s[i].all.given_up > 0;
        w.racks = w.racks || s[i].n_racks > 0;
        w.data = w.data || s[i].r.spent[LEDGER_EGRESS] > 0;
        w.storage = w.storage || s[i].r.spent[LEDGER_STORAGE] > 0;
        for (size_t k = 0; k < s[i].n_pools; k++)
            w.gpus = w.gpus || s[i].pools[k].have_ms[1] > 0;
    }
    return w;
}
