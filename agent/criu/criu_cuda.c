/* SPDX-License-Identifier: Apache-2.0
 *
 * The few functions of CUDA's driver interface that are used are declared here as NVIDIA's
 * reference has them (CUDA Driver API), so that the library is needed neither to build nor to run.
 */
#include "agent/criu/criu_cuda.h"

#include "agent/gpu/gpus.h"
#include "base/mem.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct criu_cuda {
    void *handle;
    int (*init)(unsigned flags);
    int (*count)(int *ret_n);
    int (*device)(int *ret_device, int i);
    int (*context)(void **ret_context, unsigned flags, int device);
    int (*current)(void *context);
    int (*alloc)(uint64_t *ret_address, size_t n);
    int (*put)(uint64_t address, const void *from, size_t n);
    int (*get)(void *to, uint64_t address, size_t n);
    int n;
    struct {
        void *context;
        uint64_t address;
    } gpus[GPUS_MAX];
};

/* The first is searched for in the loader's directories; containers and providers install the
 * library in the others. */
static const char *const paths[] = {
    "libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1"};

/* dlsym returns a pointer to data; POSIX guarantees that it can be converted to a function
 * pointer. */
static bool find(struct criu_cuda *c, void *ret_function, const char *name)
{
    void *symbol = dlsym(c->handle, name);
    memcpy(ret_function, &symbol, sizeof(symbol));
    return symbol != NULL;
}

static int load(struct criu_cuda *c, struct err *e)
{
    for (size_t i = 0; i < sizeof(paths) / sizeof(*paths) && !c->handle; i++)
        c->handle = dlopen(paths[i], RTLD_NOW | RTLD_LOCAL);
    if (!c->handle)
        return err_set(e, ERR_UNSUPPORTED, "the driver's library cannot be loaded: %s", dlerror());
    bool all = find(c, &c->init, "cuInit") && find(c, &c->count, "cuDeviceGetCount") &&
               find(c, &c->device, "cuDeviceGet") && find(c, &c->context, "cuCtxCreate_v2") &&
               find(c, &c->current, "cuCtxSetCurrent") && find(c, &c->alloc, "cuMemAlloc_v2") &&
               find(c, &c->put, "cuMemcpyHtoD_v2") && find(c, &c->get, "cuMemcpyDtoH_v2");
    return all ? 0 : err_set(e, ERR_UNSUPPORTED, "the driver's library lacks a function");
}

static int fill(struct criu_cuda *c, int i, const char *text, size_t n, struct err *e)
{
    int device = 0, rc = c->device(&device, i);
    if (!rc)
        rc = c->context(&c->gpus[i].context, 0, device);
    if (!rc)
        rc = c->alloc(&c->gpus[i].address, n);
    if (!rc)
        rc = c->put(c->gpus[i].address, text, n);
    return rc ? err_set(e, ERR_IO, "GPU %d cannot be used: CUDA error %d", i, rc) : 0;
}

static int fill_all(struct criu_cuda *c, const char *text, size_t n, struct err *e)
{
    int rc = load(c, e), cuda = rc ? 0 : c->init(0), count = 0;
    if (!rc && !cuda)
        cuda = c->count(&count);
    if (!rc && (cuda || count < 1))
        rc = err_set(e, ERR_UNSUPPORTED, "no GPU can be used: CUDA error %d", cuda);
    for (int i = 0; !rc && i < count && i < GPUS_MAX; i++, c->n = i)
        rc = fill(c, i, text, n, e);
    return rc;
}

struct criu_cuda *criu_cuda_open(const char *text, size_t n, struct err *e)
{
    struct criu_cuda *c = mem_alloc(sizeof(*c));
    if (fill_all(c, text, n, e) == 0)
        return c;
    criu_cuda_close(c);
    return NULL;
}

int criu_cuda_read(struct criu_cuda *c, char *ret_text, size_t n, struct err *e)
{
    char *text = mem_alloc(n);
    int rc = 0;
    for (int i = 0; !rc && i < c->n; i++) {
        int cuda = c->current(c->gpus[i].context);
        if (!cuda)
            cuda = c->get(i == 0 ? ret_text : text, c->gpus[i].address, n);
        if (cuda)
            rc = err_set(e, ERR_IO, "GPU %d cannot be read: CUDA error %d", i, cuda);
        else if (i > 0 && memcmp(text, ret_text, n) != 0)
            rc = err_set(e, ERR_CORRUPT, "GPU %d came back with other memory than it had", i);
    }
    free(text);
    return rc;
}

void criu_cuda_close(struct criu_cuda *c)
{
    if (c && c->handle)
        dlclose(c->handle); /* the end of the process frees the memory of the GPUs */
    free(c);
}
