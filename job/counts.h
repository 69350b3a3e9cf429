/* SPDX-License-Identifier: Apache-2.0
 *
 * Named counts ("lego:4,shmem:2"): countable resources of a node, a job or a cluster. Sorted by
 * name, names are unique. Zeroed is valid and empty.
 */
#ifndef BELAY_JOB_COUNTS_H
#define BELAY_JOB_COUNTS_H

#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COUNTS_MAX 8
#define COUNTS_NAME_MAX 32 /* including its NUL; str_is_name */
#define COUNTS_NUMBER_MAX 1000000
#define COUNTS_TEXT_MAX (COUNTS_MAX * (COUNTS_NAME_MAX + 8)) /* including the NUL */

struct count {
    char name[COUNTS_NAME_MAX];
    int64_t n;
};

struct counts {
    size_t n;
    struct count v[COUNTS_MAX];
};

/* "lego:4,shmem:2"; a missing number is 1; "" is empty. ERR_INVALID: malformed, a duplicate name,
 * or more than COUNTS_MAX. */
int counts_parse(const char *text, struct counts *ret_counts, struct err *e);
void counts_format(const struct counts *c, char out[COUNTS_TEXT_MAX]);
/* n: 1 .. COUNTS_NUMBER_MAX. ERR_INVALID: as above. */
int counts_add(struct counts *c, const char *name, int64_t n, struct err *e);
int64_t counts_of(const struct counts *c, const char *name); /* 0 if absent */
/* Whether all has at least the count of each entry of need. */
bool counts_cover(const struct counts *all, const struct counts *need);
/* The first entry of need that all does not cover; NULL if it covers all of them. */
const struct count *counts_short(const struct counts *all, const struct counts *need);

#endif
