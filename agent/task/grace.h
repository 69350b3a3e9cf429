/* SPDX-License-Identifier: Apache-2.0
 *
 * The signal that a job wants some time before its time limit (submit --signal), and those that its
 * user sends (scancel --signal). The supervisor sends them: it outlives the agent, so that no
 * restart makes a second one of the first.
 */
#ifndef BELAY_AGENT_TASK_GRACE_H
#define BELAY_AGENT_TASK_GRACE_H

#include "base/uv/proc.h"

struct grace {
    int signal;        /* 0 = none wanted */
    bool to_script;    /* and to nobody else */
    bool to_programs;  /* not to the script, although it catches it */
    bool to_all;       /* to the script as to everybody below it */
    int64_t before_ms; /* the time limit */
    pid_t init;        /* above all of the job (agent/supervisor/launch.h) */
    pid_t script;      /* 0 = not known yet */
    bool in_room;      /* script is its number in a namespace of its own */
};

/* With to_script the script's process gets it, whatever it does with it. Else: whoever catches it.
 * But what ends (TERM, INT, HUP, QUIT, KILL), goes on (CONT) or cannot be caught goes to all,
 * except the script's process, which is left to do what comes after. With to_all all get it,
 * whatever they do with it. Returns how many got it; 0: nobody can hear it (yet). Blocks for a look
 * at /proc. */
int grace_send(const struct grace *g, struct proc_group *group);

#endif
