/* SPDX-License-Identifier: Apache-2.0 */
#include "emulator/ec2/sts_api.h"
#include "base/str.h"
#include "base/vformat.h"
#include "emulator/xml_write.h"
#include <stdio.h>
#include <string.h>

#define NAMESPACE "https://sts.amazonaws.com/doc/2011-06-15/"
#define SESSION_MAX_S (12 * 3600)
#define CHAINED_MAX_S 3600 /* for a role assumed by a role's session */
#define NAME_CHARACTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_=,.@-"

static const struct {
    const char *code, *ec2;
    int status;
    const char *text;
} usual[] = {
    {"MissingAuthenticationToken", NULL, 403, "Request is missing Authentication Token"},
    {"InvalidClientTokenId", "AuthFailure", 403,
        "The security token included in the request is invalid."},
    {"ExpiredToken", "RequestExpired", 403,
        "The security token included in the request is expired"},
    {"SignatureDoesNotMatch", NULL, 403,
        "The request signature we calculated does not match the signature you provided. Check your "
        "AWS Secret Access Key and signing method."},
    {"AccessDenied", "UnauthorizedOperation", 403, "Access denied"},
    {"Throttling", "RequestLimitExceeded", 400, "Rate exceeded"},
    {"InternalFailure", "InternalError", 500, "An internal error has occurred."},
    {"ServiceUnavailable", "Unavailable", 503,
        "The request has failed due to a temporary failure of the server."},
};

void sts_api_error(struct region *r, const char *code, const char *text, struct ec2_reply *reply)
{
    reply->status = 400;
    for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++)
        if (str_eq(code, usual[i].code) || (usual[i].ec2 && str_eq(code, usual[i].ec2))) {
            code = usual[i].code;
            reply->status = usual[i].status;
            text = text ? text : usual[i].text;
            break;
        }
    text = text ? text : code;
    if (!reply->request_id[0])
        ec2_make_request_id(r, reply->request_id);
    STR_COPY(reply->code, code);
    STR_COPY(reply->message, text);
    struct buf *b = &reply->body;
    buf_clear(b);
    buf_adds(b, "<ErrorResponse xmlns=\"" NAMESPACE "\">");
    xmlw_open(b, "Error");
    xmlw_leaf(b, "Type", reply->status < 500 ? "Sender" : "Receiver");
    xmlw_leaf(b, "Code", code);
    xmlw_leaf(b, "Message", text);
    xmlw_close(b, "Error");
    xmlw_leaf(b, "RequestId", reply->request_id);
    xmlw_close(b, "ErrorResponse");
}

struct call {
    struct region *region;
    const struct sts_account *account;
    const struct keyring_key *caller;
    struct form *form;
    struct wall now;
    struct ec2_reply *reply;
};

