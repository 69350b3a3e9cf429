/* SPDX-License-Identifier: Apache-2.0
 *
 *     belay cron [list [ENTRY] | show ENTRY]
 *     belay cron add [OPTION...] SCHEDULE SCRIPT [ARG...] | --wrap COMMAND
 *     belay cron add --after ENTRY[:any] [OPTION...] SCRIPT [ARG...] | --wrap COMMAND
 *     belay cron edit ENTRY [OPTION...] [SCRIPT [ARG...]]
 *     belay cron pause|resume|remove|run ENTRY...
 *     belay cron run ENTRY --date FIRST[..LAST] [--max-parallel N] [--again] [--dry-run]
 *     belay cron history [--limit N] ENTRY
 *
 * An entry is named by its number, or by its name if that is unique.
 */
#include "cli/submission.h"
#include "cli/verbs.h"

#include "base/mem.h"
#include "base/str.h"
#include "job/cron.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    VAL_NAME = 1,
    VAL_SCHEDULE,
    VAL_TZ,
    VAL_GAP,
    VAL_TWICE,
    VAL_OVERLAP,
    VAL_CATCH_UP,
    VAL_WRAP,
    VAL_LIMIT,
    VAL_USER,
    VAL_AFTER,
    VAL_SKIP_ON,
    VAL_ONLY_ON,
    VAL_DONE_BY,
    VAL_DATE,
    VAL_PARALLEL,
    VAL_AGAIN,
    VAL_DRY_RUN
};

#define HISTORY_MAX 200
#define PARALLEL_MAX 400

struct entry_options {
    json_t *entry; /* the requested change, as in docs/reference/api.md */
    struct submission s;
    char *wrap, *user, *after; /* after: ENTRY[:any]; NULL if not given */
    json_t *dates;             /* the request of run --date */
    int64_t limit;
    bool job_flags;
};

/* "all:24" sets two members. */
static int take_catch_up(struct entry_options *w, const char *arg)
{
    int64_t max;
    struct err e;
    const char *colon = strchr(arg, ':');
    if (!colon) {
        json_object_set_new(w->entry, "catch_up", json_text(arg));
        return CLI_OK;
    }
    if (strncmp(arg, "all:", 4) != 0 || str_to_i64(colon + 1, 1, 1000, "catch-up", &max, &e) != 0) {
        cli_error(
            "--catch-up: expected none, last, all, or all:N with N up to 1000, found \"%.60s\"",
            arg);
        return CLI_USAGE;
    }
    json_object_set_new(w->entry, "catch_up", json_string("all"));
    json_object_set_new(w->entry, "catch_up_max", json_integer(max));
    return CLI_OK;
}

static char *replaced(char *old, const char *with)
{
    free(old);
    return mem_strdup(with);
}

static int take_number(const char *arg, int64_t most, const char *flag, int64_t *ret_n)
{
    struct err e;
    if (str_to_i64(arg, 1, most, flag, ret_n, &e) == 0)
        return CLI_OK;
    cli_error("%s", e.text);
    return CLI_USAGE;
}

/* "2026-11-01" or "2026-11-01..2026-11-14". belayd checks the days. */
static int take_date(struct entry_options *w, const char *arg)
{
    const char *dots = strstr(arg, "..");
    json_object_set_new(
        w->dates, "from", json_textn(arg, dots ? (size_t)(dots - arg) : strlen(arg)));
    json_object_set_new(w->dates, "to", json_text(dots ? dots + 2 : arg));
    return CLI_OK;
}

static int take_parallel(struct entry_options *w, const char *arg)
{
    int64_t n;
    int rc = take_number(arg, PARALLEL_MAX, "--max-parallel", &n);
    if (rc == CLI_OK)
        json_object_set_new(w->dates, "max_parallel", json_integer(n));
    return rc;
}

