/* SPDX-License-Identifier: Apache-2.0
 *
 * What a session with a running job (belay exec, belay attach) carries, in either direction, as a
 * stream of bytes: frames of a type, a length and so many bytes. belayd passes them on without
 * looking; the agent and the command `belay` make and read them. Pure.
 *
 *     type (1 byte), length (4 bytes, the high one first), bytes
 */
#ifndef BELAY_BASE_FRAMES_H
#define BELAY_BASE_FRAMES_H

#include "base/buf.h"
#include "base/err.h"

#define FRAME_HEAD 5
#define FRAME_BYTES_MAX 65536

enum frame_type {
    /* from the job's node */
    FRAME_OUT = 1, /* standard output, or all that a terminal shows */
    FRAME_ERR,     /* standard error */
    FRAME_EXIT,    /* the last: one byte, the exit code */
    FRAME_FAIL,    /* the last: it could not be started, or broke off, and why, as text */
    /* to it */
    FRAME_IN,     /* standard input */
    FRAME_EOF,    /* its end; no bytes */
    FRAME_SIZE,   /* the terminal's: rows and columns, two bytes each, the high one first */
    FRAME_SIGNAL, /* one byte, 1 .. 64 */
};

struct frame {
    enum frame_type type;
    const char *p; /* borrowed from the bytes that were read */
    size_t n;
};

/* n up to FRAME_BYTES_MAX. */
void frame_add(struct buf *out, enum frame_type type, const void *p, size_t n);

/* The frame at the beginning of n bytes; *ret_used is its length with its head. 1: it is there; 0:
 * more bytes are needed. ERR_INVALID: a type that is none, too long, or a length that its type
 * cannot have. */
int frame_read(const char *p, size_t n, struct frame *ret_frame, size_t *ret_used, struct err *e);

#endif
