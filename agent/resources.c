/* SPDX-License-Identifier: Apache-2.0
 *
 * Measured once at the start; a machine does not grow while it runs.
 */
#include "agent/resources.h"

#include "base/str.h"
#include <glob.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/utsname.h>
#include <unistd.h>

static int64_t count_cpus(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof(set), &set) == 0)
        return CPU_COUNT(&set);
    long n = sysconf(_SC_NPROCESSORS_ONLN); /* more than CPU_SETSIZE of them */
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
    int64_t n = glob("/dev/nvidia[0-9]*", GLOB_NOSORT, NULL, &found) == 0 ? (int64_t)found.gl_pathc : 0;
    globfree(&found);
    return n;
}

struct node_resources resources_measure(void)
{
    struct node_resources r = {.cpus = count_cpus(), .memory_mib = read_memory_mib(), .gpus = count_gpus()};
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
