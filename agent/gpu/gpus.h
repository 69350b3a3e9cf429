/* SPDX-License-Identifier: Apache-2.0
 *
 * The GPUs of a node one by one, whole ones and slices of them (NVIDIA's MIG), and which of them a
 * task gets. Pure.
 *
 * The agent allots them, not belayd: only the agent sees which processes are left of an attempt
 * that belayd has given up (an expired lease, a restart). A task's GPUs are in its record
 * (record.h) before its program starts, and it keeps them until no process of it runs. So two tasks
 * never have the same GPU.
 */
#ifndef BELAY_AGENT_GPU_GPUS_H
#define BELAY_AGENT_GPU_GPUS_H

#include "job/counts.h"
#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GPUS_MAX 64          /* whole GPUs of a node */
#define GPUS_DEVICES_MAX 512 /* including slices */
#define GPUS_ID_MAX 64       /* bytes including the NUL */
/* GPUs of one task: ids separated by commas, whole ones first; including the NUL */
#define GPUS_TEXT_MAX 4096
#define GPUS_ALL "*" /* such a text for unknown GPUs: counts as all of them */

struct gpus {
    size_t n;
    struct gpu_device {
        char id[GPUS_ID_MAX];        /* as in CUDA_VISIBLE_DEVICES: its number, or a UUID */
        char slice[COUNTS_NAME_MAX]; /* the profile, "1g.10gb"; "" = a whole GPU */
    } v[GPUS_DEVICES_MAX];
};

/* What a task requests. */
struct gpus_ask {
    int64_t whole;
    /* counts of slices; names that are no slice profile of the node are ignored */
    const struct counts *slices;
    bool all; /* all GPUs of the node */
};

/* Sets the whole GPUs to numbers 0 .. n - 1, at most GPUS_MAX. */
void gpus_number(struct gpus *g, int64_t n);
/* Replaces the list with what `nvidia-smi -L` printed. A GPU with slices is not listed as a whole
 * one; the other GPUs of such a machine are listed by UUID, because the numbers do not count sliced
 * GPUs. Lines of another form are ignored. */
void gpus_read(struct gpus *g, const char *listing);
int64_t gpus_whole(const struct gpus *g);
/* The least memory of a GPU in the output of `nvidia-smi --query-gpu=memory.total
 * --format=csv,noheader,nounits`, in MiB and rounded up to GiB, because the driver keeps some for
 * itself. 0 if that of one is unknown. */
int64_t gpus_memory_mib(const char *csv);
/* Counts the slices by profile, and appends the counts of `others` that have other names, as far as
 * there is space. */
void gpus_count_slices(
    const struct gpus *g, const struct counts *others, struct counts *ret_counts);

/* Whether a text of ids, or GPUS_ALL, includes this id. */
bool gpus_text_has(const char *text, const char *id);

/* Writes to out the first free GPUs, which none of the others has. ERR_UNAVAILABLE: too few are
 * free; the text says how many. */
int gpus_allot(const struct gpus *g, const struct gpus_ask *ask, const char *const *others,
    size_t n_others, char out[GPUS_TEXT_MAX], struct err *e);

#endif
