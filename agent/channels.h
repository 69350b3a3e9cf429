/* SPDX-License-Identifier: Apache-2.0
 *
 * Sessions of users with the tasks of this node (belay exec). belayd names those that are wanted
 * with what else it desires; each is claimed once, which gives its command, so that one is never
 * run twice. From then on two streams of frames (base/frames.h) go over calls of this side: output
 * is posted in pieces at offsets, which belayd answers when it has room, and input is what a parked
 * call is answered with. What is wanted no longer, or that belayd does not know (it was restarted),
 * is hung up.
 */
#ifndef BELAY_AGENT_CHANNELS_H
#define BELAY_AGENT_CHANNELS_H

#include "agent/peer.h"
#include "base/list.h"
#include "base/timers.h"
#include "base/wire/wire.h"
#include <uv.h>

struct channels {
    /* to be filled by the caller; borrowed */
    uv_loop_t *loop;
    struct timers *timers;
    const struct peer *peer;
    /* Passes fd, one end of a pair of sockets, to who starts commands in this attempt (shells.h). 0
     * or -errno. */
    int (*shell)(void *ctx, int64_t job, int64_t attempt, int fd);
    void *ctx;
    /* private */
    struct list all;
};

void channels_desired(struct channels *c, const struct wire_desired *d);

/* Hangs all up. The loop has to be turned until channels_is_idle, and then once more. */
void channels_stop(struct channels *c);
bool channels_is_idle(const struct channels *c);

#endif
