/* SPDX-License-Identifier: Apache-2.0
 *
 * Several names in one text, between commas: "base,burst", as people and Slurm write them. In
 * order, each once.
 */
#ifndef BELAY_BASE_NAMES_H
#define BELAY_BASE_NAMES_H

#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>

/* The text is shorter than max bytes, each name as str_is_name has it, and none there twice.
 * ERR_INVALID says which is not, and that it
 * is no `what` ("a pool's name"). "" is no list. */
int names_check(const char *list, size_t max, const char *what, struct err *e);

/* The name at *at into out, cut to size, and *at goes on behind it; false: there are no more. *at
 * is the list at first. */
bool names_next(const char **at, char *out, size_t size);

bool names_has(const char *list, const char *name);
bool names_meet(const char *a, const char *b); /* a name is in both */

#endif
