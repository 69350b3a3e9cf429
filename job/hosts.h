/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists of hosts in Slurm's syntax: "n1,n[3-5,8],rack[01-16]-a". At most one pair of brackets per
 * name; numbers in it are as wide as the first is written. An entry between commas may be empty.
 */
#ifndef BELAY_JOB_HOSTS_H
#define BELAY_JOB_HOSTS_H

#include "base/buf.h"
#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HOSTS_MAX 65536    /* names in a list */
#define HOSTS_NAME_MAX 64  /* a name, including its NUL: letters, digits and . _ - */
#define HOSTS_TEXT_MAX 512 /* a stored list, including its NUL */

/* Position of hosts_next. Zeroed at the start. */
struct hosts_at {
    size_t item, part; /* offsets of the entry, and of the part in its brackets */
    int64_t number;    /* offset of the next number from the part's first */
};

/* ERR_INVALID: malformed. *ret_n (may be NULL) is the number of names, duplicates included. */
int hosts_check(const char *list, int64_t *ret_n, struct err *e);
/* The next name of a checked list; false at the end. */
bool hosts_next(const char *list, struct hosts_at *at, char out[HOSTS_NAME_MAX]);
/* The same names, unique, sorted and folded: equal sets of hosts give equal texts. ERR_INVALID:
 * malformed, or too long. Not for lists of many thousands. */
/* appends to out, without a length limit */
int hosts_fold_into(const char *list, struct buf *out, struct err *e);
int hosts_fold(const char *list, char ret_list[HOSTS_TEXT_MAX], struct err *e);
/* Whether the list contains the name. The cost depends on the length of the text, not on the number
 * of hosts. */
bool hosts_has(const char *list, const char *name);

#endif
