/* SPDX-License-Identifier: Apache-2.0
 *
 * The texts of its settings that a driver keeps for as long as it lives.
 */
#ifndef BELAY_CLOUD_KEPT_H
#define BELAY_CLOUD_KEPT_H

#include <stddef.h>

/* Zeroed is valid and empty. */
struct cloud_kept {
    char **list;
    size_t n;
};

/* A copy, for as long as k; NULL of NULL. No secrets: nothing is wiped. */
const char *cloud_keep(struct cloud_kept *k, const char *text);
void cloud_kept_deinit(struct cloud_kept *k);

#endif
