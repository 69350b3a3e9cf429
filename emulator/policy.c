/* SPDX-License-Identifier: Apache-2.0 */
#include "emulator/policy.h"
#include "base/str.h"
#include <string.h>
#include <strings.h>

#define STATEMENTS_MAX 32
#define LIST_MAX 64

/* ---- reading ---- */

static bool is_texts(const json_t *v)
{
    if (json_is_string(v))
        return true;
    size_t n = json_array_size(v);
    for (size_t i = 0; i < n; i++)
        if (!json_is_string(json_array_get(v, i)))
            return false;
    return n > 0 && n <= LIST_MAX;
}

static int check_condition(const json_t *v, struct err *e)
{
    static const char *const operators[] = {
        "StringLike", "StringEquals", "StringLikeIfExists", "StringEqualsIfExists"};
    const char *op, *key;
    json_t *keys, *values;
    if (!json_is_object(v))
        return err_set(e, ERR_INVALID, "Condition has to be an object");
    json_object_foreach((json_t *)v, op, keys)
    {
        size_t i = 0;
        while (i < sizeof(operators) / sizeof(operators[0]) && !str_eq(op, operators[i]))
            i++;
        if (i == sizeof(operators) / sizeof(operators[0]) || !json_is_object(keys))
            return err_set(e, ERR_INVALID, "the condition operator %.40s is not emulated", op);
        json_object_foreach(
            keys, key, values) if (!str_eq(key, "s3:prefix") || !is_texts(values)) return err_set(e,
            ERR_INVALID, "the condition key %.40s is not emulated", key);
    }
    return 0;
}

static int check_statement(const json_t *s, struct err *e)
{
    static const char *const known[] = {"Sid", "Effect", "Action", "Resource", "Condition"};
    const char *key, *effect = json_string_value(json_object_get(s, "Effect"));
    json_t *v;
    if (!json_is_object(s))
        return err_set(e, ERR_INVALID, "a statement has to be an object");
    json_object_foreach((json_t *)s, key, v)
    {
        size_t i = 0;
        while (i < sizeof(known) / sizeof(known[0]) && !str_eq(key, known[i]))
            i++;
        if (i == sizeof(known) / sizeof(known[0]))
            return err_set(e, ERR_INVALID, "%.40s in a statement is not emulated", key);
    }
    if (!str_eq(effect, "Allow") && !str_eq(effect, "Deny"))
        return err_set(e, ERR_INVALID, "Effect has to be Allow or Deny");
    if (!is_texts(json_object_get(s, "Action")) || !is_texts(json_object_get(s, "Resource")))
        return err_set(e, ERR_INVALID,
            "a statement needs Action and Resource, each a text or a list of texts");
    v = json_object_get(s, "Condition");
    return v ? check_condition(v, e) : 0;
}

static int check_document(const json_t *root, struct err *e)
{
    const char *version = json_string_value(json_object_get(root, "Version"));
    const json_t *statements = json_object_get(root, "Statement");
    size_t n = json_array_size(statements);
    int rc = 0;
    if (!str_eq(version, "2012-10-17"))
        return err_set(e, ERR_INVALID, "Version has to be 2012-10-17");
    if (!json_is_array(statements) || n == 0 || n > STATEMENTS_MAX)
        return err_set(e, ERR_INVALID, "Statement has to be a list of 1 to %d", STATEMENTS_MAX);
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = check_statement(json_array_get(statements, i), e);
    return rc;
}

int policy_parse(const char *text, size_t n, struct policy *ret_policy, struct err *e)
{
    json_t *root = NULL;
    int rc = json_parse(text, n, POLICY_MAX, &root, e);
    if (rc == 0)
        rc = check_document(root, e);
    if (rc == 0)
        ret_policy->statements = json_incref(json_object_get(root, "Statement"));
    json_decref(root);
    return rc;
}

void policy_deinit(struct policy *p)
{
    json_decref(p->statements);
    p->statements = NULL;
}

/* ---- evaluation ---- */

/* '*' matches any text, '?' one character. */
static bool is_like(const char *pattern, const char *text)
{
    const char *star = NULL, *from = NULL;
    while (*text) {
        if (*pattern == '*') {
            star = pattern++;
            from = text;
        } else if (*pattern == '?' || *pattern == *text) {
            pattern++;
            text++;
        } else if (star) {
            pattern = star + 1;
            text = ++from;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return *pattern == '\0';
}

static bool fits(const char *pattern, const char *text, bool with_wildcards)
{
    return with_wildcards ? is_like(pattern, text) : str_eq(pattern, text);
}

static bool fits_one(const json_t *patterns, const char *text, bool with_wildcards)
{
    if (json_is_string(patterns))
        return fits(json_string_value(patterns), text, with_wildcards);
    for (size_t i = 0; i < json_array_size(patterns); i++)
        if (fits(json_string_value(json_array_get(patterns, i)), text, with_wildcards))
            return true;
    return false;
}

static bool is_met(const json_t *condition, const char *prefix)
{
    const char *op, *key;
    json_t *keys, *values;
    json_object_foreach((json_t *)condition, op, keys)
    {
        bool is_like_op = str_starts(op, "StringLike"), if_exists = str_ends(op, "IfExists");
        json_object_foreach(keys, key,
            values) if (prefix ? !fits_one(values, prefix, is_like_op) : !if_exists) return false;
    }
    return true;
}

bool policy_allows(
    const struct policy *p, const char *action, const char *resource, const char *prefix)
{
    bool is_allowed = false;
    for (size_t i = 0; i < json_array_size(p->statements); i++) {
        const json_t *s = json_array_get(p->statements, i);
        const json_t *condition = json_object_get(s, "Condition");
        if (!fits_one(json_object_get(s, "Action"), action, true) ||
            !fits_one(json_object_get(s, "Resource"), resource, true) ||
            (condition && !is_met(condition, prefix)))
            continue;
        if (str_eq(json_string_value(json_object_get(s, "Effect")), "Deny"))
            return false;
        is_allowed = true;
    }
    return is_allowed;
}
