/* SPDX-License-Identifier: Apache-2.0
 *
 * struct agent, shared by agent.c (construction, joining, the run), agent_start.c (checks and
 * set-up before anything runs), agent_tasks.c (its tasks: what belayd wants and what is reported of
 * them) and agent_ending.c (why and how it ends).
 *
 * agent_run has one on its stack. It owns everything that it points to except the loop and the
 * configuration, which are borrowed. Only the loop's thread uses it.
 */
#ifndef BELAY_AGENT_AGENT_PRIVATE_H
#define BELAY_AGENT_AGENT_PRIVATE_H

#include "agent/channels.h"
#include "agent/criu/criu.h"
#include "agent/disk.h"
#include "agent/enroll.h"
#include "agent/gpu/gpus.h"
#include "agent/gpu/telemetry.h"
#include "agent/node_fault.h"
#include "agent/shutdown.h"
#include "agent/task/kept.h"
#include "agent/task/prefetch.h"
#include "agent/task/record.h"
#include "agent/task/store_credentials.h"
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
    struct store_credentials *store_credentials;
    struct task_common common;
    struct list tasks;
    struct gpus gpus;
    struct channels channels;
    struct telemetry *telemetry;
    struct timer identity_wait, orphan, exit_check, prune_timer, shutdown_check, closing;
    struct timer last_save; /* while tasks work on under a notice */
    struct runner *runner;
    struct disk disk;         /* of the agent's directory */
    struct node_fault fault;  /* as reported to belayd */
    struct shutdown shutdown; /* whether the machine is shutting down */
    bool is_checking;      /* after SIGTERM, until it is known whether the machine is going away */
    bool is_init_answered; /* the init has answered */
    bool is_polled;        /* the metadata service has */
    bool is_closing, is_shutdown;
    struct mono closing_since, all_ended_since; /* MONO_NONE = not yet */
    struct kept unneeded[WIRE_KEPT_MAX];        /* as last reported by belayd */
    size_t n_unneeded;
    struct prefetch prefetch;
    bool joining, ending, orphaned, pruning;
    int64_t incarnation;
    int exit_code;
};

/* ---- agent_start.c: before the loop runs; they block ---- */

/* Opens and locks the state directory. ERR_CONFLICT: another agent uses it. */
int agent_open_dirs(struct agent *a, struct err *e);
/* Blocks what jobs must not reach. Called before any job can start; jobs adopted from an earlier
 * agent already ran under the same rules. */
int agent_guard_node(struct agent *a, struct err *e);
/* Measures what the node has and can do. Fills enroll.resources, gpus, criu and the configuration's
 * features and resources. */
void agent_measure(struct agent *a);

/* ---- agent_tasks.c ---- */

void agent_tasks_init(struct agent *a);
/* starts removing kept directories that are of no more use */
void agent_tasks_begin(struct agent *a);
int agent_adopt_tasks(struct agent *a, struct err *e); /* tasks of the previous agent */
/* NULL if there is none */
struct task *agent_find_task(const struct agent *a, int64_t job, int64_t attempt);
size_t agent_count_tasks(const struct agent *a);
void agent_acknowledge_reclaim(struct agent *a); /* to the provider, if no task is left */

/* For struct task_common, struct uplink and struct telemetry_options; ctx is the agent. */
void agent_changed(void *ctx);
void agent_changed_later(void *ctx);
void agent_task_gone(void *ctx, struct task *t);
void agent_task_ended(void *ctx);
void agent_disk_refused(void *ctx, bool of_records, const char *why);
void agent_node_faulty(void *ctx, const char *why);
void agent_order_saves(void *ctx);
int agent_admit(void *ctx, const struct task *t, struct task_state *s, struct err *e);
void agent_fill_status(void *ctx, struct wire_status *s);
void agent_desired(void *ctx, const struct wire_desired *d);
void agent_list_tasks(void *ctx, struct telemetry *telemetry);

/* ---- agent_notice.c ---- */

void agent_notice_init(struct agent *a);
/* Has tasks that work on under a notice save and stop now. */
void agent_notice_stop_tasks(struct agent *a);

/* ---- agent_ending.c ---- */

void agent_ending_init(struct agent *a);
void agent_ending_begin(struct agent *a); /* starts the check for belayd's silence */
void agent_ending_stop(struct agent *a);
/* The machine goes away: the agent ends once all tasks are saved and reported, or out of time. */
void agent_start_closing(struct agent *a);

bool agent_refused(void *ctx, const struct err *e); /* struct uplink */
void agent_polled_notices(void *ctx);               /* struct notice_reader_options: on_polled */
void agent_signal(void *ctx, int signum);           /* uv_signals */

/* ---- agent_notice.c ---- */

void agent_notice(void *ctx, const struct notice *n); /* struct notice_reader_options */

#endif