static int on_option(void *ctx, int val, const char *arg)
{
    static const char *const members[] = {[VAL_NAME] = "name",
        [VAL_SCHEDULE] = "schedule",
        [VAL_TZ] = "zone",
        [VAL_GAP] = "gap",
        [VAL_TWICE] = "twice",
        [VAL_OVERLAP] = "overlap",
        [VAL_SKIP_ON] = "skip_on",
        [VAL_ONLY_ON] = "only_on",
        [VAL_DONE_BY] = "done_by"};
    struct entry_options *w = ctx;
    if (val >= CLI_JOB_FLAG) {
        w->job_flags = true;
        return submission_add_flag(&w->s, val, arg);
    }
    if (val == VAL_CATCH_UP)
        return take_catch_up(w, arg);
    if (val == VAL_LIMIT)
        return take_number(arg, HISTORY_MAX, "--limit", &w->limit);
    if (val == VAL_DATE)
        return take_date(w, arg);
    if (val == VAL_PARALLEL)
        return take_parallel(w, arg);
    if (val == VAL_AGAIN || val == VAL_DRY_RUN) {
        json_object_set_new(w->dates, val == VAL_AGAIN ? "again" : "dry_run", json_true());
        return CLI_OK;
    }
    if (val == VAL_WRAP)
        w->wrap = replaced(w->wrap, arg);
    else if (val == VAL_USER)
        w->user = replaced(w->user, arg);
    else if (val == VAL_AFTER)
        w->after = replaced(w->after, arg);
    else
        json_object_set_new(w->entry, members[val], json_text(arg));
    return CLI_OK;
}

/* ---- finding an entry ---- */

/* False after a report. */
static bool find_by_name(const char *word, int64_t *ret_id)
{
    size_t i;
    json_t *c, *v = cli_get("/api/v1/crons");
    int n = 0;
    if (!v)
        return false;
    json_array_foreach(json_object_get(v, "crons"), i, c) if (str_eq(cli_text(c, "name"), word))
    {
        *ret_id = cli_int(c, "id", 0);
        n++;
    }
    json_decref(v);
    if (n != 1)
        cli_error(n ? "several users have a cron entry \"%.60s\": give its number (belay cron list)"
                    : "there is no cron entry \"%.60s\" (belay cron list)",
            word);
    return n == 1;
}

static bool find(const char *word, int64_t *ret_id)
{
    struct err e;
    return str_to_i64(word, 1, INT64_MAX, "cron entry", ret_id, &e) == 0 ||
           find_by_name(word, ret_id);
}

/* ---- list, history ---- */

/* In the entry's zone, with its offset. */
static const char *first_of(const json_t *list)
{
    const char *text = cli_string(json_array_get(list, 0));
    return text ? text : "-";
}

#define AFTER_MAX 128

/* "nightly", "nightly:any": the entry that it runs after, as --after has it. */
static const char *after_text(const json_t *c, char out[AFTER_MAX])
{
    snprintf(out, AFTER_MAX, "%s%s", cli_text(c, "after_name"),
        str_eq(cli_text(c, "after_end"), "any") ? ":any" : "");
    return out;
}

static void print_list(const json_t *crons)
{
    size_t i;
    json_t *c;
    char shown[AFTER_MAX];
    struct table *t = table_create();
    static const char *const names[] = {
        "CRON", "NAME", "USER", "STATE", "SCHEDULE", "ZONE", "NEXT", "LAST JOB", NULL};
    for (int k = 0; names[k]; k++)
        table_column(t, names[k], k == 0 || k == 7);
    json_array_foreach(crons, i, c)
    {
        int64_t job = cli_int(c, "last_job", 0);
        table_row(t);
        table_cell(t, "%lld", (long long)cli_int(c, "id", 0));
        table_cell(t, "%s", cli_text(c, "name"));
        table_cell(t, "%s", cli_text(c, "user"));
        table_cell(
            t, "%s", json_is_string(json_object_get(c, "why")) ? "broken" : cli_text(c, "state"));
        if (cli_int(c, "after", 0) > 0)
            table_cell(t, "after %s", after_text(c, shown));
        else
            table_cell(t, "%s", cli_text(c, "schedule"));
        table_cell(t, "%s", cli_text(c, "zone"));
        table_cell(t, "%s", first_of(json_object_get(c, "upcoming")));
        if (job > 0)
            table_cell(t, "%lld", (long long)job);
        else
            table_cell(t, "-");
    }
    table_print(t);
    if (json_array_size(crons) == 0)
        cli_print_empty("there are no cron entries: belay cron add");
}

