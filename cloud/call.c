/* SPDX-License-Identifier: Apache-2.0
 *
 * The life of a driver's call (see call.h). Invariants:
 *   1. The completion runs once: in cloud_call_finish or in cloud_calls_cancel, whichever is first.
 *   2. A call whose completion ran while its request was in progress has no owner; it is freed when
 *      the request ends.
 */
#include "cloud/call.h"

#include "base/mem.h"
#include "base/str.h"
#include <stdlib.h>

static void free_call(struct cloud_call *c)
{
    if (c->ops->deinit)
        c->ops->deinit(c);
    cloud_instances_deinit(&c->instances);
    cloud_prices_deinit(&c->prices);
    cloud_volumes_deinit(&c->volumes);
    cloud_quotas_deinit(&c->quotas);
    for (size_t i = 0; i < c->n_machines; i++)
        free((char *)c->machines[i].type);
    free(c->machines);
    buf_deinit(&c->console);
    for (size_t i = 0; i < c->n_words; i++)
        free(c->words[i]);
    free(c->words);
    free(c->cluster);
    free(c);
}

/* A provider's filter may match by pattern, or lag: keeps only the machines of our own cluster,
 * unless all are wanted. */
static size_t keep_own(struct cloud_call *c)
{
    struct cloud_instance *list = c->instances.list;
    size_t n = 0;
    for (size_t i = 0; i < c->instances.n; i++)
        if (!c->cluster || str_eq(list[i].cluster, c->cluster))
            list[n++] = list[i];
    return n;
}

/* The same for volumes. */
static size_t keep_own_volumes(struct cloud_call *c)
{
    struct cloud_volume *list = c->volumes.list;
    size_t n = 0;
    for (size_t i = 0; i < c->volumes.n; i++)
        if (!c->cluster || str_eq(list[i].cluster, c->cluster))
            list[n++] = list[i];
    return n;
}

static void report(struct cloud_call *c, const struct err *e)
{
    struct err wrapped;
    if (e) {
        wrapped = *e;
        e = &wrapped;
        if (e->kind == ERR_DENIED && c->ops->permission)
            err_wrap(&wrapped, "it needs the permission %s", c->ops->permission);
        err_wrap(&wrapped, "%s %s, %s", c->owner->provider, c->ops->name, c->region);
    }
    switch (c->kind) {
    case CLOUD_CALL_LAUNCH:
        c->done.launch(c->ctx, e, e ? NULL : &c->instance);
        break;
    case CLOUD_CALL_LIST:
        c->done.list(c->ctx, e, e ? NULL : c->instances.list, e ? 0 : keep_own(c));
        break;
    case CLOUD_CALL_TERMINATE:
        c->done.terminate(c->ctx, e);
        break;
    case CLOUD_CALL_PRICES:
        c->done.prices(c->ctx, e, e ? NULL : c->prices.list, e ? 0 : c->prices.n);
        break;
    case CLOUD_CALL_VOLUMES:
        c->done.volumes(c->ctx, e, e ? NULL : c->volumes.list, e ? 0 : keep_own_volumes(c));
        break;
    case CLOUD_CALL_QUOTAS:
        c->done.quotas(c->ctx, e, e ? NULL : c->quotas.list, e ? 0 : c->quotas.n);
        break;
    case CLOUD_CALL_CONSOLE:
        c->done.console(c->ctx, e, e ? NULL : buf_str(&c->console));
        break;
    case CLOUD_CALL_CREDENTIALS:
        c->done.credentials(c->ctx, e);
        break;
    }
}

void cloud_call_finish(struct cloud_call *c, const struct err *e)
{
    link_remove(&c->link);
    report(c, e);
    free_call(c);
}

static bool is_lasting(enum err_kind k)
{
    return k == ERR_CONFIG || k == ERR_DENIED || k == ERR_NOT_FOUND || k == ERR_UNSUPPORTED;
}

void cloud_call_no_credentials(struct cloud_call *c, const struct err *e)
{
    struct err definite = *e;
    if (c->kind == CLOUD_CALL_LAUNCH && !c->has_sent && e->kind != ERR_THROTTLED &&
        e->kind != ERR_CANCELLED && e->kind != ERR_CONFIG) {
        err_wrap(&definite, "no credentials, so nothing was sent");
        definite.kind = is_lasting(e->kind) ? ERR_CONFIG : ERR_NO_CREDENTIALS;
    }
    cloud_call_finish(c, &definite);
}

void cloud_calls_cancel(struct cloud_calls *s)
{
    static const struct err cancelled = {ERR_CANCELLED, "the driver was closed"};
    struct link *link;
    while ((link = list_pop(&s->all))) {
        struct cloud_call *c = LIST_ENTRY(link, struct cloud_call, link);
        timer_stop(s->timers, &c->timer);
        report(c, &cancelled);
        c->owner = NULL;
        if (c->http)
            /* the HTTP client keeps the call until its request ends */
            http_cancel(s->http, c->http);
        else
            free_call(c);
    }
}

static void on_timer(struct timer *t, void *ctx)
{
    struct cloud_call *c = ctx;
    (void)t;
    if (c->refused.kind != ERR_NONE)
        cloud_call_finish(c, &c->refused);
    else
        c->ops->step(c);
}

