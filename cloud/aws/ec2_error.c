/* SPDX-License-Identifier: Apache-2.0
 *
 * EC2's refusals: a table from Code to error kind and hint. See ec2.h.
 */
#include "base/str.h"
#include "cloud/aws/ec2.h"
#include "cloud/refusal.h"
#include "cloud/xml.h"
#include <string.h>

#define MESSAGE_MAX 400

/* flags: the remedy */
static const struct refusal refusals[] = {
    {"InsufficientInstanceCapacity", ERR_NO_CAPACITY},
    {"InsufficientHostCapacity", ERR_NO_CAPACITY},
    {"InsufficientReservedInstanceCapacity", ERR_NO_CAPACITY},
    {"InsufficientCapacity*", ERR_NO_CAPACITY},
    {"UnfulfillableCapacity", ERR_NO_CAPACITY},
    {"SpotMaxPriceTooLow", ERR_NO_CAPACITY},
    {"InsufficientFreeAddressesInSubnet", ERR_NO_CAPACITY,
        "the pool's subnet is full: name a larger one"},

    {"MaxSpotInstanceCountExceeded", ERR_QUOTA,
        "ask AWS for a larger spot vCPU quota of this family"},
    {"VcpuLimitExceeded", ERR_QUOTA, "ask AWS for a larger on-demand vCPU quota of this family"},
    {"InstanceLimitExceeded", ERR_QUOTA, "ask AWS for a larger instance quota"},
    {"VolumeLimitExceeded", ERR_QUOTA, "ask AWS for a larger EBS quota"},

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

    {"RequestExpired", ERR_DENIED, "check this machine's clock", EC2_REMEDY_CLOCK},
    {"RequestTimeTooSkewed", ERR_DENIED, "check this machine's clock", EC2_REMEDY_CLOCK},
    {"AuthFailure.ServiceLinkedRoleCreationNotPermitted", ERR_DENIED,
        "create the role once: aws iam create-service-linked-role --aws-service-name "
        "spot.amazonaws.com"},
    {"AuthFailure", ERR_DENIED, "check the access key", EC2_REMEDY_CREDENTIALS},
    {"InvalidClientTokenId", ERR_DENIED, "check the access key", EC2_REMEDY_CREDENTIALS},
    {"SignatureDoesNotMatch", ERR_DENIED, "check the secret access key", EC2_REMEDY_CREDENTIALS},
    {"ExpiredToken*", ERR_DENIED, "the session token has ended: renew it", EC2_REMEDY_CREDENTIALS},
    {"MissingAuthenticationToken", ERR_DENIED, NULL, EC2_REMEDY_CREDENTIALS},
    {"UnauthorizedOperation", ERR_DENIED,
        "the policy in docs/how-to/clouds/aws.md lists what is needed"},
    {"AccessDenied*", ERR_DENIED, "the policy in docs/how-to/clouds/aws.md lists what is needed"},
    {"OptInRequired", ERR_DENIED},
    {"Blocked", ERR_DENIED},
    {"PendingVerification", ERR_DENIED},

    {"Unsupported*", ERR_CONFIG},
    {"Invalid*", ERR_CONFIG},
    {"Missing*", ERR_CONFIG},
    {"Unknown*", ERR_CONFIG},
    {NULL},
};

/* Finds <Code> and <Message> in <Response><Errors><Error> or <ErrorResponse><Error>. */
static bool read_error(
    const char *body, size_t n, char *code, size_t code_size, char *message, size_t message_size)
{
    struct xml x;
    bool found = false;
    if (xml_open(&x, body, n, NULL) != 0)
        return false;
    const struct xml_node *error = xml_child(xml_root(&x), "Errors");
    error = xml_child(error ? error : xml_root(&x), "Error");
    if (error && xml_text(error, "Code", code, code_size, NULL) == 0 && *code) {
        xml_text_cut(error, "Message", message, message_size);
        found = true;
    }
    xml_close(&x);
    return found;
}

/* message: modified. */
static int set_refusal(
    const struct refusal *r, enum err_kind kind, const char *code, char *message, struct err *e)
{
    /* its message repeats the canonical request, including the session token */
    if (str_eq(code, "SignatureDoesNotMatch"))
        message[0] = '\0';
    /* Long and useless in a log line; "aws sts decode-authorization-message" needs the original. */
    char *blob = strstr(message, "Encoded authorization failure message");
    if (blob)
        *blob = '\0';
    return refusal_set("EC2", kind, code, message, r, e);
}

int ec2_refusal(const char *code, const char *message, struct err *e)
{
    char text[MESSAGE_MAX];
    const struct refusal *r = refusal_find(refusals, code);
    STR_COPY(text, message);
    return set_refusal(r, r ? r->kind : ERR_CONFIG, code, text, e);
}

int ec2_parse_error(
    int status, const char *body, size_t n, enum ec2_remedy *ret_remedy, struct err *e)
{
    char code[EC2_ERROR_CODE_MAX], message[MESSAGE_MAX] = "";
    *ret_remedy = EC2_REMEDY_NONE;
    if (!read_error(body, n, code, sizeof(code), message, sizeof(message)))
        return refusal_set_stray("EC2", refusal_kind_of_status(refusals, status, ERR_INVALID),
            status, body, n, "not an EC2 error document", e);
    const struct refusal *r = refusal_find(refusals, code);
    /* an unknown code needs an operator to read it */
    enum err_kind kind = r ? r->kind : refusal_kind_of_status(refusals, status, ERR_CONFIG);
    if (r)
        *ret_remedy = (enum ec2_remedy)r->flags;
    return set_refusal(r, kind, code, message, e);
}
