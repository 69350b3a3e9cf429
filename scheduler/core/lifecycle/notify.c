/* SPDX-License-Identifier: Apache-2.0
 *
 * See notify.h. Invariants:
 *  1. A row is created in the event of its change. Its number is from the history's counter and
 *     used only once, so that receivers can detect repetitions.
 *  2. An array is notified as a whole; its tasks only if requested (NOTIFY_ARRAY_TASKS).
 *  3. Each part of a time limit is notified once per attempt: row.warned.
 */
#include "scheduler/core/lifecycle/apply_job.h"
#include "scheduler/core/lifecycle/nodes.h"
#include "scheduler/core/lifecycle/digest_options.h"
#include "scheduler/core/lifecycle/notify.h"
#include "scheduler/core/model/changes.h"
#include "scheduler/core/model/model_access.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/model/text.h"

#include "base/mem.h"
#include "base/str.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define CLOCK_CHECK_MS 3600000LL /* interval between checks of the wall clock */

struct outbox_entry {
    struct outbox_row row;
    struct tree_link by_key, by_due;
};

/* State for the rows about one user's jobs. */
struct outbox_user {
    int64_t n;
    int64_t next_ms; /* no mail before, by the wall clock */
};

static const struct {
    enum notify_event event;
    int32_t pct;
} parts[] = {{NOTIFY_TIME_LIMIT_50, 50}, {NOTIFY_TIME_LIMIT_80, 80}, {NOTIFY_TIME_LIMIT_90, 90}};

#define BIT(event) (1 << (event))
#define PARTS (BIT(NOTIFY_TIME_LIMIT_50) | BIT(NOTIFY_TIME_LIMIT_80) | BIT(NOTIFY_TIME_LIMIT_90))

/* ---- rows ---- */

static int cmp_key(const void *key, const struct tree_link *n)
{
    const struct outbox_row *a = key, *b = &TREE_ENTRY(n, struct outbox_entry, by_key)->row;
    return a->event != b->event ? tree_order(a->event, b->event) : strcmp(a->target, b->target);
}

static int cmp_due(const void *key, const struct tree_link *n)
{
    const struct outbox_row *a = key, *b = &TREE_ENTRY(n, struct outbox_entry, by_due)->row;
    if (a->due_at.ms != b->due_at.ms)
        return tree_order(a->due_at.ms, b->due_at.ms);
    return a->event != b->event ? tree_order(a->event, b->event) : strcmp(a->target, b->target);
}

static struct outbox_entry *find(const struct model *m, int64_t event, const char *target)
{
    struct outbox_row key = {.event = event};
    STR_COPY(key.target, target);
    struct tree_link *n = tree_at_least(&m->lifecycle.outbox, &key, cmp_key);
    return n && cmp_key(&key, n) == 0 ? TREE_ENTRY(n, struct outbox_entry, by_key) : NULL;
}

const struct outbox_row *core_outbox_next(const struct model *m, const struct outbox_row *after)
{
    const struct outbox_entry *l = after ? find(m, after->event, after->target) : NULL;
    const struct tree_link *n = l ? tree_next(&l->by_due) : tree_first(&m->lifecycle.outbox_due);
    return n ? &TREE_ENTRY(n, struct outbox_entry, by_due)->row : NULL;
}

static bool is_mail(const struct outbox_row *r)
{
    return str_eq(r->target, "mail");
}

static void outbox_insert(struct model *m, const struct outbox_row *row)
{
    struct outbox_entry *l = mem_alloc(sizeof *l);
    l->row = *row;
    tree_add(&m->lifecycle.outbox, &l->by_key, &l->row, cmp_key);
    tree_add(&m->lifecycle.outbox_due, &l->by_due, &l->row, cmp_due);
    struct outbox_user *s = smap_get(&m->lifecycle.outbox_users, row->user);
    if (!s) {
        s = mem_alloc(sizeof *s);
        smap_put(&m->lifecycle.outbox_users, row->user, s);
    }
    s->n++;
    if (is_mail(row) && s->next_ms < row->due_at.ms + MAIL_EVERY_MS)
        s->next_ms = row->due_at.ms + MAIL_EVERY_MS;
}

static void outbox_remove(struct model *m, struct outbox_entry *l)
{
    struct outbox_user *s = smap_get(&m->lifecycle.outbox_users, l->row.user);
    tree_remove(&m->lifecycle.outbox, &l->by_key);
    tree_remove(&m->lifecycle.outbox_due, &l->by_due);
    if (--s->n == 0) {
        smap_remove(&m->lifecycle.outbox_users, l->row.user);
        free(s);
    }
    struct outbox_key *done = ADD_ROW(m, outbox_done);
    done->event = l->row.event;
    STR_COPY(done->target, l->row.target);
    free(l);
}

