/* SPDX-License-Identifier: Apache-2.0
 *
 * Adaptive timeout for a metadata service: a timeout doubles it, up to 30 s, until a reply arrives
 * within the usual time. Without this, a service that always takes three seconds would never be
 * read with a timeout of two.
 */
#ifndef BELAY_CLOUD_PATIENCE_H
#define BELAY_CLOUD_PATIENCE_H

#include "base/err.h"
#include "base/time.h"

#define PATIENCE_MAX_MS SECONDS_MS(30)

/* Zeroed: the usual timeout. */
struct patience {
    int timeouts; /* since the last reply within the usual time */
    struct mono asked;
    int64_t usual_ms;
};

/* The timeout for a request that starts now. usual_ms: the normal timeout, also used if it is
 * longer. */
static inline int64_t patience_begin(struct patience *p, struct mono now, int64_t usual_ms)
{
    int64_t ms = usual_ms;
    for (int i = 0; i < p->timeouts && ms < PATIENCE_MAX_MS; i++)
        ms = 2 * ms < PATIENCE_MAX_MS ? 2 * ms : PATIENCE_MAX_MS;
    p->asked = now;
    p->usual_ms = usual_ms;
    return ms;
}

/* Records the end of the request. e is NULL for a reply of any status. */
static inline void patience_end(struct patience *p, struct mono now, const struct err *e)
{
    if (e && e->kind == ERR_TIMEOUT && p->timeouts < 16)
        p->timeouts++;
    else if (!e && now.ms - p->asked.ms <= p->usual_ms)
        p->timeouts = 0;
}

#endif
