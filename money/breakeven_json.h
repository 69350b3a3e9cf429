/* SPDX-License-Identifier: Apache-2.0
 *
 * The result of breakeven.h as JSON.
 */
#ifndef BELAY_MONEY_BREAKEVEN_JSON_H
#define BELAY_MONEY_BREAKEVEN_JSON_H

#include "base/json.h"
#include "money/breakeven.h"

/* The whole result, item by item and month by month; docs/reference/breakeven.md lists the
 * members. */
json_t *breakeven_json(const struct breakeven_plan *p, const struct breakeven_result *r);

#endif
