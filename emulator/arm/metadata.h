/* SPDX-License-Identifier: Apache-2.0
 *
 * Azure's instance metadata service as a function: instance, scheduled events, tokens of managed
 * identities. No I/O, no clock.
 */
#ifndef BELAY_EMULATOR_ARM_METADATA_H
#define BELAY_EMULATOR_ARM_METADATA_H

#include "emulator/arm/arm.h"

struct arm_metadata_request {
    const char *method, *path, *query;
    const char *metadata, *forwarded_for; /* headers; NULL if absent */
    const void *body;
    size_t body_len;
};

struct arm_metadata_reply {
    int status;
    bool is_text; /* else JSON */
    struct buf body;
};

/* i: the instance whose metadata is read. The region has been advanced to now. An accepted
 * StartRequests ends the machine. */
void arm_metadata_answer(struct arm *a, struct instance *i, const struct arm_metadata_request *q,
    struct wall now, int64_t token_ttl_ms, struct arm_metadata_reply *ret_reply);

/* An error with this status, in the service's format. */
void arm_metadata_error(int status, struct arm_metadata_reply *ret_reply);

#endif
