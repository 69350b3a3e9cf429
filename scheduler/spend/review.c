/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/spend/review.h"

#include "base/list.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "db/spend.h"
#include "scheduler/core/ledger/anomalies.h"
#include "scheduler/core/model/model_access.h"
#include <stdlib.h>

/* A running attempt, and its cost so far. */
struct spend_running {
    int64_t job, attempt;
    int32_t rank;
    char user[CORE_NAME_MAX], team[CORE_NAME_MAX], pool[CORE_NAME_MAX];
    struct wall from;
    int64_t uusd;
};

/* The spending of a subject by weeks, [0] of the day in question. */
struct series {
    int64_t uusd[SPEND_WEEKS_MAX + 1];
    int32_t first; /* the week of the first record */
};

struct reading {
    struct spend_review *s;
    enum spend_of of;
    struct wall day;
    struct smap subjects; /* struct series */
};

/* ---- what runs ---- */

static void note(struct spend_review *s, const struct attempt *a)
{
    struct spend_running *x = &s->running[s->n_running];
    int64_t unused;
    if (!wall_is_set(a->row.assigned_at) || a->row.assigned_at.ms >= s->now.ms)
        return;
    *x = (struct spend_running){.job = a->job->row.id,
        .attempt = a->row.attempt,
        .rank = a->row.rank,
        .from = a->row.assigned_at};
    core_cost_so_far(a, s->now, &x->uusd, &unused);
    STR_COPY(x->user, a->job->row.user);
    STR_COPY(x->pool, a->node->row.pool);
    s->n_running++;
}

void spend_review_init(struct spend_review *ret, const struct spend_limits *limits,
    const struct model *m, struct wall now, int32_t days)
{
    size_t n = 0;
    LIST_FOREACH (model_nodes(m), l)
        LIST_FOREACH (&LIST_ENTRY(l, struct node, in_all)->attempts, la)
            n++;
    *ret = (struct spend_review){.limits = *limits, .now = now, .days = days};
    ret->running = mem_array(n + 1, sizeof(*ret->running));
    LIST_FOREACH (model_nodes(m), l)
        LIST_FOREACH (&LIST_ENTRY(l, struct node, in_all)->attempts, la)
            note(ret, LIST_ENTRY(la, struct attempt, on_node));
}

/* The part of its cost so far that falls on the day. */
static int64_t cost_on(const struct spend_running *x, struct wall now, struct wall day)
{
    int64_t from = x->from.ms > day.ms ? x->from.ms : day.ms,
            to = now.ms < day.ms + DAY_MS ? now.ms : day.ms + DAY_MS;
    if (from >= to)
        return 0;
    return (int64_t)((__extension__(__int128) x->uusd) * (to - from) / (now.ms - x->from.ms));
}

static const char *subject_of(const struct spend_running *x, enum spend_of of)
{
    return of == SPEND_OF_USER ? x->user : of == SPEND_OF_TEAM ? x->team : x->pool;
}

/* ---- the weeks ---- */

static int add(void *ctx, const char *subject, int32_t week, int64_t uusd)
{
    struct reading *x = ctx;
    char key[CORE_NAME_MAX]; /* a label may be longer; rows and running attempts have this much */
    STR_COPY(key, subject);
    struct series *s = smap_get(&x->subjects, key);
    if (!s) {
        s = mem_alloc(sizeof(*s));
        smap_put(&x->subjects, key, s);
    }
    s->uusd[week] += uusd;
    if (s->first < week)
        s->first = week;
    return 0;
}

static void add_running(struct reading *x)
{
    for (size_t i = 0; i < x->s->n_running; i++) {
        const struct spend_running *run = &x->s->running[i];
        const char *subject = subject_of(run, x->of);
        for (int32_t week = 0; subject[0] && week <= x->s->limits.weeks; week++) {
            struct wall day = {x->day.ms - week * 7 * DAY_MS};
            int64_t uusd = cost_on(run, x->s->now, day);
            if (uusd > 0)
                add(x, subject, week, uusd);
        }
    }
}

static void judge(struct reading *x, const char *subject, const struct series *of)
{
    struct spend_review *s = x->s;
    struct spend_usual usual;
    if (!spend_usual(of->uusd + 1, (size_t)of->first, &s->limits, &usual) ||
        of->uusd[0] <= usual.limit_uusd)
        return;
    if (s->n_found == SPEND_FINDINGS_MAX) {
        s->more = true;
        return;
    }
    struct spend_finding *f = &s->found[s->n_found++];
    *f = (struct spend_finding){.row = {.of = x->of,
                                    .day = x->day,
                                    .uusd = of->uusd[0],
                                    .usual_uusd = usual.median_uusd > 0 ? usual.median_uusd : 0,
                                    .weeks = of->first},
        .limit_uusd = usual.limit_uusd};
    STR_COPY(f->row.subject, subject);
}

static int read_day(
    struct spend_review *s, struct db_reader *r, enum spend_of of, struct wall day, struct err *e)
{
    struct reading x = {.s = s, .of = of, .day = day};
    const char *subject;
    void *series;
    int rc = db_read_spend(r, of, day, s->limits.weeks, add, &x, e);
    if (rc == 0)
        add_running(&x);
    for (size_t pos = 0; (series = smap_next(&x.subjects, &pos, &subject)) != NULL;) {
        if (rc == 0)
            judge(&x, subject, series);
        free(series);
    }
    smap_deinit(&x.subjects);
    return rc;
}

/* The cost of an attempt that has ended meanwhile is in the sums. */
static int read_running(struct spend_review *s, struct db_reader *r, struct err *e)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < s->n_running; i++) {
        struct spend_running *x = &s->running[i];
        bool is_live;
        rc = db_read_charged_team(r, x->job, x->team, e);
        if (rc == 0)
            rc = db_read_is_live(r, x->job, x->attempt, x->rank, &is_live, e);
        if (rc == 0 && !is_live)
            x->uusd = 0;
    }
    return rc;
}

static int by_excess(const void *a, const void *b)
{
    const struct spend_finding *x = a, *y = b;
    int64_t of_x = x->row.uusd - x->row.usual_uusd, of_y = y->row.uusd - y->row.usual_uusd;
    if (of_x != of_y)
        return of_x < of_y ? 1 : -1;
    return strcmp(x->row.subject, y->row.subject);
}

int spend_review_read(struct spend_review *s, struct db_reader *r, struct err *e)
{
    int64_t today = s->now.ms / DAY_MS * DAY_MS;
    int rc = read_running(s, r, e);
    if (!s->found)
        s->found = mem_array(SPEND_FINDINGS_MAX, sizeof(*s->found));
    for (int32_t k = 0; rc == 0 && k < s->days; k++)
        for (enum spend_of of = SPEND_OF_USER; rc == 0 && of < SPEND_OFS; of++)
            rc = read_day(s, r, of, (struct wall){today - k * DAY_MS}, e);
    if (rc == 0 && s->n_found > 1)
        qsort(s->found, s->n_found, sizeof(*s->found), by_excess);
    return rc;
}

void spend_review_mark_told(struct spend_review *s, const struct model *m)
{
    for (size_t i = 0; i < s->n_found; i++) {
        const struct anomaly_row *r = &s->found[i].row;
        s->found[i].is_told = core_anomaly_is_told(m, r->of, r->subject, r->day);
    }
}

void spend_review_deinit(struct spend_review *s)
{
    free(s->running);
    free(s->found);
    *s = (struct spend_review){0};
}
