/* SPDX-License-Identifier: Apache-2.0
 *
 * Authentication, dispatch, and the format of errors; lists are in gce/list.c. Order: the token
 * endpoint has no caller; otherwise token, address, rights, rate, faults, method.
 */
#include "emulator/gce/gce.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/vformat.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GRANT_JWT "urn:ietf:params:oauth:grant-type:jwt-bearer"
#define TOKEN_AUDIENCE "https://oauth2.googleapis.com/token"
#define TOKEN_PATH "/token"

/* ---- Errors ---- */

static const struct {
    const char *reason;
    int status;
    const char *domain, *canonical, *text;
} errors[] = {
    {"authError", 401, "global", "UNAUTHENTICATED",
        "Request had invalid authentication credentials. Expected OAuth 2 access token, login "
        "cookie or other valid authentication credential. See "
        "https://developers.google.com/identity/sign-in/web/devconsole-project."},
    {"required", 401, "global", "UNAUTHENTICATED", "Login Required."},
    {"forbidden", 403, "global", "PERMISSION_DENIED", "The caller does not have permission"},
    {"insufficientPermissions", 403, "global", "PERMISSION_DENIED",
        "Request had insufficient authentication scopes."},
    {"quotaExceeded", 403, "usageLimits", NULL, "Quota exceeded."},
    {"rateLimitExceeded", 403, "usageLimits", NULL, "Rate Limit Exceeded"},
    {"userRateLimitExceeded", 403, "usageLimits", NULL, "User Rate Limit Exceeded"},
    {"notFound", 404, "global", NULL, "The resource was not found"},
    {"alreadyExists", 409, "global", NULL, "The resource already exists"},
    {"resourceInUseByAnotherResource", 400, "global", NULL,
        "The resource is in use by another resource"},
    {"resourceNotReady", 400, "global", NULL, "The resource is not ready"},
    {"insufficientCapacity", 503, "global", NULL, "There is not enough capacity"},
    {"internalError", 500, "global", "INTERNAL",
        "Internal error. Please try again or contact Google Support."},
    {"backendError", 503, "global", "UNAVAILABLE", "Backend Error"},
};
#define N_ERRORS (sizeof(errors) / sizeof(errors[0]))

static void write_error(struct front_reply *reply, int status, const char *reason, const char *text)
{
    const char *domain = "global", *canonical = status == 400 ? "INVALID_ARGUMENT" : NULL;
    for (size_t k = 0; k < N_ERRORS; k++)
        if (str_eq(errors[k].reason, reason)) {
            domain = errors[k].domain;
            canonical = errors[k].canonical;
        }
    json_t *one = json_object(), *list = json_array(), *error = json_object(), *o = json_object();
    json_object_set_new(one, "message", json_text(text));
    json_object_set_new(one, "domain", json_string(domain));
    json_object_set_new(one, "reason", json_text(reason));
    if (status == 401) {
        json_object_set_new(one, "location", json_string("Authorization"));
        json_object_set_new(one, "locationType", json_string("header"));
        front_reply_header(
            reply, "WWW-Authenticate", "Bearer realm=\"https://accounts.google.com/\"");
    }
    json_array_append_new(list, one);
    json_object_set_new(error, "code", json_integer(status));
    json_object_set_new(error, "message", json_text(text));
    json_object_set_new(error, "errors", list);
    if (canonical)
        json_object_set_new(error, "status", json_string(canonical));
    json_object_set_new(o, "error", error);
    buf_clear(&reply->body);
    json_add(&reply->body, o);
    reply->status = status;
    reply->content_type = GCE_JSON_TYPE;
    reply->wait_ms = 0;
}

void gce_api_error(const struct front_site *s, const char *code, struct front_reply *reply)
{
    (void)s;
    for (size_t k = 0; k < N_ERRORS; k++)
        if (str_eq(errors[k].reason, code)) {
            write_error(reply, errors[k].status, code, errors[k].text);
            return;
        }
    write_error(reply, 400, code, code);
}

int gce_fail(struct gce_call *c, int status, const char *reason, const char *fmt, ...)
{
    char text[1024];
    VFORMAT(text, fmt);
    write_error(c->reply, status, reason, text);
    return -1;
}

void gce_reply_json(struct gce_call *c, json_t *value)
{
    json_add(&c->reply->body, value);
    c->reply->content_type = GCE_JSON_TYPE;
}

/* ---- The token endpoint ---- */

static void refuse_grant(struct front_reply *reply, const char *code, const char *text)
{
    json_t *o = json_object();
    json_object_set_new(o, "error", json_string(code));
    json_object_set_new(o, "error_description", json_text(text));
    json_add(&reply->body, o);
    reply->status = 400;
}

