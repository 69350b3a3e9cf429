/* SPDX-License-Identifier: Apache-2.0 */
#include "job/secret_ref.h"

#include "base/str.h"
#include <string.h>

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"
#define DIGITS "0123456789"

int secret_name_check(const char *name, struct err *e)
{
    char shown[STR_SHOW_MAX];
    size_t n = strlen(name);
    if (n > 0 && n < SECRET_NAME_MAX && strchr(LETTERS DIGITS, name[0]) &&
        strspn(name, LETTERS DIGITS "-.") == n)
        return 0;
    return err_set(e, ERR_INVALID,
        "%s is not a secret's name: expected at most %d letters, digits, '_', '-' and '.', of "
        "which the first is no '-' or '.'",
        str_show(name, shown), SECRET_NAME_MAX - 1);
}

static bool is_variable(const char *text)
{
    size_t n = strlen(text);
    return n > 0 && n < SECRET_NAME_MAX && strchr(LETTERS, text[0]) &&
           strspn(text, LETTERS DIGITS) == n;
}

int secret_ref_parse(const char *text, struct secret_ref *ret, struct err *e)
{
    char copy[SECRET_REF_TEXT_MAX], shown[STR_SHOW_MAX];
    struct secret_ref r = {0};
    if (!STR_COPY(copy, text) || str_has_control(copy))
        return err_set(e, ERR_INVALID,
            "%s: expected [OWNER/]NAME, [OWNER/]NAME=VARIABLE or [OWNER/]NAME=file",
            str_show(text, shown));
    char *target = strchr(copy, '='), *name = copy, *slash;
    if (target)
        *target++ = '\0';
    if ((slash = strrchr(copy, '/'))) {
        *slash = '\0';
        name = slash + 1;
        if (!copy[0] || strchr(copy, '/') || !STR_COPY(r.owner, copy))
            return err_set(e, ERR_INVALID, "%s: expected a user before the slash, as in ann/wandb",
                str_show(text, shown));
    }
    int rc = secret_name_check(name, e);
    if (rc != 0)
        return rc;
    STR_COPY(r.name, name);
    if (target && !str_eq(target, "file")) {
        if (!is_variable(target))
            return err_set(e, ERR_INVALID, "%s: expected the name of a variable after '=', or file",
                str_show(text, shown));
        STR_COPY(r.variable, target);
    }
    *ret = r;
    return 0;
}
