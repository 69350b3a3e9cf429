/* SPDX-License-Identifier: Apache-2.0 */
#include "emulator/xml_write.h"
#include "base/vformat.h"
#include <stdio.h>
#include <string.h>

void xmlw_open(struct buf *b, const char *name)
{
    buf_printf(b, "<%s>", name);
}

void xmlw_close(struct buf *b, const char *name)
{
    buf_printf(b, "</%s>", name);
}

static void escape(struct buf *b, const char *value)
{
    for (const char *p = value; *p; p++) {
        unsigned char c = (unsigned char)*p;
        if (c == '&')
            buf_adds(b, "&amp;");
        else if (c == '<')
            buf_adds(b, "&lt;");
        else if (c == '>')
            buf_adds(b, "&gt;");
        else if (c == '"')
            buf_adds(b, "&quot;");
        else if (c < 0x20 && c != '\t' && c != '\n')
            buf_addc(b, '?');
        else if (strncmp(p, "\xef\xbf\xbe", 3) == 0 || strncmp(p, "\xef\xbf\xbf", 3) == 0)
            buf_addc(b, '?'), p += 2; /* U+FFFE and U+FFFF */
        else
            buf_addc(b, *p);
    }
}

void xmlw_leaf(struct buf *b, const char *name, const char *value)
{
    if (!value)
        return;
    xmlw_open(b, name);
    escape(b, value);
    xmlw_close(b, name);
}

void xmlw_printf(struct buf *b, const char *name, const char *fmt, ...)
{
    char value[1024];
    VFORMAT(value, fmt);
    xmlw_leaf(b, name, value);
}
