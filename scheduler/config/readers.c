/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/config/readers.h"

#include "base/mem.h"
#include "base/minmax.h"
#include "base/str.h"
#include "base/time.h"
#include <stdlib.h>
#include <string.h>

char *config_opt_text(struct yaml_reader *r, const char *key, size_t max)
{
    return mem_strdup(yaml_opt_str(r, key, max, NULL));
}

int64_t config_opt_time(struct yaml_reader *r, const char *key, int64_t min_ms, int64_t fallback_ms)
{
    char least[TIME_EXACT_MAX];
    const struct yaml_node *node = yaml_opt(r, key);
    int64_t ms = yaml_opt_duration_ms(r, key, fallback_ms);
    time_format_exact(min_ms, least);
    if (node && ms < min_ms)
        yaml_reader_fail(r, node, "expected at least %s, found \"%s\"", least, node->text);
    return ms;
}

int64_t config_opt_time_in(
    struct yaml_reader *r, const char *key, int64_t least_ms, int64_t most_ms, int64_t usual_ms)
{
    const struct yaml_node *node = yaml_opt(r, key);
    int64_t ms = yaml_opt_duration_ms(r, key, usual_ms);
    char least[TIME_EXACT_MAX], most[TIME_EXACT_MAX];
    time_format_exact(least_ms, least);
    time_format_exact(min_i64(most_ms, TIME_DURATION_MAX_MS), most);
    if (node && r->rc == 0 && (ms < least_ms || ms > most_ms))
        yaml_reader_fail(
            r, node, "expected a time from %s to %s, found \"%s\"", least, most, node->text);
    return ms;
}

const struct yaml_node *config_opt_entries(struct yaml_reader *root, const char *key, int max)
{
    const struct yaml_node *map = yaml_opt_map(root, key);
    if (map && root->rc == 0 && map->n_items > (size_t)max)
        yaml_reader_fail(root, map, "%s: at most %d, found %zu", key, max, map->n_items);
    return root->rc == 0 ? map : NULL;
}

bool config_is_named(struct yaml_reader *r, const struct yaml_node *node, const char *what, int max)
{
    char shown[STR_SHOW_MAX];
    if (r->rc == 0 && !str_is_name(node->key, (size_t)max))
        yaml_reader_fail(r, node,
            "%s is not the name of %s: letters, digits, '.', '_', '-', at most %d",
            str_show(node->key, shown), what, max);
    return r->rc == 0;
}

const struct yaml_node *config_opt_zone(struct yaml_reader *r, char ret_zone[ZONE_NAME_MAX])
{
    char shown[STR_SHOW_MAX];
    const struct yaml_node *tz = yaml_opt(r, "tz");
    str_copy(ret_zone, ZONE_NAME_MAX, yaml_opt_str(r, "tz", ZONE_NAME_MAX - 1, ZONE_UTC));
    if (r->rc == 0 && !zone_is_name(ret_zone, strlen(ret_zone)))
        yaml_reader_fail(r, tz, "expected a time zone such as Europe/Berlin, found %s",
            str_show(ret_zone, shown));
    return tz;
}

bool config_is_plain(const char *s)
{
    for (; *s; s++)
        if (*s <= ' ' || *s > '~' || *s == '"' || *s == '\'' || *s == '\\')
            return false;
    return true;
}

static bool is_url(const char *text, const char *scheme)
{
    return str_starts(text, scheme) && text[strlen(scheme)] && config_is_plain(text);
}

const char *config_opt_url(struct yaml_reader *r, const char *key, size_t max, const char *scheme,
    const char *other_scheme, const char *fallback)
{
    const struct yaml_node *node = yaml_opt(r, key);
    const char *url = yaml_opt_str(r, key, max, fallback);
    char shown[STR_SHOW_MAX];
    if (node && r->rc == 0 && !is_url(url, scheme) && !(other_scheme && is_url(url, other_scheme)))
        yaml_reader_fail(r, node, "expected %s...%s%s%s, found %s", scheme,
            other_scheme ? " or " : "", other_scheme ? other_scheme : "", other_scheme ? "..." : "",
            str_show(url, shown));
    return url;
}

void config_copy_path(struct yaml_reader *r, const char *key, const char *value, const char *before,
    const char *state_dir, const char *after, char *dst, size_t size)
{
    char *own = mem_printf("%s%s%s", before, state_dir, after);
    if (!str_copy(dst, size, value ? value : own))
        yaml_reader_fail(r, NULL,
            "%s: the default in this state directory, %sSTATE%s, has %zu bytes and may have %zu: "
            "set a shorter one with %s:",
            key, before, after, strlen(own), size - 1, key);
    free(own);
}

int64_t config_opt_bytes(struct yaml_reader *r, const char *key, const char *fallback)
{
    const struct yaml_node *node = yaml_opt(r, key);
    const char *text = yaml_opt_str(r, key, 32, fallback);
    struct err why;
    int64_t mib = 0;
    if (r->rc != 0 || str_eq(text, "none"))
        return 0;
    if (str_to_mib(text, &mib, &why) != 0)
        yaml_reader_fail(r, node, "%s, or none", why.text);
    return mib << 20;
}

bool config_opt_truth(struct yaml_reader *r, const char *key, bool otherwise)
{
    static const char *const words[] = {"false", "true", NULL};
    return yaml_opt_enum(r, key, words, otherwise) == 1;
}
