/* SPDX-License-Identifier: Apache-2.0
 *
 * Routing, versions, throttling: common to all calls. Replies are in arm/reply.c.
 */
#include "base/mem.h"
#include "base/str.h"
#include "emulator/arm/arm.h"
#include "emulator/arm/parts.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define PATH_MAX_BYTES 2048

/* ---- The path ---- */

/* Splits path at each '/' into segments; false if there are too many. */
static bool cut(char *path, char *segments[ARM_SEGMENTS_MAX], size_t *ret_n)
{
    size_t n = 0;
    for (char *at = path; *at;) {
        while (*at == '/')
            *at++ = '\0';
        if (!*at)
            break;
        if (n == ARM_SEGMENTS_MAX)
            return false;
        segments[n++] = at;
        while (*at && *at != '/')
            at++;
    }
    *ret_n = n;
    return true;
}

static bool is_word(const char *a, const char *b)
{
    return strcasecmp(a, b) == 0;
}

enum route {
    ROUTE_NONE,
    ROUTE_TOKEN,
    ROUTE_PRICES,
    ROUTE_ALL,
    ROUTE_GROUP,
    ROUTE_OPERATION,
    ROUTE_LIST,     /* of a kind, in the subscription or a group */
    ROUTE_RESOURCE, /* one of a kind */
    ROUTE_VIEW,
    ROUTE_EVICT,
    ROUTE_CONSOLE,
    ROUTE_USAGES
};

static const char *const names_of_kinds[] = {"virtualMachines", "networkInterfaces", "disks"};

static bool find_kind(const char *provider, const char *type, enum arm_kind *ret_kind)
{
    char whole[160];
    snprintf(whole, sizeof(whole), "%.70s/%.70s", provider, type);
    for (int k = ARM_KIND_VM; k <= ARM_KIND_DISK; k++)
        if (is_word(whole, arm_type((enum arm_kind)k))) {
            *ret_kind = (enum arm_kind)k;
            return true;
        }
    return false;
}

/* The path after /providers. */
static enum route route_provider(char *const *s, size_t n, bool in_group, enum arm_kind *ret_kind)
{
    if (!in_group && n == 5 && is_word(s[1], "locations") && is_word(s[3], "operations") &&
        (is_word(s[0], "Microsoft.Compute") || is_word(s[0], "Microsoft.Network")))
        return ROUTE_OPERATION;
    if (!in_group && n == 4 && is_word(s[0], "Microsoft.Compute") && is_word(s[1], "locations") &&
        is_word(s[3], "usages"))
        return ROUTE_USAGES;
    if (n < 2 || !find_kind(s[0], s[1], ret_kind))
        return ROUTE_NONE;
    if (n == 2)
        return ROUTE_LIST;
    if (!in_group || n > 4)
        return ROUTE_NONE;
    if (n == 3)
        return ROUTE_RESOURCE;
    if (*ret_kind != ARM_KIND_VM)
        return ROUTE_NONE;
    return is_word(s[3], "instanceView")                  ? ROUTE_VIEW
           : is_word(s[3], "simulateEviction")            ? ROUTE_EVICT
           : is_word(s[3], "retrieveBootDiagnosticsData") ? ROUTE_CONSOLE
                                                          : ROUTE_NONE;
}

static enum route find_route(char *const *s, size_t n, enum arm_kind *ret_kind)
{
    if (n == 4 && is_word(s[1], "oauth2") && is_word(s[2], "v2.0") && is_word(s[3], "token"))
        return ROUTE_TOKEN;
    if (n == 3 && is_word(s[0], "api") && is_word(s[1], "retail") && is_word(s[2], "prices"))
        return ROUTE_PRICES;
    if (n < 3 || !is_word(s[0], "subscriptions"))
        return ROUTE_NONE;
    if (is_word(s[2], "resources"))
        return n == 3 ? ROUTE_ALL : ROUTE_NONE;
    if (is_word(s[2], "providers"))
        return route_provider(s + 3, n - 3, false, ret_kind);
    if (!is_word(s[2], "resourceGroups") || n < 4)
        return ROUTE_NONE;
    if (n == 4)
        return ROUTE_GROUP;
    return is_word(s[4], "providers") ? route_provider(s + 5, n - 5, true, ret_kind) : ROUTE_NONE;
}

