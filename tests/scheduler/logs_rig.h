/* SPDX-License-Identifier: Apache-2.0
 *
 * The logs of one job, over a database in memory and in virtual time.
 */
#ifndef BELAY_TESTS_SCHEDULER_LOGS_RIG_H
#define BELAY_TESTS_SCHEDULER_LOGS_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/vtimers.h"
#include "scheduler/logs/logs.h"

#define JOB 1042

struct logs_rig {
    char dir[64];
    struct vtimers vt;
    uv_loop_t loop;
    struct db *db;
    struct db_reader *reader;
    struct logs logs;
    int n_over, n_cuts;
    char why[128];
};

int logs_rig_setup(void **state);
int logs_rig_teardown(void **state);

/* ---- rows from the database ---- */

struct attempt_row logs_rig_row(int64_t attempt, enum attempt_state state);
void logs_rig_put_row(struct logs_rig *w, struct attempt_row a);
void logs_rig_put(struct logs_rig *w, int64_t attempt, enum attempt_state state);

/* ---- agents and readers ---- */

/* Returns the size that the agent is told. */
int64_t logs_rig_append(struct logs_rig *w, int64_t attempt, int64_t offset, const char *text);

struct piece {
    char text[2048];
    int64_t next;
    bool complete;
};

struct piece logs_rig_read_at(struct logs_rig *w, int64_t offset, size_t max);
void logs_rig_check(struct logs_rig *w, const char *expected, bool complete);

#endif
