/* SPDX-License-Identifier: Apache-2.0
 *
 * An HTML page with tables and plots, self-contained: it loads nothing.
 */
#ifndef BELAY_REPLAY_PAGE_H
#define BELAY_REPLAY_PAGE_H

#include "base/buf.h"
#include "base/json.h"

/* Adds a page: a template with the marks @HEAD@, @DATA@ (in the body, before the page's script) and
 * @COMMON@ (at the start of the script), in this order. Its script finds the data in `shown`, an
 * element `main`, and the functions of page.js. */
void page_fill(const char *html, const json_t *data, struct buf *out);

/* Adds the page for the result of study_json. */
void page_write(const json_t *result, struct buf *out);

#endif
