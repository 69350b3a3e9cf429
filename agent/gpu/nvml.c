/* SPDX-License-Identifier: Apache-2.0
 *
 * The part of NVML's interface that is used is declared here, after NVIDIA's NVML API Reference
 * Guide, so that the library is needed neither to build nor to run. A function that the library
 * lacks, or a GPU does not support, leaves its values unknown.
 *
 * Invariant: only the thread calls functions of the library.
 */
#include "agent/gpu/nvml.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CLOSE_MS 2000 /* time for the thread to end */

/* ---- the interface ---- */

struct nvml_device; /* what an nvmlDevice_t points to; opaque */

#define NVML_OK 0
#define NVML_INSUFFICIENT_SIZE 7
#define NVML_GPU_IS_LOST 15
#define NVML_RESET_REQUIRED 16
#define NVML_EVENT_XID 0x8ULL
#define NVML_TEMPERATURE_GPU 0
#define NVML_CLOCK_SM 1
#define NVML_ECC_CORRECTED 0
#define NVML_ECC_UNCORRECTED 1
#define NVML_ECC_VOLATILE 0 /* since the driver was loaded */
#define NVML_MIG_ENABLED 1

/* Reasons for throttled clocks. */
#define REASON_SW_POWER_CAP 0x4ULL
#define REASON_HW_SLOWDOWN 0x8ULL
#define REASON_SW_THERMAL 0x20ULL
#define REASON_HW_THERMAL 0x40ULL
#define REASON_HW_POWER_BRAKE 0x80ULL

struct utilization {
    unsigned gpu, memory; /* percent */
};
struct memory {
    unsigned long long total, free, used;
};

struct event {
    struct nvml_device *device;
    unsigned long long type, data; /* data of an Xid: its number */
    unsigned gpu_instance, compute_instance;
};
struct event_set; /* what an nvmlEventSet_t points to; opaque */

struct library {
    void *handle;
    int (*init)(void);
    int (*shutdown)(void);
    int (*count)(unsigned *n);
    int (*by_index)(unsigned i, struct nvml_device **ret);
    int (*uuid)(struct nvml_device *d, char *text, unsigned size);
    int (*utilization)(struct nvml_device *d, struct utilization *u);
    int (*memory)(struct nvml_device *d, struct memory *m);
    int (*power)(struct nvml_device *d, unsigned *mw);
    int (*power_limit)(struct nvml_device *d, unsigned *mw);
    int (*temperature)(struct nvml_device *d, unsigned sensor, unsigned *c);
    int (*clock)(struct nvml_device *d, unsigned type, unsigned *mhz);
    int (*clock_max)(struct nvml_device *d, unsigned type, unsigned *mhz);
    int (*reasons)(struct nvml_device *d, unsigned long long *bits);
    int (*ecc)(struct nvml_device *d, unsigned type, unsigned counter, unsigned long long *n);
    int (*processes)(struct nvml_device *d, unsigned *n, void *infos);
    int (*mig)(struct nvml_device *d, unsigned *current, unsigned *pending);
    int (*slices)(struct nvml_device *d, unsigned *n);
    int (*slice)(struct nvml_device *d, unsigned i, struct nvml_device **ret);
    int (*set_create)(struct event_set **ret);
    int (*set_add)(struct nvml_device *d, unsigned long long types, struct event_set *set);
    int (*set_wait)(struct event_set *set, struct event *ret, unsigned timeout_ms);
    int (*set_free)(struct event_set *set);
    struct event_set *events; /* of all GPUs; may be NULL */
};

/* The first is found by the loader's search path; the others are where containers and providers put
 * it. */
static const char *const paths[] = {"libnvidia-ml.so.1",
    "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1", "/usr/lib/aarch64-linux-gnu/libnvidia-ml.so.1",
    "/usr/lib64/libnvidia-ml.so.1", "/usr/local/nvidia/lib64/libnvidia-ml.so.1",
    "/usr/lib/wsl/lib/libnvidia-ml.so.1"};

