/* SPDX-License-Identifier: Apache-2.0
 *
 * GET /api/v1/forgotten: what was not touched for a time, and its cost per day: kept checkpoints
 * of ended jobs, held jobs, nodes without jobs, unattached volumes at the providers, and on request
 * the instances of their accounts that are not of this cluster. A store's bytes are priced by the
 * configuration; belayd does not know which checkpoints are pinned. The providers are queried first
 * (volumes.h), then the database is read on a thread. A provider that cannot be queried is
 * reported, and does not affect the rest.
 */
#include "scheduler/api/api_private.h"

#include "base/mem.h"
#include "base/str.h"
#include "cloud/catalogue.h"
#include <stdlib.h>

#define ITEMS_MAX 500 /* of each kind */
#define DAYS_A_MONTH 30.4375

enum volumes_wanted { VOLUMES_OWN, VOLUMES_ALL, VOLUMES_NONE };

struct forgotten_query {
    struct db_reader *r;
    int64_t for_ms, store_uusd_gib_month;
    struct wall before;
    struct caller caller;
    char user[CORE_NAME_MAX];        /* only items of this user; "" = all */
    const struct api *api;           /* not for use on the thread */
    struct deferred_reply *deferred; /* while the providers are queried */
    json_t *items;
    bool wants_instances;
    json_t *unlisted; /* pools whose volumes or instances are unknown, with the reason */
    int64_t n;        /* items of the current kind */
    bool more;
    struct err *e;
    int rc;
};

static int64_t bytes_uusd_day(const struct forgotten_query *x, int64_t bytes)
{
    double gib = (double)bytes / (double)(INT64_C(1) << 30);
    return (int64_t)(gib * (double)x->store_uusd_gib_month / DAYS_A_MONTH + 0.5);
}

static void add(struct forgotten_query *x, const char *code, int64_t job, int64_t node,
    const char *name, const char *user, struct wall since, int64_t bytes, int64_t uusd_day,
    const char *remedy, json_t *volume, json_t *instance)
{
    json_array_append_new(x->items,
        json_pack("{s:s,s:o,s:o,s:o,s:o,s:o,s:o,s:I,s:I,s:s,s:o,s:o}", "code", code, "job",
            api_json_opt(job, CORE_ID_NONE), "ref", api_json_ref(x->r, job), "node",
            api_json_opt(node, CORE_ID_NONE), "name", json_text(name), "user",
            user ? json_text(user) : json_null(), "since", api_json_time(since), "bytes",
            (json_int_t)bytes, "uusd_per_day", (json_int_t)uusd_day, "remedy", remedy, "volume",
            volume ? volume : json_null(), "instance", instance ? instance : json_null()));
}

static bool count_item(struct forgotten_query *x)
{
    x->more = x->more || x->n == ITEMS_MAX;
    return x->n++ >= ITEMS_MAX;
}

static bool may_read(const struct forgotten_query *x, const struct job_row *row)
{
    const struct access_object object = api_object_of_job(row);
    return access_may(&x->caller, RIGHT_READ_JOB, &object);
}

/* ---- checkpoints that stay ---- */

static int add_kept(void *ctx, const struct kept_row *k)
{
    struct forgotten_query *x = ctx;
    struct job_row row;
    x->rc = db_read_job(x->r, k->job, &row, x->e);
    if (x->rc != 0)
        return x->rc;
    if (!may_read(x, &row))
        return 0;
    if (count_item(x))
        return 1;
    add(x, "kept-checkpoints", k->job, CORE_ID_NONE, k->name, k->user, k->ended_at, k->bytes,
        bytes_uusd_day(x, k->bytes),
        "belay checkpoint remove JOB@ATTEMPT.SEQUENCE removes one; --checkpoints-after auto or "
        "delete removes all when a job succeeds",
        NULL, NULL);
    return 0;
}

/* ---- jobs that are held ---- */

static int take_time(void *ctx, const struct history_row *row)
{
    struct wall *at = ctx;
    *at = row->at;
    return 0;
}

