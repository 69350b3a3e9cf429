/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/digest/digest.h"

#include "base/str.h"
#include "scheduler/core/forecast/explain.h"
#include "scheduler/core/model/model_access.h"
#include "scheduler/core/queue/budgets.h"
#include "scheduler/core/queue/queue_walk.h"
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>

#define SHAPES_EXAMINED_MAX 1000 /* of the queue, for the first jobs of a user */

/* ---- what is now ---- */

static bool is_of(const struct digest *d, const struct job_row *r)
{
    return !d->user[0] || str_eq(r->user, d->user);
}

static void look_at_running(struct digest *d, const struct model *m, struct stamp now)
{
    LIST_FOREACH (model_nodes(m), l)
        LIST_FOREACH (&LIST_ENTRY(l, struct node, in_all)->attempts, la) {
            const struct attempt *a = LIST_ENTRY(la, struct attempt, on_node);
            int64_t uusd, on_demand_uusd;
            if (a->job->row.state != JOB_RUNNING || !is_of(d, &a->job->row))
                continue;
            core_cost_so_far(a, now.wall, &uusd, &on_demand_uusd);
            d->running += a->row.rank == 0;
            d->running_uusd += uusd;
        }
}

static void add_wait(struct digest *d, const struct model *m, const struct job *j, struct stamp now)
{
    struct digest_wait *w = &d->waits[d->n_waits];
    struct explain_memo memo = {0};
    struct reason reason;
    if (!core_explain_first(m, now, j->row.id, &memo, &reason))
        return;
    w->job = job_ref(&j->row);
    STR_COPY(w->name, j->row.spec.name);
    STR_COPY(w->user, j->row.user);
    STR_COPY(w->text, reason.text);
    d->n_waits++;
}

static void look_at_queue(struct digest *d, const struct model *m, struct stamp now)
{
    struct queue_walk w = {0};
    const struct shape *s;
    queue_walk_begin(&w, m);
    for (int n = 0; n < SHAPES_EXAMINED_MAX && (s = queue_walk_next(&w)) != NULL; n++) {
        const struct job *j = model_job(m, s->head);
        if (!j || !is_of(d, &j->row))
            continue;
        d->pending += d->user[0] != '\0';
        if (d->n_waits < DIGEST_WAITS_MAX)
            add_wait(d, m, j, now);
        else if (!d->user[0])
            break;
    }
    queue_walk_end(&w);
}

static void look_at_budgets(struct digest *d, const struct model *m, struct stamp now)
{
    for (size_t k = 0; k < core_budgets(m) && d->n_budgets < DIGEST_BUDGETS_MAX; k++) {
        struct budget_view v;
        core_budget(m, k, now.wall, &v);
        if (!v.is_open || v.spent_uusd / DIGEST_BUDGET_PCT < v.options->cap_uusd / 100 ||
            (d->user[0] && !str_eq(v.options->user, d->user)))
            continue;
        struct digest_budget *b = &d->budgets[d->n_budgets++];
        STR_COPY(b->name, v.options->name);
        b->spent_uusd = v.spent_uusd;
        b->cap_uusd = v.options->cap_uusd;
    }
}

void digest_look(struct digest *d, const struct model *m, struct stamp now)
{
    struct model_counts c;
    look_at_running(d, m, now);
    look_at_queue(d, m, now);
    look_at_budgets(d, m, now);
    model_counts(m, &c);
    if (!d->user[0])
        d->pending = c.pending;
}

/* ---- what was ---- */

int digest_read(struct digest *d, struct db_reader *r, struct err *e)
{
    return db_read_night(r, d->from, d->to, d->user[0] ? d->user : NULL, &d->night, e);
}

bool digest_is_empty(const struct digest *d)
{
    const struct night *n = &d->night;
    return n->ended_well + n->cancelled + n->failed.n + n->late.n + d->running + d->pending == 0 &&
           n->cron_runs + n->cron_skipped.n + n->cron_late.n + n->n_drained == 0 &&
           n->n_anomalies == 0 && n->uusd == 0;
}

/* ---- texts ---- */

static const char *usd(int64_t uusd, char text[32])
{
    snprintf(text, 32, "$%.2f", (double)uusd / 1e6);
    return text;
}

/* Adds a text of users in one line. */
static void add_plain(struct buf *out, const char *text)
{
    for (; *text; text++)
        buf_printf(out, "%c", iscntrl((unsigned char)*text) ? '?' : *text);
}

static void add_count(struct buf *out, int64_t n, const char *what)
{
    if (n > 0)
        buf_printf(out, ", %" PRId64 " %s", n, what);
}

static int64_t count_late(const struct night *n)
{
    return n->late.n + n->cron_late.n;
}

