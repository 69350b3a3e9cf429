/* SPDX-License-Identifier: Apache-2.0
 *
 * belay admin restore.
 */
#ifndef BELAY_CLI_ADMIN_RESTORE_H
#define BELAY_CLI_ADMIN_RESTORE_H

#include "cli/admin/admin.h"

/* Returns the exit code, after a report. */
int admin_restore(const struct admin_options *o, const char *file);

#endif
