/* SPDX-License-Identifier: Apache-2.0
 *
 * The AWS Price List Query API, GetProducts of AmazonEC2, as a function: JSON 1.1 in, status and
 * JSON out. No I/O, no clock. AWS's two hosts are one address here: a request with X-Amz-Target is
 * for this API.
 */
#ifndef BELAY_EMULATOR_EC2_PRICING_H
#define BELAY_EMULATOR_EC2_PRICING_H

#include "emulator/ec2/ec2.h"

#define EC2_PRICING_CONTENT_TYPE "application/x-amz-json-1.1"
#define EC2_PRICING_SERVICE "pricing" /* service and ... */
/* ... region that requests are signed for, wherever the machines are */
#define EC2_PRICING_REGION "us-east-1"
#define EC2_PRICING_ACTION "GetProducts" /* for faults and the journal */

struct ec2_pricing_request {
    const char *target;       /* X-Amz-Target; may be NULL */
    const char *content_type; /* may be NULL */
    const char *body;
    size_t body_len;
};

/* The caller has authenticated the request. */
void ec2_pricing_call(
    struct region *r, const struct ec2_pricing_request *q, struct ec2_reply *ret_reply);

/* An error reply alone. code may also be one of EC2's, which is mapped to this service's. text
 * NULL: the code's usual message. */
void ec2_pricing_error(
    struct region *r, const char *code, const char *text, struct ec2_reply *ret_reply);

#endif
