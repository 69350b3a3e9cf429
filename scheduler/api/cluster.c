/* SPDX-License-Identifier: Apache-2.0
 *
 * The API's routes for nodes, instances and offers.
 */
#include "scheduler/api/api_private.h"

#include "base/mem.h"
#include "base/str.h"
#include <stdlib.h>
#include <string.h>

/* ---- lists ---- */

#define PAGE_MAX 1000 /* rows of a page of nodes or instances that may be gone */

/* Replies {name: list}, or the error. Takes ownership of the list. */
static void reply_list(
    struct http_exchange *x, const char *name, json_t *list, int rc, const struct err *e)
{
    if (rc != 0) {
        json_decref(list);
        http_reply_err(x, e);
        return;
    }
    json_t *o = json_object();
    json_object_set_new(o, name, list);
    api_reply_json(x, 200, o);
}

/* All rows that are live, in the order of their ids; or a page of all rows, which are read from the
 * newest on. */
struct rows {
    int64_t before, limit; /* 0: the live ones */
    int64_t n, oldest, next;
    json_t *list;
    const struct model *model;
    struct mono now;
};

/* Takes ownership of the row. */
static void add_row(struct rows *l, int64_t id, json_t *row)
{
    if (l->limit == 0) {
        json_array_append_new(l->list, row);
    } else if (l->n++ < l->limit) {
        json_array_insert_new(l->list, 0, row);
        l->oldest = id;
    } else {
        l->next = l->oldest;
        json_decref(row);
    }
}

static int add_node(void *ctx, const struct node_row *n)
{
    struct rows *l = ctx;
    const struct node *live = l->model ? model_node(l->model, n->id) : NULL;
    json_t *node = api_json_node(n, live, l->now);
    api_json_reserve(node, l->model, live);
    add_row(l, n->id, node);
    return 0;
}

static int add_instance(void *ctx, const struct instance_row *i)
{
    add_row(ctx, i->id, api_json_instance(i));
    return 0;
}

static int read_number(
    struct http_exchange *x, const char *name, int64_t max, int64_t *ret_value, struct err *e)
{
    const char *text = http_request_query(x, name);
    *ret_value = max;
    return text ? str_to_i64(text, 1, max, name, ret_value, e) : 0;
}

/* Reads which rows are asked for; `list` is still to be made. */
static int read_rows(struct http_exchange *x, bool all, struct rows *ret_rows, struct err *e)
{
    *ret_rows = (struct rows){0};
    if (!all && (http_request_query(x, "before") || http_request_query(x, "limit")))
        return err_set(
            e, ERR_INVALID, "before, limit: are of state=all; the live ones are one page");
    if (!all)
        return 0;
    int rc = read_number(x, "before", INT64_MAX, &ret_rows->before, e);
    return rc != 0 ? rc : read_number(x, "limit", PAGE_MAX, &ret_rows->limit, e);
}

static void reply_rows(
    struct http_exchange *x, const char *name, struct rows *l, int rc, const struct err *e)
{
    if (rc != 0) {
        json_decref(l->list);
        http_reply_err(x, e);
        return;
    }
    api_reply_json(x, 200, json_pack("{s:o,s:o}", name, l->list, "next", api_json_opt(l->next, 0)));
}

struct offer_list {
    const struct model *model; /* NULL = not available */
    struct stamp now;
    json_t *offers;
};

static int add_offer(void *ctx, const struct offer_row *o)
{
    struct offer_list *l = ctx;
    const struct offer *live = l->model ? model_offer(l->model, o->id) : NULL;
    json_array_append_new(l->offers, api_json_offer(o, live, l->now));
    return 0;
}

/* Reads the query again, which has been checked before. */
static void reply_nodes(const struct api *a, struct http_exchange *x, const struct caller *viewer,
    const struct model *model, int64_t all)
{
    (void)viewer;
    struct err e;
    struct rows l;
    int rc = read_rows(x, all, &l, &e);
    l.model = model;
    l.now = tick_now(a->o.tick).mono;
    l.list = json_array();
    if (rc == 0)
        rc = all ? db_read_newest_nodes(a->o.reader, l.before, l.limit + 1, add_node, &l, &e)
                 : db_read_nodes(a->o.reader, true, add_node, &l, &e);
    reply_rows(x, "nodes", &l, rc, &e);
}

void api_nodes_list(struct request *q)
{
    bool all;
    struct err e;
    struct rows checked;
    if (!api_query_state(q, "live", &all))
        return;
    if (read_rows(q->x, all, &checked, &e) != 0)
        http_reply_err(q->x, &e);
    else
        api_read_model_or_database(q, reply_nodes, all);
}

void api_instances_list(struct request *q)
{
    bool all;
    struct err e;
    struct rows l;
    struct db_reader *r = q->api->o.reader;
    if (!api_query_state(q, "live", &all))
        return;
    int rc = read_rows(q->x, all, &l, &e);
    l.list = json_array();
    if (rc == 0)
        rc = all ? db_read_newest_instances(r, l.before, l.limit + 1, add_instance, &l, &e)
                 : db_read_instances(r, true, add_instance, &l, &e);
    reply_rows(q->x, "instances", &l, rc, &e);
}

