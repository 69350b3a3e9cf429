/* SPDX-License-Identifier: Apache-2.0
 *
 * Replies: errors with Azure's status and message, headers, pages.
 */
#include "base/mem.h"
#include "base/str.h"
#include "base/vformat.h"
#include "emulator/arm/arm.h"
#include "emulator/arm/parts.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Errors ---- */

/* Azure's HTTP status for a code (400 if not listed), and its message for tests that request the
 * code alone. */
static const struct {
    const char *code;
    int status;
    const char *text;
} errors[] = {
    {"SkuNotAvailable", 409,
        "The requested VM size is currently not available in this location. Please try another "
        "size or deploy to a different location or different zone. See "
        "https://aka.ms/azureskunotavailable for "
        "details."},
    {"AllocationFailed", 409,
        "Allocation failed. We do not have sufficient capacity for the requested VM size in this "
        "region. Read more about improving likelihood of allocation success at "
        "https://aka.ms/allocation-guidance"},
    {"ZonalAllocationFailed", 409,
        "Allocation failed. We do not have sufficient capacity for the requested VM size in this "
        "zone. Read more about improving likelihood of allocation success at "
        "https://aka.ms/allocation-guidance"},
    {"OverconstrainedAllocationRequest", 409,
        "Allocation failed. VM(s) with the given constraints cannot be allocated."},
    {"OverconstrainedZonalAllocationRequest", 409,
        "Allocation failed. VM(s) with the given constraints cannot be allocated."},
    {"QuotaExceeded", 409,
        "Operation could not be completed as it results in exceeding approved quota."},
    {"OperationNotAllowed", 409,
        "Operation could not be completed as it results in exceeding approved LowPriorityCores "
        "quota."},
    {"OperationPreempted", 409, "The operation has been preempted by a more recent operation."},
    {"OSProvisioningInternalError", 409, "OS Provisioning failed for VM due to an internal error."},
    {"SpotPriceGreaterThanProvidedMaxPrice", 409, NULL},
    {"PropertyChangeNotAllowed", 409, NULL},
    {"Conflict", 409, "The request failed due to conflict with a concurrent request."},
    {"AnotherOperationInProgress", 409,
        "Another operation on this or dependent resource is in progress."},
    {"TooManyRequests", 429,
        "The request is being throttled as the limit has been reached for operation type."},
    {"SubscriptionRequestsThrottled", 429,
        "Number of requests for the subscription exceeded the limit. Please try again later."},
    {"AuthenticationFailed", 401, "Authentication failed."},
    {"AuthenticationFailedInvalidHeader", 401, NULL},
    {"InvalidAuthenticationToken", 401, "The access token is invalid."},
    {"InvalidAuthenticationTokenAudience", 401, NULL},
    {"ExpiredAuthenticationToken", 401, "The access token has expired."},
    {"AuthorizationFailed", 403,
        "The client does not have authorization to perform this action over the scope."},
    {"LinkedAuthorizationFailed", 403, "The client does not have permission on the linked scope."},
    {"SubscriptionNotFound", 404, NULL},
    {"ResourceGroupNotFound", 404, NULL},
    {"ResourceNotFound", 404, "The resource was not found."},
    {"NotFound", 404, "The resource was not found."},
    {"PlatformImageNotFound", 404, NULL},
    {"HttpResourceNotFound", 404, NULL},
    {"MethodNotAllowed", 405, NULL},
    {"RequestEntityTooLarge", 413, NULL},
    {"InternalServerError", 500,
        "The server encountered an internal error. Please retry the request."},
    {"InternalExecutionError", 500, "An internal execution error occurred. Please retry later."},
    {"ServiceUnavailable", 503,
        "The server is currently unable to receive requests. Please retry your request."},
    {"ServerTimeout", 504, "The operation could not be completed within the permitted time."},
};
#define N_ERRORS (sizeof(errors) / sizeof(errors[0]))

const char *arm_usual_text(const char *code)
{
    for (size_t i = 0; i < N_ERRORS; i++)
        if (str_eq(errors[i].code, code) && errors[i].text)
            return errors[i].text;
    return code;
}

