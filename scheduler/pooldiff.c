/* SPDX-License-Identifier: Apache-2.0
 *
 * See pooldiff.h.
 */
#include "scheduler/pooldiff.h"

#include "base/str.h"
#include "scheduler/api/json_constraints.h"
#include <stdio.h>
#include <string.h>

/* ---- values in the form of a file ---- */

static json_t *text(const char *s)
{
    return s && s[0] ? json_text(s) : json_null();
}

static json_t *limit(int64_t value)
{
    return value ? json_integer(value) : json_null();
}

/* Formats a duration exactly, in the largest unit that divides it; 0 as "0s". */
static json_t *duration(int64_t ms)
{
    static const struct {
        int64_t ms;
        const char *unit;
    } units[] = {{86400000, "d"}, {3600000, "h"}, {60000, "m"}, {1000, "s"}, {1, "ms"}};
    char out[32];
    size_t i = 0;
    while (ms == 0 ? units[i].ms != 1000 : ms % units[i].ms != 0)
        i++;
    snprintf(out, sizeof(out), "%lld%s", (long long)(ms / units[i].ms), units[i].unit);
    return json_string(out);
}

static json_t *usd(int64_t uusd)
{
    char out[32];
    snprintf(
        out, sizeof(out), "%lld.%06lld", (long long)(uusd / 1000000), (long long)(uusd % 1000000));
    for (size_t n = strlen(out); out[n - 1] == '0' && out[n - 3] != '.'; n--)
        out[n - 1] = '\0';
    return json_string(out);
}

static void set(json_t *o, const char *key, json_t *v)
{
    json_object_set_new(o, key, v);
}

/* Appends a text to the list unless it is already there. */
static void add_once(json_t *list, const char *word)
{
    size_t i;
    json_t *v;
    json_array_foreach(list, i, v)
    {
        if (str_eq(json_string_value(v), word))
            return;
    }
    json_array_append_new(list, json_text(word));
}

static json_t *lines(const char *s)
{
    json_t *list = json_array();
    while (s && *s) {
        size_t n = strcspn(s, "\n");
        json_array_append_new(list, json_textn(s, n));
        s += n + (s[n] == '\n');
    }
    return list;
}

/* ---- a pool ---- */

static void set_offers(json_t *o, const struct config_pool *p)
{
    json_t *zones = json_array(), *types = json_array(), *markets = json_array();
    for (size_t i = 0; i < p->n_offers; i++) {
        add_once(zones, p->offers[i].zone);
        add_once(types, p->offers[i].type);
        add_once(markets, market_names[p->offers[i].market]);
    }
    set(o, "zones", zones);
    set(o, "types", types);
    set(o, "markets", markets);
}

static json_t *time_of_day(int minutes)
{
    char out[16];
    snprintf(out, sizeof(out), "%02d:%02d", minutes / 60 % 24, minutes % 60);
    return json_string(out);
}

static json_t *days(uint8_t set_of)
{
    static const char *const names[] = {"sun", "mon", "tue", "wed", "thu", "fri", "sat"};
    char out[32] = "";
    for (size_t k = 0; k < 7; k++)
        if (set_of >> k & 1)
            snprintf(
                out + strlen(out), sizeof(out) - strlen(out), "%s%s", out[0] ? "," : "", names[k]);
    return json_string(out);
}

static json_t *windows(const char *text_of)
{
    struct pool_window w[POOL_WINDOWS_MAX];
    struct err unused;
    size_t n;
    json_t *o = json_object();
    if (pool_windows_parse(text_of, w, &n, &unused) != 0 || n == 0) {
        json_decref(o);
        return json_null();
    }
    for (size_t k = 0; k < n; k++)
        set(o, w[k].window.name,
            json_pack("{s:o,s:o,s:o,s:s,s:i,s:i}", "days", days(w[k].window.days), "from",
                time_of_day(w[k].window.from_min), "to", time_of_day(w[k].window.to_min), "tz",
                w[k].tz, "min_nodes", (int)w[k].min_nodes, "warm_nodes", (int)w[k].warm_nodes));
    return o;
}

static json_t *new_accounts(const struct new_accounts *a)
{
    if (a->n == 0)
        return json_null();
    json_t *o = json_object();
    for (size_t i = 0; i < a->n; i++)
        set(o, a->a[i].name, json_integer(a->a[i].uid));
    return o;
}