/* dlsym returns a data pointer; POSIX guarantees that it can be converted to a function pointer. */
static void find(struct library *l, void *ret_function, const char *name)
{
    void *symbol = dlsym(l->handle, name);
    memcpy(ret_function, &symbol, sizeof(symbol));
}

static bool load(struct library *l)
{
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]) && !l->handle; i++)
        l->handle = dlopen(paths[i], RTLD_NOW | RTLD_LOCAL);
    if (!l->handle)
        return false;
    find(l, &l->init, "nvmlInit_v2");
    find(l, &l->shutdown, "nvmlShutdown");
    find(l, &l->count, "nvmlDeviceGetCount_v2");
    find(l, &l->by_index, "nvmlDeviceGetHandleByIndex_v2");
    find(l, &l->uuid, "nvmlDeviceGetUUID");
    find(l, &l->utilization, "nvmlDeviceGetUtilizationRates");
    find(l, &l->memory, "nvmlDeviceGetMemoryInfo");
    find(l, &l->power, "nvmlDeviceGetPowerUsage");
    find(l, &l->power_limit, "nvmlDeviceGetEnforcedPowerLimit");
    find(l, &l->temperature, "nvmlDeviceGetTemperature");
    find(l, &l->clock, "nvmlDeviceGetClockInfo");
    find(l, &l->clock_max, "nvmlDeviceGetMaxClockInfo");
    find(l, &l->reasons, "nvmlDeviceGetCurrentClocksThrottleReasons");
    find(l, &l->ecc, "nvmlDeviceGetTotalEccErrors");
    find(l, &l->processes, "nvmlDeviceGetComputeRunningProcesses_v3");
    find(l, &l->mig, "nvmlDeviceGetMigMode");
    find(l, &l->slices, "nvmlDeviceGetMaxMigDeviceCount");
    find(l, &l->slice, "nvmlDeviceGetMigDeviceHandleByIndex");
    find(l, &l->set_create, "nvmlEventSetCreate");
    find(l, &l->set_add, "nvmlDeviceRegisterEvents");
    find(l, &l->set_wait, "nvmlEventSetWait_v2");
    find(l, &l->set_free, "nvmlEventSetFree");
    return l->init && l->shutdown && l->count && l->by_index && l->uuid && l->init() == NVML_OK;
}

/* ---- sampling ---- */

static void read_clocks(const struct library *l, struct nvml_device *d, struct nvml_sample *k)
{
    unsigned now = 0, most = 0;
    unsigned long long why = 0;
    if (l->clock && l->clock_max && l->clock(d, NVML_CLOCK_SM, &now) == NVML_OK &&
        l->clock_max(d, NVML_CLOCK_SM, &most) == NVML_OK && most > 0)
        k->clock_permille = now < most ? (int64_t)now * 1000 / most : 1000;
    if (l->reasons && l->reasons(d, &why) == NVML_OK) {
        k->thermal = why & (REASON_SW_THERMAL | REASON_HW_THERMAL);
        k->power = why & (REASON_SW_POWER_CAP | REASON_HW_POWER_BRAKE);
        k->slowed = why & REASON_HW_SLOWDOWN;
    }
}

static void read_errors(const struct library *l, struct nvml_device *d, struct nvml_sample *k)
{
    unsigned long long n;
    if (l->ecc && l->ecc(d, NVML_ECC_CORRECTED, NVML_ECC_VOLATILE, &n) == NVML_OK)
        k->ecc_corrected = n < INT32_MAX ? (int64_t)n : INT32_MAX;
    if (l->ecc && l->ecc(d, NVML_ECC_UNCORRECTED, NVML_ECC_VOLATILE, &n) == NVML_OK)
        k->ecc_uncorrected = n < INT32_MAX ? (int64_t)n : INT32_MAX;
}

