/* SPDX-License-Identifier: Apache-2.0
 *
 * Instances: insert, get, delete, list, and their JSON.
 */
#include "base/mem.h"
#include "base/str.h"
#include "cloud/catalogue.h"
#include "emulator/gce/gce.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- JSON ---- */

/* The status; NULL if the instance is gone. A stopped one is TERMINATED and still exists. */
static const char *instance_status(const struct instance *i, struct wall now)
{
    switch (i->state) {
    case INSTANCE_PENDING:
        return now.ms < (i->launched_at.ms + i->boots_at.ms) / 2 ? "PROVISIONING" : "STAGING";
    case INSTANCE_RUNNING:
        return i->is_soft_off ? "STOPPING" : "RUNNING";
    case INSTANCE_SHUTTING_DOWN:
    case INSTANCE_STOPPING:
        return "STOPPING";
    case INSTANCE_STOPPED:
        return "TERMINATED";
    default:
        return NULL;
    }
}

static json_t *metadata_json(const struct tags *tags)
{
    json_t *o = json_object();
    json_object_set_new(o, "kind", json_string("compute#metadata"));
    if (tags->n > 0)
        json_object_set_new(o, "items", tags_json_list(tags, "key"));
    return o;
}

static json_t *scheduling_json(const struct launch_spec *s)
{
    json_t *o = json_object();
    bool is_spot = s->market == CLOUD_SPOT;
    json_object_set_new(
        o, "onHostMaintenance", json_string(s->ends_at_maintenance ? "TERMINATE" : "MIGRATE"));
    json_object_set_new(o, "automaticRestart", json_boolean(!is_spot));
    json_object_set_new(o, "preemptible", json_boolean(is_spot));
    json_object_set_new(o, "provisioningModel", json_string(is_spot ? "SPOT" : "STANDARD"));
    if (is_spot || s->max_run_ms > 0)
        json_object_set_new(
            o, "instanceTerminationAction", json_string(s->reclaim_stops ? "STOP" : "DELETE"));
    if (s->max_run_ms > 0)
        json_object_set_new(o, "maxRunDuration",
            json_pack("{s:o}", "seconds", json_sprintf("%lld", (long long)(s->max_run_ms / 1000))));
    if (s->soft_off_lead_ms > 0)
        json_object_set_new(o, "preemptionNoticeDuration",
            json_pack(
                "{s:o}", "seconds", json_sprintf("%lld", (long long)(s->soft_off_lead_ms / 1000))));
    return o;
}

static void add_accelerators(json_t *o, const struct region *r, const struct instance *i)
{
    const struct gce_gpus gpus = gce_gpus_of(i->pool->type);
    if (gpus.n == 0)
        return;
    json_t *one = json_object(), *list = json_array();
    json_object_set_new(one, "acceleratorType",
        json_sprintf(GCE_URL "/projects/%s/zones/%s/acceleratorTypes/%s", r->o->account,
            i->pool->zone, gpus.accelerator));
    json_object_set_new(one, "acceleratorCount", json_integer(gpus.n));
    json_array_append_new(list, one);
    json_object_set_new(o, "guestAccelerators", list);
}

static void add_account(json_t *o, const struct launch_spec *s)
{
    if (!s->profile[0])
        return;
    json_t *scopes = json_array(), *list = json_array();
    for (size_t k = 0; k < s->scopes.n; k++)
        json_array_append_new(scopes, json_text(s->scopes.list[k].key));
    json_array_append_new(list, json_pack("{s:s, s:o}", "email", s->profile, "scopes", scopes));
    json_object_set_new(o, "serviceAccounts", list);
}

static json_t *instance_json(const struct region *r, const struct instance *i, struct wall now)
{
    const struct launch_spec *s = &i->reservation->spec;
    const char *status = instance_status(i, now);
    json_t *o = json_object();
    json_object_set_new(o, "kind", json_string("compute#instance"));
    json_object_set_new(o, "id", json_string(i->id));
    gce_time(o, "creationTimestamp", i->launched_at);
    json_object_set_new(o, "name", json_string(s->name));
    json_object_set_new(o, "machineType",
        json_sprintf(GCE_URL "/projects/%s/zones/%s/machineTypes/%.*s", r->o->account,
            i->pool->zone, gce_machine_len(i->pool->type), i->pool->type));
    json_object_set_new(o, "status", json_string(status ? status : "TERMINATED"));
    if (i->is_reclaimed)
        json_object_set_new(o, "statusMessage", json_string("Instance was preempted."));
    json_object_set_new(o, "zone", gce_zone_url(r, i->pool->zone));
    json_object_set_new(o, "selfLink", gce_instance_url(r, i->pool->zone, s->name));
    json_object_set_new(o, "scheduling", scheduling_json(s));
    json_object_set_new(o, "networkInterfaces",
        json_pack("[{s:s, s:s, s:s}]", "kind", "compute#networkInterface", "name", "nic0",
            "networkIP", i->private_ip));
    json_object_set_new(o, "disks",
        json_pack("[{s:s, s:b, s:s, s:b, s:s}]", "kind", "compute#attachedDisk", "boot", 1,
            "deviceName", "persistent-disk-0", "autoDelete", 1, "mode", "READ_WRITE"));
    add_accelerators(o, r, i);
    add_account(o, s);
    json_object_set_new(o, "metadata", metadata_json(&s->attributes));
    if (i->tags.n > 0)
        json_object_set_new(o, "labels", tags_json(&i->tags));
    json_object_set_new(o, "cpuPlatform", json_string("Intel Cascade Lake"));
    json_object_set_new(o, "deletionProtection", json_false());
    json_object_set_new(o, "startRestricted", json_false());
    gce_time(o, "lastStartTimestamp", i->running_at);
    gce_time(o, "lastStopTimestamp", i->ended_at);
    return o;
}

