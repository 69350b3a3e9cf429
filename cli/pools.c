/* SPDX-License-Identifier: Apache-2.0
 *
 * belay pools [apply FILE | show [POOL]]
 */
#include "cli/list_table.h"
#include "cli/offers.h"
#include "cli/verbs.h"

#include "base/fs.h"
#include "base/str.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_MAX (1u << 20) /* belayd's limit */

enum { VAL_YES = 1, VAL_DRY_RUN };

struct pool_options {
    bool yes, dry_run;
};

static const struct list_column columns[] = {
    {"POOL", "name", COLUMN_TEXT},
    {"KIND", "kind", COLUMN_TEXT},
    {"PROVIDER", "provider", COLUMN_TEXT},
    {"REGION", "region", COLUMN_TEXT},
    {"MAX NODES", "max_nodes", COLUMN_INT},
    {"IDLE TIMEOUT", "idle_timeout_ms", COLUMN_DURATION, .is_extra = true},
    {"PRICE/H", "uusd_per_hour", COLUMN_USD_H},
    {NULL, NULL, COLUMN_TEXT},
};

/* If a pool keeps machines without demand: `keeps` and `next` are of add_kept(). */
static const struct list_column kept_columns[] = {
    {"POOL", "name", COLUMN_TEXT},
    {"KIND", "kind", COLUMN_TEXT},
    {"PROVIDER", "provider", COLUMN_TEXT},
    {"REGION", "region", COLUMN_TEXT},
    {"MAX NODES", "max_nodes", COLUMN_INT},
    {"KEEPS", "keeps", COLUMN_TEXT},
    {"NEXT", "next", COLUMN_TEXT},
    {"IDLE TIMEOUT", "idle_timeout_ms", COLUMN_DURATION},
    {"PRICE/H", "uusd_per_hour", COLUMN_USD_H},
    {NULL, NULL, COLUMN_TEXT},
};

static const struct list_column instance_columns[] = {
    {"INSTANCE", "id", COLUMN_INT},
    {"PROVIDER'S ID", "provider_id", COLUMN_TEXT},
    {"STATE", "state", COLUMN_TEXT},
    {"ZONE", "zone", COLUMN_TEXT},
    {"TYPE", "type", COLUMN_TEXT},
    {"MARKET", "market", COLUMN_TEXT},
    {"PRICE/H", "price_uusd_h", COLUMN_USD_H},
    {"NODE", "node", COLUMN_INT},
    {"SINCE", "launched_at", COLUMN_AGO},
    {NULL, NULL, COLUMN_TEXT},
};

static int on_option(void *ctx, int val, const char *arg)
{
    struct pool_options *w = ctx;
    (void)arg;
    if (val == VAL_YES)
        w->yes = true;
    else
        w->dry_run = true;
    return CLI_OK;
}

/* ---- values in the form of a pool file ---- */

static void print_value(const json_t *v)
{
    size_t i;
    json_t *item;
    if (json_is_string(v)) {
        printf("%s", cli_string(v));
    } else if (json_is_integer(v)) {
        printf("%lld", (long long)json_integer_value(v));
    } else if (json_is_array(v)) {
        printf("[");
        json_array_foreach(v, i, item)
            printf("%s%s", i ? ", " : "", cli_string(item) ? cli_string(item) : "");
        printf("]");
    } else if (json_is_object(v)) {
        char shown[CLI_NAME_MAX];
        const char *key, *sep = "";
        json_t *of;
        printf("{");
        json_object_foreach((json_t *)v, key, of)
        {
            printf("%s%s: ", sep, cli_name(key, shown));
            print_value(of);
            sep = ", ";
        }
        printf("}");
    } else {
        printf("(none)");
    }
}

/* ---- show ---- */

