/* SPDX-License-Identifier: Apache-2.0
 *
 * See volumes.h. Each query (the cluster's own volumes, all, all instances) has one
 * reading:
 *
 *   --> asking --- all drivers answered --> known --- VOLUMES_KEEP_MS, next query --> asking
 *          \-- VOLUMES_WAIT_MS --> timed out (queries get the answers so far) --^
 */
#include "scheduler/volumes.h"

#include "base/list.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include <stdlib.h>

struct reading;

/* One pool's listing. */
struct part {
    struct reading *of;
    char pool[CLOUD_NAME_MAX], provider[16], region[CLOUD_NAME_MAX];
    bool over;
    struct err e; /* kind ERR_NONE = listed */
    struct cloud_volume *list;
    struct cloud_instance *instances; /* in a reading of instances, in place of `list` */
    size_t n;
};

struct waiter {
    struct link link;
    volumes_fn done;
    void *ctx;
};

struct reading {
    struct volumes *v;
    bool asking, timed_out;
    struct mono ended; /* MONO_NONE = never */
    struct part **parts;
    size_t n_parts, n_waited_for;
    struct list waiters;
    struct timer deadline;
};

struct volumes {
    struct volumes_options o;
    struct reading own, all; /* volumes */
    struct reading instances;
};

/* ---- answering ---- */

static void add_missing(const struct part *p, struct volumes_missing *list, size_t *n)
{
    static const struct err silent = {ERR_TIMEOUT, "it has not answered yet: try again later"};
    if (!p->over || p->e.kind != ERR_NONE)
        list[(*n)++] =
            (struct volumes_missing){p->pool, p->provider, p->region, p->over ? &p->e : &silent};
}

/* Adds each volume or instance once: pools of one account list the same ones. In one listing each
 * is another one, although the start of a long id may be that of another. */
static void add_found(
    const struct part *p, struct smap *seen, struct volumes_found *list, size_t *n)
{
    for (size_t i = 0; p->over && i < p->n; i++) {
        const struct cloud_instance *instance = p->instances ? &p->instances[i] : NULL;
        const struct cloud_volume *volume = instance ? NULL : &p->list[i];
        char *key = mem_printf("%s %s", p->provider, instance ? instance->id : volume->id);
        const struct part *by = smap_get(seen, key);
        if (!by || by == p)
            list[(*n)++] = (struct volumes_found){p->provider, p->region, volume, instance};
        if (!by)
            smap_put(seen, key, (void *)p);
        free(key);
    }
}

static void report(const struct reading *r, volumes_fn done, void *ctx)
{
    size_t most = 0, n_found = 0, n_missing = 0;
    struct smap seen = {0};
    for (size_t i = 0; i < r->n_parts; i++)
        most += r->parts[i]->n;
    struct volumes_found *found = mem_array(most + 1, sizeof(*found));
    struct volumes_missing *missing = mem_array(r->n_parts + 1, sizeof(*missing));
    for (size_t i = 0; i < r->n_parts; i++) {
        add_found(r->parts[i], &seen, found, &n_found);
        add_missing(r->parts[i], missing, &n_missing);
    }
    done(ctx, &(struct volumes_reading){found, n_found, missing, n_missing});
    smap_deinit(&seen);
    free(found);
    free(missing);
}

static void report_all(struct reading *r)
{
    struct list waiters = {0};
    for (struct link *l; (l = list_pop(&r->waiters));)
        list_push_back(&waiters, l);
    for (struct link *l; (l = list_pop(&waiters));) {
        struct waiter *w = LIST_ENTRY(l, struct waiter, link);
        report(r, w->done, w->ctx);
        free(w);
    }
}

/* ---- asking ---- */

static void drop_parts(struct reading *r)
{
    for (size_t i = 0; i < r->n_parts; i++) {
        free(r->parts[i]->list);
        free(r->parts[i]->instances);
        free(r->parts[i]);
    }
    free(r->parts);
    r->parts = NULL;
    r->n_parts = 0;
}

static void part_over(struct reading *r)
{
    if (--r->n_waited_for > 0)
        return;
    r->asking = r->timed_out = false;
    r->ended = clock_mono(r->v->o.timers->clock);
    timer_stop(r->v->o.timers, &r->deadline);
    report_all(r);
}

