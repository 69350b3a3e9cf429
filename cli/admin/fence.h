/* SPDX-License-Identifier: Apache-2.0
 *
 * Fencing a belayd that may still have, or come back with, the state from before a restore: the
 * marker of the checkpoint store gets a higher epoch, and that belayd stops when it reads it
 * (scheduler/store/claim.h).
 */
#ifndef BELAY_CLI_ADMIN_FENCE_H
#define BELAY_CLI_ADMIN_FENCE_H

#include "base/err.h"
#include <stdint.h>

/* For each store in the file of places (STATE/store.places): returns in *ret_epoch the highest
 * epoch that its markers have for this cluster, or `least` if that is higher. Changes nothing. A
 * store of this machine that is gone is left out. */
int fence_read(
    const char *places, const char *uid, int64_t least, int64_t *ret_epoch, struct err *e);

/* Writes the epoch to the same stores. *ret_n: how many have it now. */
int fence_write(const char *places, const char *uid, int64_t epoch, int *ret_n, struct err *e);

#endif
