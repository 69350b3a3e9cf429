/* SPDX-License-Identifier: Apache-2.0
 *
 * belay list
 */
#include "cli/verbs.h"

#include "base/mem.h"
#include "base/str.h"
#include "cli/job_table.h"
#include "cli/selection.h"
#include "cli/since.h"
#include "cli/top/watch.h"
#include <stdlib.h>
#include <string.h>

#define LIMIT_MAX 100000

enum {
    VAL_ALL = 1,
    VAL_ENDED,
    VAL_SINCE,
    VAL_UNTIL,
    VAL_SORT,
    VAL_LIMIT,
    VAL_WHY,
    VAL_WATCH,
    VAL_EVERY
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
    struct buf query; /* parameters, by cli_add_parameter */
    bool is_state_given, is_sort_given, all, why, watch;
    const struct sort_key *key; /* NULL for belayd's order */
    int64_t limit, every_s;     /* of --watch */
    const struct cli_args *a;
};

/* ---- options ---- */

static int add_time(struct choice *c, const char *name, const char *text, struct err *e)
{
    char iso[TIME_ISO_MAX];
    struct wall at;
    int rc = since_parse(text, clock_wall(&clock_system), &at, e);
    if (rc != 0)
        return err_wrap(e, "--%s", name);
    time_format_iso(at, iso);
    cli_add_parameter(&c->query, name, iso);
    return 0;
}

static int add_sort(struct choice *c, const char *text, struct err *e)
{
    static const char *const own[] = {"newest", "oldest", "ended", NULL};
    for (size_t i = 0; own[i]; i++)
        if (str_eq(text, own[i])) {
            c->is_sort_given = true;
            cli_add_parameter(&c->query, "sort", text);
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
        return err_set(e, ERR_INVALID,
            "--all, --ended and --state exclude each other; --state finds ended jobs too");
    c->is_state_given = true;
    cli_add_parameter(&c->query, "state", states);
    return 0;
}

static int on_option(void *ctx, int val, const char *arg)
{
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
            cli_add_parameter(&c->query, "sort", "ended");
        c->is_sort_given = true;
        break;
    case SELECTION_STATE:
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
        cli_add_parameter(&c->query, "why", "1");
        break;
    case VAL_WATCH:
        c->watch = true;
        break;
    case VAL_EVERY:
        c->watch = true;
        rc = str_to_i64(arg, 1, WATCH_EVERY_MAX_S, "--every", &c->every_s, &e);
        break;
    default:
        selection_add(&c->query, val, arg);
    }
    if (rc == 0)
        return CLI_OK;
    cli_error("%s", e.text);
    return CLI_USAGE;
}

/* ---- the list ---- */

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

static int list(const struct choice *choice, int *ret_code, struct err *e)
{
    struct client *c = NULL;
    json_t *all = json_array();
    int64_t next = 0;
    int rc = client_create(&c, e);
    if (rc == 0)
        rc = selection_read(c, buf_str(&choice->query), 0, choice->limit, all, &next, e);
    client_destroy(c);
    if (rc == 0) {
        json_t *jobs = sorted(all, choice->key), *v = json_pack("{s:o,s:o}", "jobs", jobs, "next",
                                                     next > 0 ? json_integer(next) : json_null());
        const char *none = choice->all ? "no such jobs"
                                       : "no such active jobs (belay list -a includes ended ones)";
        *ret_code = list_output(choice->a, v, "jobs", choice->why ? job_columns_why : job_columns);
        if (!choice->a->json && json_array_size(jobs) == 0) {
            if (choice->watch)
                puts(none);
            else
                cli_print_empty(none);
        }
        json_decref(v);
    }
    json_decref(all);
    return rc;
}

static int print_again(void *ctx, struct err *e)
{
    int code = CLI_OK;
    int rc = list(ctx, &code, e);
    return rc == 0 && code != CLI_OK ? err_set(e, ERR_INVALID, "--output: see above") : rc;
}

static int run(int argc, const char **argv)
{
    struct choice c = {.limit = 50, .every_s = WATCH_EVERY_DEFAULT_S};
    struct cli_args a;
    struct err e;
    int rc = cli_parse(&verb_list, argc, argv, false, on_option, &c, &a);
    c.a = &a;
    if (rc == 0 && c.watch)
        fold_end(&a.fold);
    if (rc == 0 && (c.watch ? watch_answers(c.every_s, print_again, &c, &e) : list(&c, &rc, &e))) {
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
    SELECTION_OPTIONS,
    {"since", 0, POPT_ARG_STRING, NULL, VAL_SINCE, "leave out jobs that had ended by then", "TIME"},
    {"until", 0, POPT_ARG_STRING, NULL, VAL_UNTIL, "leave out jobs submitted later", "TIME"},
    {"sort", 0, POPT_ARG_STRING, NULL, VAL_SORT,
        "order, which decides which jobs are listed: newest (default), oldest, ended; or sort the "
        "listed jobs by name, user, state, pool, cost, started",
        "KEY"},
    {"limit", 'n', POPT_ARG_STRING, NULL, VAL_LIMIT,
        "at most this many jobs, up to 100000 (default 50)", "N"},
    {"why", 0, POPT_ARG_NONE, NULL, VAL_WHY, "show the first reason why each job waits", NULL},
    {"watch", 'w', POPT_ARG_NONE, NULL, VAL_WATCH,
        "list again and again until ctrl-c: in place on a terminal, else one list after another",
        NULL},
    {"every", 'd', POPT_ARG_STRING, NULL, VAL_EVERY,
        "seconds between the lists of --watch (default 2)", "SECONDS"},
    POPT_TABLEEND,
};

const struct verb verb_list = {"list", CLI_NO_WORDS, "list jobs", run, options, false,
    .lists = true,
    .examples = "belay list\n"
                "belay list --ended --since 24h --user ann\n"
                "belay list --state pending --why\n"
                "belay list --watch --user ann\n"};
