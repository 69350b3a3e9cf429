/* SPDX-License-Identifier: Apache-2.0
 *
 * A page with tables and plots, whole in one file: it fetches nothing.
 */
#ifndef BELAY_REPLAY_PAGE_H
#define BELAY_REPLAY_PAGE_H

#include "base/buf.h"
#include "base/json.h"

/* Adds a page: the text of one, with the marks @HEAD@, @DATA@ (of the body, before the page's
 * script) and @COMMON@ (at the beginning of that) in this order. Its script finds the data in
 * `shown`, an element `main`, and the functions of page.js. */
void page_fill(const char *html, const json_t *data, struct buf *out);

/* Adds the page for what study_json gives. */
void page_write(const json_t *result, struct buf *out);

#endif
