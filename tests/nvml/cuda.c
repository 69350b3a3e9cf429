/* SPDX-License-Identifier: Apache-2.0
 *
 * A fake of CUDA's driver library, for tests of what an agent tries with GPUs
 * (agent/criu/criu_trial.h). It has one GPU, whose memory is the file /run/belay-task/text, so that
 * a test's own criu can read it.
 */
#include <stdint.h>
#include <stdio.h>

#define TEXT "/run/belay-task/text"
#define OK 0
#define INVALID_VALUE 1
#define NO_DEVICE 100

static int present(void)
{
    FILE *f = fopen("/usr/local/no-gpu", "r");
    if (f)
        fclose(f);
    return !f;
}

int cuInit(unsigned flags);
int cuInit(unsigned flags)
{
    return flags == 0 ? OK : INVALID_VALUE;
}

int cuDeviceGetCount(int *n);
int cuDeviceGetCount(int *n)
{
    *n = present();
    return *n ? OK : NO_DEVICE;
}

int cuDeviceGet(int *device, int i);
int cuDeviceGet(int *device, int i)
{
    *device = i;
    return OK;
}

int cuCtxCreate_v2(void **context, unsigned flags, int device);
int cuCtxCreate_v2(void **context, unsigned flags, int device)
{
    static int one;
    *context = &one;
    return flags == 0 && device == 0 ? OK : INVALID_VALUE;
}

int cuCtxSetCurrent(void *context);
int cuCtxSetCurrent(void *context)
{
    return context ? OK : INVALID_VALUE;
}

int cuMemAlloc_v2(uint64_t *address, size_t n);
int cuMemAlloc_v2(uint64_t *address, size_t n)
{
    *address = 0x7000;
    return n > 0 ? OK : INVALID_VALUE;
}

int cuMemcpyHtoD_v2(uint64_t address, const void *from, size_t n);
int cuMemcpyHtoD_v2(uint64_t address, const void *from, size_t n)
{
    FILE *f = address == 0x7000 ? fopen(TEXT, "w") : NULL;
    size_t done = f ? fwrite(from, 1, n, f) : 0;
    if (f)
        fclose(f);
    return done == n ? OK : INVALID_VALUE;
}

int cuMemcpyDtoH_v2(void *to, uint64_t address, size_t n);
int cuMemcpyDtoH_v2(void *to, uint64_t address, size_t n)
{
    FILE *f = address == 0x7000 ? fopen(TEXT, "r") : NULL;
    size_t done = f ? fread(to, 1, n, f) : 0;
    if (f)
        fclose(f);
    return done == n ? OK : INVALID_VALUE;
}
