/* SPDX-License-Identifier: Apache-2.0
 *
 * Instance types with the regions that have capacity, instances, terminate.
 *
 *     booting --> active --> terminating --> terminated
 *        \           \--> unhealthy: powered itself off; shown until it is terminated
 *         \           \-> preempted
 *          \--> terminated
 *
 * An ended instance is shown for a while, then it does not exist.
 */
#include "base/str.h"
#include "cloud/catalogue.h"
#include "emulator/lambda/cloud.h"
#include <stdio.h>

#define IDS_MAX 1000
#define CENT_UUSD 10000
#define STORAGE_GIB 512
#define MIB_GIB 1024
#define BOOTING "booting"
#define ACTIVE "active"
#define UNHEALTHY "unhealthy"
#define PREEMPTED "preempted"
#define TERMINATED "terminated"

/* ---- Instance types ---- */

static json_t *type_json(const struct market_pool *p)
{
    struct catalogue_type t;
    char gpus[64] = "";
    if (catalogue_find("lambda", p->type, &t, NULL) != 0)
        t = (struct catalogue_type){.vcpus = 1, .memory_mib = MIB_GIB};
    if (t.gpus > 0)
        snprintf(gpus, sizeof(gpus), "%s (%d GB)", t.gpu_model, (int)(t.gpu_memory_mib / MIB_GIB));
    json_t *o = json_object();
    json_object_set_new(o, "name", json_string(p->type));
    json_object_set_new(o, "description",
        gpus[0] ? json_sprintf("%dx %s", (int)t.gpus, gpus) : json_string(p->type));
    json_object_set_new(o, "gpu_description", json_string(gpus[0] ? gpus : "N/A"));
    json_object_set_new(o, "price_cents_per_hour",
        json_integer((p->price_uusd_h[CLOUD_ON_DEMAND] + CENT_UUSD / 2) / CENT_UUSD));
    json_object_set_new(o, "specs",
        json_pack("{s:i, s:i, s:i, s:i}", "vcpus", (int)t.vcpus, "memory_gib",
            (int)(t.memory_mib / MIB_GIB), "storage_gib", STORAGE_GIB, "gpus", (int)t.gpus));
    return o;
}

static json_t *region_json(const char *name)
{
    return json_pack("{s:s, s:s}", "name", name, "description", name);
}

/* A type has one price in all regions: that of its first pool. */
int lambda_cloud_types(struct lambda_cloud_call *c)
{
    json_t *data = json_object();
    for (size_t k = 0; k < c->region->market.n_pools; k++) {
        const struct market_pool *p = &c->region->market.pools[k];
        json_t *item = json_object_get(data, p->type);
        if (!item) {
            item = json_pack(
                "{s:o, s:[]}", "instance_type", type_json(p), "regions_with_capacity_available");
            json_object_set_new(data, p->type, item);
        }
        if (market_unused(p, CLOUD_ON_DEMAND) > 0)
            json_array_append_new(
                json_object_get(item, "regions_with_capacity_available"), region_json(p->zone));
    }
    lambda_cloud_reply(c, data);
    return 0;
}

/* ---- Instances ---- */

/* NULL if it is not shown, or no longer shown. */
static const char *status_of(const struct lambda_cloud_call *c, const struct instance *i)
{
    struct wall now = c->site->now;
    bool is_preempted = str_eq(i->reason_code, "Server.SpotInstanceTermination");
    if (!region_is_visible(c->region, i, now))
        return NULL;
    switch ((enum instance_state)i->state) {
    case INSTANCE_PENDING:
        return BOOTING;
    case INSTANCE_RUNNING:
        return ACTIVE;
    case INSTANCE_STOPPING:
    case INSTANCE_STOPPED:
        return UNHEALTHY;
    case INSTANCE_SHUTTING_DOWN:
        return is_preempted ? PREEMPTED : "terminating";
    case INSTANCE_TERMINATED:
        break;
    }
    if (now.ms >= i->gone_at.ms + LAMBDA_CLOUD_ENDED_SHOWN_MS)
        return NULL;
    return is_preempted ? PREEMPTED : TERMINATED;
}

/* The actions currently available. */
static json_t *actions_json(const char *status)
{
    static const char *const actions[] = {
        "migrate", "rebuild", "restart", "cold_reboot", "terminate"};
    bool is_up = str_eq(status, ACTIVE) || str_eq(status, UNHEALTHY),
         is_booting = str_eq(status, BOOTING);
    json_t *o = json_object();
    for (size_t k = 0; k < sizeof(actions) / sizeof(actions[0]); k++) {
        bool is_available = is_up || (is_booting && str_eq(actions[k], "terminate"));
        json_t *one = json_pack("{s:b}", "available", is_available);
        if (!is_available) {
            json_object_set_new(one, "reason_code",
                json_string(is_booting ? "vm-has-not-launched" : "vm-is-terminating"));
            json_object_set_new(one, "reason_description",
                json_string(is_booting ? "The instance has not launched yet."
                                       : "The instance is being terminated."));
        }
        json_object_set_new(o, actions[k], one);
    }
    return o;
}

