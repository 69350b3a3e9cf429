/* SPDX-License-Identifier: Apache-2.0 */
#include "job/pattern.h"

#include "base/buf.h"
#include "base/str.h"
#include <ctype.h>
#include <string.h>

/* Returns the position of the letter after %, or NULL if the pattern is unknown. *ret_width is the
 * width before the letter, at most PATTERN_WIDTH_MAX; 0 if none is given. */
static const char *read_sign(const char *percent, int *ret_width)
{
    const char *p = percent + 1;
    int width = 0;
    while (isdigit((unsigned char)*p) && p - percent <= 2)
        width = width * 10 + (*p++ - '0');
    *ret_width = width > PATTERN_WIDTH_MAX ? PATTERN_WIDTH_MAX : width;
    return *p && strchr("jxuAaJNntrs%", *p) ? p : NULL;
}

static void add_sign(struct buf *out, char letter, int width, const struct pattern_values *v)
{
    const char *text = letter == 'x'   ? v->name
                       : letter == 'u' ? v->user
                       : letter == 'N' ? v->node
                                       : NULL;
    int64_t number = 0;
    switch (letter) {
    case '%':
        buf_addc(out, '%');
        return;
    case 's':
        buf_adds(out, v->step ? v->step : "batch");
        return;
    case 'N':
        buf_add(out, text ? text : "", text ? strcspn(text, ".") : 0);
        return;
    case 'x':
    case 'u':
        buf_adds(out, text ? text : "");
        return;
    case 'j':
    case 'J':
        number = v->job;
        break;
    case 'A':
        number = v->array ? v->array : v->job;
        break;
    case 'a':
        number = v->array ? v->index : PATTERN_NO_INDEX;
        break;
    case 'n':
    case 't':
        number = v->rank;
        break;
    default:
        number = v->restarts;
    }
    buf_printf(out, "%0*lld", width, (long long)number);
    if (letter == 'J' && v->step)
        buf_printf(out, ".%s", v->step);
}

int pattern_expand(
    const char *pattern, const struct pattern_values *v, char **ret_name, struct err *e)
{
    struct buf out = {0};
    bool literal = strchr(pattern, '\\');
    char shown[STR_SHOW_MAX];
    buf_adds(&out, "");
    for (const char *p = pattern; *p && out.len <= PATTERN_PATH_MAX; p++) {
        int width;
        const char *letter = *p == '%' && !literal ? read_sign(p, &width) : NULL;
        if (letter) {
            add_sign(&out, *letter, width, v);
            p = letter;
        } else if (*p != '\\') {
            buf_addc(&out, *p);
        }
    }
    if (out.len > PATTERN_PATH_MAX) {
        buf_deinit(&out);
        return err_set(e, ERR_INVALID, "the name that comes of %s is longer than %d bytes",
            str_show(pattern, shown), PATTERN_PATH_MAX);
    }
    *ret_name = buf_take(&out);
    return 0;
}

bool pattern_has_rank(const char *pattern)
{
    int width;
    if (strchr(pattern, '\\'))
        return false;
    for (const char *p = pattern; *p; p++) {
        const char *letter = *p == '%' ? read_sign(p, &width) : NULL;
        if (letter && strchr("Nnt", *letter))
            return true;
        p = letter ? letter : p;
    }
    return false;
}
