/* SPDX-License-Identifier: Apache-2.0
 *
 * The page of belay breakeven.
 */
#ifndef BELAY_CLI_HTML_BREAKEVEN_PAGE_H
#define BELAY_CLI_HTML_BREAKEVEN_PAGE_H

#include "base/buf.h"
#include "base/json.h"
#include "base/time.h"

/* result: of breakeven_json. */
void breakeven_page_write(
    const json_t *result, const char *command, struct wall now, struct buf *out);

#endif