static void read_device(const struct library *l, struct nvml_device *d, struct nvml_sample *k)
{
    struct utilization u;
    struct memory m;
    unsigned n = 0;
    k->has_busy = !k->is_slice && l->utilization && l->utilization(d, &u) == NVML_OK;
    if (k->has_busy)
        k->busy_percent = u.gpu < 100 ? (int64_t)u.gpu : 100;
    if (l->memory && l->memory(d, &m) == NVML_OK && m.total <= INT64_MAX / 2 && m.used <= m.total) {
        k->memory_bytes = (int64_t)m.used;
        k->memory_total_bytes = (int64_t)m.total;
    }
    /* With no space for entries only their number is returned, whatever their format. */
    int rc = l->processes ? l->processes(d, &n, NULL) : -1;
    k->processes = rc == NVML_OK || rc == NVML_INSUFFICIENT_SIZE ? (int64_t)n : 0;
    if (k->is_slice)
        return;
    if (l->power && l->power(d, &n) == NVML_OK)
        k->power_mw = (int64_t)n;
    if (l->power_limit && l->power_limit(d, &n) == NVML_OK)
        k->power_limit_mw = (int64_t)n;
    if (l->temperature && l->temperature(d, NVML_TEMPERATURE_GPU, &n) == NVML_OK)
        k->temperature_c = n < 1000 ? (int64_t)n : 0;
    read_clocks(l, d, k);
    read_errors(l, d, k);
}

static bool sample_device(const struct library *l, struct nvml_device *d, unsigned index,
    bool is_slice, struct nvml_sample *k)
{
    *k = (struct nvml_sample){.index = index, .is_slice = is_slice};
    if (l->uuid(d, k->id, sizeof(k->id)) != NVML_OK)
        return false;
    k->id[sizeof(k->id) - 1] = '\0';
    read_device(l, d, k);
    return true;
}

static size_t sample_slices(const struct library *l, struct nvml_device *d, unsigned index,
    struct nvml_sample *v, size_t max)
{
    unsigned mode = 0, pending, most = 0;
    struct nvml_device *s;
    size_t n = 0;
    if (!l->mig || !l->slices || !l->slice || l->mig(d, &mode, &pending) != NVML_OK ||
        mode != NVML_MIG_ENABLED || l->slices(d, &most) != NVML_OK)
        return 0;
    for (unsigned i = 0; i < most && i < NVML_SAMPLES_MAX && n < max; i++)
        if (l->slice(d, i, &s) == NVML_OK)
            n += sample_device(l, s, index, true, &v[n]);
    return n;
}

static size_t sample_all(const struct library *l, struct nvml_sample *v)
{
    unsigned count = 0;
    struct nvml_device *d;
    size_t n = 0;
    if (l->count(&count) != NVML_OK)
        return 0;
    for (unsigned i = 0; i < count && i < GPUS_MAX && n < NVML_SAMPLES_MAX; i++) {
        if (l->by_index(i, &d) != NVML_OK || !sample_device(l, d, i, false, &v[n]))
            continue;
        n++;
        n += sample_slices(l, d, i, v + n, NVML_SAMPLES_MAX - n);
    }
    return n;
}

/* ---- faults ---- */

/* Faults of the hardware or of the driver, after NVIDIA's catalogue of Xid errors. */
static const struct {
    unsigned xid;
    const char *what;
} xids[] = {{48, "a memory error that cannot be corrected"}, {62, "its controller has stopped"},
    {64, "a faulty row of its memory cannot be replaced"}, {74, "an error of NVLink"},
    {79, "it has fallen off the bus"}, {95, "a memory error that could not be contained"},
    {119, "its system processor does not answer"}, {120, "an error of its system processor"},
    {140, "memory errors that were not recovered"}, {143, "it could not be initialised"}};

/* What is known of each GPU from earlier samples. */
struct known {
    char id[GPUS_ID_MAX];
    int64_t uncorrected;
    bool is_lost;
};
struct faults {
    struct known known[GPUS_MAX];
    char text[NVML_FAULT_MAX]; /* found in this sample; "" = none */
};

static void open_events(struct library *l)
{
    unsigned count = 0;
    struct nvml_device *d;
    if (!l->set_create || !l->set_add || !l->set_wait || !l->set_free ||
        l->count(&count) != NVML_OK || l->set_create(&l->events) != NVML_OK) {
        l->events = NULL;
        return;
    }
    for (unsigned i = 0; i < count && i < GPUS_MAX; i++)
        if (l->by_index(i, &d) == NVML_OK)
            l->set_add(d, NVML_EVENT_XID, l->events);
}

