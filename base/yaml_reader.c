/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading one mapping: every getter records the key it asked for (so that finish can find unknown
 * ones) and, until the first error, checks type and range.
 */
#include "base/yaml.h"

#include "base/str.h"
#include "base/time.h"
#include "base/vformat.h"
#include <assert.h>
#include <string.h>

static const char *describe(const struct yaml_node *node, char shown[STR_SHOW_MAX])
{
    switch (node->type) {
    case YAML_SCALAR:
        return str_show(node->text, shown);
    case YAML_SEQUENCE:
        return "a list";
    case YAML_MAPPING:
        return "a mapping";
    }
    return "?";
}

void yaml_reader_fail(struct yaml_reader *r, const struct yaml_node *node, const char *fmt, ...)
{
    if (r->rc)
        return;
    char text[ERR_TEXT_MAX];
    VFORMAT(text, fmt);
    char shown[STR_SHOW_MAX];
    const char *key = node ? node->key : r->map ? r->map->key : NULL;
    if (key && !str_is_name(key, STR_SHOW_MAX)) /* in a mapping of names any text can be a key */
        key = str_show(key, shown);
    r->lacks = !node;
    if (!node)
        node = r->map;
    if (!node)
        r->rc = err_set(r->e, ERR_INVALID, "%s: %s", r->file, text);
    else
        r->rc = err_set(r->e, ERR_INVALID, "%s:%d: %s%s%s", r->file, node->line, key ? key : "",
            key ? ": " : "", text);
}

static void mismatch(struct yaml_reader *r, const struct yaml_node *node, const char *expected)
{
    char shown[STR_SHOW_MAX];
    yaml_reader_fail(r, node, "expected %s, found %s", expected, describe(node, shown));
}

void yaml_reader_init(
    struct yaml_reader *r, const char *file, const struct yaml_node *map, struct err *e)
{
    *r = (struct yaml_reader){.file = file, .map = map, .e = e};
    if (!map)
        yaml_reader_fail(r, NULL, "expected a mapping, found nothing");
    else if (map->type != YAML_MAPPING)
        mismatch(r, map, "a mapping");
}

static bool is_known_key(const struct yaml_reader *r, const char *key)
{
    for (size_t i = 0; i < r->n_seen; i++)
        if (str_eq(r->seen[i], key))
            return true;
    return false;
}

const struct yaml_node *yaml_opt(struct yaml_reader *r, const char *key)
{
    if (!is_known_key(r, key)) {
        assert(r->n_seen < YAML_READER_KEYS_MAX);
        r->seen[r->n_seen++] = key;
    }
    for (size_t i = 0; r->rc == 0 && i < r->map->n_items; i++)
        if (str_eq(r->map->items[i]->key, key))
            return yaml_is_null(r->map->items[i]) ? NULL : r->map->items[i];
    return NULL;
}

const struct yaml_node *yaml_opt_map(struct yaml_reader *r, const char *key)
{
    const struct yaml_node *node = yaml_opt(r, key);
    if (node && node->type != YAML_MAPPING) {
        mismatch(r, node, "a mapping");
        return NULL;
    }
    return node;
}

const struct yaml_node *yaml_opt_seq(struct yaml_reader *r, const char *key, size_t max_items)
{
    const struct yaml_node *node = yaml_opt(r, key);
    if (node && node->type != YAML_SEQUENCE)
        mismatch(r, node, "a list");
    else if (node && node->n_items > max_items)
        yaml_reader_fail(r, node, "%zu items, at most %zu are allowed", node->n_items, max_items);
    return r->rc ? NULL : node;
}

/* The scalar at key; NULL if it is absent or not a scalar (which is an error). */
static const struct yaml_node *scalar(struct yaml_reader *r, const char *key, const char *expected)
{
    const struct yaml_node *node = yaml_opt(r, key);
    if (node && node->type != YAML_SCALAR) {
        mismatch(r, node, expected);
        return NULL;
    }
    return node;
}

