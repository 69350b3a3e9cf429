/* SPDX-License-Identifier: Apache-2.0
 *
 * The text is parsed again for each object: filters are short, and nothing is allocated. Both sides
 * of an AND and an OR are always parsed, so that an error does not depend on the object.
 */
#include "emulator/gce/filter.h"
#include "base/str.h"
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define WORD_MAX 512

struct parse {
    const char *at;
    const json_t *object;
    int depth, n_terms;
    bool has_eq, has_other; /* eq and ne must not be mixed with the other operators */
    struct err *e;
};

static void skip(struct parse *p)
{
    while (*p->at == ' ' || *p->at == '\t' || *p->at == '\n')
        p->at++;
}

static int fail(struct parse *p, const char *what)
{
    return err_set(
        p->e, ERR_INVALID, "Invalid value for field 'filter': %s at \"%.40s\"", what, p->at);
}

/* ---- Words ---- */

static bool is_word(char c)
{
    return c && !strchr(" \t\n()=!<>:\"'", c);
}

static int read_quoted(struct parse *p, char *out)
{
    char quote = *p->at++;
    size_t n = 0;
    for (; *p->at && *p->at != quote; p->at++) {
        if (*p->at == '\\' && quote == '"' && p->at[1])
            p->at++;
        if (n + 1 == WORD_MAX)
            return fail(p, "a word is too long");
        out[n++] = *p->at;
    }
    out[n] = '\0';
    if (!*p->at)
        return fail(p, "a quote is not closed");
    p->at++;
    return 0;
}

static int read_word(struct parse *p, char *out)
{
    size_t n = 0;
    skip(p);
    if (*p->at == '"' || *p->at == '\'')
        return read_quoted(p, out);
    for (; is_word(*p->at); p->at++) {
        if (n + 1 == WORD_MAX)
            return fail(p, "a word is too long");
        out[n++] = *p->at;
    }
    out[n] = '\0';
    return n > 0 ? 0 : fail(p, "expected a name or a value");
}

/* ---- Values ---- */

/* The text of "labels.job" and the like in the object; "" and false if absent. */
static bool get_field(const json_t *object, const char *field, char *out)
{
    char name[WORD_MAX];
    const json_t *v = object;
    out[0] = '\0';
    for (const char *p = field; v && *p;) {
        size_t n = strcspn(p, ".");
        snprintf(name, sizeof(name), "%.*s", (int)n, p);
        v = json_object_get(v, name);
        p += n + (p[n] == '.');
    }
    if (json_is_string(v))
        snprintf(out, WORD_MAX, "%s", json_string_value(v));
    else if (json_is_integer(v))
        snprintf(out, WORD_MAX, "%lld", (long long)json_integer_value(v));
    else if (json_is_boolean(v))
        snprintf(out, WORD_MAX, "%s", json_is_true(v) ? "true" : "false");
    return v != NULL;
}

/* Linear: after a mismatch only the last star is retried. is_regex: . and .* instead of * for any
 * text. */
static bool glob(const char *p, const char *s, bool is_regex)
{
    const char *star = NULL, *retry = NULL;
    for (;;) {
        bool is_star = is_regex ? p[0] == '.' && p[1] == '*' : p[0] == '*';
        bool is_escape = is_regex && p[0] == '\\' && p[1];
        if (is_star) {
            p += is_regex ? 2 : 1;
            star = p;
            retry = s;
        } else if (!*s && !*p) {
            return true;
        } else if (*s && *p && (is_escape ? p[1] == *s : (is_regex && *p == '.') || *p == *s)) {
            p += is_escape ? 2 : 1;
            s++;
        } else if (star && *retry) {
            p = star;
            s = ++retry;
        } else {
            return false;
        }
    }
}

static bool contains(const char *text, const char *part)
{
    for (size_t n = strlen(part); *text; text++)
        if (strncasecmp(text, part, n) == 0)
            return true;
    return !*part;
}

static int compare(const char *a, const char *b)
{
    int64_t x, y;
    if (str_to_i64(a, INT64_MIN + 1, INT64_MAX, "", &x, NULL) == 0 &&
        str_to_i64(b, INT64_MIN + 1, INT64_MAX, "", &y, NULL) == 0)
        return x < y ? -1 : x > y;
    return strcmp(a, b);
}

static const char *const operators[] = {"!=", ">=", "<=", "=", ">", "<", ":"};
#define N_OPERATORS (sizeof(operators) / sizeof(operators[0]))

