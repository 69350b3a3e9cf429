/* SPDX-License-Identifier: Apache-2.0
 *
 * struct agent, for agent.c (its run: what it is made of, joining), agent_start.c (what is found
 * and set right before anything runs), agent_tasks.c (its tasks, and what of them is told and
 * wanted) and agent_ending.c (why and how it ends).
 *
 * One is on the stack of agent_run and owns all that it points to, but for the loop and the
 * configuration, which are borrowed. All of it is the loop's thread's.
 */
#ifndef BELAY_AGENT_AGENT_PRIVATE_H
#define BELAY_AGENT_AGENT_PRIVATE_H

#include "agent/channels.h"
#include "agent/criu/criu.h"
#include "agent/enroll.h"
#include "agent/gpu/gpus.h"
#include "agent/gpu/telemetry.h"
#include "agent/shutdown.h"
#include "agent/task/kept.h"
#include "agent/task/record.h"
#include "agent/task/storage.h"
#include "agent/task/task.h"
#include "agent/uplink.h"
#include "base/list.h"
#include "base/uv/loop.h"
#include "base/uv/runner.h"
#include "cloud/notice.h"

struct agent {
    uv_loop_t *loop;
    struct config *config;
    char *tasks_dir, *kept_dir, *workdirs_dir;
    int lock_fd;
    struct identity id;
    struct criu criu;
    struct timers *timers;
    struct http_client *http;
    struct uv_signals *signals;
    struct prng prng;
    struct peer peer;
    struct enroll enroll;
    struct uplink link;
    struct notice_reader *notices;
    struct notice notice;
    struct storage *storage;
    struct task_room room;
    struct list tasks;
    struct gpus gpus;
    struct channels channels;
    struct telemetry *telemetry;
    struct timer identity_wait, orphan, exit_check, sweep, looking, closing;
    struct runner *runner;
    struct shutdown shutdown; /* the question */
    bool is_looking;          /* after SIGTERM, until it is known whether the machine goes */
    bool is_asked;            /* the init has answered */
    bool is_looked;           /* the metadata service has */
    bool is_closing, is_shutdown;
    struct mono closing_since, all_ended_since; /* MONO_NONE: not yet */
    struct kept unneeded[WIRE_KEPT_MAX];        /* belayd's last word */
    size_t n_unneeded;
    bool joining, ending, orphaned, sweeping;
    int64_t incarnation;
    int exit_code;
};

/* ---- agent_start.c: before the loop runs; they block ---- */

/* The state directory, locked: one agent a directory (ERR_CONFLICT). */
int agent_open_dirs(struct agent *a, struct err *e);
/* What jobs may not reach. Before any can start; those of the agent before have run under the
 * same. */
int agent_guard_node(struct agent *a, struct err *e);
/* What the node has and can do, into enroll.resources, gpus, criu and the configuration's features
 * and resources. */
void agent_measure(struct agent *a);

/* ---- agent_tasks.c ---- */

void agent_tasks_init(struct agent *a);
void agent_tasks_begin(struct agent *a); /* from now on what is kept and of no use is removed */
int agent_adopt_tasks(struct agent *a, struct err *e); /* those of the agent before */
struct task *agent_find_task(const struct agent *a, int64_t job, int64_t attempt); /* or NULL */
size_t agent_count_tasks(const struct agent *a);
void agent_acknowledge_reclaim(struct agent *a); /* to the provider, if no task is left */

/* For struct task_room, struct uplink and struct telemetry_options; ctx is the agent. */
void agent_changed(void *ctx);
void agent_changed_later(void *ctx);
void agent_task_gone(void *ctx, struct task *t);
void agent_task_ended(void *ctx);
void agent_order_saves(void *ctx);
int agent_admit(void *ctx, const struct task *t, struct task_state *s, struct err *e);
void agent_fill_status(void *ctx, struct wire_status *s);
void agent_desired(void *ctx, const struct wire_desired *d);
void agent_list_tasks(void *ctx, struct telemetry *telemetry);

/* ---- agent_ending.c ---- */

void agent_ending_init(struct agent *a);
void agent_ending_begin(struct agent *a); /* from now on silence of belayd's is noticed */
void agent_ending_stop(struct agent *a);

bool agent_refused(void *ctx, const struct err *e);   /* struct uplink */
void agent_notice(void *ctx, const struct notice *n); /* struct notice_reader_options */
void agent_looked(void *ctx);                         /* likewise: on_looked */
void agent_signal(void *ctx, int signum);             /* uv_signals */

#endif
