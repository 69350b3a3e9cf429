/* SPDX-License-Identifier: Apache-2.0
 *
 * Service Quotas (JSON 1.1, GetServiceQuota and GetAWSDefaultServiceQuota of the service ec2),
 * without any I/O: which quota a type of instance counts against, requests as JSON bodies, replies
 * parsed from bytes. The quotas of EC2 are numbers of vCPUs in a region, by group of families and
 * by market.
 */
#ifndef BELAY_CLOUD_AWS_SERVICE_QUOTAS_H
#define BELAY_CLOUD_AWS_SERVICE_QUOTAS_H

#include "base/buf.h"
#include "cloud/quotas.h"

#define SERVICE_QUOTAS_TARGET "ServiceQuotasV20190624."
#define SERVICE_QUOTAS_APPLIED "GetServiceQuota"
#define SERVICE_QUOTAS_DEFAULT "GetAWSDefaultServiceQuota"
#define SERVICE_QUOTAS_CONTENT_TYPE "application/x-amz-json-1.1"
#define SERVICE_QUOTAS_REPLY_MAX (256 * 1024)

/* The quota's code, static; NULL for a type whose quota is not a number of vCPUs (mac, hpc, high
 * memory) or is not known. */
const char *service_quotas_code(const char *type, enum cloud_market market);

void service_quotas_build_get(const char *code, struct buf *out);

/* Reads a quota's name and limit; used is set to unknown. ERR_INVALID also for another quota than
 * the one of that code. */
int service_quotas_parse(const char *body, size_t n, const char *code,
    struct cloud_quota_value *ret_value, struct err *e);

/* For any status except 200: fills e and returns its kind. ERR_NOT_FOUND: the account has no value
 * of its own for this quota. `call` is the operation's name, which is also that of the right. */
int service_quotas_parse_error(
    int status, const char *body, size_t n, const char *call, struct err *e);

#endif