static void print_kept(const json_t *b, const char *min, const char *warm, const char *window)
{
    int64_t n = cli_int(b, min, 0), idle = cli_int(b, warm, 0);
    const char *name = cli_string(json_object_get(b, window));
    printf("at least %lld node%s, %lld without a job (%s%s)", (long long)n, n == 1 ? "" : "s",
        (long long)idle, name ? "window " : "outside of windows", name ? name : "");
}

static void print_base_load(const json_t *b)
{
    const char *next = cli_string(json_object_get(b, "next_at")),
               *from = cli_string(json_object_get(b, "launches_from"));
    char mem[CLI_LOCAL_MAX];
    if (!json_is_object(b))
        return;
    printf("  keeps now: ");
    print_kept(b, "min_nodes", "warm_nodes", "window");
    if (next) {
        printf("\n  from %s: ", cli_when(b, "next_at", mem));
        print_kept(b, "next_min_nodes", "next_warm_nodes", "next_window");
    }
    if (from)
        printf("; launches for it begin at %s", cli_when(b, "launches_from", mem));
    printf("\n");
}

static json_t *kept_words(const json_t *b, const char *min, const char *warm, const char *at)
{
    char out[96], mem[CLI_LOCAL_MAX];
    snprintf(out, sizeof(out), "%lld, %lld idle%s%s", (long long)cli_int(b, min, 0),
        (long long)cli_int(b, warm, 0), at ? " at " : "", at ? cli_when(b, at, mem) : "");
    return json_string(out);
}

/* For the table of pools. True if any pool keeps machines. */
static bool add_kept(const json_t *pools)
{
    bool any = false;
    size_t i;
    json_t *p;
    json_array_foreach(pools, i, p)
    {
        const json_t *b = json_object_get(p, "base_load");
        if (!json_is_object(b))
            continue;
        any = true;
        json_object_set_new(p, "keeps", kept_words(b, "min_nodes", "warm_nodes", NULL));
        if (cli_string(json_object_get(b, "next_at")))
            json_object_set_new(
                p, "next", kept_words(b, "next_min_nodes", "next_warm_nodes", "next_at"));
    }
    return any;
}

static int list(const struct cli_args *a)
{
    json_t *v = cli_get("/api/v1/pools");
    const json_t *pools = json_object_get(v, "pools");
    bool is_table = !a->json && (!a->output || str_eq(a->output, "wide"));
    if (!v)
        return CLI_FAILED;
    int rc = list_output(a, v, "pools", is_table && add_kept(pools) ? kept_columns : columns);
    if (!a->json && json_array_size(pools) == 0)
        cli_print_empty("no pools");
    json_decref(v);
    return rc;
}

static void print_limit(const char *what, const json_t *limit, bool usd)
{
    int64_t used = cli_int(limit, "used", 0), max = cli_int(limit, "max", -1);
    char a[32], b[32];
    if (usd)
        printf("  %s: %s%s%s\n", what, cli_usd(used, a, sizeof(a)), max < 0 ? "" : " of ",
            max < 0 ? ", no limit" : cli_usd(max, b, sizeof(b)));
    else if (max < 0)
        printf("  %s: %lld, no limit\n", what, (long long)used);
    else
        printf("  %s: %lld of %lld\n", what, (long long)used, (long long)max);
}

static void print_limits(const char *title, const json_t *limits)
{
    printf("%s\n", title);
    print_limit("nodes", json_object_get(limits, "nodes"), false);
    print_limit("GPUs", json_object_get(limits, "gpus"), false);
    print_limit("price/h", json_object_get(limits, "uusd_per_hour"), true);
}

static void print_rows(const char *title, const json_t *rows, const struct list_column *c)
{
    if (json_array_size(rows) == 0)
        return;
    printf("\n%s\n", title);
    list_table(rows, c);
}

static void print_console(const json_t *text)
{
    const char *lines = json_string_value(text);
    if (lines && *lines)
        printf("  the last lines on the console of that machine:\n");
    cli_print_lines(lines, 4);
}

