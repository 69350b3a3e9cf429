/* SPDX-License-Identifier: Apache-2.0
 *
 * EC2's refusals: one table from Code to what it means for the caller. See ec2.h.
 */
#include "base/str.h"
#include "cloud/aws/ec2.h"
#include "cloud/xml.h"
#include <string.h>

#define MESSAGE_MAX 400

struct refusal {
    const char *code; /* a trailing '*' stands for any ending */
    enum err_kind kind;
    enum ec2_remedy remedy;
    const char *hint; /* what to do; NULL: the message says it */
};

static const struct refusal refusals[] = {
    {"InsufficientInstanceCapacity", ERR_NO_CAPACITY},
    {"InsufficientHostCapacity", ERR_NO_CAPACITY},
    {"InsufficientReservedInstanceCapacity", ERR_NO_CAPACITY},
    {"InsufficientCapacity*", ERR_NO_CAPACITY},
    {"UnfulfillableCapacity", ERR_NO_CAPACITY},
    {"SpotMaxPriceTooLow", ERR_NO_CAPACITY},
    {"InsufficientFreeAddressesInSubnet", ERR_NO_CAPACITY, 0, "the pool's subnet is full: name a larger one"},

    {"MaxSpotInstanceCountExceeded", ERR_QUOTA, 0, "ask AWS for a larger spot vCPU quota of this family"},
    {"VcpuLimitExceeded", ERR_QUOTA, 0, "ask AWS for a larger on-demand vCPU quota of this family"},
    {"InstanceLimitExceeded", ERR_QUOTA, 0, "ask AWS for a larger instance quota"},
    {"VolumeLimitExceeded", ERR_QUOTA, 0, "ask AWS for a larger EBS quota"},

    {"RequestLimitExceeded", ERR_THROTTLED},
    {"EC2ThrottledException", ERR_THROTTLED},
    {"Throttling*", ERR_THROTTLED},
    {"RequestThrottled*", ERR_THROTTLED},

    {"InternalError", ERR_UNAVAILABLE},
    {"InternalFailure", ERR_UNAVAILABLE},
    {"Unavailable", ERR_UNAVAILABLE},
    {"ServiceUnavailable", ERR_UNAVAILABLE},
    {"Server.InternalError", ERR_UNAVAILABLE},

    {"InvalidInstanceID.NotFound", ERR_NOT_FOUND},
    {"InvalidInstanceID.Malformed", ERR_INVALID},
    {"InvalidLaunchTemplateName.AlreadyExists*", ERR_CONFLICT},
    {"InvalidLaunchTemplateName.NotFound*", ERR_NOT_FOUND},
    {"InvalidLaunchTemplateId.NotFound*", ERR_NOT_FOUND},
    {"IdempotentParameterMismatch", ERR_CONFLICT},
    {"IdempotentInstanceTerminated", ERR_CONFLICT},

    {"RequestExpired", ERR_DENIED, EC2_REMEDY_CLOCK, "check this machine's clock"},
    {"RequestTimeTooSkewed", ERR_DENIED, EC2_REMEDY_CLOCK, "check this machine's clock"},
    {"AuthFailure.ServiceLinkedRoleCreationNotPermitted", ERR_DENIED, 0,
        "create the role once: aws iam create-service-linked-role --aws-service-name spot.amazonaws.com"},
    {"AuthFailure", ERR_DENIED, EC2_REMEDY_CREDENTIALS, "check the access key"},
    {"InvalidClientTokenId", ERR_DENIED, EC2_REMEDY_CREDENTIALS, "check the access key"},
    {"SignatureDoesNotMatch", ERR_DENIED, EC2_REMEDY_CREDENTIALS, "check the secret access key"},
    {"ExpiredToken*", ERR_DENIED, EC2_REMEDY_CREDENTIALS, "the session token has ended: renew it"},
    {"MissingAuthenticationToken", ERR_DENIED, EC2_REMEDY_CREDENTIALS},
    {"UnauthorizedOperation", ERR_DENIED, 0, "the policy in docs/clouds/aws.md lists what is needed"},
    {"AccessDenied*", ERR_DENIED, 0, "the policy in docs/clouds/aws.md lists what is needed"},
    {"OptInRequired", ERR_DENIED},
    {"Blocked", ERR_DENIED},
    {"PendingVerification", ERR_DENIED},

    {"Unsupported*", ERR_CONFIG},
    {"Invalid*", ERR_CONFIG},
    {"Missing*", ERR_CONFIG},
    {"Unknown*", ERR_CONFIG},
};

