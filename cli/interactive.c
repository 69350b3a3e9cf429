/* SPDX-License-Identifier: Apache-2.0
 *
 * Submits an interactive job, waits for it, and connects to it (see interactive.h).
 */
#include "cli/interactive.h"

#include "base/mem.h"
#include "base/str.h"
#include "cli/interrupt.h"
#include "cli/session.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FIRST_WAIT_MS 500 /* a job that starts within this time prints nothing */
#define WHY_MS 5000       /* interval of asking why the job waits */
#define RETRY_MS 500      /* retry interval: the job runs, but could not be entered yet */

struct interactive {
    const struct submission *s;
    struct client *c;
    int64_t job, after; /* after: position in its events */
    struct session_request request;
    bool runs, granted; /* runs: on some node; granted: this has been printed */
    int code;           /* of the command; -1 = unknown */
    char broke[400];    /* why code is unknown; else "" */
    char printed[400];  /* the last reason for waiting that was printed */
};

static void print_line(const struct interactive *v, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static void print_line(const struct interactive *v, const char *fmt, ...)
{
    va_list ap;
    if (v->s->quiet)
        return;
    va_start(ap, fmt);
    fprintf(stderr, "%s: ", v->s->slurm ? v->s->slurm : "belay");
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
}

/* ---- the job ---- */

static int check(const struct submission *s, struct err *e)
{
    const json_t *spec = s->spec;
    if (json_object_get(spec, "array"))
        return err_set(e, ERR_INVALID,
            "an array cannot be interactive: leave --array out, or submit its tasks with belay "
            "submit");
    if (json_object_get(json_object_get(spec, "launch"), "input"))
        return err_set(e, ERR_INVALID,
            "an interactive command reads the standard input of this program: leave --input and "
            "--stdin out");
    if (str_eq(json_string_value(json_object_get(json_object_get(spec, "checkpoint"), "method")),
            "criu"))
        return err_set(e, ERR_INVALID,
            "a job that is checkpointed by CRIU cannot be interactive: leave --checkpoint criu "
            "out");
    if (s->json)
        return err_set(
            e, ERR_INVALID, "the output of a session is the command's: leave --json out");
    return 0;
}

static int build(struct submission *s, const char *const *words, int n_words, struct err *e)
{
    struct buf script = {0};
    const char *slash = strrchr(words[0], '/');
    buf_adds(&script, "#!/bin/sh\nexec belay run " INTERACTIVE_HOST);
    for (int i = 0; i < n_words; i++) {
        buf_addc(&script, ' ');
        str_shell_quote(&script, words[i]);
    }
    buf_addc(&script, '\n');
    int rc = submission_build(
        s, "(command)", buf_str(&script), script.len, slash ? slash + 1 : words[0], NULL, 0, e);
    buf_deinit(&script);
    if (rc == 0)
        rc = check(s, e);
    if (rc == 0 && !json_object_get(s->spec, "requeue"))
        /* a requeued job would run without its user */
        json_object_set_new(s->spec, "requeue", json_false());
    if (rc == 0 && cli_int(s->spec, "nodes", 1) > 1)
        json_object_set_new(s->spec, "script_on", json_string("first"));
    return rc;
}

/* ---- waiting ---- */

static void print_reason(struct interactive *v)
{
    const char *path = CLI_PATH("/api/v1/jobs/%lld/why?brief=1", (long long)v->job);
    json_t *why = NULL;
    struct err e;
    const char *text = "-";
    if (client_json(v->c, "GET", path, NULL, &why, &e) == 0)
        text = cli_text(json_array_get(json_object_get(why, "reasons"), 0), "text");
    if (!str_eq(text, "-") && !str_eq(text, v->printed)) {
        if (!v->printed[0] && v->s->slurm)
            print_line(v, "job %lld queued and waiting for resources", (long long)v->job);
        print_line(v, "job %lld waits: %s", (long long)v->job, text);
        STR_COPY(v->printed, text);
    }
    json_decref(why);
}

static bool has_started(const json_t *page)
{
    size_t i;
    const json_t *event;
    json_array_foreach(json_object_get(page, "events"), i,
        event) if (str_eq(cli_text(event, "kind"), "started")) return true;
    return false;
}

/* Waits until the job runs or has ended. */
static int wait_for_start(struct interactive *v, bool *ret_ended, struct err *e)
{
    for (int64_t wait_ms = v->runs ? RETRY_MS : FIRST_WAIT_MS;; wait_ms = WHY_MS) {
        json_t *page = NULL;
        int rc = cli_next_page(v->c, v->job, wait_ms, &v->after, &page, e);
        if (rc != 0)
            return rc;
        bool none = json_array_size(json_object_get(page, "events")) == 0,
             pending = str_eq(cli_text(page, "state"), "pending");
        *ret_ended = none && str_eq(cli_text(page, "state"), "ended");
        v->runs = !pending && !*ret_ended && (v->runs || has_started(page));
        json_decref(page);
        if (*ret_ended || v->runs)
            return 0;
        if (pending && (none || wait_ms == WHY_MS))
            print_reason(v);
    }
}

/* ---- the session ---- */

static bool is_salloc(const struct interactive *v)
{
    return v->s->slurm && str_eq(v->s->slurm, "salloc");
}

static void print_started(struct interactive *v)
{
    if (v->printed[0] && v->s->slurm)
        print_line(v, "job %lld has been allocated resources", (long long)v->job);
    else if (v->printed[0])
        print_line(v, "job %lld runs", (long long)v->job);
    if (is_salloc(v) && !v->granted)
        print_line(v, "Granted job allocation %lld", (long long)v->job);
    v->granted = true;
    v->printed[0] = '\0';
}

/* Returns 0 if the job was entered, or cannot be entered yet. */
static int enter(struct interactive *v, struct err *e)
{
    bool begun = false;
    int code = -1;
    print_started(v);
    int rc = session_run(v->c, &v->request, &begun, &code, e);
    if (begun) {
        v->runs = false; /* the next time is another attempt */
        if (is_salloc(v))
            print_line(v, "Relinquishing job allocation %lld", (long long)v->job);
        v->code = rc == 0 ? code : -1;
        STR_COPY(v->broke, rc == 0 ? "" : e->text);
    } else if (rc != ERR_CONFLICT && rc != ERR_UNAVAILABLE) {
        return rc;
    }
    return 0;
}

static int run_sessions(struct interactive *v, int *ret_signum, struct err *e)
{
    bool ended = false;
    int rc = 0;
    while (rc == 0 && !ended && *ret_signum == 0) {
        struct interrupt interrupt;
        interrupt_watch(&interrupt, v->s->slurm ? v->s->slurm : "belay", v->job);
        rc = wait_for_start(v, &ended, e);
        interrupt_end(&interrupt);
        *ret_signum = interrupt.signum;
        if (rc == 0 && !ended && *ret_signum == 0)
            rc = enter(v, e);
    }
    return rc;
}

static void cancel(const struct interactive *v)
{
    const char *path = CLI_PATH("/api/v1/jobs/%lld/cancel", (long long)v->job);
    json_t *reply = NULL;
    struct err e;
    client_json(v->c, "POST", path, NULL, &reply, &e); /* no-op if it has ended */
    json_decref(reply);
}

/* ---- the end ---- */

/* The job's log contains only the host's messages about failures, not the command's output. */
static void show_log(const struct interactive *v)
{
    const struct log_part all = {.since = WALL_NONE};
    struct err e;
    fflush(stdout);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    if (cli_print_logs(v->c, v->job, &all, false, &e) != 0)
        submission_error(v->s, e.text);
}

static int finish(const struct interactive *v, struct err *e)
{
    static const char *const interruptions[] = {"node-lost", "reclaimed", "evicted", "drained"};
    const char *path = CLI_PATH("/api/v1/jobs/%lld", (long long)v->job);
    json_t *shown = NULL;
    int code = CLI_FAILED, rc = cli_wait_job(v->c, v->job, false, &code, e);
    /* otherwise the session broke after the host had received the exit code, which is then the
     * job's */
    if (v->broke[0] && (rc != 0 || code == INTERACTIVE_BROKE))
        submission_error(v->s, v->broke);
    if (rc == 0)
        rc = client_json(v->c, "GET", path, NULL, &shown, e);
    const char *end = rc == 0 ? cli_text(json_object_get(shown, "job"), "end") : "";
    for (size_t i = 0; i < sizeof(interruptions) / sizeof(interruptions[0]); i++)
        if (str_eq(end, interruptions[i]) && json_is_false(json_object_get(v->s->spec, "requeue")))
            print_line(v,
                "the job was interactive, so it is not queued again; with --requeue it would be");
    if (rc == 0 && v->code >= 0 && (str_eq(end, "succeeded") || str_eq(end, "failed")))
        code = v->code;
    if (rc == 0 && v->code < 0 && str_eq(end, "failed"))
        show_log(v);
    json_decref(shown);
    return rc == 0 ? code : rc;
}

static int interactive(struct interactive *v)
{
    struct err e = {0};
    int signum = 0, rc = run_sessions(v, &signum, &e);
    if (rc != 0) {
        cancel(v);
        submission_error(v->s, e.text);
        return CLI_FAILED;
    }
    int code = finish(v, &e);
    if (code < 0) {
        submission_error(v->s, e.text);
        return CLI_FAILED;
    }
    return signum ? 128 + signum : code;
}

int interactive_run(struct submission *s, const char *const *words, int n_words, bool tty)
{
    struct interactive v = {.s = s, .code = -1};
    json_t *reply = NULL;
    struct err e = {0};
    const char **all = mem_array((size_t)n_words + 3, sizeof(*all));
    all[0] = "belay";
    all[1] = "run";
    all[2] = INTERACTIVE_GUEST;
    memcpy(all + 3, words, (size_t)n_words * sizeof(*all));
    v.request = (struct session_request){.words = all, .n_words = n_words + 3, .tty = tty};
    int code = CLI_FAILED, rc = build(s, words, n_words, &e);
    if (rc == 0 && s->test_only) {
        free(all);
        return submission_send(s);
    }
    if (rc == 0)
        rc = client_create(&v.c, &e);
    if (rc == 0)
        rc = submission_upload(s, v.c, &e);
    if (rc == 0)
        rc = client_json(v.c, "POST", "/api/v1/jobs", s->spec, &reply, &e);
    v.job = v.request.job = cli_int(reply, "id", 0);
    json_decref(reply);
    if (rc == 0) {
        code = interactive(&v);
    } else {
        submission_error(s, e.text);
        code = rc == ERR_INVALID && !s->slurm ? CLI_USAGE : CLI_FAILED;
    }
    client_destroy(v.c);
    free(all);
    return code;
}
