/* SPDX-License-Identifier: Apache-2.0
 *
 * The connection between srun and a part of its step on another node: TLS 1.3 with a pre-shared key
 * (PSK with Diffie-Hellman, so that recordings stay secret if a key is lost later), and nothing
 * else: no certificates, no resumption, no early data. A peer without a key gets no further than
 * the handshake; a replayed handshake does not complete.
 */
#ifndef BELAY_CLI_SLURM_PART_TLS_H
#define BELAY_CLI_SLURM_PART_TLS_H

#include "base/buf.h"
#include "base/err.h"
#include <stdbool.h>
#include <stdint.h>

#define PART_KEY_HEX 64 /* digits of a key */

struct part_tls;

/* The key of this part (PART_KEY_HEX digits), or NULL if none is expected. */
typedef const char *(*part_key_fn)(void *ctx, int64_t part);

/* srun's side of an accepted connection; fd is non-blocking and closed by the caller. key and ctx
 * are borrowed. */
struct part_tls *part_tls_accept(int fd, part_key_fn key, void *ctx);

/* A part's side; blocks until srun has accepted it, at most until deadline_ms (monotonic). fd is
 * blocking. ERR_DENIED: the peer does not have the key. ERR_TIMEOUT; ERR_IO: the connection was
 * closed. */
int part_tls_connect(int fd, int64_t part, const char *key, int64_t deadline_ms,
    struct part_tls **ret_tls, struct err *e);

/* Continues srun's handshake. 1: done, and confirmed to the part; 0: more data is needed; -1:
 * failed. *ret_part: with 1 the part; with 0 the part that the peer claims to be, possibly a
 * replay, or -1 if unknown yet. */
int part_tls_greet(struct part_tls *t, int64_t *ret_part);

/* Appends received data, at most 64 KiB per call. Does not block. False if the connection has ended
 * or failed, after the appended data. */
bool part_tls_receive(struct part_tls *t, struct buf *in);

/* Sends all n bytes; blocks if fd does. False if the connection has failed, or would block. */
bool part_tls_send(struct part_tls *t, const void *p, size_t n);

/* Does not close fd. t may be NULL. */
void part_tls_free(struct part_tls *t);

#endif
