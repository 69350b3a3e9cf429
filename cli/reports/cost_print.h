/* SPDX-License-Identifier: Apache-2.0
 *
 * Spending, as a table and for a spreadsheet.
 */
#ifndef BELAY_CLI_REPORTS_COST_PRINT_H
#define BELAY_CLI_REPORTS_COST_PRINT_H

#include "cli/cli.h"

/* v is the reply of GET /api/v1/cost; by is its grouping, comma-separated words. */
void cost_print_table(const json_t *v, const char *by);
/* One line per row, with the API's numbers: micro-dollars and milliseconds; unknown ones are empty.
 */
void cost_print_csv(const json_t *v, const char *by);

#endif
