/* SPDX-License-Identifier: Apache-2.0
 *
 * GPU models, by a short name and their memory. "NVIDIA A100-SXM4-40GB", "A100" and "a100" are
 * a100; "NVIDIA GeForce RTX 4090" is rtx-4090.
 */
#ifndef BELAY_JOB_GPU_H
#define BELAY_JOB_GPU_H

#include <stdbool.h>
#include <stdint.h>

#define GPU_MODEL_MAX 32 /* including its NUL: lower-case letters, digits, '-' and '.' */

struct gpu_kind {
    char model[GPU_MODEL_MAX]; /* "" = unknown; in a job: any */
    int64_t memory_mib;        /* 0 = unknown; in a job: any */
};

/* The short name of a model as a vendor, a provider or a user writes it: without the vendor, the
 * slot and the memory. "" if it has none. */
void gpu_model(const char *name, char out[GPU_MODEL_MAX]);
/* The memory in a vendor's name, "...-40GB"; 0 if it has none. */
int64_t gpu_model_mib(const char *name);
/* The name of a GPU slice (NVIDIA's MIG: "1g.10gb", "1c.3g.40gb", "1g.10gb+me") in lower case, with
 * '.' for '+', so that it can name a resource of a node. False if it is not a slice. */
bool gpu_slice(const char *name, char out[GPU_MODEL_MAX]);
/* Whether AMD makes the model (mi300x); all others count as NVIDIA's. */
bool gpu_is_amd(const char *model);
/* Whether a GPU satisfies a request: its model is the requested one, or begins with it and a dash
 * ("rtx" matches rtx-4090), and it has enough memory. Unknown values do not match. */
bool gpu_serves(const struct gpu_kind *is, const struct gpu_kind *asked);

#endif