static void look_for_xids(const struct library *l, struct faults *f)
{
    struct event ev;
    char id[GPUS_ID_MAX] = "";
    /* at most as many as a storm of them has in a moment */
    for (int k = 0; l->events && k < 256 && l->set_wait(l->events, &ev, 0) == NVML_OK; k++)
        for (size_t i = 0; i < sizeof(xids) / sizeof(xids[0]); i++) {
            if (ev.type != NVML_EVENT_XID || ev.data != xids[i].xid)
                continue;
            if (!ev.device || l->uuid(ev.device, id, sizeof(id)) != NVML_OK)
                STR_COPY(id, "unknown");
            snprintf(f->text, sizeof(f->text), "GPU %s: Xid %u, %s", id, xids[i].xid, xids[i].what);
        }
}

static void look_at_errors(const struct nvml_sample *k, struct faults *f)
{
    struct known *g = &f->known[k->index];
    bool is_same = str_eq(g->id, k->id);
    if (is_same && k->ecc_uncorrected > g->uncorrected)
        snprintf(f->text, sizeof(f->text), "GPU %lld (%s): %lld memory errors were not corrected",
            (long long)k->index, k->id, (long long)(k->ecc_uncorrected - g->uncorrected));
    STR_COPY(g->id, k->id);
    g->uncorrected = k->ecc_uncorrected;
    g->is_lost = false;
}

/* rc: what a call about the GPU returned. */
static void look_for_loss(unsigned index, int rc, struct faults *f)
{
    struct known *g = &f->known[index];
    if ((rc != NVML_GPU_IS_LOST && rc != NVML_RESET_REQUIRED) || g->is_lost)
        return;
    g->is_lost = true;
    snprintf(f->text, sizeof(f->text), "GPU %u%s%s%s: %s", index, g->id[0] ? " (" : "", g->id,
        g->id[0] ? ")" : "",
        rc == NVML_GPU_IS_LOST ? "the driver has lost it"
                               : "the driver says that it must be reset");
}

static void look_for_faults(
    const struct library *l, const struct nvml_sample *v, size_t n, struct faults *f)
{
    unsigned count = 0;
    struct nvml_device *d;
    char id[GPUS_ID_MAX];
    f->text[0] = '\0';
    for (size_t i = 0; i < n; i++)
        if (!v[i].is_slice)
            look_at_errors(&v[i], f);
    for (unsigned i = 0; l->count(&count) == NVML_OK && i < count && i < GPUS_MAX; i++) {
        int rc = l->by_index(i, &d);
        look_for_loss(i, rc != NVML_OK ? rc : l->uuid(d, id, sizeof(id)), f);
    }
    look_for_xids(l, f);
}

/* ---- the thread ---- */

struct nvml {
    pthread_t thread;
    pthread_mutex_t mutex; /* guards the members below */
    pthread_cond_t changed;
    bool is_requested, is_sampling, is_fresh, is_stopped;
    /* monotonic: start of the last sampling, end of that in samples; CPU time of the thread */
    int64_t began_ms, at_ms, cpu_ns;
    size_t n;
    struct nvml_sample samples[NVML_SAMPLES_MAX];
    char fault[NVML_FAULT_MAX]; /* not taken yet; "" = none */
};