static void set_elastic(json_t *o, const struct config_pool *p)
{
    set(o, "provider", text(p->row.provider));
    set(o, "region", text(p->row.region));
    set_offers(o, p);
    set(o, "max_nodes", json_integer(p->row.max_nodes));
    set(o, "min_nodes", limit(p->row.min_nodes));
    set(o, "warm_nodes", limit(p->row.warm_nodes));
    set(o, "windows", windows(p->row.windows));
    set(o, "max_gpus", limit(p->row.max_gpus));
    set(o, "max_usd_per_hour", p->row.max_uusd_h ? usd(p->row.max_uusd_h) : json_null());
    set(o, "idle_timeout", duration(p->row.idle_timeout_ms));
    set(o, "cooldown", duration(p->row.cooldown_ms));
    set(o, "paid_minimum", duration(p->row.min_paid_ms));
    set(o, "return_after", duration(p->row.return_ms));
    set(o, "spread", json_integer(p->row.spread_pct));
    set(o, "require_drill", json_boolean(p->row.require_drill));
    set(o, "drill_valid", duration(p->row.drill_valid_ms));
    if (p->provider->has_fleets)
        set(o, "allocation", json_string(p->row.fleet ? "fleet" : "single"));
    set(o, "criu", json_string(criu_ability_names[p->row.criu]));
    set(o, "boot_timeout", duration(p->row.boot_timeout_ms));
    set(o, "refusal_backoff", duration(p->row.refusal_backoff_ms));
    set(o, "launches_per_minute", limit(p->launches_per_minute));
    set(o, "disk_gib", limit(p->disk_gib));
    set(o, "endpoint", text(p->endpoint));
    set(o, "metadata", text(p->metadata));
    set(o, "metadata_guard", text(p->metadata_guard));
    set(o, "notice_reserve", p->notice_reserve_ms ? duration(p->notice_reserve_ms) : json_null());
    set(o, "prolog", text(p->prolog));
    set(o, "epilog", text(p->epilog));
    set(o, "hook_timeout", p->hook_timeout_ms ? duration(p->hook_timeout_ms) : json_null());
    set(o, "create_accounts", new_accounts(&p->create_accounts));
    set(o, "credentials", text(p->credentials));
    for (size_t i = 0; p->provider->settings[i].key; i++)
        set(o, p->provider->settings[i].key,
            p->settings[i] && p->provider->settings[i].kind == CLOUD_SETTING_LIST
                ? lines(p->settings[i])
                : text(p->settings[i]));
}

static json_t *run_as(const struct run_as *a)
{
    json_t *o = json_object();
    if (a->n_users == 0) {
        json_decref(o);
        return text(a->others[0] ? a->others : NULL);
    }
    for (size_t i = 0; i < a->n_users; i++)
        set(o, a->users[i].user, json_text(a->users[i].account));
    if (a->others[0])
        set(o, "*", json_text(a->others));
    return o;
}

static json_t *idle_gpus(const struct idle_gpus_policy *p)
{
    if (p->then == IDLE_GPUS_IGNORE)
        return json_null();
    return json_pack("{s:i,s:o,s:s,s:o}", "busy_below", (int)p->busy_pct, "for",
        duration(p->for_ms), "then", idle_gpus_then_names[p->then], "grace", duration(p->grace_ms));
}

json_t *pool_settings(const struct config_pool *p)
{
    json_t *o = json_object();
    set(o, "kind", json_string(p->row.elastic ? "elastic" : "reserved"));
    if (p->row.elastic)
        set_elastic(o, p);
    else
        set(o, "usd_per_hour", usd(p->row.usd_per_hour_uusd));
    set(o, "egress_usd_per_gib", usd(p->row.egress_uusd_gib));
    set(o, "upload_usd_per_gib", usd(p->row.upload_uusd_gib));
    set(o, "idle_gpus", idle_gpus(&p->row.idle_gpus));
    set(o, "retries", text(p->row.retries));
    set(o, "required_labels", json_features(p->row.required_labels));
    set(o, "run_as", run_as(&p->run_as));
    set(o, "features", json_features(p->row.features));
    set(o, "resources", json_counts_text(p->row.resources));
    return o;
}

bool pool_same_driver(const struct config_pool *a, const struct config_pool *b)
{
    if (!a->row.elastic || !b->row.elastic || a->provider != b->provider ||
        !str_eq(a->row.region, b->row.region) || a->disk_gib != b->disk_gib ||
        !str_eq(a->metadata ? a->metadata : "", b->metadata ? b->metadata : ""))
        return false;
    for (size_t i = 0; i < CLOUD_SETTINGS_MAX; i++)
        if (!str_eq(a->settings[i] ? a->settings[i] : "", b->settings[i] ? b->settings[i] : ""))
            return false;
    return !pool_moved(a, b);
}

const char *pool_moved(const struct config_pool *a, const struct config_pool *b)
{
    if (!a->row.elastic || a->provider != b->provider)
        return NULL;
    if (!str_eq(a->endpoint ? a->endpoint : "", b->endpoint ? b->endpoint : ""))
        return "endpoint";
    if (!str_eq(a->credentials ? a->credentials : "", b->credentials ? b->credentials : ""))
        return "credentials";
    for (size_t i = 0; a->provider->settings[i].key; i++)
        if (a->provider->settings[i].is_location &&
            a->provider->settings[i].kind != CLOUD_SETTING_LIST &&
            !str_eq(a->settings[i] ? a->settings[i] : "", b->settings[i] ? b->settings[i] : ""))
            return a->provider->settings[i].key;
    return NULL;
}

