/* SPDX-License-Identifier: Apache-2.0 */
#include "emulator/arm/filter.h"
#include "base/str.h"
#include <string.h>

#define WORD_MAX 64

struct scan {
    const char *at;
    struct err *e;
};

static void skip_blanks(struct scan *s)
{
    while (*s->at == ' ')
        s->at++;
}

/* Letters, digits, '/' and '.'; "" if there are none. */
static int scan_word(struct scan *s, char out[WORD_MAX])
{
    size_t n = 0;
    skip_blanks(s);
    for (;; s->at++) {
        char c = *s->at;
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!is_letter && c != '/' && c != '.')
            break;
        if (n + 1 == WORD_MAX)
            return err_set(s->e, ERR_INVALID, "a word is longer than %d characters", WORD_MAX - 1);
        out[n++] = c;
    }
    out[n] = '\0';
    return 0;
}

static int scan_char(struct scan *s, char c)
{
    skip_blanks(s);
    if (*s->at != c)
        return err_set(s->e, ERR_INVALID, "expected '%c'", c);
    s->at++;
    return 0;
}

static int scan_text(struct scan *s, char out[ARM_FILTER_TEXT_MAX])
{
    size_t n = 0;
    if (scan_char(s, '\'') < 0)
        return ERR_INVALID;
    for (;; s->at++) {
        if (!*s->at)
            return err_set(s->e, ERR_INVALID, "unterminated text");
        if (*s->at == '\'' && *++s->at != '\'')
            break;
        if (n + 1 == ARM_FILTER_TEXT_MAX)
            return err_set(
                s->e, ERR_INVALID, "a text is longer than %d bytes", ARM_FILTER_TEXT_MAX - 1);
        out[n++] = *s->at;
    }
    out[n] = '\0';
    return 0;
}

static int find_field(struct scan *s, const char *word, const char *const *names, int *ret_field)
{
    for (int i = 0; names[i]; i++)
        if (str_eq(names[i], word)) {
            *ret_field = i;
            return 0;
        }
    char shown[STR_SHOW_MAX];
    return err_set(s->e, ERR_INVALID, "there is no property %s", str_show(word, shown));
}

static int scan_term(struct scan *s, const char *const *names, struct arm_filter_term *t)
{
    char word[WORD_MAX], test[WORD_MAX];
    int rc = scan_word(s, word);
    if (rc == 0 && str_eq(word, "contains")) {
        t->test = FILTER_CONTAINS;
        if ((rc = scan_char(s, '(')) == 0 && (rc = scan_word(s, word)) == 0 &&
            (rc = find_field(s, word, names, &t->field)) == 0 && (rc = scan_char(s, ',')) == 0 &&
            (rc = scan_text(s, t->text)) == 0)
            rc = scan_char(s, ')');
        return rc;
    }
    if (rc < 0 || (rc = find_field(s, word, names, &t->field)) < 0 || (rc = scan_word(s, test)) < 0)
        return rc;
    if (!str_eq(test, "eq") && !str_eq(test, "ne"))
        return err_set(s->e, ERR_INVALID, "expected eq or ne");
    t->test = str_eq(test, "eq") ? FILTER_EQ : FILTER_NE;
    return scan_text(s, t->text);
}

int arm_filter_parse(
    const char *text, const char *const *names, struct arm_filter *ret_filter, struct err *e)
{
    struct scan s = {.at = text ? text : "", .e = e};
    struct arm_filter f = {.n = 0};
    char word[WORD_MAX];
    skip_blanks(&s);
    while (*s.at) {
        if (f.n == ARM_FILTER_TERMS_MAX)
            return err_set(e, ERR_INVALID, "more than %d terms", ARM_FILTER_TERMS_MAX);
        int rc = scan_term(&s, names, &f.terms[f.n]);
        if (rc < 0)
            return rc;
        f.n++;
        skip_blanks(&s);
        if (!*s.at)
            break;
        if (scan_word(&s, word) < 0 || !str_eq(word, "and"))
            return err_set(e, ERR_INVALID, "expected `and` or the end");
        skip_blanks(&s);
        if (!*s.at)
            return err_set(e, ERR_INVALID, "expected a term after `and`");
    }
    *ret_filter = f;
    return 0;
}

bool arm_filter_passes(const struct arm_filter_term *t, const char *value)
{
    if (t->test == FILTER_CONTAINS)
        return strstr(value, t->text) != NULL;
    return str_eq(value, t->text) == (t->test == FILTER_EQ);
}
