/* SPDX-License-Identifier: Apache-2.0
 *
 * Kinds of GPUs, by a short name for a model and the memory of one. "NVIDIA A100-SXM4-40GB", "A100"
 * and "a100" are a100, "NVIDIA GeForce RTX 4090" is rtx-4090.
 */
#ifndef BELAY_JOB_GPU_H
#define BELAY_JOB_GPU_H

#include <stdbool.h>
#include <stdint.h>

#define GPU_MODEL_MAX 32 /* with its NUL: small letters, digits, '-' and '.' */

struct gpu_kind {
    char model[GPU_MODEL_MAX]; /* "": not known; of a job: any */
    int64_t memory_mib;        /* 0: not known; of a job: whatever it is */
};

/* The short name of what a vendor, a provider or a user calls a model, without the vendor, the slot
 * and the memory. "": it has none. */
void gpu_model(const char *name, char out[GPU_MODEL_MAX]);
/* What a vendor's name says of the memory, "...-40GB"; 0: nothing. */
int64_t gpu_model_mib(const char *name);
/* The name of a slice of a GPU (NVIDIA's MIG: "1g.10gb", "1c.3g.40gb", "1g.10gb+me") in small
 * letters, with '.' for '+', so that a node's resource can have it. False: it is not one. */
bool gpu_slice(const char *name, char out[GPU_MODEL_MAX]);
/* AMD made a model of this short name (mi300x); all others count as NVIDIA's. */
bool gpu_is_amd(const char *model);
/* A GPU of this kind will do: its model is the one that is asked for, or that with more behind a
 * dash ("rtx" is asked for, and it is an rtx-4090), and it has so much memory. What is not known
 * does not. */
bool gpu_serves(const struct gpu_kind *is, const struct gpu_kind *asked);

#endif