static json_t *instance_json(const struct instance *i, const char *status)
{
    const struct launch_spec *s = &i->reservation->spec;
    json_t *o = json_object(), *file_systems = json_array();
    for (size_t k = 0; k < s->attributes.n; k++)
        json_array_append_new(file_systems, json_text(s->attributes.list[k].key));
    json_object_set_new(o, "id", json_string(i->id));
    json_object_set_new(o, "name", s->name[0] ? json_text(s->name) : json_null());
    if (str_eq(status, ACTIVE) || str_eq(status, UNHEALTHY)) {
        json_object_set_new(o, "ip", json_sprintf("198.51.100.%d", (int)(i->number % 254 + 1)));
        json_object_set_new(o, "private_ip", json_string(i->private_ip));
    }
    json_object_set_new(o, "status", json_string(status));
    json_object_set_new(o, "ssh_key_names", json_pack("[o]", json_text(s->key_name)));
    json_object_set_new(o, "file_system_names", file_systems);
    json_object_set_new(o, "region", region_json(i->pool->zone));
    json_object_set_new(o, "instance_type", type_json(i->pool));
    json_object_set_new(o, "hostname", json_sprintf("%s.lambda.invalid", i->id));
    json_object_set_new(o, "is_reserved", json_false());
    json_object_set_new(o, "tags", tags_json_list(&i->tags, "key"));
    json_object_set_new(o, "actions", actions_json(status));
    return o;
}

int lambda_cloud_list(struct lambda_cloud_call *c)
{
    json_t *data = json_array();
    for (size_t k = 0; k < c->region->n_instances; k++) {
        const struct instance *i = c->region->instances[k];
        const char *status = status_of(c, i);
        if (status)
            json_array_append_new(data, instance_json(i, status));
    }
    lambda_cloud_reply(c, data);
    return 0;
}

/* NULL with the error reply set. */
static struct instance *find(struct lambda_cloud_call *c, const char *id)
{
    struct instance *i = region_find(c->region, id);
    if (i && status_of(c, i))
        return i;
    lambda_cloud_api_error(c->site, "global/object-does-not-exist", c->reply);
    return NULL;
}

int lambda_cloud_get(struct lambda_cloud_call *c)
{
    const struct instance *i = find(c, c->id);
    if (!i)
        return -1;
    lambda_cloud_reply(c, instance_json(i, status_of(c, i)));
    return 0;
}

/* ---- Terminate ---- */

/* All of them, or none. */
static int check_ids(struct lambda_cloud_call *c, const json_t *ids)
{
    for (size_t k = 0; k < json_array_size(ids); k++) {
        const char *id = json_string_value(json_array_get(ids, k));
        if (!id)
            return lambda_cloud_fail(c, 400, "global/invalid-parameters",
                "Invalid request data. instance_ids: expected texts");
        if (!find(c, id))
            return -1;
    }
    return 0;
}

static json_t *end_all(struct lambda_cloud_call *c, const json_t *ids)
{
    json_t *ended = json_array();
    for (size_t k = 0; k < json_array_size(ids); k++) {
        struct instance *i = region_find(c->region, json_string_value(json_array_get(ids, k)));
        region_terminate(c->region, i, c->site->now);
        const char *status = status_of(c, i); /* NULL if it had powered itself off long ago */
        json_array_append_new(ended, instance_json(i, status ? status : TERMINATED));
    }
    return ended;
}

int lambda_cloud_terminate(struct lambda_cloud_call *c)
{
    struct json_reader r;
    struct err e;
    json_t *body = lambda_cloud_body(c);
    if (!body)
        return -1;
    json_reader_init(&r, body, "", &e);
    const json_t *ids = json_req_array(&r, "instance_ids", IDS_MAX);
    if (r.rc == 0 && json_array_size(ids) == 0)
        json_reader_fail(&r, "instance_ids", "expected at least one");
    int rc = json_reader_finish(&r);
    if (rc < 0)
        lambda_cloud_fail(c, 400, "global/invalid-parameters", "Invalid request data. %s", e.text);
    else
        rc = check_ids(c, ids);
    if (rc == 0)
        lambda_cloud_reply(c, json_pack("{s:o}", "terminated_instances", end_all(c, ids)));
    json_decref(body);
    return rc < 0 ? -1 : 0;
}
