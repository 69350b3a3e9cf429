/* SPDX-License-Identifier: Apache-2.0
 *
 * belay list
 */
#include "cli/verbs.h"

#include "base/mem.h"
#include "base/str.h"
#include "cli/since.h"
#include <stdlib.h>
#include <string.h>

#define PAGE 200
#define LIMIT_MAX 100000

enum {
    VAL_ALL = 1,
    VAL_ENDED,
    VAL_STATE,
    VAL_USER,
    VAL_TEAM,
    VAL_POOL,
    VAL_NAME,
    VAL_LABEL,
    VAL_SINCE,
    VAL_UNTIL,
    VAL_SORT,
    VAL_LIMIT,
    VAL_WHY
};

/* Sort keys that are applied here, to the listed jobs. belayd's own orders decide which jobs are
 * listed. */
static const struct sort_key {
    const char *name, *member;
    bool is_number;
} sort_keys[] = {{"name", "name", false}, {"user", "user", false}, {"state", "state", false},
    {"pool", "pool", false}, {"cost", "cost_uusd", true}, {"started", "started_at", false}};
#define N_SORT_KEYS (sizeof(sort_keys) / sizeof(sort_keys[0]))

struct choice {
    struct buf query; /* query parameters, each followed by '&' */
    bool is_state_given, is_sort_given, all, why;
    const struct sort_key *key; /* NULL for belayd's order */
    int64_t limit;
};

/* ---- options ---- */

static void add(struct choice *c, const char *name, const char *value)
{
    buf_printf(&c->query, "&%s=", name);
    str_url_encode(&c->query, value, strlen(value));
}

static int add_time(struct choice *c, const char *name, const char *text, struct err *e)
{
    char iso[TIME_ISO_MAX];
    struct wall at;
    int rc = since_parse(text, clock_wall(&clock_system), &at, e);
    if (rc != 0)
        return err_wrap(e, "--%s", name);
    time_format_iso(at, iso);
    add(c, name, iso);
    return 0;
}

static int add_sort(struct choice *c, const char *text, struct err *e)
{
    static const char *const own[] = {"newest", "oldest", "ended", NULL};
    for (size_t i = 0; own[i]; i++)
        if (str_eq(text, own[i])) {
            c->is_sort_given = true;
            add(c, "sort", text);
            return 0;
        }
    for (size_t i = 0; i < N_SORT_KEYS; i++)
        if (str_eq(text, sort_keys[i].name)) {
            c->key = &sort_keys[i];
            return 0;
        }
    return err_set(e, ERR_INVALID,
        "--sort: expected newest, oldest, ended, name, user, state, pool, cost or started, found "
        "%s",
        str_show(text, (char[STR_SHOW_MAX]){0}));
}

static int add_states(struct choice *c, const char *states, struct err *e)
{
    if (c->is_state_given)
        return err_set(e, ERR_INVALID, "choose one of --all, --ended and --state");
    c->is_state_given = true;
    add(c, "state", states);
    return 0;
}

static int on_option(void *ctx, int val, const char *arg)
{
    static const char *const plain[] = {[VAL_USER] = "user",
        [VAL_TEAM] = "team",
        [VAL_POOL] = "pool",
        [VAL_NAME] = "name",
        [VAL_LABEL] = "label"};
    struct choice *c = ctx;
    struct err e;
    int rc = 0;
    switch (val) {
    case VAL_ALL:
        c->all = true;
        rc = add_states(c, "all", &e);
        break;
    case VAL_ENDED:
        c->all = true;
        rc = add_states(c, "ended", &e);
        if (!c->is_sort_given)
            add(c, "sort", "ended");
        c->is_sort_given = true;
        break;
    case VAL_STATE:
        c->all = true;
        rc = add_states(c, arg, &e);
        break;
    case VAL_SINCE:
    case VAL_UNTIL:
        rc = add_time(c, val == VAL_SINCE ? "since" : "until", arg, &e);
        break;
    case VAL_SORT:
        rc = c->is_sort_given
                 ? err_set(&e, ERR_INVALID, "--sort: give one order only; --ended has its own")
                 : add_sort(c, arg, &e);
        break;
    case VAL_LIMIT:
        rc = str_to_i64(arg, 1, LIMIT_MAX, "--limit", &c->limit, &e);
        break;
    case VAL_WHY:
        c->why = true;
        add(c, "why", "1");
        break;
    default:
        add(c, plain[val], arg);
    }
    if (rc == 0)
        return CLI_OK;
    cli_error("%s", e.text);
    return CLI_USAGE;
}

