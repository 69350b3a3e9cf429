/* SPDX-License-Identifier: Apache-2.0
 *
 * A fake of NVIDIA's management library, whose GPUs follow a script. It has the functions that the
 * agent uses, with the signatures of NVIDIA's reference, and is found by the library path.
 *
 * The script is the file BELAY_TEST_NVML. It is read again at each count of the GPUs, and has one
 * line per entry:
 *
 *     gpu uuid=GPU-a busy=97 memory=40 total=80 power=400 limit=700 temperature=60 clock=1900
 *         clock_max=1980 reasons=0x40 ecc_corrected=1 ecc_uncorrected=0 processes=1
 *     slice uuid=MIG-a memory=5 total=10 processes=1
 *     xid uuid=GPU-a number=79 no=1
 *     hang
 *
 * The entry for a GPU is one line; memory is in GiB, power in watts. A slice belongs to the GPU
 * above it, which is then in MIG mode. "hang" blocks the call while the script contains it. An Xid
 * is an event that is returned once, if its no is above all earlier ones. A GPU with fails=15 fails
 * all calls with this code. It does not support what its line does not name.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEVICES_MAX 64
#define GIB (1ULL << 30)

#define OK 0
#define INVALID_ARGUMENT 2
#define NOT_SUPPORTED 3
#define NOT_FOUND 6
#define INSUFFICIENT_SIZE 7
#define TIMEOUT 10
#define EVENT_XID 8

struct nvml_device {
    char line[512];
    int is_slice;
    unsigned of; /* of a slice: index of its GPU */
};

static struct nvml_device devices[DEVICES_MAX];
static unsigned n_devices;
static int hangs;
static struct nvml_device xid; /* the last line of an Xid */
static unsigned long long xid_returned;

static void read_script(void)
{
    const char *path = getenv("BELAY_TEST_NVML");
    FILE *f = path ? fopen(path, "r") : NULL;
    char line[512];
    unsigned gpu = 0;
    n_devices = 0;
    hangs = 0;
    while (f && fgets(line, sizeof line, f) && n_devices < DEVICES_MAX) {
        struct nvml_device *d = &devices[n_devices];
        hangs = hangs || strncmp(line, "hang", 4) == 0;
        if (strncmp(line, "xid ", 4) == 0)
            memcpy(xid.line, line, sizeof line);
        if (strncmp(line, "gpu ", 4) != 0 && strncmp(line, "slice ", 6) != 0)
            continue;
        memcpy(d->line, line, sizeof line);
        d->is_slice = line[0] == 's';
        gpu = d->is_slice ? gpu : n_devices;
        d->of = gpu;
        n_devices++;
    }
    if (f)
        fclose(f);
}

static const char *find(const struct nvml_device *d, const char *key)
{
    char word[64];
    snprintf(word, sizeof word, " %s=", key);
    const char *at = strstr(d->line, word);
    return at ? at + strlen(word) : NULL;
}

static int number(const struct nvml_device *d, const char *key, unsigned long long *ret)
{
    const char *at = find(d, key);
    if (!at)
        return NOT_SUPPORTED;
    *ret = strtoull(at, NULL, 0);
    return OK;
}

static int small(const struct nvml_device *d, const char *key, unsigned factor, unsigned *ret)
{
    unsigned long long v;
    int rc = number(d, key, &v);
    if (rc == OK)
        *ret = (unsigned)v * factor;
    return rc;
}

int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlDeviceGetCount_v2(unsigned *n);
int nvmlDeviceGetHandleByIndex_v2(unsigned i, struct nvml_device **ret);
int nvmlDeviceGetUUID(struct nvml_device *d, char *text, unsigned size);
int nvmlDeviceGetUtilizationRates(struct nvml_device *d, unsigned ret[2]);
int nvmlDeviceGetMemoryInfo(struct nvml_device *d, unsigned long long ret[3]);
int nvmlDeviceGetPowerUsage(struct nvml_device *d, unsigned *mw);
int nvmlDeviceGetEnforcedPowerLimit(struct nvml_device *d, unsigned *mw);
int nvmlDeviceGetTemperature(struct nvml_device *d, unsigned sensor, unsigned *c);
int nvmlDeviceGetClockInfo(struct nvml_device *d, unsigned type, unsigned *mhz);
int nvmlDeviceGetMaxClockInfo(struct nvml_device *d, unsigned type, unsigned *mhz);
int nvmlDeviceGetCurrentClocksThrottleReasons(struct nvml_device *d, unsigned long long *bits);
int nvmlDeviceGetTotalEccErrors(
    struct nvml_device *d, unsigned type, unsigned counter, unsigned long long *n);
int nvmlDeviceGetComputeRunningProcesses_v3(struct nvml_device *d, unsigned *n, void *infos);
int nvmlDeviceGetMigMode(struct nvml_device *d, unsigned *current, unsigned *pending);
int nvmlDeviceGetMaxMigDeviceCount(struct nvml_device *d, unsigned *n);
int nvmlDeviceGetMigDeviceHandleByIndex(
    struct nvml_device *d, unsigned i, struct nvml_device **ret);
struct event {
    struct nvml_device *device;
    unsigned long long type, data;
    unsigned gpu_instance, compute_instance;
};
int nvmlEventSetCreate(void **ret);
int nvmlEventSetFree(void *set);
int nvmlDeviceRegisterEvents(struct nvml_device *d, unsigned long long types, void *set);
int nvmlEventSetWait_v2(void *set, struct event *ret, unsigned timeout_ms);

int nvmlInit_v2(void)
{
    return OK;
}

int nvmlShutdown(void)
{
    return OK;
}