static bool is_met(const char *op, const char *left, bool is_there, const char *right)
{
    bool is_equal = strchr(right, '*') ? is_there && glob(right, left, false) : str_eq(left, right);
    if (str_eq(op, ":"))
        return strchr(right, '*') ? is_equal : is_there && contains(left, right);
    if (str_eq(op, "=") || str_eq(op, "!="))
        return is_equal == str_eq(op, "=");
    int order = compare(left, right);
    return is_there &&
           (op[0] == '<' ? order < 0 || (op[1] && order == 0) : order > 0 || (op[1] && order == 0));
}

static int check_regex(struct parse *p, const char *text)
{
    for (; *text; text++) {
        if (*text == '\\' && text[1])
            text++;
        else if (strchr("[](){}|+?^$", *text) || (*text == '*'))
            return fail(
                p, "an expression may have . and .* here, and \\ before a literal character;");
        else if (*text == '.' && text[1] == '*')
            text++;
    }
    return 0;
}

/* ---- The grammar ---- */

static int read_term(struct parse *p, bool *ret_fits)
{
    char field[WORD_MAX], op[WORD_MAX] = "", left[WORD_MAX], right[WORD_MAX];
    if (p->n_terms++ == GCE_FILTER_TERMS_MAX)
        return fail(p, "too many terms");
    int rc = read_word(p, field);
    skip(p);
    for (size_t k = 0; rc == 0 && k < N_OPERATORS && !op[0]; k++)
        if (str_starts(p->at, operators[k])) {
            snprintf(op, sizeof(op), "%s", operators[k]);
            p->at += strlen(op);
            p->has_other = true;
        }
    bool is_regex = rc == 0 && !op[0];
    if (is_regex) {
        rc = read_word(p, op);
        p->has_eq = true;
        if (rc == 0 && !str_eq(op, "eq") && !str_eq(op, "ne"))
            rc = fail(p, "expected an operator");
    }
    if (rc == 0)
        rc = read_word(p, right);
    if (rc == 0 && is_regex)
        rc = check_regex(p, right);
    if (rc < 0)
        return rc;
    bool is_there = get_field(p->object, field, left);
    *ret_fits =
        is_regex ? glob(right, left, true) == str_eq(op, "eq") : is_met(op, left, is_there, right);
    return 0;
}

static int read_or(struct parse *p, bool *ret_fits);

static int read_factor(struct parse *p, bool *ret_fits)
{
    skip(p);
    if (*p->at != '(')
        return read_term(p, ret_fits);
    if (p->depth++ == GCE_FILTER_DEPTH_MAX)
        return fail(p, "too many parentheses");
    p->at++;
    int rc = read_or(p, ret_fits);
    skip(p);
    if (rc == 0 && *p->at != ')')
        rc = fail(p, "expected )");
    if (rc == 0)
        p->at++;
    p->depth--;
    return rc;
}

static bool take_word(struct parse *p, const char *word)
{
    size_t n = strlen(word);
    skip(p);
    if (strncmp(p->at, word, n) != 0 || is_word(p->at[n]))
        return false;
    p->at += n;
    return true;
}

static bool starts_or(const struct parse *p)
{
    return strncmp(p->at, "OR", 2) == 0 && !is_word(p->at[2]);
}

static int read_and(struct parse *p, bool *ret_fits)
{
    bool fits = false, next;
    int rc = read_factor(p, &fits);
    for (;;) {
        bool has_and = rc == 0 && take_word(p, "AND");
        if (rc < 0 || (!has_and && (!*p->at || *p->at == ')' || starts_or(p))))
            break;
        rc = read_factor(p, &next);
        fits = rc == 0 && fits && next;
    }
    *ret_fits = fits;
    return rc;
}

static int read_or(struct parse *p, bool *ret_fits)
{
    bool fits = false, next;
    int rc = read_and(p, &fits);
    while (rc == 0 && take_word(p, "OR")) {
        rc = read_and(p, &next);
        fits = rc == 0 && (fits || next);
    }
    *ret_fits = fits;
    return rc;
}

int gce_filter_matches(const char *filter, const json_t *object, bool *ret_fits, struct err *e)
{
    struct parse p = {.at = filter, .object = object, .e = e};
    bool fits = false;
    if (strlen(filter) > GCE_FILTER_MAX)
        return err_set(
            e, ERR_INVALID, "Invalid value for field 'filter': more than %d bytes", GCE_FILTER_MAX);
    int rc = read_or(&p, &fits);
    if (rc == 0 && *p.at)
        rc = fail(&p, "unexpected text");
    if (rc == 0 && p.has_eq && p.has_other)
        rc = err_set(e, ERR_INVALID,
            "Invalid value for field 'filter': eq and ne cannot be mixed with the others");
    if (rc == 0)
        *ret_fits = fits;
    return rc;
}
