/* SPDX-License-Identifier: Apache-2.0
 *
 * belay top: the cluster, its pools and running jobs; on a terminal refreshed repeatedly, with keys
 * to sort and filter the jobs.
 */
#include "cli/verbs.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/time.h"
#include "cli/top/screen.h"
#include "cli/top/view.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define JOBS_MAX 200 /* read at a time */
#define EVERY_DEFAULT_S 2
#define EVERY_MAX_S 3600
#define LINES_AROUND 12 /* of head, titles and the line of keys */

enum { VAL_ONCE = 1, VAL_EVERY, VAL_USER, VAL_SORT };

static const struct order {
    char key;
    const char *name;
    enum view_order order;
} orders[] = {{'i', "id", VIEW_BY_ID}, {'c', "cpu", VIEW_BY_CPU}, {'m', "memory", VIEW_BY_MEMORY},
    {'t', "time", VIEW_BY_TIME}, {'d', "cost", VIEW_BY_COST}, {'n', "name", VIEW_BY_NAME}};
#define N_ORDERS (sizeof(orders) / sizeof(orders[0]))

struct choice {
    bool once;
    int64_t every_s;
    struct buf user; /* "&user=ann" */
    struct view_choice view;
};

struct top {
    struct choice *choice;
    struct screen screen;
    struct client *c;
    json_t *summary, *jobs; /* the last ones that were read */
    char problem[256];      /* why there are no newer ones; "" if there is no reason */
    bool is_typing, has_help, ends;
};

static int set_order(struct choice *c, const char *name)
{
    for (size_t i = 0; i < N_ORDERS; i++)
        if (str_eq(name, orders[i].name)) {
            c->view.order = orders[i].order;
            return CLI_OK;
        }
    cli_error("--sort: expected id, cpu, memory, time, cost or name, found %s",
        str_show(name, (char[STR_SHOW_MAX]){0}));
    return CLI_USAGE;
}

static int on_option(void *ctx, int val, const char *arg)
{
    struct choice *c = ctx;
    struct err e;
    if (val == VAL_ONCE) {
        c->once = true;
    } else if (val == VAL_SORT) {
        return set_order(c, arg);
    } else if (val == VAL_USER) {
        buf_adds(&c->user, "&user=");
        str_url_encode(&c->user, arg, strlen(arg));
    } else if (str_to_i64(arg, 1, EVERY_MAX_S, "--every", &c->every_s, &e) != 0) {
        cli_error("%s", e.text);
        return CLI_USAGE;
    }
    return CLI_OK;
}

/* ---- reading and printing ---- */

static int read_all(struct top *t, struct err *e)
{
    json_t *summary = NULL, *jobs = NULL;
    char *path = mem_printf(
        "/api/v1/jobs?state=running,cancelling&limit=%d%s", JOBS_MAX, buf_str(&t->choice->user));
    int rc = client_json(t->c, "GET", "/api/v1/summary", NULL, &summary, e);
    if (rc == 0)
        rc = client_json(t->c, "GET", path, NULL, &jobs, e);
    free(path);
    if (rc != 0) {
        json_decref(summary);
        return rc;
    }
    json_decref(t->summary);
    json_decref(t->jobs);
    t->summary = summary;
    t->jobs = jobs;
    return 0;
}

static void print_all(struct top *t, int rows, int columns)
{
    const json_t *pools = json_object_get(t->summary, "pools");
    json_t **jobs;
    size_t n = view_select(json_object_get(t->jobs, "jobs"), &t->choice->view, &jobs);
    int64_t space = rows - LINES_AROUND - (int64_t)json_array_size(pools);
    if (rows > 0 && (int64_t)n > space)
        n = space < 1 ? 1 : (size_t)space;
    view_head(t->summary);
    view_pools(pools);
    view_jobs(jobs, n, columns);
    free(jobs);
}

static void print_help(void)
{
    puts("Keys of belay top\n\n"
         "  c m t d n i   sort by cpu use, memory use, running time, cost, name, number\n"
         "  r             reverse the order\n"
         "  /             show only jobs with a text in their number, name, user, team, node or\n"
         "                pool: type it, then Enter; Esc shows all again\n"
         "  space         refresh now\n"
         "  h ?           this help; any key returns\n"
         "  q ctrl-c      quit; ctrl-z stops, fg continues");
}

/* The last line: what is typed, what went wrong, or what the keys do. */
static void print_keys(const struct top *t)
{
    const struct view_choice *v = &t->choice->view;
    if (t->is_typing)
        printf("/%s", v->filter);
    else if (t->problem[0])
        printf("%s", t->problem);
    else
        printf("sorted by %s%s%s%s   q quit  / filter  h help", orders[v->order].name,
            v->reverse ? " reversed" : "", v->filter[0] ? ", only " : "", v->filter);
    fflush(stdout);
}