void digest_title(const struct digest *d, struct buf *out)
{
    const struct night *n = &d->night;
    char day[ZONE_TIME_MAX], money[32];
    zone_format(d->zone, d->to, day);
    buf_printf(out, "%.10s: %" PRId64 " job%s ended well", day, n->ended_well,
        n->ended_well == 1 ? "" : "s");
    add_count(out, n->failed.n, "failed");
    add_count(out, d->running, d->running == 1 ? "still runs" : "still run");
    add_count(out, count_late(n), "late");
    buf_printf(out, ", %s spent", usd(n->uusd, money));
}

static void add_more(struct buf *out, int64_t n, int64_t shown)
{
    if (n > shown)
        buf_printf(out, "  and %" PRId64 " more\n", n - shown);
}

/* The user is named in the digest of the cluster only. */
static void add_name(const struct digest *d, const char *name, const char *user, struct buf *out)
{
    buf_adds(out, " \"");
    add_plain(out, name);
    buf_adds(out, "\"");
    if (!d->user[0]) {
        buf_adds(out, " of ");
        add_plain(out, user);
    }
}

static void add_failed(const struct digest *d, struct buf *out)
{
    const struct night_jobs *l = &d->night.failed;
    for (int64_t k = 0; k < l->n && k < NIGHT_LISTED_MAX; k++) {
        const struct night_job *j = &l->first[k];
        buf_printf(out, "  job %s", j->ref.s);
        add_name(d, j->name, j->user, out);
        buf_printf(out, ": %s, exit code %d\n", end_kind_names[j->end], (int)j->exit_code);
    }
    add_more(out, l->n, NIGHT_LISTED_MAX);
}

static void add_late_jobs(const struct digest *d, struct buf *out)
{
    const struct night_jobs *l = &d->night.late;
    char by[ZONE_TIME_MAX];
    if (l->n > 0)
        buf_printf(out, "Late against --finish-by: %" PRId64 ".\n", l->n);
    for (int64_t k = 0; k < l->n && k < NIGHT_LISTED_MAX; k++) {
        const struct night_job *j = &l->first[k];
        zone_format(d->zone, j->finish_by, by);
        buf_printf(out, "  job %s", j->ref.s);
        add_name(d, j->name, j->user, out);
        buf_printf(out, " was to end by %s: %s\n", by,
            j->end == END_NONE ? "it has not ended" : end_kind_names[j->end]);
    }
    add_more(out, l->n, NIGHT_LISTED_MAX);
}

static void add_jobs(const struct digest *d, struct buf *out)
{
    const struct night *n = &d->night;
    buf_printf(out, "Jobs: %" PRId64 " ended well, %" PRId64 " failed", n->ended_well, n->failed.n);
    add_count(out, n->cancelled, "cancelled");
    buf_printf(out, "; %" PRId64 " run, %" PRId64 " wait.\n", d->running, d->pending);
    add_failed(d, out);
    add_late_jobs(d, out);
    if (n->reclaims > 0)
        buf_printf(out,
            "Reclaims survived: %" PRId64 ", of %" PRId64 " job%s that went on or ended well.\n",
            n->reclaims, n->reclaimed_jobs, n->reclaimed_jobs == 1 ? "" : "s");
}

static void add_money(const struct digest *d, struct buf *out)
{
    const struct night *n = &d->night;
    char spent[32], saved[32], all[32], runs[32];
    int64_t saved_uusd = n->on_demand_uusd - n->uusd;
    buf_printf(out, "Money: %s spent", usd(n->uusd, spent));
    if (saved_uusd > 0)
        buf_printf(out, ", %s less than the %s of on-demand", usd(saved_uusd, saved),
            usd(n->on_demand_uusd, all));
    if (d->running > 0)
        buf_printf(out, "; what runs has cost %s so far", usd(d->running_uusd, runs));
    buf_adds(out, ".\n");
}

static void add_crons_of(
    const struct digest *d, const struct night_crons *l, const char *word, struct buf *out)
{
    for (int64_t k = 0; k < l->n_rows && k < NIGHT_LISTED_MAX; k++) {
        const struct night_cron *c = &l->first[k];
        buf_printf(out, "  %s: entry %" PRId64, word, c->cron);
        add_name(d, c->name, c->user, out);
        buf_adds(out, ": ");
        add_plain(out, c->text);
        buf_adds(out, "\n");
    }
    add_more(out, l->n_rows, NIGHT_LISTED_MAX);
}

static void add_crons(const struct digest *d, struct buf *out)
{
    const struct night *n = &d->night;
    if (n->cron_runs + n->cron_skipped.n + n->cron_late.n == 0)
        return;
    buf_printf(out,
        "Cron entries: %" PRId64 " runs started, %" PRId64 " ended well, %" PRId64
        " failed, %" PRId64 " skipped or missed, %" PRId64 " late against --done-by.\n",
        n->cron_runs, n->cron_well, n->cron_failed.n, n->cron_skipped.n, n->cron_late.n);
    add_crons_of(d, &n->cron_failed, "failed", out);
    add_crons_of(d, &n->cron_skipped, "skipped", out);
    add_crons_of(d, &n->cron_late, "late", out);
}

