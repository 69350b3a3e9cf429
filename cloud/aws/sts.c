/* SPDX-License-Identifier: Apache-2.0
 *
 * See sts.h. A session may do what both the role and the session policy allow.
 */
#include "cloud/aws/sts.h"
#include "base/str.h"
#include "cloud/refusal.h"
#include "cloud/xml.h"
#include <stdio.h>
#include <string.h>

#define SERVICE "the Security Token Service"
#define VERSION "2011-06-15"
#define CODE_MAX 128
#define MESSAGE_MAX 400
#define PARTITION_MAX 32

/* ---- names ---- */

/* Whether arn belongs to this service and its last part begins with kind ("role/"). */
static bool is_arn(const char *arn, const char *service, const char *kind)
{
    const char *part = arn;
    size_t n = strlen(arn);
    if (n > STS_ARN_MAX || !str_starts(arn, "arn:"))
        return false;
    for (const char *p = arn; *p; p++)
        if (*p <= ' ' || *p > '~' || strchr("\"'\\*?$", *p))
            return false;
    for (int colons = 0; colons < 5; colons++) {
        if (colons == 2 && strncmp(part, service, strlen(service)) != 0)
            return false;
        part = strchr(part, ':');
        if (!part)
            return false;
        part++;
    }
    return str_starts(part, kind) && part[strlen(kind)] != '\0';
}

int sts_check_role(const char *arn, struct err *e)
{
    char shown[STR_SHOW_MAX];
    return is_arn(arn, "iam:", "role/")
               ? 0
               : err_set(e, ERR_INVALID,
                     "expected a role's ARN, arn:aws:iam::ACCOUNT:role/NAME, found %s",
                     str_show(arn, shown));
}

int sts_check_kms_key(const char *arn, struct err *e)
{
    char shown[STR_SHOW_MAX];
    return is_arn(arn, "kms:", "key/")
               ? 0
               : err_set(e, ERR_INVALID,
                     "expected the ARN of a key, arn:aws:kms:REGION:ACCOUNT:key/ID, found %s",
                     str_show(arn, shown));
}

/* The role's partition: "aws", "aws-cn", "aws-us-gov". */
static void partition_of(const char *arn, char out[PARTITION_MAX])
{
    size_t n = strcspn(arn + 4, ":");
    snprintf(out, PARTITION_MAX, "%.*s", (int)(n < PARTITION_MAX ? n : 0), arn + 4);
    if (!str_starts(out, "aws"))
        str_copy(out, PARTITION_MAX, "aws"); /* the partition that other servers' policies use */
}

/* ---- the request ---- */

int sts_policy(const struct sts_session *s, struct buf *out, struct err *e)
{
    char partition[PARTITION_MAX];
    size_t before = out->len;
    partition_of(s->role_arn, partition);
    buf_printf(out,
        "{\"Version\":\"2012-10-17\",\"Statement\":[{\"Effect\":\"Allow\",\"Action\":[\"s3:"
        "GetObject\","
        "\"s3:PutObject\",\"s3:DeleteObject\",\"s3:AbortMultipartUpload\"],\"Resource\":\"arn:%s:"
        "s3:::%s/%s*\"},"
        "{\"Effect\":\"Allow\",\"Action\":\"s3:ListBucket\",\"Resource\":\"arn:%s:s3:::%s\","
        "\"Condition\":{\"StringLike\":{\"s3:prefix\":\"%s*\"}}}",
        partition, s->bucket, s->prefix, partition, s->bucket, s->prefix);
    if (s->kms_key)
        buf_printf(out,
            ",{\"Effect\":\"Allow\",\"Action\":[\"kms:GenerateDataKey\",\"kms:Decrypt\"],"
            "\"Resource\":\"%s\"}",
            s->kms_key);
    buf_adds(out, "]}");
    if (out->len - before <= STS_POLICY_MAX)
        return 0;
    return err_set(e, ERR_INVALID,
        "the session policy for %.100s has %zu characters and may have %d: shorten the store's "
        "prefix",
        s->prefix, out->len - before, STS_POLICY_MAX);
}

static void add_field(struct buf *out, const char *name, const char *value)
{
    buf_printf(out, "&%s=", name);
    str_url_encode(out, value, strlen(value));
}

int sts_build_assume_role(const struct sts_session *s, struct buf *out, struct err *e)
{
    struct buf policy = {0};
    int rc = sts_policy(s, &policy, e);
    if (rc == 0) {
        buf_adds(out, "Action=AssumeRole&Version=" VERSION);
        buf_printf(out, "&DurationSeconds=%lld", (long long)s->life_s);
        add_field(out, "Policy", buf_str(&policy));
        add_field(out, "RoleArn", s->role_arn);
        add_field(out, "RoleSessionName", s->name);
    }
    buf_deinit(&policy);
    return rc;
}

/* ---- the reply ---- */

/* Copies a text that is put in a header, or used for signing. */
static int read_text(const struct xml_node *node, const char *name, char *dst, size_t size)
{
    if (xml_text(node, name, dst, size, NULL) != 0 || !*dst)
        return ERR_INVALID;
    for (const char *p = dst; *p; p++)
        if (*p <= ' ' || *p > '~')
            return ERR_INVALID;
    return 0;
}

