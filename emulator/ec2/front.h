/* SPDX-License-Identifier: Apache-2.0
 *
 * The configuration keys of AWS's section.
 */
#ifndef BELAY_EMULATOR_EC2_FRONT_H
#define BELAY_EMULATOR_EC2_FRONT_H

#include "emulator/ec2/ec2.h"
#include "emulator/ec2/quotas.h"
#include "emulator/keyring.h"
#include "emulator/s3/front.h"

#define EC2_KEYS_MAX 16

struct ec2_options {
    struct {
        char access[KEYRING_ACCESS_MAX], secret[KEYRING_SECRET_MAX];
    } keys[EC2_KEYS_MAX];
    size_t n_keys;
    const char **images, **profiles; /* NULL-terminated; NULL for any */
    struct ec2_subnet *subnets;
    size_t n_subnets;
    int64_t page;             /* 0 = as the caller asks */
    int64_t image_volume_gib; /* 0 = none */
    const char **roles;       /* that may be assumed; NULL-terminated; NULL for any */
    int64_t min_session_s;    /* of a session of an assumed role */
    struct ec2_granted quotas[EC2_QUOTAS_MAX];
    size_t n_quotas;
    struct s3_options s3;
};

#endif
