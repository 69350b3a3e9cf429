/* SPDX-License-Identifier: Apache-2.0
 *
 * The signal that a job wants some time before its time limit (submit --signal), and those that its
 * user sends (scancel --signal). The supervisor sends them: it outlives the agent, so a restart of
 * the agent cannot send a signal twice.
 */
#ifndef BELAY_AGENT_TASK_GRACE_H
#define BELAY_AGENT_TASK_GRACE_H

#include "base/uv/proc.h"

struct grace {
    int signal;        /* 0 = none */
    bool to_script;    /* only to the script */
    bool to_programs;  /* not to the script, although it catches it */
    bool to_all;       /* to the script and all its descendants */
    int64_t before_ms; /* the time limit */
    pid_t init;        /* ancestor of all processes of the job (agent/supervisor/launch.h) */
    pid_t script;      /* 0 = not known yet */
    bool in_sandbox;   /* `script` is a pid in its own pid namespace */
};

/* Sends the signal. With to_script only the script's process gets it, whether or not it catches it;
 * with to_all all processes get it. Otherwise every process that catches it gets it; signals that
 * terminate (TERM, INT, HUP, QUIT, KILL), continue (CONT) or cannot be caught also go to processes
 * that do not catch them, except the script's, which is left to do what comes after. Returns how
 * many processes got it; 0 = no process handles it (yet). Blocks while it reads /proc. */
int grace_send(const struct grace *g, struct proc_group *group);

#endif
