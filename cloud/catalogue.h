/* SPDX-License-Identifier: Apache-2.0
 *
 * What an instance type is: its size and its on-demand list price, from the table compiled into the program
 * (catalogue.c; figures with their dates there). A pool file may override the price.
 */
#ifndef BELAY_CLOUD_CATALOGUE_H
#define BELAY_CLOUD_CATALOGUE_H

#include <stddef.h>
#include <stdint.h>

struct catalogue_type {
    const char *provider; /* "aws" */
    const char *type;
    int32_t vcpus;
    int64_t memory_mib;
    int32_t gpus;
    const char *gpu_model;    /* "" without GPUs */
    int64_t gpu_memory_mib;   /* of one GPU */
    int64_t on_demand_uusd_h; /* in the region the table was made for */
    int64_t spot_uusd_h;      /* typical; 0: unknown. Only until a price has been read */
};

/* NULL if the table does not have it. */
const struct catalogue_type *catalogue_find(const char *provider, const char *type);

/* The types of one provider, NULL-terminated names for str_nearest; borrowed for ever. */
const char *const *catalogue_names(const char *provider);

#endif
