/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/reports/node_use.h"

#include "base/str.h"
#include <stdio.h>

#define HOUR_MS 3600000LL
#define WEEK_MS (7 * 24 * HOUR_MS)

int use_read_weeks(const char *arg, int64_t *ret_weeks)
{
    struct err e;
    if (str_to_i64(arg, 1, USE_WEEKS_MAX, "weeks", ret_weeks, &e) == 0)
        return CLI_OK;
    cli_error("--weeks: %s", e.text);
    return CLI_USAGE;
}

static int get_use(
    int64_t weeks, const char *pool, int64_t step_ms, json_t **ret_reply, struct err *e)
{
    struct client *c;
    struct buf path = {0};
    char from[TIME_ISO_MAX];
    time_format_iso((struct wall){clock_wall(&clock_system).ms - weeks * WEEK_MS}, from);
    int rc = client_create(&c, e);
    if (rc != 0)
        return rc;
    buf_adds(&path, "/api/v1/use");
    cli_add_parameter(&path, "from", from);
    if (pool)
        cli_add_parameter(&path, "pool", pool);
    if (step_ms > 0)
        buf_printf(&path, "&step_ms=%lld", (long long)step_ms);
    rc = client_json(c, "GET", buf_str(&path), NULL, ret_reply, e);
    client_destroy(c);
    buf_deinit(&path);
    return rc;
}

static bool is_wanted(const json_t *pool, const char *name, bool elastic_too)
{
    return name || elastic_too || !json_is_true(json_object_get(pool, "elastic"));
}

static int64_t sum_of(
    const json_t *pools, const char *name, bool elastic_too, const char *unit, const char *key)
{
    int64_t sum = 0;
    size_t i;
    json_t *p;
    json_array_foreach((json_t *)(uintptr_t)pools, i, p)
    {
        if (is_wanted(p, name, elastic_too))
            sum += cli_int(json_object_get(p, unit), key, 0);
    }
    return sum;
}

/* Of the pools themselves, not of their capacity. */
static int64_t sum_of_pools(
    const json_t *pools, const char *name, bool elastic_too, const char *key)
{
    int64_t sum = 0;
    size_t i;
    json_t *p;
    json_array_foreach((json_t *)(uintptr_t)pools, i, p)
    {
        if (is_wanted(p, name, elastic_too))
            sum += cli_int(p, key, 0);
    }
    return sum;
}

static void name_pools(const json_t *pools, const char *name, bool elastic_too, struct use *u)
{
    struct buf names = {0};
    int64_t uusd = 0, priced_ms = 0;
    size_t i;
    json_t *p;
    json_array_foreach((json_t *)(uintptr_t)pools, i, p)
    {
        if (!is_wanted(p, name, elastic_too))
            continue;
        buf_printf(&names, "%s%s", names.len > 0 ? ", " : "", cli_text(p, "pool"));
        int64_t cost = cli_int(p, "on_demand_uusd", 0);
        uusd += cost;
        priced_ms += cost > 0 ? cli_int(json_object_get(p, u->unit), "there_ms", 0) : 0;
    }
    u->on_demand_uusd_h = priced_ms > 0 ? (double)uusd * HOUR_MS / (double)priced_ms : 0;
    STR_COPY(u->pools, buf_str(&names));
    buf_deinit(&names);
}

int use_read(int64_t weeks, const char *pool, bool elastic_too, int64_t step_ms,
    struct use *ret_use, struct err *e)
{
    struct use u = {.unit = "gpus"};
    int rc = get_use(weeks, pool, step_ms, &u.reply, e);
    if (rc != 0)
        return rc;
    const json_t *pools = json_object_get(u.reply, "pools");
    if (sum_of(pools, pool, elastic_too, "gpus", "there_ms") == 0)
        u.unit = "cpus";
    u.there_ms = sum_of(pools, pool, elastic_too, u.unit, "there_ms");
    u.held_ms = sum_of(pools, pool, elastic_too, u.unit, "held_ms");
    u.useful_ms = sum_of(pools, pool, elastic_too, u.unit, "useful_ms");
    u.running_ms = sum_of(pools, pool, elastic_too, u.unit, "running_ms");
    if (u.unit[0] == 'g') {
        u.measured_ms = sum_of_pools(pools, pool, elastic_too, "gpu_measured_ms");
        u.busy_ms = sum_of_pools(pools, pool, elastic_too, "gpu_busy_ms");
    }
    name_pools(pools, pool, elastic_too, &u);
    if (u.there_ms > 0) {
        *ret_use = u;
        return 0;
    }
    use_deinit(&u);
    return err_set(e, ERR_NOT_FOUND, "no node of %s%s existed in the last %lld weeks%s",
        pool          ? "the pool "
        : elastic_too ? "any pool"
                      : "a reserved pool",
        pool ? pool : "", (long long)weeks,
        pool || elastic_too ? "" : "; for an elastic pool, name it with --pool");
}

void use_deinit(struct use *u)
{
    json_decref(u->reply);
    u->reply = NULL;
}

double use_productive(const struct use *u)
{
    return (double)(u->useful_ms + u->running_ms) / (double)u->there_ms;
}

double use_busy(const struct use *u)
{
    return u->measured_ms > 0 ? (double)u->busy_ms / (double)u->measured_ms : -1;
}

double use_utilisation(const struct use *u)
{
    double busy = use_busy(u);
    return use_productive(u) * (busy < 0 ? 1 : busy);
}

int use_read_interruptions(
    const char *pool, double *ret_per_hour, char ret_text[USE_SOURCE_MAX], struct err *e)
{
    struct client *c;
    json_t *reply, *o;
    int64_t reclaims = 0, up_ms = 0;
    size_t i;
    int rc = client_create(&c, e);
    if (rc != 0)
        return rc;
    rc = client_json(c, "GET", "/api/v1/offers", NULL, &reply, e);
    client_destroy(c);
    if (rc != 0)
        return rc;
    json_array_foreach(json_object_get(reply, "offers"), i, o)
    {
        if (!str_eq(cli_text(o, "market"), "spot") || (pool && !str_eq(cli_text(o, "pool"), pool)))
            continue;
        reclaims += cli_int(o, "reclaims", 0);
        up_ms += cli_int(o, "up_ms", 0);
    }
    json_decref(reply);
    if (up_ms == 0)
        return err_set(e, ERR_NOT_FOUND, "no spot machine%s%s has ended yet: give a number",
            pool ? " of the pool " : "", pool ? pool : "");
    *ret_per_hour = (double)reclaims * HOUR_MS / (double)up_ms;
    snprintf(ret_text, USE_SOURCE_MAX, "%lld reclaims in %.0f machine-hours of spot%s%.60s",
        (long long)reclaims, (double)up_ms / HOUR_MS, pool ? ", pool " : "", pool ? pool : "");
    return 0;
}
