/* SPDX-License-Identifier: Apache-2.0
 *
 * belay admin backup and verify.
 */
#ifndef BELAY_CLI_ADMIN_BACKUP_H
#define BELAY_CLI_ADMIN_BACKUP_H

#include "cli/admin/admin.h"

/* Return the exit code, after a report. */
int admin_backup(const struct admin_options *o, const char *to); /* a file or a directory */
int admin_verify(const struct admin_options *o, const char *file);

#endif