static int read_credentials(const struct xml_node *node, struct aws_credentials *c)
{
    char end[TIME_ISO_MAX];
    int rc = node ? 0 : ERR_INVALID;
    if (rc == 0)
        rc = read_text(node, "AccessKeyId", c->access_key, sizeof(c->access_key));
    if (rc == 0)
        rc = read_text(node, "SecretAccessKey", c->secret_key, sizeof(c->secret_key));
    if (rc == 0)
        rc = read_text(node, "SessionToken", c->session_token, sizeof(c->session_token));
    if (rc == 0)
        rc = read_text(node, "Expiration", end, sizeof(end));
    return rc == 0 ? time_parse_iso(end, &c->expires, NULL) : rc;
}

int sts_parse_assume_role(
    const char *body, size_t n, struct aws_credentials *ret_credentials, struct err *e)
{
    struct aws_credentials c = {0};
    struct xml x;
    int rc = n <= STS_REPLY_MAX ? xml_open(&x, body, n, NULL) : ERR_INVALID;
    if (rc == 0) {
        const struct xml_node *result = xml_child(xml_root(&x), "AssumeRoleResult");
        rc = read_credentials(xml_child(result, "Credentials"), &c);
        buf_wipe(&x.texts);
        xml_close(&x);
    }
    if (rc == 0)
        *ret_credentials = c;
    else /* XML's error text might quote a secret */
        rc = err_set(e, ERR_INVALID,
            SERVICE
            "'s reply of %zu bytes is not an AssumeRoleResponse with AccessKeyId, SecretAccessKey, "
            "SessionToken and Expiration",
            n);
    explicit_bzero(&c, sizeof(c));
    return rc;
}

/* ---- refusals ---- */

static const struct refusal refusals[] = {
    {"AccessDenied*", ERR_DENIED,
        "belayd's own role or user needs sts:AssumeRole on store_role, whose trust policy has to "
        "name it"},
    {"ExpiredToken*", ERR_DENIED, NULL, STS_REMEDY_CREDENTIALS},
    {"InvalidClientTokenId", ERR_DENIED, "check the access key", STS_REMEDY_CREDENTIALS},
    {"InvalidAccessKeyId", ERR_DENIED, "check the access key", STS_REMEDY_CREDENTIALS},
    {"SignatureDoesNotMatch", ERR_DENIED, "check the secret access key and this machine's clock",
        STS_REMEDY_CREDENTIALS | STS_REMEDY_CLOCK},
    {"RequestExpired", ERR_DENIED, "check this machine's clock", STS_REMEDY_CLOCK},
    {"RequestTimeTooSkewed", ERR_DENIED, "check this machine's clock", STS_REMEDY_CLOCK},
    {"IncompleteSignature*", ERR_DENIED},
    {"MissingAuthenticationToken*", ERR_DENIED},
    {"OptInRequired", ERR_DENIED},
    {"PackedPolicyTooLarge*", ERR_CONFIG, "shorten the store's prefix"},
    {"MalformedPolicyDocument*", ERR_CONFIG},
    {"RegionDisabled*", ERR_CONFIG,
        "allow the Security Token Service in this region, or set store_sts"},
    {"ValidationError", ERR_CONFIG,
        "check that store_lifetime is within the role's maximum session duration"},
    {"Throttling*", ERR_THROTTLED},
    {"RequestLimitExceeded", ERR_THROTTLED},
    {"SlowDown", ERR_THROTTLED},
    {"Internal*", ERR_UNAVAILABLE},
    {"ServiceUnavailable", ERR_UNAVAILABLE},
    {"IDPCommunicationError*", ERR_UNAVAILABLE},
    {NULL},
};

/* Reads <ErrorResponse><Error> or, for other servers, only <Error>. */
static bool read_error(const char *body, size_t n, char code[CODE_MAX], char message[MESSAGE_MAX])
{
    struct xml x;
    bool found = false;
    if (n > STS_REPLY_MAX || xml_open(&x, body, n, NULL) != 0)
        return false;
    const struct xml_node *root = xml_root(&x), *error = xml_child(root, "Error");
    if (!error && str_eq(xml_name(root), "Error"))
        error = root;
    if (error && xml_text(error, "Code", code, CODE_MAX, NULL) == 0 && *code) {
        xml_text_cut(error, "Message", message, MESSAGE_MAX);
        found = true;
    }
    xml_close(&x);
    return found;
}

int sts_parse_error(int status, const char *body, size_t n, unsigned *ret_remedies, struct err *e)
{
    char code[CODE_MAX] = "", message[MESSAGE_MAX] = "";
    bool is_read = read_error(body, n, code, message);
    const struct refusal *r = is_read ? refusal_find(refusals, code) : NULL;
    enum err_kind kind = r ? r->kind : refusal_kind_of_status(refusals, status, ERR_CONFIG);
    *ret_remedies = r ? r->flags : 0;
    if (!is_read)
        return refusal_set_stray(SERVICE, kind, status, body, n, "an unknown body", e);
    /* these repeat the canonical request, including the session token */
    if (strstr(code, "Signature"))
        message[0] = '\0';
    return refusal_set(SERVICE, kind, code, message, r, e);
}
