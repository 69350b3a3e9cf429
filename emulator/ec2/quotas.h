/* SPDX-License-Identifier: Apache-2.0
 *
 * Service Quotas, GetServiceQuota and GetAWSDefaultServiceQuota of the service ec2, as a function:
 * JSON 1.1 in, status and JSON out. No I/O, no clock. It shares EC2's address and is selected by
 * X-Amz-Target. The limits are only reported: launches are limited by `quota` (emulator/region.h).
 */
#ifndef BELAY_EMULATOR_EC2_QUOTAS_H
#define BELAY_EMULATOR_EC2_QUOTAS_H

#include "emulator/ec2/ec2.h"

#define EC2_QUOTAS_CONTENT_TYPE "application/x-amz-json-1.1"
#define EC2_QUOTAS_SERVICE "servicequotas" /* in signatures */
#define EC2_QUOTAS_TARGET "ServiceQuotasV20190624."
#define EC2_QUOTAS_MAX 64

/* What the account has been granted: "L-34B43A08", 64. */
struct ec2_granted {
    char code[16];
    int64_t value;
};

struct ec2_quotas_request {
    const char *action; /* X-Amz-Target without EC2_QUOTAS_TARGET */
    const char *content_type;
    const char *body;
    size_t body_len;
};

/* The caller has authenticated the request. A quota that is not in the list has no value of its
 * own, only a default. */
void ec2_quotas_call(struct region *r, const struct ec2_granted *granted, size_t n_granted,
    const struct ec2_quotas_request *q, struct ec2_reply *ret_reply);

/* An error reply alone, as ec2_pricing_error. action names the missing right. */
void ec2_quotas_error(struct region *r, const char *action, const char *code, const char *text,
    struct ec2_reply *ret_reply);

#endif
