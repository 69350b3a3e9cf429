/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/config/changes.h"

#include "base/mem.h"
#include "base/str.h"
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define PATH_MAX_BYTES 512
#define SHOWN_BYTES 120
#define NAMED_MAX 8 /* changes that an error names */

enum { LIVE = 1, SECRET = 2 };

struct key {
    const char *path; /* "*" stands for any name; what is below a path is as the path */
    unsigned is;
    size_t offset, bytes; /* of the member of struct config to exchange; 0 bytes: none */
};

#define MEMBER(m) offsetof(struct config, m), sizeof(((struct config *)NULL)->m)
/* The longest path that matches decides; what none matches needs a restart. */
static const struct key keys[] = {
    /* the policy, which is handed to the model (EV_SETTINGS) */
    {"teams", LIVE, 0, 0},
    {"each_user", LIVE, 0, 0},
    {"priority", LIVE, 0, 0},
    {"priority.cpus_per_gpu", 0, 0, 0}, /* usage was counted with them */
    {"priority.cpus_per_gib", 0, 0, 0},
    {"qos", LIVE, 0, 0},
    {"default_team", LIVE, 0, 0},
    /* the model's tables (scheduler/tables.h) */
    {"windows", LIVE, MEMBER(windows)},
    {"windows", LIVE, MEMBER(n_windows)},
    {"calendars", LIVE, MEMBER(calendars)},
    {"calendars", LIVE, MEMBER(n_calendars)},
    {"budgets", LIVE, MEMBER(budgets)},
    {"budgets", LIVE, MEMBER(n_budgets)},
    {"racks", LIVE, MEMBER(racks)},
    {"racks", LIVE, MEMBER(n_racks)},
    {"node_types", LIVE, 0, 0}, /* of racks */
    {"licences", LIVE, MEMBER(licences)},
    {"licences", LIVE, MEMBER(n_licences)},
    {"webhooks", LIVE, MEMBER(notify)},
    {"mail", LIVE, 0, 0}, /* in the same member, as the next one */
    {"notify_allow", LIVE, 0, 0},
    {"digest", LIVE, MEMBER(digest)},
    {"spend_anomalies", LIVE, MEMBER(spend)},
    {"lease", LIVE, MEMBER(lease_ms)},
    {"lease", LIVE, MEMBER(sync_ms)},
    {"store_wait", LIVE, MEMBER(store_wait_ms)},
    {"users", LIVE, MEMBER(access)},
    {"default_role", LIVE, 0, 0}, /* in the same member, as the next three */
    {"visibility", LIVE, 0, 0},
    {"requests_per_second", LIVE, 0, 0},
    {"requests_burst", LIVE, 0, 0},
    {"retention", LIVE, MEMBER(retention)},
    {"retries", LIVE, MEMBER(retries)},
    {"retries_max", LIVE, 0, 0},
    {"failing_nodes", LIVE, MEMBER(failing_nodes)},
    {"no_progress_max", LIVE, MEMBER(no_progress_max)},
    {"hold_in_vain", LIVE, 0, 0},
    {"log_max_per_job", LIVE, MEMBER(log_job_bytes)},
    {"log_max_per_user_day", LIVE, MEMBER(log_user_day_bytes)},
    {"store_max_per_user_day", LIVE, MEMBER(store_user_day_bytes)},
    {"workdir_max_per_user", LIVE, MEMBER(workdir_user_bytes)},
    {"api_token_lifetime", LIVE, MEMBER(api_token_ms)},
    {"node_certificate", LIVE, MEMBER(node_cert_ms)},
    {"orphan_timeout", LIVE, MEMBER(orphan_ms)},
    {"telemetry.diagnose", LIVE, MEMBER(telemetry.diagnose)},
    {"telemetry.diagnose.over", LIVE, MEMBER(telemetry.over_ms)},
    {"telemetry.advise", LIVE, MEMBER(telemetry.advise)},
    {"telemetry.forgotten_for", LIVE, MEMBER(telemetry.forgotten_ms)},
    {"telemetry.throttled_for", LIVE, MEMBER(telemetry.throttled_ms)},
    {"telemetry", LIVE, MEMBER(telemetry.keep_ms)},
    {"kill_wait", LIVE, MEMBER(kill_wait_ms)},
    {"sweep", LIVE, MEMBER(sweep_ms)},
    {"busy_sweep", LIVE, MEMBER(busy_sweep_ms)},
    {"settle", LIVE, MEMBER(settle_ms)},
    {"price_every", LIVE, MEMBER(price_ms)},
    {"log_full_wait", LIVE, MEMBER(log_full_wait_ms)},
    {"volume_usd_per_gib_month", LIVE, MEMBER(volume_prices)},
    {"volume_usd_per_gib_month", LIVE, MEMBER(n_volume_prices)},
    {"oidc", LIVE, 0, 0}, /* goes to what signs users in (reload.c) */
    {"limits.max_nodes", LIVE, MEMBER(max_nodes)},
    {"limits.max_gpus", LIVE, MEMBER(max_gpus)},
    {"limits.max_usd_per_hour", LIVE, MEMBER(max_uusd_h)},
    {"webhooks.*.url", LIVE | SECRET, 0, 0},
    {"mail.smtp", LIVE | SECRET, 0, 0},
};
#define N_KEYS (sizeof(keys) / sizeof(keys[0]))

