/* SPDX-License-Identifier: Apache-2.0
 *
 * When the morning digest is sent, and to whom.
 */
#ifndef BELAY_SCHEDULER_CORE_LIFECYCLE_DIGEST_OPTIONS_H
#define BELAY_SCHEDULER_CORE_LIFECYCLE_DIGEST_OPTIONS_H

#include "base/zone.h"
#include <stdint.h>

#define DIGEST_MAILS_MAX 16
#define DIGEST_USERS_MAX 1000
#define DIGEST_PERIOD_MAX_MS (7 * 86400000LL) /* that one digest covers */

struct digest_options {
    int32_t at_minute;            /* of the day, in the zone */
    const struct time_zone *zone; /* borrowed */
    int32_t n_mails;              /* configured addresses, at most DIGEST_MAILS_MAX */
};

#endif