static int grant(const struct front_site *s, const struct front_request *r, struct form *form,
    struct front_reply *reply, struct err *e)
{
    struct gce *gce = s->state;
    struct gce_caller caller;
    const char *type = form_get(form, "grant_type"), *assertion = form_get(form, "assertion");
    const char *host = front_header(r, "Host");
    char here[256];
    snprintf(here, sizeof(here), "http://%s" TOKEN_PATH, host ? host : "");
    const char *const audiences[] = {TOKEN_AUDIENCE, here, NULL};
    if (!str_eq(type, GRANT_JWT)) {
        refuse_grant(reply, "unsupported_grant_type", "Invalid grant_type");
        return 0;
    }
    if (!assertion)
        return err_set(e, ERR_INVALID, "Missing required parameter: assertion");
    int rc = gce_auth_check_assertion(&gce->auth, assertion, audiences, s->clock, &caller, e);
    if (rc < 0)
        return rc;
    const struct gce_token *t =
        gce_auth_issue(&gce->auth, &caller, "", SECONDS_MS(GCE_TOKEN_TTL_S), s->now);
    buf_printf(&reply->body,
        "{\"access_token\":\"%s\",\"expires_in\":%d,\"token_type\":\"Bearer\"}", t->text,
        GCE_TOKEN_TTL_S - 1);
    return 0;
}

static void answer_token(
    const struct front_site *s, const struct front_request *r, struct front_reply *reply)
{
    struct form form = {0};
    struct fault fault;
    struct err e = {0};
    STR_COPY(reply->action, "token");
    reply->content_type = GCE_JSON_TYPE;
    const char *refusal = front_refusal(s->region, "token", "rateLimitExceeded", &fault);
    if (refusal)
        refuse_grant(reply, refusal, "refused");
    else if (!str_eq(r->method, "POST"))
        refuse_grant(reply, "invalid_request", "the token endpoint takes POST");
    else if (form_parse(r->body, r->body_len, &form, &e) < 0)
        refuse_grant(reply, "invalid_request", e.text);
    else if (grant(s, r, &form, reply, &e) < 0)
        refuse_grant(reply, e.kind == ERR_INVALID ? "invalid_request" : "invalid_grant", e.text);
    for (size_t k = 0; k < form.n; k++)
        explicit_bzero(form.list[k].value, strlen(form.list[k].value));
    form_deinit(&form);
}

/* ---- Authentication ---- */

/* -1 with the refusal set. */
static int check_caller(struct gce_call *c, struct gce_caller *ret_caller)
{
    const char *header = front_header(c->request, "Authorization");
    struct err e;
    if (!header || !str_starts(header, "Bearer ")) {
        gce_api_error(c->site, "required", c->reply);
        return -1;
    }
    if (gce_auth_check_bearer(
            &c->gce->auth, header + 7, c->site->now, c->site->clock, ret_caller, &e) < 0) {
        gce_api_error(c->site, "authError", c->reply);
        return -1;
    }
    c->caller = ret_caller->account;
    return 0;
}

static int check_rights(struct gce_call *c, const struct gce_caller *caller, enum gce_group group)
{
    enum gce_role role = caller->account->role;
    if (!caller->has_scope) {
        gce_api_error(c->site, "insufficientPermissions", c->reply);
        return -1;
    }
    if (role == GCE_ROLE_ADMIN || (role == GCE_ROLE_VIEWER && group == GCE_READ))
        return 0;
    return gce_fail(c, 403, "forbidden", "Required 'compute.%s' permission for 'projects/%s'",
        c->reply->action, c->region->o->account);
}

static int check_rate(struct gce_call *c, enum gce_group group)
{
    struct gce_rate *rate = &c->gce->rates[group];
    if (c->site->now.ms - rate->began_at.ms >= GCE_MINUTE_MS)
        *rate = (struct gce_rate){.began_at = c->site->now};
    if (rate->n++ < c->gce->rate_limit)
        return 0;
    return gce_fail(c, 403, "rateLimitExceeded",
        "Quota exceeded for quota group '%s' and limit 'Queries per minute' of service "
        "'compute.googleapis.com' for "
        "consumer '%s'.",
        group == GCE_READ ? "ReadGroup" : "default", c->region->o->account);
}

/* ---- Dispatch ---- */

#define QUOTA_INFOS "locations/global/services/compute.googleapis.com/quotaInfos/"