static void start(struct cloud_calls *s, struct cloud_call *c, const struct cloud_call_ops *ops,
    enum cloud_call_kind kind, const char *region, void *ctx)
{
    c->owner = s;
    c->ops = ops;
    c->kind = kind;
    c->ctx = ctx;
    STR_COPY(c->region, region ? region : "");
    timer_init(&c->timer, on_timer, c);
    list_push_back(&s->all, &c->link);
    timer_start(s->timers, &c->timer, 0);
}

void cloud_call_launch(struct cloud_calls *s, struct cloud_call *c,
    const struct cloud_call_ops *ops, const struct cloud_launch *l, cloud_launch_fn done, void *ctx)
{
    c->done.launch = done;
    c->on_refused = l->refused;
    start(s, c, ops, CLOUD_CALL_LAUNCH, l->region, ctx);
}

void cloud_call_add_words(struct cloud_call *c, const char *const *words, size_t n)
{
    c->words = mem_resize(c->words, c->n_words + n + 1, sizeof(*c->words));
    for (size_t i = 0; i < n; i++)
        c->words[c->n_words++] = mem_strdup(words[i]);
}

const char *cloud_call_word(const struct cloud_call *c)
{
    return c->next_word < c->n_words ? c->words[c->next_word] : NULL;
}

void cloud_call_refused(struct cloud_call *c, const struct cloud_target *p, const struct err *e)
{
    if (c->on_refused)
        c->on_refused(c->ctx, p, e);
}

void cloud_call_list(struct cloud_calls *s, struct cloud_call *c, const struct cloud_call_ops *ops,
    const char *region, const char *cluster, cloud_list_fn done, void *ctx)
{
    c->done.list = done;
    c->cluster = cluster ? mem_strdup(cluster) : NULL;
    start(s, c, ops, CLOUD_CALL_LIST, region, ctx);
}

void cloud_call_terminate(struct cloud_calls *s, struct cloud_call *c,
    const struct cloud_call_ops *ops, const char *region, cloud_done_fn done, void *ctx)
{
    c->done.terminate = done;
    start(s, c, ops, CLOUD_CALL_TERMINATE, region, ctx);
}

void cloud_call_prices(struct cloud_calls *s, struct cloud_call *c,
    const struct cloud_call_ops *ops, const char *region, cloud_prices_fn done, void *ctx)
{
    c->done.prices = done;
    start(s, c, ops, CLOUD_CALL_PRICES, region, ctx);
}

void cloud_call_volumes(struct cloud_calls *s, struct cloud_call *c,
    const struct cloud_call_ops *ops, const char *region, const char *cluster,
    cloud_volumes_fn done, void *ctx)
{
    c->done.volumes = done;
    c->cluster = cluster ? mem_strdup(cluster) : NULL;
    start(s, c, ops, CLOUD_CALL_VOLUMES, region, ctx);
}

static void keep_machines(struct cloud_call *c, const struct cloud_machine *machines, size_t n)
{
    c->machines = mem_array(n + 1, sizeof(*c->machines));
    for (size_t i = 0; i < n; i++) {
        c->machines[i] = machines[i];
        c->machines[i].type = mem_strdup(machines[i].type);
    }
    c->n_machines = n;
}

void cloud_call_quotas(struct cloud_calls *s, struct cloud_call *c,
    const struct cloud_call_ops *ops, const char *region, const struct cloud_machine *machines,
    size_t n_machines, cloud_quotas_fn done, void *ctx)
{
    if (n_machines > CLOUD_MACHINES_MAX)
        err_set(&c->refused, ERR_INVALID, "quotas of %zu kinds of machines: at most %d at a time",
            n_machines, CLOUD_MACHINES_MAX);
    else
        keep_machines(c, machines, n_machines);
    c->done.quotas = done;
    start(s, c, ops, CLOUD_CALL_QUOTAS, region, ctx);
}

void cloud_call_console(struct cloud_calls *s, struct cloud_call *c,
    const struct cloud_call_ops *ops, const char *region, cloud_console_fn done, void *ctx)
{
    c->done.console = done;
    start(s, c, ops, CLOUD_CALL_CONSOLE, region, ctx);
}

void cloud_call_credentials(struct cloud_calls *s, struct cloud_call *c,
    const struct cloud_call_ops *ops, const char *region, cloud_done_fn done, void *ctx)
{
    c->done.credentials = done;
    start(s, c, ops, CLOUD_CALL_CREDENTIALS, region, ctx);
}

static void on_reply(void *ctx, const struct err *e, const struct http_reply *reply)
{
    struct cloud_call *c = ctx;
    c->http = NULL;
    if (!c->owner)
        free_call(c);
    else if (!e)
        c->ops->on_reply(c, reply);
    else if (c->ops->on_silence)
        c->ops->on_silence(c, e);
    else
        cloud_call_finish(c, e);
}

void cloud_call_send(struct cloud_call *c, const struct http_request *r)
{
    c->has_sent = true;
    c->http = http_start(c->owner->http, r, on_reply, c);
}

void cloud_call_step(struct cloud_call *c)
{
    c->ops->step(c);
}

void cloud_call_pause(struct cloud_call *c, int64_t delay_ms)
{
    timer_start(c->owner->timers, &c->timer, delay_ms);
}
