/* SPDX-License-Identifier: Apache-2.0
 *
 * The offers of an elastic pool: the machines that it may launch, from `types`, `zones` and
 * `markets`, with the sizes and prices of the catalogue or of the file.
 */
#ifndef BELAY_SCHEDULER_CONFIG_OFFERS_H
#define BELAY_SCHEDULER_CONFIG_OFFERS_H

#include "base/yaml.h"
#include "scheduler/config/pools.h"

/* Each sets p->offers; p has its name and provider. By CLOUD_OFFERS_* of the provider: */
/* in each zone, of each type, in each market; */
void config_read_offers(struct yaml_reader *r, struct config_pool *p);
/* on-demand machines of these types, anywhere in the region; */
void config_read_region_offers(struct yaml_reader *r, struct config_pool *p);
/* existing hosts, all the same: as many as the pool's settings name, with its size and price. */
void config_read_hosts_offer(struct yaml_reader *r, struct config_pool *p);

#endif