/* ---- Lookup ---- */

static bool is_shown(const struct gce_call *c, const struct instance *i)
{
    return instance_status(i, c->site->now) && region_is_visible(c->region, i, c->site->now);
}

static struct instance *find_existing(const struct gce_call *c, const char *name)
{
    for (size_t k = c->region->n_instances; k-- > 0;) {
        struct instance *i = c->region->instances[k];
        if (str_eq(i->reservation->spec.name, name) && str_eq(i->pool->zone, c->zone) &&
            instance_status(i, c->site->now))
            return i;
    }
    return NULL;
}

/* The first of this name in the zone that exists and is visible; NULL with the error reply set. */
static struct instance *find_instance(struct gce_call *c, const char *name)
{
    struct instance *i = find_existing(c, name);
    if (i && is_shown(c, i))
        return i;
    gce_fail(c, 404, "notFound",
        "The resource 'projects/%s/zones/%s/instances/%.80s' was not found", c->region->o->account,
        c->zone, name);
    return NULL;
}

/* ---- Insert ---- */

static void fail_operation(struct gce_operation *op, const char *code, const char *text)
{
    STR_COPY(op->error, code);
    STR_COPY(op->error_text, text);
}

static void fail_stockout(struct gce_call *c, struct gce_operation *op, const char *type)
{
    const struct gce_gpus gpus = gce_gpus_of(type);
    struct buf text = {0};
    buf_printf(&text,
        "The zone 'projects/%s/zones/%s' does not have enough resources available to fulfill the "
        "request.  ",
        c->region->o->account, c->zone);
    if (gpus.n > 0)
        buf_printf(&text,
            "A %.*s VM instance with %lld %s accelerator(s) is currently unavailable in the %s "
            "zone.",
            gce_machine_len(type), type, (long long)gpus.n, gpus.accelerator, c->zone);
    else
        buf_adds(&text, "Try a different zone, or try again later.");
    fail_operation(op,
        gpus.n > 0 ? "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS" : "ZONE_RESOURCE_POOL_EXHAUSTED",
        buf_str(&text));
    buf_deinit(&text);
}

/* A machine type and an accelerator of the zone that no pool combines count as permanently sold
 * out. spec is taken over on success. */
static int launch(struct gce_call *c, struct launch_spec *spec,
    struct reservation **ret_reservation, struct err *e)
{
    int rc = gce_gpus_check_quota(c, spec, e);
    if (rc == 0 && !market_find(&c->region->market, c->zone, spec->type, spec->market))
        rc = err_set(e, ERR_NO_CAPACITY, "no pool has %s", spec->type);
    if (rc != 0) {
        c->region->counts.refusals++;
        return rc;
    }
    rc = region_launch(c->region, spec, c->zone, "", 1, 1, c->site->now, ret_reservation, e);
    if (rc == ERR_QUOTA)
        err_set(e, ERR_QUOTA, "Quota 'INSTANCES' exceeded.  Limit: %lld.0 in region %s.",
            (long long)c->region->o->quota, c->region->o->name);
    return rc;
}

/* Handles a queued refusal of inserts: a failing operation if its code is an operation's, else an
 * HTTP error. 1: there was none; 0 and -1: answered. */
static int take_refusal(struct gce_call *c, const struct launch_spec *spec, const char *request_id)
{
    struct fault fault;
    if (!faults_take(&c->region->faults, FAULT_REFUSE, c->reply->action, &fault))
        return 1;
    c->region->counts.refusals++;
    if (fault.code[0] < 'A' || fault.code[0] > 'Z') {
        gce_api_error(c->site, fault.code, c->reply);
        return -1;
    }
    struct gce_operation *op = gce_operation_begin(c, "insert", spec->name);
    STR_COPY(op->request_id, request_id);
    fail_operation(op, fault.code, "The operation failed.");
    return gce_reply_operation(c, op);
}

