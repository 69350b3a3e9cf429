/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of a step on nodes other than srun's, in a job whose script runs on the first of
 * several nodes.
 *
 *     srun --belayd, agent--> belay slurm srun --part     started in a session on the other node;
 *      ^                               |                  reads its parameters from stdin
 *      +--- its tasks' output, code ---+                  a connection from the part, with its own
 *                                                         key; signals go back through it
 *
 * The session ends when the connection is established: a step's output does not go through belayd,
 * and a step does not end with it. The connection is TLS with a random key per part
 * (cli/slurm/part_tls.h), which the session, over TLS as well, delivers to the part's standard
 * input: it is in no file, argument or environment.
 *
 * For this, the agent has put the parameters (struct step_nodes) in the first node's control
 * directory, readable only by the job's user: including a token that only permits sessions with
 * this attempt.
 */
#ifndef BELAY_CLI_SLURM_STEP_PARTS_H
#define BELAY_CLI_SLURM_STEP_PARTS_H

#include "base/buf.h"
#include "cli/slurm/layout.h"
#include "cli/slurm/step.h"
#include <poll.h>
#include <sys/types.h>

/* The nodes of a job, by rank. */
struct step_nodes {
    char *server, *ca, *token, *address; /* address: where the others reach the first node */
    char *names[LAYOUT_NODES_MAX];
    int64_t n;
};

/* ERR_NOT_FOUND: the job has no other nodes to start tasks on. Call step_nodes_deinit in every
 * case. */
int step_nodes_read(const char *control, struct step_nodes *ret_nodes, struct err *e);
void step_nodes_deinit(struct step_nodes *n);

struct parts;

struct parts_ask {
    const struct step *s;
    const struct step_nodes *nodes;
    const struct layout *layout;
    const int64_t *ranks; /* ranks of the step's nodes, in the step's order; rank 0 is this node */
    int64_t step;
    const char *nodelist, *per_node;
    char **argv;
};

/* Borrows everything in ask. ERR_IO: cannot listen. */
int parts_create(const struct parts_ask *ask, struct parts **ret_parts, struct err *e);
void parts_destroy(struct parts *p); /* p may be NULL (no parts), here and below */

/* False if nothing was started. */
bool parts_start(struct parts *p);

/* Adds descriptors to wait for, at most parts_fds_max; returns how many. */
size_t parts_fds_max(const struct parts *p);
size_t parts_poll(const struct parts *p, struct pollfd *fds);

/* Handles events and deadlines. True if a part has ended with an exit code other than 0. */
bool parts_handle(struct parts *p, const struct pollfd *fds, size_t n);
/* Call for each child process that has ended; ignores those of others. */
void parts_reap(struct parts *p, pid_t pid, int status);
/* Forwards the signal; cancels parts that are not connected yet. */
void parts_signal(struct parts *p, int signum);
bool parts_are_over(const struct parts *p);
/* Whether a part was not started, or its connection broke: the step cannot continue. */
bool parts_have_failed(const struct parts *p);
int parts_exit_code(const struct parts *p);

#endif
