/* SPDX-License-Identifier: Apache-2.0
 *
 * Authentication, rate limits, dispatch, and the format of errors. Order: key, address, rate,
 * faults, method. The limits are per account, whichever key is used. Above the rate limit the proxy
 * before the API answers: status 429 with a line of text, no JSON.
 */
#include "base/b64.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/vformat.h"
#include "emulator/lambda/cloud.h"
#include <stdlib.h>
#include <string.h>

#define ROOT "/api/v1/"
#define TOO_OFTEN "1015"
#define NO_KEY "global/invalid-api-key"

/* ---- Errors ---- */

static const struct {
    const char *code;
    int status;
    const char *text, *suggestion; /* suggestion may be NULL */
} errors[] = {
    {NO_KEY, 401, "API key was invalid, expired, or deleted.",
        "Check your API key or create a new one, then try again."},
    {"global/account-inactive", 403, "Your account is inactive.",
        "Make sure you have verified your email address and have a valid payment method. Contact "
        "Support if problems continue."},
    {"global/forbidden", 403, "You do not have permission to do this.", NULL},
    {"global/invalid-address", 400, "Your billing address is invalid.",
        "Make sure your billing address is valid. Contact Support if problems continue."},
    {"global/invalid-parameters", 400, "Invalid request data.", NULL},
    {"global/object-does-not-exist", 404, "Specified instance does not exist.", NULL},
    {"global/not-found", 404, "There is nothing at this address.", NULL},
    {"global/quota-exceeded", 400, "Quota exceeded.", "Contact Support to increase your quota."},
    {"instance-operations/launch/insufficient-capacity", 400,
        "Not enough capacity to fulfill launch request.",
        "Choose an instance type with more availability, or try again later."},
    {"instance-operations/launch/file-system-in-wrong-region", 400,
        "The file system is in another region than the instance.", NULL},
    {"global/internal-error", 500, "An unexpected error occurred.",
        "Contact Support if this problem persists."},
    {"provider/internal-unavailable", 503, "Provider unavailable", "Try again shortly"},
};
#define N_ERRORS (sizeof(errors) / sizeof(errors[0]))

static void start_error(struct front_reply *reply, int status, const char *type)
{
    buf_clear(&reply->body);
    reply->status = status;
    reply->content_type = type;
}

static void write_error(struct front_reply *reply, int status, const char *code, const char *text)
{
    json_t *error = json_object();
    json_object_set_new(error, "code", json_text(code));
    json_object_set_new(error, "message", json_text(text));
    for (size_t k = 0; k < N_ERRORS; k++)
        if (str_eq(errors[k].code, code) && errors[k].suggestion)
            json_object_set_new(error, "suggestion", json_string(errors[k].suggestion));
    start_error(reply, status, LAMBDA_CLOUD_TYPE);
    json_add(&reply->body, json_pack("{s:o}", "error", error));
}

void lambda_cloud_api_error(const struct front_site *s, const char *code, struct front_reply *reply)
{
    (void)s;
    if (str_eq(code, TOO_OFTEN)) {
        start_error(reply, 429, "text/plain; charset=UTF-8");
        buf_adds(&reply->body, "error code: " TOO_OFTEN);
        return;
    }
    for (size_t k = 0; k < N_ERRORS; k++)
        if (str_eq(errors[k].code, code)) {
            write_error(reply, errors[k].status, code, errors[k].text);
            return;
        }
    write_error(reply, 400, code, code);
}

int lambda_cloud_fail(
    struct lambda_cloud_call *c, int status, const char *code, const char *fmt, ...)
{
    char text[1024];
    VFORMAT(text, fmt);
    write_error(c->reply, status, code, text);
    return -1;
}

static int fail_usual(struct lambda_cloud_call *c, const char *code)
{
    lambda_cloud_api_error(c->site, code, c->reply);
    return -1;
}

/* ---- Bodies ---- */

void lambda_cloud_reply(struct lambda_cloud_call *c, json_t *data)
{
    json_add(&c->reply->body, json_pack("{s:o}", "data", data));
    c->reply->content_type = LAMBDA_CLOUD_TYPE;
}

json_t *lambda_cloud_body(struct lambda_cloud_call *c)
{
    json_t *body = NULL;
    struct err e;
    if (json_parse(c->request->body, c->request->body_len, LAMBDA_CLOUD_BODY_MAX, &body, &e) < 0)
        lambda_cloud_fail(c, 400, "global/invalid-parameters", "Invalid request data. %s", e.text);
    return body;
}

/* ---- Authentication ---- */

static bool is_key(const struct lambda_cloud *cloud, const char *text)
{
    bool is_known = false;
    for (size_t k = 0; k < cloud->n_keys; k++)
        is_known |= str_secret_eq(cloud->keys[k], text);
    return is_known;
}