/* Prints the next times, and those between them that calendars leave out. */
static void print_next(const json_t *c)
{
    const json_t *next = json_object_get(c, "upcoming"), *left_out = json_object_get(c, "left_out");
    size_t k = 0;
    for (size_t i = 0; i < json_array_size(next) || k < json_array_size(left_out);) {
        const char *at = cli_string(json_array_get(next, i));
        const json_t *skipped = json_array_get(left_out, k);
        if (skipped && (!at || strcmp(cli_text(skipped, "at"), at) < 0)) {
            printf("  skipped     %s  %s\n", cli_text(skipped, "at"), cli_text(skipped, "why"));
            k++;
        } else {
            printf("  next        %s\n", at);
            i++;
        }
    }
}

static void print_entry(const json_t *c)
{
    size_t i;
    json_t *at;
    char shown[AFTER_MAX];
    printf("cron %lld   %s of %s, %s\n", (long long)cli_int(c, "id", 0), cli_text(c, "name"),
        cli_text(c, "user"), cli_text(c, "state"));
    if (cli_int(c, "after", 0) > 0)
        printf(
            "  after       %s, at its times, in %s\n", after_text(c, shown), cli_text(c, "zone"));
    else
        printf("  schedule    %s in %s\n", cli_text(c, "schedule"), cli_text(c, "zone"));
    if (json_is_string(json_object_get(c, "skip_on")))
        printf("  skip on     days of calendar %s\n", cli_text(c, "skip_on"));
    if (json_is_string(json_object_get(c, "only_on")))
        printf("  only on     days of calendar %s\n", cli_text(c, "only_on"));
    if (json_is_string(json_object_get(c, "done_by")))
        printf("  done by     %s, else it is notified\n", cli_text(c, "done_by"));
    printf("  clocks      skipped times: %s; repeated times: %s\n", cli_text(c, "gap"),
        cli_text(c, "twice"));
    printf("  overlap     %s\n", cli_text(c, "overlap"));
    printf("  catch-up    %s", cli_text(c, "catch_up"));
    if (str_eq(cli_text(c, "catch_up"), "all"))
        printf(", at most %lld", (long long)cli_int(c, "catch_up_max", 0));
    printf("\n  times       %lld started, %lld skipped, %lld missed\n",
        (long long)cli_int(c, "started", 0), (long long)cli_int(c, "skipped", 0),
        (long long)cli_int(c, "missed", 0));
    json_array_foreach(json_object_get(c, "waiting"), i, at)
        printf("  waiting     %s\n", cli_string(at));
    print_next(c);
    if (cli_int(c, "last_job", 0) > 0)
        printf("  last job    %lld\n", (long long)cli_int(c, "last_job", 0));
    if (json_is_string(json_object_get(c, "why")))
        printf("  broken      %s\n", cli_text(c, "why"));
}

static int list(const struct entry_options *w, const struct cli_args *a)
{
    int64_t id = 0;
    struct buf path = {0};
    if (a->n_rest > 1) {
        cli_error("expected belay cron list [ENTRY]");
        return CLI_USAGE;
    }
    if (a->n_rest == 1 && !find(a->rest[0], &id))
        return CLI_FAILED;
    buf_adds(&path, "/api/v1/crons");
    if (id > 0)
        buf_printf(&path, "/%lld", (long long)id);
    else if (w->user)
        cli_add_parameter(&path, "user", w->user);
    json_t *v = cli_get(buf_str(&path));
    buf_deinit(&path);
    if (v && a->json)
        cli_print_json(v);
    else if (v && id > 0)
        print_entry(json_object_get(v, "cron"));
    else if (v)
        print_list(json_object_get(v, "crons"));
    int rc = v ? CLI_OK : CLI_FAILED;
    json_decref(v);
    return rc;
}

