/* SPDX-License-Identifier: Apache-2.0
 *
 * Drills for people (docs/reference/api.md, DRILL).
 */
#ifndef BELAY_CLI_DRILL_H
#define BELAY_CLI_DRILL_H

#include "cli/cli.h"

/* Prints the outcome and its figures, one per line. */
void drill_print(const json_t *drill);

#endif
