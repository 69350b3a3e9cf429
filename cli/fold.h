/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines that fit the terminal. Between fold_begin() and fold_end() what is printed on stdout is
 * kept, and then printed with its long lines broken at spaces; the rest of a line is indented as
 * its text is. Not for output that comes bit by bit, nor for JSON.
 */
#ifndef BELAY_CLI_FOLD_H
#define BELAY_CLI_FOLD_H

#include <stddef.h>
#include <stdio.h>

struct fold {
    FILE *was, *kept; /* NULL: not begun */
    char *text;
    size_t n;
};

/* The width of the terminal that stdout is; 0 if it is none. */
int fold_columns(void);

/* No-op if stdout is no terminal. */
void fold_begin(struct fold *f);
void fold_end(struct fold *f); /* no-op if not begun */

/* How many columns of a terminal n bytes take; without escape sequences, that take none. */
size_t fold_width(const char *text, size_t n);
/* The number of bytes of text that fit so many columns, up to a space if there is one; at least
 * one character. */
size_t fold_part(const char *text, size_t columns);
/* Text without its middle, in so many columns, 8 and more. The caller frees it. */
char *fold_shorten(const char *text, int columns);
/* One line, without its newline; columns 0: as it is. */
void fold_line(const char *text, size_t n, int columns, FILE *out);

#endif
