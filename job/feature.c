/* SPDX-License-Identifier: Apache-2.0
 *
 * A constraint is parsed by recursive descent into a postfix program whose names are offsets.
 * Evaluating it allocates nothing, because it is done for many nodes.
 */
#include "job/feature.h"

#include "base/str.h"
#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* Offsets of names are smaller than these: a text is shorter than CONSTRAINT_TEXT_MAX, and each
 * name takes a separator. */
#define OP_AND 254
#define OP_OR 255

static bool is_char(char c)
{
    return isalnum((unsigned char)c) || (c && strchr("._-+:", c));
}

bool feature_is_name(const char *s)
{
    size_t n = 0;
    while (is_char(s[n]))
        n++;
    return n > 0 && n < FEATURE_MAX && !s[n];
}

int feature_check(const char *name, struct err *e)
{
    char shown[STR_SHOW_MAX];
    if (feature_is_name(name))
        return 0;
    return err_set(e, ERR_INVALID,
        "expected a word of letters, digits and . _ - + :, at most %d, found %s", FEATURE_MAX - 1,
        str_show(name, shown));
}

bool features_has(const char *set, const char *name)
{
    size_t n = strlen(name);
    for (const char *p = set; (p = strstr(p, name)) != NULL; p++)
        if (p > set && p[-1] == ',' && p[n] == ',')
            return true;
    return false;
}

bool features_add(char *set, size_t size, const char *name)
{
    size_t n = strlen(set);
    if (!feature_is_name(name))
        return false;
    if (features_has(set, name))
        return true;
    if (n + strlen(name) + 2 >= size)
        return false;
    snprintf(set + n, size - n, "%s%s,", n ? "" : ",", name);
    return true;
}

bool features_next(const char *set, size_t *pos, char out[FEATURE_MAX])
{
    const char *p = set + *pos + (set[*pos] == ',');
    size_t n = strcspn(p, ",");
    if (n == 0 || n >= FEATURE_MAX)
        return false;
    memcpy(out, p, n);
    out[n] = '\0';
    *pos = (size_t)(p - set) + n;
    return true;
}

int features_check(const char *set, struct err *e)
{
    char seen[FEATURES_TEXT_MAX] = "", name[FEATURES_TEXT_MAX];
    const char *p = set + (*set == ',');
    if (strlen(set) >= FEATURES_TEXT_MAX)
        return err_set(e, ERR_INVALID, "at most %d bytes together", FEATURES_TEXT_MAX - 3);
    if (!*set)
        return 0;
    do {
        size_t n = strcspn(p, ",");
        memcpy(name, p, n);
        name[n] = '\0';
        p += n + (p[n] == ',');
        int rc = feature_check(name, e);
        if (rc != 0)
            return rc;
        if (features_has(seen, name))
            return err_set(e, ERR_INVALID, "%s is named twice", name);
        if (!features_add(seen, sizeof(seen), name))
            return err_set(e, ERR_INVALID, "at most %d bytes together", FEATURES_TEXT_MAX - 3);
    } while (*p);
    return 0;
}

void features_add_all(char *set, size_t size, const char *other)
{
    char name[FEATURE_MAX];
    for (size_t pos = 0; features_next(other, &pos, name);)
        features_add(set, size, name);
}

/* ---- constraints ---- */

struct reading {
    const char *text, *p;
    struct constraint *c;
    size_t names_len, text_len;
    int depth;
    struct err *e;
};

static int fail(const struct reading *r, const char *expected)
{
    char shown[STR_SHOW_MAX];
    size_t at = (size_t)(r->p - r->text) + 1;
    if (!*r->p)
        return err_set(r->e, ERR_INVALID, "at %zu, its end: expected %s", at, expected);
    return err_set(
        r->e, ERR_INVALID, "at %zu: expected %s, found %s", at, expected, str_show(r->p, shown));
}

static void skip(struct reading *r)
{
    while (*r->p == ' ' || *r->p == '\t')
        r->p++;
}

static void emit(struct reading *r, uint8_t op)
{
    assert(r->c->n_program < sizeof(r->c->program)); /* never longer than the text */
    r->c->program[r->c->n_program++] = op;
}

