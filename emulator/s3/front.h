/* SPDX-License-Identifier: Apache-2.0
 *
 * S3, next to EC2: at its own address, with the same keys.
 */
#ifndef BELAY_EMULATOR_S3_FRONT_H
#define BELAY_EMULATOR_S3_FRONT_H

#include "emulator/config_section.h"
#include "emulator/keyring.h"
#include "emulator/s3/api.h"

struct s3_options {
    const char **buckets; /* NULL for no S3 */
    int port;             /* 0 = any free one */
    bool has_conditions;
    const char *encryption; /* NULL for any */
    int64_t quota_bytes, page;
};

struct s3_state {
    struct s3_account account;
    const struct keyring *keyring;
};

/* Reads the key `s3` of the section. */
void s3_read_options(struct config_section *s, struct s3_options *ret_options);

/* keyring and region are borrowed until close. */
void s3_open_state(struct s3_state *state, const struct s3_options *o,
    const struct keyring *keyring, const char *region);
/* adds its buckets, for GET /state */
void s3_state_describe(const struct s3_state *state, json_t *list);
void s3_close_state(struct s3_state *state);

extern const struct front s3_front; /* its state is a struct s3_state */

#endif
