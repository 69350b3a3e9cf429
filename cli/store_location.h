/* SPDX-License-Identifier: Apache-2.0
 *
 * Locating a cluster's checkpoints, with belayd or without.
 */
#ifndef BELAY_CLI_STORE_LOCATION_H
#define BELAY_CLI_STORE_LOCATION_H

#include "base/err.h"
#include <stdbool.h>

struct store_location {
    char *store, *cluster;
    /* for encrypted checkpoints; NULL if none is named and the default does not exist */
    char *key_file;
};

/* Values from the command line; may be NULL. Borrowed. */
struct store_location_options {
    const char *store, *cluster, *config, *key_file;
};

/* Search order: --store (BELAY_STORE) with --cluster (BELAY_CLUSTER; default "belay"); the
 * configuration file; the running belayd; the configuration of `belay up`. The key file is
 * --key-file (BELAY_KEY_FILE); with a configuration file, the one it names; else the first that
 * exists in the state directory of `belay up` and in belayd's default one. ERR_CONFIG and
 * ERR_UNAVAILABLE name the option to use. Call store_location_deinit in every case. */
int store_location_find(
    const struct store_location_options *o, struct store_location *ret_location, struct err *e);
void store_location_deinit(struct store_location *p);

#endif