/* Reads the time of the job's last event. */
static int last_event_at(struct forgotten_query *x, const struct job_row *r, struct wall *ret_at)
{
    *ret_at = r->submitted_at;
    x->rc = db_read_last_history(x->r, r->id, 1, take_time, ret_at, x->e);
    return x->rc;
}

static int add_held(void *ctx, const struct job_row *r)
{
    struct forgotten_query *x = ctx;
    struct wall at;
    int64_t bytes = r->last_good.attempt > 0 ? r->ckpt_bytes : 0;
    if (r->hold == HOLD_NONE || r->submitted_at.ms >= x->before.ms || !may_read(x, r))
        return 0;
    if (last_event_at(x, r, &at) != 0)
        return x->rc;
    if (at.ms >= x->before.ms)
        return 0;
    if (count_item(x))
        return 1;
    add(x, "held-job", r->id, CORE_ID_NONE, r->spec.name, r->user, at, bytes,
        bytes_uusd_day(x, bytes), "belay release JOB lets it continue, belay cancel JOB ends it",
        NULL, NULL);
    return 0;
}

static void add_held_jobs(struct forgotten_query *x)
{
    struct job_filter f = {.states = 1u << JOB_PENDING, .sort = JOBS_OLDEST, .limit = 1000};
    if (x->user[0])
        f.users = (struct job_words){.words = {x->user}, .n = 1};
    int64_t next = 0;
    x->n = 0;
    x->rc = db_read_jobs(x->r, &f, add_held, x, &next, x->e);
    x->more = x->more || next != 0;
}

/* ---- machines ---- */

static void add_if_idle(struct forgotten_query *x, const struct node *n, struct stamp now)
{
    int64_t ms = mono_is_set(n->idle_since) ? now.mono.ms - n->idle_since.ms : 0;
    struct wall since = {now.wall.ms - ms};
    if (n->row.state == NODE_GONE || !list_is_empty(&n->attempts) || since.ms >= x->before.ms ||
        count_item(x))
        return;
    add(x, "idle-node", CORE_ID_NONE, n->row.id, n->row.name, NULL, since, 0,
        24 * n->row.price_uusd_h,
        n->instance ? "belay nodes remove NODE ends its instance"
                    : "return it, or let others use it",
        NULL, NULL);
}

/* ---- volumes ---- */

/* Returns the price in micro-USD per GiB and month; -1 = unknown. */
static int64_t volume_price(
    const struct config *c, const struct volumes_found *f, const char **ret_source)
{
    for (size_t i = 0; i < c->n_volume_prices; i++) {
        const struct volume_price *p = &c->volume_prices[i];
        *ret_source = "configuration";
        if (str_eq(p->provider, f->provider) && str_eq(p->type, f->volume->type))
            return p->uusd_gib_month;
    }
    return catalogue_volume_uusd(f->provider, f->volume->type, ret_source);
}

static void add_volume(struct forgotten_query *x, const struct volumes_found *f)
{
    const struct cloud_volume *v = f->volume;
    const char *source = NULL;
    if ((wall_is_set(v->since) && v->since.ms >= x->before.ms) || count_item(x))
        return;
    int64_t price = volume_price(x->api->o.config, f, &source);
    double month =
        (double)catalogue_volume_billed_gib(f->provider, v->type, v->gib) * (double)price;
    json_t *volume = json_pack("{s:o,s:s,s:s,s:o,s:o,s:I,s:o,s:o,s:b}", "id", json_text(v->id),
        "provider", f->provider, "region", f->region, "zone", json_text(v->zone), "type",
        json_text(v->type), "gib", (json_int_t)v->gib, "uusd_per_gib_month",
        api_json_opt(price, -1), "price_from", price >= 0 ? json_text(source) : json_null(), "own",
        (int)str_eq(v->cluster, x->api->o.meta->cluster_uid));
    add(x, "volume", CORE_ID_NONE, CORE_ID_NONE, v->name[0] ? v->name : v->id, NULL, v->since,
        v->gib << 30, price >= 0 ? (int64_t)(month / DAYS_A_MONTH + 0.5) : 0,
        "check its contents and delete it at the provider: belay deletes no volume", volume, NULL);
}

/* ---- instances of others ---- */

