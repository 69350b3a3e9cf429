/* SPDX-License-Identifier: Apache-2.0 */
#include "base/load.h"

#include <stddef.h>

/* Sums saturate here: the values come from agents and are not trusted. */
#define SUM_MAX (INT64_C(1) << 60)

enum kind { KIND_SUM, KIND_MAX };
struct field {
    size_t offset;
    enum kind kind;
};

#define SUM(s, m)                                                                                  \
    {                                                                                              \
        offsetof(struct s, m), KIND_SUM                                                            \
    }
#define MOST(s, m)                                                                                 \
    {                                                                                              \
        offsetof(struct s, m), KIND_MAX                                                            \
    }

static const struct field task_fields[] = {
    SUM(task_load, ms),
    SUM(task_load, cpu_ms),
    SUM(task_load, busiest_ms),
    SUM(task_load, blocked_ms),
    SUM(task_load, stall_ms),
    SUM(task_load, waited_ms),
    MOST(task_load, memory_bytes),
    MOST(task_load, swap_bytes),
    SUM(task_load, read_bytes),
    SUM(task_load, write_bytes),
    SUM(task_load, faults),
    SUM(task_load, refaults),
    SUM(task_load, net_in_bytes),
    SUM(task_load, net_out_bytes),
    MOST(task_load, net_is_nodes),
    MOST(task_load, link_bytes_s),
    MOST(task_load, node_cpus),
    SUM(task_load, node_cpu_ms),
    SUM(task_load, node_iowait_ms),
    SUM(task_load, node_swapped_bytes),
};
_Static_assert(
    sizeof(task_fields) / sizeof(task_fields[0]) == sizeof(struct task_load) / sizeof(int64_t),
    "every member");

static const struct field gpu_fields[] = {
    SUM(gpu_load, ms),
    SUM(gpu_load, known_ms),
    SUM(gpu_load, busy_ms),
    MOST(gpu_load, memory_bytes),
    MOST(gpu_load, memory_total_bytes),
    SUM(gpu_load, energy_mj),
    MOST(gpu_load, power_limit_mw),
    MOST(gpu_load, temperature_c),
    SUM(gpu_load, clock_permille_ms),
    SUM(gpu_load, thermal_ms),
    SUM(gpu_load, power_ms),
    SUM(gpu_load, slowed_ms),
    SUM(gpu_load, ecc_corrected),
    SUM(gpu_load, ecc_uncorrected),
    MOST(gpu_load, processes),
};
_Static_assert(
    sizeof(gpu_fields) / sizeof(gpu_fields[0]) == sizeof(struct gpu_load) / sizeof(int64_t),
    "every member");

static void add(const struct field *fields, size_t n, void *sum, const void *l)
{
    for (size_t i = 0; i < n; i++) {
        int64_t *to = (int64_t *)((char *)sum + fields[i].offset);
        int64_t value = *(const int64_t *)((const char *)l + fields[i].offset);
        if (fields[i].kind == KIND_SUM)
            *to = *to > SUM_MAX - value ? SUM_MAX : *to + value;
        else if (*to < value)
            *to = value;
    }
}

void task_load_add(struct task_load *sum, const struct task_load *l)
{
    add(task_fields, sizeof(task_fields) / sizeof(task_fields[0]), sum, l);
}

void gpu_load_add(struct gpu_load *sum, const struct gpu_load *l)
{
    add(gpu_fields, sizeof(gpu_fields) / sizeof(gpu_fields[0]), sum, l);
}

int64_t load_percent(int64_t part, int64_t whole)
{
    return whole > 0 ? (int64_t)(((__extension__(__int128) part) * 100 + whole / 2) / whole) : 0;
}
