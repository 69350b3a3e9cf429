/* SPDX-License-Identifier: Apache-2.0
 *
 * Providers' replies about quotas. The first byte selects the parser: '0' a quota of AWS, '1' a
 * refusal of its Service Quotas.
 */
#include "check.h"
#include "cloud/aws/service_quotas.h"
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int (*const readers[])(const char *, size_t, struct err *) = {
        read_aws, read_aws_refusal};
    const size_t n_readers = sizeof(readers) / sizeof(readers[0]);
    if (size == 0 || data[0] < '0' || (size_t)(data[0] - '0') >= n_readers)
        return 0;
    struct err e = {0};
    int rc = readers[data[0] - '0']((const char *)data + 1, size - 1, &e);
    if (rc != 0)
        check_error(rc, &e);
    return 0;
}
