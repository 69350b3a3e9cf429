/* SPDX-License-Identifier: Apache-2.0
 *
 * Comma-separated lists of names ("base,burst"), the form that Slurm uses. Ordered; each name
 * occurs once.
 */
#ifndef BELAY_BASE_NAMES_H
#define BELAY_BASE_NAMES_H

#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>

/* Checks a list: shorter than max bytes, each name as str_is_name requires, none twice. ERR_INVALID
 * names the offending entry and says that it is not `what` ("a pool's name"). "" is invalid. */
int names_check(const char *list, size_t max, const char *what, struct err *e);

/* Copies the name at *at into out, cut to size, and advances *at past it; false at the end. *at is
 * initially the list. */
bool names_next(const char **at, char *out, size_t size);

bool names_has(const char *list, const char *name);
bool names_meet(const char *a, const char *b); /* whether some name is in both */

#endif
