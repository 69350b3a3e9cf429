/* SPDX-License-Identifier: Apache-2.0
 *
 * The GPUs of a node one by one, and which of them a task gets. Pure.
 *
 * They are given out here and not by belayd: only the agent sees what of an attempt is left on its node that belayd has given up (a
 * lease that was over, a restart). What a task has stands in its record (record.h) before its program starts, and it keeps that until
 * nothing of it runs. So two tasks never have the same one.
 */
#ifndef BELAY_AGENT_GPUS_H
#define BELAY_AGENT_GPUS_H

#include "base/err.h"
#include <stddef.h>
#include <stdint.h>

#define GPUS_MAX 64        /* of a node */
#define GPUS_ID_MAX 64     /* with its NUL */
#define GPUS_TEXT_MAX 1024 /* what one task has: ids with commas between; with its NUL */
#define GPUS_ALL "*"       /* as such a text: nobody knows which, so it counts as all of them */

struct gpus {
    size_t n;
    char id[GPUS_MAX][GPUS_ID_MAX]; /* as CUDA_VISIBLE_DEVICES takes it: its number */
};

/* The first n by their numbers; at most GPUS_MAX. */
void gpus_number(struct gpus *g, int64_t n);

/* n of those that none of the others has, the first ones, into out. ERR_UNAVAILABLE: too few are left, and how many there are. */
int gpus_allot(const struct gpus *g, int64_t n, const char *const *others, size_t n_others, char out[GPUS_TEXT_MAX], struct err *e);

#endif