static void print_boots(const json_t *b)
{
    const char *next = cli_string(json_object_get(b, "next_launch_at"));
    if (!json_is_object(b))
        return;
    printf("  machines in a row that never joined, or had full disks: %lld; the last was instance "
           "%lld: %s\n",
        (long long)cli_int(b, "failed", 0), (long long)cli_int(b, "instance", 0),
        cli_text(b, "text"));
    if (json_is_true(json_object_get(b, "one_at_a_time")))
        printf("  the pool launches one machine at a time until one joins, the next %s%s\n",
            next ? "not before " : "now", next ? next : "");
    print_console(json_object_get(b, "console"));
}

static void print_pool(const json_t *p)
{
    const char *key;
    char shown[CLI_NAME_MAX];
    json_t *v;
    printf("pool %s (%s%s)\n", cli_text(p, "name"), cli_text(p, "kind"),
        json_is_true(json_object_get(p, "configured")) ? "" : ", no longer configured");
    json_object_foreach(json_object_get(p, "settings"), key, v)
    {
        if (json_is_null(v) || str_eq(key, "kind"))
            continue;
        printf("  %s: ", cli_name(key, shown));
        print_value(v);
        printf("\n");
    }
    if (json_is_object(json_object_get(p, "limits")))
        print_limits("in use", json_object_get(p, "limits"));
    print_base_load(json_object_get(p, "base_load"));
    print_boots(json_object_get(p, "boots"));
    offers_drop_withdrawn(json_object_get(p, "offers"));
    print_rows("offers", json_object_get(p, "offers"), offer_columns);
    print_rows("nodes", json_object_get(p, "nodes"), node_columns);
    print_rows("instances", json_object_get(p, "instances"), instance_columns);
}

static int show(const char *name, bool json)
{
    struct buf path = {0};
    size_t i;
    json_t *p;
    buf_adds(&path, "/api/v1/pools/detail");
    if (name)
        cli_add_parameter(&path, "name", name);
    json_t *v = cli_get(buf_str(&path));
    buf_deinit(&path);
    if (!v)
        return CLI_FAILED;
    if (json) {
        cli_print_json(v);
    } else {
        json_array_foreach(json_object_get(v, "pools"), i, p)
        {
            print_pool(p);
            printf("\n");
        }
        print_limits("in use by all elastic pools", json_object_get(v, "limits"));
    }
    json_decref(v);
    return CLI_OK;
}

/* ---- apply ---- */

static void print_keys(const char *sign, const json_t *keys)
{
    size_t i;
    json_t *k;
    json_array_foreach(keys, i, k)
    {
        const json_t *before = json_object_get(k, "old"), *after = json_object_get(k, "new");
        printf("  %s %s: ", sign, cli_text(k, "key"));
        if (*sign != '+')
            print_value(before);
        if (*sign == '~')
            printf(" -> ");
        if (*sign != '-')
            print_value(after);
        printf("\n");
    }
}

static void print_offers(const char *sign, const json_t *offers)
{
    size_t i;
    json_t *o;
    json_array_foreach(offers, i, o)
        printf("  %s offer %s\n", sign, cli_string(o) ? cli_string(o) : "");
}

/* True if there is a difference. */
static bool print_diff(const json_t *changes)
{
    const json_t *pools = json_object_get(changes, "pools"),
                 *limits = json_object_get(changes, "limits");
    size_t i;
    json_t *p;
    json_array_foreach(pools, i, p)
    {
        const char *change = cli_text(p, "change");
        const char *sign = str_eq(change, "added") ? "+" : str_eq(change, "removed") ? "-" : "~";
        printf("%s pool %s (%s)\n", sign, cli_text(p, "pool"), change);
        print_keys(sign, json_object_get(p, "keys"));
        print_offers("+", json_object_get(p, "offers_added"));
        print_offers("-", json_object_get(p, "offers_withdrawn"));
    }
    if (json_array_size(limits) > 0)
        printf("~ limits of all elastic pools\n");
    print_keys("~", limits);
    return json_array_size(pools) + json_array_size(limits) > 0;
}

