/* SPDX-License-Identifier: Apache-2.0
 *
 * Providers' replies about quotas. The first byte selects the parser: '0' a quota of AWS, '1' a
 * refusal of its Service Quotas, '2' a region or project of Google, '3' usages of Azure,
 * '4' Google's limits of families.
 */
#include "check.h"
#include "cloud/aws/service_quotas.h"
#include "cloud/azure/arm_usages.h"
#include "cloud/gcp/gce_quotas.h"
#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_value(const struct cloud_quota_value *v)
{
    assert(memchr(v->name, '\0', sizeof(v->name)));
    assert(v->limit >= 0 && v->limit <= CLOUD_QUOTA_LIMIT_MAX);
    assert(v->used >= -1 && v->used <= CLOUD_QUOTA_LIMIT_MAX);
}

static int read_aws(const char *body, size_t n, struct err *e)
{
    struct cloud_quota_value v;
    int rc = service_quotas_parse(body, n, "L-34B43A08", &v, e);
    if (rc == 0)
        check_value(&v);
    return rc;
}

static int read_aws_refusal(const char *body, size_t n, struct err *e)
{
    int kind = service_quotas_parse_error(300 + (int)(n % 300), body, n, "GetServiceQuota", e);
    assert(kind != ERR_NONE);
    return kind;
}

static int draw(int rc, bool is_gcp, struct cloud_quota_values *l, struct err *e)
{
    static const struct cloud_machine machines[] = {{"n1-standard-8+t4", CLOUD_SPOT, 8, 1},
        {"Standard_NC4as_T4_v3", CLOUD_ON_DEMAND, 4, 1}, {"c4-standard-8", CLOUD_ON_DEMAND, 8, 0}};
    struct cloud_quotas rows = {0};
    for (size_t i = 0; i < l->n; i++)
        check_value(&l->list[i]);
    for (size_t i = 0; rc == 0 && i < sizeof(machines) / sizeof(machines[0]); i++)
        rc = is_gcp ? gce_draw_quotas(&machines[i], i, "r", l, l, &rows, e)
                    : arm_draw_usages(&machines[i], i, "r", l, &rows, e);
    cloud_quotas_deinit(&rows);
    cloud_quota_values_deinit(l);
    return rc;
}

static int read_gcp(const char *body, size_t n, struct err *e)
{
    struct cloud_quota_values l = {0};
    return draw(gce_parse_quotas(body, n, &l, e), true, &l, e);
}

static int read_gcp_families(const char *body, size_t n, struct err *e)
{
    struct cloud_quota_values l = {0};
    return draw(gce_parse_family_quota(body, n, "r", &l, e), true, &l, e);
}

static int read_azure(const char *body, size_t n, struct err *e)
{
    struct cloud_quota_values l = {0};
    char next[ARM_URL_MAX + 1];
    int rc = arm_parse_usages(body, n, &l, next, e);
    assert(rc != 0 || strlen(next) <= ARM_URL_MAX);
    return draw(rc, false, &l, e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int (*const readers[])(const char *, size_t, struct err *) = {
        read_aws, read_aws_refusal, read_gcp, read_azure, read_gcp_families};
    const size_t n_readers = sizeof(readers) / sizeof(readers[0]);
    if (size == 0 || data[0] < '0' || (size_t)(data[0] - '0') >= n_readers)
        return 0;
    struct err e = {0};
    int rc = readers[data[0] - '0']((const char *)data + 1, size - 1, &e);
    if (rc != 0)
        check_error(rc, &e);
    return 0;
}
