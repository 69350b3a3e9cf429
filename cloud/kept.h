/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies of configuration texts that live as long as their driver.
 */
#ifndef BELAY_CLOUD_KEPT_H
#define BELAY_CLOUD_KEPT_H

#include <stddef.h>

/* Zeroed is valid and empty. */
struct cloud_kept {
    char **list;
    size_t n;
};

/* Returns a copy that lives as long as k; NULL for NULL. Not for secrets: nothing is wiped. */
const char *cloud_keep(struct cloud_kept *k, const char *text);
void cloud_kept_deinit(struct cloud_kept *k);

#endif
