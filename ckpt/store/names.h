/* SPDX-License-Identifier: Apache-2.0
 *
 * A growing list of names. Zeroed is valid and empty.
 */
#ifndef BELAY_CKPT_STORE_NAMES_H
#define BELAY_CKPT_STORE_NAMES_H

#include <stddef.h>

struct names {
    char **v;
    size_t n, cap;
};

void names_add(struct names *l, char *name); /* taken */
void names_deinit(struct names *l);          /* empty and reusable afterwards */

#endif
