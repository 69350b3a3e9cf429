/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of a step that are on other nodes than srun, in a job whose script is on the first of
 * several.
 *
 *     srun --belayd, agent--> belay slurm srun --part     started in a session on the other node;
 *      ^                               |                  reads its parameters from stdin
 *      +--- its tasks' output, code ---+                  a connection from the part, with a key
 *                                                         of its own; signals go back through it
 *
 * The session ends when the connection stands: what a step says does not go through belayd, and a
 * step does not end with it. The connection is TLS with a random key of the part's own
 * (cli/slurm/part_tls.h), which the session, over TLS as well, brings to the part's standard input:
 * it is in no file, argument or environment.
 *
 * What srun needs for that the agent has put into the first node's control directory, for the job's
 * user alone (struct step_nodes): a token that is good for sessions with this attempt and nothing
 * else.
 */
#ifndef BELAY_CLI_SLURM_PARTS_H
#define BELAY_CLI_SLURM_PARTS_H

#include "base/buf.h"
#include "cli/slurm/layout.h"
#include "cli/slurm/part_tls.h"
#include "cli/slurm/step_tasks.h"
#include <poll.h>
#include <sys/types.h>

#define PART_FLAG "--part"
#define PART_BYTES_MAX (8u << 20) /* of what one is told: arguments and environment, mostly */

/* The nodes of a job, by rank. */
struct step_nodes {
    char *server, *ca, *token, *address; /* address: the first one's, for the others */
    char *names[LAYOUT_NODES_MAX];
    int64_t n;
};

/* ERR_NOT_FOUND: the job has no other nodes to start tasks on. step_nodes_deinit in every case. */
int step_nodes_read(const char *control, struct step_nodes *ret_nodes, struct err *e);
void step_nodes_deinit(struct step_nodes *n);

/* ---- srun's side ---- */

struct parts;

struct parts_ask {
    const struct step *s;
    const struct step_nodes *nodes;
    const struct layout *layout;
    const int64_t *ranks; /* of the step's nodes, in its order; 0 is this one */
    int64_t step;
    const char *nodelist, *per_node;
    char **argv;
};

/* Borrows all of it. ERR_IO: there is nowhere to listen. */
int parts_create(const struct parts_ask *ask, struct parts **ret_parts, struct err *e);
void parts_destroy(struct parts *p); /* NULL is fine, here and below: there are none */

/* False: nothing was started. */
bool parts_start(struct parts *p);

/* Adds what is to be waited for, at most parts_fds_max; returns how many. */
size_t parts_fds_max(const struct parts *p);
size_t parts_poll(const struct parts *p, struct pollfd *fds);

/* Deals with it, and with what did not come in time. True: one has ended with a code that is not
 * 0. */
bool parts_handle(struct parts *p, const struct pollfd *fds, size_t n);
/* of a process that may be one of theirs */
void parts_reap(struct parts *p, pid_t pid, int status);
/* parts that have not connected yet are called off */
void parts_signal(struct parts *p, int signum);
bool parts_are_over(const struct parts *p);
/* one was not started, or broke off: the step cannot go on */
bool parts_have_failed(const struct parts *p);
int parts_exit_code(const struct parts *p);

/* ---- the other side ---- */

/* What a part is told. */
struct part {
    char *address, key[PART_KEY_HEX + 1];
    int64_t port;
    struct step step; /* texts owned, below */
    struct step_place place;
    int64_t *ids;
    char *cwd, *programs, **argv, **env; /* NULL-terminated */
    char *texts[10];
};

/* Pure. part_parse: ERR_INVALID. part_deinit in every case. */
void part_format(const struct part *p, struct buf *out);
int part_parse(const char *text, size_t n, struct part *ret_part, struct err *e);
void part_deinit(struct part *p);

/* srun --part: returns the exit code. */
int part_main(void);

#endif
