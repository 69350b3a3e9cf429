/* SPDX-License-Identifier: Apache-2.0
 *
 * belay drill JOB: saves, kills and resumes a running job, and reports whether it resumed
 * correctly. With --compare it also compares the job's result, once available, with that of an
 * undisturbed run. belay drill --list: lists past drills.
 */
#include "cli/drill.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/time.h"
#include "cli/reports/compare.h"
#include "cli/verbs.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VAL_WITHOUT_NOTICE = 1, VAL_LIST, VAL_USER, VAL_COMPARE, VAL_AGAINST, VAL_LIMIT };

#define LIMIT_MAX_MS (86400LL * 1000)

struct drill_options {
    bool without_notice, list, limit_given;
    struct compare compare; /* owns its command */
    struct buf path;        /* of the list */
};

static int take_limit(struct drill_options *w, const char *arg)
{
    struct err e;
    if (time_parse_duration(arg, false, &w->compare.limit_ms, &e) != 0 ||
        w->compare.limit_ms < 1000 || w->compare.limit_ms > LIMIT_MAX_MS) {
        cli_error("--compare-limit: expected a time from 1s to 1d, found \"%.60s\"", arg);
        return CLI_USAGE;
    }
    w->limit_given = true;
    return CLI_OK;
}

static int on_option(void *ctx, int val, const char *arg)
{
    struct drill_options *w = ctx;
    if (val == VAL_WITHOUT_NOTICE)
        w->without_notice = true;
    else if (val == VAL_LIST)
        w->list = true;
    else if (val == VAL_COMPARE) {
        free(w->compare.command);
        w->compare.command = mem_strdup(arg);
    } else if (val == VAL_AGAINST) {
        STR_COPY(w->compare.against_name, arg);
        return cli_job_id(arg, &w->compare.against);
    } else if (val == VAL_LIMIT)
        return take_limit(w, arg);
    else
        cli_add_parameter(&w->path, "user", arg);
    return CLI_OK;
}

/* ---- printing ---- */

static bool is_over(const json_t *d)
{
    const char *state = cli_text(d, "state");
    return str_eq(state, "passed") || str_eq(state, "failed") || str_eq(state, "interrupted");
}

static const char *verdict(const json_t *d)
{
    const char *state = cli_text(d, "state");
    return str_eq(state, "passed")        ? "certified"
           : str_eq(state, "failed")      ? "not certified"
           : str_eq(state, "interrupted") ? "interrupted"
                                          : "under way";
}

static void print_saved(const json_t *d)
{
    char bytes[32], took[32];
    const json_t *ref = json_object_get(d, "saved");
    if (!json_is_object(ref))
        return;
    str_format_bytes((uint64_t)cli_int(d, "bytes", 0), bytes, sizeof(bytes));
    printf("  checkpoint  %lld.%lld, %s, saved in %s", (long long)cli_int(ref, "attempt", 0),
        (long long)cli_int(ref, "sequence", 0), bytes,
        cli_duration(cli_int(d, "save_ms", 0), took, sizeof(took)));
    if (cli_int(d, "saved_progress", -1) >= 0)
        printf(", at step %lld", (long long)cli_int(d, "saved_progress", -1));
    printf(
        ", %s notice\n", json_is_true(json_object_get(d, "without_notice")) ? "without" : "with");
    printf("  lost        %s", cli_duration(cli_int(d, "lost_ms", 0), took, sizeof(took)));
    if (cli_int(d, "lost_steps", -1) >= 0)
        printf(", %lld steps", (long long)cli_int(d, "lost_steps", -1));
    putchar('\n');
}