static const struct {
    const char *method, *path; /* below the project; * is any one name */
    const char *action;
    enum gce_group group;
    int (*run)(struct gce_call *c);
} methods[] = {
    {"POST", "zones/*/instances", "instances.insert", GCE_MUTATE, gce_instances_insert},
    {"GET", "zones/*/instances", "instances.list", GCE_READ, gce_instances_list},
    {"GET", "zones/*/instances/*", "instances.get", GCE_READ, gce_instances_get},
    {"GET", "zones/*/instances/*/serialPort", "instances.getSerialPortOutput", GCE_READ,
        gce_instances_serial_port},
    {"DELETE", "zones/*/instances/*", "instances.delete", GCE_MUTATE, gce_instances_delete},
    {"GET", "aggregated/instances", "instances.aggregatedList", GCE_READ, gce_instances_aggregated},
    {"GET", "aggregated/disks", "disks.aggregatedList", GCE_READ, gce_disks_aggregated},
    {"GET", "zones/*/operations/*", "zoneOperations.get", GCE_READ, gce_operations_get},
    {"POST", "zones/*/operations/*/wait", "zoneOperations.wait", GCE_READ, gce_operations_wait},
    {"GET", "zones/*/operations", "zoneOperations.list", GCE_READ, gce_operations_list},
    {"GET", "aggregated/operations", "globalOperations.aggregatedList", GCE_READ,
        gce_operations_aggregated},
    {"GET", "zones", "zones.list", GCE_READ, gce_zones_list},
    {"GET", "regions/*", "regions.get", GCE_READ, gce_regions_get},
    {"GET", "", "projects.get", GCE_READ, gce_projects_get},
    {"GET", QUOTA_INFOS GCE_FAMILY_QUOTA, "quotaInfos.get", GCE_READ, gce_family_quota_get},
};
#define N_METHODS (sizeof(methods) / sizeof(methods[0]))

/* Whether the path, split into n segments, matches. The names in it are the zone and the resource.
 */
static bool fits(struct gce_call *c, const char *pattern, char *const *segments, size_t n)
{
    const char *names[2] = {"", ""};
    size_t k = 0, n_names = 0;
    if (!*pattern)
        return n == 0;
    for (const char *p = pattern; *p && k < n; k++) {
        size_t len = strcspn(p, "/");
        bool is_name = len == 1 && p[0] == '*';
        if (!is_name && (strlen(segments[k]) != len || strncmp(segments[k], p, len) != 0))
            return false;
        if (is_name && n_names < 2)
            names[n_names++] = segments[k];
        p += len + (p[len] == '/');
        if (!*p && k + 1 == n) {
            c->zone = names[0];
            c->name = names[1];
            return true;
        }
    }
    return false;
}

/* The method, or N_METHODS with the error set. */
static size_t find_method(struct gce_call *c)
{
    /* the last is of Cloud Quotas, which has a host of its own at Google */
    static const char *const roots[] = {
        "/compute/v1/projects/", "/compute/beta/projects/", "/v1/projects/"};
    size_t root = 0;
    char *segments[GCE_SEGMENTS_MAX], *rest = NULL;
    size_t n = 0;
    for (size_t k = 0; k < sizeof(roots) / sizeof(roots[0]) && !rest; k++)
        if (str_starts(c->request->path, roots[k])) {
            root = k;
            c->is_beta = k == 1;
            c->path = rest = mem_strdup(c->request->path + strlen(roots[k]));
        }
    while (rest && n < GCE_SEGMENTS_MAX)
        segments[n++] = strsep(&rest, "/");
    bool is_other_way = false;
    for (size_t k = 0; k < N_METHODS && n > 0 && !rest; k++) {
        if (str_starts(methods[k].path, QUOTA_INFOS) != (root == 2) ||
            !fits(c, methods[k].path, segments + 1, n - 1))
            continue;
        is_other_way = true;
        if (!str_eq(methods[k].method, c->request->method))
            continue;
        STR_COPY(c->reply->action, methods[k].action);
        if (str_eq(segments[0], c->region->o->account))
            return k;
        gce_fail(c, 404, "notFound", "The resource 'projects/%.80s' was not found", segments[0]);
        return N_METHODS;
    }
    if (is_other_way)
        gce_fail(c, 405, "httpMethodNotAllowed", "The method is not allowed for this resource.");
    else
        gce_fail(c, 404, "notFound",
            "The requested URL %.200s was not found on this server; this emulator has "
            "instances, zones and zone operations of v1.",
            c->request->path);
    return N_METHODS;
}

