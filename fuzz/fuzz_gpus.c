/* SPDX-License-Identifier: Apache-2.0
 *
 * The listing of a machine's GPUs as printed by the vendor's program: for any input device names
 * fit in a comma-separated list, and no device is allotted twice. Also that program's output about
 * drivers and memory.
 */
#include "agent/criu/criu_gpu.h"
#include "agent/gpu/gpus.h"
#include "job/gpu.h"
#include "base/mem.h"
#include "fuzz/check.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *listing = mem_strndup((const char *)data, size), slice[GPU_MODEL_MAX], out[GPUS_TEXT_MAX];
    struct gpus *g = mem_alloc(sizeof *g);
    const struct counts none = {0};
    struct counts all;
    struct err e = {0};
    gpus_read(g, listing);
    assert(g->n <= GPUS_DEVICES_MAX && gpus_whole(g) <= GPUS_MAX);
    for (size_t i = 0; i < g->n; i++) {
        assert(g->v[i].id[0] && !strpbrk(g->v[i].id, ", \n=*"));
        assert(!g->v[i].slice[0] || gpu_slice(g->v[i].slice, slice));
    }
    gpus_count_slices(g, &none, &all);
    int rc = gpus_allot(g, &(struct gpus_ask){.all = true}, NULL, 0, out, &e);
    if (rc)
        check_error(rc, &e);
    struct criu_gpu about;
    if (criu_gpu_parse(listing, &about))
        assert(about.driver > 0 && about.used_mib >= 0);
    int64_t mib = gpus_memory_mib(listing);
    assert(mib >= 0 && mib % 1024 == 0);
    free(g);
    free(listing);
    return 0;
}