static void print_resumed(const json_t *d)
{
    char took[32], restored[32];
    bool same = cli_int(d, "resumed_node", 0) == cli_int(d, "node", -1);
    if (cli_int(d, "resumed_attempt", 0) == 0)
        return;
    printf("  resumed     attempt %lld on node %lld%s, restored in %s",
        (long long)cli_int(d, "resumed_attempt", 0), (long long)cli_int(d, "resumed_node", 0),
        same ? " (the same node: no other was available)" : "",
        cli_duration(cli_int(d, "restore_ms", 0), restored, sizeof(restored)));
    if (cli_int(d, "resume_ms", 0) > 0)
        printf(", %s after the kill", cli_duration(cli_int(d, "resume_ms", 0), took, sizeof(took)));
    if (cli_int(d, "progress", -1) >= 0)
        printf(" at step %lld", (long long)cli_int(d, "progress", -1));
    putchar('\n');
    if (cli_int(d, "compared_with", 0) > 0)
        printf("  result      %s that of job %s, which ran undisturbed\n",
            str_eq(cli_text(d, "state"), "passed") ? "equals" : "is not",
            cli_text(d, "compared_with_ref"));
}

void drill_print(const json_t *d)
{
    char at[CLI_LOCAL_MAX];
    printf("drill %s.%lld   %s: %s\n", cli_text(d, "ref"), (long long)cli_int(d, "number", 0),
        verdict(d), cli_text(d, "text"));
    print_saved(d);
    print_resumed(d);
    printf("  job         \"%s\" of %s, %s, script %.12s, %s, belay %s, method %lld\n",
        cli_text(d, "name"), cli_text(d, "user"), cli_text(d, "method"), cli_text(d, "script_key"),
        cli_when(d, "asked_at", at), cli_text(d, "version"),
        (long long)cli_int(d, "method_version", 0));
}

static void print_list(const json_t *drills)
{
    struct table *t = table_create();
    size_t i;
    json_t *d;
    char age[32], took[32];
    table_column(t, "JOB", true);
    table_column(t, "NAME", false);
    table_column(t, "USER", false);
    table_column(t, "AGE", true);
    table_column(t, "VERDICT", false);
    table_column(t, "RESUMES IN", true);
    table_column(t, "LOSES", true);
    table_column(t, "SCRIPT", false);
    table_column(t, "WHY", TABLE_SENTENCE);
    json_array_foreach(drills, i, d)
    {
        table_row(t);
        table_cell(t, "%s.%lld", cli_text(d, "ref"), (long long)cli_int(d, "number", 0));
        table_cell(t, "%s", cli_text(d, "name"));
        table_cell(t, "%s", cli_text(d, "user"));
        table_cell(t, "%s", cli_ago(d, "asked_at", age, sizeof(age)));
        table_cell(t, "%s", verdict(d));
        if (cli_int(d, "resume_ms", 0) > 0)
            table_cell(t, "%s", cli_duration(cli_int(d, "resume_ms", 0), took, sizeof(took)));
        else
            table_cell(t, "-");
        if (cli_int(d, "lost_steps", -1) >= 0)
            table_cell(t, "%lld steps", (long long)cli_int(d, "lost_steps", -1));
        else
            table_cell(t, "%s", cli_duration(cli_int(d, "lost_ms", 0), took, sizeof(took)));
        table_cell(t, "%.12s", cli_text(d, "script_key"));
        table_cell(t, "%s", cli_text(d, "text"));
    }
    table_print(t);
    if (json_array_size(drills) == 0)
        cli_print_empty("no job was drilled yet: belay drill JOB");
}

static int list(const struct drill_options *w, bool json)
{
    json_t *v = cli_get(buf_str(&w->path));
    if (!v)
        return CLI_FAILED;
    if (json)
        cli_print_json(v);
    else
        print_list(json_object_get(v, "drills"));
    json_decref(v);
    return CLI_OK;
}

/* ---- one drill ---- */

static int begin(struct client *c, int64_t job, bool without_notice, struct err *e)
{
    json_t *reply = NULL, *body = json_pack("{s:b}", "without_notice", (int)without_notice);
    const char *path = CLI_PATH("/api/v1/jobs/%lld/drill", (long long)job);
    int rc = client_json(c, "POST", path, body, &reply, e);
    json_decref(reply);
    json_decref(body);
    return rc;
}

