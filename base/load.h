/* SPDX-License-Identifier: Apache-2.0
 *
 * Load of a task or a GPU over a stretch of time: sums, and maxima of levels (memory, temperature).
 * Adding two stretches of the same task, in any order, gives the load of both together. So a
 * minute, ten minutes and an hour use the same struct. Pure.
 *
 * Values that the machine does not report are 0. Shares are taken of the time for which a value was
 * reported, so counting a stretch twice changes no share.
 */
#ifndef BELAY_BASE_LOAD_H
#define BELAY_BASE_LOAD_H

#include <stdint.h>

/* The stretches for which loads are kept: a minute, ten minutes, an hour. */
#define LOAD_SPANS 3
#define LOAD_SPANS_MS                                                                              \
    {                                                                                              \
        60000, 600000, 3600000                                                                     \
    }

/* The processes of one attempt on one node. Members named node_* cover everything on the node. */
struct task_load {
    int64_t ms;         /* observed time */
    int64_t cpu_ms;     /* on all CPUs */
    int64_t busiest_ms; /* of the busiest thread of each sample */
    int64_t blocked_ms; /* some process waited for a disk */
    int64_t stall_ms;   /* some process waited for memory */
    /* time the program reports to have waited for its other ranks; added when a wait ends, so it
     * may include time before this stretch; 0 if it reports none */
    int64_t waited_ms;
    int64_t memory_bytes, swap_bytes; /* maximum */
    int64_t read_bytes, write_bytes;  /* from and to disks */
    /* pages that had to be read from a disk; of these, pages that had been in memory before */
    int64_t faults, refaults;
    /* of the task if it has a network namespace of its own, else of the node */
    int64_t net_in_bytes, net_out_bytes;
    int64_t net_is_nodes; /* 1: the network counters are the node's */
    int64_t link_bytes_s; /* of the node's fastest link; 0 = unknown */
    int64_t node_cpus, node_cpu_ms, node_iowait_ms;
    int64_t node_swapped_bytes; /* swapped in and out */
};

/* A GPU or a GPU slice, while one attempt (or none) had it. */
struct gpu_load {
    int64_t ms;
    /* the part of ms with a utilisation reading; slices report none */
    int64_t known_ms;
    int64_t busy_ms;                          /* the part of known_ms in which it was busy */
    int64_t memory_bytes, memory_total_bytes; /* maximum in use; total */
    int64_t energy_mj;
    int64_t power_limit_mw;
    int64_t temperature_c; /* maximum */
    /* share of the highest clock, in thousandths, times the time; 0 = unknown */
    int64_t clock_permille_ms;
    /* throttled by heat, by power, by the board for any reason */
    int64_t thermal_ms, power_ms, slowed_ms;
    int64_t ecc_corrected, ecc_uncorrected; /* errors since the previous sample */
    int64_t processes;                      /* maximum */
};

void task_load_add(struct task_load *sum, const struct task_load *l);
void gpu_load_add(struct gpu_load *sum, const struct gpu_load *l);

/* part / whole in percent, rounded to the nearest; 0 if whole is 0. */
int64_t load_percent(int64_t part, int64_t whole);

#endif
