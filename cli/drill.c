/* SPDX-License-Identifier: Apache-2.0
 *
 * belay drill JOB: saves, kills and resumes a running job, and says whether it came back as it was.
 * belay drill --list: what drills there were.
 */
#include "cli/drill.h"

#include "base/mem.h"
#include "base/str.h"
#include "cli/verbs.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VAL_WITHOUT_NOTICE = 1, VAL_LIST, VAL_USER };

struct wanted {
    bool without_notice, list;
    struct buf path; /* of the list */
};

static int on_option(void *ctx, int val, const char *arg)
{
    struct wanted *w = ctx;
    if (val == VAL_WITHOUT_NOTICE)
        w->without_notice = true;
    else if (val == VAL_LIST)
        w->list = true;
    else {
        buf_adds(&w->path, "&user=");
        str_url_encode(&w->path, arg, strlen(arg));
    }
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
        (long long)cli_int(ref, "sequence", 0), bytes, cli_duration(cli_int(d, "save_ms", 0), took, sizeof(took)));
    if (cli_int(d, "saved_progress", -1) >= 0)
        printf(", at step %lld", (long long)cli_int(d, "saved_progress", -1));
    printf(", %s notice\n", json_is_true(json_object_get(d, "without_notice")) ? "without" : "with");
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
    printf("  resumed     attempt %lld on node %lld%s, restored in %s", (long long)cli_int(d, "resumed_attempt", 0),
        (long long)cli_int(d, "resumed_node", 0), same ? " (the same, as no other was to be had)" : "",
        cli_duration(cli_int(d, "restore_ms", 0), restored, sizeof(restored)));
    if (cli_int(d, "resume_ms", 0) > 0)
        printf(", %s after the kill", cli_duration(cli_int(d, "resume_ms", 0), took, sizeof(took)));
    if (cli_int(d, "progress", -1) >= 0)
        printf(" at step %lld", (long long)cli_int(d, "progress", -1));
    putchar('\n');
}

void drill_print(const json_t *d)
{
    printf("drill %lld.%lld   %s: %s\n", (long long)cli_int(d, "job", 0), (long long)cli_int(d, "number", 0), verdict(d),
        cli_text(d, "text"));
    print_saved(d);
    print_resumed(d);
    printf("  of          \"%s\" of %s, %s, script %.12s, %s, belay %s, method %lld\n", cli_text(d, "name"),
        cli_text(d, "user"), cli_text(d, "method"), cli_text(d, "script_key"), cli_text(d, "asked_at"),
        cli_text(d, "version"), (long long)cli_int(d, "method_version", 0));
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
    table_column(t, "WHY", false);
    json_array_foreach(drills, i, d)
    {
        table_row(t);
        table_cell(t, "%lld.%lld", (long long)cli_int(d, "job", 0), (long long)cli_int(d, "number", 0));
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
        cli_say_empty("no job was drilled yet: belay drill JOB");
}

static int list(const struct wanted *w, bool json)
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
    char *path = mem_printf("/api/v1/jobs/%lld/drill", (long long)job);
    int rc = client_json(c, "POST", path, body, &reply, e);
    json_decref(reply);
    json_decref(body);
    free(path);
    return rc;
}

/* The job's newest drill, a reference of the caller's. */
static int newest(struct client *c, int64_t job, json_t **ret_drill, struct err *e)
{
    json_t *v = NULL;
    char *path = mem_printf("/api/v1/jobs/%lld", (long long)job);
    int rc = client_json(c, "GET", path, NULL, &v, e);
    free(path);
    if (rc != 0)
        return rc;
    const json_t *drills = json_object_get(v, "drills");
    *ret_drill = json_incref(json_array_get(drills, json_array_size(drills) - 1));
    json_decref(v);
    return *ret_drill ? 0 : err_set(e, ERR_INTERNAL, "belayd has begun the drill of job %lld and does not tell it", (long long)job);
}

static void print_events(const json_t *events, const char *since)
{
    size_t i;
    json_t *ev;
    json_array_foreach(events, i, ev)
        if (strcmp(cli_text(ev, "at"), since) >= 0)
            fprintf(stderr, "%s  %s\n", cli_text(ev, "at"), cli_text(ev, "text"));
}

/* Until it is over; says what happens meanwhile unless quiet. */
static int follow(struct client *c, int64_t job, bool quiet, json_t **ret_drill, struct err *e)
{
    int64_t after = 0;
    for (;;) {
        json_t *drill = NULL, *events = NULL;
        int rc = newest(c, job, &drill, e);
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
    if (str_eq(cli_text(drill, "state"), "interrupted"))
        cli_error("nothing is known of whether job %lld resumes: drill it again when it runs",
            (long long)cli_int(drill, "job", 0));
    else if (str_eq(cli_text(drill, "state"), "failed"))
        cli_error("job %lld goes on, but would not come through a reclaim as it should: belay show %lld and belay logs %lld say "
                  "more; docs/checkpoints.md says what a program has to do",
            (long long)cli_int(drill, "job", 0), (long long)cli_int(drill, "job", 0), (long long)cli_int(drill, "job", 0));
}

static int drill(int64_t job, bool without_notice, bool json)
{
    struct client *c = NULL;
    json_t *d = NULL;
    struct err e = {0};
    int rc = client_create(&c, &e);
    if (rc == 0)
        rc = begin(c, job, without_notice, &e);
    if (rc == 0)
        rc = follow(c, job, json, &d, &e);
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

static int run(int argc, const char **argv)
{
    struct wanted w = {0};
    struct cli_args a;
    int64_t id = 0;
    buf_adds(&w.path, "/api/v1/drills?limit=200");
    int rc = cli_parse(&verb_drill, argc, argv, false, on_option, &w, &a);
    if (rc == 0 && w.list && a.n_rest > 0) {
        cli_error("--list takes no job: belay drill --list, or belay drill JOB");
        rc = CLI_USAGE;
    } else if (rc == 0 && w.list) {
        rc = list(&w, a.json);
    } else if (rc == 0 && !cli_job_id(a.n_rest == 1 ? a.rest[0] : NULL, &id)) {
        rc = CLI_USAGE;
    } else if (rc == 0) {
        rc = drill(id, w.without_notice, a.json);
    }
    cli_args_deinit(&a);
    buf_deinit(&w.path);
    return rc < 0 ? CLI_OK : rc;
}

static const struct poptOption options[] = {
    {"without-notice", 0, POPT_ARG_NONE, NULL, VAL_WITHOUT_NOTICE,
        "kill it without a save: it has to resume from the checkpoint that it has", NULL},
    {"list", 'l', POPT_ARG_NONE, NULL, VAL_LIST, "list drills, the newest first", NULL},
    {"user", 'u', POPT_ARG_STRING, NULL, VAL_USER, "with --list: only of this user's jobs", "NAME"},
    POPT_TABLEEND,
};

const struct verb verb_drill = {"drill", "[OPTION...] JOB | --list",
    "save, kill and resume a running job, and certify that it comes back", run, options, false};
