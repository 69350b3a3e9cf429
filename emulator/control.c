/* SPDX-License-Identifier: Apache-2.0
 *
 *     GET  /state                           every instance, pool and counter
 *     GET  /events?after=N&max=M&wait_s=S   the journal after entry N, waiting for one up to S
 *          seconds
 *     POST /events                          applies events (region_event.h)
 */
#include "emulator/control.h"
#include "base/mem.h"
#include "base/str.h"
#include "emulator/emulator.h"
#include <stdlib.h>

#define BODY_MAX (1u << 20)
#define EVENTS_MAX 1000
#define JOURNAL_PAGE 10000
#define WAIT_S_MAX 60

/* ---- GET /state ---- */

static void set_time(json_t *o, const char *key, struct wall w)
{
    json_object_set_new(o, key, wall_is_set(w) ? json_integer(w.ms) : json_null());
}

static json_t *describe_instance(const struct region *r, struct instance *i, struct wall now)
{
    const struct launch_spec *s = &i->reservation->spec;
    json_t *o = json_object();
    instance_bill(i, now);
    json_object_set_new(o, "provider", json_string(region_provider(r)));
    json_object_set_new(o, "instance", json_string(i->id));
    json_object_set_new(o, "number", json_integer(i->number));
    json_object_set_new(o, "state", json_string(instance_state_name(i->state)));
    json_object_set_new(o, "zone", json_string(i->pool->zone));
    json_object_set_new(o, "type", json_string(i->pool->type));
    json_object_set_new(o, "market", json_string(s->market == CLOUD_SPOT ? "spot" : "on-demand"));
    json_object_set_new(o, "token", json_text(s->token));
    json_object_set_new(o, "name", json_text(s->name));
    json_object_set_new(o, "tags", tags_json(&i->tags));
    json_object_set_new(o, "reclaimed", json_boolean(i->is_reclaimed));
    json_object_set_new(o, "reason", json_text(i->reason_code));
    set_time(o, "launched_ms", i->launched_at);
    set_time(o, "running_ms", i->running_at);
    set_time(o, "rebalance_ms", i->rebalance_at);
    set_time(o, "noticed_ms", i->noticed_at);
    set_time(o, "deadline_ms", i->deadline);
    set_time(o, "ended_ms", i->ended_at);
    set_time(o, "gone_ms", i->gone_at);
    json_object_set_new(o, "cost_uusd", json_integer(i->cost_uusd));
    json_object_set_new(o, "metadata", json_string(machine_metadata_url(i)));
    json_object_set_new(o, "pid", json_integer(machine_pid(i)));
    return o;
}

static json_t *describe_capacity(int64_t n)
{
    return n == MARKET_UNLIMITED ? json_null() : json_integer(n);
}

static json_t *describe_pool(const struct region *r, const struct market_pool *p)
{
    static const char *const names[] = {"spot", "on_demand"};
    json_t *o = json_object();
    json_object_set_new(o, "provider", json_string(region_provider(r)));
    json_object_set_new(o, "zone", json_string(p->zone));
    json_object_set_new(o, "type", json_string(p->type));
    for (int m = 0; m < 2; m++) {
        json_t *side = json_object();
        json_object_set_new(side, "capacity", describe_capacity(p->capacity[m]));
        json_object_set_new(side, "in_use", json_integer(p->in_use[m]));
        json_object_set_new(side, "uusd_h", json_integer(p->price_uusd_h[m]));
        json_object_set_new(o, names[m], side);
    }
    return o;
}

/* Sums numbers of several regions. */
static void add_number(json_t *sums, const char *name, int64_t n)
{
    json_object_set_new(
        sums, name, json_integer(json_integer_value(json_object_get(sums, name)) + n));
}

static void add_counts(json_t *sums, const struct region_counts *c)
{
    const struct {
        const char *name;
        int64_t n;
    } counts[] = {{"launch_calls", c->launch_calls}, {"launches", c->launches},
        {"replays", c->replays}, {"refusals", c->refusals}, {"notices", c->notices},
        {"reclaims", c->reclaims}, {"rebalances", c->rebalances}, {"power_offs", c->power_offs},
        {"terminations", c->terminations}};
    for (size_t k = 0; k < sizeof(counts) / sizeof(counts[0]); k++)
        add_number(sums, counts[k].name, counts[k].n);
}

static int64_t count_alive(const struct region *r)
{
    int64_t n = 0;
    LIST_FOREACH (&r->alive, l)
        n += l != NULL;
    return n;
}

