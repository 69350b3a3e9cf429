/* SPDX-License-Identifier: Apache-2.0
 *
 * The AWS Price List Query API, GetProducts of AmazonEC2, as a function: JSON 1.1 in, status and
 * JSON out. No I/O, no clock. What are two hosts of AWS's is one address here: a request with
 * X-Amz-Target is for this one.
 */
#ifndef BELAY_EMULATOR_EC2_PRICING_H
#define BELAY_EMULATOR_EC2_PRICING_H

#include "emulator/ec2/api.h"

#define EC2_PRICING_CONTENT_TYPE "application/x-amz-json-1.1"
#define EC2_PRICING_SERVICE "pricing"    /* that requests are signed for, */
#define EC2_PRICING_REGION "us-east-1"   /* wherever the machines are */
#define EC2_PRICING_ACTION "GetProducts" /* for faults and the journal */

struct ec2_pricing_request {
    const char *target;       /* X-Amz-Target; NULL: none */
    const char *content_type; /* NULL: none */
    const char *body;
    size_t body_len;
};

/* The caller has checked who calls. */
void ec2_pricing_call(
    struct region *r, const struct ec2_pricing_request *q, struct ec2_reply *ret_reply);

/* An error reply by itself. code: of EC2's too, which is answered with the one that such services
 * have for it. text NULL: the code's usual one. */
void ec2_pricing_error(
    struct region *r, const char *code, const char *text, struct ec2_reply *ret_reply);

#endif