static void reply_offers(const struct api *a, struct http_exchange *x, const struct caller *viewer,
    const struct model *model, int64_t arg)
{
    struct offer_list l = {.model = model, .now = tick_now(a->o.tick), .offers = json_array()};
    struct err e;
    (void)viewer, (void)arg;
    reply_list(x, "offers", l.offers, db_read_offers(a->o.reader, add_offer, &l, &e), &e);
}

void api_offers_list(struct request *q)
{
    api_read_model_or_database(q, reply_offers, 0);
}

/* True if a parameter asks for the newest events, not for those after one. */
static bool asks_for_recent(struct request *q)
{
    static const char *const names[] = {"tail", "before", "kind", "node", "instance"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (http_request_query(q->x, names[i]))
            return true;
    return false;
}

void api_events(struct request *q)
{
    int64_t after, wait_ms;
    bool recent = asks_for_recent(q);
    if (recent && (http_request_query(q->x, "after") || http_request_query(q->x, "wait_ms")))
        api_reply_failure(q->x, ERR_INVALID,
            "after, wait_ms: are of the events after one; leave them out, or tail, before, kind, "
            "node and instance, which are of the newest events");
    else if (recent)
        api_recent_events(q);
    else if (api_query_i64(q, "after", 0, INT64_MAX, 0, &after) &&
             api_query_i64(q, "wait_ms", 0, API_WAIT_MAX_MS, 0, &wait_ms))
        api_watch(q, &(struct watch_of){.kind = WATCH_EVENTS, .after = after, .viewer = q->caller},
            wait_ms);
}

/* ---- nodes ---- */

struct node_change {
    struct deferred_reply *deferred;
    char name[CORE_NAME_MAX];
    bool elastic;
};

/* Replies with the node after the change. Reads the model, all of which is committed now. */
static void on_node_changed(void *ctx, const struct err *e, int64_t id)
{
    struct node_change *c = ctx;
    struct api *a = c->deferred->api;
    struct http_exchange *x = deferred_reply_take(c->deferred);
    const struct node *n = model_node(tick_model(a->o.tick), id);
    if (x && e)
        http_reply_err(x, e);
    else if (x)
        api_reply_json(x, 200,
            json_pack("{s:I,s:o,s:s,s:b,s:I}", "id", (json_int_t)id, "name",
                json_text(n ? n->row.name : c->name), "state",
                sm_name(&node_sm, n ? n->row.state : NODE_GONE), "elastic", (int)c->elastic, "jobs",
                (json_int_t)(n ? api_count(&n->attempts) : 0)));
    free(c);
}

/* Posts an event of the node in the path: EV_DRAIN, EV_UNDRAIN or EV_NODE_DELETE, which all begin
 * with its number. reason: of a drain. */
static void post_node_event(struct request *q, enum event_type type, const char *reason)
{
    struct event ev = {.type = type, .drain = {.node = q->id}};
    STR_COPY(ev.drain.text, reason);
    const struct node *n = model_node(tick_model(q->api->o.tick), q->id);
    const struct access_object object = {.pool = n ? n->row.pool : NULL};
    if (!api_may(q, RIGHT_OPERATE, &object, "this node"))
        return;
    struct node_change *c = mem_alloc(sizeof(*c));
    c->deferred = deferred_reply_create(q->api, q->x, API_COMMIT_WAIT_MS);
    c->elastic = n && n->instance;
    STR_COPY(c->name, n ? n->row.name : "");
    tick_post(q->api->o.tick, &ev, on_node_changed, c);
}

/* Reads {"reason": TEXT}, or an empty body. Returns false after an error reply. */
static bool read_reason(struct request *q, char out[NODE_REASON_MAX])
{
    struct json_reader r;
    struct err e;
    out[0] = '\0';
    if (q->r->body_len == 0)
        return true;
    json_t *body = api_body(q, API_UNAUTHENTICATED_BODY_MAX);
    if (!body)
        return false;
    json_reader_init(&r, body, "body", &e);
    json_opt_strcpy(&r, "reason", out, NODE_REASON_MAX, "");
    if (r.rc == 0 && str_has_control(out))
        json_reader_fail(&r, "reason", "expected one line without control characters");
    int rc = json_reader_finish(&r);
    json_decref(body);
    if (rc != 0)
        http_reply_err(q->x, &e);
    return rc == 0;
}

/* The audit log has the start of the reason, the event all of it. */
void api_nodes_drain(struct request *q)
{
    char reason[NODE_REASON_MAX];
    if (!read_reason(q, reason))
        return;
    if (q->call && reason[0]) {
        char *object = mem_printf("%lld: %s", (long long)q->id, reason);
        STR_COPY(q->call->row.object, object);
        free(object);
    }
    post_node_event(q, EV_DRAIN, reason);
}

void api_nodes_undrain(struct request *q)
{
    post_node_event(q, EV_UNDRAIN, "");
}

void api_nodes_delete(struct request *q)
{
    post_node_event(q, EV_NODE_DELETE, "");
}

/* ---- version ---- */

void api_version(struct request *q)
{
    const struct api *a = q->api;
    api_reply_json(q->x, 200,
        json_pack("{s:s,s:s,s:s,s:s,s:b,s:s,s:s,s:s}", "version", BELAY_VERSION, "cluster",
            a->o.config->cluster, "cluster_uid", a->o.meta->cluster_uid, "user", q->caller.user,
            "admin", (int)q->caller.admin, "role", role_names[q->caller.role], "listen",
            a->server_url, "store", a->o.config->store));
}
