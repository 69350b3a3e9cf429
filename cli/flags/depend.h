/* SPDX-License-Identifier: Apache-2.0
 *
 * --dependency, in sbatch's syntax.
 */
#ifndef BELAY_CLI_FLAGS_DEPEND_H
#define BELAY_CLI_FLAGS_DEPEND_H

#include "base/err.h"
#include "base/json.h"

/* "afterok:17:18_3,after:19+5,singleton", or with '?' instead of ',' if one of them is enough: sets
 * the job specification's depends and depends_any (docs/reference/api.md). A later call replaces an
 * earlier one. ERR_INVALID. */
int depend_parse(const char *text, json_t *spec, struct err *e);

#endif