static bool confirmed(bool json)
{
    char answer[16];
    if (json || !isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
        cli_error("nothing was applied: --yes applies the changes without asking");
        return false;
    }
    printf("Apply these changes? [y/N] ");
    fflush(stdout);
    return fgets(answer, sizeof(answer), stdin) && (answer[0] == 'y' || answer[0] == 'Y');
}

static json_t *request_of(const char *file, struct err *e)
{
    struct buf text = {0};
    json_t *request = NULL;
    if (fs_read(file, FILE_MAX, &text, e) == 0)
        request = json_pack(
            "{s:o,s:o}", "file", json_text(file), "text", json_textn(buf_str(&text), text.len));
    buf_deinit(&text);
    return request;
}

/* Fetches the changes first, and applies them only if they are still the same ("expect"). */
static int apply(const char *file, const struct pool_options *w, bool json)
{
    struct err e;
    json_t *request = request_of(file, &e);
    if (!request) {
        cli_error("%s", e.text);
        return CLI_USAGE;
    }
    json_object_set_new(request, "dry_run", json_true());
    json_t *seen = cli_post("/api/v1/pools", request), *done = NULL;
    bool any = seen && !json && print_diff(json_object_get(seen, "changes"));
    if (seen && !json && !any)
        printf("nothing changes\n");
    int rc = seen ? CLI_OK : CLI_FAILED;
    if (seen && json && (w->dry_run || !w->yes))
        cli_print_json(seen);
    if (seen && !w->dry_run && (json || any || w->yes)) {
        json_object_set_new(request, "dry_run", json_false());
        json_object_set(request, "expect", json_object_get(seen, "revision"));
        if (w->yes || confirmed(json))
            done = cli_post("/api/v1/pools", request);
        rc = done ? CLI_OK : CLI_FAILED;
        if (done && json)
            cli_print_json(done);
        else if (done)
            printf("the changes are in force\n");
    }
    json_decref(done);
    json_decref(seen);
    json_decref(request);
    return rc;
}

static int run(int argc, const char **argv)
{
    struct pool_options w = {0};
    struct cli_args a;
    int rc = cli_parse(&verb_pools, argc, argv, false, on_option, &w, &a);
    const char *action = a.n_rest > 0 ? a.rest[0] : "";
    if (rc == 0 && str_eq(action, "apply"))
        fold_end(&a.fold); /* it asks */
    if (rc == 0 && a.n_rest == 0) {
        rc = list(&a);
    } else if (rc == 0 && str_eq(action, "show") && a.n_rest <= 2) {
        rc = show(a.n_rest == 2 ? a.rest[1] : NULL, a.json);
    } else if (rc == 0 && str_eq(action, "apply") && a.n_rest == 2) {
        rc = apply(a.rest[1], &w, a.json);
    } else if (rc == 0) {
        cli_error("expected belay pools, belay pools show [POOL], or belay pools apply "
                  "[--dry-run|--yes] FILE");
        rc = CLI_USAGE;
    }
    cli_args_deinit(&a);
    return rc < 0 ? CLI_OK : rc;
}

static const struct poptOption options[] = {
    {"yes", 'y', POPT_ARG_NONE, NULL, VAL_YES, "with apply: do not ask for confirmation", NULL},
    {"dry-run", 'n', POPT_ARG_NONE, NULL, VAL_DRY_RUN, "with apply: only show what would change",
        NULL},
    POPT_TABLEEND,
};

const struct verb verb_pools = {"pools", "[OPTION...] [show [POOL] | apply FILE]",
    "list, show or change pools", run, options, false, .lists = true,
    .examples = "belay pools\n"
                "belay pools apply --dry-run pools.yaml\n"};
