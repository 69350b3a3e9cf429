/* SPDX-License-Identifier: Apache-2.0
 *
 * AssumeRole of the Security Token Service, version 2011-06-15: parameters in, status and XML out.
 * It shares EC2's address and is selected by the service that a request is signed for.
 */
#ifndef BELAY_EMULATOR_EC2_STS_API_H
#define BELAY_EMULATOR_EC2_STS_API_H

#include "emulator/ec2/ec2.h"
#include "emulator/keyring.h"

#define STS_VERSION "2011-06-15"
#define STS_ACTION "AssumeRole"

struct sts_account {
    /* that may be assumed; NULL-terminated; NULL for any of the account */
    const char *const *roles;
    int64_t min_session_s; /* minimum DurationSeconds */
    struct keyring *keyring;
};

/* The caller has authenticated the request: caller, borrowed, is a key of the account's keyring. */
void sts_api_call(struct region *r, const struct sts_account *account,
    const struct keyring_key *caller, struct form *form, struct wall now,
    struct ec2_reply *ret_reply);

/* An error reply alone, with the code's usual status and message. */
void sts_api_error(
    struct region *r, const char *code, const char *text, struct ec2_reply *ret_reply);

#endif
