/* SPDX-License-Identifier: Apache-2.0
 *
 * Everything is computed from the region on request; nothing is stored. A machine is announced to
 * end once in its life, so the document's number tells how far that has come.
 */
#include "emulator/arm/metadata.h"
#include "base/http_date.h"
#include "base/mem.h"
#include "base/str.h"
#include "cloud/aws/sigv4.h"
#include "emulator/arm/parts.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define BODY_MAX 8192
#define START_REQUESTS_MAX 100

struct metadata_query {
    struct arm *arm;
    struct instance *instance;
    struct arm_resource *vm;
    const struct arm_metadata_request *q;
    struct form *form;
    struct wall now;
    int64_t token_ttl_ms;
    struct arm_metadata_reply *reply;
};

/* ---- Replies ---- */

static void set_json(struct arm_metadata_reply *reply, int status, json_t *value)
{
    reply->status = status;
    reply->is_text = false;
    buf_clear(&reply->body);
    json_add(&reply->body, value);
}

static void refuse(
    struct arm_metadata_reply *reply, int status, const char *error, const char *description)
{
    json_t *o = json_object();
    json_object_set_new(o, "error", json_text(error));
    if (description)
        json_object_set_new(o, "error_description", json_text(description));
    set_json(reply, status, o);
}

void arm_metadata_error(int status, struct arm_metadata_reply *reply)
{
    refuse(reply, status,
        status == 404   ? "Not found"
        : status == 405 ? "Method not allowed"
        : status == 429 ? "Too many requests"
        : status >= 500 ? "Internal server error"
                        : "Bad request",
        NULL);
}

/* ---- Versions of each tree, oldest first ---- */

static const char *const versions_instance[] = {"2017-04-02", "2017-08-01", "2017-12-01",
    "2018-02-01", "2018-04-02", "2018-10-01", "2019-02-01", "2019-03-11", "2019-04-30",
    "2019-06-01", "2019-06-04", "2019-08-01", "2019-08-15", "2019-11-01", "2020-06-01",
    "2020-07-15", "2020-09-01", "2020-10-01", "2020-12-01", "2021-01-01", "2021-02-01",
    "2021-03-01", "2021-05-01", "2021-10-01", "2021-11-01", "2021-11-15", "2021-12-13",
    "2023-07-01", NULL};
static const char *const versions_events[] = {
    "2017-08-01", "2017-11-01", "2019-01-01", "2019-04-01", "2019-08-01", "2020-07-01", NULL};
static const char *const versions_identity[] = {"2018-02-01", "2019-08-01", NULL};

static bool has_version(const struct metadata_query *l, const char *const *known)
{
    const char *version = form_get(l->form, "api-version");
    size_t n = 0;
    for (; known[n]; n++)
        if (str_eq(version, known[n]))
            return true;
    json_t *o = json_object(), *newest = json_array();
    json_object_set_new(o, "error",
        json_string("Bad request. api-version is invalid or was not specified in the request."));
    for (size_t i = 0; i < 3 && i < n; i++)
        json_array_append_new(newest, json_string(known[n - 1 - i]));
    json_object_set_new(o, "newest-versions", newest);
    set_json(l->reply, 400, o);
    return false;
}

/* ---- instance ---- */

/* "eastus-1" and "1" give "1". */
static const char *short_zone(const char *zone)
{
    const char *dash = strrchr(zone, '-');
    return dash ? dash + 1 : zone;
}

static json_t *make_compute(const struct metadata_query *l)
{
    const struct launch_spec *s = &l->instance->reservation->spec;
    const struct arm_resource *vm = l->vm;
    struct buf id = {0};
    arm_resource_id(l->arm, vm, &id);
    const struct {
        const char *name, *value;
    } texts[] = {
        {"azEnvironment", "AzurePublicCloud"},
        {"evictionPolicy", arm_str_at(vm->body, "properties.evictionPolicy", "")},
        {"location", l->arm->region->o->name},
        {"name", vm->name},
        {"osType", "Linux"},
        {"priority", s->market == CLOUD_SPOT ? "Spot" : ""},
        {"provider", "Microsoft.Compute"},
        {"resourceGroupName", vm->group},
        {"resourceId", buf_str(&id)},
        {"subscriptionId", l->arm->account->subscription},
        {"userData", buf_str(&vm->user_data)},
        {"vmId", vm->uuid},
        {"vmSize", l->instance->pool->type},
        {"zone", json_array_size(arm_at(vm->body, "zones")) > 0
                     ? short_zone(l->instance->pool->zone)
                     : ""},
    };
    json_t *o = json_object();
    for (size_t k = 0; k < sizeof(texts) / sizeof(texts[0]); k++)
        json_object_set_new(o, texts[k].name, json_text(texts[k].value));
    json_object_set_new(o, "tagsList", tags_json_list(&l->instance->tags, "name"));
    buf_deinit(&id);
    return o;
}