static bool is_of_job(const struct outbox_row *r)
{
    return !r->budget[0] && !r->pool[0] && !r->cron && r->kind != NOTIFY_DIGEST &&
           r->kind != NOTIFY_SPEND;
}

int model_load_outbox(struct model *m, const struct outbox_row *r, struct err *e)
{
    if (r->event < 1 || (is_of_job(r) ? r->job < 1 : r->job != CORE_ID_NONE) || r->tries < 0 ||
        !r->target[0] || find(m, r->event, r->target))
        return err_set(e, ERR_CORRUPT,
            "a stored notification of job %" PRId64 " contradicts other rows", r->job);
    outbox_insert(m, r);
    return 0;
}

void notify_deinit(struct model *m)
{
    struct tree_link *n;
    while ((n = tree_first(&m->lifecycle.outbox)) != NULL)
        outbox_remove(m, TREE_ENTRY(n, struct outbox_entry, by_key));
    smap_deinit(&m->lifecycle.outbox_users);
}

/* ---- changes ---- */

static bool is_wanted(int32_t events, enum notify_event kind)
{
    int32_t wanted = events & BIT(kind);
    if (kind == NOTIFY_FAIL || kind == NOTIFY_TIME_LIMIT || kind == NOTIFY_INVALID_DEPEND)
        wanted |= events & (BIT(NOTIFY_END) | BIT(NOTIFY_FAIL));
    return wanted != 0;
}

static bool add(struct model *m, const struct outbox_row *row)
{
    const struct outbox_user *s = smap_get(&m->lifecycle.outbox_users, row->user);
    struct outbox_row r = *row;
    if (m->lifecycle.outbox.n >= OUTBOX_MAX || (s && s->n >= OUTBOX_USER_MAX))
        return false;
    if (is_mail(&r) && s && s->next_ms > r.due_at.ms)
        r.due_at.ms = s->next_ms;
    outbox_insert(m, &r);
    *ADD_ROW(m, outbox) = r;
    return true;
}

/* Adds a row for each recipient; returns how many did not fit. */
static int add_for_recipients(struct model *m, const struct job_row *j, enum notify_event kind,
    bool is_task, struct outbox_row *row)
{
    int left_out = 0;
    bool of_policy = kind == NOTIFY_IDLE_GPUS; /* each task holds its own GPUs */
    bool of_tasks = !is_task || of_policy || (j->spec.mail & NOTIFY_ARRAY_TASKS) != 0;
    if (of_policy || (of_tasks && is_wanted(j->spec.mail, kind))) {
        STR_COPY(row->target, "mail");
        left_out += !add(m, row);
    }
    /* URLs are notified of parts of the time limit only on request */
    bool of_urls = of_tasks && (!(BIT(kind) & PARTS) || (j->spec.mail & BIT(kind)));
    for (int32_t k = 0; of_urls && k < j->spec.urls; k++) {
        text_format(row->target, sizeof row->target, "url:%" PRId32, k);
        left_out += !add(m, row);
    }
    for (size_t k = 0; k < m->options.tables.n_hooks; k++) {
        const struct notify_hook *h = &m->options.tables.hooks[k];
        if (!is_wanted(h->events, kind) ||
            (is_task && !of_policy && !(h->events & NOTIFY_ARRAY_TASKS)))
            continue;
        text_format(row->target, sizeof row->target, "hook:%s", h->name);
        left_out += !add(m, row);
    }
    return left_out;
}

static struct outbox_row new_row(struct model *m, enum notify_event kind, struct stamp now)
{
    return (struct outbox_row){.event = NEXT_ID(m, history),
        .kind = kind,
        .at = now.wall,
        .due_at = now.wall,
        .cron_at = WALL_NONE,
        .done_by = WALL_NONE,
        .idle_since = WALL_NONE,
        .parks_at = WALL_NONE,
        .digest_from = WALL_NONE,
        .digest_to = WALL_NONE,
        .day = WALL_NONE};
}

static struct outbox_row row_of_job(
    struct model *m, const struct job *j, enum notify_event kind, struct stamp now)
{
    struct outbox_row row = new_row(m, kind, now);
    row.job = j->row.id;
    row.attempt = j->row.attempts;
    row.end = j->row.end;
    row.exit_code = j->row.exit_code;
    STR_COPY(row.user, j->row.user);
    return row;
}

