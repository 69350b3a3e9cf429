/* SPDX-License-Identifier: Apache-2.0
 *
 * The deciding parts in virtual time: a real model, planner, tick and in-memory database; the test
 * controls commits. Agent sync and provisioning are added where a test needs them.
 */
#ifndef BELAY_TESTS_SCHEDULER_LAB_H
#define BELAY_TESTS_SCHEDULER_LAB_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/vtimers.h"
#include "scheduler/engine/agent_sync.h"
#include "scheduler/engine/provision.h"
#include "scheduler/engine/tick.h"

#define LAB_LEASE_MS 30000
#define LAB_SYNC_MS 10000

struct lab {
    struct vtimers vt;
    struct db *db; /* survives lab_restart */
    struct db_reader *reader;
    struct db_meta meta;
    struct model *model;
    struct planner *planner;
    struct tick *tick;
    struct agent_sync *agent_sync; /* NULL until lab_add_agent_sync */
    struct wire_secrets secrets;   /* of every attempt; borrowed texts */
    bool secrets_late;             /* they are not available yet */
    struct err secrets_why;        /* the reason, if any */
    const char *store_fault;       /* NULL: the store's owner is known */
    struct provision *provision;   /* NULL until the test sets it */
    struct commit_port port;
    bool by_hand; /* commits wait for lab_commit; else they succeed at once */
    const struct db_batch *under_way;
    int n_commits, n_effects, n_fatal;
    struct err fatal;
};

/* cmocka setup and teardown: *state is a struct lab with an empty reserved pool "base". */
int lab_setup(void **state);
int lab_teardown(void **state);

void lab_add_agent_sync(struct lab *lab);

/* Runs everything that is due now. */
void lab_tick(struct lab *lab);
void lab_advance(struct lab *lab, int64_t ms);

/* Finishes the commit in progress: 0 stores it; otherwise nothing is stored and the tick gets this
 * error. Then runs what is due. */
void lab_commit(struct lab *lab, int rc);

/* belayd is killed and restarted on the committed state. */
void lab_restart(struct lab *lab);

/* Result of a post. */
struct lab_reply {
    int n; /* number of calls */
    int rc;
    int64_t id;
    struct err e;
    int64_t at_commit; /* lab.n_commits at that time */
    struct lab *lab;
};
/* A tick_reply_fn; ctx: struct lab_reply. */
void lab_on_reply(void *ctx, const struct err *e, int64_t id);

/* Posts the submit of a job (with 1 cpu if cpus is 0); r may be NULL. */
void lab_submit(struct lab *lab, int32_t cpus, struct lab_reply *r);
/* The same with this script. */
void lab_submit_script(struct lab *lab, const char *script);
/* Joins a reserved node of pool base, in one tick with its commit. Returns its id. */
int64_t lab_join(struct lab *lab, const char *name, int32_t cpus);
void lab_post(struct lab *lab, struct event ev, struct lab_reply *r);

#endif