static json_t *make_network(const struct metadata_query *l)
{
    return json_pack("{s:[{s:{s:[{s:s,s:s}]},s:{s:[]}}]}", "interface", "ipv4", "ipAddress",
        "privateIpAddress", l->instance->private_ip, "publicIpAddress", "", "ipv6", "ipAddress");
}

/* path: the text after /metadata/instance, "" or "/compute/vmSize". */
static void get_instance(const struct metadata_query *l, const char *path)
{
    const char *format = form_get(l->form, "format");
    bool is_text = str_eq(format, "text");
    json_t *whole = json_object();
    json_object_set_new(whole, "compute", make_compute(l));
    json_object_set_new(whole, "network", make_network(l));
    const json_t *v = whole;
    for (char part[64]; v && *path;) {
        size_t n = strcspn(++path, "/");
        int64_t k;
        if (n == 0)
            break; /* trailing '/' */
        snprintf(part, sizeof(part), "%.*s", (int)n, path);
        if (json_is_array(v))
            v = str_to_i64(part, 0, 1000, "index", &k, NULL) == 0 ? json_array_get(v, (size_t)k)
                                                                  : NULL;
        else
            v = json_object_get(v, part);
        path += n;
    }
    if (!v) {
        arm_metadata_error(404, l->reply);
    } else if (json_is_string(v) != is_text) {
        refuse(l->reply, 400,
            "Bad request. A leaf is returned as format=text, anything else as JSON.", NULL);
    } else if (is_text) {
        l->reply->status = 200;
        l->reply->is_text = true;
        buf_adds(&l->reply->body, json_string_value(v));
    } else {
        set_json(l->reply, 200, json_incref((json_t *)v));
    }
    json_decref(whole);
}

/* ---- Scheduled events ---- */

static bool is_announced(const struct instance *i)
{
    return wall_is_set(i->deadline);
}

static bool has_started(const struct metadata_query *l)
{
    return is_announced(l->instance) &&
           (l->instance->state != INSTANCE_RUNNING || l->now.ms >= l->instance->deadline.ms);
}

static void event_id(const struct instance *i, char out[ARM_UUID_MAX])
{
    char hash[SIGV4_HEX_MAX];
    sigv4_sha256_hex(i->id, strlen(i->id), hash);
    snprintf(out, ARM_UUID_MAX, "%.8s-%.4s-4%.3s-8%.3s-%.12s", hash, hash + 8, hash + 12, hash + 15,
        hash + 18);
}

static json_t *make_event(const struct metadata_query *l)
{
    char id[ARM_UUID_MAX], before[HTTP_DATE_MAX] = "";
    const char *version = form_get(l->form, "api-version");
    json_t *o = json_object(), *resources = json_array();
    event_id(l->instance, id);
    if (!has_started(l))
        http_date_write(region_machine_time(l->arm->region, l->instance->deadline), before);
    json_array_append_new(resources, json_text(l->vm->name));
    json_object_set_new(o, "EventId", json_string(id));
    json_object_set_new(o, "EventStatus", json_string(has_started(l) ? "Started" : "Scheduled"));
    json_object_set_new(o, "EventType", json_string("Preempt"));
    json_object_set_new(o, "ResourceType", json_string("VirtualMachine"));
    json_object_set_new(o, "Resources", resources);
    json_object_set_new(o, "NotBefore", json_string(before));
    if (strcmp(version, "2019-04-01") >= 0)
        json_object_set_new(
            o, "Description", json_string("The Spot virtual machine is being evicted."));
    if (strcmp(version, "2019-08-01") >= 0)
        json_object_set_new(o, "EventSource", json_string("Platform"));
    if (strcmp(version, "2020-07-01") >= 0)
        json_object_set_new(o, "DurationInSeconds", json_integer(-1));
    return o;
}

static void get_events(const struct metadata_query *l)
{
    json_t *o = json_object(), *events = json_array();
    if (is_announced(l->instance))
        json_array_append_new(events, make_event(l));
    json_object_set_new(
        o, "DocumentIncarnation", json_integer(1 + is_announced(l->instance) + has_started(l)));
    json_object_set_new(o, "Events", events);
    set_json(l->reply, 200, o);
}

/* -1 if malformed, or not an event of this machine. */
static int read_start(const struct metadata_query *l, const json_t *root)
{
    char id[ARM_UUID_MAX];
    const json_t *list = json_object_get(root, "StartRequests");
    size_t n = json_array_size(list);
    event_id(l->instance, id);
    if (n == 0 || n > START_REQUESTS_MAX)
        return -1;
    for (size_t k = 0; k < n; k++) {
        const char *request =
            json_string_value(json_object_get(json_array_get(list, k), "EventId"));
        if (!request || strcasecmp(request, id) != 0 || !is_announced(l->instance))
            return -1;
    }
    return 0;
}

