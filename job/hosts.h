/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists of hosts as Slurm writes them: "n1,n[3-5,8],rack[01-16]-a". One pair of brackets a name,
 * numbers in it as wide as their first is written. What stands between two commas may be empty.
 */
#ifndef BELAY_JOB_HOSTS_H
#define BELAY_JOB_HOSTS_H

#include "base/buf.h"
#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HOSTS_MAX 65536    /* names in a list */
#define HOSTS_NAME_MAX 64  /* of one, with its NUL: letters, digits and . _ - */
#define HOSTS_TEXT_MAX 512 /* of a list that is stored, with its NUL */

/* Where hosts_next is. Zeroed at first. */
struct hosts_at {
    size_t item, part; /* offsets: of what is between two commas; in its brackets */
    int64_t number;    /* the next of that part is so much above its first */
};

/* ERR_INVALID: it is no such list. ret_n may be NULL: how many names; one that is there twice
 * counts twice. */
int hosts_check(const char *list, int64_t *ret_n, struct err *e);
/* Of a list that was checked: the next name; false: there are no more. */
bool hosts_next(const char *list, struct hosts_at *at, char out[HOSTS_NAME_MAX]);
/* The same names, each once, sorted and folded together: two lists of the same hosts become the
 * same text. ERR_INVALID: no list, or longer than fits. Not for lists of many thousands. */
/* added to out, of any length */
int hosts_fold_into(const char *list, struct buf *out, struct err *e);
int hosts_fold(const char *list, char ret_list[HOSTS_TEXT_MAX], struct err *e);
/* The same list names it. Costs what the list is long, whatever it stands for. */
bool hosts_has(const char *list, const char *name);

#endif