static void add_drained(const struct digest *d, struct buf *out)
{
    const struct night *n = &d->night;
    if (n->n_drained == 0)
        return;
    buf_printf(out, "Nodes that belay drained: %" PRId64 ".\n", n->n_drained);
    for (int64_t k = 0; k < n->n_drained && k < NIGHT_LISTED_MAX; k++) {
        buf_adds(out, "  ");
        add_plain(out, n->drained[k]);
        buf_adds(out, "\n");
    }
    add_more(out, n->n_drained, NIGHT_LISTED_MAX);
}

static void add_anomalies(const struct digest *d, struct buf *out)
{
    const struct night *n = &d->night;
    if (n->n_anomalies > 0)
        buf_printf(out, "Far more spent than usual: %" PRId64 ".\n", n->n_anomalies);
    for (int64_t k = 0; k < n->n_anomalies && k < NIGHT_LISTED_MAX; k++) {
        buf_adds(out, "  ");
        add_plain(out, n->anomalies[k]);
        buf_adds(out, "\n");
    }
    add_more(out, n->n_anomalies, NIGHT_LISTED_MAX);
}

static void add_waits(const struct digest *d, struct buf *out)
{
    if (d->n_waits > 0)
        buf_adds(out, "First in the queue:\n");
    for (size_t k = 0; k < d->n_waits; k++) {
        const struct digest_wait *w = &d->waits[k];
        buf_printf(out, "  job %s", w->job.s);
        add_name(d, w->name, w->user, out);
        buf_adds(out, " waits: ");
        add_plain(out, w->text);
        buf_adds(out, "\n");
    }
}

static void add_budgets(const struct digest *d, struct buf *out)
{
    char spent[32], cap[32];
    if (d->n_budgets > 0)
        buf_adds(out, "Budgets near their end:\n");
    for (size_t k = 0; k < d->n_budgets; k++) {
        const struct digest_budget *b = &d->budgets[k];
        buf_printf(
            out, "  %s: %s of %s\n", b->name, usd(b->spent_uusd, spent), usd(b->cap_uusd, cap));
    }
}

void digest_text(const struct digest *d, struct buf *out)
{
    char from[ZONE_TIME_MAX], to[ZONE_TIME_MAX];
    zone_format(d->zone, d->from, from);
    zone_format(d->zone, d->to, to);
    buf_printf(out, "From %s to %s.\n\n", from, to);
    add_jobs(d, out);
    add_money(d, out);
    add_anomalies(d, out);
    add_crons(d, out);
    add_drained(d, out);
    add_waits(d, out);
    add_budgets(d, out);
}

static json_t *time_json(struct wall at)
{
    char text[TIME_ISO_MAX];
    time_format_iso(at, text);
    return json_string(text);
}

json_t *digest_json(const struct digest *d)
{
    const struct night *n = &d->night;
    struct buf title = {0}, text = {0};
    digest_title(d, &title);
    digest_text(d, &text);
    json_t *o =
        json_pack("{s:o,s:o,s:o,s:b,s:o,s:o}", "from", time_json(d->from), "to", time_json(d->to),
            "user", d->user[0] ? json_text(d->user) : json_null(), "empty", (int)digest_is_empty(d),
            "title", json_text(buf_str(&title)), "text", json_text(buf_str(&text)));
    json_object_set_new(o, "jobs",
        json_pack("{s:I,s:I,s:I,s:I,s:I,s:I}", "ended_well", (json_int_t)n->ended_well, "failed",
            (json_int_t)n->failed.n, "cancelled", (json_int_t)n->cancelled, "running",
            (json_int_t)d->running, "pending", (json_int_t)d->pending, "late",
            (json_int_t)n->late.n));
    json_object_set_new(o, "reclaims", json_integer(n->reclaims));
    json_object_set_new(o, "uusd", json_integer(n->uusd));
    json_object_set_new(o, "on_demand_uusd", json_integer(n->on_demand_uusd));
    json_object_set_new(o, "crons",
        json_pack("{s:I,s:I,s:I,s:I,s:I}", "started", (json_int_t)n->cron_runs, "ended_well",
            (json_int_t)n->cron_well, "failed", (json_int_t)n->cron_failed.n, "skipped",
            (json_int_t)n->cron_skipped.n, "late", (json_int_t)n->cron_late.n));
    json_object_set_new(o, "drained", json_integer(n->n_drained));
    json_object_set_new(o, "spend_anomalies", json_integer(n->n_anomalies));
    buf_deinit(&title);
    buf_deinit(&text);
    return o;
}
