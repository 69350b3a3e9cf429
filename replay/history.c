/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/history.h"

#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "db/db.h"
#include "scheduler/core/model/model.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGE 1000
#define MAGIC "SQLite format 3"
#define INSTANCES_MAX 2000000
#define GAP_MIN_MS 60000
#define TICKS_MAX 100000 /* per trace: longer histories use longer ticks */

bool history_is_database(const char *path)
{
    char magic[sizeof MAGIC] = "";
    FILE *f = fopen(path, "rb");
    size_t n = f ? fread(magic, 1, sizeof magic, f) : 0;
    if (f)
        fclose(f);
    return n == sizeof magic && memcmp(magic, MAGIC, sizeof magic) == 0;
}

/* ---- jobs ---- */

struct jobs_read {
    struct db_reader *db;
    struct map useful_ms; /* job -> useful time of all its ranks, as a pointer */
    struct joblog log;
    struct err *e;
};

static int on_ledger(void *ctx, const struct ledger_row *row)
{
    struct jobs_read *r = ctx;
    if (row->job == CORE_ID_NONE || row->kind != LEDGER_USEFUL || row->ms <= 0)
        return 0;
    intptr_t so_far = (intptr_t)map_get(&r->useful_ms, row->job);
    map_put(&r->useful_ms, row->job, (void *)(so_far + (intptr_t)row->ms));
    return 0;
}

static const char *text_of(struct joblog *l, const char *text)
{
    return joblog_text(l, text, strlen(text));
}

/* Reads only the input of the job's constraints: the nodes of a simulation may have other features.
 */
static int read_input(struct jobs_read *r, int64_t id, struct log_job *j)
{
    struct constraints_row row = {0};
    struct constraints x = {0};
    int rc = id == CONSTRAINTS_NONE ? 0 : db_read_constraints(r->db, id, &row, r->e);
    if (rc == 0)
        rc = constraints_parse(row.text, &x, r->e);
    if (rc == 0)
        joblog_set_input(&r->log, j, &x.input);
    return rc;
}

static int on_job(void *ctx, const struct job_row *row)
{
    struct jobs_read *r = ctx;
    int64_t work_ms = (intptr_t)map_get(&r->useful_ms, row->id) / (row->ranks > 0 ? row->ranks : 1);
    if (work_ms <= 0) {
        r->log.n_never_ran++;
        return 0;
    }
    struct log_job *j = joblog_add(&r->log);
    if (!j)
        return err_set(r->e, ERR_INVALID, "more than %d jobs", JOBLOG_JOBS_MAX);
    j->name = text_of(&r->log, row->spec.name);
    j->user = text_of(&r->log, row->user);
    j->team = text_of(&r->log, row->spec.team);
    j->pool = text_of(&r->log, row->spec.pool);
    j->submit = row->submitted_at;
    j->ends_late = row->spec.deadline_ms > 0;
    j->finish_by = row->spec.deadline_ms > 0 ? (struct wall){row->spec.deadline_ms}
                   : row->spec.finish_ms > 0 ? (struct wall){row->spec.finish_ms}
                                             : WALL_NONE;
    j->declared_ms = row->spec.work_ms;
    j->work_ms = work_ms < JOBLOG_RUN_MAX_MS ? work_ms : JOBLOG_RUN_MAX_MS;
    j->need = row->spec.need;
    j->nodes = row->spec.nodes;
    j->wish = row->spec.market;
    j->time_limit_ms = row->spec.time_limit_ms;
    if (row->spec.method == CKPT_NONE)
        j->save_ms = 0;
    else if (row->pause_ms > 0)
        j->save_ms = row->pause_ms;
    j->every_ms = row->spec.ckpt_every_ms;
    if (row->ckpt_bytes > 0)
        j->ckpt_bytes = row->ckpt_bytes;
    return read_input(r, row->constraints, j);
}

static int read_jobs(struct jobs_read *r)
{
    int rc = db_read_ledger(r->db, CORE_ID_NONE, on_ledger, r, r->e);
    for (int64_t before = 0, next; rc == 0; before = next) {
        struct job_filter f = {
            .states = 1u << JOB_ENDED, .sort = JOBS_OLDEST, .before = before, .limit = PAGE};
        rc = db_read_jobs(r->db, &f, on_job, r, &next, r->e);
        if (next == 0)
            break;
    }
    return rc;
}

int history_read_jobs(const char *path, struct joblog *ret_log, struct err *e)
{
    struct jobs_read r = {.e = e};
    int rc = db_reader_open(path, &r.db, e);
    if (rc != 0)
        return rc;
    rc = read_jobs(&r);
    db_reader_close(r.db);
    map_deinit(&r.useful_ms);
    if (rc == 0) {
        joblog_sort(&r.log);
        *ret_log = r.log;
    } else {
        err_wrap(e, "%s", path);
        joblog_deinit(&r.log);
    }
    return rc;
}

/* ---- traces ---- */

/* An observation of an offer: from this moment on it was available, or not. */
struct observation {
    const char *offer; /* POOL/ZONE/TYPE */
    int64_t from_ms;
    int64_t until_ms; /* with is_there: end of the machine's life */
    bool is_there;
    int64_t uusd_h; /* with is_there: price an hour */
};

struct observations {
    struct smap offers; /* name -> its copy; owned */
    struct observation *list;
    size_t n;
    int64_t end_ms; /* the last moment with an observation */
    struct err *e;
};

