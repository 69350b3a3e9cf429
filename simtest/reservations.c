/* SPDX-License-Identifier: Apache-2.0
 *
 * In some worlds operators reserve nodes and pools for maintenance (placement/maintenance.h), a
 * minute or a few at a time, some for one user's jobs. Checked against committed data: no attempt
 * is placed in an open reservation unless it is open to the job; none that cannot be saved is
 * placed whose time limit is beyond the start; at the start every other job is saved, then stopped,
 * and none is left to run; and no machine is launched into it.
 *
 * The order of events within a batch is not committed. What is placed in the batch that makes,
 * ends, or changes a reservation is therefore judged by what was committed before, or not at all.
 */
#include "simtest/world.h"

#include "base/mem.h"
#include "base/names.h"
#include "base/str.h"
#include <stdlib.h>
#include <string.h>

#define SOON_MS 90000
#define FOR_MIN_MS MAINTENANCE_MIN_MS
#define FOR_MAX_MS 240000

bool reservations_enabled(const struct world *w)
{
    return w->seed % SIM_RESERVATIONS == 2;
}

/* Some jobs may not be drained: they count as ones that cannot be saved. */
void reservations_make_submission(const struct world *w, int64_t number, struct job_row *row)
{
    if (!reservations_enabled(w) || number % 3 != 0)
        return;
    row->spec.retries.n[RETRY_DRAINED] = RETRIES_NEVER;
    if (number % 2 == 0)
        row->spec.time_limit_ms = 60000 + number % 7 * 60000;
}

/* ---- operators ---- */

static void on_done(void *ctx, const struct err *e, int64_t id)
{
    (void)ctx, (void)e, (void)id;
}

struct making {
    struct maintenance_row row;
};

static int apply_add(void *ctx, struct tick *t, int64_t *ret_id, struct err *e)
{
    struct making *k = ctx;
    struct event ev = {.type = EV_RESERVATION_ADD, .reservation = &k->row};
    return tick_apply(t, &ev, ret_id, e);
}

static void on_made(void *ctx, const struct err *e, int64_t id)
{
    (void)e, (void)id;
    free(ctx);
}

static void add(struct world *w)
{
    struct making *k = mem_alloc(sizeof(*k));
    struct maintenance_row *r = &k->row;
    *k = (struct making){
        .row = {.from_at = {world_stamp(w).wall.ms + prng_range(&w->options, 0, SOON_MS)},
            .for_ms = prng_range(&w->options, FOR_MIN_MS, FOR_MAX_MS),
            .is_weekly = prng_chance(&w->options, 0.1)}};
    snprintf(r->name, sizeof(r->name), "r%d", ++w->n_reservations_made);
    STR_COPY(r->zone, ZONE_UTC);
    STR_COPY(r->by, "ann");
    if (prng_chance(&w->options, 0.3))
        STR_COPY(r->users, "bob");
    if (prng_chance(&w->options, 0.3))
        STR_COPY(r->pool, prng_chance(&w->options, 0.7) ? "burst" : "base");
    LIST_FOREACH (model_nodes(w->model), l) {
        const struct node *n = LIST_ENTRY(l, struct node, in_all);
        size_t at = strlen(r->nodes);
        if (!r->pool[0] && at < 200 && prng_chance(&w->options, 0.5))
            snprintf(r->nodes + at, sizeof(r->nodes) - at, "%s%s", at ? "," : "", n->row.name);
    }
    tick_post_work(w->tick, apply_add, on_made, k);
}

void reservations_disturb(struct world *w)
{
    if (!reservations_enabled(w))
        return;
    for (size_t i = 0; i < MAINTENANCES_MAX; i++) {
        const struct maintenance *r = core_maintenance(w->model, i);
        struct event ev = {.type = EV_RESERVATION_REMOVE,
            .reservation_remove = {.id = r ? r->row.id : CORE_ID_NONE, .by = "ann"}};
        if (r && (w->faults_over || r->row.from_at.ms > world_stamp(w).wall.ms + SOON_MS ||
                     prng_chance(&w->options, 0.02)))
            tick_post(w->tick, &ev, on_done, NULL);
    }
    if (!w->faults_over && prng_chance(&w->options, 0.15))
        add(w);
}

/* ---- checks ---- */

static struct maintenance_row *committed(struct world *w, int64_t id)
{
    for (size_t i = 0; i < w->n_reservations; i++)
        if (w->reservations[i].id == id)
            return &w->reservations[i];
    return NULL;
}

/* The batch ends it, or moves it to its next time: then the order is unknown. */
static bool is_relaxed(const struct changes *c, const struct maintenance_row *r)
{
    for (size_t i = 0; i < c->n_reservations; i++) {
        const struct maintenance_row *to = &c->reservations[i];
        if (to->id == r->id && (to->is_over || to->from_at.ms != r->from_at.ms))
            return true;
    }
    return false;
}

