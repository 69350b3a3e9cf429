/* SPDX-License-Identifier: Apache-2.0
 *
 * Jobs before a job in the queue.
 */
#include "scheduler/core/forecast/ahead.h"
#include "scheduler/core/forecast/forecast_parts.h"

#include "base/names.h"
#include "base/str.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/model/text.h"
#include "scheduler/core/placement/preempt.h"
#include "scheduler/core/queue/queue.h"
#include "scheduler/core/queue/shares.h"
#include "scheduler/core/queue/queue_walk.h"

static bool share_a_pool(const struct shape *a, const struct shape *b)
{
    return !a->pool[0] || !b->pool[0] || names_intersect(a->pool, b->pool);
}

static void compare(const struct model *m, struct stamp now, const struct job *other,
    const struct job *j, char *out, size_t size)
{
    struct priority p, own;
    core_priority(m, other, now.wall, &p);
    core_priority(m, j, now.wall, &own);
    const struct {
        int64_t more_ms;
        const char *text;
    } parts[] = {{p.age_ms - own.age_ms, "has waited for longer"},
        {p.qos_ms - own.qos_ms, "its QOS counts for more"},
        {p.size_ms - own.size_ms, "its size counts for more"},
        {p.nice_ms - own.nice_ms, "its --nice is less"},
        {p.fair_ms - own.fair_ms, other->account->team == j->account->team
                                      ? "its user has used less of their share"
                                      : "its team has used less of its share"}};
    size_t best = 0;
    for (size_t k = 1; k < sizeof parts / sizeof parts[0]; k++)
        if (parts[k].more_ms > parts[best].more_ms)
            best = k;
    if (quota_owes(other->shape) && !quota_owes(j->shape))
        text_format(out, size, "its team is within its quota");
    else
        text_format(out, size, "%s", parts[best].text);
}

static void add_ahead(const struct model *m, struct stamp now, const struct job *other,
    const struct job *j, struct ahead *a)
{
    struct ahead_job *f = &a->first[a->n_first++];
    f->job = other->row.id;
    STR_COPY(f->name, other->row.spec.name);
    STR_COPY(f->user, other->row.user);
    compare(m, now, other, j, f->why, sizeof f->why);
}

/* Iteration over a shape's jobs. */
struct cursor {
    const struct job *job; /* NULL: no more jobs before it */
    struct queue_position at;
};

static struct cursor cursor_at(
    const struct model *m, const struct tree_link *l, struct queue_position own)
{
    struct cursor c = {0};
    if (!l)
        return c;
    c.job = TREE_ENTRY(l, struct job, in_shape);
    c.at = (struct queue_position){job_position_16(m, c.job), c.job->row.id};
    if (queue_position_order(c.at, own) >= 0)
        c.job = NULL;
    return c;
}

/* The first jobs overall are among those of the first shapes. */
static void add_first(const struct model *m, struct stamp now, const struct job *j,
    struct queue_position own, struct ahead *a)
{
    struct cursor first[AHEAD_SHOWN];
    struct queue_walk walk = {0};
    size_t n = 0;
    queue_walk_begin(&walk, m);
    for (const struct shape *s; n < AHEAD_SHOWN && (s = queue_walk_next(&walk)) != NULL &&
                                queue_position_order(queue_position_of(s), own) < 0;)
        if (share_a_pool(s, j->shape))
            first[n++] = cursor_at(m, tree_first(&s->pending), own);
    queue_walk_end(&walk);
    while (a->n_first < AHEAD_SHOWN) {
        struct cursor *best = NULL;
        for (size_t k = 0; k < n; k++)
            if (first[k].job && (!best || queue_position_order(first[k].at, best->at) < 0))
                best = &first[k];
        if (!best)
            return;
        add_ahead(m, now, best->job, j, a);
        *best = cursor_at(m, tree_next(&best->job->in_shape), own);
    }
}

bool core_ahead(const struct model *m, struct stamp now, int64_t job, struct ahead *ret_ahead)
{
    const struct job *j = model_job(m, job);
    struct ahead a = {.exact = true};
    int64_t left = QUEUE_WALK_MAX;
    if (!j || !tree_has(&j->in_shape) || j->shape->throttled_by)
        return false;
    const struct queue_position own = {job_position_16(m, j), j->row.id};
    for (const struct demand_class *k =
             queue_class_at_least(m, (struct queue_position){INT64_MIN, INT64_MIN});
         k && queue_position_order(k->at, own) < 0; k = queue_next_class(k)) {
        if (!share_a_pool(k->first, j->shape))
            continue;
        for (const struct shape *s = k->first;
             s && queue_position_order(queue_position_of(s), own) < 0; s = queue_next_in_class(s)) {
            struct before b = queue_before(m, s, own, &left);
            a.n += b.n;
            a.exact &= b.exact;
        }
    }
    add_first(m, now, j, own, &a);
    *ret_ahead = a;
    return true;
}
