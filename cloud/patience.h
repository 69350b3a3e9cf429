/* SPDX-License-Identifier: Apache-2.0
 *
 * How long an answer of a metadata service is waited for: a time-out doubles it, up to 30 s, until
 * an answer comes within the usual time. A service that always takes three seconds would never be
 * heard within two.
 */
#ifndef BELAY_CLOUD_PATIENCE_H
#define BELAY_CLOUD_PATIENCE_H

#include "base/err.h"
#include "base/time.h"

#define PATIENCE_MAX_MS SECONDS_MS(30)

/* Zeroed: usual. */
struct patience {
    int timeouts; /* since an answer came within the usual time */
    struct mono asked;
    int64_t usual_ms;
};

/* The time-out for a request that starts now; usual_ms: without trouble, kept if it is longer. */
static inline int64_t patience_begin(struct patience *p, struct mono now, int64_t usual_ms)
{
    int64_t ms = usual_ms;
    for (int i = 0; i < p->timeouts && ms < PATIENCE_MAX_MS; i++)
        ms = 2 * ms < PATIENCE_MAX_MS ? 2 * ms : PATIENCE_MAX_MS;
    p->asked = now;
    p->usual_ms = usual_ms;
    return ms;
}

/* It has ended. e: NULL for an answer, of whatever status. */
static inline void patience_end(struct patience *p, struct mono now, const struct err *e)
{
    if (e && e->kind == ERR_TIMEOUT && p->timeouts < 16)
        p->timeouts++;
    else if (!e && now.ms - p->asked.ms <= p->usual_ms)
        p->timeouts = 0;
}

#endif