static void add_of_job(
    struct model *m, const struct job *j, struct outbox_row *row, struct stamp now)
{
    int left_out = add_for_recipients(m, &j->row, row->kind, j->parent != NULL, row);
    if (left_out > 0)
        history(m, now, "not-told", (struct history_of){.job = j},
            "%d notifications of this event were dropped: too many are waiting for delivery",
            left_out);
}

void notify(struct model *m, const struct job *j, enum notify_event kind, struct stamp now)
{
    struct outbox_row row = row_of_job(m, j, kind, now);
    add_of_job(m, j, &row, now);
}

void notify_idle_gpus(struct model *m, const struct job *j, struct wall since, struct wall parks_at,
    int64_t uusd_h, struct stamp now)
{
    struct outbox_row row = row_of_job(m, j, NOTIFY_IDLE_GPUS, now);
    row.idle_since = since;
    row.parks_at = parks_at;
    row.spent_uusd = uusd_h;
    row.pct = job_attempt(j)->node->pool->row.idle_gpus.busy_pct;
    add_of_job(m, j, &row, now);
}

/* Adds a row for each hook subscribed to events without a job; returns how many did not fit. */
static int add_for_hooks(struct model *m, struct outbox_row *row)
{
    int left_out = 0;
    for (size_t k = 0; k < m->options.tables.n_hooks; k++) {
        if (!(m->options.tables.hooks[k].events & BIT(row->kind)))
            continue;
        text_format(row->target, sizeof row->target, "hook:%s", m->options.tables.hooks[k].name);
        left_out += !add(m, row);
    }
    return left_out;
}

void notify_boots(struct model *m, const struct pool *p, struct stamp now)
{
    struct outbox_row row = new_row(m, NOTIFY_BOOTS, now);
    row.pct = p->row.boots.failed;
    STR_COPY(row.pool, p->row.name);
    int left_out = add_for_hooks(m, &row);
    if (left_out > 0)
        history(m, now, "not-told", (struct history_of){0},
            "%d notifications of pool %s were dropped: too many are waiting for delivery", left_out,
            p->row.name);
}

void notify_node_drained(struct model *m, const struct node *n, const char *jobs, struct stamp now)
{
    struct outbox_row row = new_row(m, NOTIFY_NODE_DRAINED, now);
    row.pct = node_ends_when_empty(n);
    STR_COPY(row.pool, n->pool->row.name);
    STR_COPY(row.node, n->row.name);
    STR_COPY(row.text, n->row.drain_text);
    STR_COPY(row.jobs, jobs);
    int left_out = add_for_hooks(m, &row);
    if (left_out > 0)
        history(m, now, "not-told", (struct history_of){.node = n},
            "%d notifications of the drain of %s were dropped: too many are waiting for delivery",
            left_out, n->row.name);
}

void notify_budget(struct model *m, const struct budget_options *b, int32_t pct, int64_t spent_uusd,
    struct stamp now)
{
    int left_out = 0;
    struct outbox_row row = new_row(m, NOTIFY_BUDGET, now);
    row.pct = pct;
    row.spent_uusd = spent_uusd;
    row.cap_uusd = b->cap_uusd;
    STR_COPY(row.budget, b->name);
    for (int32_t k = 0; k < b->n_mails; k++) {
        text_format(row.target, sizeof row.target, "mail:%" PRId32, k);
        left_out += !add(m, &row);
    }
    left_out += add_for_hooks(m, &row);
    if (left_out > 0)
        history(m, now, "not-told", (struct history_of){0},
            "%d notifications of budget %s were dropped: too many are waiting for delivery",
            left_out, b->name);
}

void notify_late(struct model *m, const struct cron_entry *c, struct wall at, struct wall done_by,
    const char *why, struct stamp now)
{
    int left_out = 0;
    struct outbox_row row = new_row(m, NOTIFY_LATE, now);
    row.cron = c->row.id;
    row.cron_at = at;
    row.done_by = done_by;
    STR_COPY(row.user, c->row.user);
    text_format(row.text, sizeof row.text, "%s", why);
    int32_t minute = c->row.done_by > 0 ? c->row.done_by - 1 : 0;
    history(m, now, "late", (struct history_of){.a = c->row.id, .b = at.ms},
        "cron entry %" PRId64 " is not done by %02d:%02d", c->row.id, minute / 60, minute % 60);
    if (c->job.spec.mail || c->job.spec.urls == 0) {
        STR_COPY(row.target, "mail");
        left_out += !add(m, &row);
    }
    for (int32_t k = 0; k < c->job.spec.urls; k++) {
        text_format(row.target, sizeof row.target, "url:%" PRId32, k);
        left_out += !add(m, &row);
    }
    left_out += add_for_hooks(m, &row);
    if (left_out > 0)
        history(m, now, "not-told", (struct history_of){0},
            "%d notifications of cron entry %s were dropped: too many are waiting for delivery",
            left_out, c->row.name);
}

