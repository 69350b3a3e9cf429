/* SPDX-License-Identifier: Apache-2.0
 *
 * Volumes of a region: the disks of its machines, those that outlived theirs, and those that the
 * configuration puts there. A volume is attached to one instance or to none; it goes with its
 * instance, unless it was to stay. How a provider shows one is its front's.
 */
#ifndef BELAY_EMULATOR_VOLUME_H
#define BELAY_EMULATOR_VOLUME_H

#include "emulator/instance.h"

#define REGION_VOLUMES_MAX 200000 /* in all, because none is forgotten by itself */
#define VOLUME_GIB_MAX 65536

struct region;

struct volume {
    char id[40];    /* EC2's form */
    int64_t number; /* 1, 2, ... in the order in which they were made */
    struct disk_spec spec;
    char zone[CLOUD_NAME_MAX];
    const struct instance *of; /* NULL: attached to nothing */
    struct wall made_at, detached_at;
};

/* The disks that the instance's launch asked for, attached to it. */
void region_make_volumes(struct region *r, const struct instance *i);
/* One that is attached to nothing, made at some time. spec is taken. */
void region_add_volume(
    struct region *r, struct disk_spec *spec, const char *zone, struct wall made_at);
/* The instance is gone for good: its volumes go with it, or stay by themselves. */
void region_free_volumes(struct region *r, const struct instance *i, struct wall at);
void region_volumes_deinit(struct region *r);

#endif
