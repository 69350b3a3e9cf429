/* SPDX-License-Identifier: Apache-2.0
 *
 * Frames: the byte stream of a session with a running job (belay exec, belay attach), in either
 * direction. belayd forwards frames without parsing them; the agent and the `belay` command write
 * and read them. Pure.
 *
 *     type (1 byte), length (4 bytes, big-endian), that many bytes
 */
#ifndef BELAY_BASE_FRAMES_H
#define BELAY_BASE_FRAMES_H

#include "base/buf.h"
#include "base/err.h"

#define FRAME_HEAD 5
#define FRAME_BYTES_MAX 65536

enum frame_type {
    /* from the job's node */
    FRAME_OUT = 1, /* standard output, or all output of a terminal */
    FRAME_ERR,     /* standard error */
    FRAME_EXIT,    /* last frame: one byte, the exit code */
    FRAME_FAIL,    /* last frame: the command failed to start or was cut off; the reason as text */
    /* to the job's node */
    FRAME_IN,     /* standard input */
    FRAME_EOF,    /* end of standard input; no bytes */
    FRAME_SIZE,   /* terminal size: rows and columns, two bytes each, big-endian */
    FRAME_SIGNAL, /* signal number, one byte, 1 .. 64 */
};

struct frame {
    enum frame_type type;
    const char *p; /* borrowed from the input */
    size_t n;
};

/* n <= FRAME_BYTES_MAX. */
void frame_add(struct buf *out, enum frame_type type, const void *p, size_t n);

/* Reads the frame at the beginning of n bytes; *ret_used is its length including its head. Returns
 * 1 if the frame is complete, 0 if more bytes are needed. ERR_INVALID: unknown type, too long, or a
 * length that is wrong for its type. */
int frame_read(const char *p, size_t n, struct frame *ret_frame, size_t *ret_used, struct err *e);

#endif