static int insert(struct gce_call *c, struct launch_spec *spec, const char *request_id)
{
    char name[GCE_NAME_MAX];
    struct reservation *v = NULL;
    struct err e;
    STR_COPY(name, spec->name);
    if (find_existing(c, name))
        return gce_fail(c, 409, "alreadyExists",
            "The resource 'projects/%s/zones/%s/instances/%s' already exists",
            c->region->o->account, c->zone, name);
    int rc = take_refusal(c, spec, request_id);
    if (rc <= 0)
        return rc;
    rc = launch(c, spec, &v, &e);
    struct gce_operation *op = gce_operation_begin(c, "insert", name);
    STR_COPY(op->request_id, request_id);
    if (rc == ERR_QUOTA)
        fail_operation(op, "QUOTA_EXCEEDED", e.text);
    else if (rc < 0)
        fail_stockout(c, op, spec->type);
    else
        op->instance = v->instances[0];
    return gce_reply_operation(c, op);
}

int gce_instances_insert(struct gce_call *c)
{
    struct launch_spec spec = {0};
    char request_id[37];
    c->region->counts.launch_calls++;
    int rc = gce_check_zone(c);
    if (rc == 0)
        rc = gce_read_request_id(c, request_id);
    if (rc == 0)
        rc = gce_query_end(c);
    const struct gce_operation *earlier =
        rc == 0 ? gce_operation_find_request(c, request_id) : NULL;
    if (earlier) {
        c->region->counts.replays++;
        return gce_reply_operation(c, earlier);
    }
    if (rc == 0)
        rc = gce_read_instance(c, &spec);
    if (rc == 0) {
        STR_COPY(spec.token, request_id);
        rc = insert(c, &spec, request_id);
    }
    launch_spec_deinit(&spec);
    return rc;
}

/* ---- Other methods ---- */

int gce_instances_get(struct gce_call *c)
{
    if (gce_check_zone(c) < 0 || gce_query_end(c) < 0)
        return -1;
    const struct instance *i = find_instance(c, c->name);
    if (!i)
        return -1;
    gce_reply_json(c, instance_json(c->region, i, c->site->now));
    return 0;
}

#define SERIAL_MAX (1024 * 1024)

int gce_instances_serial_port(struct gce_call *c)
{
    const char *port = form_get(&c->query, "port");
    if (gce_check_zone(c) < 0 || gce_query_end(c) < 0)
        return -1;
    if (port && !str_eq(port, "1"))
        return gce_fail(c, 400, "invalid",
            "Invalid value for field 'port': '%.20s'. This emulator has port 1", port);
    const struct instance *i = find_instance(c, c->name);
    if (!i)
        return -1;
    struct buf text = {0};
    if (c->gce->console)
        c->gce->console(c->gce->console_ctx, i, &text);
    if (text.len > SERIAL_MAX)
        buf_remove_front(&text, text.len - SERIAL_MAX);
    gce_reply_json(c, json_pack("{s:s,s:o,s:s,s:s}", "kind", "compute#serialPortOutput", "contents",
                          json_text(buf_str(&text)), "start", "0", "next", "0"));
    buf_deinit(&text);
    return 0;
}

int gce_instances_delete(struct gce_call *c)
{
    char request_id[37];
    if (gce_check_zone(c) < 0 || gce_read_request_id(c, request_id) < 0 || gce_query_end(c) < 0)
        return -1;
    const struct gce_operation *earlier = gce_operation_find_request(c, request_id);
    if (earlier)
        return gce_reply_operation(c, earlier);
    struct instance *i = find_instance(c, c->name);
    if (!i)
        return -1;
    struct gce_operation *op = gce_operation_begin(c, "delete", c->name);
    STR_COPY(op->request_id, request_id);
    op->instance = i;
    region_terminate(c->region, i, c->site->now);
    return gce_reply_operation(c, op);
}

static void collect(struct gce_call *c, const char *zone, struct gce_items *items)
{
    for (size_t k = 0; k < c->region->n_instances; k++) {
        const struct instance *i = c->region->instances[k];
        if (is_shown(c, i) && (!zone || str_eq(i->pool->zone, zone)))
            gce_items_add(items, i->pool->zone, i->reservation->spec.name,
                instance_json(c->region, i, c->site->now));
    }
}

int gce_instances_list(struct gce_call *c)
{
    struct gce_items items = {0};
    if (gce_check_zone(c) < 0)
        return -1;
    collect(c, c->zone, &items);
    return gce_reply_list(c, &items, "compute#instanceList");
}

int gce_instances_aggregated(struct gce_call *c)
{
    struct gce_items items = {0};
    collect(c, NULL, &items);
    return gce_reply_aggregated(c, &items, "compute#instanceAggregatedList", "instances");
}