/* The job's newest drill, a new reference; NULL if there was none. */
static int newest(struct client *c, int64_t job, json_t **ret_drill, struct err *e)
{
    json_t *v = NULL;
    int rc = client_json(c, "GET", CLI_PATH("/api/v1/jobs/%lld", (long long)job), NULL, &v, e);
    if (rc != 0)
        return rc;
    const json_t *drills = json_object_get(v, "drills");
    *ret_drill = json_incref(json_array_get(drills, json_array_size(drills) - 1));
    json_decref(v);
    return 0;
}

static void print_events(const json_t *events, const char *since)
{
    size_t i;
    json_t *ev;
    json_array_foreach(events, i, ev) if (strcmp(cli_text(ev, "at"), since) >= 0)
        fprintf(stderr, "%s  %s\n", cli_text(ev, "at"), cli_text(ev, "text"));
}

/* Waits until it is over; reports progress unless quiet. */
static int follow(struct client *c, int64_t job, bool quiet, json_t **ret_drill, struct err *e)
{
    int64_t after = 0;
    for (;;) {
        json_t *drill = NULL, *events = NULL;
        int rc = newest(c, job, &drill, e);
        if (rc == 0 && !drill)
            rc = err_set(e, ERR_INTERNAL,
                "belayd started the drill of job %lld but does not report it", (long long)job);
        if (rc == 0 && is_over(drill)) {
            *ret_drill = drill;
            return 0;
        }
        if (rc == 0)
            rc = cli_next_events(c, job, &after, &events, e);
        if (rc == 0 && !quiet)
            print_events(events, cli_text(drill, "asked_at"));
        json_decref(drill);
        json_decref(events);
        if (rc != 0)
            return rc;
    }
}

static void advise(const json_t *drill)
{
    const char *job = cli_text(drill, "ref");
    if (str_eq(cli_text(drill, "state"), "interrupted"))
        cli_error("it is unknown whether job %s resumes: drill it again when it runs", job);
    else if (str_eq(cli_text(drill, "state"), "failed") && cli_int(drill, "compared_with", 0) > 0)
        cli_error("job %s resumed with a different result: its checkpoints lack something that "
                  "the result depends on (random numbers, the order of the data; "
                  "docs/reference/checkpoints.md)",
            job);
    else if (str_eq(cli_text(drill, "state"), "failed"))
        cli_error("job %s keeps running, but would not survive a reclaim correctly: see belay "
                  "show %s and belay logs %s; docs/reference/checkpoints.md describes what a "
                  "program has to do",
            job, job, job);
}

/* With --compare, a drill of the job that has passed or is under way serves (`submit --drill`, an
 * earlier `belay drill`). Otherwise begins one. */
static int begin_if_needed(
    struct client *c, int64_t job, const struct drill_options *w, struct err *e)
{
    json_t *d = NULL;
    int rc = w->compare.command ? newest(c, job, &d, e) : 0;
    bool serves = d && (!is_over(d) || str_eq(cli_text(d, "state"), "passed"));
    json_decref(d);
    return rc != 0 || serves ? rc : begin(c, job, w->without_notice, e);
}

/* Replaces *drill by its state afterwards. */
static int compare(struct client *c, int64_t job, const struct drill_options *w, bool quiet,
    json_t **drill, struct err *e)
{
    int exit_code = 0;
    if (!quiet)
        fprintf(stderr, "job %s has resumed; its result is compared when it has ended\n",
            w->compare.job_name);
    int rc = cli_wait_job(c, job, false, &exit_code, e);
    if (rc == 0 && exit_code != 0)
        rc = err_set(e, ERR_CONFLICT, "job %s has not succeeded, so there is no result to compare",
            w->compare.job_name);
    if (rc == 0)
        rc = compare_run(c, &w->compare, job, cli_int(*drill, "number", 0), e);
    if (rc != 0)
        return rc;
    json_decref(*drill);
    *drill = NULL;
    return newest(c, job, drill, e);
}