static void print_runs(const json_t *runs)
{
    char at[CLI_LOCAL_MAX];
    size_t i;
    json_t *r;
    struct table *t = table_create();
    table_column(t, "TIME", false);
    table_column(t, "OUTCOME", false);
    table_column(t, "JOB", true);
    table_column(t, "WHY", TABLE_SENTENCE);
    json_array_foreach(runs, i, r)
    {
        int64_t job = cli_int(r, "job", 0), times = cli_int(r, "times", 1);
        table_row(t);
        table_cell(t, "%s", cli_when(r, "at", at));
        if (times > 1)
            table_cell(t, "%s %lld times", cli_text(r, "outcome"), (long long)times);
        else
            table_cell(t, "%s", cli_text(r, "outcome"));
        if (job > 0)
            table_cell(t, "%lld", (long long)job);
        else
            table_cell(t, "-");
        table_cell(t, "%s%s", json_is_true(json_object_get(r, "by_hand")) ? "by hand, " : "",
            cli_text(r, "text"));
    }
    table_print(t);
    if (json_array_size(runs) == 0)
        cli_print_empty("no scheduled time has passed yet");
}

static int history(const struct entry_options *w, const struct cli_args *a)
{
    int64_t id;
    if (a->n_rest != 1) {
        cli_error("expected an entry: belay cron history [--limit N] ENTRY");
        return CLI_USAGE;
    }
    if (!find(a->rest[0], &id))
        return CLI_FAILED;
    const char *path =
        CLI_PATH("/api/v1/crons/%lld/runs?limit=%lld", (long long)id, (long long)w->limit);
    json_t *v = cli_get(path);
    if (v && a->json)
        cli_print_json(v);
    else if (v)
        print_runs(json_object_get(v, "runs"));
    int rc = v ? CLI_OK : CLI_FAILED;
    json_decref(v);
    return rc;
}

/* ---- add, edit ---- */

static int send(const char *path, const json_t *entry, bool json, const char *done)
{
    struct client *c = NULL;
    json_t *reply = NULL, *now = NULL;
    struct err e = {0};
    int rc = client_create(&c, &e);
    if (rc == 0)
        rc = client_json(c, "POST", path, entry, &reply, &e);
    int64_t id = rc == 0 ? cli_int(reply, "id", 0) : 0;
    const char *shown = CLI_PATH("/api/v1/crons/%lld", (long long)id);
    if (rc != 0) {
        cli_error("%s", e.text);
    } else if (json) {
        cli_print_json(reply);
    } else if (client_json(c, "GET", shown, NULL, &now, &e) == 0) {
        const json_t *cron = json_object_get(now, "cron");
        char after[AFTER_MAX];
        bool follows = cli_int(cron, "after", 0) > 0;
        printf("cron %lld (%s) %s: next %s%s%s %s\n", (long long)id, cli_text(cron, "name"), done,
            follows ? "after the run of " : "at", follows ? after_text(cron, after) : "",
            follows ? " for" : "", first_of(json_object_get(cron, "upcoming")));
    } else {
        printf("cron %lld %s\n", (long long)id, done);
    }
    json_decref(now);
    json_decref(reply);
    client_destroy(c);
    return rc == 0 ? CLI_OK : e.kind == ERR_INVALID ? CLI_USAGE : CLI_FAILED;
}

/* Adds the job to the entry. */
static int take_job(struct entry_options *w, const char *verb, const char **words, int n_words)
{
    int rc = submission_load(&w->s, verb, w->wrap, words, n_words);
    struct err e = {0};
    if (rc != 0)
        return rc;
    if (submission_upload(&w->s, NULL, &e) != 0) {
        cli_error("%s", e.text);
        return e.kind == ERR_INVALID ? CLI_USAGE : CLI_FAILED;
    }
    json_object_set(w->entry, "job", w->s.spec);
    return CLI_OK;
}

/* Looks up the entry of --after. */
static int take_after(struct entry_options *w)
{
    int64_t id;
    size_t n = strlen(w->after);
    bool any = n > 4 && str_eq(w->after + n - 4, ":any");
    if (json_object_get(w->entry, "schedule")) {
        cli_error("an entry has a schedule, or the times of the entry that it runs after: leave "
                  "--schedule or --after out");
        return CLI_USAGE;
    }
    if (any)
        w->after[n - 4] = '\0';
    if (!find(w->after, &id))
        return CLI_FAILED;
    json_object_set_new(w->entry, "after", json_integer(id));
    json_object_set_new(w->entry, "after_end", json_string(any ? "any" : "well"));
    return CLI_OK;
}

