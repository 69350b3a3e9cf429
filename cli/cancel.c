/* SPDX-License-Identifier: Apache-2.0
 *
 * belay cancel JOB...: jobs by number, or by their properties. What is selected by properties or as
 * a range is listed first, then cancelled in requests of many jobs each, one commit a request.
 */
#include "cli/change.h"
#include "cli/job_table.h"
#include "cli/selection.h"
#include "cli/verbs.h"

#include "base/str.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define JOBS_MAX 100000
#define JOBS_PER_REQUEST 10000

enum { VAL_ALL = 1, VAL_ALL_USERS, VAL_DRY_RUN };

struct choice {
    struct buf query;
    bool is_selection; /* by properties */
    bool is_user_given, dry_run, json;
};

static int on_option(void *ctx, int val, const char *arg)
{
    struct choice *c = ctx;
    if (val == VAL_DRY_RUN) {
        c->dry_run = true;
        return CLI_OK;
    }
    c->is_selection = true;
    c->is_user_given |= val == VAL_ALL_USERS || val == SELECTION_USER;
    if (val >= SELECTION_STATE)
        selection_add(&c->query, val, arg);
    return CLI_OK;
}

/* "42" or "10-20". Tasks ("42_7", "42_[5-10]") are no range. */
static bool parse_range(const char *word, int64_t *ret_first, int64_t *ret_last)
{
    struct err e;
    const char *dash = strchr(word, '-');
    if (strchr(word, '_'))
        return false;
    if (!dash)
        return str_to_i64(word, 1, INT64_MAX, "job", ret_first, &e) == 0 &&
               (*ret_last = *ret_first) > 0;
    char first[24];
    if (snprintf(first, sizeof(first), "%.*s", (int)(dash - word), word) >= (int)sizeof(first))
        return false;
    return str_to_i64(first, 1, INT64_MAX, "job", ret_first, &e) == 0 &&
           str_to_i64(dash + 1, *ret_first, INT64_MAX - 1, "job", ret_last, &e) == 0;
}

/* Without --user and --all-users, properties select the caller's own jobs: an administrator may
 * cancel those of everyone, and must say so. */
static int add_caller(struct client *c, struct choice *choice, struct err *e)
{
    json_t *v = NULL;
    int rc = client_json(c, "GET", "/api/v1/version", NULL, &v, e);
    if (rc == 0)
        selection_add(&choice->query, SELECTION_USER, cli_text(v, "user"));
    json_decref(v);
    return rc;
}

/* Appends the active jobs of the query from first to last. Jobs are listed newest first. */
static int read_range(struct client *c, const struct choice *choice, int64_t first, int64_t last,
    json_t *jobs, struct err *e)
{
    int64_t next = last < INT64_MAX ? last + 1 : 0;
    size_t i = json_array_size(jobs);
    do {
        int64_t limit = (int64_t)json_array_size(jobs) + (first == last ? 1 : 200);
        int rc = selection_read(c, buf_str(&choice->query), next, limit, jobs, &next, e);
        if (rc != 0)
            return rc;
        if (json_array_size(jobs) > JOBS_MAX)
            return err_set(e, ERR_INVALID,
                "more than %d jobs are selected; select fewer, for example by range", JOBS_MAX);
    } while (next > first);
    for (; i < json_array_size(jobs); i++)
        if (cli_int(json_array_get(jobs, i), "id", 0) < first)
            json_array_remove(jobs, i--);
    return 0;
}

/* Appends to `jobs` what the words and properties select. */
static int read_jobs(
    struct client *c, struct choice *choice, const struct cli_args *a, json_t *jobs, struct err *e)
{
    int64_t first, last;
    int rc = 0;
    if (choice->is_selection && !choice->is_user_given)
        rc = add_caller(c, choice, e);
    if (rc == 0 && a->n_rest == 0)
        rc = read_range(c, choice, 1, INT64_MAX, jobs, e);
    for (int i = 0; rc == 0 && i < a->n_rest; i++) {
        if (!parse_range(a->rest[i], &first, &last))
            return err_set(e, ERR_INVALID,
                "\"%s\": expected a job's number or a range such as 10-20 beside options that "
                "select jobs, and for --dry-run",
                a->rest[i]);
        rc = read_range(c, choice, first, last, jobs, e);
    }
    return rc;
}

/* ---- cancelling what was read ---- */

struct counts {
    int64_t cancelled, ended, denied;
};

