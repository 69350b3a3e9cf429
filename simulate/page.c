/* SPDX-License-Identifier: Apache-2.0
 *
 * The page is a template (page.html), in which three places are filled in: the library that draws, its style, and the data.
 * In a script element nothing may look like its end, so '<' is written as an escape in the data, where it only stands in texts.
 */
#include "simulate/page.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

extern const char page_html[], dygraph_js[], dygraph_css[]; /* base/embed.py */

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
    const char *rest = add_until(out, html, "@STYLE@");
    buf_adds(out, dygraph_css);
    rest = add_until(out, rest, "@LIBRARY@");
    buf_adds(out, dygraph_js);
    rest = add_until(out, rest, "@DATA@");
    add_data(data, out);
    buf_adds(out, rest);
}

void page_write(const json_t *result, struct buf *out)
{
    page_fill(page_html, result, out);
}