/* ---- the list ---- */

/* Fetches pages up to the limit. *ret_next: where belayd would continue. */
static int read_jobs(
    struct client *c, const struct choice *choice, json_t *all, json_t **ret_next, struct err *e)
{
    int64_t before = 0;
    do {
        struct buf path = {0};
        int64_t left = choice->limit - (int64_t)json_array_size(all);
        json_t *v = NULL;
        buf_printf(&path, "/api/v1/jobs?limit=%lld%s", (long long)(left < PAGE ? left : PAGE),
            buf_str(&choice->query));
        if (before > 0)
            buf_printf(&path, "&before=%lld", (long long)before);
        int rc = client_json(c, "GET", buf_str(&path), NULL, &v, e);
        buf_deinit(&path);
        if (rc != 0)
            return rc;
        json_array_extend(all, json_object_get(v, "jobs"));
        before = cli_int(v, "next", 0);
        json_decref(v);
    } while (before > 0 && (int64_t)json_array_size(all) < choice->limit);
    *ret_next = before > 0 ? json_integer(before) : json_null();
    return 0;
}

static int compare(const void *a, const void *b, void *ctx)
{
    const struct sort_key *k = ctx;
    const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
    if (!k->is_number)
        return strcmp(cli_text(x, k->member), cli_text(y, k->member));
    int64_t i = cli_int(x, k->member, 0), j = cli_int(y, k->member, 0);
    return (i < j) - (i > j);
}

/* Numbers in descending order. */
static json_t *sorted(const json_t *jobs, const struct sort_key *key)
{
    size_t n = json_array_size(jobs);
    json_t **list = mem_array(n + 1, sizeof(*list)), *out = json_array();
    for (size_t i = 0; i < n; i++)
        list[i] = json_array_get(jobs, i);
    if (key)
        qsort_r(list, n, sizeof(*list), compare, (void *)(uintptr_t)key);
    for (size_t i = 0; i < n; i++)
        json_array_append(out, list[i]);
    free(list);
    return out;
}

static void print_job(struct table *t, const json_t *job, bool why)
{
    char progress[48] = "-", money[32], age[32];
    int64_t done = cli_int(job, "progress", -1), total = cli_int(job, "progress_total", -1);
    if (done >= 0 && total > 0)
        snprintf(progress, sizeof(progress), "%lld/%lld", (long long)done, (long long)total);
    else if (done >= 0)
        snprintf(progress, sizeof(progress), "%lld", (long long)done);
    bool ended = str_eq(cli_text(job, "state"), "ended");
    table_row(t);
    table_cell(t, "%s", cli_text(job, "ref"));
    table_cell(t, "%s", cli_text(job, "name"));
    table_cell(t, "%s", cli_text(job, "user"));
    table_cell(t, "%s", cli_text(job, ended ? "end" : "state"));
    table_cell(t, "%lld", (long long)cli_int(job, "attempts", 0));
    table_cell(t, "%lld", (long long)cli_int(job, "reclaims", 0));
    table_cell(t, "%s", progress);
    table_cell(t, "%s", cli_text(job, "node"));
    table_cell(t, "%s", cli_usd(cli_int(job, "cost_uusd", 0), money, sizeof(money)));
    table_cell(t, "%s", cli_ago(job, "submitted_at", age, sizeof(age)));
    if (why)
        table_cell(t, "%s", cli_text(json_object_get(job, "why"), "text"));
}

