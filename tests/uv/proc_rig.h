/* SPDX-License-Identifier: Apache-2.0
 *
 * Process groups in each mode, whose tasks report their pids.
 */
#ifndef BELAY_TESTS_UV_PROC_RIG_H
#define BELAY_TESTS_UV_PROC_RIG_H

#include "base/uv/proc.h"
#include "tests/uv/rig.h"

#define TIMEOUT_MS 10000
#define PIDS_MAX 64

extern const char *const mode_names[];

/* A group, and a pipe on which every process started by a task reports its pid. */
struct fixture {
    enum proc_mode mode;
    struct proc_group *g;
    int report[2];
};

/* False, with a word, if this machine does not have the mode. */
bool group_open(struct fixture *f, enum proc_mode mode, const struct proc_limits *limits);
void group_close(struct fixture *f);
void group_kill_all(struct fixture *f, pid_t keep_pid);
/* Reads n pids from the pipe; fails after a while. */
void group_read_pids(const struct fixture *f, pid_t *pids, size_t n);

typedef void (*body_fn)(const struct fixture *f);
/* Runs body in a child in the group, in a session of its own. */
pid_t task_start(const struct fixture *f, body_fn body);
void task_report(const struct fixture *f);
void task_report_and_wait(const struct fixture *f);

void assert_gone(const pid_t *pids, size_t n);
void assert_no_children(void);

#endif
