/* SPDX-License-Identifier: Apache-2.0
 *
 * The queue: pending jobs by shape, shapes by their oldest job. A job keeps its number when it is requeued,
 * and with it its place. Nothing is ever sorted again: a change moves one job and at most one shape.
 */
#include "scheduler/core/impl.h"

#include "base/mem.h"
#include "base/str.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define SHAPE_KEY_MAX 192

static void shape_key(const struct shape *s, char *out)
{
    snprintf(out, SHAPE_KEY_MAX, "%" PRId32 " %" PRId32 " %" PRId64 " %" PRId32 " %d %d %" PRId64 " %" PRId64 " %s",
        s->need.cpus, s->need.gpus, s->need.memory_mib, s->nodes, (int)s->wish, (int)s->criu, s->avoid, s->certified_at.ms, s->pool);
}

static int order(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int compare_job(const void *key, const struct tree_link *l)
{
    return order(*(const int64_t *)key, TREE_ENTRY(l, struct job, in_shape)->row.id);
}

static int compare_head(const void *key, const struct tree_link *l)
{
    return order(*(const int64_t *)key, TREE_ENTRY(l, struct shape, in_queue)->head);
}

static struct shape *as_shape(struct tree_link *l)
{
    return l ? TREE_ENTRY(l, struct shape, in_queue) : NULL;
}

void queue_adopt(struct model *m, struct job *j)
{
    char key[SHAPE_KEY_MAX];
    struct shape want = {
        .need = j->row.need, .nodes = j->row.nodes, .wish = j->row.market, .criu = criu_needed(&j->row), .avoid = j->avoid, .certified_at = j->certified_at};
    STR_COPY(want.pool, j->row.pool);
    shape_key(&want, key);
    struct shape *s = smap_get(&m->shapes, key);
    if (!s) {
        s = mem_dup(&want, sizeof want);
        s->id = m->next_shape++;
        smap_put(&m->shapes, key, s);
    }
    s->n_jobs++;
    j->shape = s;
    m->n_gangs += s->nodes > 1;
}

/* The shape stands where its oldest pending job belongs. */
static void shape_settle(struct model *m, struct shape *s)
{
    struct tree_link *first = tree_first(&s->pending);
    int64_t head = first ? TREE_ENTRY(first, struct job, in_shape)->row.id : CORE_ID_NONE;
    if (head == s->head)
        return;
    tree_remove(&m->queue, &s->in_queue);
    s->head = head;
    if (first)
        tree_add(&m->queue, &s->in_queue, &s->head, compare_head);
}

void queue_add(struct model *m, struct job *j)
{
    tree_add(&j->shape->pending, &j->in_shape, &j->row.id, compare_job);
    shape_settle(m, j->shape);
    m->n_pending++;
    m->change++;
}

void queue_remove(struct model *m, struct job *j)
{
    if (!tree_has(&j->in_shape))
        return;
    tree_remove(&j->shape->pending, &j->in_shape);
    shape_settle(m, j->shape);
    m->n_pending--;
    m->change++;
}

void queue_disown(struct model *m, struct job *j)
{
    struct shape *s = j->shape;
    queue_remove(m, j);
    j->shape = NULL;
    m->n_gangs -= s->nodes > 1;
    if (--s->n_jobs > 0)
        return;
    char key[SHAPE_KEY_MAX];
    shape_key(s, key);
    smap_remove(&m->shapes, key);
    free(s);
}

void queue_reshape(struct model *m, struct job *j)
{
    bool pending = tree_has(&j->in_shape);
    queue_disown(m, j);
    queue_adopt(m, j);
    if (!pending)
        return;
    queue_add(m, j);
    m->rewind++; /* it may fit now where it did not */
}

struct shape *queue_first(const struct model *m)
{
    return as_shape(tree_first(&m->queue));
}

struct shape *queue_at_least(const struct model *m, int64_t head)
{
    return as_shape(tree_at_least(&m->queue, &head, compare_head));
}

struct shape *queue_next(const struct shape *s)
{
    return as_shape(tree_next(&s->in_queue));
}
