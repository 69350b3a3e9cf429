/* SPDX-License-Identifier: Apache-2.0
 *
 * /dev/nvidiaN is character device 195:N (the driver's README, "Device Nodes"). GPUs are numbered
 * in the order of the bus, minors in the order in which the driver found the devices;
 * /proc/driver/nvidia/gpus/BUS/information maps one to the other.
 */
#include "agent/gpu/gpu_devices.h"

#include "agent/gpu/gpus.h"
#include "base/mem.h"
#include "base/str.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NVIDIA_MAJOR 195

/* Reads the line "Device Minor: \t 0"; returns fallback if there is none. */
static unsigned read_minor(const char *path, unsigned fallback)
{
    FILE *f = fopen(path, "re");
    char line[256];
    unsigned minor = fallback;
    while (f && fgets(line, sizeof(line), f))
        if (sscanf(line, "Device Minor: %u", &minor) == 1)
            break;
    if (f)
        fclose(f);
    return minor;
}

/* Minors by GPU number; without the driver's files, the number is taken as the minor. */
static size_t list_minors(const char *root, unsigned out[GPUS_MAX])
{
    char *pattern = mem_printf("%s/proc/driver/nvidia/gpus/*/information", root);
    glob_t found = {0};
    glob(pattern, 0, NULL, &found); /* sorted: in the order of the bus */
    size_t n = found.gl_pathc < GPUS_MAX ? found.gl_pathc : GPUS_MAX;
    for (size_t i = 0; i < n; i++)
        out[i] = read_minor(found.gl_pathv[i], (unsigned)i);
    globfree(&found);
    free(pattern);
    return n;
}

static bool owns(const char *own, const unsigned minors[GPUS_MAX], size_t n, unsigned minor)
{
    char id[16];
    size_t number = minor;
    for (size_t i = 0; i < n; i++)
        if (minors[i] == minor)
            number = i;
    snprintf(id, sizeof(id), "%zu", number);
    return gpus_text_has(own, id);
}

size_t gpu_devices_denied(const char *root, const char *own, struct proc_device *out, size_t max)
{
    unsigned minors[GPUS_MAX], minor;
    glob_t found = {0};
    size_t n = 0;
    if (own[strspn(own, "0123456789,")])
        return 0;
    size_t n_minors = list_minors(root, minors);
    char *pattern = mem_printf("%s/dev/nvidia[0-9]*", root);
    glob(pattern, 0, NULL, &found);
    for (size_t i = 0; i < found.gl_pathc && n < max; i++) {
        const char *slash = strrchr(found.gl_pathv[i], '/');
        char rest;
        if (sscanf(slash, "/nvidia%u%c", &minor, &rest) == 1 && !owns(own, minors, n_minors, minor))
            out[n++] = (struct proc_device){.major = NVIDIA_MAJOR, .minor = minor};
    }
    globfree(&found);
    free(pattern);
    return n;
}