static int fail(struct call *c, const char *code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static int fail(struct call *c, const char *code, const char *fmt, ...)
{
    char text[512];
    VFORMAT(text, fmt);
    sts_api_error(c->region, code, text, c->reply);
    return -1;
}

/* The name in the ARN of a role of this account that may be assumed. */
static int find_role(struct call *c, const char *arn, char ret_name[65])
{
    char before[96];
    snprintf(before, sizeof(before), "arn:aws:iam::%s:role/", c->region->o->account);
    const char *name = arn && str_starts(arn, before) ? arn + strlen(before) : NULL;
    const char *const *known = c->account->roles;
    if (!arn || strlen(arn) < 20 || strlen(arn) > 2048)
        return fail(c, "ValidationError",
            "1 validation error detected: Value at 'roleArn' failed to satisfy "
            "constraint: Member must have length between 20 and 2048");
    while (known && *known && !str_eq(*known, name))
        known++;
    if (!name || !*name || strlen(name) > 64 || (known && !*known))
        return fail(c, "AccessDenied",
            "User: arn:aws:iam::%s:user/%.40s is not authorized to perform: sts:AssumeRole on "
            "resource: %.100s",
            c->region->o->account, c->caller->access, arn);
    str_copy(ret_name, 65, name);
    return 0;
}

static int read_name(struct call *c, const char **ret_name)
{
    const char *name = form_get(c->form, "RoleSessionName");
    size_t n = name ? strlen(name) : 0;
    if (n < 2 || n > 64 || strspn(name, NAME_CHARACTERS) != n)
        return fail(c, "ValidationError",
            "1 validation error detected: Value at 'roleSessionName' failed to satisfy constraint: "
            "Member must satisfy regular expression pattern: [\\w+=,.@-]*, with length between 2 "
            "and 64");
    *ret_name = name;
    return 0;
}

static int read_life(struct call *c, int64_t *ret_s)
{
    const char *text = form_get(c->form, "DurationSeconds");
    *ret_s = CHAINED_MAX_S;
    if (text &&
        str_to_i64(text, c->account->min_session_s, SESSION_MAX_S, "seconds", ret_s, NULL) != 0)
        return fail(c, "ValidationError",
            "1 validation error detected: Value at 'durationSeconds' failed to satisfy constraint: "
            "Member must have value between %lld and %d",
            (long long)c->account->min_session_s, SESSION_MAX_S);
    if (c->caller->token[0] && *ret_s > CHAINED_MAX_S)
        return fail(c, "ValidationError",
            "The requested DurationSeconds exceeds the 1 hour session limit for roles assumed by "
            "role chaining.");
    return 0;
}

static int read_policy(struct call *c, struct policy *ret_policy)
{
    const char *text = form_get(c->form, "Policy");
    struct err e;
    if (!text)
        return 0;
    if (strlen(text) > POLICY_MAX)
        return fail(c, "ValidationError",
            "1 validation error detected: Value at 'policy' failed to satisfy constraint: Member "
            "must have length less than or equal to %d",
            POLICY_MAX);
    return policy_parse(text, strlen(text), ret_policy, &e) == 0
               ? 0
               : fail(c, "MalformedPolicyDocument", "Syntax errors in policy: %s", e.text);
}

static void write_role(
    struct call *c, const char *role, const char *name, const struct keyring_key *key)
{
    struct buf *b = &c->reply->body;
    char end[TIME_ISO_MAX];
    time_format_iso((struct wall){key->expires.ms / 1000 * 1000}, end);
    buf_adds(b, "<AssumeRoleResponse xmlns=\"" NAMESPACE "\">");
    xmlw_open(b, "AssumeRoleResult");
    xmlw_open(b, "AssumedRoleUser");
    xmlw_printf(b, "AssumedRoleId", "AROA%s:%s", key->access + 4, name);
    xmlw_printf(b, "Arn", "arn:aws:sts::%s:assumed-role/%s/%s", c->region->o->account, role, name);
    xmlw_close(b, "AssumedRoleUser");
    xmlw_open(b, "Credentials");
    xmlw_leaf(b, "AccessKeyId", key->access);
    xmlw_leaf(b, "SecretAccessKey", key->secret);
    xmlw_leaf(b, "SessionToken", key->token);
    xmlw_leaf(b, "Expiration", end);
    xmlw_close(b, "Credentials");
    xmlw_close(b, "AssumeRoleResult");
    xmlw_open(b, "ResponseMetadata");
    xmlw_leaf(b, "RequestId", c->reply->request_id);
    xmlw_close(b, "ResponseMetadata");
    xmlw_close(b, "AssumeRoleResponse");
}

static void assume_role(struct call *c)
{
    struct policy policy = {0};
    const char *name;
    char role[65], owner[64];
    int64_t life_s;
    if (find_role(c, form_get(c->form, "RoleArn"), role) < 0 || read_name(c, &name) < 0 ||
        read_life(c, &life_s) < 0 || read_policy(c, &policy) < 0)
        return;
    const char *unknown = form_unused(c->form);
    if (unknown) {
        fail(c, "ValidationError", "the parameter %.60s is not emulated", unknown);
        policy_deinit(&policy);
        return;
    }
    STR_COPY(owner, name);
    write_role(c, role, name,
        keyring_session(c->account->keyring, owner, &policy, SECONDS_MS(life_s), c->now));
}

void sts_api_call(struct region *r, const struct sts_account *account,
    const struct keyring_key *caller, struct form *form, struct wall now, struct ec2_reply *reply)
{
    const char *action = form_get(form, "Action"), *version = form_get(form, "Version");
    /* A copy, because adding a session moves the others. */
    struct keyring_key who = *caller;
    struct call c = {
        .region = r, .account = account, .caller = &who, .form = form, .now = now, .reply = reply};
    reply->status = 200;
    ec2_make_request_id(r, reply->request_id);
    if (!str_eq(version, STS_VERSION) || !str_eq(action, STS_ACTION))
        fail(&c, "InvalidAction", "Could not find operation %.40s for version %.20s",
            action ? action : "", version ? version : "NO_VERSION_SPECIFIED");
    else if (who.policy.statements && !policy_allows(&who.policy, "sts:AssumeRole", "*", NULL))
        fail(&c, "AccessDenied", "This session is not authorized to perform: sts:AssumeRole");
    else
        assume_role(&c);
    explicit_bzero(&who, sizeof(who));
}
