/* SPDX-License-Identifier: Apache-2.0
 *
 * The result of a study (study.h) as JSON.
 */
#include "replay/study.h"

#define CURVE_POINTS 200 /* points of the distribution of waits */

static void set(json_t *o, const char *key, int64_t v)
{
    json_object_set_new(o, key, json_integer(v));
}

static json_t *kinds_json(const int64_t v[LEDGER_KINDS])
{
    json_t *o = json_object();
    for (int k = 0; k < LEDGER_KINDS; k++)
        set(o, ledger_kind_names[k], v[k]);
    return o;
}

/* 0 .. 1; null if the divisor is 0. */
static json_t *part_json(double part, double whole)
{
    return whole > 0 ? json_real(part / whole) : json_null();
}

static json_t *jobs_json(const struct study_jobs *g)
{
    json_t *o = json_object();
    if (g->name[0])
        json_object_set_new(o, "team", json_text(g->name));
    set(o, "jobs", g->jobs);
    set(o, "ended", g->ended);
    set(o, "started", g->started);
    set(o, "given_up", g->given_up);
    set(o, "cost_uusd", g->uusd);
    set(o, "lost_ms", g->lost_ms);
    set(o, "reclaims", g->reclaims);
    set(o, "attempts", g->attempts);
    json_object_set_new(o, "wait_ms",
        json_pack("{s:I,s:I,s:I,s:I}", "mean", (json_int_t)g->wait_mean_ms, "median",
            (json_int_t)g->wait_median_ms, "p95", (json_int_t)g->wait_p95_ms, "max",
            (json_int_t)g->wait_max_ms));
    set(o, "with_deadline", g->with_deadline);
    set(o, "late", g->late);
    set(o, "late_ms", g->late_ms);
    return o;
}

static json_t *pool_json(
    const char *name, const struct replay_pool *p, const struct study_jobs *started)
{
    json_t *o = json_object();
    json_object_set_new(o, "pool", json_text(name));
    set(o, "cost_uusd", p->uusd);
    set(o, "launches", p->launches);
    set(o, "refusals", p->refusals);
    set(o, "reclaims", p->reclaims);
    json_object_set_new(o, "cpu_utilisation", part_json(p->used_ms[0], p->have_ms[0]));
    json_object_set_new(o, "gpu_utilisation", part_json(p->used_ms[1], p->have_ms[1]));
    json_object_set_new(o, "time_ms", kinds_json(p->ms));
    json_object_set_new(o, "spent_uusd", kinds_json(p->spent));
    json_object_set_new(o, "started_there", jobs_json(started));
    return o;
}

static json_t *curve_json(const struct study *s)
{
    json_t *a = json_array();
    size_t n = (size_t)s->all.started, points = n < CURVE_POINTS ? n : CURVE_POINTS;
    for (size_t i = 0; i < points; i++)
        json_array_append_new(
            a, json_integer(s->waits_ms[points > 1 ? i * (n - 1) / (points - 1) : 0]));
    return a;
}

static json_t *racks_json(const struct study *s)
{
    json_t *list = json_array();
    for (size_t i = 0; i < s->n_racks; i++) {
        double mean_w = s->r.end_ms > 0 ? s->racks[i].watt_ms / (double)s->r.end_ms : 0;
        json_array_append_new(
            list, json_pack("{s:o,s:I,s:I,s:f}", "rack", json_text(s->rack_options[i].name),
                      "max_watts", (json_int_t)s->rack_options[i].max_w, "most_watts",
                      (json_int_t)s->racks[i].most_w, "mean_watts", mean_w));
    }
    return list;
}

static json_t *use_json(const struct study_use *u)
{
    return json_pack("{s:o,s:o}", "cpus", part_json(u->used_ms[0], u->have_ms[0]), "gpus",
        part_json(u->used_ms[1], u->have_ms[1]));
}

/* Levels are averages over their bin. */
static json_t *series_json(const struct series *s)
{
    json_t *o = json_object();
    set(o, "bin_ms", s->bin_ms);
    for (size_t k = 0; k < SERIES_LEVELS; k++) {
        json_t *a = json_array();
        for (size_t i = 0; i < s->n; i++) {
            /* the last bin may be shorter */
            double ms = i + 1 < s->n || s->since_ms >= (int64_t)s->n * s->bin_ms
                            ? (double)s->bin_ms
                            : (double)(s->since_ms - (int64_t)i * s->bin_ms);
            json_array_append_new(a, json_real(ms > 0 ? s->level_ms[k][i] / ms : 0));
        }
        json_object_set_new(o, series_names[k], a);
    }
    json_t *usd = json_array();
    for (size_t i = 0; i < s->n; i++)
        json_array_append_new(usd, json_real(s->uusd[i] / 1e6));
    json_object_set_new(o, "spent_usd", usd);
    return o;
}

static json_t *study_one(const struct study *s)
{
    char start[TIME_ISO_MAX];
    json_t *o = json_object(), *pools = json_array(), *teams = json_array(), *notes = json_array();
    time_format_iso(s->start, start);
    json_object_set_new(o, "pools_file", json_text(s->file));
    json_object_set_new(o, "start", json_string(start));
    set(o, "length_ms", s->r.end_ms);
    set(o, "cost_uusd", s->uusd);
    json_object_set_new(o, "cost_uusd_by_market",
        json_pack("{s:I,s:I,s:I}", "owned", (json_int_t)s->r.uusd[MARKET_OWNED], "spot",
            (json_int_t)s->r.uusd[MARKET_SPOT], "on_demand",
            (json_int_t)s->r.uusd[MARKET_ON_DEMAND]));
    set(o, "useful_on_demand_uusd", s->r.on_demand_uusd);
    set(o, "launches", s->r.launches);
    set(o, "refusals", s->r.refusals);
    set(o, "reclaims", s->r.reclaims);
    set(o, "moves", s->r.moves);
    json_object_set_new(o, "time_ms", kinds_json(s->r.ms));
    json_object_set_new(o, "spent_uusd", kinds_json(s->r.spent));
    json_object_set_new(o, "all", jobs_json(&s->all));
    for (size_t i = 0; i < s->n_pools; i++)
        json_array_append_new(pools, pool_json(s->pool_names[i], &s->pools[i], &s->pool_jobs[i]));
    for (size_t i = 0; i < s->n_teams; i++)
        json_array_append_new(teams, jobs_json(&s->teams[i]));
    for (size_t i = 0; i < s->n_notes; i++)
        json_array_append_new(notes, json_text(s->notes[i]));
    const struct study_use use = study_use(s);
    json_object_set_new(o, "utilisation", use_json(&use));
    json_object_set_new(
        o, "utilisation_without_racks", s->n_racks > 0 ? use_json(&s->free_use) : json_null());
    json_object_set_new(o, "racks", racks_json(s));
    json_object_set_new(o, "pools", pools);
    json_object_set_new(o, "teams", teams);
    json_object_set_new(o, "notes", notes);
    json_object_set_new(o, "waits_ms", curve_json(s));
    json_object_set_new(o, "over_time", series_json(&s->series));
    return o;
}

json_t *study_json(const struct study *studies, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, study_one(&studies[i]));
    return json_pack("{s:o}", "simulations", list);
}
