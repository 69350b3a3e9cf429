/* SPDX-License-Identifier: Apache-2.0
 *
 * Spot observations from before a restart of belayd: gives the model the machines of the last weeks
 * from the database.
 */
#ifndef BELAY_SCHEDULER_SPOT_HISTORY_H
#define BELAY_SCHEDULER_SPOT_HISTORY_H

#include "db/db.h"

/* For a model that was just loaded. An empty history is harmless; so are ERR_IO and ERR_CORRUPT,
 * when it cannot be read. */
int spot_history_load(struct db_reader *db, struct model *m, struct wall now, struct err *e);

#endif