struct spending {
    struct model *m;
    const struct anomaly_row *of;
    struct stamp now;
    int left_out;
};

static struct outbox_row spend_row(const struct spending *s)
{
    const struct anomaly_row *a = s->of;
    struct outbox_row row = new_row(s->m, NOTIFY_SPEND, s->now);
    row.spend_of = a->of;
    STR_COPY(row.subject, a->subject);
    row.day = a->day;
    row.spent_uusd = a->uusd;
    row.cap_uusd = a->usual_uusd;
    row.pct = a->weeks;
    return row;
}

static void mail_spending(void *ctx, const char *user)
{
    struct spending *s = ctx;
    struct outbox_row row = spend_row(s);
    STR_COPY(row.user, user);
    STR_COPY(row.target, "mail");
    s->left_out += !add(s->m, &row);
}

void notify_anomaly(struct model *m, const struct anomaly_row *a, struct stamp now)
{
    const struct anomaly_options *o = &m->options.tables.anomalies;
    struct spending s = {.m = m, .of = a, .now = now};
    struct outbox_row row = spend_row(&s);
    for (int32_t k = 0; k < o->n_mails; k++) {
        text_format(row.target, sizeof row.target, "mail:%" PRId32, k);
        s.left_out += !add(m, &row);
    }
    s.left_out += add_for_hooks(m, &row);
    if (o->to_users && a->of == SPEND_OF_USER)
        mail_spending(&s, a->subject);
    else if (o->to_users && a->of == SPEND_OF_TEAM)
        policy_leads(model_policy(m), a->subject, mail_spending, &s);
    if (s.left_out > 0)
        history(m, now, "not-told", (struct history_of){0},
            "%d notifications of the spending of %s %s were dropped: too many are waiting for "
            "delivery",
            s.left_out, spend_of_names[a->of], a->subject);
}

static struct outbox_row digest_row(
    struct model *m, struct wall from, struct wall to, struct stamp now)
{
    struct outbox_row row = new_row(m, NOTIFY_DIGEST, now);
    row.digest_from = from;
    row.digest_to = to;
    return row;
}

void notify_digest(struct model *m, struct wall from, struct wall to, struct stamp now)
{
    struct outbox_row row = digest_row(m, from, to, now);
    const struct digest_row *of;
    const char *user;
    int left_out = 0;
    for (int32_t k = 0; k < m->options.tables.digest->n_mails; k++) {
        text_format(row.target, sizeof row.target, "mail:%" PRId32, k);
        left_out += !add(m, &row);
    }
    left_out += add_for_hooks(m, &row);
    for (size_t pos = 0; (of = smap_next(&m->lifecycle.digest_users, &pos, &user)) != NULL;) {
        row = digest_row(m, from, to, now);
        STR_COPY(row.user, user);
        STR_COPY(row.target, "mail");
        left_out += of->mail[0] && !add(m, &row);
        STR_COPY(row.target, "url:0");
        left_out += of->url[0] && !add(m, &row);
    }
    if (left_out > 0)
        history(m, now, "not-told", (struct history_of){0},
            "%d morning digests were dropped: too many notifications are waiting for delivery",
            left_out);
}

void notify_ended(struct model *m, const struct job *j, struct stamp now)
{
    enum end_kind end = j->row.end;
    notify(m, j,
        end == END_SUCCEEDED || end == END_CANCELLED ? NOTIFY_END
        : end == END_TIMEOUT                         ? NOTIFY_TIME_LIMIT
        : end == END_DEPENDENCY                      ? NOTIFY_INVALID_DEPEND
                                                     : NOTIFY_FAIL,
        now);
}

/* ---- parts of the time limit ---- */

static int cmp_warn(const void *key, const struct tree_link *n)
{
    const struct job_side *a = key, *b = TREE_ENTRY(n, struct job_side, by_warn);
    return a->warn_at.ms != b->warn_at.ms ? tree_order(a->warn_at.ms, b->warn_at.ms)
                                          : tree_order(a->job->row.id, b->job->row.id);
}