static int cancel_from(
    struct client *c, const json_t *jobs, size_t from, struct counts *n, struct err *e)
{
    json_t *ids = json_array(), *v = NULL, *body;
    for (size_t i = from; i < json_array_size(jobs) && i - from < JOBS_PER_REQUEST; i++)
        json_array_append_new(
            ids, json_sprintf("%" PRId64, cli_int(json_array_get(jobs, i), "id", 0)));
    body = json_pack("{s:o}", "jobs", ids);
    int rc = client_json(c, "POST", "/api/v1/jobs/cancel", body, &v, e);
    n->cancelled += cli_int(v, "cancelled", 0);
    n->ended += cli_int(v, "ended", 0);
    n->denied += cli_int(v, "denied", 0);
    json_decref(body);
    json_decref(v);
    return rc;
}

static int cancel_all(
    struct client *c, const struct choice *choice, const json_t *jobs, struct err *e)
{
    struct counts n = {0};
    char text[CLI_COUNT_MAX];
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < json_array_size(jobs); i += JOBS_PER_REQUEST)
        rc = cancel_from(c, jobs, i, &n, e);
    if (choice->json && rc == 0) {
        json_t *v = json_pack("{s:I,s:I,s:I}", "cancelled", (json_int_t)n.cancelled, "ended",
            (json_int_t)n.ended, "denied", (json_int_t)n.denied);
        cli_print_json(v);
        json_decref(v);
        return 0;
    }
    if (n.cancelled > 0 || rc == 0)
        printf("%s %s being cancelled\n", cli_count(n.cancelled, "job", text),
            n.cancelled == 1 ? "is" : "are");
    if (n.ended > 0)
        printf("%lld had ended before\n", (long long)n.ended);
    if (n.denied > 0)
        return err_set(
            e, ERR_DENIED, "%s of other users: not cancelled", cli_count(n.denied, "job", text));
    return rc;
}

static void print_dry_run(const struct cli_args *a, json_t *jobs)
{
    json_t *v = json_pack("{s:O}", "jobs", jobs);
    char n[CLI_COUNT_MAX];
    if (a->json)
        cli_print_json(v);
    else
        list_table(jobs, job_columns);
    if (!a->json)
        printf("%s would be cancelled\n", cli_count((int64_t)json_array_size(jobs), "job", n));
    json_decref(v);
}

static int cancel_selected(struct choice *choice, const struct cli_args *a)
{
    struct client *c = NULL;
    struct err e;
    json_t *jobs = json_array();
    int rc = client_create(&c, &e);
    if (rc == 0)
        rc = read_jobs(c, choice, a, jobs, &e);
    if (rc == 0 && choice->dry_run)
        print_dry_run(a, jobs);
    else if (rc == 0)
        rc = cancel_all(c, choice, jobs, &e);
    if (rc != 0)
        cli_error("%s", e.text);
    json_decref(jobs);
    client_destroy(c);
    return rc == 0 ? CLI_OK : e.kind == ERR_INVALID ? CLI_USAGE : CLI_FAILED;
}

/* ---- the verb ---- */

static bool has_range(const struct cli_args *a)
{
    int64_t first, last;
    for (int i = 0; i < a->n_rest; i++)
        if (strchr(a->rest[i], '-') && parse_range(a->rest[i], &first, &last))
            return true;
    return false;
}

static int run(int argc, const char **argv)
{
    struct choice c = {0};
    struct cli_args a;
    int rc = cli_parse(&verb_cancel, argc, argv, false, on_option, &c, &a);
    c.json = a.json;
    if (rc == 0 && a.n_rest == 0 && !c.is_selection) {
        cli_error("expected a job: belay cancel JOB..., or an option that selects jobs, such as "
                  "--name or --all (belay cancel --help)");
        rc = CLI_USAGE;
    } else if (rc == 0 && (c.is_selection || c.dry_run || has_range(&a))) {
        rc = cancel_selected(&c, &a);
    } else if (rc == 0) {
        rc = change_words(&a, "cancel", NULL, "is being cancelled");
    }
    buf_deinit(&c.query);
    cli_args_deinit(&a);
    return rc < 0 ? CLI_OK : rc;
}

static const struct poptOption options[] = {
    {"all", 0, POPT_ARG_NONE, NULL, VAL_ALL, "all of your active jobs", NULL},
    {"all-users", 0, POPT_ARG_NONE, NULL, VAL_ALL_USERS,
        "jobs of all users, not only yours (administrators)", NULL},
    SELECTION_OPTIONS,
    {"dry-run", 'n', POPT_ARG_NONE, NULL, VAL_DRY_RUN, "only list what would be cancelled", NULL},
    POPT_TABLEEND,
};

const struct verb verb_cancel = {"cancel", "[OPTION...] [JOB|FIRST-LAST...]", "end jobs", run,
    options, false,
    .examples = "belay cancel 42 43\n"
                "belay cancel 42_[5-10]              # tasks of an array\n"
                "belay cancel --dry-run 100-200\n"
                "belay cancel --name 'sweep-*' --state pending\n"
                "belay cancel --all\n"};
