/* SPDX-License-Identifier: Apache-2.0
 *
 * What a task, or a GPU, did in a stretch of time: sums, and the most of what is a level. Two
 * stretches of the same one added make that of both, in any order, so a minute, ten of them and an
 * hour are the same thing. Pure.
 *
 * What the machine does not tell is 0, and a share is taken of the time for which it was told. So a
 * stretch that is counted twice changes no share.
 */
#ifndef BELAY_BASE_LOAD_H
#define BELAY_BASE_LOAD_H

#include <stdint.h>

/* The processes of one attempt on one node. What stands as the node's is of all that runs there. */
struct task_load {
    int64_t ms;         /* so long it was looked at */
    int64_t cpu_ms;     /* of all cpus */
    int64_t busiest_ms; /* of the thread that used most, in each look */
    int64_t blocked_ms; /* in which some of it waited for a disk */
    int64_t stall_ms;   /* in which some of it waited for memory */
    /* that it waited for its other ranks, as it says: what is over, so also of before; 0: it says
     * nothing */
    int64_t waited_ms;
    int64_t memory_bytes, swap_bytes; /* the most there was */
    int64_t read_bytes, write_bytes;  /* of disks */
    /* pages that had to come from a disk; of these, that had been in memory before */
    int64_t faults, refaults;
    /* its own if it has a network of its own, else the node's */
    int64_t net_in_bytes, net_out_bytes;
    int64_t net_is_nodes; /* 1: the node's */
    int64_t link_bytes_s; /* of the node's fastest link; 0: not known */
    int64_t node_cpus, node_cpu_ms, node_iowait_ms;
    int64_t node_swapped_bytes; /* in and out */
};

/* A GPU or a slice of one, while one attempt had it, or none. */
struct gpu_load {
    int64_t ms;
    /* of them, in which it told how busy it was: slices do not */
    int64_t known_ms;
    int64_t busy_ms;                          /* of those */
    int64_t memory_bytes, memory_total_bytes; /* the most that was held; of */
    int64_t energy_mj;
    int64_t power_limit_mw;
    int64_t temperature_c; /* the highest */
    /* of its highest clock, times the time; 0: not known */
    int64_t clock_permille_ms;
    /* held back by heat, by power, by the board whatever for */
    int64_t thermal_ms, power_ms, slowed_ms;
    int64_t ecc_corrected, ecc_uncorrected; /* errors since the look before */
    int64_t processes;                      /* the most */
};

void task_load_add(struct task_load *sum, const struct task_load *l);
void gpu_load_add(struct gpu_load *sum, const struct gpu_load *l);

/* In hundredths of the whole, rounded to the nearest; of nothing 0. */
int64_t load_percent(int64_t part, int64_t whole);

#endif