static int32_t wanted_parts(const struct model *m, const struct job *j)
{
    int32_t events = j->parent && !(j->row.spec.mail & NOTIFY_ARRAY_TASKS) ? 0 : j->row.spec.mail;
    for (size_t k = 0; k < m->options.tables.n_hooks; k++)
        if (!j->parent || (m->options.tables.hooks[k].events & NOTIFY_ARRAY_TASKS))
            events |= m->options.tables.hooks[k].events;
    return events & PARTS & ~j->row.warned;
}

void notify_watch(struct model *m, struct job *j)
{
    const struct attempt *a = job_attempt(j);
    int32_t wanted = wanted_parts(m, j);
    notify_unwatch(m, j);
    if (!a || !wall_is_set(a->row.started_at) || j->row.spec.time_limit_ms == 0 ||
        j->row.state != JOB_RUNNING)
        return;
    for (size_t k = 0; k < sizeof parts / sizeof parts[0]; k++)
        if (wanted & BIT(parts[k].event)) {
            struct job_side *t = job_make_side(j);
            t->warn_at.ms = a->row.started_at.ms + j->row.spec.time_limit_ms / 100 * parts[k].pct;
            tree_add(&m->lifecycle.by_warn, &t->by_warn, t, cmp_warn);
            return;
        }
}

void notify_unwatch(struct model *m, struct job *j)
{
    if (j->side)
        tree_remove(&m->lifecycle.by_warn, &j->side->by_warn);
}

struct mono notify_due(const struct model *m, struct stamp now, struct event *ret_event)
{
    const struct tree_link *first = tree_first(&m->lifecycle.by_warn);
    if (!first)
        return MONO_NONE;
    const struct job_side *t = TREE_ENTRY(first, struct job_side, by_warn);
    *ret_event = (struct event){.type = EV_WARN, .warn.job = t->job->row.id};
    return stamp_until_checked(now, t->warn_at, CLOCK_CHECK_MS);
}

/* After downtime of belayd only the last part that passed is notified. */
int apply_warn(struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    struct job *j = model_job(m, ev->warn.job);
    if (!j || !j->side || !tree_has(&j->side->by_warn) || j->side->warn_at.ms > ev->now.wall.ms)
        return err_set(e, ERR_CONFLICT,
            "no notification of the time limit of job %" PRId64 " is due (any more)", ev->warn.job);
    int64_t started = job_attempt(j)->row.started_at.ms, step = j->row.spec.time_limit_ms / 100;
    int32_t wanted = wanted_parts(m, j);
    size_t last = 0;
    for (size_t k = 0; k < sizeof parts / sizeof parts[0]; k++)
        if (started + step * parts[k].pct <= ev->now.wall.ms && (wanted & BIT(parts[k].event))) {
            j->row.warned |= BIT(parts[k].event);
            last = k;
        }
    touch_job(m, j);
    history(m, ev->now, "time-limit",
        (struct history_of){.attempt = job_attempt(j), .a = parts[last].pct},
        "%" PRId32 " percent of its time limit have passed", parts[last].pct);
    notify(m, j, parts[last].event, ev->now);
    notify_watch(m, j);
    ret_outcome->id = j->row.id;
    return 0;
}

/* ---- results of deliveries ---- */

int apply_delivered(
    struct model *m, const struct event *ev, struct outcome *ret_outcome, struct err *e)
{
    struct outbox_entry *l = find(m, ev->delivered.event, ev->delivered.target);
    (void)e;
    ret_outcome->id = ev->delivered.event;
    if (!l)
        return 0; /* already reported */
    bool give_up = ev->delivered.failed &&
                   (ev->delivered.is_permanent || l->row.tries + 1 >= OUTBOX_TRIES_MAX);
    if (give_up) {
        history(m, ev->now, "not-told", (struct history_of){0}, "%s: %s", l->row.target,
            ev->delivered.text);
        history_last(m)->job = l->row.job;
    }
    if (give_up || !ev->delivered.failed) {
        outbox_remove(m, l);
        return 0;
    }
    tree_remove(&m->lifecycle.outbox_due, &l->by_due);
    l->row.tries++;
    l->row.due_at.ms = ev->now.wall.ms + ev->delivered.retry_ms;
    tree_add(&m->lifecycle.outbox_due, &l->by_due, &l->row, cmp_due);
    *ADD_ROW(m, outbox) = l->row;
    return 0;
}