/* Appends to the normalised text. */
static void write_char(struct reading *r, char c)
{
    r->c->text[r->text_len++] = c;
}

static int read_name(struct reading *r)
{
    const char *start = r->p;
    while (is_char(*r->p))
        r->p++;
    size_t n = (size_t)(r->p - start);
    r->p = n > 0 && n < FEATURE_MAX ? r->p : start;
    if (n == 0)
        return fail(
            r, r->p[0] == '!' ? "a feature's name (there is no !)"
               : r->p[0] == '['
                   ? "a feature's name (there is no [a|b]: (a|b) is for each node by itself)"
                   : "a feature's name or (");
    if (n >= FEATURE_MAX)
        return fail(r, "a feature's name of at most 63 bytes");
    emit(r, (uint8_t)r->names_len);
    memcpy(r->c->names + r->names_len, start, n);
    r->names_len += n;
    r->c->names[r->names_len++] = '\0';
    r->c->n_names++;
    for (size_t i = 0; i < n; i++)
        write_char(r, start[i]);
    return 0;
}

static int read_sum(struct reading *r, char *ret_op);

/* Reads a name, or an expression in parentheses; parentheses around a single term are dropped. */
static int read_term(struct reading *r)
{
    char op = 0;
    skip(r);
    if (*r->p != '(')
        return read_name(r);
    if (++r->depth > CONSTRAINT_DEPTH_MAX)
        return fail(r, "at most 16 parentheses in each other");
    size_t from = r->text_len;
    r->p++;
    write_char(r, '(');
    int rc = read_sum(r, &op);
    if (rc)
        return rc;
    if (*r->p != ')')
        return fail(
            r, *r->p == '*' ? "& or | or ) (there are no numbers of nodes)" : "& or | or )");
    r->p++;
    r->depth--;
    if (op) {
        write_char(r, ')');
    } else {
        memmove(r->c->text + from, r->c->text + from + 1, r->text_len - from - 1);
        r->c->text[--r->text_len] = '\0';
    }
    return 0;
}

/* Reads terms joined by one operator, returned in *ret_op; 0 if there is only one term. */
static int read_sum(struct reading *r, char *ret_op)
{
    char op = 0;
    int rc = read_term(r);
    for (;;) {
        if (rc)
            return rc;
        skip(r);
        if (*r->p != '&' && *r->p != '|')
            break;
        if (op && *r->p != op)
            return fail(r, "parentheses around what belongs together, before it is mixed with the "
                           "other operator");
        op = *r->p++;
        write_char(r, op);
        rc = read_term(r);
        if (!rc)
            emit(r, op == '&' ? OP_AND : OP_OR);
    }
    *ret_op = op;
    return 0;
}

int constraint_parse(const char *text, struct constraint *ret_constraint, struct err *e)
{
    struct constraint c = {0};
    struct reading r = {.text = text, .p = text, .c = &c, .e = e};
    char op;
    if (strlen(text) >= CONSTRAINT_TEXT_MAX - 8)
        return err_set(
            e, ERR_INVALID, "at most %d bytes, found %zu", CONSTRAINT_TEXT_MAX - 9, strlen(text));
    skip(&r);
    int rc = *r.p ? read_sum(&r, &op) : 0;
    if (!rc && *r.p)
        rc = fail(&r, *r.p == '*' ? "& or | (there are no numbers of nodes)" : "& or |");
    if (!rc)
        *ret_constraint = c;
    return rc;
}

bool constraint_matches(const struct constraint *c, const char *set)
{
    bool stack[CONSTRAINT_TEXT_MAX];
    size_t n = 0;
    for (size_t i = 0; i < c->n_program; i++) {
        uint8_t op = c->program[i];
        if (op == OP_AND || op == OP_OR) {
            n--;
            stack[n - 1] = op == OP_AND ? stack[n - 1] && stack[n] : stack[n - 1] || stack[n];
        } else {
            stack[n++] = features_has(set, c->names + op);
        }
    }
    return n == 0 || stack[0];
}

const char *constraint_name(const struct constraint *c, size_t i)
{
    const char *p = c->names;
    if (i >= c->n_names)
        return NULL;
    while (i-- > 0)
        p += strlen(p) + 1;
    return p;
}
