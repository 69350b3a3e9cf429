/* SPDX-License-Identifier: Apache-2.0
 *
 * A message in the form in which wire_table_encode writes it is read straight from its bytes: no
 * tree of values is made first, which takes ten times as long. What has another form (spaces, keys
 * in another order, unknown ones, characters by number) or is wrong is not read here: fields.c
 * reads anything, and says what is wrong with it.
 */
#ifndef BELAY_BASE_WIRE_PLAIN_H
#define BELAY_BASE_WIRE_PLAIN_H

#include "base/wire/fields.h"

/* Into *m, which is zeroed before. False: it is not in that form; part of it may be in *m then, for
 * wire_table_deinit. */
bool wire_plain_read(const struct wire_table *t, const char *p, size_t n, void *m);

/* Appends the JSON object of *m. */
void wire_plain_write(const struct wire_table *t, const void *m, struct buf *out);

#endif
