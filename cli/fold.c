/* SPDX-License-Identifier: Apache-2.0
 *
 * See fold.h.
 */
#include "cli/fold.h"

#include "base/mem.h"
#include "cli/top/screen.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#define CUT ".."
#define DEEPEST 3 /* an indent of at most 1/3 of the width */

int fold_columns(void)
{
    int rows, columns;
    if (!isatty(STDOUT_FILENO))
        return 0;
    screen_size(&rows, &columns);
    return columns;
}

/* The bytes of the next character and the columns that it takes. Malformed bytes take one each. */
static size_t next(const char *text, size_t n, size_t *ret_columns)
{
    wchar_t c;
    mbstate_t state = {0};
    if (text[0] == '\033' && n > 1 && text[1] == '[') { /* "\033[1;33m" */
        size_t end = 2;
        while (end < n && (text[end] < '@' || text[end] > '~'))
            end++;
        *ret_columns = 0;
        return end < n ? end + 1 : n;
    }
    size_t bytes = mbrtowc(&c, text, n, &state);
    *ret_columns = 1;
    if (bytes == 0 || bytes > n)
        return 1;
    int width = wcwidth(c);
    *ret_columns = width < 0 ? 1 : (size_t)width;
    return bytes;
}

size_t fold_width(const char *text, size_t n)
{
    size_t sum = 0, columns;
    for (size_t at = 0; at < n; sum += columns)
        at += next(text + at, n - at, &columns);
    return sum;
}

/* The bytes that fit. */
static size_t fitting(const char *text, size_t n, size_t columns)
{
    size_t at = 0, used = 0, more;
    while (at < n) {
        size_t bytes = next(text + at, n - at, &more);
        if (used + more > columns && at > 0)
            break;
        at += bytes;
        used += more;
    }
    return at;
}

static size_t part(const char *text, size_t n, size_t columns)
{
    size_t fits = fitting(text, n, columns), space = fits;
    if (fits == n)
        return n;
    while (space > 0 && text[space] != ' ')
        space--;
    while (space > 0 && text[space - 1] == ' ')
        space--;
    return space > 0 ? space : fits;
}

size_t fold_part(const char *text, size_t columns)
{
    return part(text, strlen(text), columns);
}

char *fold_shorten(const char *text, int columns)
{
    size_t n = strlen(text), width = fold_width(text, n), max = (size_t)columns;
    if (width <= max)
        return mem_strdup(text);
    size_t tail = (max - strlen(CUT)) / 2, from = 0;
    size_t head = fitting(text, n, max - strlen(CUT) - tail);
    while (from < n && fold_width(text + from, n - from) > tail) {
        size_t ignored;
        from += next(text + from, n - from, &ignored);
    }
    return mem_printf("%.*s" CUT "%s", (int)head, text, text + from);
}

/* Where the line's text begins: after "name   " or a bullet; else after its spaces. */
static size_t indent_of(const char *text, size_t n, size_t columns)
{
    size_t spaces = 0, at;
    while (spaces < n && text[spaces] == ' ')
        spaces++;
    for (at = spaces; at + 1 < n && at < columns / DEEPEST; at++)
        if (text[at] == ' ' && text[at + 1] == ' ')
            break;
    if (at + 1 < n && at < columns / DEEPEST)
        while (at < n && text[at] == ' ')
            at++;
    else if (spaces + 1 < n && text[spaces + 1] == ' ' && spaces > 0)
        at = spaces + 2;
    else
        at = spaces;
    return at > columns / DEEPEST ? 0 : at;
}

/* A word that is longer than a line stays whole: it may be copied. */
static size_t whole_words(const char *text, size_t n, size_t columns)
{
    size_t bytes = part(text, n, columns);
    while (bytes < n && text[bytes] != ' ')
        bytes++;
    return bytes;
}

void fold_line(const char *text, size_t n, int columns, FILE *out)
{
    size_t max = columns > 0 ? (size_t)columns : n + 1, indent = indent_of(text, n, max), at = 0;
    if (columns <= 0 || fold_width(text, n) <= max) {
        fprintf(out, "%.*s\n", (int)n, text);
        return;
    }
    while (at < n) {
        size_t bytes = whole_words(text + at, n - at, at == 0 ? max : max - indent);
        fprintf(out, "%*s%.*s\n", at == 0 ? 0 : (int)indent, "", (int)bytes, text + at);
        at += bytes;
        while (at < n && text[at] == ' ')
            at++;
    }
}

void fold_begin(struct fold *f)
{
    if (!isatty(STDOUT_FILENO) || f->was)
        return;
    f->kept = open_memstream(&f->text, &f->n);
    if (!f->kept)
        return;
    fflush(stdout);
    f->was = stdout;
    stdout = f->kept;
}

void fold_end(struct fold *f)
{
    if (!f->was)
        return;
    fclose(f->kept);
    stdout = f->was;
    int columns = fold_columns();
    for (size_t at = 0; at < f->n;) {
        const char *line = f->text + at, *end = memchr(line, '\n', f->n - at);
        size_t n = end ? (size_t)(end - line) : f->n - at;
        fold_line(line, n, columns, stdout);
        at += n + 1;
    }
    free(f->text);
    *f = (struct fold){0};
}
