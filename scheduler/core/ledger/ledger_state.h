/* SPDX-License-Identifier: Apache-2.0
 *
 * The part of the model that this folder owns: data in the store (storage.c),
 * and the anomalies that were notified (anomalies.c).
 */
#ifndef BELAY_SCHEDULER_CORE_LEDGER_LEDGER_STATE_H
#define BELAY_SCHEDULER_CORE_LEDGER_LEDGER_STATE_H

#include "base/map.h"

struct ledger_state {
    struct map stored;     /* struct stored by job */
    struct smap anomalies; /* struct anomaly_row by "user ann", "pool burst" */
};

#endif