void arm_action(const struct arm_request *q, char out[ARM_ACTION_MAX])
{
    char *segments[ARM_SEGMENTS_MAX], *text = mem_strndup(q->path, PATH_MAX_BYTES);
    size_t n = 0;
    enum arm_kind kind = ARM_KIND_VM;
    const char *verb = str_eq(q->method, "PUT")      ? "write"
                       : str_eq(q->method, "DELETE") ? "delete"
                                                     : "read";
    switch (cut(text, segments, &n) ? find_route(segments, n, &kind) : ROUTE_NONE) {
    case ROUTE_NONE:
        snprintf(out, ARM_ACTION_MAX, "?");
        break;
    case ROUTE_TOKEN:
        snprintf(out, ARM_ACTION_MAX, "token");
        break;
    case ROUTE_PRICES:
        snprintf(out, ARM_ACTION_MAX, "prices");
        break;
    case ROUTE_ALL:
        snprintf(out, ARM_ACTION_MAX, "resources/read");
        break;
    case ROUTE_GROUP:
        snprintf(out, ARM_ACTION_MAX, "resourceGroups/read");
        break;
    case ROUTE_OPERATION:
        snprintf(out, ARM_ACTION_MAX, "operations/read");
        break;
    case ROUTE_USAGES:
        snprintf(out, ARM_ACTION_MAX, "usages/read");
        break;
    case ROUTE_EVICT:
        snprintf(out, ARM_ACTION_MAX, "virtualMachines/simulateEviction");
        break;
    case ROUTE_CONSOLE:
        snprintf(out, ARM_ACTION_MAX, "virtualMachines/retrieveBootDiagnosticsData");
        break;
    case ROUTE_LIST:
    case ROUTE_RESOURCE:
    case ROUTE_VIEW:
        snprintf(out, ARM_ACTION_MAX, "%s/%s", names_of_kinds[kind], verb);
        break;
    }
    free(text);
}

/* ---- Versions ---- */

static const char *const versions_compute[] = {"2021-03-01", "2021-04-01", "2021-07-01",
    "2021-11-01", "2022-03-01", "2022-08-01", "2022-11-01", "2023-03-01", "2023-07-01",
    "2023-09-01", "2024-03-01", "2024-07-01", "2024-11-01", "2025-04-01", "2025-11-01",
    "2026-03-01", NULL};
static const char *const versions_network[] = {"2020-11-01", "2021-02-01", "2021-05-01",
    "2021-08-01", "2022-01-01", "2022-05-01", "2022-07-01", "2022-09-01", "2022-11-01",
    "2023-02-01", "2023-04-01", "2023-05-01", "2023-06-01", "2023-09-01", "2023-11-01",
    "2024-01-01", "2024-03-01", "2024-05-01", "2024-07-01", "2024-10-01", "2025-01-01", NULL};
static const char *const versions_disks[] = {"2020-12-01", "2021-04-01", "2021-08-01", "2021-12-01",
    "2022-03-02", "2022-07-02", "2023-01-02", "2023-04-02", "2023-10-02", "2024-03-02",
    "2025-01-02", NULL};
static const char *const versions_resources[] = {"2019-10-01", "2020-06-01", "2021-01-01",
    "2021-04-01", "2022-09-01", "2023-07-01", "2024-03-01", "2024-07-01", "2024-11-01",
    "2025-04-01", NULL};

static const char *const *versions_of(
    const struct arm_call *c, enum route route, enum arm_kind kind)
{
    if (route == ROUTE_ALL || route == ROUTE_GROUP)
        return versions_resources;
    if (route == ROUTE_OPERATION)
        return is_word(c->segments[3], "Microsoft.Network") ? versions_network : versions_compute;
    return kind == ARM_KIND_VM    ? versions_compute
           : kind == ARM_KIND_NIC ? versions_network
                                  : versions_disks;
}

static int check_version(struct arm_call *c, enum route route, enum arm_kind kind)
{
    const char *version = form_get(&c->form, "api-version");
    if (!version || !version[0])
        return arm_fail(c, "MissingApiVersionParameter",
            "The api-version query parameter (?api-version=) is required for all requests.");
    const char *const *known = versions_of(c, route, kind);
    /* Operations are polled with the version of the call that started them. */
    bool is_any = route == ROUTE_OPERATION;
    if (str_is_one_of(version, known) || (is_any && (str_is_one_of(version, versions_disks) ||
                                                        str_is_one_of(version, versions_network) ||
                                                        str_is_one_of(version, versions_compute))))
        return 0;
    struct buf list = {0};
    for (size_t i = 0; known[i]; i++)
        buf_printf(&list, "%s%s", i ? "," : "", known[i]);
    int rc = arm_fail(c, "InvalidApiVersionParameter",
        "The api-version '%.40s' is invalid. The supported versions are '%s'.", version,
        buf_str(&list));
    buf_deinit(&list);
    return rc;
}

/* ---- Throttling: Azure Resource Manager's token buckets for a subscription ---- */

enum { BUCKET_READS, BUCKET_WRITES, BUCKET_DELETES };

static const struct {
    int64_t size, per_s;
    const char *name, *header;
} buckets[] = {
    {250, 25, "read", "x-ms-ratelimit-remaining-subscription-reads"},
    {200, 10, "write", "x-ms-ratelimit-remaining-subscription-writes"},
    {200, 10, "delete", "x-ms-ratelimit-remaining-subscription-deletes"},
};

