/* SPDX-License-Identifier: Apache-2.0 */
#include "cloud/console.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#define SECRET_MIN 40
#define RAW_MAX (16 * CLOUD_CONSOLE_MAX) /* bytes at the end that are read */

/* Returns the end of the escape sequence that begins at p. */
static const char *skip_escape(const char *p, const char *end)
{
    p++;
    if (p < end && *p == '[') {
        for (p++; p < end && (unsigned char)*p >= 0x20 && (unsigned char)*p < 0x40; p++)
            ;
        return p < end ? p + 1 : p;
    }
    if (p < end && *p == ']') {
        while (p < end && *p != '\a' && *p != '\n')
            p++;
        return p;
    }
    return p < end ? p + 1 : p;
}

static bool is_secret_char(char c)
{
    return isalnum((unsigned char)c) || (c && strchr("_-+/=", c));
}

/* Adds a line, unless it is empty. */
static void add_line(const char *line, size_t n, struct buf *out)
{
    while (n > 0 && line[n - 1] == ' ')
        n--;
    for (size_t i = 0; i < n;) {
        size_t word = 0;
        while (i + word < n && is_secret_char(line[i + word]))
            word++;
        if (word >= SECRET_MIN)
            buf_adds(out, "[...]");
        else
            buf_add(out, line + i, word > 0 ? word : 1);
        i += word > 0 ? word : 1;
    }
    if (n > 0)
        buf_addc(out, '\n');
}

void cloud_console_clean(const char *raw, size_t n, struct buf *out)
{
    struct buf plain = {0}, lines = {0};
    const char *p = n > RAW_MAX ? raw + n - RAW_MAX : raw, *end = raw + n;
    while (p < end) {
        if (*p == '\033') {
            p = skip_escape(p, end);
            continue;
        }
        unsigned char c = (unsigned char)*p++;
        if (c == '\n' || (c >= ' ' && c < 0x7f))
            buf_addc(&plain, (char)c);
        else if (c == '\t')
            buf_addc(&plain, ' ');
        else if (c >= 0x80)
            buf_addc(&plain, '?');
    }
    const char *text = buf_str(&plain);
    for (size_t at = 0; at < plain.len;) {
        size_t len = strcspn(text + at, "\n");
        add_line(text + at, len, &lines);
        at += len + 1;
    }
    if (lines.len > CLOUD_CONSOLE_MAX) {
        const char *from = lines.data + lines.len - CLOUD_CONSOLE_MAX, *line = strchr(from, '\n');
        from = line && line[1] ? line + 1 : from;
        buf_adds(out, from);
    } else {
        buf_adds(out, buf_str(&lines));
    }
    buf_deinit(&plain);
    buf_deinit(&lines);
}
