/* SPDX-License-Identifier: Apache-2.0
 *
 * Names (str_is_name), and comma-separated lists of them ("base,burst"), the form that Slurm uses.
 * Lists are ordered; each name occurs once.
 */
#ifndef BELAY_BASE_NAMES_H
#define BELAY_BASE_NAMES_H

#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>

/* Checks one name, of at most max bytes: ERR_INVALID unless str_is_name is true. The error shows
 * the text, says that it is not `what` ("a node's name"), and what a name is. */
int name_check(const char *name, size_t max, const char *what, struct err *e);

/* Checks a list: shorter than max bytes, each name as str_is_name requires, none twice. ERR_INVALID
 * names the offending entry and says that it is not `what` ("a pool's name"). "" is invalid. */
int names_check(const char *list, size_t max, const char *what, struct err *e);

/* Copies the name at *at into out, cut to size, and advances *at past it; false at the end. *at is
 * initially the list. */
bool names_next(const char **at, char *out, size_t size);

bool names_has(const char *list, const char *name);
bool names_intersect(const char *a, const char *b); /* whether some name is in both */

#endif