static int64_t clock_ns(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static bool await_request(struct nvml *n)
{
    pthread_mutex_lock(&n->mutex);
    while (!n->is_requested && !n->is_stopped)
        pthread_cond_wait(&n->changed, &n->mutex);
    bool continues = !n->is_stopped;
    n->is_requested = false;
    n->is_sampling = continues;
    n->began_ms = clock_ns(CLOCK_MONOTONIC) / 1000000;
    pthread_mutex_unlock(&n->mutex);
    return continues;
}

static void publish(
    struct nvml *n, const struct nvml_sample *v, size_t count, const char *fault, int64_t at_ms)
{
    pthread_mutex_lock(&n->mutex);
    if (fault[0])
        STR_COPY(n->fault, fault);
    memcpy(n->samples, v, count * sizeof(*v));
    n->n = count;
    n->at_ms = at_ms;
    n->is_fresh = true;
    n->is_sampling = false;
    n->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    pthread_mutex_unlock(&n->mutex);
}

static void *run(void *arg)
{
    struct nvml *n = arg;
    struct library l = {0};
    struct nvml_sample *v = mem_array(NVML_SAMPLES_MAX, sizeof(*v));
    struct faults *f = mem_alloc(sizeof(*f));
    bool loaded = false, tried = false;
    while (await_request(n)) {
        if (!tried && (loaded = load(&l)))
            open_events(&l);
        tried = true;
        size_t count = loaded ? sample_all(&l, v) : 0;
        if (loaded)
            look_for_faults(&l, v, count, f);
        publish(n, v, count, f->text, clock_ns(CLOCK_MONOTONIC) / 1000000);
    }
    if (l.events)
        l.set_free(l.events);
    if (loaded)
        l.shutdown();
    free(f);
    free(v);
    return NULL;
}

struct nvml *nvml_create(void)
{
    struct nvml *n = mem_alloc(sizeof(*n));
    sigset_t all, old;
    pthread_mutex_init(&n->mutex, NULL);
    pthread_cond_init(&n->changed, NULL);
    sigfillset(&all); /* signals are handled by the loop */
    pthread_sigmask(SIG_SETMASK, &all, &old);
    if (pthread_create(&n->thread, NULL, run, n) != 0)
        mem_out_of_memory();
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return n;
}

void nvml_request(struct nvml *n)
{
    pthread_mutex_lock(&n->mutex);
    n->is_requested = n->is_requested || !n->is_sampling;
    pthread_cond_signal(&n->changed);
    pthread_mutex_unlock(&n->mutex);
}

bool nvml_get_samples(struct nvml *n, struct nvml_sample *v, size_t *ret_n, int64_t *ret_at_ms)
{
    pthread_mutex_lock(&n->mutex);
    bool is_fresh = n->is_fresh;
    if (is_fresh) {
        memcpy(v, n->samples, n->n * sizeof(*v));
        *ret_n = n->n;
        *ret_at_ms = n->at_ms;
    }
    n->is_fresh = false;
    pthread_mutex_unlock(&n->mutex);
    return is_fresh;
}

bool nvml_get_fault(struct nvml *n, char ret_fault[NVML_FAULT_MAX])
{
    pthread_mutex_lock(&n->mutex);
    memcpy(ret_fault, n->fault, NVML_FAULT_MAX);
    n->fault[0] = '\0';
    pthread_mutex_unlock(&n->mutex);
    return ret_fault[0];
}

int64_t nvml_cpu_ns(struct nvml *n)
{
    pthread_mutex_lock(&n->mutex);
    int64_t ns = n->cpu_ns;
    pthread_mutex_unlock(&n->mutex);
    return ns;
}

bool nvml_is_stuck(struct nvml *n, int64_t now_ms)
{
    pthread_mutex_lock(&n->mutex);
    bool stuck = n->is_sampling && now_ms - n->began_ms > NVML_STUCK_MS;
    pthread_mutex_unlock(&n->mutex);
    return stuck;
}

void nvml_destroy(struct nvml *n)
{
    struct timespec until;
    if (!n)
        return;
    pthread_mutex_lock(&n->mutex);
    n->is_stopped = true;
    pthread_cond_signal(&n->changed);
    pthread_mutex_unlock(&n->mutex);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += CLOSE_MS / 1000;
    if (pthread_timedjoin_np(n->thread, NULL, &until) != 0) {
        log_warn("a call to the GPU driver hangs: its thread is abandoned");
        pthread_detach(n->thread); /* n is leaked with it */
        return;
    }
    pthread_cond_destroy(&n->changed);
    pthread_mutex_destroy(&n->mutex);
    free(n);
}
