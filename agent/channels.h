/* SPDX-License-Identifier: Apache-2.0
 *
 * Sessions of users with the tasks of this node (belay exec). belayd lists the wanted sessions in
 * the desired state. Each is claimed once, and the claim returns its command, so no command runs
 * twice. Then two streams of frames (base/frames.h) run over HTTP calls made from here: output is
 * posted in pieces at offsets, which belayd answers when it has space; input arrives as the answer
 * to a parked call. A session that is no longer wanted, or that belayd does not know (after a
 * restart), is hung up.
 */
#ifndef BELAY_AGENT_CHANNELS_H
#define BELAY_AGENT_CHANNELS_H

#include "agent/peer.h"
#include "base/list.h"
#include "base/timers.h"
#include "base/wire/wire.h"
#include <uv.h>

struct channels {
    /* set by the caller; borrowed */
    uv_loop_t *loop;
    struct timers *timers;
    const struct peer *peer;
    /* Passes fd, one end of a socket pair, to the process that starts commands in this attempt
     * (shells.h). Returns 0 or -errno. */
    int (*shell)(void *ctx, int64_t job, int64_t attempt, int fd);
    void *ctx;
    /* private */
    struct list all;
};

void channels_desired(struct channels *c, const struct wire_desired *d);

/* Hangs up all sessions. Run the loop until channels_is_idle, and then once more. */
void channels_stop(struct channels *c);
bool channels_is_idle(const struct channels *c);

#endif
