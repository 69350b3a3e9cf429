/* SPDX-License-Identifier: Apache-2.0
 *
 * Flags of sbatch that belay does not have. Those that would change the meaning of the job are
 * refused by name. Those that would only change node or speed give a warning, or are ignored.
 */
#ifndef BELAY_CLI_FLAGS_FOREIGN_H
#define BELAY_CLI_FLAGS_FOREIGN_H

struct foreign {
    const char *name;
    char letter; /* 0 = none */
    /* the value for people, NULL if it takes none; with a leading '?' the value is optional, and
     * given after '=' */
    const char *value;
    enum { FOREIGN_REFUSED, FOREIGN_WARNED, FOREIGN_IGNORED } kind;
};

extern const struct foreign foreign_flags[]; /* ends with name NULL */

/* By name or letter; NULL if unknown, or if name is NULL. */
const struct foreign *foreign_find(const char *name);

#endif
