/* SPDX-License-Identifier: Apache-2.0
 *
 * `belay checkpoint adopt`: a store whose cluster is gone is given to the belayd that starts
 * with it next.
 */
#ifndef BELAY_CLI_ADOPT_H
#define BELAY_CLI_ADOPT_H

#include "cli/checkpoints.h"

/* Says whose it is and asks, unless `yes`. Returns the exit code, after a report. */
int adopt_run(const struct checkpoints_options *o, bool yes);

#endif