static int add_job(struct entry_options *w, const struct cli_args *a, int n_before)
{
    int rc = take_job(w, n_before ? "cron add SCHEDULE" : "cron add --after ENTRY",
        a->rest + n_before, a->n_rest - n_before);
    if (rc != 0)
        return rc;
    if (!json_object_get(w->entry, "name"))
        json_object_set(w->entry, "name", json_object_get(w->s.spec, "name"));
    return send("/api/v1/crons", w->entry, a->json, "added");
}

static int add(struct entry_options *w, const struct cli_args *a)
{
    if (w->after) {
        struct cron schedule;
        if (a->n_rest > 0 && cron_parse(a->rest[0], &schedule, &(struct err){0}) == 0) {
            cli_error("with --after an entry has no schedule: it has the times of %s. Leave one of "
                      "them out",
                w->after);
            return CLI_USAGE;
        }
        int rc = take_after(w);
        return rc ? rc : add_job(w, a, 0);
    }
    if (a->n_rest < 1) {
        cli_error("expected a schedule: belay cron add [OPTION...] '30 2 * * *' SCRIPT [ARG...]");
        return CLI_USAGE;
    }
    struct cron schedule;
    struct err e = {0};
    if (cron_parse(a->rest[0], &schedule, &e) != 0) {
        cli_error(
            "the schedule: %s: belay cron add [OPTION...] '30 2 * * *' SCRIPT [ARG...]", e.text);
        return CLI_USAGE;
    }
    json_object_set_new(w->entry, "schedule", json_text(a->rest[0]));
    return add_job(w, a, 1);
}

/* word: the entry. Without a script or command its job stays unchanged. */
static int edit(struct entry_options *w, const char *word, const struct cli_args *a)
{
    int64_t id;
    bool has_job = a->n_rest > 0 || w->wrap;
    if (!has_job && w->job_flags) {
        cli_error("flags of a job need the job: belay cron edit ENTRY [OPTION...] SCRIPT [ARG...]");
        return CLI_USAGE;
    }
    int rc = has_job ? take_job(w, "cron edit ENTRY", a->rest, a->n_rest) : CLI_OK;
    if (rc == CLI_OK && w->after)
        rc = take_after(w);
    if (rc == CLI_OK && json_object_size(w->entry) == 0) {
        cli_error(
            "nothing to change: give a script, --schedule, --after, --tz, --dst-gap, "
            "--dst-overlap, --overlap, --catch-up, --skip-on, --only-on, --done-by or --name");
        rc = CLI_USAGE;
    }
    if (rc != CLI_OK)
        return rc;
    if (!find(word, &id))
        return CLI_FAILED;
    rc = send(CLI_PATH("/api/v1/crons/%lld", (long long)id), w->entry, a->json, "changed");
    return rc;
}

/* ---- pause, resume, remove, run ---- */

static int change_one(const char *word, const char *action, const char *done, bool json)
{
    int64_t id;
    if (!find(word, &id))
        return CLI_FAILED;
    json_t *v = cli_post(CLI_PATH("/api/v1/crons/%lld/%s", (long long)id, action), NULL);
    if (v && json)
        cli_print_json(v);
    else if (v && str_eq(action, "run"))
        printf("Submitted batch job %lld\n", (long long)cli_int(v, "id", 0));
    else if (v)
        printf("cron %lld %s\n", (long long)id, done);
    int rc = v ? CLI_OK : CLI_FAILED;
    json_decref(v);
    return rc;
}

static int change(const char *action, const char *done, const struct cli_args *a)
{
    int rc = CLI_OK;
    if (a->n_rest == 0) {
        cli_error("expected an entry: belay cron %s ENTRY...", action);
        return CLI_USAGE;
    }
    for (int i = 0; i < a->n_rest; i++) {
        int one = change_one(a->rest[i], action, done, a->json);
        rc = one > rc ? one : rc;
    }
    return rc;
}

/* ---- run --date ---- */

