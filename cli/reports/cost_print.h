/* SPDX-License-Identifier: Apache-2.0
 *
 * What was spent, as a table and for a spreadsheet.
 */
#ifndef BELAY_CLI_REPORTS_COST_PRINT_H
#define BELAY_CLI_REPORTS_COST_PRINT_H

#include "cli/cli.h"

/* v is the reply of GET /api/v1/cost; by is what it was asked by, words separated by commas. */
void cost_print_table(const json_t *v, const char *by);
/* A line a row, numbers as the API has them: micro-dollars and milliseconds; those that are not
 * known are empty. */
void cost_print_csv(const json_t *v, const char *by);

#endif