/* The price in micro-USD per hour; -1 = unknown, as that of a machine which is stopped. */
static int64_t instance_price(const struct volumes_found *f, const char **ret_source)
{
    const struct cloud_instance *i = f->instance;
    bool is_spot = i->market == CLOUD_SPOT;
    struct catalogue_type t;
    struct err unused;
    if (i->state == CLOUD_STOPPING || catalogue_find(f->provider, i->type, &t, &unused) != 0)
        return -1;
    *ret_source = catalogue_source(f->provider, i->type, is_spot);
    int64_t uusd = is_spot ? t.spot_uusd_h : t.on_demand_uusd_h;
    return uusd > 0 ? uusd : -1;
}

/* One of this cluster is in its own lists, and ended when it is idle. */
static void add_instance(struct forgotten_query *x, const struct volumes_found *f)
{
    static const char *const states[] = {"pending", "running", "stopping", "gone"};
    static const char *const markets[] = {"spot", "on-demand", "owned"};
    const struct cloud_instance *i = f->instance;
    const char *source = NULL;
    if (i->state == CLOUD_GONE || str_eq(i->cluster, x->api->o.meta->cluster_uid) ||
        (wall_is_set(i->launched_at) && i->launched_at.ms >= x->before.ms) || count_item(x))
        return;
    int64_t price = instance_price(f, &source);
    json_t *o = json_pack("{s:o,s:s,s:s,s:o,s:o,s:s,s:s,s:o,s:o,s:o}", "id", json_text(i->id),
        "provider", f->provider, "region", f->region, "zone", json_text(i->zone), "type",
        json_text(i->type), "market", markets[i->market], "state", states[i->state], "cluster",
        api_json_opt_text(i->cluster), "uusd_per_hour", api_json_opt(price, -1), "price_from",
        price >= 0 ? json_text(source) : json_null());
    add(x, "instance", CORE_ID_NONE, CORE_ID_NONE, i->id, NULL, i->launched_at, 0,
        price >= 0 ? 24 * price : 0,
        "ask who launched it and end it at the provider: belay ends no instance of others", NULL,
        o);
}

/* ---- the providers ---- */

static void begin_reading(struct forgotten_query *x, struct http_exchange *ex);

static void add_unlisted(
    struct forgotten_query *x, const char *what, const struct volumes_reading *r)
{
    for (size_t i = 0; i < r->n_missing; i++)
        json_array_append_new(
            x->unlisted, json_pack("{s:s,s:s,s:s,s:s,s:o}", "what", what, "pool",
                             r->missing[i].pool, "provider", r->missing[i].provider, "region",
                             r->missing[i].region, "text", json_text(r->missing[i].why->text)));
}

static void on_instances(void *ctx, const struct volumes_reading *r)
{
    struct forgotten_query *x = ctx;
    x->n = 0;
    for (size_t i = 0; i < r->n_found; i++)
        add_instance(x, &r->found[i]);
    add_unlisted(x, "instances", r);
    begin_reading(x, deferred_reply_take(x->deferred));
}

static void read_instances(struct forgotten_query *x)
{
    if (x->wants_instances)
        volumes_read_instances(x->api->volumes, on_instances, x);
    else
        begin_reading(x, deferred_reply_take(x->deferred));
}

static void on_volumes(void *ctx, const struct volumes_reading *r)
{
    struct forgotten_query *x = ctx;
    x->n = 0;
    for (size_t i = 0; i < r->n_found; i++)
        add_volume(x, &r->found[i]);
    add_unlisted(x, "volumes", r);
    read_instances(x);
}

/* ---- the whole answer ---- */

static int read_forgotten(struct db_reader *r, void *of, json_t **ret_reply, struct err *e)
{
    struct forgotten_query *x = of;
    x->r = r;
    x->e = e;
    x->n = 0;
    x->rc = db_read_kept(r, x->before, x->user[0] ? x->user : NULL, ITEMS_MAX + 1, add_kept, x, e);
    if (x->rc == 0)
        add_held_jobs(x);
    if (x->rc == 0)
        *ret_reply = json_pack("{s:o,s:I,s:b,s:O}", "items",
            api_sort_descending(json_incref(x->items), "uusd_per_day"), "for_ms",
            (json_int_t)x->for_ms, "more", (int)x->more, "unlisted", x->unlisted);
    return x->rc;
}