/* Length of the part of path that the pattern matches; 0: none. */
static size_t match(const char *pattern, const char *path)
{
    const char *p = path;
    for (;;) {
        size_t n = strcspn(pattern, "."), m = strcspn(p, ".");
        if (!(n == 1 && *pattern == '*') && (n != m || memcmp(pattern, p, n) != 0))
            return 0;
        pattern += n;
        p += m;
        if (*pattern == '\0')
            return (size_t)(p - path);
        if (*p == '\0')
            return 0;
        pattern++;
        p++;
    }
}

static unsigned find(const char *path)
{
    const struct key *best = NULL;
    size_t longest = 0;
    for (size_t i = 0; i < N_KEYS; i++) {
        size_t n = match(keys[i].path, path);
        if (n > longest) {
            best = &keys[i];
            longest = n;
        }
    }
    return best ? best->is : 0;
}

/* ---- values ---- */

static bool is_absent(const struct yaml_node *n)
{
    return !n || yaml_is_null(n);
}

static const struct yaml_node *entry(const struct yaml_node *map, const char *key)
{
    for (size_t i = 0; map && i < map->n_items; i++)
        if (str_eq(map->items[i]->key, key))
            return map->items[i];
    return NULL;
}

static bool is_equal(const struct yaml_node *a, const struct yaml_node *b)
{
    if (is_absent(a) || is_absent(b))
        return is_absent(a) && is_absent(b);
    if (a->type != b->type || a->n_items != b->n_items)
        return false;
    if (a->type == YAML_SCALAR)
        return str_eq(a->text, b->text);
    for (size_t i = 0; i < a->n_items; i++)
        if (!is_equal(
                a->items[i], a->type == YAML_MAPPING ? entry(b, a->items[i]->key) : b->items[i]))
            return false;
    return true;
}

static void print(const struct yaml_node *n, struct buf *out)
{
    bool is_map = n->type == YAML_MAPPING;
    if (n->type == YAML_SCALAR) {
        buf_adds(out, n->text);
        return;
    }
    buf_adds(out, is_map ? "{" : "[");
    for (size_t i = 0; i < n->n_items && out->len < SHOWN_BYTES; i++) {
        if (i > 0)
            buf_adds(out, ", ");
        if (is_map)
            buf_printf(out, "%s: ", n->items[i]->key);
        print(n->items[i], out);
    }
    buf_adds(out, is_map ? "}" : "]");
}

static json_t *shown(const struct yaml_node *n, unsigned is)
{
    struct buf text = {0};
    if (is_absent(n))
        return json_null();
    if (is & SECRET)
        return json_string("(not shown)");
    print(n, &text);
    if (text.len > SHOWN_BYTES) {
        buf_truncate(&text, str_cut(buf_str(&text), text.len, SHOWN_BYTES));
        buf_adds(&text, "...");
    }
    json_t *v = json_text(buf_str(&text));
    buf_deinit(&text);
    return v;
}

