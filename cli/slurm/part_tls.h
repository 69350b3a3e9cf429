/* SPDX-License-Identifier: Apache-2.0
 *
 * The connection between srun and a part of its step on another node: TLS 1.3 with a key that both
 * know (PSK, with Diffie-Hellman, so that what was recorded stays closed when a key is lost later),
 * and nothing else: no certificates, no resumption, no early data. Who does not know a key gets no
 * further than the handshake; a recorded handshake that is played again does not complete.
 */
#ifndef BELAY_CLI_SLURM_PART_TLS_H
#define BELAY_CLI_SLURM_PART_TLS_H

#include "base/buf.h"
#include "base/err.h"
#include <stdbool.h>
#include <stdint.h>

#define PART_KEY_HEX 64 /* digits of a key */

struct part_tls;

/* The key of this part (PART_KEY_HEX digits), or NULL: none is expected. */
typedef const char *(*part_key_fn)(void *ctx, int64_t part);

/* srun's side of a connection that was accepted, fd non-blocking; the caller's to close. key, ctx:
 * borrowed. */
struct part_tls *part_tls_accept(int fd, part_key_fn key, void *ctx);

/* A part's side; blocks until srun has taken it, at most until deadline_ms (monotonic). fd
 * blocking. ERR_DENIED: who answers does not have the key. ERR_TIMEOUT; ERR_IO: it was hung up. */
int part_tls_connect(int fd, int64_t part, const char *key, int64_t deadline_ms,
    struct part_tls **ret_tls, struct err *e);

/* Goes on with srun's handshake. 1: it is done, and the part knows; 0: more has to come; -1: it is
 * none. *ret_part: who it is, or with 0 who it seems to be: it, or who plays its beginning again.
 * With 0 it may be -1: not known yet. */
int part_tls_greet(struct part_tls *t, int64_t *ret_part);

/* Appends what has come, at most 64 KiB in one call. Does not block. False: the connection has
 * ended or failed, after what was appended. */
bool part_tls_hear(struct part_tls *t, struct buf *in);

/* Sends all n bytes; blocks as fd does. False: the connection has failed, or would block. */
bool part_tls_say(struct part_tls *t, const void *p, size_t n);

/* Does not close fd. NULL is fine. */
void part_tls_free(struct part_tls *t);

#endif