/* System parameters without effect here are accepted. */
static int read_query(struct gce_call *c)
{
    static const char *const ignored[] = {"alt", "$alt", "prettyPrint", "$prettyPrint", "fields",
        "$fields", "key", "quotaUser", "userIp", "$.xgafv", "returnPartialSuccess",
        "includeAllScopes", NULL};
    const char *text = front_query(c->request);
    struct err e;
    if (form_parse(text, strlen(text), &c->query, &e) < 0)
        return gce_fail(c, 400, "badRequest", "%s", e.text);
    for (size_t k = 0; ignored[k]; k++)
        form_get(&c->query, "%s", ignored[k]);
    return 0;
}

/* A refusal with an operation's code (RESOURCE_POOL_EXHAUSTED) is left to the method. */
static int take_refusal(struct gce_call *c)
{
    struct fault fault;
    if (c->request->mark)
        return 0; /* a waiting request, already admitted */
    if (faults_take(&c->region->faults, FAULT_THROTTLE, c->reply->action, &fault))
        return gce_fail(c, 429, "rateLimitExceeded", "Rate Limit Exceeded");
    bool is_insert = str_eq(c->reply->action, "instances.insert");
    if (is_insert || !faults_take(&c->region->faults, FAULT_REFUSE, c->reply->action, &fault))
        return 0;
    gce_api_error(c->site, fault.code, c->reply);
    return -1;
}

static void call(struct gce_call *c)
{
    struct gce_caller caller;
    if (check_caller(c, &caller) < 0)
        return;
    size_t k = find_method(c);
    if (k == N_METHODS || check_rights(c, &caller, methods[k].group) < 0 ||
        (!c->request->mark && check_rate(c, methods[k].group) < 0) || take_refusal(c) < 0 ||
        read_query(c) < 0)
        return;
    c->reply->is_noted = methods[k].group == GCE_MUTATE;
    methods[k].run(c);
}

void gce_api(const struct front_site *s, const struct front_request *r, struct front_reply *reply)
{
    struct gce_call c = {.site = s,
        .request = r,
        .reply = reply,
        .region = s->region,
        .gce = s->state,
        .zone = "",
        .name = ""};
    if (str_eq(r->path, TOKEN_PATH))
        answer_token(s, r, reply);
    else
        call(&c);
    front_reply_header(reply, "Server", "ESF");
    form_deinit(&c.query);
    free(c.path);
}

/* ---- Parameters ---- */

int gce_check_zone(struct gce_call *c)
{
    if (market_has_zone(&c->region->market, c->zone))
        return 0;
    return gce_fail(
        c, 400, "invalid", "Invalid value for field 'zone': '%.80s'. Unknown zone.", c->zone);
}

int gce_query_end(struct gce_call *c)
{
    const char *unknown = form_unused(&c->query);
    if (!unknown)
        return 0;
    return gce_fail(c, 400, "badRequest",
        "Invalid JSON payload received. Unknown name \"%.100s\": Cannot bind query parameter. "
        "Field '%.100s' could not "
        "be found in request message.",
        unknown, unknown);
}

static bool is_uuid(const char *text)
{
    static const char form[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
    bool is_zero = true;
    for (size_t k = 0; k < sizeof(form); k++) {
        if (form[k] == 'x' ? !text[k] || !strchr("0123456789abcdefABCDEF", text[k])
                           : text[k] != form[k])
            return false;
        is_zero = is_zero && (form[k] != 'x' || text[k] == '0');
    }
    return !is_zero;
}

int gce_read_request_id(struct gce_call *c, char out[37])
{
    const char *id = form_get(&c->query, "requestId");
    out[0] = '\0';
    if (!id)
        return 0;
    if (!is_uuid(id))
        return gce_fail(c, 400, "invalid",
            "Invalid value for field 'requestId': '%.60s'. Must be a valid UUID that is not zero.",
            id);
    str_copy(out, 37, id);
    return 0;
}

/* ---- Helpers for resources ---- */

void gce_time(json_t *o, const char *key, struct wall w)
{
    char iso[TIME_ISO_MAX];
    if (!wall_is_set(w))
        return;
    time_format_iso((struct wall){w.ms / 1000 * 1000}, iso);
    iso[strcspn(iso, ".Z")] = '\0';
    json_object_set_new(o, key, json_sprintf("%s.%03d+00:00", iso, (int)(w.ms % 1000)));
}

json_t *gce_zone_url(const struct region *r, const char *zone)
{
    return json_sprintf(GCE_URL "/projects/%s/zones/%s", r->o->account, zone);
}

json_t *gce_instance_url(const struct region *r, const char *zone, const char *name)
{
    return json_sprintf(GCE_URL "/projects/%s/zones/%s/instances/%s", r->o->account, zone, name);
}
