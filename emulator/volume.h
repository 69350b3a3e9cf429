/* SPDX-License-Identifier: Apache-2.0
 *
 * Volumes of a region: disks of its machines, disks that outlived them, and volumes of the
 * configuration. A volume is attached to one instance or to none; it is deleted with its instance
 * unless it is marked to stay. The front decides how it is shown.
 */
#ifndef BELAY_EMULATOR_VOLUME_H
#define BELAY_EMULATOR_VOLUME_H

#include "emulator/instance.h"

#define REGION_VOLUMES_MAX 200000 /* in total, because none is forgotten automatically */
#define VOLUME_GIB_MAX 65536

struct region;

struct volume {
    char id[40];    /* in EC2's format */
    int64_t number; /* 1, 2, ... in order of creation */
    struct disk_spec spec;
    char zone[CLOUD_NAME_MAX];
    const struct instance *of; /* NULL if unattached */
    struct wall made_at, detached_at;
};

/* Creates the disks of the instance's launch, attached to it. */
void region_make_volumes(struct region *r, const struct instance *i);
/* Creates an unattached volume with a given creation time. spec is taken over. */
void region_add_volume(
    struct region *r, struct disk_spec *spec, const char *zone, struct wall made_at);
/* The instance is gone for good: its volumes are deleted, or stay unattached. */
void region_free_volumes(struct region *r, const struct instance *i, struct wall at);
void region_volumes_deinit(struct region *r);

#endif
