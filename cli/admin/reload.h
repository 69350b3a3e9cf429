/* SPDX-License-Identifier: Apache-2.0
 *
 * belay admin reload: has belayd read its configuration again.
 */
#ifndef BELAY_CLI_ADMIN_RELOAD_H
#define BELAY_CLI_ADMIN_RELOAD_H

#include "cli/admin/admin.h"

/* Returns the exit code. word is not used. */
int admin_reload(const struct admin_options *o, const char *word);

#endif
