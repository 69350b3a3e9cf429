/* SPDX-License-Identifier: Apache-2.0
 *
 * The processes behind instances: each has a directory, a metadata service at its own address, and
 * a holder (holder.h) that runs its user data. Implements region_ops.
 */
#ifndef BELAY_EMULATOR_MACHINES_H
#define BELAY_EMULATOR_MACHINES_H

#include "emulator/front.h"
#include <sys/types.h>
#include <uv.h>

/* Of the directories of machines and those above them: as root, jobs of other users reach theirs
 * below, but list nothing. */
mode_t machines_dir_mode(void);

struct machines_options {
    const char *dir;           /* for the instances' directories and console output */
    const char *path;          /* PATH of user data */
    const char *provider;      /* as in the catalogue, which has the number of GPUs of a type */
    const char *metadata_host; /* "127.0.0.1" */
    int metadata_port;         /* 0 = any free one, different for each instance */
    int64_t shutdown_ms;       /* between SIGTERM and SIGKILL of a termination */
    const struct front *front; /* protocol of the metadata services, and its state */
    void *front_state;
    /* of the machines of all providers, so that none is mistaken for an orphan */
    struct list *holders;
};

/* Callbacks for the metadata service and for exits. */
struct machines_host {
    struct wall (*now)(void *ctx); /* the region's time */
    void (*changed)(void *ctx);    /* the region was changed: restart its timer */
    int64_t wall_minus_mono_ms;    /* region time - CLOCK_MONOTONIC */
    void *ctx;
};

struct machines;

/* Everything is borrowed until destroy. */
struct machines *machines_create(uv_loop_t *loop, struct region *region,
    const struct machines_options *o, const struct machines_host *host);
void machines_destroy(struct machines *ms); /* no machine may be left */

extern const struct region_ops machines_ops; /* ctx: the struct machines */

/* Kills all at once and prevents further boots; machines_count soon becomes 0. */
void machines_kill_all(struct machines *ms);
size_t machines_count(const struct machines *ms);
/* the region has changed: repeat the requests waiting at metadata services */
void machines_wake(struct machines *ms);

/* For people and tests. "" and 0 if there is no machine (any more). */
const char *machine_metadata_url(const struct instance *i);
pid_t machine_pid(const struct instance *i);
void machines_console(
    void *ctx, const struct instance *i, struct buf *out); /* output of its user data so far */

#endif
