/* SPDX-License-Identifier: Apache-2.0
 *
 * Azure's refusals: a table from code to error kind and hint. See arm.h.
 *
 * The informative code may be the outermost, one in details, or only be quoted in the message; its
 * wrappers ("DeploymentFailed", "Conflict") say nothing. So codes are looked up from the outside
 * in, then words of the message, and wrappers last.
 */
#include "base/json.h"
#include "base/str.h"
#include "cloud/azure/arm.h"
#include "cloud/refusal.h"
#include <string.h>

#define MESSAGE_MAX 300
#define TEXT_MAX (64 * 1024)
#define DEPTH_MAX 4
#define DETAILS_MAX 16

enum {
    IN_MESSAGE = 1, /* also matched if only the message names it */
    WRAPS = 2,
    RENEW_TOKEN = 4
};

#define DOCS "docs/how-to/clouds/azure.md lists the rights that are needed"

static const struct refusal refusals[] = {
    {"SkuNotAvailable", ERR_NO_CAPACITY, NULL, IN_MESSAGE},
    {"AllocationFailed", ERR_NO_CAPACITY, NULL, IN_MESSAGE},
    {"ZonalAllocationFailed", ERR_NO_CAPACITY, NULL, IN_MESSAGE},
    {"OverconstrainedAllocationRequest", ERR_NO_CAPACITY, NULL, IN_MESSAGE},
    {"OverconstrainedZonalAllocationRequest", ERR_NO_CAPACITY, NULL, IN_MESSAGE},
    {"SpotPriceGreaterThanProvidedMaxPrice", ERR_NO_CAPACITY, NULL, IN_MESSAGE},
    {"AvailabilityZoneNotSupported", ERR_NO_CAPACITY},
    {"SubnetIsFull", ERR_NO_CAPACITY, "the pool's subnet is full: name a larger one"},

    {"QuotaExceeded", ERR_QUOTA, "ask Azure for more; spot machines use only lowPriorityCores",
        IN_MESSAGE},
    {"*QuotaExceeded", ERR_QUOTA},

    {"TooManyRequests", ERR_THROTTLED, NULL, IN_MESSAGE},
    {"SubscriptionRequestsThrottled", ERR_THROTTLED},
    {"OperationThrottled", ERR_THROTTLED},
    {"ResourceCollectionRequestsThrottled", ERR_THROTTLED},

    {"AnotherOperationInProgress", ERR_UNAVAILABLE, NULL, IN_MESSAGE},
    {"OperationPreempted", ERR_UNAVAILABLE},
    {"InternalServerError", ERR_UNAVAILABLE},
    {"InternalExecutionError", ERR_UNAVAILABLE},
    {"InternalOperationError", ERR_UNAVAILABLE},
    {"NetworkingInternalOperationError", ERR_UNAVAILABLE},
    {"ServerTimeout", ERR_UNAVAILABLE},
    {"ServiceUnavailable", ERR_UNAVAILABLE},
    {"GatewayTimeout", ERR_UNAVAILABLE},
    {"RetryableError*", ERR_UNAVAILABLE},
    {"ReferencedResourceNotProvisioned", ERR_UNAVAILABLE},
    {"NicReservedForAnotherVm", ERR_UNAVAILABLE},
    {"NicInUse", ERR_UNAVAILABLE},
    {"OSProvisioningTimedOut", ERR_UNAVAILABLE,
        "does the image have cloud-init or the Azure agent?"},

    {"PropertyChangeNotAllowed", ERR_CONFLICT},

    {"ExpiredAuthenticationToken", ERR_DENIED, "check this machine's clock", RENEW_TOKEN},
    {"InvalidAuthenticationToken*", ERR_DENIED, NULL, RENEW_TOKEN},
    {"AuthenticationFailed*", ERR_DENIED, NULL, RENEW_TOKEN},
    {"AuthorizationFailed", ERR_DENIED, DOCS},
    {"LinkedAuthorizationFailed", ERR_DENIED, DOCS},
    {"RequestDisallowedByPolicy", ERR_DENIED},
    {"ReadOnlyDisabledSubscription", ERR_DENIED},
    {"ScopeLocked", ERR_DENIED,
        "remove the lock from the resource group: it prevents deleting machines"},

    {"ResourceNotFound", ERR_NOT_FOUND},
    {"ResourceGroupNotFound", ERR_CONFIG, "check the pool's resource_group"},
    {"SubscriptionNotFound", ERR_CONFIG, "check the pool's subscription"},
    {"MissingSubscriptionRegistration", ERR_CONFIG,
        "register it: az provider register --namespace Microsoft.Compute, and Microsoft.Network"},
    {"AzureSpot*", ERR_UNSUPPORTED},
    {"MaxPriceValueInvalid", ERR_CONFIG},
    {"MarketplacePurchaseEligibilityFailed", ERR_CONFIG},
    {"VMMarketplaceInvalidInput", ERR_CONFIG},
    {"ResourcePurchaseValidationFailed", ERR_CONFIG},

    /* Another resource is in the way, or an inner code says what. */
    {"OperationNotAllowed", ERR_CONFIG, NULL, WRAPS},
    {"Conflict", ERR_UNAVAILABLE, NULL, WRAPS},
    {"ConflictingUserInput", ERR_UNAVAILABLE, NULL, WRAPS},
    {"ResourceDeploymentFailure", ERR_UNAVAILABLE, NULL, WRAPS},
    {"NotFound", ERR_CONFIG, NULL, WRAPS},
    {"PlatformImageNotFound", ERR_CONFIG},
    {"ImageNotFound", ERR_CONFIG},
    {"Invalid*", ERR_CONFIG, NULL, WRAPS},
    {"Missing*", ERR_CONFIG, NULL, WRAPS},
    {"BadRequest", ERR_CONFIG, NULL, WRAPS},
    {"Location*", ERR_CONFIG},

    {"HTTP 404", ERR_NOT_FOUND},
    {"HTTP 409", ERR_UNAVAILABLE},
    {NULL},
};

