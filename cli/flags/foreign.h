/* SPDX-License-Identifier: Apache-2.0
 *
 * The flags that sbatch has and belay has not. Of most a job would mean something else without it:
 * they are refused by name. Where only the place or the pace is another, that is told, or nothing
 * is.
 */
#ifndef BELAY_CLI_FLAGS_FOREIGN_H
#define BELAY_CLI_FLAGS_FOREIGN_H

struct foreign {
    const char *name;
    char letter;       /* 0: none */
    const char *value; /* what it takes, NULL: nothing; beginning with '?': it may, with '=' */
    enum { FOREIGN_REFUSED, FOREIGN_TOLD, FOREIGN_IGNORED } kind;
};

extern const struct foreign foreign_flags[]; /* ends with a name NULL */

/* By name or letter; NULL: none, or name is NULL. */
const struct foreign *foreign_find(const char *name);

#endif
