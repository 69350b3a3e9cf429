/* SPDX-License-Identifier: Apache-2.0
 *
 * A page is a template with three marks: the common head, the data with the plotting library, and
 * the common script (page.css, page.js). The data is in a script element and must not contain its
 * end tag, so '<', which only occurs in strings, is escaped.
 */
#include "replay/page.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* from base/embed.py */
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

/* Adds the text up to the mark; returns the text after it. */
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