static const struct refusal *find_refusal(const char *code)
{
    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
        const char *known = refusals[i].code;
        size_t n = strlen(known);
        if (known[n - 1] == '*' ? strncmp(code, known, n - 1) == 0 : strcmp(code, known) == 0)
            return &refusals[i];
    }
    return NULL;
}

static enum err_kind kind_of_status(int status)
{
    if (status == 429)
        return ERR_THROTTLED;
    if (status >= 500)
        return ERR_UNAVAILABLE;
    if (status == 401 || status == 403)
        return ERR_DENIED;
    return status == 408 ? ERR_TIMEOUT : ERR_INVALID;
}

/* An error without a Code: a proxy's or load balancer's page, an empty body. */
static int set_by_status(int status, const char *body, size_t n, struct err *e)
{
    const char *what = "not an EC2 error document";
    if (n == 0)
        what = "an empty body";
    else if (xml_looks_like_html(body, n))
        what = "an HTML page (a proxy or load balancer in between?)";
    return err_set(e, kind_of_status(status), "EC2 answered HTTP %d with %s", status, what);
}

/* Finds <Code> and <Message> in <Response><Errors><Error> or <ErrorResponse><Error>. */
static bool read_error(
    const char *body, size_t n, char *code, size_t code_size, char *message, size_t message_size)
{
    struct xml x;
    bool found = false;
    if (xml_open(&x, body, n, NULL) != 0)
        return false;
    const xmlNode *error = xml_child(xml_root(&x), "Errors");
    error = xml_child(error ? error : xml_root(&x), "Error");
    if (error && xml_text(error, "Code", code, code_size, NULL) == 0 && *code) {
        xml_text_cut(error, "Message", message, message_size);
        found = true;
    }
    xml_close(&x);
    return found;
}

/* message: changed. */
static int set_refusal(
    const struct refusal *r, enum err_kind kind, const char *code, char *message, struct err *e)
{
    /* This one repeats the canonical request, session token included. */
    if (str_eq(code, "SignatureDoesNotMatch"))
        message[0] = '\0';
    /* Of no use in a log line, and long; "aws sts decode-authorization-message" wants the original. */
    char *blob = strstr(message, "Encoded authorization failure message");
    if (blob)
        *blob = '\0';
    return err_set(e, kind, "EC2 refused: %s%s%s%s%s", code, message[0] ? ": " : "", message,
        r && r->hint ? "; to do: " : "", r && r->hint ? r->hint : "");
}

int ec2_refusal(const char *code, const char *message, struct err *e)
{
    char text[MESSAGE_MAX];
    const struct refusal *r = find_refusal(code);
    STR_COPY(text, message);
    return set_refusal(r, r ? r->kind : ERR_CONFIG, code, text, e);
}

int ec2_parse_error(int status, const char *body, size_t n, enum ec2_remedy *ret_remedy, struct err *e)
{
    char code[EC2_ERROR_CODE_MAX], message[MESSAGE_MAX] = "";
    *ret_remedy = EC2_REMEDY_NONE;
    if (!read_error(body, n, code, sizeof(code), message, sizeof(message)))
        return set_by_status(status, body, n, e);
    const struct refusal *r = find_refusal(code);
    enum err_kind kind = r ? r->kind : kind_of_status(status);
    if (!r && kind == ERR_INVALID)
        kind = ERR_CONFIG; /* a refusal nobody here has heard of: an operator has to read it */
    if (r)
        *ret_remedy = r->remedy;
    return set_refusal(r, kind, code, message, e);
}