static int drill(int64_t job, const struct drill_options *w, bool json)
{
    struct client *c = NULL;
    json_t *d = NULL;
    struct err e = {0};
    int rc = client_create(&c, &e);
    if (rc == 0 && w->compare.command)
        rc = compare_check(c, &w->compare, job, &e);
    if (rc == 0)
        rc = begin_if_needed(c, job, w, &e);
    if (rc == 0)
        rc = follow(c, job, json, &d, &e);
    if (rc == 0 && w->compare.command && str_eq(cli_text(d, "state"), "passed"))
        rc = compare(c, job, w, json, &d, &e);
    if (rc != 0)
        cli_error("%s", e.text);
    else if (json)
        cli_print_json(d);
    else
        drill_print(d);
    fflush(stdout);
    bool passed = rc == 0 && str_eq(cli_text(d, "state"), "passed");
    if (rc == 0)
        advise(d);
    json_decref(d);
    client_destroy(c);
    return passed ? CLI_OK : CLI_FAILED;
}

/* Checks for conflicting options. Returns CLI_OK, or CLI_USAGE after a report. */
static int check_options(const struct drill_options *w, int n_rest)
{
    bool compares = w->compare.command || w->compare.against || w->limit_given;
    const char *wrong = NULL;
    if (w->list && n_rest > 0)
        wrong = "--list takes no job: belay drill --list, or belay drill JOB";
    else if (w->list && compares)
        wrong = "--list takes neither --compare nor --against";
    else if (compares && (!w->compare.command || !w->compare.against))
        wrong = "--compare COMMAND and --against JOB go together: JOB is an uninterrupted run of "
                "the same script";
    else if (w->compare.command && !w->compare.command[0])
        wrong = "--compare: the command is empty: give one that takes two directories";
    if (wrong)
        cli_error("%s", wrong);
    return wrong ? CLI_USAGE : CLI_OK;
}

static int run(int argc, const char **argv)
{
    struct drill_options w = {.compare.limit_ms = COMPARE_LIMIT_MS};
    struct cli_args a;
    int64_t id = 0;
    buf_adds(&w.path, "/api/v1/drills?limit=200");
    int rc = cli_parse(&verb_drill, argc, argv, false, on_option, &w, &a);
    if (rc == 0)
        rc = check_options(&w, a.n_rest);
    if (rc == 0 && w.list) {
        rc = list(&w, a.json);
    } else if (rc == 0) {
        rc = cli_job_id(a.n_rest == 1 ? a.rest[0] : NULL, &id);
        if (rc == 0)
            STR_COPY(w.compare.job_name, a.rest[0]);
        rc = rc == 0 ? drill(id, &w, a.json) : rc;
    }
    cli_args_deinit(&a);
    free(w.compare.command);
    buf_deinit(&w.path);
    return rc < 0 ? CLI_OK : rc;
}

static const struct poptOption options[] = {
    {"without-notice", 0, POPT_ARG_NONE, NULL, VAL_WITHOUT_NOTICE,
        "kill the job without a save: it must resume from its latest checkpoint", NULL},
    {"compare", 0, POPT_ARG_STRING, NULL, VAL_COMPARE,
        "when the job has ended, run this command here with two directories, the undisturbed "
        "result and the job's: exit code 0 means equal",
        "COMMAND"},
    {"against", 0, POPT_ARG_STRING, NULL, VAL_AGAINST,
        "with --compare: the undisturbed run of the same script", "JOB"},
    {"compare-limit", 0, POPT_ARG_STRING, NULL, VAL_LIMIT,
        "with --compare: how long the command may take; default 10m", "TIME"},
    {"list", 'l', POPT_ARG_NONE, NULL, VAL_LIST, "list drills, the newest first", NULL},
    {"user", 'u', POPT_ARG_STRING, NULL, VAL_USER, "with --list: only of this user's jobs", "NAME"},
    POPT_TABLEEND,
};

const struct verb verb_drill = {"drill", "[OPTION...] JOB | --list",
    "save, kill and resume a running job, and certify that it resumes", run, options, false,
    .examples = "belay drill 42\n"
                "belay drill --list\n"};
