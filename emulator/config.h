/* SPDX-License-Identifier: Apache-2.0
 *
 * The emulator's configuration: one strict YAML file (docs/reference/emulator.md). With `providers`
 * it has a section for each provider; without, the whole file is the section of the first of
 * fronts[].
 */
#ifndef BELAY_EMULATOR_CONFIG_H
#define BELAY_EMULATOR_CONFIG_H

#include "emulator/front.h"

#define CONFIG_LIST_MAX 100
#define CONFIG_SCRIPT_MAX 10000
#define CONFIG_VOLUMES_MAX 1000
#define CONFIG_PROVIDERS_MAX 8

struct provider_config {
    const struct front *front;
    int port; /* of the API; 0 = any free one */
    char metadata_host[64];
    int metadata_port;
    int64_t role_ttl_ms;
    struct region_options region;
    struct market_pool *pools;
    size_t n_pools;
    void *options; /* owned by the front */
};

struct emulator_config {
    char host[64];
    int control_port; /* 0 = any free one */
    char *dir;        /* NULL for a new one below TMPDIR, removed at the end */
    char *path;       /* PATH of user data */
    int64_t shutdown_ms;
    struct provider_config providers[CONFIG_PROVIDERS_MAX];
    size_t n_providers; /* >= 1 */
};

/* file appears in messages; paths in the text are relative to its directory. ERR_INVALID with file
 * and line. Reads the traces that the text names. */
int config_parse(const char *file, const char *text, size_t n, struct emulator_config *ret_config,
    struct err *e);
int config_load(const char *file, struct emulator_config *ret_config, struct err *e);
void config_deinit(struct emulator_config *c);

#endif
