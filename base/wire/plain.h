/* SPDX-License-Identifier: Apache-2.0
 *
 * A fast path for messages in exactly the form that wire_table_encode writes: reads them straight
 * from the bytes, without building a tree of values, which takes ten times as long. Any other form
 * (blanks, keys in another order, unknown keys, numeric character escapes) and any error is left to
 * fields.c, which reads everything and reports what is wrong.
 */
#ifndef BELAY_BASE_WIRE_PLAIN_H
#define BELAY_BASE_WIRE_PLAIN_H

#include "base/wire/fields.h"

/* Reads into *m, which is zeroed first. False if the input is not in that form; *m may then be
 * partly filled and needs wire_table_deinit. */
bool wire_plain_read(const struct wire_table *t, const char *p, size_t n, void *m);

/* Appends the JSON object of *m. */
void wire_plain_write(const struct wire_table *t, const void *m, struct buf *out);

#endif
