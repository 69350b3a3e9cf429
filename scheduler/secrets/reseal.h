/* SPDX-License-Identifier: Apache-2.0
 *
 * After a new first key was put into the key file: seals the secrets of users again with it, a few
 * in a commit, beside everything else. A restart continues, because each row says which key it has.
 *
 * Environments of jobs and URLs of notifications are not sealed again: they are rows of jobs, which
 * are written once, and of digests, which their users set again. They need the earlier key as long
 * as anybody needs them.
 */
#ifndef BELAY_SCHEDULER_SECRETS_RESEAL_H
#define BELAY_SCHEDULER_SECRETS_RESEAL_H

#include "scheduler/engine/tick.h"
#include "scheduler/secrets/seal.h"

#define RESEAL_SLICE 16 /* secrets in one commit */

struct reseal {
    struct tick *tick;
    struct db_reader *reader;
    const struct sealer *sealer;
    int64_t n;    /* sealed again since the start */
    bool goes_on; /* the last slice may not have been the end */
};

/* Fill in tick, reader and sealer, and keep r until the tick is destroyed. No-op if all is sealed
 * with the current key. */
void reseal_start(struct reseal *r);

#endif
