/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/criu/criu_gpu.h"

#include "agent/criu/criu.h"
#include "agent/gpu/gpus.h"
#include "agent/gpu/kernel_text.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LISTING_MAX 16384
#define TEXT_MAX 65536
#define ACTION_MS 20000 /* for cuda-checkpoint, which copies gigabytes back to the device */
#define MARGIN_MIB 256  /* memory that is left to the node itself */

/* ---- the driver ---- */

static bool parse_line(const char *line, struct criu_gpu *g)
{
    long driver, used;
    int n = 0;
    char mig[16];
    if (sscanf(line, "%6ld%*[0-9.], %15[^,],%n", &driver, mig, &n) < 2 || n == 0 || driver <= 0)
        return false;
    g->driver = g->driver == 0 || driver < g->driver ? driver : g->driver;
    g->has_mig = g->has_mig || str_eq(mig, "Enabled");
    /* "[N/A]": the GPU uses the node's memory */
    if (sscanf(line + n, "%9ld", &used) == 1 && used > 0)
        g->used_mib += used;
    return true;
}

bool criu_gpu_parse(const char *csv, struct criu_gpu *ret_gpu)
{
    struct criu_gpu g = {0};
    bool found = false;
    for (const char *p = csv; p && *p; p = strchr(p, '\n'), p = p ? p + 1 : NULL)
        found = parse_line(p, &g) || found;
    *ret_gpu = g;
    return found;
}

int criu_gpu_query(const char *gpus, struct criu_gpu *ret_gpu, struct err *e)
{
    bool all = !*gpus || str_eq(gpus, GPUS_ALL);
    char program[256], *listing = mem_alloc(LISTING_MAX);
    const char *const argv[] = {program, "--query-gpu=driver_version,mig.mode.current,memory.used",
        "--format=csv,noheader,nounits", all ? NULL : "-i", gpus, NULL};
    int rc = criu_find_program("nvidia-smi", program, sizeof(program))
                 ? criu_call(argv, "nvidia-smi", NULL, CRIU_PROBE_MS, listing, LISTING_MAX, e)
                 : err_set(e, ERR_UNSUPPORTED, "nvidia-smi is not installed");
    if (!rc && !criu_gpu_parse(listing, ret_gpu))
        rc = err_set(e, ERR_UNSUPPORTED, "nvidia-smi does not say which driver there is");
    free(listing);
    return rc;
}

const char *criu_gpu_lacks(const struct criu_gpu *gpu)
{
    if (gpu->has_mig)
        return "GPUs in MIG mode cannot be checkpointed";
    if (gpu->driver < CRIU_GPU_DRIVER_MIN)
        return "the NVIDIA driver is older than 570";
    return NULL;
}

/* ---- memory ---- */

static bool read_file(const char *path, struct buf *text)
{
    struct err ignored;
    return fs_read(path, TEXT_MAX, text, &ignored) == 0;
}

/* Free memory below the limit of the cgroup, in MiB; INT64_MAX: no limit. */
static int64_t left_in_group(const char *memory_file)
{
    static const struct {
        const char *used, *limit;
    } versions[] = {
        {"memory.current", "memory.max"}, {"memory.usage_in_bytes", "memory.limit_in_bytes"}};
    struct buf used = {0}, limit = {0};
    int64_t n_used = 0, n_limit = 0, left = INT64_MAX;
    for (size_t i = 0; i < sizeof(versions) / sizeof(*versions); i++) {
        if (!str_ends(memory_file, versions[i].used))
            continue;
        size_t n = strlen(memory_file) - strlen(versions[i].used);
        char *path = mem_printf("%.*s%s", (int)n, memory_file, versions[i].limit);
        if (read_file(memory_file, &used) && read_file(path, &limit)) {
            n_used = kernel_number(buf_str(&used));
            n_limit = kernel_number(buf_str(&limit)); /* "max": not a number */
        }
        free(path);
    }
    if (n_limit > 0 && n_used >= 0)
        left = n_limit > n_used ? (n_limit - n_used) >> 20 : 0;
    buf_deinit(&used);
    buf_deinit(&limit);
    return left;
}

static int64_t available_mib(const char *memory_file)
{
    struct buf text = {0};
    int64_t kib =
        read_file("/proc/meminfo", &text) ? kernel_value(buf_str(&text), "MemAvailable:") : -1;
    int64_t node = kib < 0 ? INT64_MAX : kib / 1024 - MARGIN_MIB,
            group = left_in_group(memory_file);
    buf_deinit(&text);
    return node < group ? node : group;
}

int criu_gpu_check_memory(const char *gpus, const char *memory_file, struct err *e)
{
    struct criu_gpu g;
    struct err ignored;
    if (criu_gpu_query(gpus, &g, &ignored))
        return 0;
    int64_t left = available_mib(memory_file);
    if (g.used_mib <= left)
        return 0;
    return err_set(e, ERR_NO_SPACE,
        "the job's GPUs hold %lld MiB, which a dump copies into its node's memory first, and %lld "
        "MiB are left for it there: ask for more (--mem)",
        (long long)g.used_mib, (long long)(left > 0 ? left : 0));
}

/* ---- after a dump that failed ---- */

static bool state_is(const char *cuda_checkpoint, const char *pid, const char *state)
{
    const char *const argv[] = {cuda_checkpoint, "--get-state", "--pid", pid, NULL};
    char said[64] = "";
    struct err ignored;
    return criu_call(argv, "cuda-checkpoint", NULL, ACTION_MS, said, sizeof(said), &ignored) == 0 &&
           str_starts(said, state);
}

static void act(const char *cuda_checkpoint, const char *pid, const char *action)
{
    const char *const argv[] = {cuda_checkpoint, "--action", action, "--pid", pid, NULL};
    struct err ignored; /* the result is queried afterwards */
    criu_call(argv, "cuda-checkpoint", NULL, ACTION_MS, NULL, 0, &ignored);
}

/* A process without CUDA has no state. */
static int release(const char *cuda_checkpoint, const char *pid, struct err *e)
{
    bool suspended = state_is(cuda_checkpoint, pid, "checkpointed");
    bool failed = !suspended && state_is(cuda_checkpoint, pid, "failed");
    if (suspended)
        act(cuda_checkpoint, pid, "restore");
    if (suspended || state_is(cuda_checkpoint, pid, "locked")) {
        act(cuda_checkpoint, pid, "unlock");
        failed = !state_is(cuda_checkpoint, pid, "running");
    }
    return failed ? err_set(e, ERR_CORRUPT,
                        "process %s did not get its GPU back from a dump that failed", pid)
                  : 0;
}

int criu_gpu_release(const char *cuda_checkpoint, struct err *e)
{
    DIR *dir = opendir("/proc");
    int rc = 0;
    for (struct dirent *d; !rc && dir && (d = readdir(dir));)
        if (isdigit((unsigned char)d->d_name[0]) && atol(d->d_name) >= CRIU_ROOT_PID)
            rc = release(cuda_checkpoint, d->d_name, e);
    if (dir)
        closedir(dir);
    return rc;
}