/* ---- differences ---- */

static void compare(
    const struct yaml_node *a, const struct yaml_node *b, const char *path, json_t *changes);

static bool is_map(const struct yaml_node *n)
{
    return !is_absent(n) && n->type == YAML_MAPPING;
}

/* Of two mappings, and of one that is new or gone: key by key, because some may need a restart. */
static void compare_maps(
    const struct yaml_node *a, const struct yaml_node *b, const char *path, json_t *changes)
{
    char below[PATH_MAX_BYTES];
    for (int second = 0; second < 2; second++) {
        const struct yaml_node *from = second ? b : a, *other = second ? a : b;
        for (size_t i = 0; is_map(from) && i < from->n_items; i++) {
            const char *key = from->items[i]->key;
            const struct yaml_node *in_other = is_map(other) ? entry(other, key) : NULL;
            if (second && in_other)
                continue; /* compared already */
            snprintf(below, sizeof(below), "%s%s%s", path, *path ? "." : "", key);
            compare(second ? in_other : from->items[i], second ? from->items[i] : in_other, below,
                changes);
        }
    }
}

static void compare(
    const struct yaml_node *a, const struct yaml_node *b, const char *path, json_t *changes)
{
    if (is_equal(a, b))
        return;
    bool is_empty = (is_map(a) && a->n_items == 0) || (is_map(b) && b->n_items == 0);
    if (!is_empty && (is_map(a) || is_absent(a)) && (is_map(b) || is_absent(b))) {
        compare_maps(a, b, path, changes);
        return;
    }
    unsigned is = find(path);
    json_array_append_new(
        changes, json_pack("{s:o,s:o,s:o,s:b}", "key", json_text(path), "old", shown(a, is), "new",
                     shown(b, is), "live", (int)((is & LIVE) != 0)));
}

int config_changes(const char *file, const struct buf *before, const struct buf *after,
    json_t **ret_changes, struct err *e)
{
    struct yaml_node *a = NULL, *b = NULL;
    int rc = yaml_parse(file, buf_str(before), before->len, &a, e);
    if (rc == 0)
        rc = yaml_parse(file, buf_str(after), after->len, &b, e);
    if (rc == 0) {
        *ret_changes = json_array();
        compare_maps(a, b, "", *ret_changes);
    }
    yaml_node_free(a);
    yaml_node_free(b);
    return rc;
}

static const char *or_nothing(const json_t *v)
{
    const char *s = json_string_value(v);
    return s ? s : "absent";
}

int config_check_changes(const char *file, const json_t *changes, struct err *e)
{
    struct buf names = {0};
    size_t i, n = 0;
    const json_t *c;
    bool has_pools = false;
    json_array_foreach((json_t *)changes, i, c)
    {
        const char *key = json_string_value(json_object_get(c, "key"));
        if (json_is_true(json_object_get(c, "live")))
            continue;
        has_pools |= match("pools", key) > 0 || match("providers", key) > 0;
        if (n++ < NAMED_MAX)
            buf_printf(&names, "%s%s (%s, now %s)", n > 1 ? ", " : "", key,
                or_nothing(json_object_get(c, "old")), or_nothing(json_object_get(c, "new")));
    }
    if (n > NAMED_MAX)
        buf_printf(&names, " and %zu more", n - NAMED_MAX);
    if (n > 0)
        err_set(e, ERR_CONFLICT,
            "%s: nothing was changed, because only a restart of belayd can change %s%s. Before it, "
            "check the file: belayd --check --config FILE",
            file, buf_str(&names),
            has_pools ? "; belay pools apply changes pools and providers without one" : "");
    buf_deinit(&names);
    return n > 0 ? ERR_CONFLICT : 0;
}

void config_swap_live(struct config *a, struct config *b)
{
    for (size_t i = 0; i < N_KEYS; i++) {
        char *x = (char *)a + keys[i].offset, *y = (char *)b + keys[i].offset;
        for (size_t k = 0; k < keys[i].bytes; k++) {
            char byte = x[k];
            x[k] = y[k];
            y[k] = byte;
        }
    }
}
