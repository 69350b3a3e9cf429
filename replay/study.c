/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds a replay from a pool file, a log and traces, and summarises the result.
 */
#include "replay/study.h"

#include "base/buf.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/names.h"
#include "base/str.h"
#include "base/vformat.h"
#include "scheduler/config/config.h"
#include "scheduler/config/egress.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define CONFIG_BYTES_MAX (4u << 20)
#define OWNED_MAX 100000
#define CKPT_BYTES_USUAL (INT64_C(1) << 30)
#define STUDY_YEARS_MAX 20
#define STUDY_SPAN_MAX_MS (STUDY_YEARS_MAX * INT64_C(366) * 86400000)
#define OLD_MS 978307200000 /* 2001: a log that begins earlier counts from its own beginning */

int study_load_pools(const char *path, struct config **ret_config, struct err *e)
{
    struct buf text = {0};
    struct config *c = mem_alloc(sizeof *c);
    int rc = fs_read(path, CONFIG_BYTES_MAX, &text, e);
    if (rc == 0)
        rc = config_parse(path, buf_str(&text), text.len, NULL, c, e);
    buf_deinit(&text);
    if (rc == 0)
        *ret_config = c;
    else
        free(c);
    return rc;
}

void study_free_pools(struct config *c)
{
    if (c)
        config_deinit(c);
    free(c);
}

int study_parse_owned(const char *text, struct study_owned *ret_owned, struct err *e)
{
    struct study_owned o = {0};
    int64_t n = 0, cpus = 0, gpus = 0;
    int rc = 0;
    char *copy = mem_strdup(text), *rest = copy, *part, *names = strstr(copy, ",names=");
    if (names) {
        *names = '\0';
        names += strlen(",names=");
    }
    for (bool is_first = true; rc == 0 && (part = strsep(&rest, ",")); is_first = false) {
        char *value = strchr(part, '=');
        if (value)
            *value++ = '\0';
        if (!value)
            rc = err_set(e, ERR_INVALID,
                "expected POOL=COUNT,cpus=N,memory=SIZE[,gpus=N], found \"%s\"", text);
        else if (is_first && str_is_name(part, sizeof o.pool - 1))
            rc = STR_COPY(o.pool, part)
                     ? str_to_i64(value, 1, OWNED_MAX, "the number of machines", &n, e)
                     : 0;
        else if (str_eq(part, "cpus"))
            rc = str_to_i64(value, 1, 65536, "cpus", &cpus, e);
        else if (str_eq(part, "gpus"))
            rc = str_to_i64(value, 0, 64, "gpus", &gpus, e);
        else if (str_eq(part, "memory"))
            rc = str_to_mib(value, &o.total.memory_mib, e);
        else
            rc = err_set(e, ERR_INVALID,
                "expected POOL=COUNT,cpus=N,memory=SIZE[,gpus=N], found \"%s\"", text);
    }
    int64_t n_names = n;
    if (rc == 0 && names)
        rc = hosts_check(names, &n_names, e);
    if (rc == 0 && (n_names != n || (names && strlen(names) >= sizeof o.names)))
        rc = err_set(e, ERR_INVALID,
            "names= has %" PRId64 " names for %" PRId64 " machines, or more than %zu bytes",
            n_names, n, sizeof o.names - 1);
    if (rc == 0 && names)
        STR_COPY(o.names, names);
    free(copy);
    if (rc == 0 && (n == 0 || cpus == 0 || o.total.memory_mib == 0))
        rc = err_set(e, ERR_INVALID,
            "expected COUNT, cpus and memory, as in base=4,cpus=8,memory=60G,gpus=1");
    if (rc != 0)
        return rc;
    o.n = (int32_t)n;
    o.total.cpus = (int32_t)cpus;
    o.total.gpus = (int32_t)gpus;
    *ret_owned = o;
    return 0;
}

/* ---- input of the replay ---- */

