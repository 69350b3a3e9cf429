/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by tests of agent sync: a node, a test-driven agent on it, and its responses.
 */
#ifndef BELAY_TESTS_SCHEDULER_AGENT_SYNC_RIG_H
#define BELAY_TESTS_SCHEDULER_AGENT_SYNC_RIG_H

#include "tests/scheduler/lab.h"

#define SHOWN_MAX 2000
#define KEY "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

/* The tested parts of a response. */
struct answer {
    size_t n_unneeded;
    int64_t unneeded; /* the first */
    int n, rc;
    struct err e;
    int64_t rev;
    size_t n_attempts, n_scripts, bytes;
    struct {
        int64_t job, attempt, sequence, secrets; /* version; 0: none */
    } prefetch;
    struct shown {
        int64_t job, attempt, acked;
        enum wire_want want;
        enum wire_end reason;
        bool script, needs_secrets;
        int64_t secrets; /* version; 0: none */
        int64_t every_ms, saves_asked, limit_ms;
        bool gang_ended;
    } shown[SHOWN_MAX];
};

/* A test-driven agent. */
struct agent {
    struct lab *lab;
    int64_t node, incarnation, seq;
    struct wire_notice notice;
    struct wire_attempt_status attempts[WIRE_ATTEMPTS_MAX];
    size_t n_attempts;
    struct wire_kept kept[2];
    size_t n_kept;
    struct wire_prefetched prefetched;
    const char *disk_full; /* NULL: there is space */
};

/* Free with free(). */
struct agent *agent_of(struct lab *lab, int64_t node);

struct wire_attempt_status status_of(int64_t job, int64_t attempt, enum wire_phase phase);

/* Adds this attempt to the next status; the pointer is valid as long as the agent. */
struct wire_attempt_status *agent_add_attempt(
    struct agent *a, int64_t job, int64_t attempt, enum wire_phase phase);

/* One tick; a response now or later is written to *ret_answer, which is cleared before. */
void agent_send(struct agent *a, int64_t have_rev, int64_t wait_ms, struct answer *ret_answer);

/* A node, and an agent on it. */
struct fixture {
    struct lab *lab;
    struct agent *agent;
    struct answer answer, other;
};

int agent_sync_setup(void **state);
int agent_sync_teardown(void **state);
#define AGENT_SYNC_TEST(f) cmocka_unit_test_setup_teardown(f, agent_sync_setup, agent_sync_teardown)

struct job *job_of(struct fixture *f, int64_t id);
/* From disk. */
struct attempt_row stored_attempt(struct fixture *f, int64_t job_id, int64_t attempt);

/* Job 1 runs on the node, for agent and belayd. */
void run_one_job(struct fixture *f);

#endif
