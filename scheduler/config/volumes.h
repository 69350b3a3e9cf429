/* SPDX-License-Identifier: Apache-2.0
 *
 * The section `volume_usd_per_gib_month:` of belayd's configuration: prices of volumes that the
 * catalogue does not have or that differ. By provider and type:
 *
 *   volume_usd_per_gib_month: {aws: {gp3: 0.088, io2: 0.13}, gcp: {pd-balanced: 0.11}}
 */
#ifndef BELAY_SCHEDULER_CONFIG_VOLUMES_H
#define BELAY_SCHEDULER_CONFIG_VOLUMES_H

#include "base/yaml.h"
#include "cloud/driver.h"

#define VOLUME_PRICES_MAX 64

struct volume_price {
    char provider[16], type[CLOUD_NAME_MAX];
    int64_t uusd_gib_month;
};

/* Reads the section; call it while the caller's reader is at the file's root. Free *ret_prices with
 * free() in all cases. */
void config_read_volumes(struct yaml_reader *root, struct volume_price **ret_prices, size_t *ret_n);

#endif
