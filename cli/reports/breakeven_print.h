/* SPDX-License-Identifier: Apache-2.0
 *
 * The result of `belay breakeven` as text.
 */
#ifndef BELAY_CLI_REPORTS_BREAKEVEN_PRINT_H
#define BELAY_CLI_REPORTS_BREAKEVEN_PRINT_H

#include "money/breakeven.h"

/* Prints everything for people; the months only with cash_flow. */
void breakeven_print(
    const struct breakeven_plan *p, const struct breakeven_result *r, bool cash_flow);

#endif