/* The text after "Basic ": the key as the user name, without a password. */
static bool is_basic(const struct lambda_cloud *cloud, const char *text)
{
    struct buf pair = {0};
    bool is_good = false;
    if (b64_decode(&pair, text, strlen(text), NULL) == 0 && pair.len > 0 &&
        pair.data[pair.len - 1] == ':' && !memchr(pair.data, '\0', pair.len)) {
        pair.data[--pair.len] = '\0';
        is_good = is_key(cloud, buf_str(&pair));
    }
    buf_wipe(&pair);
    return is_good;
}

static int check_caller(struct lambda_cloud_call *c)
{
    const char *shown = front_header(c->request, "Authorization");
    if (!shown || !*shown)
        return lambda_cloud_fail(c, 401, NO_KEY, "No API key was provided.");
    if (str_starts(shown, "Bearer ") ? is_key(c->cloud, shown + 7)
                                     : str_starts(shown, "Basic ") && is_basic(c->cloud, shown + 6))
        return 0;
    return fail_usual(c, NO_KEY);
}

static int check_rate(struct lambda_cloud_call *c, bool is_launch)
{
    struct lambda_cloud *cloud = c->cloud;
    struct wall now = c->site->now;
    if (now.ms < cloud->next_request.ms || (is_launch && now.ms < cloud->next_launch.ms))
        return fail_usual(c, TOO_OFTEN);
    cloud->next_request.ms = now.ms + cloud->request_every_ms;
    if (is_launch)
        cloud->next_launch.ms = now.ms + cloud->launch_every_ms;
    return 0;
}

/* ---- Dispatch ---- */

static const struct {
    const char *method, *path; /* below the root; * is the id of an instance */
    const char *action;
    bool is_launch, is_noted;
    int (*run)(struct lambda_cloud_call *c);
} methods[] = {
    {"GET", "instance-types", "listInstanceTypes", false, false, lambda_cloud_types},
    {"GET", "instances", "listInstances", false, false, lambda_cloud_list},
    {"GET", "instances/*", "getInstance", false, false, lambda_cloud_get},
    {"POST", "instance-operations/launch", "launchInstance", true, true, lambda_cloud_launch},
    {"POST", "instance-operations/terminate", "terminateInstance", false, true,
        lambda_cloud_terminate},
};
#define N_METHODS (sizeof(methods) / sizeof(methods[0]))

static bool fits(struct lambda_cloud_call *c, const char *pattern, const char *path)
{
    size_t n = strcspn(pattern, "*");
    if (!pattern[n])
        return str_eq(pattern, path);
    if (strncmp(pattern, path, n) != 0 || !path[n] || strchr(path + n, '/'))
        return false;
    c->id = path + n;
    return true;
}

/* The method, or N_METHODS with the error set. */
static size_t find_method(struct lambda_cloud_call *c)
{
    const char *path = c->request->path;
    bool is_wrong_method = false;
    for (size_t k = 0; k < N_METHODS && str_starts(path, ROOT); k++) {
        if (!fits(c, methods[k].path, path + strlen(ROOT)))
            continue;
        is_wrong_method = true;
        if (!str_eq(methods[k].method, c->request->method))
            continue;
        STR_COPY(c->reply->action, methods[k].action);
        return k;
    }
    if (is_wrong_method)
        lambda_cloud_fail(c, 405, "global/not-found", "The method is not allowed here.");
    else
        lambda_cloud_fail(c, 404, "global/not-found",
            "There is nothing at %.200s; this emulator has instance-types, instances, and launch "
            "and terminate of instance-operations, below " ROOT,
            path);
    return N_METHODS;
}

static int check_query(struct lambda_cloud_call *c)
{
    const char *query = front_query(c->request);
    if (!*query)
        return 0;
    return lambda_cloud_fail(c, 400, "global/invalid-parameters",
        "Invalid request data. This emulator has no parameters in addresses, found %.100s", query);
}

static void call(struct lambda_cloud_call *c)
{
    struct fault fault;
    if (check_caller(c) < 0)
        return;
    size_t k = find_method(c);
    if (k == N_METHODS || check_rate(c, methods[k].is_launch) < 0)
        return;
    const char *refusal = front_refusal(c->region, c->reply->action, TOO_OFTEN, &fault);
    if (refusal) {
        fail_usual(c, refusal);
        return;
    }
    c->reply->is_noted = methods[k].is_noted;
    if (check_query(c) == 0)
        methods[k].run(c);
}

void lambda_cloud_api(
    const struct front_site *s, const struct front_request *r, struct front_reply *reply)
{
    struct lambda_cloud_call c = {
        .site = s, .request = r, .reply = reply, .region = s->region, .cloud = s->state, .id = ""};
    call(&c);
}