static void print_jobs(const json_t *jobs, const struct choice *c)
{
    static const struct {
        const char *title;
        bool right;
    } columns[] = {{"ID", true}, {"NAME", false}, {"USER", false}, {"STATE", false},
        {"ATTEMPTS", true}, {"RECLAIMS", true}, {"PROGRESS", true}, {"NODE", false}, {"COST", true},
        {"AGE", true}, {"WHY", false}};
    struct table *t = table_create();
    size_t i;
    json_t *job;
    for (i = 0; i < sizeof(columns) / sizeof(columns[0]) - !c->why; i++)
        table_column(t, columns[i].title, columns[i].right);
    json_array_foreach(jobs, i, job) print_job(t, job, c->why);
    table_print(t);
    if (json_array_size(jobs) == 0)
        cli_print_empty(
            c->all ? "no such jobs" : "no such active jobs (belay list -a includes ended ones)");
}

static int list(const struct choice *choice, bool json, struct err *e)
{
    struct client *c = NULL;
    json_t *all = json_array(), *next = NULL;
    int rc = client_create(&c, e);
    if (rc == 0)
        rc = read_jobs(c, choice, all, &next, e);
    client_destroy(c);
    if (rc == 0) {
        json_t *jobs = sorted(all, choice->key),
               *v = json_pack("{s:o,s:o}", "jobs", jobs, "next", next);
        if (json)
            cli_print_json(v);
        else
            print_jobs(jobs, choice);
        json_decref(v);
    }
    json_decref(all);
    return rc;
}

static int run(int argc, const char **argv)
{
    struct choice c = {.limit = 50};
    struct cli_args a;
    struct err e;
    int rc = cli_parse(&verb_list, argc, argv, false, on_option, &c, &a);
    if (rc == 0 && list(&c, a.json, &e) != 0) {
        cli_error("%s", e.text);
        rc = e.kind == ERR_INVALID ? CLI_USAGE : CLI_FAILED;
    }
    buf_deinit(&c.query);
    cli_args_deinit(&a);
    return rc < 0 ? CLI_OK : rc;
}

static const struct poptOption options[] = {
    {"all", 'a', POPT_ARG_NONE, NULL, VAL_ALL, "include ended jobs", NULL},
    {"ended", 'e', POPT_ARG_NONE, NULL, VAL_ENDED, "only ended jobs, latest end first", NULL},
    {"state", 's', POPT_ARG_STRING, NULL, VAL_STATE,
        "only jobs in these states: pending, running, cancelling, unfolded, ended; or that ended "
        "like this: succeeded, failed, ...",
        "LIST"},
    {"user", 'u', POPT_ARG_STRING, NULL, VAL_USER, "only jobs of these users", "LIST"},
    {"account", 'A', POPT_ARG_STRING, NULL, VAL_TEAM, "only jobs of these teams", "LIST"},
    {"team", 0, POPT_ARG_STRING, NULL, VAL_TEAM, "alias of --account", "LIST"},
    {"pool", 'p', POPT_ARG_STRING, NULL, VAL_POOL,
        "only jobs that may run, run or ran in these pools", "LIST"},
    {"name", 0, POPT_ARG_STRING, NULL, VAL_NAME,
        "only jobs of this name, where * matches any text; repeatable", "NAME"},
    {"label", 'l', POPT_ARG_STRING, NULL, VAL_LABEL,
        "only jobs with this label, or NAME with any value; repeated labels must all match",
        "NAME=VALUE"},
    {"since", 0, POPT_ARG_STRING, NULL, VAL_SINCE, "leave out jobs that had ended by then", "TIME"},
    {"until", 0, POPT_ARG_STRING, NULL, VAL_UNTIL, "leave out jobs submitted later", "TIME"},
    {"sort", 0, POPT_ARG_STRING, NULL, VAL_SORT,
        "order, which decides which jobs are listed: newest (default), oldest, ended; or sort the "
        "listed jobs by name, user, state, pool, cost, started",
        "KEY"},
    {"limit", 'n', POPT_ARG_STRING, NULL, VAL_LIMIT,
        "at most this many jobs, up to 100000 (default 50)", "N"},
    {"why", 0, POPT_ARG_NONE, NULL, VAL_WHY, "show the first reason why each job waits", NULL},
    POPT_TABLEEND,
};

const struct verb verb_list = {"list", CLI_NO_WORDS, "list jobs", run, options, false};
