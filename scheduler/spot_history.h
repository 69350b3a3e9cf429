/* SPDX-License-Identifier: Apache-2.0
 *
 * What was seen of spot before belayd was started again: the model is told of the machines of the
 * last weeks, as the database has them.
 */
#ifndef BELAY_SCHEDULER_SPOT_HISTORY_H
#define BELAY_SCHEDULER_SPOT_HISTORY_H

#include "db/db.h"

/* Of a model that was just loaded. That there are none does no harm; ERR_IO, ERR_CORRUPT: neither
 * that they cannot be read. */
int spot_history_load(struct db_reader *db, struct model *m, struct wall now, struct err *e);

#endif
