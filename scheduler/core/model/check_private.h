/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files that check the model share.
 */
#ifndef BELAY_SCHEDULER_CORE_MODEL_CHECK_PRIVATE_H
#define BELAY_SCHEDULER_CORE_MODEL_CHECK_PRIVATE_H

#include "scheduler/core/model/model.h"

#define BROKEN(...) err_set(e, ERR_INTERNAL, __VA_ARGS__)

/* Jobs, arrays, dependencies, and the queue with its shapes and demand classes (check_jobs.c). */
int check_jobs(const struct model *m, struct err *e);

#endif
