/* SPDX-License-Identifier: Apache-2.0
 *
 * Carries what a task's program prints from a pipe to the file that is shipped, as long as the
 * node's disk has space for it.
 *
 *     program --pipe--> output.log --> belayd        one stream
 *     program --pipe--> stdout.log --> output.log    two, if errors have a file of their own; the
 *             --pipe--> stderr.log                   output writer copies them (output_writer.h)
 *
 * Output never takes the space that is kept for the agent's records (agent/disk.h). Of the space
 * beyond that, a user's tasks may take at most half of what is free to them: the user with the most
 * output meets the limit first, and a later user finds half of the rest. A task that has
 * little of its own (OUTPUT_OWN_SHARE) is not stalled by others of its user.
 *
 * At the limit, what belayd has on its disk is released from the file's beginning (its length stays
 * the same). If that is not enough, the pipe is not read: the program waits, and nothing is lost.
 * But a program that waits makes no progress and could not save at a notice. So after
 * OUTPUT_STALL_MS its output is cut: the program continues, and lines in the output say where and
 * how much is missing.
 *
 * The program runs in its own cgroup, the pump does not. Its rate is limited so that it cannot be
 * made to take a processor.
 */
#ifndef BELAY_AGENT_SUPERVISOR_OUTPUT_PUMP_H
#define BELAY_AGENT_SUPERVISOR_OUTPUT_PUMP_H

#include "agent/supervisor/mask.h"
#include "agent/supervisor/output_shares.h"
#include "agent/task/output_writer.h"
#include "base/err.h"
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define OUTPUT_STREAMS OUTPUT_WRITER_SOURCES
#define OUTPUT_STALL_MS 10000
#define OUTPUT_OWN_SHARE 16
#define OUTPUT_PIECE (64 << 10)

/* Pure. How much more a task may write, in bytes, where `spare` bytes are free beyond the reserve,
 * it has `own` bytes on the disk, and its user's other tasks have `others`. */
int64_t output_space(int64_t spare, int64_t own, int64_t others);

struct output_stream {
    int from, to; /* the pipe's end, -1 = none or over; the file */
    char *piece;  /* read and not written yet */
    size_t at, n;
    struct mask_stream *masked; /* NULL = nothing is masked */
    int64_t released;           /* bytes of the file */
    int64_t lost;               /* bytes lost since the output was cut */
};

struct output_pump {
    /* set by the caller; borrowed */
    struct output_shares *shares;       /* may be NULL */
    const struct output_writer *writer; /* it copies the streams' files; may be zeroed */
    const struct mask *mask;            /* may be NULL: secrets that are replaced in the output */
    uid_t user;
    int64_t stall_ms;
    int log; /* output.log, open for reading and writing; stays the caller's */
    /* private */
    struct output_stream streams[OUTPUT_STREAMS];
    size_t n;
    int64_t shipped, log_released;
    int64_t grant, grant_until; /* may be written without another check of the disk */
    int64_t stalled_since;      /* 0 = the program is not stalled */
    int64_t resume_at;          /* not read before; mono ms */
    bool is_cut;
};

/* Makes a pipe for each of the n files, which the pump then owns. The other ends are for the
 * program: close them when it has been started. owner may reopen its end by name (/dev/stdout). */
int output_pump_open(struct output_pump *p, const int *files, size_t n, uid_t owner, gid_t group,
    int *ret_ends, struct err *e);

/* Fills in OUTPUT_STREAMS entries; returns how long poll may wait, in ms; -1 = for ever. */
int output_pump_poll(const struct output_pump *p, struct pollfd *fds);
void output_pump_turn(struct output_pump *p, const struct pollfd *fds);

/* Reports how many bytes of output.log are on belayd's disk. */
void output_pump_shipped(struct output_pump *p, int64_t bytes);

/* Call when the program has ended: carries the rest, and closes the pipes. No effect when
 * zeroed. */
void output_pump_finish(struct output_pump *p);

#endif
