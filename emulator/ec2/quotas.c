/* SPDX-License-Identifier: Apache-2.0
 *
 * Reference: https://docs.aws.amazon.com/servicequotas/2019-06-24/apireference/
 */
#include "emulator/ec2/quotas.h"

#include "base/json.h"
#include "base/str.h"
#include "base/vformat.h"
#include <stdio.h>
#include <string.h>

#define TEXT_MAX 256

static const struct quota {
    const char *code, *name;
    int64_t by_default; /* of a new account */
} quotas[] = {
    {"L-34B43A08", "All Standard (A, C, D, H, I, M, R, T, Z) Spot Instance Requests", 5},
    {"L-1216C47A", "Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances", 5},
    {"L-3819A6DF", "All G and VT Spot Instance Requests", 0},
    {"L-DB2E81BA", "Running On-Demand G and VT instances", 0},
    {"L-7212CCBC", "All P4, P3 and P2 Spot Instance Requests", 0},
    {"L-417A185B", "Running On-Demand P instances", 0},
    {"L-B5D1601B", "All Inf Spot Instance Requests", 0},
    {"L-1945791B", "Running On-Demand Inf instances", 0},
    {"L-6B0D517C", "All Trn Spot Instance Requests", 0},
    {"L-2C3B7624", "Running On-Demand Trn instances", 0},
    {"L-85EED4F7", "All DL Spot Instance Requests", 0},
    {"L-6E869C2A", "Running On-Demand DL instances", 0},
    {"L-88CF9481", "All F Spot Instance Requests", 0},
    {"L-74FC7D96", "Running On-Demand F instances", 0},
    {"L-E3A00192", "All X Spot Instance Requests", 0},
    {"L-7295265B", "Running On-Demand X instances", 0},
};

/* Codes of EC2, for faults queued for all actions. */
static const struct {
    const char *code, *ec2, *text;
} usual[] = {
    {"UnrecognizedClientException", "AuthFailure",
        "The security token included in the request is invalid."},
    {"AccessDeniedException", "UnauthorizedOperation", NULL},
    {"TooManyRequestsException", "RequestLimitExceeded", "Rate exceeded"},
    {"ServiceException", "InternalError", "Something went wrong."},
};

void ec2_quotas_error(struct region *r, const char *action, const char *code, const char *text,
    struct ec2_reply *reply)
{
    char denied[TEXT_MAX];
    for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++) {
        if (!str_eq(code, usual[i].code) && !str_eq(code, usual[i].ec2))
            continue;
        code = usual[i].code;
        text = text ? text : usual[i].text;
        break;
    }
    if (!text && str_eq(code, "AccessDeniedException")) {
        snprintf(denied, sizeof(denied),
            "User is not authorized to perform: servicequotas:%.64s because no identity-based "
            "policy allows it",
            action);
        text = denied;
    }
    if (!reply->request_id[0])
        ec2_make_request_id(r, reply->request_id);
    reply->status = str_eq(code, "ServiceException") ? 500 : 400;
    STR_COPY(reply->code, code);
    STR_COPY(reply->message, text ? text : code);
    json_t *o = json_object();
    json_object_set_new(o, "__type", json_text(code));
    json_object_set_new(o, "Message", json_text(text ? text : code));
    buf_clear(&reply->body);
    json_add(&reply->body, o);
}

struct call {
    struct region *region;
    const struct ec2_quotas_request *q;
    struct ec2_reply *reply;
};

static void fail(struct call *c, const char *code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static void fail(struct call *c, const char *code, const char *fmt, ...)
{
    char text[512];
    VFORMAT(text, fmt);
    ec2_quotas_error(c->region, c->q->action, code, text, c->reply);
}

static void answer(struct call *c, const struct quota *q, int64_t value)
{
    json_t *quota = json_object(), *o = json_object();
    json_object_set_new(quota, "ServiceCode", json_string("ec2"));
    json_object_set_new(
        quota, "ServiceName", json_string("Amazon Elastic Compute Cloud (Amazon EC2)"));
    json_object_set_new(quota, "QuotaCode", json_string(q->code));
    json_object_set_new(quota, "QuotaName", json_string(q->name));
    json_object_set_new(quota, "Value", json_real((double)value));
    json_object_set_new(quota, "Unit", json_string("None"));
    json_object_set_new(quota, "Adjustable", json_true());
    json_object_set_new(quota, "GlobalQuota", json_false());
    json_object_set_new(o, "Quota", quota);
    json_add(&c->reply->body, o);
}

static void get(struct call *c, const json_t *root, bool is_default,
    const struct ec2_granted *granted, size_t n_granted)
{
    struct json_reader r;
    struct err e;
    const struct quota *found = NULL;
    json_reader_init(&r, root, "", &e);
    const char *service = json_req_str(&r, "ServiceCode", TEXT_MAX),
               *code = json_req_str(&r, "QuotaCode", TEXT_MAX);
    if (json_reader_finish(&r) < 0) {
        fail(c, "IllegalArgumentException", "%s", e.text);
        return;
    }
    for (size_t i = 0; i < sizeof(quotas) / sizeof(quotas[0]); i++)
        if (str_eq(quotas[i].code, code) && str_eq(service, "ec2"))
            found = &quotas[i];
    for (size_t i = 0; found && !is_default && i < n_granted; i++)
        if (str_eq(granted[i].code, code)) {
            answer(c, found, granted[i].value);
            return;
        }
    if (found && is_default)
        answer(c, found, found->by_default);
    else
        fail(c, "NoSuchResourceException",
            "The request failed because the specified quota %.40s does not exist.", code);
}

void ec2_quotas_call(struct region *r, const struct ec2_granted *granted, size_t n_granted,
    const struct ec2_quotas_request *q, struct ec2_reply *reply)
{
    struct call c = {.region = r, .q = q, .reply = reply};
    bool is_default = str_eq(q->action, "GetAWSDefaultServiceQuota");
    struct err e;
    json_t *root;
    *reply = (struct ec2_reply){.status = 200};
    ec2_make_request_id(r, reply->request_id);
    if (!is_default && !str_eq(q->action, "GetServiceQuota")) {
        fail(&c, "UnknownOperationException",
            "This emulator has GetServiceQuota and GetAWSDefaultServiceQuota");
    } else if (!str_eq(q->content_type, EC2_QUOTAS_CONTENT_TYPE)) {
        fail(&c, "UnknownOperationException", "The content type is not " EC2_QUOTAS_CONTENT_TYPE);
    } else if (json_parse(q->body, q->body_len, q->body_len, &root, &e) < 0) {
        fail(&c, "SerializationException", "%s", e.text);
    } else {
        get(&c, root, is_default, granted, n_granted);
        json_decref(root);
    }
}