const char *yaml_opt_str(
    struct yaml_reader *r, const char *key, size_t max_len, const char *fallback)
{
    const struct yaml_node *node = scalar(r, key, "a text");
    if (node && strlen(node->text) > max_len) {
        yaml_reader_fail(
            r, node, "%zu bytes long, at most %zu are allowed", strlen(node->text), max_len);
        return fallback;
    }
    return node ? node->text : fallback;
}

const char *yaml_req_str(struct yaml_reader *r, const char *key, size_t max_len)
{
    const char *text = yaml_opt_str(r, key, max_len, NULL);
    if (!text)
        yaml_reader_fail(r, NULL, "\"%s\" is missing", key);
    return text;
}

int64_t yaml_opt_i64(
    struct yaml_reader *r, const char *key, int64_t min, int64_t max, int64_t fallback)
{
    const struct yaml_node *node = scalar(r, key, "an integer");
    int64_t value = fallback;
    struct err e;
    if (node && str_to_i64(node->text, min, max, key, &value, &e))
        /* yaml_reader_fail adds the key itself */
        yaml_reader_fail(r, node, "%s", e.text + strlen(key) + 2);
    return value;
}

int64_t yaml_opt_duration_ms(struct yaml_reader *r, const char *key, int64_t fallback_ms)
{
    const struct yaml_node *node = scalar(r, key, "a duration such as 90s or 10m");
    int64_t value = fallback_ms;
    struct err e;
    if (node && time_parse_duration(node->text, false, &value, &e))
        yaml_reader_fail(r, node, "%s", e.text);
    return value;
}

int64_t yaml_opt_uusd(struct yaml_reader *r, const char *key, int64_t fallback_uusd)
{
    const struct yaml_node *node = scalar(r, key, "an amount in dollars");
    int64_t value = fallback_uusd;
    struct err e;
    if (node && str_to_uusd(node->text, &value, &e))
        yaml_reader_fail(r, node, "%s", e.text);
    return value;
}

int yaml_opt_enum(struct yaml_reader *r, const char *key, const char *const *names, int fallback)
{
    const struct yaml_node *node = scalar(r, key, "a word");
    if (!node)
        return fallback;
    for (int i = 0; names[i]; i++)
        if (str_eq(names[i], node->text))
            return i;
    struct buf expected = {0};
    str_list_names(&expected, node->text, names);
    mismatch(r, node, buf_str(&expected));
    buf_deinit(&expected);
    return fallback;
}

/* node is the first key that no getter asked for. */
static void fail_unknown(struct yaml_reader *r, const struct yaml_node *node)
{
    const char *known[YAML_READER_KEYS_MAX + 1] = {0};
    char shown[STR_SHOW_MAX];
    memcpy(known, r->seen, r->n_seen * sizeof(known[0]));
    const char *nearest = str_nearest(node->key, known);
    r->lacks = false;
    r->rc = err_set(r->e, ERR_INVALID, "%s:%d: unknown key %s%s%s%s", r->file, node->line,
        str_show(node->key, shown), nearest ? "; did you mean \"" : "", nearest ? nearest : "",
        nearest ? "\"?" : "");
}

int yaml_reader_finish(struct yaml_reader *r)
{
    bool is_mapping = r->map && r->map->type == YAML_MAPPING;
    for (size_t i = 0; is_mapping && (r->rc == 0 || r->lacks) && i < r->map->n_items; i++)
        if (!is_known_key(r, r->map->items[i]->key))
            fail_unknown(r, r->map->items[i]);
    return r->rc;
}

void yaml_reader_finish_in(struct yaml_reader *outer, struct yaml_reader *r)
{
    int rc = yaml_reader_finish(r);
    if (outer->rc != 0)
        return;
    outer->rc = rc;
    outer->lacks = r->lacks;
}