/* Prints the times; returns whether one was refused. */
static bool print_dates(const json_t *runs, bool dry_run)
{
    struct table *t = table_create();
    bool refused = false;
    size_t i;
    json_t *r;
    table_column(t, "DATE", false);
    table_column(t, "TIME", false);
    table_column(t, "JOB", true);
    table_column(t, "WHY NOT", false);
    json_array_foreach(runs, i, r)
    {
        const char *why = cli_string(json_object_get(r, "why"));
        int64_t job = cli_int(r, "job", 0);
        refused = refused || (why && strncmp(why, "not submitted", 13) == 0);
        table_row(t);
        table_cell(t, "%s", cli_text(r, "date"));
        table_cell(t, "%s", cli_text(r, "at"));
        if (job > 0)
            table_cell(t, "%lld", (long long)job);
        else
            table_cell(t, "%s", dry_run && !why ? "would start" : "-");
        table_cell(t, "%s", why ? why : "");
    }
    table_print(t);
    return refused;
}

static int run_dates(const struct entry_options *w, const struct cli_args *a)
{
    int64_t id;
    if (a->n_rest != 1 || !json_object_get(w->dates, "from")) {
        cli_error("expected one entry and its days: belay cron run ENTRY --date FIRST[..LAST] "
                  "[--max-parallel N] [--again] [--dry-run]");
        return CLI_USAGE;
    }
    if (!find(a->rest[0], &id))
        return CLI_FAILED;
    json_t *v = cli_post(CLI_PATH("/api/v1/crons/%lld/dates", (long long)id), w->dates);
    int rc = v ? CLI_OK : CLI_FAILED;
    if (v && a->json)
        cli_print_json(v);
    else if (v && print_dates(json_object_get(v, "runs"),
                      json_is_true(json_object_get(w->dates, "dry_run"))))
        rc = CLI_FAILED;
    json_decref(v);
    return rc;
}

static int act(
    const char *action, struct entry_options *w, const char *entry, const struct cli_args *a)
{
    static const struct {
        const char *action, *done;
    } changes[] = {{"pause", "paused"}, {"resume", "resumed"}, {"remove", "removed"}, {"run", ""}};
    if (str_eq(action, "add"))
        return add(w, a);
    if (str_eq(action, "edit"))
        return edit(w, entry, a);
    if (str_eq(action, "run") && json_object_size(w->dates) > 0)
        return run_dates(w, a);
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++)
        if (str_eq(action, changes[i].action))
            return change(action, changes[i].done, a);
    if (cli_is_remove(action))
        return change("remove", "removed", a);
    if (w->job_flags || w->wrap || w->after || json_object_size(w->entry) > 0 ||
        json_object_size(w->dates) > 0) {
        cli_error("belay cron %s takes no flags of a job or a schedule", action);
        return CLI_USAGE;
    }
    if (str_eq(action, "history"))
        return history(w, a);
    if (str_eq(action, "list"))
        return list(w, a);
    if (str_eq(action, "show") && a->n_rest == 1)
        return list(w, a);
    if (str_eq(action, "show")) {
        cli_error("expected an entry: belay cron show ENTRY");
        return CLI_USAGE;
    }
    cli_error(
        "expected add, list, show, edit, pause, resume, run, remove or history, found \"%.60s\"",
        action);
    return CLI_USAGE;
}

static int run(int argc, const char **argv)
{
    struct entry_options w = {.entry = json_object(), .dates = json_object(), .limit = 50};
    struct cli_args a;
    /* The action comes first, or after --json, because the other options depend on it. */
    int json = argc > 2 && str_eq(argv[1], "--json") ? 1 : 0;
    int skip = argc > 1 + json && argv[1 + json][0] != '-' ? 1 + json : 0;
    const char *action = skip ? argv[skip] : "list", *entry = NULL;
    bool is_edit = str_eq(action, "edit"), posix = is_edit || str_eq(action, "add");
    if (is_edit && argc > skip + 1 && argv[skip + 1][0] != '-')
        entry = argv[++skip];
    submission_init(&w.s);
    w.s.by_schedule = true;
    int rc = cli_parse(&verb_cron, argc - skip, argv + skip, posix, on_option, &w, &a);
    a.json |= json;
    if (rc == 0 && is_edit && !entry) {
        cli_error("expected an entry: belay cron edit ENTRY [OPTION...] [SCRIPT [ARG...]]");
        rc = CLI_USAGE;
    }
    if (rc == 0)
        rc = act(action, &w, entry, &a);
    cli_args_deinit(&a);
    submission_deinit(&w.s);
    json_decref(w.entry);
    json_decref(w.dates);
    free(w.wrap);
    free(w.user);
    free(w.after);
    return rc < 0 ? CLI_OK : rc;
}