void arm_make_uuid(struct prng *p, char out[ARM_UUID_MAX])
{
    uint64_t a = prng_u64(p), b = prng_u64(p);
    snprintf(out, ARM_UUID_MAX, "%08x-%04x-4%03x-%04x-%012llx", (unsigned)(a >> 32),
        (unsigned)(a >> 16 & 0xffff), (unsigned)(a & 0xfff),
        (unsigned)(0x8000 | (b >> 48 & 0x3fff)), (unsigned long long)(b & 0xffffffffffffULL));
}

void arm_add_header(struct arm_reply *reply, const char *name, const char *value)
{
    if (reply->n_headers == ARM_HEADERS_MAX)
        return;
    reply->headers[reply->n_headers].name = name;
    reply->headers[reply->n_headers++].value = mem_strdup(value);
}

void arm_add_retry_after(struct arm_reply *reply, int64_t seconds)
{
    char text[24];
    snprintf(text, sizeof(text), "%lld", (long long)seconds);
    arm_add_header(reply, "Retry-After", text);
}

void arm_error(struct arm *a, const char *code, const char *text, struct arm_reply *reply)
{
    if (!reply->request_id[0])
        arm_make_uuid(&a->region->request_ids, reply->request_id);
    reply->status = 400;
    for (size_t i = 0; i < N_ERRORS; i++)
        if (str_eq(errors[i].code, code))
            reply->status = errors[i].status;
    json_t *o = json_object(), *error = json_object();
    json_object_set_new(error, "code", json_text(code));
    json_object_set_new(error, "message", json_text(text ? text : arm_usual_text(code)));
    json_object_set_new(o, "error", error);
    json_decref(reply->body);
    reply->body = o;
    if (reply->status == 429)
        arm_add_retry_after(reply, 1);
    if (reply->status == 401)
        arm_add_header(reply, "WWW-Authenticate",
            "Bearer authorization_uri=\"/oauth2/authorize\", error=\"invalid_token\"");
}

int arm_fail(struct arm_call *c, const char *code, const char *fmt, ...)
{
    char text[1024];
    VFORMAT(text, fmt);
    arm_error(c->arm, code, text, c->reply);
    return -1;
}

void arm_reply_deinit(struct arm_reply *reply)
{
    json_decref(reply->body);
    for (size_t i = 0; i < reply->n_headers; i++)
        free(reply->headers[i].value);
    *reply = (struct arm_reply){0};
}

char *arm_reply_text(const struct arm_reply *reply)
{
    /* Prices are printed as people write them: 0.0864, not the nearest binary fraction. */
    return reply->body ? json_dumps(reply->body, JSON_COMPACT | JSON_REAL_PRECISION(12)) : NULL;
}

/* ---- Pages ---- */

#define SKIP "$skiptoken"

int arm_reply_page(struct arm_call *c, json_t *list)
{
    const char *token = form_get(&c->form, SKIP);
    int64_t skip = 0;
    size_t page = (size_t)c->arm->account->page;
    if (token && str_to_i64(token, 0, ARM_RESOURCES_MAX, "token", &skip, NULL) < 0) {
        json_decref(list);
        return arm_fail(c, "InvalidSkipToken", "The skip token '%.40s' is invalid.", token);
    }
    json_t *values = json_array(), *o = json_object();
    for (size_t i = (size_t)skip; i < json_array_size(list) && json_array_size(values) < page; i++)
        json_array_append(values, json_array_get(list, i));
    json_object_set_new(o, "value", values);
    if (json_array_size(list) > (size_t)skip + page) {
        struct buf url = {0};
        buf_printf(&url, "%s%s?", c->q->base, c->q->path);
        for (size_t i = 0; i < c->form.n; i++) {
            if (str_eq(c->form.list[i].name, SKIP))
                continue;
            str_url_encode(&url, c->form.list[i].name, strlen(c->form.list[i].name));
            buf_addc(&url, '=');
            str_url_encode(&url, c->form.list[i].value, strlen(c->form.list[i].value));
            buf_addc(&url, '&');
        }
        buf_printf(&url, "%%24skiptoken=%zu", (size_t)skip + page);
        json_object_set_new(o, "nextLink", json_text(buf_str(&url)));
        buf_deinit(&url);
    }
    json_decref(list);
    c->reply->body = o;
    return 0;
}
