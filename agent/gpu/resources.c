/* SPDX-License-Identifier: Apache-2.0
 *
 * A machine does not grow while it runs, so the agent measures it at its start. Only the load is
 * read repeatedly.
 */
#include "agent/gpu/resources.h"

#include "base/str.h"
#include <glob.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

static int64_t count_cpus(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof(set), &set) == 0)
        return CPU_COUNT(&set);
    long n = sysconf(_SC_NPROCESSORS_ONLN); /* for more than CPU_SETSIZE cpus */
    return n > 0 ? n : 1;
}

static int64_t read_memory_mib(void)
{
    FILE *f = fopen("/proc/meminfo", "re");
    char line[256];
    long long kib = 0;
    while (f && fgets(line, sizeof(line), f))
        if (sscanf(line, "MemTotal: %lld kB", &kib) == 1)
            break;
    if (f)
        fclose(f);
    return kib >= 1024 ? kib / 1024 : 1;
}

static int64_t count_gpus(void)
{
    glob_t found = {0};
    int64_t n =
        glob("/dev/nvidia[0-9]*", GLOB_NOSORT, NULL, &found) == 0 ? (int64_t)found.gl_pathc : 0;
    globfree(&found);
    return n;
}

/* The line "Model: \t\t NVIDIA A100-SXM4-40GB". */
static struct gpu_kind read_kind(const char *path)
{
    struct gpu_kind k = {.memory_mib = 0};
    FILE *f = fopen(path, "re");
    char line[256];
    while (f && fgets(line, sizeof(line), f)) {
        if (!str_starts(line, "Model:"))
            continue;
        line[strcspn(line, "\n")] = '\0';
        const char *name = line + strlen("Model:");
        name += strspn(name, " \t");
        gpu_model(name, k.model);
        k.memory_mib = gpu_model_mib(name);
        break;
    }
    if (f)
        fclose(f);
    return k;
}

/* The model of the node's GPUs by the driver's files, and the smallest memory; empty if the models
 * differ. */
static struct gpu_kind gpu_kind(void)
{
    struct gpu_kind all = {.memory_mib = 0};
    glob_t found = {0};
    glob("/proc/driver/nvidia/gpus/*/information", 0, NULL, &found);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        struct gpu_kind k = read_kind(found.gl_pathv[i]);
        if (i > 0 && !str_eq(k.model, all.model))
            k = (struct gpu_kind){.memory_mib = 0};
        else if (i > 0 && k.memory_mib > all.memory_mib)
            k.memory_mib = all.memory_mib;
        all = k;
        if (!k.model[0])
            break;
    }
    globfree(&found);
    return all;
}

struct node_resources resources_measure(void)
{
    struct node_resources r = {.cpus = count_cpus(),
        .memory_mib = read_memory_mib(),
        .gpus = count_gpus(),
        .gpu = gpu_kind()};
    struct utsname u;
    if (uname(&u) == 0)
        STR_COPY(r.arch, u.machine);
    return r;
}

int64_t resources_load_milli(void)
{
    double load = 0;
    return getloadavg(&load, 1) == 1 ? (int64_t)(load * 1000) : 0;
}