static int64_t add_instances(struct region *r, struct wall now, json_t *instances)
{
    int64_t cost_uusd = 0;
    for (size_t k = 0; k < r->n_instances; k++) {
        json_array_append_new(instances, describe_instance(r, r->instances[k], now));
        cost_uusd += r->instances[k]->cost_uusd;
    }
    return cost_uusd;
}

/* The region's own sums, which are also added to those of all regions. */
static json_t *describe_region(struct region *r, struct wall now, json_t *all)
{
    json_t *o = json_object(), *counts = json_object();
    region_advance(r, now);
    int64_t cost_uusd = add_instances(r, now, json_object_get(all, "instances"));
    for (size_t k = 0; k < r->market.n_pools; k++)
        json_array_append_new(json_object_get(all, "pools"), describe_pool(r, &r->market.pools[k]));
    add_counts(counts, &r->counts);
    add_counts(json_object_get(all, "counts"), &r->counts);
    add_number(all, "alive", count_alive(r));
    add_number(all, "cost_uusd", cost_uusd);
    json_object_set_new(o, "region", json_string(r->o->name));
    json_object_set_new(o, "alive", json_integer(count_alive(r)));
    json_object_set_new(o, "cost_uusd", json_integer(cost_uusd));
    json_object_set_new(o, "counts", counts);
    if (r->describe)
        json_object_set_new(o, "resources", r->describe(r->describe_ctx, now));
    return o;
}

json_t *control_state(struct region *const *regions, size_t n_regions, struct wall now)
{
    json_t *o = json_object(), *providers = json_object();
    json_object_set_new(o, "region", json_string(regions[0]->o->name));
    json_object_set_new(o, "now_ms", json_integer(now.ms));
    json_object_set_new(o, "start_ms", json_integer(regions[0]->start.ms));
    json_object_set_new(o, "last_seq", json_null());
    json_object_set_new(o, "providers", providers);
    json_object_set_new(o, "counts", json_object());
    json_object_set_new(o, "pools", json_array());
    json_object_set_new(o, "instances", json_array());
    for (size_t k = 0; k < n_regions; k++)
        json_object_set_new(
            providers, region_provider(regions[k]), describe_region(regions[k], now, o));
    json_object_set_new(o, "last_seq", json_integer(regions[0]->journal->last_seq));
    return o;
}

/* ---- POST /events ---- */

/* The region an event applies to: the one it names, the only one, or the one that has the instance.
 */
static struct region *choose_region(
    struct region *const *regions, size_t n_regions, const struct region_event *ev, struct err *e)
{
    for (size_t k = 0; k < n_regions; k++)
        if (ev->provider[0] ? str_eq(region_provider(regions[k]), ev->provider) : n_regions == 1)
            return regions[k];
    for (size_t k = 0; k < n_regions && !ev->provider[0]; k++)
        if (ev->pick == PICK_ONE && region_find(regions[k], ev->instance))
            return regions[k];
    if (ev->provider[0])
        err_set(e, ERR_NOT_FOUND,
            "provider: %s is not emulated here; GET /state lists those that are", ev->provider);
    else if (ev->pick == PICK_ONE && ev->instance[0])
        err_set(e, ERR_NOT_FOUND, "there is no instance %s; GET /state lists them", ev->instance);
    else
        err_set(e, ERR_INVALID, "provider: required, because %zu are emulated", n_regions);
    return NULL;
}

static int apply_to(struct region *r, const struct region_event *ev, struct wall now,
    json_t *results, struct err *e)
{
    json_t *reply = NULL;
    region_advance(r, now);
    int rc = region_apply(r, ev, now, &reply, e);
    region_advance(r, now);
    if (rc == 0)
        json_array_append_new(results, reply);
    return rc;
}

static int apply_one(struct region *const *regions, size_t n_regions, const json_t *value,
    struct wall now, json_t *results, struct err *e)
{
    struct region_event ev;
    int rc = region_event_parse(value, &ev, e);
    if (rc < 0)
        return rc;
    struct region *r = choose_region(regions, n_regions, &ev, e);
    return r ? apply_to(r, &ev, now, results, e) : (int)e->kind;
}

