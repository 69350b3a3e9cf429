/* SPDX-License-Identifier: Apache-2.0
 *
 * The page of belay cost --weekly-report, and its mail. Neither has a script.
 */
#ifndef BELAY_CLI_HTML_WEEKLY_PAGE_H
#define BELAY_CLI_HTML_WEEKLY_PAGE_H

#include "cli/html/page.h"

/* report: what the verb prints with --json. */
void weekly_page_write(const json_t *report, enum page_form form, struct wall now, struct buf *out);

#endif