static int throttle(struct arm_call *c)
{
    int k = str_eq(c->q->method, "GET")      ? BUCKET_READS
            : str_eq(c->q->method, "DELETE") ? BUCKET_DELETES
                                             : BUCKET_WRITES;
    struct arm_bucket *b = &c->arm->buckets[k];
    int64_t full = buckets[k].size * 1000;
    if (!wall_is_set(b->at))
        *b = (struct arm_bucket){.left = full, .at = c->now};
    int64_t passed_ms = c->now.ms > b->at.ms ? c->now.ms - b->at.ms : 0;
    b->at = c->now;
    b->left = passed_ms >= full / buckets[k].per_s || b->left + passed_ms * buckets[k].per_s > full
                  ? full
                  : b->left + passed_ms * buckets[k].per_s;
    if (b->left < 1000)
        return arm_fail(c, "SubscriptionRequestsThrottled",
            "Number of '%s' requests for subscription '%s' exceeded the limit. Please try again "
            "after '1' seconds.",
            buckets[k].name, c->arm->account->subscription);
    b->left -= 1000;
    char left[24];
    snprintf(left, sizeof(left), "%lld", (long long)(b->left / 1000));
    arm_add_header(c->reply, buckets[k].header, left);
    return 0;
}

/* ---- Operations ---- */

void arm_add_operation_headers(struct arm_call *c, const struct arm_operation *op)
{
    struct buf url = {0};
    const char *version = form_get(&c->form, "api-version");
    buf_printf(&url,
        "%s/subscriptions/%s/providers/Microsoft.Compute/locations/%s/operations/%s?api-version=%s",
        c->q->base, c->arm->account->subscription, c->arm->region->o->name, op->id, version);
    arm_add_header(c->reply, "Azure-AsyncOperation", buf_str(&url));
    buf_adds(&url, "&monitor=true");
    arm_add_header(c->reply, "Location", buf_str(&url));
    arm_add_retry_after(c->reply, c->arm->account->retry_after_s);
    buf_deinit(&url);
}

static void set_time(json_t *o, const char *key, struct wall w)
{
    char iso[TIME_ISO_MAX];
    time_format_iso(w, iso);
    if (wall_is_set(w))
        json_object_set_new(o, key, json_string(iso));
}

static int get_operation(struct arm_call *c)
{
    const struct arm_operation *op = arm_find_operation(c->arm, c->segments[7]);
    bool is_monitor = str_eq(form_get(&c->form, "monitor"), "true");
    if (!op)
        return arm_fail(c, "NotFound", "The operation '%.60s' was not found.", c->segments[7]);
    bool is_over = wall_is_set(op->end);
    if (!is_over)
        arm_add_retry_after(c->reply, c->arm->account->retry_after_s);
    if (is_monitor && is_over && op->code[0])
        return arm_fail(c, op->code, "%s", op->text);
    if (is_monitor) {
        c->reply->status = !is_over ? 202 : op->is_delete ? 204 : 200;
        return 0;
    }
    json_t *o = json_object();
    set_time(o, "startTime", op->start);
    set_time(o, "endTime", op->end);
    json_object_set_new(o, "status", json_string(op->status));
    if (op->code[0]) {
        json_t *error = json_object();
        json_object_set_new(error, "code", json_text(op->code));
        json_object_set_new(error, "message", json_text(op->text));
        json_object_set_new(o, "error", error);
    }
    json_object_set_new(o, "name", json_string(op->id));
    c->reply->body = o;
    return 0;
}

/* ---- Dispatch ---- */

static int get_group(struct arm_call *c)
{
    json_t *o = json_object(), *properties = json_object();
    struct buf id = {0};
    buf_printf(&id, "/subscriptions/%s/resourceGroups/%s", c->arm->account->subscription, c->group);
    json_object_set_new(o, "id", json_text(buf_str(&id)));
    json_object_set_new(o, "name", json_text(c->group));
    json_object_set_new(o, "type", json_string("Microsoft.Resources/resourceGroups"));
    json_object_set_new(o, "location", json_string(c->arm->region->o->name));
    json_object_set_new(properties, "provisioningState", json_string("Succeeded"));
    json_object_set_new(o, "properties", properties);
    c->reply->body = o;
    buf_deinit(&id);
    return 0;
}

static int check_scope(struct arm_call *c)
{
    const struct arm_account *account = c->arm->account;
    if (!is_word(c->segments[1], account->subscription))
        return arm_fail(c, "SubscriptionNotFound", "The subscription '%.60s' could not be found.",
            c->segments[1]);
    if (!is_word(c->segments[2], "resourceGroups"))
        return 0;
    c->group = c->segments[3];
    bool is_known = !account->groups && strlen(c->group) < ARM_GROUP_MAX;
    for (size_t i = 0; account->groups && account->groups[i]; i++)
        is_known = is_known || is_word(account->groups[i], c->group);
    if (!is_known)
        return arm_fail(
            c, "ResourceGroupNotFound", "Resource group '%.90s' could not be found.", c->group);
    return 0;
}

