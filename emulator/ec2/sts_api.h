/* SPDX-License-Identifier: Apache-2.0
 *
 * AssumeRole of the Security Token Service, version 2011-06-15: parameters in, status and XML out.
 * It is at the address of EC2, told apart by the service that a request is signed for.
 */
#ifndef BELAY_EMULATOR_EC2_STS_API_H
#define BELAY_EMULATOR_EC2_STS_API_H

#include "emulator/ec2/api.h"
#include "emulator/keyring.h"

#define STS_VERSION "2011-06-15"
#define STS_ACTION "AssumeRole"

struct sts_account {
    const char *const *roles; /* that may be assumed; NULL-terminated; NULL: any of the account */
    int64_t min_session_s;    /* shortest DurationSeconds */
    struct keyring *keyring;
};

/* The caller has checked who calls: caller, borrowed, of the account's keyring. */
void sts_api_call(struct region *r, const struct sts_account *account,
    const struct keyring_key *caller, struct form *form, struct wall now,
    struct ec2_reply *ret_reply);

/* An error reply by itself, with the usual status and words of the code. */
void sts_api_error(
    struct region *r, const char *code, const char *text, struct ec2_reply *ret_reply);

#endif
