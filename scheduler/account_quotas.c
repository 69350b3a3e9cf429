/* SPDX-License-Identifier: Apache-2.0
 *
 * See account_quotas.h. One reading is in progress or known:
 *
 *   --> asking --- all drivers answered --> known --- ACCOUNT_QUOTAS_KEEP_MS, next query --> asking
 *          \-- ACCOUNT_QUOTAS_WAIT_MS --> timed out (queries get the answers so far) --^
 */
#include "scheduler/account_quotas.h"

#include "base/list.h"
#include "base/mem.h"
#include "base/str.h"
#include <stdlib.h>

/* One pool's call. */
struct part {
    struct account_quotas *of;
    char pool[CLOUD_NAME_MAX], provider[16], region[CLOUD_NAME_MAX];
    const char *page; /* the driver's; static */
    bool over;
    struct err e; /* kind ERR_NONE = read */
    struct cloud_quota *list;
    size_t n, n_machines;
    int32_t *gpus; /* of each kind of machine */
    bool all_machines;
};

struct waiter {
    struct link link;
    account_quotas_fn done;
    void *ctx;
};

struct account_quotas {
    struct account_quotas_options o;
    bool asking, timed_out;
    struct mono ended; /* MONO_NONE = never */
    struct part **parts;
    size_t n_parts, n_waited_for;
    struct list waiters;
    struct timer deadline;
};

/* ---- answering ---- */

static void report(const struct account_quotas *a, account_quotas_fn done, void *ctx)
{
    static const struct err silent = {ERR_TIMEOUT, "it has not answered yet: try again later"};
    struct account_reading *list = mem_array(a->n_parts + 1, sizeof(*list));
    for (size_t i = 0; i < a->n_parts; i++) {
        const struct part *p = a->parts[i];
        list[i] = (struct account_reading){.pool = p->pool,
            .provider = p->provider,
            .region = p->region,
            .page = p->page,
            .why = !p->over                ? &silent
                   : p->e.kind != ERR_NONE ? &p->e
                                           : NULL,
            .list = p->list,
            .n = p->n,
            .gpus = p->gpus,
            .all_machines = p->all_machines};
    }
    done(ctx, list, a->n_parts);
    free(list);
}

static void report_all(struct account_quotas *a)
{
    struct list waiters = {0};
    for (struct link *l; (l = list_pop(&a->waiters));)
        list_push_back(&waiters, l);
    for (struct link *l; (l = list_pop(&waiters));) {
        struct waiter *w = LIST_ENTRY(l, struct waiter, link);
        report(a, w->done, w->ctx);
        free(w);
    }
}

/* ---- asking ---- */

static void drop_parts(struct account_quotas *a)
{
    for (size_t i = 0; i < a->n_parts; i++) {
        free(a->parts[i]->list);
        free(a->parts[i]->gpus);
        free(a->parts[i]);
    }
    free(a->parts);
    a->parts = NULL;
    a->n_parts = 0;
}

static void part_over(struct account_quotas *a)
{
    if (--a->n_waited_for > 0)
        return;
    a->asking = a->timed_out = false;
    a->ended = clock_mono(a->o.timers->clock);
    timer_stop(a->o.timers, &a->deadline);
    report_all(a);
}

static bool has_row(const struct cloud_quota *list, size_t n, size_t machine)
{
    for (size_t i = 0; i < n; i++)
        if (list[i].machine == machine)
            return true;
    return false;
}

static void on_quotas(void *ctx, const struct err *e, const struct cloud_quota *list, size_t n)
{
    struct part *p = ctx;
    p->over = true;
    if (e)
        p->e = *e;
    else
        p->list = mem_dup(list, n * sizeof(*list));
    p->n = n;
    p->all_machines = true;
    for (size_t i = 0; i < p->n_machines; i++)
        p->all_machines = p->all_machines && has_row(list, n, i);
    part_over(p->of);
}

static void start_part(struct account_quotas *a, const struct account_pool *pl)
{
    const struct cloud_driver_ops *ops = pl->driver->ops;
    struct part *p = mem_alloc(sizeof(*p));
    p->of = a;
    p->page = ops->quotas_page;
    p->n_machines = pl->n_machines;
    p->gpus = mem_array(pl->n_machines + 1, sizeof(*p->gpus));
    for (size_t i = 0; i < pl->n_machines; i++)
        p->gpus[i] = pl->machines[i].gpus;
    STR_COPY(p->pool, pl->pool);
    STR_COPY(p->provider, ops->provider);
    STR_COPY(p->region, pl->region);
    a->parts = mem_resize(a->parts, a->n_parts + 1, sizeof(*a->parts));
    a->parts[a->n_parts++] = p;
    if (ops->quotas) {
        a->n_waited_for++;
        ops->quotas(pl->driver, p->region, pl->machines, pl->n_machines, on_quotas, p);
    } else {
        p->over = true;
        err_set(&p->e, ERR_UNSUPPORTED, "%s has no API that reports quotas", ops->provider);
    }
}

static void start_reading(struct account_quotas *a)
{
    struct account_pool *pl = mem_alloc(sizeof(*pl));
    drop_parts(a);
    a->asking = true;
    a->n_waited_for = 1;
    timer_start(a->o.timers, &a->deadline, ACCOUNT_QUOTAS_WAIT_MS);
    for (size_t i = 0; a->o.pool(a->o.ctx, i, pl); i++)
        if (pl->driver && pl->driver->ops->quotas_page)
            start_part(a, pl);
    free(pl);
    part_over(a);
}

static void on_deadline(struct timer *t, void *ctx)
{
    struct account_quotas *a = ctx;
    (void)t;
    a->timed_out = true;
    report_all(a);
}

static bool is_known(const struct account_quotas *a)
{
    bool whole = true;
    for (size_t i = 0; i < a->n_parts; i++)
        whole =
            whole && (a->parts[i]->e.kind == ERR_NONE || a->parts[i]->e.kind == ERR_UNSUPPORTED);
    return mono_is_set(a->ended) && clock_mono(a->o.timers->clock).ms - a->ended.ms <
                                        (whole ? ACCOUNT_QUOTAS_KEEP_MS : ACCOUNT_QUOTAS_RETRY_MS);
}

void account_quotas_read(struct account_quotas *a, account_quotas_fn done, void *ctx)
{
    if (a->asking ? a->timed_out : is_known(a)) {
        report(a, done, ctx);
        return;
    }
    struct waiter *w = mem_alloc(sizeof(*w));
    *w = (struct waiter){.done = done, .ctx = ctx};
    list_push_back(&a->waiters, &w->link);
    if (!a->asking)
        start_reading(a);
}

/* ---- life ---- */

struct account_quotas *account_quotas_create(const struct account_quotas_options *o)
{
    struct account_quotas *a = mem_alloc(sizeof(*a));
    a->o = *o;
    a->ended = MONO_NONE;
    timer_init(&a->deadline, on_deadline, a);
    return a;
}

void account_quotas_destroy(struct account_quotas *a)
{
    if (!a)
        return;
    timer_stop(a->o.timers, &a->deadline);
    for (struct link *l; (l = list_pop(&a->waiters));)
        free(LIST_ENTRY(l, struct waiter, link));
    drop_parts(a);
    free(a);
}