static void start_events(const struct metadata_query *l)
{
    json_t *root = NULL;
    struct err e;
    int rc = json_parse(l->q->body, l->q->body_len, BODY_MAX, &root, &e);
    if (rc == 0)
        rc = read_start(l, root);
    json_decref(root);
    if (rc < 0) {
        refuse(l->reply, 400,
            "Bad request. Expected {\"StartRequests\":[{\"EventId\":\"...\"}]} with events that "
            "are scheduled.",
            NULL);
        return;
    }
    l->reply->status = 200;
    region_accept_reclaim(l->arm->region, l->instance, l->now);
}

/* ---- Tokens ---- */

static bool has_identity(const struct metadata_query *l)
{
    const char *client = form_get(l->form, "client_id"), *object = form_get(l->form, "object_id");
    const char *resource = form_get(l->form, "mi_res_id"), *older = form_get(l->form, "msi_res_id");
    resource = resource ? resource : older;
    client = client ? client : object;
    if (!l->vm->has_identity || (client && strcasecmp(client, l->vm->client_id) != 0))
        return false;
    const char *id;
    json_t *unused;
    bool is_ours = !resource;
    json_object_foreach((json_t *)arm_at(l->vm->body, "identity.userAssignedIdentities"), id,
        unused) is_ours = is_ours || strcasecmp(id, resource) == 0;
    return is_ours;
}

static void set_number(json_t *o, const char *key, int64_t n)
{
    char text[24];
    snprintf(text, sizeof(text), "%lld", (long long)n);
    /* numbers are strings, as in the service's reply */
    json_object_set_new(o, key, json_string(text));
}

static void get_token(const struct metadata_query *l)
{
    const char *resource = form_get(l->form, "resource");
    if (!resource || !resource[0]) {
        refuse(l->reply, 400, "invalid_request", "Required query variable 'resource' is missing");
        return;
    }
    if (!has_identity(l)) {
        refuse(l->reply, 400, "invalid_request", "Identity not found");
        return;
    }
    struct buf token = {0};
    json_t *o = json_object();
    int64_t ttl_s = l->token_ttl_ms / 1000;
    arm_auth_token(l->arm->auth, l->vm->client_id, resource, l->token_ttl_ms, l->now, &token);
    json_object_set_new(o, "access_token", json_text(buf_str(&token)));
    json_object_set_new(o, "client_id", json_string(l->vm->client_id));
    set_number(o, "expires_in", ttl_s);
    set_number(o, "expires_on", l->now.ms / 1000 + ttl_s);
    set_number(o, "ext_expires_in", ttl_s);
    set_number(o, "not_before", l->now.ms / 1000);
    json_object_set_new(o, "resource", json_text(resource));
    json_object_set_new(o, "token_type", json_string("Bearer"));
    set_json(l->reply, 200, o);
    buf_deinit(&token);
}

/* ---- Dispatch ---- */

#define INSTANCE "/metadata/instance"
#define EVENTS "/metadata/scheduledevents"
#define TOKEN "/metadata/identity/oauth2/token"

static bool is_below(const char *path, const char *dir)
{
    size_t n = strlen(dir);
    return strncasecmp(path, dir, n) == 0 && (!path[n] || path[n] == '/');
}

static void answer(const struct metadata_query *l)
{
    const char *path = l->q->path;
    bool is_get = str_eq(l->q->method, "GET");
    if (!l->q->metadata || strcasecmp(l->q->metadata, "true") != 0)
        refuse(l->reply, 400, "Bad request. Required metadata header not specified", NULL);
    else if (l->q->forwarded_for)
        refuse(l->reply, 400, "Bad request. Requests with an X-Forwarded-For header are refused",
            NULL);
    else if (is_below(path, EVENTS) && !has_version(l, versions_events))
        return;
    else if (is_below(path, EVENTS) && str_eq(l->q->method, "POST"))
        start_events(l);
    else if (!is_get)
        arm_metadata_error(405, l->reply);
    else if (is_below(path, EVENTS))
        get_events(l);
    else if (is_below(path, TOKEN) && has_version(l, versions_identity))
        get_token(l);
    else if (is_below(path, INSTANCE) && has_version(l, versions_instance))
        get_instance(l, path + strlen(INSTANCE));
    else if (l->reply->status == 0)
        arm_metadata_error(404, l->reply);
}

void arm_metadata_answer(struct arm *a, struct instance *i, const struct arm_metadata_request *q,
    struct wall now, int64_t token_ttl_ms, struct arm_metadata_reply *reply)
{
    struct form form = {0};
    struct err e;
    *reply = (struct arm_metadata_reply){0};
    const struct metadata_query l = {.arm = a,
        .instance = i,
        .vm = arm_find_instance(a, i),
        .q = q,
        .form = &form,
        .now = now,
        .token_ttl_ms = token_ttl_ms,
        .reply = reply};
    if (!l.vm)
        arm_metadata_error(503, reply);
    else if (form_parse(q->query, strlen(q->query), &form, &e) < 0)
        refuse(reply, 400, "Bad request. The query is malformed.", NULL);
    else
        answer(&l);
    form_deinit(&form);
}