static void add_observation(
    struct observations *w, const struct instance_row *r, const struct observation *observation)
{
    char name[3 * CORE_NAME_MAX];
    snprintf(name, sizeof name, "%s/%s/%s", r->pool, r->zone, r->type);
    char *own = smap_get(&w->offers, name);
    if (!own) {
        own = mem_strdup(name);
        smap_put(&w->offers, name, own);
    }
    if ((w->n & (w->n - 1)) == 0)
        w->list = mem_resize(w->list, w->n ? 2 * w->n : 1, sizeof *w->list);
    w->list[w->n] = *observation;
    w->list[w->n++].offer = own;
    if (observation->until_ms > w->end_ms)
        w->end_ms = observation->until_ms;
    if (observation->from_ms > w->end_ms)
        w->end_ms = observation->from_ms;
}

/* A machine that is gone without having been launched counts as no capacity, also if belayd no
 * longer wanted it. One that is still alive counts as available at its launch only. */
static int on_instance(void *ctx, const struct instance_row *r)
{
    struct observations *w = ctx;
    if (r->market != MARKET_SPOT || !wall_is_set(r->intended_at))
        return 0;
    if (w->n + 2 > INSTANCES_MAX)
        return err_set(w->e, ERR_INVALID, "more than %d machines", INSTANCES_MAX / 2);
    if (!wall_is_set(r->launched_at)) {
        if (r->state == INSTANCE_GONE)
            add_observation(w, r, &(struct observation){.from_ms = r->intended_at.ms});
        return 0;
    }
    int64_t until_ms = wall_is_set(r->ended_at) ? r->ended_at.ms : r->launched_at.ms,
            ms = until_ms - r->launched_at.ms;
    struct observation there = {.from_ms = r->launched_at.ms,
        .until_ms = until_ms,
        .is_there = true,
        .uusd_h = r->price_uusd_h};
    if (ms > 0 && r->state == INSTANCE_GONE)
        there.uusd_h =
            (int64_t)((double)core_instance_uusd(r, r->ended_at) * 3600000.0 / (double)ms);
    add_observation(w, r, &there);
    if (r->reclaimed && r->state == INSTANCE_GONE)
        add_observation(w, r, &(struct observation){.from_ms = until_ms});
    return 0;
}

static int by_offer_and_time(const void *a, const void *b)
{
    const struct observation *x = a, *y = b;
    int order = strcmp(x->offer, y->offer);
    if (order)
        return order;
    if (x->from_ms != y->from_ms)
        return x->from_ms < y->from_ms ? -1 : 1;
    return (int)x->is_there - (int)y->is_there;
}

/* Makes a trace of the n observations of one offer. The value of the first one is assumed for the
 * time before it. */
static struct trace make_trace(
    const struct observation *w, size_t n, int64_t start_ms, int64_t gap_ms, size_t ticks)
{
    struct trace t = {.gap_ms = gap_ms,
        .n = ticks,
        .counts = mem_array(ticks, sizeof *t.counts),
        .prices_uusd_h = mem_array(ticks, sizeof *t.prices_uusd_h)};
    int64_t alive_until_ms = INT64_MIN, price = 0;
    bool was_there = w[0].is_there;
    for (size_t k = 0; k < n && price == 0; k++)
        price = w[k].uusd_h;
    for (size_t i = 0, k = 0; i < ticks; i++) {
        int64_t at_ms = start_ms + (int64_t)i * gap_ms;
        for (; k < n && w[k].from_ms < at_ms + gap_ms; k++) {
            was_there = w[k].is_there;
            if (!w[k].is_there)
                continue;
            price = w[k].uusd_h;
            alive_until_ms = w[k].until_ms > alive_until_ms ? w[k].until_ms : alive_until_ms;
        }
        t.counts[i] = was_there || alive_until_ms >= at_ms + gap_ms;
        t.prices_uusd_h[i] = price;
    }
    return t;
}

static int add_traces(
    struct observations *w, const char *path, struct wall start, struct traces *t, struct err *e)
{
    int64_t start_ms = wall_is_set(start) ? start.ms : INT64_MAX, first_ms = INT64_MAX;
    int rc = 0;
    for (size_t i = 0; i < w->n; i++)
        first_ms = w->list[i].from_ms < first_ms ? w->list[i].from_ms : first_ms;
    if (start_ms >= w->end_ms || start_ms < first_ms)
        start_ms = first_ms;
    int64_t span_ms = w->end_ms - start_ms,
            gap_ms = span_ms / TICKS_MAX + 1 > GAP_MIN_MS ? span_ms / TICKS_MAX + 1 : GAP_MIN_MS;
    qsort(w->list, w->n, sizeof *w->list, by_offer_and_time);
    for (size_t from = 0, to; rc == 0 && from < w->n; from = to) {
        for (to = from; to < w->n && str_eq(w->list[to].offer, w->list[from].offer); to++)
            ;
        struct trace one =
            make_trace(&w->list[from], to - from, start_ms, gap_ms, (size_t)(span_ms / gap_ms) + 1);
        rc = market_add(t, w->list[from].offer, path, &one, e);
        trace_deinit(&one);
    }
    return rc;
}

int history_read_traces(const char *path, struct wall start, struct traces *t, struct err *e)
{
    struct observations w = {.e = e};
    struct db_reader *db = NULL;
    int rc = db_reader_open(path, &db, e);
    if (rc != 0)
        return rc;
    rc = db_read_instances(db, false, on_instance, &w, e);
    db_reader_close(db);
    if (rc != 0)
        err_wrap(e, "%s", path);
    else if (w.n == 0)
        rc = err_set(e, ERR_NOT_FOUND, "%s: the database has no spot machine", path);
    else
        rc = add_traces(&w, path, start, t, e);
    size_t pos = 0;
    for (char *text; (text = smap_next(&w.offers, &pos, NULL));)
        free(text);
    smap_deinit(&w.offers);
    free(w.list);
    return rc;
}
