/* SPDX-License-Identifier: Apache-2.0
 *
 * The emulator's configuration: one strict YAML file (docs/emulator.md).
 */
#ifndef BELAY_CLOUD_EMULATOR_CONFIG_H
#define BELAY_CLOUD_EMULATOR_CONFIG_H

#include "cloud/emulator/ec2_api.h"
#include "cloud/emulator/keyring.h"

#define CONFIG_KEYS_MAX 16
#define CONFIG_LIST_MAX 100
#define CONFIG_SCRIPT_MAX 10000

struct emulator_config {
    char host[64];
    int ec2_port, control_port; /* 0: any */
    char *dir;                  /* NULL: a new one below TMPDIR, removed in the end */
    char *path;                 /* PATH of user data */
    char metadata_host[64];
    int metadata_port;
    int64_t shutdown_ms, role_ttl_ms;
    struct {
        char access[KEYRING_ACCESS_MAX], secret[KEYRING_SECRET_MAX];
    } keys[CONFIG_KEYS_MAX];
    size_t n_keys;
    const char **images, **profiles; /* NULL-terminated; NULL: any */
    struct ec2_subnet *subnets;
    size_t n_subnets;
    struct region_options region;
    struct market_pool *pools;
    size_t n_pools;
};

/* file is for messages, and paths in the text are relative to its directory. ERR_INVALID with file and line.
 * Reads the traces that the text names. */
int config_parse(
    const char *file, const char *text, size_t n, struct emulator_config *ret_config, struct err *e);
int config_load(const char *file, struct emulator_config *ret_config, struct err *e);
void config_deinit(struct emulator_config *c);

#endif