int control_events(struct region *const *regions, size_t n_regions, const char *text, size_t n,
    struct wall now, json_t **ret_reply, struct err *e)
{
    json_t *root = NULL, *results = json_array();
    int rc = json_parse(text, n, BODY_MAX, &root, e);
    size_t count = json_is_array(root) ? json_array_size(root) : 1;
    if (rc == 0 && count > EVENTS_MAX)
        rc = err_set(e, ERR_INVALID, "at most %d events at once", EVENTS_MAX);
    for (size_t k = 0; rc == 0 && k < count; k++) {
        rc = apply_one(regions, n_regions, json_is_array(root) ? json_array_get(root, k) : root,
            now, results, e);
        if (rc < 0 && count > 1)
            err_wrap(e, "event %zu", k + 1);
    }
    json_decref(root);
    if (rc < 0) {
        json_decref(results);
        return rc;
    }
    *ret_reply = json_object();
    json_object_set_new(*ret_reply, "seq", json_integer(regions[0]->journal->last_seq));
    json_object_set_new(*ret_reply, "results", results);
    return 0;
}

/* ---- HTTP ---- */

static void reply_json(struct http_exchange *x, json_t *value)
{
    char *text = json_dump_text(value);
    json_decref(value);
    http_reply_text(x, 200, "application/json", text);
    free(text);
}

static int read_query(struct http_exchange *x, const char *name, int64_t min, int64_t max,
    int64_t fallback, int64_t *ret_n, struct err *e)
{
    const char *text = http_request_query(x, name);
    *ret_n = fallback;
    return text ? str_to_i64(text, min, max, name, ret_n, e) : 0;
}

/* ---- GET /events, at once or when there are some ---- */

struct waiter {
    struct link link; /* in emulator.waiters */
    struct emulator *em;
    struct http_exchange *x;
    int64_t after, max;
};

static void reply_events(struct emulator *em, struct http_exchange *x, int64_t after, int64_t max)
{
    json_t *o = json_object();
    json_object_set_new(o, "last_seq", json_integer(em->journal.last_seq));
    json_object_set_new(o, "events", journal_after(&em->journal, after, (size_t)max));
    reply_json(x, o);
}

static void waiter_free(struct waiter *w)
{
    link_remove(&w->link);
    free(w);
}

static void on_waited(void *ctx, struct http_exchange *x)
{
    struct waiter *w = ctx;
    reply_events(w->em, x, w->after, w->max);
    waiter_free(w);
}

static void on_waiter_gone(void *ctx, struct http_exchange *x)
{
    (void)x;
    waiter_free(ctx);
}

void control_wake(struct emulator *em)
{
    LIST_FOREACH (&em->waiters, l) {
        struct waiter *w = LIST_ENTRY(l, struct waiter, link);
        if (em->journal.last_seq > w->after)
            on_waited(w, w->x);
    }
}

static int get_events(struct emulator *em, struct http_exchange *x, struct err *e)
{
    int64_t after, max, wait_s;
    int rc = read_query(x, "after", 0, INT64_MAX, 0, &after, e);
    if (rc == 0)
        rc = read_query(x, "max", 1, JOURNAL_PAGE, JOURNAL_PAGE, &max, e);
    if (rc == 0)
        rc = read_query(x, "wait_s", 0, WAIT_S_MAX, 0, &wait_s, e);
    if (rc < 0)
        return rc;
    emulator_advance(em);
    if (wait_s == 0 || em->journal.last_seq > after) {
        reply_events(em, x, after, max);
        return 0;
    }
    struct waiter *w = mem_alloc(sizeof(*w));
    *w = (struct waiter){.em = em, .x = x, .after = after, .max = max};
    list_push_back(&em->waiters, &w->link);
    http_exchange_wait(x, SECONDS_MS(wait_s), on_waited, on_waiter_gone, w);
    return 0;
}

void control_handle(void *ctx, struct http_exchange *x, const struct http_server_request *r)
{
    struct emulator *em = ctx;
    struct err e;
    json_t *reply = NULL;
    int rc = 0;
    if (str_eq(r->path, "/state") && str_eq(r->method, "GET"))
        reply = control_state(em->regions, em->n_providers, emulator_now(em));
    else if (str_eq(r->path, "/events") && str_eq(r->method, "GET"))
        rc = get_events(em, x, &e);
    else if (str_eq(r->path, "/events") && str_eq(r->method, "POST"))
        rc = control_events(
            em->regions, em->n_providers, r->body, r->body_len, emulator_now(em), &reply, &e);
    else
        rc = err_set(&e, ERR_NOT_FOUND,
            "there is no %s %s; there are GET /state, GET /events, POST /events", r->method,
            r->path);
    if (rc < 0)
        http_reply_err(x, &e);
    else if (reply)
        reply_json(x, reply);
    emulator_changed(em);
}