static const struct poptOption options[] = {
    {"name", 0, POPT_ARG_STRING, NULL, VAL_NAME, "the entry's name; default: the job's", "NAME"},
    {"schedule", 0, POPT_ARG_STRING, NULL, VAL_SCHEDULE, "with edit: the new schedule", "SCHEDULE"},
    {"after", 0, POPT_ARG_STRING, NULL, VAL_AFTER,
        "instead of a schedule: run when the run of this entry for the same time has ended well; "
        "with :any, however it has ended",
        "ENTRY[:any]"},
    {"skip-on", 0, POPT_ARG_STRING, NULL, VAL_SKIP_ON,
        "no runs on the days of this calendar (belay calendar); \"\" for none", "CALENDAR"},
    {"only-on", 0, POPT_ARG_STRING, NULL, VAL_ONLY_ON,
        "runs only on the days of this calendar; \"\" for none", "CALENDAR"},
    {"done-by", 0, POPT_ARG_STRING, NULL, VAL_DONE_BY,
        "notify if the run of the day has not ended well by then; \"\" for no time", "HH:MM"},
    {"tz", 0, POPT_ARG_STRING, NULL, VAL_TZ,
        "time zone of the schedule, such as Europe/Berlin (default: the schedule's TZ=, else UTC)",
        "ZONE"},
    {"dst-gap", 0, POPT_ARG_STRING, NULL, VAL_GAP,
        "for a time that the clocks skip: run at the jump, or skip that day (default run)",
        "run|skip"},
    {"dst-overlap", 0, POPT_ARG_STRING, NULL, VAL_TWICE,
        "for a time that the clocks show twice (default auto: first, or both if every hour is "
        "named)",
        "auto|first|last|both"},
    {"overlap", 0, POPT_ARG_STRING, NULL, VAL_OVERLAP,
        "for a time at which the previous job has not ended (default skip)", "skip|queue|replace"},
    {"catch-up", 0, POPT_ARG_STRING, NULL, VAL_CATCH_UP,
        "for times missed while belayd was down; all means at most 24, all:N at most N (default "
        "last)",
        "none|last|all"},
    {"wrap", 0, POPT_ARG_STRING, NULL, VAL_WRAP, "submit this shell command instead of a script",
        "COMMAND"},
    {"date", 0, POPT_ARG_STRING, NULL, VAL_DATE,
        "with run: for the scheduled times of these days, which have passed", "DAY[..DAY]"},
    {"max-parallel", 0, POPT_ARG_STRING, NULL, VAL_PARALLEL,
        "with --date: how many of these jobs run at once (default 1)", "NUMBER"},
    {"again", 0, POPT_ARG_NONE, NULL, VAL_AGAIN, "with --date: also what has run already", NULL},
    {"dry-run", 'n', POPT_ARG_NONE, NULL, VAL_DRY_RUN,
        "with --date: only list what would be started", NULL},
    {"limit", 0, POPT_ARG_STRING, NULL, VAL_LIMIT,
        "with history: number of times, at most 200 (default 50)", "NUMBER"},
    {"user", 'u', POPT_ARG_STRING, NULL, VAL_USER, "with list: only this user's entries", "NAME"},
    POPT_TABLEEND,
};

const struct verb verb_cron = {"cron",
    "[add|list|show|edit|pause|resume|run|remove|history] [OPTION...] "
    "[ENTRY|SCHEDULE SCRIPT [ARG...]]",
    "submit a job at the times of a schedule", run, options, true,
    .examples = "belay cron add --name nightly '0 1 * * *' train.sh\n"
                "belay cron list\n"
                "belay cron run nightly --date 2026-11-01..2026-11-14 --dry-run\n"
                "belay cron history nightly\n"};