static void on_volumes(void *ctx, const struct err *e, const struct cloud_volume *list, size_t n)
{
    struct part *p = ctx;
    p->over = true;
    if (e) {
        p->e = *e;
    } else {
        p->list = mem_dup(list, n * sizeof(*list));
        p->n = n;
    }
    part_over(p->of);
}

static void on_instances(
    void *ctx, const struct err *e, const struct cloud_instance *list, size_t n)
{
    struct part *p = ctx;
    p->over = true;
    if (e) {
        p->e = *e;
    } else {
        p->instances = mem_dup(list, n * sizeof(*list));
        p->n = n;
    }
    part_over(p->of);
}

static void on_deadline(struct timer *t, void *ctx)
{
    struct reading *r = ctx;
    (void)t;
    r->timed_out = true;
    report_all(r);
}

static void start_part(struct reading *r, const struct volumes_pool *pl)
{
    const struct cloud_driver_ops *ops = pl->driver->ops;
    struct part *p = mem_alloc(sizeof(*p));
    *p = (struct part){.of = r};
    STR_COPY(p->pool, pl->pool);
    STR_COPY(p->provider, ops->provider);
    STR_COPY(p->region, pl->region);
    r->parts = mem_resize(r->parts, r->n_parts + 1, sizeof(*r->parts));
    r->parts[r->n_parts++] = p;
    r->n_waited_for++;
    if (r == &r->v->instances)
        ops->list(pl->driver, p->region, NULL, on_instances, p);
    else
        ops->volumes(
            pl->driver, p->region, r == &r->v->all ? NULL : r->v->o.cluster_uid, on_volumes, p);
}

static bool can_list(const struct reading *r, const struct cloud_driver *d)
{
    return d && (r == &r->v->instances ? d->ops->lists_account : d->ops->volumes != NULL);
}

static void start_reading(struct reading *r)
{
    const struct volumes_options *o = &r->v->o;
    struct volumes_pool pl;
    drop_parts(r);
    r->asking = true;
    r->n_waited_for = 1;
    timer_start(o->timers, &r->deadline, VOLUMES_WAIT_MS);
    for (size_t i = 0; o->pool(o->ctx, i, &pl); i++)
        if (can_list(r, pl.driver))
            start_part(r, &pl);
    part_over(r);
}

static bool is_known(const struct reading *r)
{
    bool whole = true;
    for (size_t i = 0; i < r->n_parts; i++)
        whole = whole && r->parts[i]->e.kind == ERR_NONE;
    return mono_is_set(r->ended) && clock_mono(r->v->o.timers->clock).ms - r->ended.ms <
                                        (whole ? VOLUMES_KEEP_MS : VOLUMES_RETRY_MS);
}

static void read_once(struct reading *r, volumes_fn done, void *ctx)
{
    if (r->asking ? r->timed_out : is_known(r)) {
        report(r, done, ctx);
        return;
    }
    struct waiter *w = mem_alloc(sizeof(*w));
    *w = (struct waiter){.done = done, .ctx = ctx};
    list_push_back(&r->waiters, &w->link);
    if (!r->asking)
        start_reading(r);
}

void volumes_read(struct volumes *v, bool all, volumes_fn done, void *ctx)
{
    read_once(all ? &v->all : &v->own, done, ctx);
}

void volumes_read_instances(struct volumes *v, volumes_fn done, void *ctx)
{
    read_once(&v->instances, done, ctx);
}

/* ---- life ---- */

static void init(struct reading *r, struct volumes *v)
{
    r->v = v;
    r->ended = MONO_NONE;
    timer_init(&r->deadline, on_deadline, r);
}

struct volumes *volumes_create(const struct volumes_options *o)
{
    struct volumes *v = mem_alloc(sizeof(*v));
    v->o = *o;
    init(&v->own, v);
    init(&v->all, v);
    init(&v->instances, v);
    return v;
}

static void deinit(struct reading *r)
{
    timer_stop(r->v->o.timers, &r->deadline);
    for (struct link *l; (l = list_pop(&r->waiters));)
        free(LIST_ENTRY(l, struct waiter, link));
    drop_parts(r);
}

void volumes_destroy(struct volumes *v)
{
    if (!v)
        return;
    deinit(&v->own);
    deinit(&v->all);
    deinit(&v->instances);
    free(v);
}
