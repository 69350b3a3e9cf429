/* SPDX-License-Identifier: Apache-2.0
 *
 * `belay checkpoint adopt`: gives a store whose cluster is gone to the next belayd that starts with
 * it.
 */
#ifndef BELAY_CLI_ADOPT_H
#define BELAY_CLI_ADOPT_H

#include "cli/checkpoint_store.h"

/* Shows the current owner and asks for confirmation, unless `yes`. Returns the exit code, after a
 * report. */
int adopt_run(const struct checkpoints_options *o, bool yes);

#endif