static void forgotten_query_free(void *of)
{
    struct forgotten_query *x = of;
    json_decref(x->items);
    json_decref(x->unlisted);
    free(x);
}

/* ex is NULL if the client has gone. */
static void begin_reading(struct forgotten_query *x, struct http_exchange *ex)
{
    if (ex)
        read_pool_run(
            x->api, ex, &x->caller, READ_POOL_WAIT_MS, read_forgotten, x, forgotten_query_free);
    else
        forgotten_query_free(x);
}

/* Reads whose volumes are requested; volumes have no user. Returns false after an error reply. */
static bool read_wanted(struct request *q, bool has_user, enum volumes_wanted *ret_wanted)
{
    static const char *const words[] = {
        [VOLUMES_OWN] = "own", [VOLUMES_ALL] = "all", [VOLUMES_NONE] = "none"};
    const char *text = http_request_query(q->x, "volumes");
    char shown[STR_SHOW_MAX];
    int which = 0;
    while (text && which < 3 && !str_eq(text, words[which]))
        which++;
    *ret_wanted = text ? (enum volumes_wanted)which : has_user ? VOLUMES_NONE : VOLUMES_OWN;
    if (which == 3)
        api_reply_failure(q->x, ERR_INVALID, "volumes: expected own, all or none, found %s",
            str_show(text, shown));
    else if (has_user && *ret_wanted != VOLUMES_NONE)
        api_reply_failure(
            q->x, ERR_INVALID, "volumes: their owners are unknown: request them without user");
    else
        return *ret_wanted != VOLUMES_ALL || api_may(q, RIGHT_ADMIN, NULL, NULL);
    return false;
}

/* Whether instances are requested: only all of the account, by who may read that. Returns false
 * after an error reply. */
static bool read_instances_wanted(struct request *q, bool has_user, bool *ret_wanted)
{
    const char *text = http_request_query(q->x, "instances");
    char shown[STR_SHOW_MAX];
    *ret_wanted = str_eq(text, "all");
    if (text && !*ret_wanted && !str_eq(text, "none"))
        api_reply_failure(
            q->x, ERR_INVALID, "instances: expected all or none, found %s", str_show(text, shown));
    else if (has_user && *ret_wanted)
        api_reply_failure(
            q->x, ERR_INVALID, "instances: their owners are unknown: request them without user");
    else
        return !*ret_wanted || api_may(q, RIGHT_ADMIN, NULL, NULL);
    return false;
}

void api_forgotten(struct request *q)
{
    struct stamp now = tick_now(q->api->o.tick);
    const char *user = http_request_query(q->x, "user");
    const struct config *c = q->api->o.config;
    enum volumes_wanted wanted;
    bool instances;
    int64_t for_ms;
    if (!api_query_i64(q, "for_ms", 0, 36500 * DAY_MS, c->telemetry.forgotten_ms, &for_ms) ||
        !read_wanted(q, user != NULL, &wanted) ||
        !read_instances_wanted(q, user != NULL, &instances))
        return;
    struct forgotten_query *x = mem_alloc(sizeof(*x));
    *x = (struct forgotten_query){.for_ms = for_ms,
        .store_uusd_gib_month = c->store_uusd_gib_month,
        .before = {now.wall.ms - for_ms},
        .caller = q->caller,
        .api = q->api,
        .items = json_array(),
        .wants_instances = instances,
        .unlisted = json_array()};
    STR_COPY(x->user, user ? user : "");
    if (!user)
        LIST_FOREACH (model_nodes(tick_model(q->api->o.tick)), l)
            add_if_idle(x, LIST_ENTRY(l, struct node, in_all), now);
    if (wanted == VOLUMES_NONE && !instances) {
        begin_reading(x, q->x);
        return;
    }
    x->deferred = deferred_reply_create(q->api, q->x, 3 * VOLUMES_WAIT_MS);
    if (wanted == VOLUMES_NONE)
        read_instances(x);
    else
        volumes_read(q->api->volumes, wanted == VOLUMES_ALL, on_volumes, x);
}
