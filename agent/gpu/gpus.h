/* SPDX-License-Identifier: Apache-2.0
 *
 * The GPUs of a node one by one, whole ones and slices of them (NVIDIA's MIG), and which of them a
 * task gets. Pure.
 *
 * They are given out here and not by belayd: only the agent sees what of an attempt is left on its
 * node that belayd has given up (a lease that was over, a restart). What a task has stands in its
 * record (record.h) before its program starts, and it keeps that until nothing of it runs. So two
 * tasks never have the same one.
 */
#ifndef BELAY_AGENT_GPU_GPUS_H
#define BELAY_AGENT_GPU_GPUS_H

#include "job/counts.h"
#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GPUS_MAX 64          /* whole ones of a node */
#define GPUS_DEVICES_MAX 512 /* with slices */
#define GPUS_ID_MAX 64       /* with its NUL */
/* what one task has: ids with commas between, whole ones first; with its NUL */
#define GPUS_TEXT_MAX 4096
#define GPUS_ALL "*" /* as such a text: nobody knows which, so it counts as all of them */

struct gpus {
    size_t n;
    struct gpu_device {
        char id[GPUS_ID_MAX];        /* as CUDA_VISIBLE_DEVICES takes it: its number, or a UUID */
        char slice[COUNTS_NAME_MAX]; /* the profile, "1g.10gb"; "": it is a whole one */
    } v[GPUS_DEVICES_MAX];
};

/* What a task is to have. */
struct gpus_ask {
    int64_t whole;
    /* those of other names than the node's slices have are not meant */
    const struct counts *slices;
    bool all; /* and whatever else there is */
};

/* The first n by their numbers, in place of what whole ones there were; at most GPUS_MAX. */
void gpus_number(struct gpus *g, int64_t n);
/* What `nvidia-smi -L` prints, in place of all there was. A GPU with slices is not there as a whole
 * one, and beside such the others go by their UUIDs, as numbers do not count those. Lines of
 * another form say nothing. */
void gpus_read(struct gpus *g, const char *listing);
int64_t gpus_whole(const struct gpus *g);
/* How many slices there are by their profiles, before what others has of other names: as far as
 * there is room. */
void gpus_count_slices(
    const struct gpus *g, const struct counts *others, struct counts *ret_counts);

/* A text of ids, or GPUS_ALL, has this one. */
bool gpus_text_has(const char *text, const char *id);

/* Some of those that none of the others has, the first ones, into out. ERR_UNAVAILABLE: too few are
 * left, and how many there are. */
int gpus_allot(const struct gpus *g, const struct gpus_ask *ask, const char *const *others,
    size_t n_others, char out[GPUS_TEXT_MAX], struct err *e);

#endif
