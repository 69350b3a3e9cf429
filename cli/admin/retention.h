/* SPDX-License-Identifier: Apache-2.0
 *
 * belay admin retention: what the database and the output of jobs use, and what goes next.
 */
#ifndef BELAY_CLI_ADMIN_RETENTION_H
#define BELAY_CLI_ADMIN_RETENTION_H

#include "cli/admin/admin.h"

/* Returns the exit code. word is not used. */
int admin_retention(const struct admin_options *o, const char *word);

#endif