static void draw(struct top *t)
{
    int rows, columns;
    screen_size(&rows, &columns);
    screen_clear();
    if (t->has_help)
        print_help();
    else
        print_all(t, rows, columns);
    print_keys(t);
}

/* ---- keys ---- */

static void type(struct view_choice *v, int key, bool *ret_ends)
{
    size_t n = strlen(v->filter);
    if (key == 27)
        v->filter[0] = '\0';
    *ret_ends = key == 27 || key == '\r' || key == '\n';
    if ((key == 127 || key == 8) && n > 0)
        v->filter[n - 1] = '\0';
    else if (key >= ' ' && key < 127 && n + 1 < sizeof(v->filter))
        v->filter[n] = (char)key, v->filter[n + 1] = '\0';
}

/* Returns whether newer data is wanted at once. */
static bool on_key(struct top *t, int key)
{
    struct view_choice *v = &t->choice->view;
    bool ends = false;
    if (t->has_help) {
        t->has_help = false;
        return false;
    }
    if (t->is_typing) {
        type(v, key, &ends);
        t->is_typing = !ends;
        return false;
    }
    for (size_t i = 0; i < N_ORDERS; i++)
        if (orders[i].key == key)
            v->order = orders[i].order;
    t->ends = key == 'q' || key == KEY_END;
    t->has_help = key == 'h' || key == '?';
    v->reverse ^= key == 'r';
    t->is_typing = key == '/';
    if (key == '/' || key == 27)
        v->filter[0] = '\0';
    return key == ' ';
}

/* Until the next refresh, or the end. */
static void handle_keys(struct top *t)
{
    int64_t until = clock_mono(&clock_system).ms + t->choice->every_s * 1000;
    bool refreshes = false;
    while (!t->ends && !refreshes) {
        int64_t left = until - clock_mono(&clock_system).ms;
        int key = left > 0 ? screen_key(&t->screen, left) : KEY_NONE;
        refreshes = key == KEY_NONE ? clock_mono(&clock_system).ms >= until : on_key(t, key);
        if (!t->ends && !refreshes)
            draw(t);
    }
}

/* ---- the verb ---- */

static int watch(struct top *t, struct err *e)
{
    int rc = screen_open(&t->screen, e);
    while (rc == 0 && !t->ends) {
        draw(t);
        handle_keys(t);
        rc = t->ends ? 0 : read_all(t, e);
        t->problem[0] = '\0';
        /* belayd may be restarting */
        if (rc == ERR_UNAVAILABLE || rc == ERR_IO || rc == ERR_TIMEOUT) {
            STR_COPY(t->problem, e->text);
            rc = 0;
        }
    }
    screen_close(&t->screen);
    return rc;
}

static int show(struct choice *choice, bool json, struct err *e)
{
    struct top t = {.choice = choice};
    int rc = client_create(&t.c, e);
    if (rc == 0)
        rc = read_all(&t, e);
    if (rc == 0 && json) {
        json_object_set(t.summary, "running", json_object_get(t.jobs, "jobs"));
        cli_print_json(t.summary);
    } else if (rc == 0 && (choice->once || !isatty(STDOUT_FILENO))) {
        print_all(&t, 0, 0);
    } else if (rc == 0) {
        rc = watch(&t, e);
    }
    json_decref(t.summary);
    json_decref(t.jobs);
    client_destroy(t.c);
    return rc;
}

static int run(int argc, const char **argv)
{
    struct choice c = {.every_s = EVERY_DEFAULT_S};
    struct cli_args a;
    struct err e;
    int rc = cli_parse(&verb_top, argc, argv, false, on_option, &c, &a);
    if (rc == 0 && show(&c, a.json, &e) != 0) {
        cli_error("%s", e.text);
        rc = CLI_FAILED;
    }
    buf_deinit(&c.user);
    cli_args_deinit(&a);
    return rc < 0 ? CLI_OK : rc;
}

static const struct poptOption options[] = {
    {"once", '1', POPT_ARG_NONE, NULL, VAL_ONCE,
        "print once and exit (default when stdout is not a terminal)", NULL},
    {"every", 'd', POPT_ARG_STRING, NULL, VAL_EVERY, "seconds between refreshes (default 2)",
        "SECONDS"},
    {"user", 'u', POPT_ARG_STRING, NULL, VAL_USER, "only jobs of these users", "LIST"},
    {"sort", 's', POPT_ARG_STRING, NULL, VAL_SORT, "the order of the jobs (default id)",
        "id|cpu|memory|time|cost|name"},
    POPT_TABLEEND,
};

const struct verb verb_top = {"top", CLI_NO_WORDS,
    "show the cluster and running jobs, refreshed continuously", run, options, false,
    .examples = "belay top        # h lists its keys\n"
                "belay top --once --user ann --sort cost\n"};