/* Finds the line of the location where the instance is listed; "" if none. */
static void find_location(const struct cloud_provider *provider, const char *lines, const char *id,
    char ret_location[CORE_NAME_MAX])
{
    ret_location[0] = '\0';
    while (lines && *lines) {
        char line[CORE_NAME_MAX];
        size_t n = strcspn(lines, "\n");
        snprintf(line, sizeof(line), "%.*s", (int)n, lines);
        if (n < sizeof(line) && provider->is_at(line, id)) {
            str_copy(ret_location, CORE_NAME_MAX, line);
            return;
        }
        lines += n + (lines[n] == '\n');
    }
}

bool pool_leaves(const struct config_pool *a, const struct config_pool *b, const char *provider_id,
    char ret_location[CORE_NAME_MAX])
{
    char still[CORE_NAME_MAX];
    if (!a->row.elastic || a->provider != b->provider || !a->provider->is_at)
        return false;
    for (size_t i = 0; a->provider->settings[i].key; i++) {
        const struct cloud_setting *s = &a->provider->settings[i];
        if (!s->is_location || s->kind != CLOUD_SETTING_LIST)
            continue;
        find_location(a->provider, a->settings[i], provider_id, ret_location);
        find_location(a->provider, b->settings[i], provider_id, still);
        if (ret_location[0] && !still[0])
            return true;
    }
    return false;
}

/* ---- the difference ---- */

const struct config_pool *config_pool_find(const struct config *c, const char *name)
{
    for (size_t i = 0; i < c->n_pools; i++)
        if (str_eq(c->pools[i].row.name, name))
            return &c->pools[i];
    return NULL;
}

static void add_key(json_t *keys, const char *key, json_t *before, json_t *after)
{
    if (before && json_is_null(before))
        before = NULL;
    if (after && json_is_null(after))
        after = NULL;
    if (before == after || (before && after && json_equal(before, after)))
        return;
    json_array_append_new(keys,
        json_pack("{s:s,s:o,s:o}", "key", key, "old", before ? json_incref(before) : json_null(),
            "new", after ? json_incref(after) : json_null()));
}

/* Returns the changed keys in the order of `after`, then those only in `before`. Takes ownership of
 * both. */
static json_t *keys_of(json_t *before, json_t *after)
{
    json_t *keys = json_array(), *v;
    const char *key;
    json_object_foreach(after, key, v) add_key(keys, key, json_object_get(before, key), v);
    json_object_foreach(before, key, v)
    {
        if (!json_object_get(after, key))
            add_key(keys, key, v, NULL);
    }
    json_decref(before);
    json_decref(after);
    return keys;
}

static bool has_offer(const struct config_pool *p, const struct offer_row *o)
{
    for (size_t i = 0; p && i < p->n_offers; i++)
        if (p->offers[i].market == o->market && str_eq(p->offers[i].zone, o->zone) &&
            str_eq(p->offers[i].type, o->type))
            return true;
    return false;
}

/* Offers of `of` that `other` does not have. */
static json_t *offers_without(const struct config_pool *of, const struct config_pool *other)
{
    json_t *list = json_array();
    for (size_t i = 0; of && i < of->n_offers; i++) {
        const struct offer_row *o = &of->offers[i];
        char words[2 * CORE_NAME_MAX + 32];
        if (has_offer(other, o))
            continue;
        snprintf(words, sizeof(words), "%s %s %s", o->zone, o->type, market_names[o->market]);
        json_array_append_new(list, json_text(words));
    }
    return list;
}

static void add_pool(
    json_t *list, const struct config_pool *before, const struct config_pool *after)
{
    const char *name = after ? after->row.name : before->row.name;
    json_t *keys = keys_of(before ? pool_settings(before) : json_object(),
        after ? pool_settings(after) : json_object());
    if (before && after && json_array_size(keys) == 0) {
        json_decref(keys);
        return;
    }
    json_array_append_new(
        list, json_pack("{s:o,s:s,s:o,s:o,s:o}", "pool", json_text(name), "change",
                  !before  ? "added"
                  : !after ? "removed"
                           : "changed",
                  "keys", keys, "offers_added", offers_without(after, before), "offers_withdrawn",
                  offers_without(before, after)));
}

static json_t *limits_of(const struct config *c)
{
    return json_pack("{s:o,s:o,s:o}", "max_nodes", limit(c->max_nodes), "max_gpus",
        limit(c->max_gpus), "max_usd_per_hour", c->max_uusd_h ? usd(c->max_uusd_h) : json_null());
}

json_t *pools_diff(const struct config *before, const struct config *after)
{
    json_t *list = json_array();
    for (size_t i = 0; i < after->n_pools; i++)
        add_pool(list, config_pool_find(before, after->pools[i].row.name), &after->pools[i]);
    for (size_t i = 0; i < before->n_pools; i++)
        if (!config_pool_find(after, before->pools[i].row.name))
            add_pool(list, &before->pools[i], NULL);
    return json_pack(
        "{s:o,s:o}", "pools", list, "limits", keys_of(limits_of(before), limits_of(after)));
}

bool pools_differ(const json_t *diff)
{
    return json_array_size(json_object_get(diff, "pools")) +
               json_array_size(json_object_get(diff, "limits")) >
           0;
}
