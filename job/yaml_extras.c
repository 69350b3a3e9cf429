/* SPDX-License-Identifier: Apache-2.0 */
#include "job/yaml_extras.h"

#include "base/str.h"

void yaml_opt_features(struct yaml_reader *r, const char *key, char ret_set[FEATURES_TEXT_MAX])
{
    const struct yaml_node *seq = yaml_opt_seq(r, key, FEATURES_TEXT_MAX);
    struct err why;
    ret_set[0] = '\0';
    for (size_t i = 0; seq && i < seq->n_items; i++) {
        const struct yaml_node *item = seq->items[i];
        if (item->type != YAML_SCALAR)
            yaml_reader_fail(r, item, "%s: expected words, found something else", key);
        else if (feature_check(item->text, &why) != 0)
            yaml_reader_fail(r, item, "%s: %s", key, why.text);
        else if (!features_add(ret_set, FEATURES_TEXT_MAX, item->text))
            yaml_reader_fail(r, item, "%s: at most %d bytes together", key, FEATURES_TEXT_MAX - 3);
    }
}

/* The keys of a mapping are the names. */
static bool read_count(
    struct yaml_reader *r, const char *key, const struct yaml_node *item, struct count *ret_count)
{
    struct counts one = {0};
    struct err why;
    int64_t n = 0;
    int rc = item->type == YAML_SCALAR
                 ? str_to_i64(item->text, 1, COUNTS_NUMBER_MAX, "its number", &n, &why)
                 : err_set(&why, ERR_INVALID, "expected a number");
    if (rc == 0)
        rc = counts_add(&one, item->key, n, &why);
    if (rc != 0)
        yaml_reader_fail(r, item, "%s: %s", key, why.text);
    else
        *ret_count = one.v[0];
    return rc == 0;
}

size_t yaml_opt_count_list(struct yaml_reader *r, const char *key, struct count *out, size_t max)
{
    const struct yaml_node *map = yaml_opt_map(r, key);
    size_t n = 0;
    if (map && map->n_items > max)
        yaml_reader_fail(r, map, "at most %zu, found %zu", max, map->n_items);
    while (map && r->rc == 0 && n < map->n_items && read_count(r, key, map->items[n], &out[n]))
        n++;
    return r->rc == 0 ? n : 0;
}

void yaml_opt_counts(struct yaml_reader *r, const char *key, char out[COUNTS_TEXT_MAX])
{
    struct count list[COUNTS_MAX];
    struct counts c = {0};
    size_t n = yaml_opt_count_list(r, key, list, COUNTS_MAX);
    for (size_t i = 0; i < n; i++)
        counts_add(&c, list[i].name, list[i].n, NULL);
    counts_format(&c, out);
}