int nvmlDeviceGetCount_v2(unsigned *n)
{
    for (read_script(); hangs; read_script())
        poll(NULL, 0, 20);
    *n = 0;
    for (unsigned i = 0; i < n_devices; i++)
        *n += !devices[i].is_slice;
    return OK;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned i, struct nvml_device **ret)
{
    for (unsigned k = 0; k < n_devices; k++)
        if (!devices[k].is_slice && i-- == 0) {
            *ret = &devices[k];
            return OK;
        }
    return INVALID_ARGUMENT;
}

int nvmlDeviceGetUUID(struct nvml_device *d, char *text, unsigned size)
{
    const char *at = find(d, "uuid");
    size_t n = at ? strcspn(at, " \n") : 0;
    unsigned long long code;
    if (number(d, "fails", &code) == OK)
        return (int)code;
    if (n == 0)
        return NOT_SUPPORTED;
    if (n >= size)
        return INSUFFICIENT_SIZE;
    memcpy(text, at, n);
    text[n] = '\0';
    return OK;
}

int nvmlDeviceGetUtilizationRates(struct nvml_device *d, unsigned ret[2])
{
    ret[1] = 0;
    return small(d, "busy", 1, &ret[0]);
}

int nvmlDeviceGetMemoryInfo(struct nvml_device *d, unsigned long long ret[3])
{
    unsigned long long used = 0, total = 0;
    if (number(d, "memory", &used) != OK || number(d, "total", &total) != OK)
        return NOT_SUPPORTED;
    ret[0] = total * GIB;
    ret[1] = (total - used) * GIB;
    ret[2] = used * GIB;
    return OK;
}

int nvmlDeviceGetPowerUsage(struct nvml_device *d, unsigned *mw)
{
    return small(d, "power", 1000, mw);
}

int nvmlDeviceGetEnforcedPowerLimit(struct nvml_device *d, unsigned *mw)
{
    return small(d, "limit", 1000, mw);
}

int nvmlDeviceGetTemperature(struct nvml_device *d, unsigned sensor, unsigned *c)
{
    return sensor == 0 ? small(d, "temperature", 1, c) : INVALID_ARGUMENT;
}

int nvmlDeviceGetClockInfo(struct nvml_device *d, unsigned type, unsigned *mhz)
{
    return type == 1 ? small(d, "clock", 1, mhz) : INVALID_ARGUMENT;
}

int nvmlDeviceGetMaxClockInfo(struct nvml_device *d, unsigned type, unsigned *mhz)
{
    return type == 1 ? small(d, "clock_max", 1, mhz) : INVALID_ARGUMENT;
}

int nvmlDeviceGetCurrentClocksThrottleReasons(struct nvml_device *d, unsigned long long *bits)
{
    return number(d, "reasons", bits);
}

int nvmlDeviceGetTotalEccErrors(
    struct nvml_device *d, unsigned type, unsigned counter, unsigned long long *n)
{
    return counter == 0 && type < 2 ? number(d, type == 0 ? "ecc_corrected" : "ecc_uncorrected", n)
                                    : INVALID_ARGUMENT;
}

int nvmlDeviceGetComputeRunningProcesses_v3(struct nvml_device *d, unsigned *n, void *infos)
{
    unsigned size = *n;
    int rc = small(d, "processes", 1, n);
    if (rc != OK)
        return rc;
    if (infos)
        return INVALID_ARGUMENT; /* the format is unknown here */
    return *n > size ? INSUFFICIENT_SIZE : OK;
}

static unsigned count_slices(const struct nvml_device *d)
{
    unsigned n = 0;
    for (unsigned k = 0; k < n_devices; k++)
        n += devices[k].is_slice && &devices[devices[k].of] == d;
    return n;
}

int nvmlDeviceGetMigMode(struct nvml_device *d, unsigned *current, unsigned *pending)
{
    if (d->is_slice)
        return NOT_SUPPORTED;
    *current = *pending = count_slices(d) > 0;
    return OK;
}

int nvmlDeviceGetMaxMigDeviceCount(struct nvml_device *d, unsigned *n)
{
    *n = d->is_slice ? 0 : 7;
    return OK;
}

int nvmlDeviceGetMigDeviceHandleByIndex(struct nvml_device *d, unsigned i, struct nvml_device **ret)
{
    for (unsigned k = 0; k < n_devices; k++)
        if (devices[k].is_slice && &devices[devices[k].of] == d && i-- == 0) {
            *ret = &devices[k];
            return OK;
        }
    return NOT_FOUND;
}

int nvmlEventSetCreate(void **ret)
{
    *ret = &xid;
    return OK;
}

int nvmlEventSetFree(void *set)
{
    return set == &xid ? OK : INVALID_ARGUMENT;
}

int nvmlDeviceRegisterEvents(struct nvml_device *d, unsigned long long types, void *set)
{
    return d->is_slice || types != EVENT_XID || set != &xid ? INVALID_ARGUMENT : OK;
}

int nvmlEventSetWait_v2(void *set, struct event *ret, unsigned timeout_ms)
{
    unsigned long long no = 0, code = 0;
    if (set != &xid || timeout_ms != 0)
        return INVALID_ARGUMENT;
    if (number(&xid, "no", &no) != OK || no <= xid_returned || number(&xid, "number", &code) != OK)
        return TIMEOUT;
    xid_returned = no;
    *ret = (struct event){.type = EVENT_XID, .data = code};
    for (unsigned k = 0; k < n_devices; k++) {
        const char *uuid = find(&devices[k], "uuid"), *of = find(&xid, "uuid");
        size_t n = uuid ? strcspn(uuid, " \n") : 0;
        if (n > 0 && of && n == strcspn(of, " \n") && memcmp(uuid, of, n) == 0)
            ret->device = &devices[k];
    }
    return OK;
}
