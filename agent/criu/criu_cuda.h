/* SPDX-License-Identifier: Apache-2.0
 *
 * A text in the memory of every NVIDIA GPU, by the driver's library, which is loaded at run time.
 * Blocking, one thread.
 */
#ifndef BELAY_AGENT_CRIU_CRIU_CUDA_H
#define BELAY_AGENT_CRIU_CRIU_CUDA_H

#include "base/err.h"
#include <stddef.h>

struct criu_cuda;

/* Writes n bytes to each GPU. NULL and *e: there is no library or no GPU, or one does not take it.
 * Free with criu_cuda_close. */
struct criu_cuda *criu_cuda_open(const char *text, size_t n, struct err *e);
/* Reads them back from each. ERR_CORRUPT: GPUs disagree. n: as given to open. */
int criu_cuda_read(struct criu_cuda *c, char *ret_text, size_t n, struct err *e);
void criu_cuda_close(struct criu_cuda *c); /* NULL is fine */

#endif
