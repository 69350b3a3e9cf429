/* SPDX-License-Identifier: Apache-2.0
 *
 * The instance metadata service, version 2, as a function: request in, reply out. No I/O, no clock.
 */
#ifndef BELAY_EMULATOR_EC2_METADATA_H
#define BELAY_EMULATOR_EC2_METADATA_H

#include "emulator/front.h"
#include "emulator/keyring.h"

#define EC2_METADATA_TTL_MAX_S 21600
#define EC2_METADATA_TOKEN_HEADER "X-aws-ec2-metadata-token"
#define EC2_METADATA_TTL_HEADER "X-aws-ec2-metadata-token-ttl-seconds"

/* The instance whose metadata is read. secret: random, per instance, so that its tokens are invalid
 * at any other. */
struct ec2_metadata {
    const struct region *region;
    const struct instance *instance;
    struct keyring *keyring;
    int64_t role_ttl_ms;
    unsigned char secret[FRONT_SECRET_BYTES];
};

struct ec2_metadata_request {
    const char *method, *path;
    const char *token, *ttl, *forwarded_for; /* headers; NULL if absent */
};

struct ec2_metadata_reply {
    int status;
    const char *content_type;
    int64_t ttl_s; /* of the token, for the reply's header; 0 = none */
    struct buf body;
};

/* The caller frees ret_reply->body. */
void ec2_metadata_answer(const struct ec2_metadata *m, const struct ec2_metadata_request *r,
    struct wall now, struct ec2_metadata_reply *ret_reply);

/* An error page with this status, in the service's format. */
void ec2_metadata_error(int status, struct ec2_metadata_reply *ret_reply);

#endif
