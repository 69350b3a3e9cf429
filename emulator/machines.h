/* SPDX-License-Identifier: Apache-2.0
 *
 * The processes behind instances: each has a directory, a metadata service on an address of its
 * own, and a holder (holder.h) that runs its user data. Implements the region's ops.
 */
#ifndef BELAY_EMULATOR_MACHINES_H
#define BELAY_EMULATOR_MACHINES_H

#include "emulator/front.h"
#include <uv.h>

struct machines_options {
    const char *dir;           /* instances' directories and their consoles' output */
    const char *path;          /* PATH of the user data */
    const char *provider;      /* as in the catalogue, which says how many GPUs a type has */
    const char *metadata_host; /* "127.0.0.1" */
    int metadata_port;         /* 0: any free one, another for each instance */
    int64_t shutdown_ms;       /* between SIGTERM and SIGKILL of a termination */
    const struct front *front; /* how their metadata services speak, and its state */
    void *front_state;
    /* of the machines of all providers, so that none is taken for an orphan */
    struct list *holders;
};

/* The world outside, for the metadata service and for exits. */
struct machines_host {
    struct wall (*now)(void *ctx); /* the region's time */
    void (*changed)(void *ctx);    /* the region was changed: arm its timer again */
    int64_t wall_minus_mono_ms;    /* region time - CLOCK_MONOTONIC */
    void *ctx;
};

struct machines;

/* Everything is borrowed until destroy. */
struct machines *machines_create(uv_loop_t *loop, struct region *region,
    const struct machines_options *o, const struct machines_host *host);
void machines_destroy(struct machines *ms); /* none may be left */

extern const struct region_ops machines_ops; /* ctx: the struct machines */

/* At once, and nothing boots any more; machines_count goes to 0 soon. */
void machines_kill_all(struct machines *ms);
size_t machines_count(const struct machines *ms);
/* the region is another: what waits at metadata services is asked again */
void machines_wake(struct machines *ms);

/* For people and tests. "" and 0 when there is no machine (any more). */
const char *machine_metadata_url(const struct instance *i);
pid_t machine_pid(const struct instance *i);
void machines_console(
    void *ctx, const struct instance *i, struct buf *out); /* what its user data printed so far */

#endif
