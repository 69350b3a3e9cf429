/* SPDX-License-Identifier: Apache-2.0
 *
 * Replaces the secrets of a job by *** in what it prints, before that reaches a file: each byte
 * that is part of a secret's value, wherever a write ends. A value is recognized as it is, without
 * newlines at its end; not in another form (base64, a part of it).
 *
 * Bytes that may be the beginning of a value are held back until the next ones decide, or the
 * program ends. The sessions of a task (belay exec) hide the same values, which its supervisor
 * sends to the agent (shells.h). Each byte of output costs a few instructions per secret (Knuth,
 * Morris and Pratt), whatever its content.
 */
#ifndef BELAY_AGENT_SUPERVISOR_MASK_H
#define BELAY_AGENT_SUPERVISOR_MASK_H

#include <stdbool.h>
#include <stddef.h>

#define MASK_TEXT "***"
#define MASK_VALUES_MAX 16
#define MASK_MIN 8 /* shorter values are not masked: much else would be */

struct mask;

struct mask *mask_create(void);
void mask_destroy(struct mask *m); /* wipes; m may be NULL */
/* Adds a value; no-op for more than MASK_VALUES_MAX, and for a short one. */
void mask_add(struct mask *m, const void *value, size_t n);

/* One stream of output; m is borrowed. */
struct mask_stream;
struct mask_stream *mask_stream_create(const struct mask *m);
void mask_stream_destroy(struct mask_stream *s); /* wipes; s may be NULL */

/* How many bytes a buffer must have for mask_turn with n bytes. */
size_t mask_room(const struct mask *m, size_t n);
/* Takes the next n bytes at p, and puts there what may be written now; returns its size. is_last:
 * nothing is held back. */
size_t mask_turn(struct mask_stream *s, char *p, size_t n, bool is_last);
/* Puts what is held back at p, which has mask_room for 0 bytes, as if no value began there; returns
 * its size. For terminals, where people wait for the next character. */
size_t mask_release(struct mask_stream *s, char *p);

/* The values as a file in memory, for another process; the caller closes it. -1 with errno set. */
int mask_save(const struct mask *m);
/* Reads such a file. NULL if it is malformed. */
struct mask *mask_load(int fd);

#endif
