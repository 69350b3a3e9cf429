/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/outlook.h"

#include "base/mem.h"
#include "base/str.h"
#include "scheduler/config/config.h"
#include "scheduler/config/egress.h"
#include "scheduler/core/placement/constraints.h"
#include <stdlib.h>
#include <string.h>

#define SUBMIT_MS 1767225600000 /* 2026-01-01 */

/* Time limit of the replay for a job of this length. */
static int64_t time_limit_ms(const struct outlook_options *o)
{
    int64_t ms = 10 * o->job.work_ms + 7 * DAY_MS;
    return ms > o->within_ms ? ms : o->within_ms + DAY_MS;
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Sorts and returns the percentile. */
static int64_t percentile(int64_t *v, int32_t n, int32_t percent)
{
    qsort(v, (size_t)n, sizeof *v, by_value);
    return v[(n * percent + 99) / 100 - 1];
}

static int64_t longest_ms(const struct config *c, const struct traces *t)
{
    int64_t ms = 0;
    bool prices;
    for (size_t i = 0; i < c->n_pools; i++) {
        for (size_t k = 0; k < c->pools[i].n_offers; k++) {
            const struct offer_row *o = &c->pools[i].offers[k];
            const struct market_trace *m =
                o->market == MARKET_SPOT ? market_find(t, o, &prices) : NULL;
            if (m && (int64_t)m->trace.n * m->trace.gap_ms > ms)
                ms = (int64_t)m->trace.n * m->trace.gap_ms;
        }
    }
    return ms;
}

/* Simulates the job on these pools from all starting points, and summarises the runs. */
static int simulate(
    const struct outlook_options *o, const struct config *c, struct outlook *line, struct err *e)
{
    struct joblog log = {.n = 1};
    struct log_job job = o->job;
    struct study_options so = o->study;
    int64_t length_ms = longest_ms(c, so.traces), sum = 0, data = 0, reclaims = 0;
    int rc = 0;
    line->starts = length_ms > 0 ? o->starts : 1;
    int64_t *costs = mem_array((size_t)line->starts, sizeof *costs),
            *times = mem_array((size_t)line->starts, sizeof *times);
    job.name = job.user = job.team = job.pool = "";
    job.submit.ms = SUBMIT_MS;
    job.declared_ms = o->job.work_ms;
    job.finish_by = o->within_ms > 0 ? (struct wall){SUBMIT_MS + o->within_ms} : WALL_NONE;
    log.jobs = &job;
    so.config = c;
    so.log = &log;
    so.n_owned = 0;
    so.after_ms = time_limit_ms(o);
    for (int32_t i = 0; rc == 0 && i < line->starts; i++) {
        struct study s;
        so.trace_from_ms = length_ms / line->starts * i;
        if ((rc = study_run(&so, &s, e)) != 0)
            break;
        bool is_done = s.r.finished == 1;
        line->done += is_done;
        line->late += s.all.late > 0;
        reclaims += s.all.reclaims;
        costs[i] = s.uusd;
        times[i] = is_done ? s.r.end_ms : INT64_MAX;
        sum += s.uusd;
        data += s.r.spent[LEDGER_EGRESS] + s.r.spent[LEDGER_STORAGE];
        study_deinit(&s);
    }
    if (rc == 0) {
        line->mean_uusd = sum / line->starts;
        line->data_uusd = data / line->starts;
        line->reclaims = (double)reclaims / line->starts;
        line->median_uusd = percentile(costs, line->starts, 50);
        line->p95_uusd = percentile(costs, line->starts, 95);
        line->median_ms = percentile(times, line->starts, 50);
        line->p95_ms = percentile(times, line->starts, 95);
        line->fastest_ms = times[0]; /* sorted by now */
    }
    free(costs);
    free(times);
    return rc;
}

static bool serves(const struct outlook_options *o, const struct offer_row *row)
{
    const struct resources *need = &o->job.need, *total = &row->total;
    if ((o->job.wish == WISH_SPOT && row->market == MARKET_ON_DEMAND) ||
        (o->job.wish == WISH_ON_DEMAND && row->market == MARKET_SPOT))
        return false;
    return need->cpus <= total->cpus && need->gpus <= total->gpus &&
           need->memory_mib <= total->memory_mib;
}

static int by_chance_and_cost(const void *a, const void *b)
{
    const struct outlook *x = a, *y = b;
    double late_x = (double)x->late / x->starts, late_y = (double)y->late / y->starts;
    if (late_x < late_y || late_x > late_y)
        return late_x < late_y ? -1 : 1;
    return x->mean_uusd != y->mean_uusd ? (x->mean_uusd < y->mean_uusd ? -1 : 1)
           : x->offer.id < y->offer.id  ? -1
                                        : 1;
}

/* Simulates the job on each offer alone. */
static int simulate_offers(
    const struct outlook_options *o, struct outlook *list, size_t *n, struct err *e)
{
    const struct config *all = o->study.config;
    int rc = 0;
    for (size_t i = 0; i < all->n_pools; i++) {
        for (size_t k = 0; rc == 0 && k < all->pools[i].n_offers; k++) {
            struct config_pool pool = all->pools[i];
            struct config one = *all;
            pool.offers = &all->pools[i].offers[k];
            pool.n_offers = 1;
            one.pools = &pool;
            one.n_pools = 1;
            if (!serves(o, pool.offers))
                continue;
            list[*n] = (struct outlook){.offer = pool.offers[0]};
            list[*n].offer.id = (int64_t)*n;
            rc = simulate(o, &one, &list[*n], e);
            ++*n;
        }
    }
    return rc;
}

/* Checks the provider and region of the input, which the core takes as they are and only the
 * catalogue knows. */
static int check_constraints(const char *text, struct err *e)
{
    struct constraints x;
    char location[INPUT_LOCATION_MAX];
    int rc = constraints_parse(text, &x, e);
    if (rc != 0 || x.input.bytes == 0)
        return rc;
    input_format_location(&x.input, location);
    return config_read_input_location(location, &x.input, e);
}

/* Returns the pools that belayd launches machines in; the caller frees the array. */
static struct config_pool *elastic_pools(const struct config *all, size_t *ret_n)
{
    struct config_pool *pools = mem_array(all->n_pools + 1, sizeof *pools);
    *ret_n = 0;
    for (size_t i = 0; i < all->n_pools; i++)
        if (all->pools[i].row.elastic)
            pools[(*ret_n)++] = all->pools[i];
    return pools;
}

int outlook_run_all(const struct outlook_options *o, struct outlook *ret_outlook, struct err *e)
{
    struct config elastic = *o->study.config;
    struct outlook line = {0};
    elastic.pools = elastic_pools(o->study.config, &elastic.n_pools);
    int rc = simulate(o, &elastic, &line, e);
    free(elastic.pools);
    if (rc == 0)
        *ret_outlook = line;
    return rc;
}

int outlook_run(
    const struct outlook_options *o, struct outlook **ret_list, size_t *ret_n, struct err *e)
{
    const struct config *all = o->study.config;
    size_t n_offers = 0, n = 1;
    if (o->job.constraints && check_constraints(o->job.constraints, e) != 0)
        return err_wrap(e, "the input of the job");
    for (size_t i = 0; i < all->n_pools; i++)
        n_offers += all->pools[i].n_offers;
    struct outlook *list = mem_array(n_offers + 1, sizeof *list);
    int rc = simulate_offers(o, list, &n, e);
    if (rc == 0 && n == 1)
        rc = err_set(e, ERR_INVALID,
            "%s: no machine that could be launched is large enough for the job", o->study.file);
    if (rc == 0)
        rc = outlook_run_all(o, &list[0], e);
    if (rc == 0)
        qsort(list + 1, n - 1, sizeof *list, by_chance_and_cost);
    if (rc == 0) {
        *ret_list = list;
        *ret_n = n;
    } else {
        free(list);
    }
    return rc;
}

int64_t outlook_infeasible_ms(const struct outlook *list, size_t n, const struct outlook_options *o)
{
    const int64_t least_ms = o->study.boot_ms + o->job.work_ms;
    bool has_sure = false;
    int64_t fastest_ms = INT64_MAX;
    for (size_t i = 0; i < n; i++) {
        if (list[i].late < list[i].starts)
            return 0;
        has_sure = has_sure || (i > 0 && list[i].offer.market == MARKET_ON_DEMAND);
        fastest_ms = list[i].fastest_ms < fastest_ms ? list[i].fastest_ms : fastest_ms;
    }
    if (o->within_ms == 0 || (!has_sure && least_ms <= o->within_ms))
        return 0;
    return (fastest_ms < INT64_MAX ? fastest_ms : least_ms) - o->within_ms;
}

struct outlook_margin outlook_margin_of(const struct outlook_options *o)
{
    const int64_t limit_ms = o->job.time_limit_ms;
    struct outlook_margin g = {.margin_pct = o->study.config->deadlines.work_margin_pct};
    g.worst_ms = o->job.work_ms + o->job.work_ms / 100 * g.margin_pct;
    g.is_limited = limit_ms > 0 && limit_ms <= g.worst_ms;
    g.worst_ms = g.is_limited ? limit_ms : g.worst_ms;
    return g;
}

static json_t *opt_ms(int64_t ms)
{
    return ms == INT64_MAX ? json_null() : json_integer(ms);
}

json_t *outlook_json(
    const struct outlook *list, size_t n, size_t shown, const struct outlook_options *o)
{
    json_t *a = json_array();
    for (size_t i = 0; i < shown; i++) {
        const struct outlook *l = &list[i];
        json_t *offer =
            i == 0 ? json_null()
                   : json_pack("{s:s,s:s,s:s,s:s}", "pool", l->offer.pool, "zone", l->offer.zone,
                         "type", l->offer.type, "market", market_names[l->offer.market]);
        json_array_append_new(
            a, json_pack("{s:o,s:i,s:i,s:o,s:{s:I,s:I,s:I,s:I},s:{s:o,s:o},s:f}", "offer", offer,
                   "starts", (int)l->starts, "done", (int)l->done, "late",
                   o->within_ms > 0 ? json_integer(l->late) : json_null(), "cost_uusd", "mean",
                   (json_int_t)l->mean_uusd, "median", (json_int_t)l->median_uusd, "p95",
                   (json_int_t)l->p95_uusd, "data", (json_int_t)l->data_uusd, "done_ms", "median",
                   opt_ms(l->median_ms), "p95", opt_ms(l->p95_ms), "reclaims", l->reclaims));
    }
    const int64_t infeasible_ms = outlook_infeasible_ms(list, n, o);
    return json_pack("{s:o,s:I,s:o}", "candidates", a, "more", (json_int_t)(n - shown),
        "infeasible_by_ms", infeasible_ms > 0 ? json_integer(infeasible_ms) : json_null());
}
