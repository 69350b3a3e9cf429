/* SPDX-License-Identifier: Apache-2.0
 *
 * A page is a template, in which three places are filled in: what all pages have in their head, the
 * library that draws with the data, and what all scripts have (page.css, page.js). In a script
 * element nothing may look like its end, so '<' is written as an escape in the data, where it only
 * stands in texts.
 */
#include "replay/page.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* base/embed.py */
extern const char page_html[], page_css[], page_js[], dygraph_js[], dygraph_css[];

static void add_data(const json_t *result, struct buf *out)
{
    char *text = json_dump_text(result);
    for (const char *s = text; *s; s++) {
        if (*s == '<')
            buf_adds(out, "\\u003c");
        else
            buf_addc(out, *s);
    }
    free(text);
}

/* Up to the mark; returns what is behind it. */
static const char *add_until(struct buf *out, const char *from, const char *mark)
{
    const char *at = strstr(from, mark);
    assert(at);
    buf_add(out, from, (size_t)(at - from));
    return at + strlen(mark);
}

void page_fill(const char *html, const json_t *data, struct buf *out)
{
    const char *rest = add_until(out, html, "@HEAD@");
    buf_adds(out, "<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, "
                  "initial-scale=1\">\n<style>");
    buf_adds(out, dygraph_css);
    buf_adds(out, page_css);
    buf_adds(out, "</style>");
    rest = add_until(out, rest, "@DATA@");
    buf_adds(out, "<script>");
    buf_adds(out, dygraph_js);
    buf_adds(out, "</script>\n<script type=\"application/json\" id=\"data\">");
    add_data(data, out);
    buf_adds(out, "</script>");
    rest = add_until(out, rest, "@COMMON@");
    buf_adds(out, page_js);
    buf_adds(out, rest);
}

void page_write(const json_t *result, struct buf *out)
{
    page_fill(page_html, result, out);
}
