/* SPDX-License-Identifier: Apache-2.0
 *
 * belay admin audit-log and log-level.
 */
#ifndef BELAY_CLI_ADMIN_AUDIT_LOG_H
#define BELAY_CLI_ADMIN_AUDIT_LOG_H

#include "cli/admin/admin.h"

/* Return the exit code, after a report. word: NULL to list the log, or "verify". */
int admin_audit_log(const struct admin_options *o, const char *word);
int admin_log_level(const struct admin_options *o, const char *level);

#endif
