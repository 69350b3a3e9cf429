/* SPDX-License-Identifier: Apache-2.0
 *
 * Compute Engine's refusals: a table from code or reason to error kind and hint. See gce.h.
 */
#include "base/json.h"
#include "base/str.h"
#include "cloud/gcp/gce.h"
#include "cloud/refusal.h"
#include <string.h>

#define ERROR_BYTES_MAX (1024 * 1024)
#define CODE_MAX 96
#define MESSAGE_MAX 380

#define QUOTA_HINT                                                                                 \
    "ask Google for more of the quota that it names (GPUS_ALL_REGIONS counts all regions "         \
    "together)"
#define RIGHTS_HINT "docs/how-to/clouds/gcp.md lists the rights that are needed"

static const struct refusal refusals[] = {
    {"ZONE_RESOURCE_POOL_EXHAUSTED*", ERR_NO_CAPACITY},
    {"REGION_RESOURCE_POOL_EXHAUSTED*", ERR_NO_CAPACITY},
    {"RESOURCE_POOL_EXHAUSTED*", ERR_NO_CAPACITY},
    {"STOCKOUT", ERR_NO_CAPACITY},
    {"GPU_STOCKOUT", ERR_NO_CAPACITY},
    {"insufficientCapacity", ERR_NO_CAPACITY},
    {"UNSUPPORTED_OPERATION", ERR_NO_CAPACITY}, /* preempted while being created */

    {"QUOTA_EXCEEDED", ERR_QUOTA, QUOTA_HINT},
    {"quotaExceeded", ERR_QUOTA, QUOTA_HINT},

    {"rateLimitExceeded", ERR_THROTTLED},
    {"userRateLimitExceeded", ERR_THROTTLED},
    {"RATE_LIMIT_EXCEEDED", ERR_THROTTLED},
    {"RESOURCE_OPERATION_RATE_EXCEEDED", ERR_THROTTLED},

    {"RESOURCE_NOT_READY", ERR_UNAVAILABLE},
    {"resourceNotReady", ERR_UNAVAILABLE},
    {"RESOURCE_IN_USE_BY_ANOTHER_RESOURCE", ERR_UNAVAILABLE},
    {"resourceInUseByAnotherResource", ERR_UNAVAILABLE},
    {"backendError", ERR_UNAVAILABLE},
    {"internalError", ERR_UNAVAILABLE},
    {"INTERNAL_ERROR", ERR_UNAVAILABLE},

    {"alreadyExists", ERR_CONFLICT},
    {"RESOURCE_ALREADY_EXISTS", ERR_CONFLICT},

    {"authError", ERR_DENIED, "check the service account's key"},
    {"UNAUTHENTICATED", ERR_DENIED, "check the service account's key"},
    {"required", ERR_DENIED, "check the service account's key"},
    {"forbidden", ERR_DENIED, RIGHTS_HINT},
    {"insufficientPermissions", ERR_DENIED, RIGHTS_HINT},
    {"PERMISSION*", ERR_DENIED, RIGHTS_HINT},
    {"IAM_PERMISSION_DENIED", ERR_DENIED, RIGHTS_HINT},
    {"accessNotConfigured", ERR_DENIED, "enable the Compute Engine API in the project"},
    {"SERVICE_DISABLED", ERR_DENIED, "enable the Compute Engine API in the project"},

    {"IP_SPACE_EXHAUSTED*", ERR_CONFIG, "the pool's subnet is full: name a larger one"},
    {"RESOURCE_NOT_FOUND", ERR_CONFIG},
    {"CONDITION_NOT_MET", ERR_CONFIG},
    {"VPC_NOT_FOUND", ERR_CONFIG},
    {"INVALID*", ERR_CONFIG},
    {"invalid*", ERR_CONFIG},
    {"badRequest", ERR_CONFIG},
    {NULL},
};

/* A 404 for the instance itself is an answer. A 404 for its image, network, zone and the like is a
 * mistake in the pool. */
static enum err_kind kind_of_not_found(const char *message)
{
    return strstr(message, "/instances/") ? ERR_NOT_FOUND : ERR_CONFIG;
}

int gce_set_error(int status, const char *code, const char *message, struct err *e)
{
    const struct refusal *r = refusal_find(refusals, code);
    enum err_kind kind = r ? r->kind : refusal_kind_of_status(refusals, status, ERR_CONFIG);
    char text[MESSAGE_MAX + 1];
    STR_COPY(text, message);
    if (str_eq(code, "notFound") || str_eq(code, "NOT_FOUND") || str_eq(code, "RESOURCE_NOT_FOUND"))
        kind = kind_of_not_found(text);
    /* Messages repeat invalid values, and the start-up script contains a secret. */
    if (strstr(text, "metadata"))
        text[0] = '\0';
    return refusal_set("Compute Engine", kind, code, text, r, e);
}

static const char *text_of(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

/* {"error":{"message","status","errors":[{"reason"}]}} */
static bool read_error(const json_t *root, char *code, size_t size, const char **ret_message)
{
    const json_t *error = json_object_get(root, "error");
    const char *message = text_of(error, "message");
    const char *reason = text_of(json_array_get(json_object_get(error, "errors"), 0), "reason");
    if (!reason)
        reason = text_of(error, "status");
    if (!reason || !*reason)
        return false;
    str_copy(code, size, reason);
    *ret_message = message ? message : "";
    return true;
}

int gce_parse_error(int status, const char *body, size_t n, struct err *e)
{
    char code[CODE_MAX];
    const char *message;
    json_t *root = NULL;
    int rc;
    if (json_parse(body, n, ERROR_BYTES_MAX, &root, NULL) == 0 &&
        read_error(root, code, sizeof(code), &message)) {
        rc = gce_set_error(status, code, message, e);
    } else {
        rc = refusal_set_stray("Compute Engine",
            refusal_kind_of_status(refusals, status, ERR_INVALID), status, body, n,
            "an unknown body (a proxy in between?)", e);
    }
    json_decref(root);
    return rc;
}