static bool is_letter(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

/* Whether text contains code as a whole word. */
static bool names(const char *text, const char *code)
{
    size_t n = strlen(code);
    for (const char *at = strstr(text, code); at; at = strstr(at + 1, code))
        if ((at == text || !is_letter(at[-1])) && !is_letter(at[n]))
            return true;
    return false;
}

static const struct refusal *find_in_message(const char *message)
{
    for (const struct refusal *r = refusals; r->code; r++)
        if ((r->flags & IN_MESSAGE) && names(message, r->code))
            return r;
    return NULL;
}

/* ---- reading ---- */

struct found {
    const struct refusal *refusal; /* the first that is not a wrapper */
    const struct refusal *wrapper;
    char code[ARM_CODE_MAX];   /* of refusal, else of wrapper, else the outermost */
    char message[MESSAGE_MAX]; /* that belongs to the code */
    bool quota;                /* a message mentions a quota */
};

static const char *text_of(const json_t *object, const char *key)
{
    const json_t *v = json_object_get(object, key);
    return json_is_string(v) && json_string_length(v) <= TEXT_MAX ? json_string_value(v) : "";
}

static void note(struct found *f, const char *code, const char *message)
{
    str_copy(f->code, sizeof(f->code), code);
    str_copy(f->message, sizeof(f->message), message);
    for (char *p = f->message; *p; p++)
        if ((unsigned char)*p < ' ')
            *p = ' ';
}

static void read_error(struct found *f, const json_t *error, int depth)
{
    const char *code = text_of(error, "code"), *message = text_of(error, "message");
    const struct refusal *r = *code ? refusal_find(refusals, code) : NULL;
    const json_t *details = json_object_get(error, "details"), *item;
    size_t k;
    f->quota = f->quota || strstr(message, "quota") || strstr(message, "Quota");
    if (r && !(r->flags & WRAPS) && !f->refusal) {
        f->refusal = r;
        note(f, code, message);
    } else if (!f->refusal && find_in_message(message)) {
        f->refusal = find_in_message(message);
        note(f, f->refusal->code, message);
    } else if (!f->refusal && ((r && !f->wrapper) || !f->code[0])) {
        f->wrapper = r;
        note(f, code, message);
    }
    json_array_foreach((json_t *)details, k, item)
    {
        if (k >= DETAILS_MAX || depth == DEPTH_MAX)
            break;
        read_error(f, item, depth + 1);
    }
}

static int set_stray(int status, const char *body, size_t n, struct err *e)
{
    return refusal_set_stray("Azure", refusal_kind_of_status(refusals, status, ERR_INVALID), status,
        body, n, "not an Azure error", e);
}

static int set_refusal(
    const struct found *f, int status, enum arm_remedy *ret_remedy, struct err *e)
{
    const struct refusal *r = f->refusal ? f->refusal : f->wrapper;
    /* an unknown code needs an operator to read it */
    enum err_kind kind = r ? r->kind : refusal_kind_of_status(refusals, status, ERR_CONFIG);
    if (r && (r->flags & WRAPS) && f->quota) /* OperationNotAllowed has other meanings too */
        kind = ERR_QUOTA;
    if (r && (r->flags & RENEW_TOKEN))
        *ret_remedy = ARM_REMEDY_TOKEN;
    return refusal_set("Azure", kind, f->code, f->message, r, e);
}

int arm_parse_error(
    int status, const char *body, size_t n, enum arm_remedy *ret_remedy, struct err *e)
{
    struct found f = {0};
    json_t *root = NULL;
    *ret_remedy = status == 401 ? ARM_REMEDY_TOKEN : ARM_REMEDY_NONE;
    if (json_parse(body, n, ARM_REPLY_MAX, &root, NULL) != 0)
        return set_stray(status, body, n, e);
    const json_t *error = json_object_get(root, "error");
    read_error(&f, error ? error : root, 0);
    json_decref(root);
    if (!f.code[0] && !f.message[0])
        return set_stray(status, body, n, e);
    return set_refusal(&f, status, ret_remedy, e);
}

int arm_refusal(const char *code, const char *message, struct err *e)
{
    struct found f = {.quota = strstr(message, "quota") != NULL};
    enum arm_remedy unused;
    f.refusal = refusal_find(refusals, code);
    note(&f, code, message);
    return set_refusal(&f, 500, &unused, e);
}
