/* SPDX-License-Identifier: Apache-2.0
 *
 * A small world for a real belay-agent: a belayd of a few lines (TLS, the agents' routes), a
 * metadata service, and the agent's process. Everything is waited for by running the loop until a
 * condition holds or a deadline passes.
 */
#ifndef BELAY_TESTS_AGENT_WORLD_H
#define BELAY_TESTS_AGENT_WORLD_H

#include "base/buf.h"
#include "base/uv/http_server.h"
#include "base/uv/loop.h"
#include "base/wire/wire.h"
#include "scheduler/ca.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
/* after the three above */
#include <cmocka.h>

#define WORLD_WANTS 24

/* What belayd wants of one attempt. Zeroed = nothing. */
struct want {
    struct wire_desired_attempt a; /* job 0 = a free place */
    bool reported;                 /* the agent has reported it, so the script is not sent again */
    struct buf output;
};

struct world {
    uv_loop_t loop;
    uv_timer_t tick; /* ends an iteration without other events */
    struct http_server *belayd, *imds;
    struct ca *ca;
    char dir[64]; /* scratch; with ca/, store/, node/ */
    char *server_url, *imds_url, *store_url;
    char *config; /* the agent's configuration file */
    char *log;    /* the agent's stderr */
    pid_t agent;  /* 0 = none */
    uid_t uid;    /* the agent's user */
    /* belayd */
    struct want wants[WORLD_WANTS];
    int64_t rev;
    struct http_exchange *parked; /* the sync that waits */
    struct wire_status status;    /* the newest; seq 0 = none yet */
    int n_status, n_joins, n_renews, n_refused;
    int64_t cert_life_ms, lease_ms;
    struct wire_prefetch prefetch; /* job 0 = nothing */
    int64_t ended;                 /* a job whose kept directories are not needed; 0 = none */
    /* the text of every attempt's working directory; NULL = 404. Its requests wait until
     * world_send_workdir. */
    const char *workdir;
    struct http_exchange *asked_workdir;
    bool refuse_join, deaf, deaf_to_output, disown;
    struct wire_join join; /* the last request */
    /* metadata service */
    struct buf action;  /* JSON; empty = 404 */
    int64_t served_at;  /* when the metadata service first gave the notice; wall ms */
    int64_t noticed_at; /* when belayd received the notice; mono ms, 0 = not yet */
    int n_imds;
    const char *awaited; /* by world_until_said */
};

/* Each test has its own world, as its cmocka state. extra: more lines of configuration. */
struct world *world_create(void **state, const char *extra_config);
int world_teardown(void **state); /* ends all tasks and the agent, also after a failure */
#define world_test(f) cmocka_unit_test_teardown(f, world_teardown)

void world_be_nobody(struct world *w); /* the next agent is not root: it has no cgroups */
/* installs this script on the agent's machine */
void world_systemctl(struct world *w, const char *script);
void world_start_agent(struct world *w);
void world_kill_agent(struct world *w, int signum); /* waits for its end */
/* waits until it ends by itself; returns its exit code */
int world_wait_agent(struct world *w);

/* Runs the loop until cond holds; fails the test (with the agent's log) after 20 s. */
typedef bool (*world_cond)(struct world *w, int64_t job);
void world_until(struct world *w, world_cond cond, int64_t job, const char *what);
void world_iterate(struct world *w); /* one iteration of the loop, of at most a few milliseconds */
/* waits for a line with this text in the agent's log */
void world_until_said(struct world *w, const char *text);

/* Wants attempt `attempt` of `job` with this script; the rest can be changed before world_go. */
struct wire_desired_attempt *world_want(
    struct world *w, int64_t job, int64_t attempt, const char *script);
struct want *world_find(struct world *w, int64_t job);
void world_forget(struct world *w, int64_t job);
void world_go(struct world *w); /* informs the agent that the wants have changed */

/* NULL if not in the last status */
const struct wire_attempt_status *world_reported(struct world *w, int64_t job);
/* forgets the statuses of this run of the agent */
void world_forget_reports(struct world *w);
const char *world_output(struct world *w, int64_t job);

/* The metadata service announces that the machine is terminated in ms. */
void world_notice_in(struct world *w, int64_t ms);

/* Conditions */
bool is_running(struct world *w, int64_t job);
bool is_saving(struct world *w, int64_t job);
bool is_reported_ended(struct world *w, int64_t job);
bool has_ended(struct world *w, int64_t job); /* and belayd has its output */
bool has_checkpoint(struct world *w, int64_t job);
bool has_failed_save(struct world *w, int64_t job);
bool is_forgotten(struct world *w, int64_t job); /* neither reported nor on disk */
bool is_process_gone(struct world *w, int64_t pid);

/* The job is reported with this end; its text contains `text`. */
void assert_ended(struct world *w, int64_t job, enum wire_end end, int exit_code, const char *text);

/* Files of a task: DIR/tasks/JOB-ATTEMPT/name. Free the text. */
char *world_task_path(struct world *w, int64_t job, int64_t attempt, const char *name);
bool world_task_has(struct world *w, int64_t job, int64_t attempt, const char *name);
void world_task_write(
    struct world *w, int64_t job, int64_t attempt, const char *name, const char *text);
char *world_read(const char *path); /* NULL if it does not exist */
void world_write(const char *path, const char *text);
/* checks the file's content */
void assert_file(const char *dir, const char *name, const char *text);
/* Answers the request for a working directory that waits. */
void world_send_workdir(struct world *w);
bool world_log_has(struct world *w, const char *text);

/* Runs every N-th of the tests from the K-th on, by an argument "K/N"; without one, all of them.
 * main returns the result. These tests spend much time waiting, so parts can run in parallel. */
int world_run(const struct CMUnitTest *tests, size_t n, int argc, char **argv);

#endif