static bool is_updated(const struct changes *c, const struct job_row *j)
{
    for (size_t i = 0; i < c->n_history; i++)
        if (str_eq(c->history[i].kind, "updated") &&
            (c->history[i].job == j->id || c->history[i].job == j->array))
            return true;
    return false;
}

static bool is_owner(const struct maintenance_row *r, const struct job_row *j)
{
    return r->users[0] && names_has(r->users, j->user);
}

static bool can_be_saved(const struct job_row *j)
{
    return j->spec.method != CKPT_NONE && j->used[RETRY_DRAINED] < j->spec.retries.n[RETRY_DRAINED];
}

static void check_placed(struct world *w, const struct changes *c, const struct attempt_row *a)
{
    const struct job *j = model_job(w->model, a->job);
    const struct node *n = model_node(w->model, a->node);
    if (!j || !n || check_is_known(w, a) || is_updated(c, &j->row))
        return;
    for (size_t i = 0; i < w->n_reservations; i++) {
        const struct maintenance_row *r = &w->reservations[i];
        if (is_owner(r, &j->row) || !core_maintenance_covers(r, &n->row) || is_relaxed(c, r))
            continue;
        if (r->state == MAINTENANCE_OPEN || a->assigned_at.ms >= r->from_at.ms)
            world_fail(w, "job %lld was placed on %s, which reservation %s keeps empty",
                (long long)a->job, n->row.name, r->name);
        if (!can_be_saved(&j->row) &&
            (j->row.spec.time_limit_ms == 0 ||
                a->assigned_at.ms + j->row.spec.time_limit_ms > r->from_at.ms))
            world_fail(w,
                "job %lld cannot be saved and was placed on %s, where it may still run when "
                "reservation %s begins",
                (long long)a->job, n->row.name, r->name);
    }
}

/* The batch decides what becomes of the attempt; one that is being stopped already has no row. */
static bool is_decided(const struct changes *c, const struct attempt_row *a)
{
    for (size_t i = 0; i < c->n_history; i++)
        if (str_eq(c->history[i].kind, "reservation") && c->history[i].job == a->job &&
            c->history[i].attempt == a->attempt)
            return true;
    return false;
}

/* At its start, every job there that can be saved is being saved and stopped. */
static void check_opened(struct world *w, const struct changes *c, const struct maintenance_row *r)
{
    LIST_FOREACH (model_nodes(w->model), l) {
        const struct node *n = LIST_ENTRY(l, struct node, in_all);
        if (!core_maintenance_covers(r, &n->row))
            continue;
        LIST_FOREACH (&n->attempts, la) {
            const struct attempt *a = LIST_ENTRY(la, struct attempt, on_node);
            const struct job_row *j = &a->job->row;
            if (is_owner(r, j) || is_updated(c, j))
                continue;
            if (can_be_saved(j) && a->row.state != ATTEMPT_STOPPING)
                world_fail(w, "job %lld still runs on %s although reservation %s has begun",
                    (long long)j->id, n->row.name, r->name);
            if (a->row.state != ATTEMPT_STOPPING || a->row.stop_reason != END_DRAINED ||
                !is_decided(c, &a->row))
                continue;
            if (!a->row.save_first)
                world_fail(w, "job %lld is stopped for reservation %s without being saved first",
                    (long long)j->id, r->name);
            if (!can_be_saved(j) && !n->row.drain && j->spec.nodes == 1)
                world_fail(w, "job %lld cannot be saved and is stopped for reservation %s",
                    (long long)j->id, r->name);
        }
    }
}

static void check_launched(struct world *w, const struct changes *c, const struct instance_row *row)
{
    for (size_t i = 0; row->state == INSTANCE_INTENDED && i < w->n_reservations; i++) {
        const struct maintenance_row *r = &w->reservations[i];
        if (!r->users[0] && str_eq(r->pool, row->pool) && !is_relaxed(c, r) &&
            row->intended_at.ms >= r->from_at.ms)
            world_fail(w, "instance %lld was launched into reservation %s of pool %s",
                (long long)row->id, r->name, r->pool);
    }
}

static void take(struct world *w, const struct maintenance_row *to)
{
    struct maintenance_row *r = committed(w, to->id);
    if (r && to->is_over)
        *r = w->reservations[--w->n_reservations];
    else if (r)
        *r = *to;
    else if (!to->is_over)
        w->reservations[w->n_reservations++] = *to;
}

void reservations_committed(struct world *w, const struct changes *c)
{
    if (!reservations_enabled(w))
        return;
    for (size_t i = 0; i < c->n_attempts; i++)
        check_placed(w, c, &c->attempts[i]);
    for (size_t i = 0; i < c->n_instances; i++)
        check_launched(w, c, &c->instances[i]);
    for (size_t i = 0; i < c->n_reservations; i++) {
        const struct maintenance_row *r = &c->reservations[i];
        bool is_last = true;
        for (size_t k = i + 1; k < c->n_reservations; k++)
            is_last &= c->reservations[k].id != r->id;
        if (is_last && !r->is_over && r->state == MAINTENANCE_OPEN)
            check_opened(w, c, r);
        take(w, r);
    }
}
