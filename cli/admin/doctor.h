/* SPDX-License-Identifier: Apache-2.0
 *
 * belay admin doctor: looks at belayd and what it needs, and names a cure for each fault.
 */
#ifndef BELAY_CLI_ADMIN_DOCTOR_H
#define BELAY_CLI_ADMIN_DOCTOR_H

#include "cli/admin/admin.h"

/* Returns the exit code: CLI_FAILED if there is a fault. word is not used. */
int admin_doctor(const struct admin_options *o, const char *word);

#endif