struct setup {
    const struct study_options *o;
    struct study *s;
    struct replay_job *jobs;
    const struct log_job **of; /* the log's entry of each job */
    size_t n_jobs;
    struct replay_offer *offers;
    size_t n_offers;
    struct replay_owned *owned;
    size_t n_owned;
    struct pool_row *pools;
    size_t n_without_trace, n_observed, n_fits_nowhere, n_other_pool, n_other_team;
    const struct log_job *big; /* the first job that fits nowhere */
    int64_t start_ms;
};

static void note(struct study *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void note(struct study *s, const char *fmt, ...)
{
    char text[512];
    VFORMAT(text, fmt);
    s->notes = mem_resize(s->notes, s->n_notes + 1, sizeof *s->notes);
    s->notes[s->n_notes++] = mem_strdup(text);
}

static int64_t notice_of(const struct study_options *o, const char *provider)
{
    if (o->notice_ms != STUDY_BY_PROVIDER)
        return o->notice_ms;
    return str_eq(provider, "aws") ? 120000 : 30000; /* Azure and Google give 30 s */
}

static void add_offer(struct setup *u, const struct config_pool *p, const struct offer_row *row)
{
    struct replay_offer *r = &u->offers[u->n_offers++];
    *r = (struct replay_offer){.row = *row,
        .trace_from_ms = u->o->trace_from_ms,
        .trace_times = u->o->trace_times,
        .notice_ms = notice_of(u->o, p->row.provider)};
    if (row->market != MARKET_SPOT)
        return;
    const struct market_trace *t = market_find(u->o->traces, row, &r->prices_too);
    u->n_without_trace += t == NULL;
    r->trace = t ? &t->trace : NULL;
    bool prices;
    t = u->o->observed ? market_find(u->o->observed, row, &prices) : NULL;
    u->n_observed += t != NULL;
    r->observed = t ? &t->trace : NULL;
}

/* Notes traces that were given for a named offer and match none. Traces of a directory may be left
 * over. */
static void note_unused_traces(struct setup *u, const struct traces *traces)
{
    for (size_t i = 0; i < traces->n; i++) {
        const struct market_trace *t = &traces->list[i];
        bool is_used = !t->is_explicit;
        for (size_t k = 0; !is_used && k < u->n_offers; k++)
            is_used = u->offers[k].row.market == MARKET_SPOT && market_is_for(t, &u->offers[k].row);
        if (!is_used)
            note(u->s, "The trace given for %s matches no spot offer, and is not used", t->offer);
    }
}

static int add_pools(struct setup *u, struct err *e)
{
    const struct config *c = u->o->config;
    size_t n = 0, n_spot = 0;
    for (size_t i = 0; i < c->n_pools; i++)
        n += c->pools[i].n_offers;
    if (u->o->boot_p95_ms > 0 && (u->o->boot_ms == 0 || u->o->boot_p95_ms < u->o->boot_ms))
        return err_set(
            e, ERR_CONFIG, "--boot-tail is less than --boot, the median, or the median is 0");
    u->pools = mem_array(c->n_pools, sizeof *u->pools);
    u->offers = mem_array(n + 1, sizeof *u->offers);
    for (size_t i = 0; i < c->n_pools; i++) {
        const struct config_pool *p = &c->pools[i];
        u->pools[i] = p->row;
        if (p->row.elastic && p->row.boot_timeout_ms <= u->o->boot_ms)
            return err_set(e, ERR_CONFIG,
                "%s: --boot is not below the boot_timeout of pool %s, so no machine would ever "
                "join",
                u->o->file, p->row.name);
        for (size_t k = 0; k < p->n_offers; k++) {
            add_offer(u, p, &p->offers[k]);
            n_spot += p->offers[k].market == MARKET_SPOT;
        }
    }
    note_unused_traces(u, u->o->traces);
    if (u->o->observed) {
        note_unused_traces(u, u->o->observed);
        note(u->s, "%zu of %zu spot offers were observed before the first job", u->n_observed,
            n_spot);
    }
    if (u->n_without_trace > 0)
        note(u->s,
            "%zu of %zu spot offers have no trace: they are always available and never "
            "reclaimed",
            u->n_without_trace, n_spot);
    return 0;
}

/* Notes machines of --owned without a reserved pool here: they are another compared file's, or a
 * mistake. */
static void note_unused_owned(struct setup *u)
{
    const struct config *c = u->o->config;
    for (size_t k = 0; k < u->o->n_owned; k++) {
        const char *pool = u->o->owned[k].pool;
        size_t i = 0;
        while (i < c->n_pools && !str_eq(c->pools[i].row.name, pool))
            i++;
        if (i == c->n_pools)
            note(u->s, "There is no pool %s in the file: its machines of --owned are left out",
                pool);
        else if (c->pools[i].row.elastic)
            note(u->s,
                "Pool %s is elastic, so machines are launched in it: those of --owned are left out",
                pool);
    }
}

static int add_owned(struct setup *u, struct err *e)
{
    const struct config *c = u->o->config;
    u->owned = mem_array(u->o->n_owned + 1, sizeof *u->owned);
    for (size_t i = 0; i < c->n_pools; i++) {
        const struct pool_row *p = &c->pools[i].row;
        size_t before = u->n_owned;
        for (size_t k = 0; k < u->o->n_owned; k++)
            if (str_eq(u->o->owned[k].pool, p->name) && !p->elastic)
                u->owned[u->n_owned++] = (struct replay_owned){.pool = u->pools[i].name,
                    .total = u->o->owned[k].total,
                    .n = u->o->owned[k].n,
                    .names = u->o->owned[k].names[0] ? u->o->owned[k].names : NULL};
        if (!p->elastic && u->n_owned == before)
            return err_set(e, ERR_CONFIG,
                "%s: pool %s is reserved: give the number and size of its machines, as in --owned "
                "%s=4,cpus=8,memory=60G",
                u->o->file, p->name, p->name);
    }
    note_unused_owned(u);
    return 0;
}

static bool fits(const struct resources *need, const struct resources *total)
{
    return need->cpus <= total->cpus && need->gpus <= total->gpus &&
           need->memory_mib <= total->memory_mib;
}

/* Whether one machine can serve this job (one rank of it). *ret_cpus: the most CPUs of a machine
 * that the job may use. */
static bool is_servable(const struct setup *u, const struct replay_job *j, int32_t *ret_cpus)
{
    bool found = false;
    *ret_cpus = 0;
    for (size_t i = 0; i < u->n_owned + u->n_offers; i++) {
        bool is_owned = i < u->n_owned;
        const struct offer_row *o = is_owned ? NULL : &u->offers[i - u->n_owned].row;
        const struct resources *total = is_owned ? &u->owned[i].total : &o->total;
        const char *pool = is_owned ? u->owned[i].pool : o->pool;
        if (!job_pools_allow(j->pool, pool))
            continue;
        if (o && ((j->wish == WISH_SPOT && o->market == MARKET_ON_DEMAND) ||
                     (j->wish == WISH_ON_DEMAND && o->market == MARKET_SPOT)))
            continue;
        found = found || fits(&j->need, total);
        *ret_cpus = total->cpus > *ret_cpus ? total->cpus : *ret_cpus;
    }
    return found;
}

/* For a job with CPUs on an unknown number of nodes: uses as few nodes as possible. most: CPUs of
 * the largest machine. */
static void spread(struct replay_job *j, int32_t most)
{
    int64_t nodes = most > 0 ? ((int64_t)j->need.cpus + most - 1) / most : 1;
    if (nodes <= 1 || nodes > JOB_NODES_MAX)
        return;
    j->nodes = (int32_t)nodes;
    j->need.cpus = (int32_t)((j->need.cpus + nodes - 1) / nodes);
    j->need.memory_mib = (j->need.memory_mib + nodes - 1) / nodes;
}

static const char *team_of(const struct setup *u, const struct log_job *l, bool *ret_is_other)
{
    struct job_row row = {0};
    STR_COPY(row.user, l->user[0] ? l->user : "user");
    STR_COPY(row.spec.team, l->team);
    *ret_is_other = policy_resolve(&u->o->config->policy, &row, NULL) != 0;
    return *ret_is_other ? "" : l->team;
}

/* Whether one of the named pools exists. */
static bool has_pool(const struct setup *u, const char *names)
{
    for (size_t i = 0; i < u->o->config->n_pools; i++)
        if (names_has(names, u->pools[i].name))
            return true;
    return false;
}

/* Whether belayd would accept the job's deadline. With a deadline that only another scheduler
 * accepted, the job runs and is late. */
static bool can_end_in_time(const struct log_job *l)
{
    return l->ends_late && l->finish_by.ms - l->time_limit_ms > l->submit.ms;
}

/* The time of submit --finish-by, after the start; 0 if belayd would not accept it. */
static int64_t finish_of(const struct setup *u, const struct log_job *l)
{
    bool is_feasible = wall_is_set(l->finish_by) && !l->ends_late && l->wish == WISH_ANY &&
                       l->finish_by.ms > l->submit.ms;
    return is_feasible ? l->finish_by.ms - u->start_ms : 0;
}

static void add_job(struct setup *u, const struct log_job *l)
{
    bool is_other;
    int32_t most;
    struct replay_job j = {.name = l->name[0] ? l->name : NULL,
        .user = l->user[0] ? l->user : NULL,
        .team = team_of(u, l, &is_other),
        .pool = l->pool,
        .constraints = l->constraints,
        .submit_ms = l->submit.ms - u->start_ms,
        .need = l->need,
        .nodes = l->nodes,
        .wish = l->wish,
        .work_ms = l->work_ms,
        .save_ms = l->save_ms == JOBLOG_UNKNOWN ? u->o->save_ms : l->save_ms,
        .every_ms = l->every_ms,
        .ckpt_bytes = l->ckpt_bytes == JOBLOG_UNKNOWN ? CKPT_BYTES_USUAL : l->ckpt_bytes,
        .deadline_ms = can_end_in_time(l) ? l->finish_by.ms - u->start_ms : 0,
        .finish_ms = finish_of(u, l),
        .declared_ms = l->declared_ms,
        .time_limit_ms = l->time_limit_ms};
    if (j.pool[0] && (strlen(j.pool) >= CORE_NAME_MAX || !has_pool(u, j.pool))) {
        j.pool = "";
        u->n_other_pool++;
    }
    u->n_other_team += is_other;
    bool found = is_servable(u, &j, &most);
    if (!found && l->is_spread) {
        spread(&j, most);
        found = is_servable(u, &j, &most);
    }
    if (!found) {
        u->big = u->n_fits_nowhere++ == 0 ? l : u->big;
        return;
    }
    u->of[u->n_jobs] = l;
    u->jobs[u->n_jobs++] = j;
}

/* Refuses long logs: a single wrong time, or one in another unit, would mean centuries of virtual
 * time. */
static int check_span(const struct joblog *log, struct err *e)
{
    char first[TIME_ISO_MAX], last[TIME_ISO_MAX];
    if (log->n == 0 ||
        log->jobs[log->n - 1].submit.ms - log->jobs[0].submit.ms <= STUDY_SPAN_MAX_MS)
        return 0;
    time_format_iso(log->jobs[0].submit, first);
    time_format_iso(log->jobs[log->n - 1].submit, last);
    return err_set(e, ERR_INVALID,
        "the log is from %s to %s, and at most %d years are simulated: choose a part of it with "
        "--from and --to",
        first, last, STUDY_YEARS_MAX);
}

static int add_jobs(struct setup *u, struct err *e)
{
    const struct joblog *log = u->o->log;
    int rc = check_span(log, e);
    if (rc != 0)
        return rc;
    u->jobs = mem_array(log->n + 1, sizeof *u->jobs);
    u->of = mem_array(log->n + 1, sizeof *u->of);
    u->start_ms = log->n > 0 ? log->jobs[0].submit.ms : 0;
    for (size_t i = 0; i < log->n; i++)
        add_job(u, &log->jobs[i]);
    if (u->n_jobs == 0 && u->n_fits_nowhere > 0)
        return err_set(e, ERR_INVALID,
            "%s: no job of the log fits a machine that it may use; the first one needs %d cpus, %d "
            "GPUs and %" PRId64 " MiB",
            u->o->file, (int)u->big->need.cpus, (int)u->big->need.gpus, u->big->need.memory_mib);
    if (u->n_fits_nowhere > 0)
        note(u->s,
            "%zu jobs are left out, because they fit no machine that they may use; the first one "
            "needs %d cpus, %d GPUs and %" PRId64 " MiB",
            u->n_fits_nowhere, (int)u->big->need.cpus, (int)u->big->need.gpus,
            u->big->need.memory_mib);
    if (u->n_other_pool > 0)
        note(u->s, "%zu jobs name a pool that is not in the file, and may run in any pool",
            u->n_other_pool);
    if (u->n_other_team > 0)
        note(u->s,
            "%zu jobs are of teams that are not configured, and count as jobs of their users",
            u->n_other_team);
    if (u->n_jobs == 0)
        return err_set(e, ERR_INVALID, "no job of the log ran");
    return 0;
}

/* ---- results ---- */

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* The percentile of n sorted values; 0 if n is 0. */
static int64_t percentile(const int64_t *sorted, size_t n, size_t percent)
{
    size_t rank = (n * percent + 99) / 100;
    return n == 0 ? 0 : sorted[rank > 0 ? rank - 1 : 0];
}

static void sum_waits(struct study_jobs *g, int64_t *waits, size_t n)
{
    int64_t sum = 0;
    if (n > 0)
        qsort(waits, n, sizeof *waits, by_value);
    for (size_t i = 0; i < n; i++)
        sum += waits[i];
    g->started = (int64_t)n;
    g->wait_mean_ms = n ? sum / (int64_t)n : 0;
    g->wait_median_ms = percentile(waits, n, 50);
    g->wait_p95_ms = percentile(waits, n, 95);
    g->wait_max_ms = percentile(waits, n, 100);
}

static void add_outcome(const struct setup *u, size_t i, const struct replay_outcome *out,
    int64_t end_ms, struct study_jobs *g)
{
    const struct log_job *l = u->of[i];
    bool has_ended = out->ended_ms != REPLAY_NEVER,
         is_done = has_ended && out->end == END_SUCCEEDED;
    /* a job that has not succeeded is late by at least the time up to the end */
    int64_t at_ms = is_done ? out->ended_ms : end_ms;
    g->jobs++;
    g->ended += has_ended;
    g->given_up += has_ended && out->end != END_SUCCEEDED;
    g->uusd += out->uusd;
    g->lost_ms += out->lost_ms;
    g->reclaims += out->reclaims;
    g->attempts += out->attempts;
    if (!wall_is_set(l->finish_by))
        return;
    int64_t late_ms = at_ms + u->start_ms - l->finish_by.ms;
    g->with_deadline++;
    if (late_ms > 0) {
        g->late++;
        g->late_ms += late_ms;
    }
}

/* Summarises these jobs. waits has space for one entry each; afterwards it holds the waits of
 * started jobs, sorted. */
static void sum_jobs(const struct setup *u, const struct replay_outcome *out, int64_t end_ms,
    const size_t *jobs, size_t n_jobs, int64_t *waits, struct study_jobs *g)
{
    size_t n = 0;
    for (size_t k = 0; k < n_jobs; k++) {
        size_t i = jobs[k];
        add_outcome(u, i, &out[i], end_ms, g);
        if (out[i].started_ms != REPLAY_NEVER)
            waits[n++] = out[i].started_ms - u->jobs[i].submit_ms;
    }
    sum_waits(g, waits, n);
}

struct team_job {
    const char *team;
    size_t at;
};

static int by_team(const void *a, const void *b)
{
    const struct team_job *x = a, *y = b;
    int order = strcmp(x->team, y->team);
    return order ? order : (x->at > y->at) - (x->at < y->at);
}

/* Summarises the jobs of each team. Jobs without a team count under their user's name. */
static void sum_teams(
    const struct setup *u, const struct replay_outcome *out, int64_t end_ms, struct study *s)
{
    struct team_job *jobs = mem_array(u->n_jobs, sizeof *jobs);
    int64_t *waits = mem_array(u->n_jobs, sizeof *waits);
    size_t *of_team = mem_array(u->n_jobs, sizeof *of_team);
    for (size_t i = 0; i < u->n_jobs; i++)
        jobs[i] = (struct team_job){u->of[i]->team[0]   ? u->of[i]->team
                                    : u->of[i]->user[0] ? u->of[i]->user
                                                        : "user",
            i};
    qsort(jobs, u->n_jobs, sizeof *jobs, by_team);
    for (size_t from = 0, to; from < u->n_jobs; from = to) {
        s->teams = mem_resize(s->teams, s->n_teams + 1, sizeof *s->teams);
        struct study_jobs *g = &s->teams[s->n_teams++];
        *g = (struct study_jobs){0};
        STR_COPY(g->name, jobs[from].team);
        for (to = from; to < u->n_jobs && str_eq(jobs[to].team, jobs[from].team); to++)
            of_team[to - from] = jobs[to].at;
        sum_jobs(u, out, end_ms, of_team, to - from, waits, g);
    }
    free(of_team);
    free(waits);
    free(jobs);
}

static void sum_pools(
    const struct setup *u, const struct replay_outcome *out, int64_t end_ms, struct study *s)
{
    int64_t *waits = mem_array(u->n_jobs, sizeof *waits);
    size_t *started = mem_array(u->n_jobs, sizeof *started);
    s->pool_jobs = mem_array(s->n_pools, sizeof *s->pool_jobs);
    for (size_t k = 0; k < s->n_pools; k++) {
        size_t n = 0;
        for (size_t i = 0; i < u->n_jobs; i++)
            if (out[i].pool == k)
                started[n++] = i;
        sum_jobs(u, out, end_ms, started, n, waits, &s->pool_jobs[k]);
    }
    free(started);
    free(waits);
}

static void sum_all(
    const struct setup *u, const struct replay_outcome *out, int64_t end_ms, struct study *s)
{
    size_t *all = mem_array(u->n_jobs, sizeof *all);
    for (size_t i = 0; i < u->n_jobs; i++)
        all[i] = i;
    s->waits_ms = mem_array(u->n_jobs, sizeof *s->waits_ms);
    sum_jobs(u, out, end_ms, all, u->n_jobs, s->waits_ms, &s->all);
    free(all);
    if (s->all.ended < s->all.jobs)
        note(s, "%" PRId64 " of %" PRId64 " jobs had not ended when the simulation was over",
            s->all.jobs - s->all.ended, s->all.jobs);
    sum_teams(u, out, end_ms, s);
    sum_pools(u, out, end_ms, s);
}

struct watcher {
    const struct study_options *o;
    int64_t n;
};

static void on_progress(void *ctx, int64_t ended)
{
    const struct watcher *w = ctx;
    w->o->progress(w->o->ctx, ended, w->n);
}

static struct study_use use_of(const struct replay_pool *pools, size_t n)
{
    struct study_use use = {0};
    for (size_t i = 0; i < n; i++) {
        for (int k = 0; k < 2; k++) {
            use.have_ms[k] += pools[i].have_ms[k];
            use.used_ms[k] += pools[i].used_ms[k];
        }
    }
    return use;
}

struct study_use study_use(const struct study *s)
{
    return use_of(s->pools, s->n_pools);
}

/* Repeats the study without racks, to find the cost of their limits. */
static int simulate_without_racks(struct replay_options r, struct study *s, struct err *e)
{
    struct replay_pool *pools = mem_array(r.n_pools, sizeof *pools);
    struct replay_result unused;
    r.limits.tables.racks = NULL;
    r.limits.tables.n_racks = 0;
    r.progress = NULL;
    r.outcomes = NULL;
    r.by_pool = pools;
    r.by_rack = NULL;
    r.series = NULL;
    int rc = replay_run(&r, &unused, e);
    s->free_use = use_of(pools, r.n_pools);
    free(pools);
    return rc;
}

/* Allocates the results, and copies the names of pools and racks from the configuration. */
static void start_study(const struct setup *u)
{
    const struct config *c = u->o->config;
    struct study *s = u->s;
    s->n_pools = c->n_pools;
    s->pools = mem_array(c->n_pools, sizeof *s->pools);
    s->pool_names = mem_array(c->n_pools, sizeof *s->pool_names);
    s->racks = mem_array(c->n_racks, sizeof *s->racks);
    s->rack_options = c->racks;
    s->n_racks = c->n_racks;
    s->start.ms = u->start_ms;
    for (size_t i = 0; i < c->n_pools; i++)
        STR_COPY(s->pool_names[i], u->pools[i].name);
}

static struct replay_options replay_of(
    const struct setup *u, struct watcher *watcher, struct replay_outcome *outcomes)
{
    const struct study_options *o = u->o;
    const struct config *c = o->config;
    return (struct replay_options){.pools = u->pools,
        .n_pools = c->n_pools,
        .owned = u->owned,
        .n_owned = u->n_owned,
        .offers = u->offers,
        .n_offers = u->n_offers,
        .jobs = u->jobs,
        .n_jobs = u->n_jobs,
        .limits = {.max_nodes = c->max_nodes,
            .max_gpus = c->max_gpus,
            .max_uusd_h = c->max_uusd_h,
            .policy = &c->policy,
            .retries = &c->retries,
            .procurement = &c->deadlines,
            .egress = config_egress,
            .store_uusd_gib_month = c->store_uusd_gib_month,
            .retention_ms = c->store_uusd_gib_month > 0 ? c->retention.checkpoints_ms : 0,
            .tables.racks = c->racks,
            .tables.n_racks = c->n_racks},
        .start.ms = u->start_ms >= OLD_MS ? u->start_ms : 0,
        .boot_ms = o->boot_ms,
        .boot_p95_ms = o->boot_p95_ms,
        .answer_ms = o->answer_ms,
        .gone_ms = o->gone_ms,
        .restore_ms = o->restore_ms,
        .until_ms = u->jobs[u->n_jobs - 1].submit_ms + o->after_ms,
        .runs_out = true,
        .seed = o->seed,
        .progress = o->progress ? on_progress : NULL,
        .ctx = watcher,
        .outcomes = outcomes,
        .by_pool = u->s->pools,
        .by_rack = u->s->racks,
        .series = &u->s->series};
}

static int simulate(const struct setup *u, struct err *e)
{
    struct study *s = u->s;
    struct replay_outcome *outcomes = mem_array(u->n_jobs, sizeof *outcomes);
    struct watcher watcher = {u->o, (int64_t)u->n_jobs};
    start_study(u);
    const struct replay_options r = replay_of(u, &watcher, outcomes);
    int rc = replay_run(&r, &s->r, e);
    if (rc == 0 && s->n_racks > 0)
        rc = simulate_without_racks(r, s, e);
    for (int m = 0; m < 3; m++)
        s->uusd += s->r.uusd[m];
    s->uusd += s->r.spent[LEDGER_EGRESS] + s->r.spent[LEDGER_STORAGE];
    if (rc == 0)
        sum_all(u, outcomes, s->r.end_ms, s);
    else
        err_wrap(e, "%s", u->o->file);
    free(outcomes);
    return rc;
}

int study_run(const struct study_options *o, struct study *ret_study, struct err *e)
{
    struct study s = {.file = mem_strdup(o->file)};
    struct setup u = {.o = o, .s = &s};
    int rc = add_pools(&u, e);
    if (rc == 0)
        rc = add_owned(&u, e);
    if (rc == 0)
        rc = add_jobs(&u, e);
    if (rc == 0)
        rc = simulate(&u, e);
    free(u.jobs);
    free(u.of);
    free(u.offers);
    free(u.owned);
    free(u.pools);
    if (rc == 0)
        *ret_study = s;
    else
        study_deinit(&s);
    return rc;
}

void study_deinit(struct study *s)
{
    for (size_t i = 0; i < s->n_notes; i++)
        free(s->notes[i]);
    free(s->notes);
    free(s->file);
    free(s->teams);
    free(s->pool_names);
    free(s->pools);
    free(s->pool_jobs);
    free(s->waits_ms);
    free(s->racks);
    *s = (struct study){0};
}