static int read_body(struct arm_call *c)
{
    struct err e;
    if (c->q->body_len == 0)
        return 0;
    if (json_parse(c->q->body, c->q->body_len, ARM_BODY_MAX, &c->body, &e) < 0)
        return arm_fail(c, "InvalidRequestContent",
            "The request content was invalid and could not be deserialized: '%s'.", e.text);
    return 0;
}

static int not_allowed(struct arm_call *c)
{
    return arm_fail(c, "MethodNotAllowed", "The HTTP method '%.10s' is not supported at '%.100s'.",
        c->q->method, c->q->path);
}

static int call_resource(struct arm_call *c, enum arm_kind kind)
{
    bool is_get = str_eq(c->q->method, "GET"), is_put = str_eq(c->q->method, "PUT");
    c->name = c->segments[7];
    if (is_get)
        return arm_get(c, kind);
    if (str_eq(c->q->method, "DELETE"))
        return kind == ARM_KIND_VM ? arm_delete_vm(c) : arm_delete_part(c, kind);
    if (!is_put || kind == ARM_KIND_DISK)
        return not_allowed(c);
    return kind == ARM_KIND_VM ? arm_put_vm(c) : arm_put_nic(c);
}

static int call_route(struct arm_call *c, enum route route, enum arm_kind kind)
{
    bool is_get = str_eq(c->q->method, "GET");
    if (route == ROUTE_RESOURCE)
        return call_resource(c, kind);
    if (route == ROUTE_EVICT || route == ROUTE_CONSOLE) {
        c->name = c->segments[7];
        return !str_eq(c->q->method, "POST") ? not_allowed(c)
               : route == ROUTE_EVICT        ? arm_evict_vm(c)
                                             : arm_boot_diagnostics(c);
    }
    if (!is_get)
        return not_allowed(c);
    c->name = route == ROUTE_VIEW ? c->segments[7] : NULL;
    switch (route) {
    case ROUTE_ALL:
        return arm_list_all(c);
    case ROUTE_GROUP:
        return get_group(c);
    case ROUTE_OPERATION:
        return get_operation(c);
    case ROUTE_LIST:
        return arm_list(c, kind);
    case ROUTE_USAGES:
        return arm_list_usages(c);
    default:
        return arm_get_instance_view(c);
    }
}

static int call_arm(struct arm_call *c, enum route route, enum arm_kind kind)
{
    struct err e;
    const char *code = arm_auth_check(c->arm->auth, c->q->authorization, c->now, &e);
    if (code)
        return arm_fail(c, code, "%s", e.text);
    if (route == ROUTE_NONE)
        return arm_fail(
            c, "HttpResourceNotFound", "The request url '%.200s' is not found.", c->q->path);
    if (check_version(c, route, kind) < 0 || throttle(c) < 0 || check_scope(c) < 0 ||
        read_body(c) < 0)
        return -1;
    return call_route(c, route, kind);
}

static void call(struct arm_call *c)
{
    struct err e;
    enum arm_kind kind = ARM_KIND_VM;
    if (strlen(c->q->path) > PATH_MAX_BYTES || !cut(c->text, c->segments, &c->n_segments)) {
        arm_fail(c, "HttpResourceNotFound", "The request url is not found.");
        return;
    }
    enum route route = find_route(c->segments, c->n_segments, &kind);
    if (form_parse(c->q->query, strlen(c->q->query), &c->form, &e) < 0)
        arm_fail(c, "InvalidRequestUri", "The query is malformed: %s", e.text);
    else if (route == ROUTE_TOKEN && str_eq(c->q->method, "POST"))
        c->reply->status = arm_auth_grant(
            c->arm->auth, c->segments[0], c->q->body, c->q->body_len, c->now, &c->reply->body);
    else if (route == ROUTE_PRICES && str_eq(c->q->method, "GET"))
        arm_list_prices(c);
    else if (route == ROUTE_TOKEN || route == ROUTE_PRICES)
        not_allowed(c);
    else
        call_arm(c, route, kind);
}

void arm_call(struct arm *a, const struct arm_request *q, struct wall now, struct arm_reply *reply)
{
    arm_advance(a, now);
    *reply = (struct arm_reply){.status = 200};
    arm_make_uuid(&a->region->request_ids, reply->request_id);
    struct arm_call c = {.arm = a, .q = q, .now = now, .reply = reply, .text = mem_strdup(q->path)};
    call(&c);
    json_decref(c.body);
    form_deinit(&c.form);
    free(c.text);
}
