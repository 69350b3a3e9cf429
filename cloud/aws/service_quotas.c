/* SPDX-License-Identifier: Apache-2.0
 *
 * Reference: https://docs.aws.amazon.com/servicequotas/2019-06-24/apireference/ and, for the codes,
 * the quotas of EC2 as `aws service-quotas list-service-quotas --service-code ec2` lists them.
 */
#include "cloud/aws/service_quotas.h"

#include "base/str.h"
#include "cloud/aws/json_error.h"
#include "cloud/refusal.h"
#include <string.h>

#define SERVICE "Service Quotas"

/* Families by the letters before the first digit of a type. */
static const struct {
    const char *families; /* separated by spaces */
    const char *spot, *on_demand;
} groups[] = {
    {"a c d h i im is m r t z", "L-34B43A08", "L-1216C47A"},
    {"g gr vt", "L-3819A6DF", "L-DB2E81BA"},
    {"p", "L-7212CCBC", "L-417A185B"},
    {"inf", "L-B5D1601B", "L-1945791B"},
    {"trn", "L-6B0D517C", "L-2C3B7624"},
    {"dl", "L-85EED4F7", "L-6E869C2A"},
    {"f", "L-88CF9481", "L-74FC7D96"},
    {"x", "L-E3A00192", "L-7295265B"},
};

static bool has_family(const char *families, const char *type, size_t n)
{
    for (const char *p = families; *p; p += strcspn(p, " "), p += *p == ' ')
        if (strcspn(p, " ") == n && strncmp(p, type, n) == 0)
            return true;
    return false;
}

const char *service_quotas_code(const char *type, enum cloud_market market)
{
    size_t n = strspn(type, "abcdefghijklmnopqrstuvwxyz");
    if (n == 0 || type[n] < '0' || type[n] > '9')
        return NULL;
    for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
        if (has_family(groups[i].families, type, n))
            return market == CLOUD_SPOT ? groups[i].spot : groups[i].on_demand;
    return NULL;
}

void service_quotas_build_get(const char *code, struct buf *out)
{
    json_t *o = json_object();
    json_object_set_new(o, "ServiceCode", json_string("ec2"));
    json_object_set_new(o, "QuotaCode", json_text(code));
    json_add(out, o);
}

static int read_quota(
    const json_t *root, const char *code, struct cloud_quota_value *v, struct err *e)
{
    struct json_reader r;
    json_reader_init(&r, root, "", e);
    const json_t *quota = json_req_object(&r, "Quota");
    int rc = json_reader_finish_lenient(&r);
    if (rc != 0)
        return rc;
    json_reader_init(&r, quota, "Quota", e);
    const char *of = json_req_str(&r, "QuotaCode", 64);
    json_req_strcpy(&r, "QuotaName", v->name, sizeof(v->name));
    if (!r.rc && !str_eq(of, code))
        json_reader_fail(&r, "QuotaCode", "expected %s, found another quota", code);
    rc = json_reader_finish_lenient(&r);
    return rc == 0 ? cloud_quota_count(json_object_get(quota, "Value"), "Quota.Value", &v->limit, e)
                   : rc;
}

int service_quotas_parse(const char *body, size_t n, const char *code,
    struct cloud_quota_value *ret_value, struct err *e)
{
    struct cloud_quota_value v = {.used = -1};
    json_t *root;
    int rc = json_parse(body, n, SERVICE_QUOTAS_REPLY_MAX, &root, e);
    if (rc == 0) {
        rc = read_quota(root, code, &v, e);
        json_decref(root);
    }
    if (rc != 0)
        return err_wrap(e, SERVICE "'s reply");
    *ret_value = v;
    return 0;
}

static const struct refusal refusals[] = {
    {"AccessDenied*", ERR_DENIED},
    {"UnrecognizedClient*", ERR_DENIED},
    {"InvalidSignature*", ERR_DENIED},
    {"IncompleteSignature*", ERR_DENIED},
    {"MissingAuthenticationToken*", ERR_DENIED},
    {"ExpiredToken*", ERR_DENIED},
    {"OptInRequired*", ERR_DENIED},
    {"DependencyAccessDenied*", ERR_DENIED},

    {"NoSuchResource*", ERR_NOT_FOUND},

    {"Throttling*", ERR_THROTTLED},
    {"TooManyRequests*", ERR_THROTTLED},
    {"RequestLimitExceeded*", ERR_THROTTLED},

    {"Service*", ERR_UNAVAILABLE},
    {"Internal*", ERR_UNAVAILABLE},
    {NULL},
};

int service_quotas_parse_error(
    int status, const char *body, size_t n, const char *call, struct err *e)
{
    int kind = aws_json_error(SERVICE, refusals, status, body, n, e);
    if (strstr(e->text, "AccessDenied"))
        err_wrap(e, "it needs the permission servicequotas:%s", call);
    return kind;
}
