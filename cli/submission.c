/* SPDX-License-Identifier: Apache-2.0
 *
 * Submitting a job (see submission.h).
 */
#include "cli/submission.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/flags/api_words.h"
#include "cli/flags/directives.h"
#include "cli/estimate.h"
#include "cli/interrupt.h"
#include "cli/slurm/slurm.h"
#include "cli/slurm/slurm_env.h"
#include "cli/workdir/workdir.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SCRIPT_MAX (1u << 20)

static void on_warning(void *ctx, const char *text)
{
    const struct submission *s = ctx;
    if (s->slurm)
        slurm_warn(s->slurm, "%s", text);
    else
        cli_warn("%s", text);
}

void submission_error(const struct submission *s, const char *text)
{
    if (s->slurm)
        slurm_error(s->slurm, "%s", text);
    else
        cli_error("%s", text);
}

/* An error of belayd, about flags as they were written. */
static void refused(const struct submission *s, const struct err *e)
{
    struct buf text = {0};
    api_words_as_written(e->text, s->written, &text);
    submission_error(s, buf_str(&text));
    buf_deinit(&text);
}

void submission_init(struct submission *s)
{
    *s = (struct submission){.spec = json_object(), .flags = json_array()};
}

void submission_deinit(struct submission *s)
{
    json_decref(s->spec);
    json_decref(s->flags);
    json_decref(s->written);
}

void submission_add_named(struct submission *s, const char *name, const char *arg)
{
    s->parsable = s->parsable || str_eq(name, "parsable");
    s->test_only = s->test_only || str_eq(name, "test-only");
    json_array_append_new(s->flags, json_pack("[s,o]", name, json_text(arg)));
}

int submission_add_flag(struct submission *s, int val, const char *arg)
{
    submission_add_named(s, job_attributes[val - CLI_JOB_FLAG].flag, arg);
    return 0;
}

/* An error of a flag begins with the flag, as it was typed. */
static void drop_where(struct err *e)
{
    if (str_starts(e->text, COMMAND_LINE ": "))
        memmove(e->text, e->text + strlen(COMMAND_LINE ": "),
            strlen(e->text + strlen(COMMAND_LINE ": ")) + 1);
}

static int apply_flags(struct submission *s, struct err *e)
{
    size_t i;
    json_t *pair;
    json_array_foreach(s->flags, i, pair)
    {
        int rc = directives_apply_flag(COMMAND_LINE, json_string_value(json_array_get(pair, 0)),
            json_string_value(json_array_get(pair, 1)), s->slurm != NULL, s->spec, on_warning, s,
            e);
        if (rc != 0) {
            drop_where(e);
            return rc;
        }
    }
    return 0;
}

/* Applies SBATCH_TIMELIMIT and the like, which override the script's directives and are overridden
 * by flags. */
static int apply_variables(struct submission *s, struct err *e)
{
    struct slurm_variable *all = slurm_variables(s->slurm);
    int rc = 0;
    for (const struct slurm_variable *v = all; rc == 0 && v->name[0]; v++) {
        const char *value = slurm_variable_value(v);
        if (value && str_eq(v->flag, "wait"))
            s->wait = true;
        else if (value)
            rc = directives_apply_flag(v->name, v->flag, v->kind == VARIABLE_SWITCH ? NULL : value,
                true, s->spec, on_warning, s, e);
    }
    free(all);
    return rc;
}

/* Adds Slurm's variables that belayd does not know, such as SLURM_SUBMIT_HOST. */
static void add_slurms_variables(const struct submission *s, const char *script)
{
    char host[HOST_NAME_MAX + 1] = "";
    json_t *spec = s->spec;
    if ((!s->slurm && !strstr(script, "\n#SBATCH")) || gethostname(host, sizeof(host) - 1) != 0)
        return;
    directives_set_slurm_env(spec);
    json_t *env = directive_object(spec, "env");
    if (!json_object_get(env, "SLURM_SUBMIT_HOST"))
        json_object_set_new(env, "SLURM_SUBMIT_HOST", json_text(host));
}

static bool first_line_has_cr(const char *script, size_t n)
{
    const char *newline = memchr(script, '\n', n);
    return newline && newline > script && newline[-1] == '\r';
}

int submission_build(struct submission *s, const char *file, const char *script, size_t n,
    const char *name_hint, const char **args, int n_args, struct err *e)
{
    char cwd[PATH_MAX];
    if (!str_is_utf8(script, n) || memchr(script, '\0', n))
        return err_set(
            e, ERR_INVALID, "%s: a job script is UTF-8 text; to run a program use belay run", file);
    if (n < 2 || memcmp(script, "#!", 2) != 0)
        return err_set(e, ERR_INVALID,
            "%s:1: a job script begins with #! and its interpreter, for example #!/bin/sh", file);
    if (first_line_has_cr(script, n))
        return err_set(e, ERR_INVALID,
            "%s:1: the script has DOS line ends, so its interpreter would not be found: sed -i "
            "'s/\\r$//' FILE removes them",
            file);
    if (!getcwd(cwd, sizeof(cwd)))
        return err_errno(e, errno, "determining the current directory");
    json_object_set_new(s->spec, "script", json_textn(script, n));
    json_object_set_new(s->spec, "cwd", json_text(cwd));
    char name[64];
    STR_COPY(name, name_hint);
    json_object_set_new(s->spec, "name", json_text(name));
    if (s->slurm)
        directives_begin_slurm(s->spec);
    if (s->default_output)
        json_object_set_new(
            json_object_get(s->spec, "launch"), "output", json_string(s->default_output));
    json_t *list = json_array();
    for (int i = 0; i < n_args; i++)
        json_array_append_new(list, json_text(args[i]));
    json_object_set_new(s->spec, "args", list);
    int rc = directives_apply_script(file, script, n, s->spec, on_warning, s, e);
    if (rc == 0 && s->slurm)
        rc = apply_variables(s, e);
    if (rc == 0)
        rc = apply_flags(s, e);
    add_slurms_variables(s, script);
    if (s->by_schedule)
        directives_keep_time_of_day(s->spec);
    json_decref(s->written);
    s->written = directives_take_written(s->spec);
    rc = rc == 0 ? directives_finish(s->spec, on_warning, s, e) : rc;
    json_t *launch = json_object_get(s->spec, "launch");
    if (rc == 0 && s->default_output && json_object_get(s->spec, "array") &&
        str_eq(json_string_value(json_object_get(launch, "output")), s->default_output))
        json_object_set_new(launch, "output", json_string("slurm-%A_%a.out"));
    return rc;
}

static int read_script(const char *path, struct buf *out, struct err *e)
{
    char piece[8192];
    size_t n;
    if (!str_eq(path, "-") && access(path, F_OK) != 0 && errno == ENOENT)
        return err_set(e, ERR_INVALID,
            "there is no script %s (its arguments follow it, options precede it)",
            str_show(path, (char[STR_SHOW_MAX]){0}));
    if (!str_eq(path, "-"))
        return fs_read(path, SCRIPT_MAX, out, e);
    while ((n = fread(piece, 1, sizeof(piece), stdin)) > 0)
        if (buf_add_limited(out, piece, n, SCRIPT_MAX, e) != 0)
            return err_wrap(e, "the job script");
    return 0;
}

/* The shell interprets the command, so it may be a pipe, a list, several lines. */
static int load_wrapped(struct submission *s, const char *wrap, int n_words, struct err *e)
{
    struct buf script = {0};
    if (n_words > 0)
        return err_set(e, ERR_INVALID,
            "--wrap replaces a script and its arguments: put the whole command in quotes");
    if (!wrap[strspn(wrap, " \t\r\n")])
        return err_set(e, ERR_INVALID, "--wrap: expected a command");
    buf_printf(&script, "#!/bin/sh\n%s\n", wrap);
    int rc = submission_build(s, "--wrap", buf_str(&script), script.len, "wrap", NULL, 0, e);
    buf_deinit(&script);
    return rc;
}

/* Without a script. Often its name was taken as the value of the last option. */
static int no_script(const struct submission *s, const char *verb, struct err *e)
{
    const json_t *last = json_array_get(s->flags, json_array_size(s->flags) - 1);
    const char *flag = json_string_value(json_array_get(last, 0)),
               *value = json_string_value(json_array_get(last, 1));
    if (value && access(value, R_OK) == 0)
        return err_set(e, ERR_INVALID,
            "which script? %s was read as the value of --%s, and nothing follows", value, flag);
    return err_set(e, ERR_INVALID,
        "which script? %s%s SCRIPT [ARG...], a script on standard input, or --wrap COMMAND",
        s->slurm ? "" : "belay ", verb);
}

static int load_script(struct submission *s, const char *verb, const char *path, const char **args,
    int n_args, struct err *e)
{
    struct buf script = {0};
    if (!path)
        return no_script(s, verb, e);
    const char *slash = strrchr(path, '/');
    bool is_input = str_eq(path, "-");
    int rc = read_script(path, &script, e);
    if (rc == 0 && is_input && script.len == 0)
        rc = no_script(s, verb, e);
    if (rc == 0)
        rc = submission_build(s, is_input ? "(standard input)" : path, buf_str(&script), script.len,
            is_input ? (s->slurm ? s->slurm : "job")
            : slash  ? slash + 1
                     : path,
            args, n_args, e);
    buf_deinit(&script);
    return rc;
}

int submission_load(
    struct submission *s, const char *verb, const char *wrap, const char **words, int n_words)
{
    struct err e = {0};
    const char *path = n_words > 0 ? words[0] : isatty(STDIN_FILENO) ? NULL : "-";
    int rc = wrap ? load_wrapped(s, wrap, n_words, &e)
                  : load_script(s, verb, path, n_words > 1 ? words + 1 : NULL,
                        n_words > 1 ? n_words - 1 : 0, &e);
    if (rc == 0)
        return 0;
    submission_error(s, e.text);
    return s->slurm ? CLI_FAILED : CLI_USAGE;
}

/* Call it before the job's number is printed: who sees that may interrupt. */
static void watch(const struct submission *s, struct interrupt *i, int64_t id)
{
    if (s->wait && s->cancel_on_interrupt)
        interrupt_watch(i, s->slurm ? s->slurm : "belay", id);
    else if (s->wait && !s->slurm)
        interrupt_explain(i, id);
}

static int wait_for(struct submission *s, struct client *c, int64_t id)
{
    int code = 0;
    struct err e = {0};
    int rc = cli_wait_job(c, id, s->follow, &code, &e);
    if (rc == 0)
        return code;
    cli_error("job %lld was submitted, but waiting for it failed: %s", (long long)id, e.text);
    return CLI_FAILED;
}

/* Whether only a change of the job or of the cluster can remove this reason. Most codes count only
 * as the first reason, which is what keeps the job from starting now (for a held job, the hold).
 * The number of nodes of a gang may come after others. */
static bool is_impossible(const json_t *reason, bool is_first)
{
    static const char *const codes[] = {
        "no-pool", "market", "too-large", "no-node-fits", "maintenance-always"};
    for (size_t i = 0; is_first && i < sizeof(codes) / sizeof(codes[0]); i++)
        if (str_eq(cli_text(reason, "code"), codes[i]))
            return true;
    return str_eq(cli_text(reason, "code"), "too-many-nodes");
}

/* Warns of reasons for which the job cannot run at all, of a required drill, a missed deadline, a
 * time limit below its work, a margin that keeps it off spot and a reservation of its nodes, and
 * repeats belayd's own warnings. */
static void warn_of_trouble(struct submission *s, const json_t *why, int64_t id)
{
    const json_t *reasons = json_object_get(why, "reasons"), *warning;
    char text[600];
    size_t i;
    json_array_foreach(reasons, i, warning)
    {
        const char *code = cli_text(warning, "code");
        bool is_never = is_impossible(warning, i == 0);
        snprintf(text, sizeof(text), "job %lld%s: %s", (long long)id,
            is_never ? " waits until this changes" : "", cli_text(warning, "text"));
        if (is_never || str_eq(code, "drill-required") || str_eq(code, "late") ||
            str_eq(code, "work-margin") || str_eq(code, "time-limit") ||
            (i == 0 && str_eq(code, "maintenance")))
            on_warning(s, text);
    }
    json_array_foreach(json_object_get(why, "warnings"), i, warning)
        on_warning(s, cli_text(warning, "text"));
}

int submission_upload(struct submission *s, struct client *c, struct err *e)
{
    char hash[CHUNK_HEX_SIZE];
    struct client *own = NULL;
    int rc = 0;
    if (!json_object_get(s->spec, "workdir"))
        return 0;
    if (!c && (rc = client_create(&own, e)) != 0)
        return rc;
    rc = workdir_upload(
        c ? c : own, json_string_value(json_object_get(s->spec, "cwd")), on_warning, s, hash, e);
    client_destroy(own);
    if (rc != 0)
        return rc;
    json_object_del(s->spec, "workdir");
    json_object_set_new(directive_object(s->spec, "launch"), "workdir", json_string(hash));
    return 0;
}

/* What the job would cost an hour where it would start, if it were not held; 0 = unknown. */
static int64_t price_of(const struct submission *s, struct client *c)
{
    struct err e;
    json_t *reply = NULL, *free_of = json_copy(s->spec);
    json_object_del(free_of, "hold");
    json_object_del(free_of, "max_uusd");
    client_json(c, "POST", "/api/v1/jobs/estimate", free_of, &reply, &e);
    int64_t uusd_h = cli_int(json_object_get(reply, "cost"), "uusd_per_hour", 0);
    json_decref(free_of);
    json_decref(reply);
    return uusd_h;
}

/* Warns of a job whose --max-usd ends it before its work is done. No warning if the price is
 * unknown. */
static void warn_of_cap(struct submission *s, struct client *c)
{
    char cap[32], cost[32], price[32], text[256];
    int64_t max_uusd = cli_int(s->spec, "max_uusd", 0), work_ms = cli_int(s->spec, "work_ms", 0);
    bool is_work = work_ms > 0;
    if (!is_work)
        work_ms = cli_int(s->spec, "time_limit_ms", 0);
    int64_t uusd_h = max_uusd > 0 && work_ms > 0 ? price_of(s, c) : 0;
    double uusd = (double)uusd_h * (double)work_ms / 3600000;
    if (uusd <= (double)max_uusd || uusd > 1e18)
        return;
    snprintf(text, sizeof(text),
        "--max-usd %s does not pay for all of --%s: that costs %s at %s an hour, so the job is "
        "parked before its end",
        cli_usd(max_uusd, cap, sizeof(cap)), is_work ? "work" : "time",
        cli_usd((int64_t)uusd, cost, sizeof(cost)), cli_usd(uusd_h, price, sizeof(price)));
    on_warning(s, text);
}

/* The working directory is not sent: the estimate does not depend on it. */
static int estimate(struct submission *s)
{
    struct client *c = NULL;
    json_t *reply = NULL;
    struct err e = {0};
    int code = CLI_OK, cpus = (int)cli_int(s->spec, "cpus", 1);
    json_object_del(s->spec, "workdir");
    if (client_create(&c, &e) != 0 ||
        client_json(c, "POST", "/api/v1/jobs/estimate", s->spec, &reply, &e) != 0) {
        refused(s, &e);
        code = e.kind == ERR_INVALID && !s->slurm ? CLI_USAGE : CLI_FAILED;
    } else if (s->json) {
        cli_print_json(reply);
    } else {
        code = estimate_print_submit(reply, s->slurm, cpus);
    }
    json_decref(reply);
    client_destroy(c);
    return code;
}

int submission_send(struct submission *s)
{
    struct client *c = NULL;
    struct interrupt interrupt = {0};
    json_t *reply = NULL;
    struct err e = {0};
    int code = CLI_FAILED;
    if (s->test_only)
        return estimate(s);
    int rc = client_create(&c, &e);
    if (rc == 0)
        rc = submission_upload(s, c, &e);
    if (rc == 0)
        warn_of_cap(s, c);
    if (rc == 0)
        rc = client_json(c, "POST", "/api/v1/jobs?why=1", s->spec, &reply, &e);
    if (rc != 0) {
        refused(s, &e);
        client_destroy(c);
        return e.kind == ERR_INVALID && !s->slurm ? CLI_USAGE : CLI_FAILED;
    }
    int64_t id = cli_int(reply, "id", 0);
    json_t *why = json_incref(json_object_get(reply, "why"));
    json_object_del(reply, "why"); /* reported as warnings */
    s->follow = s->follow && !s->json;
    watch(s, &interrupt, id);
    if (s->slurm)
        /* warnings come first: a reader of both streams takes the last word as the number */
        warn_of_trouble(s, why, id);
    if (s->json)
        cli_print_json(reply);
    else if (!s->follow && !s->quiet)
        printf(s->parsable ? "%lld\n" : "Submitted batch job %lld\n", (long long)id);
    fflush(stdout);
    if (!s->slurm)
        warn_of_trouble(s, why, id);
    json_decref(why);
    code = s->wait ? wait_for(s, c, id) : CLI_OK;
    interrupt_end(&interrupt);
    json_decref(reply);
    client_destroy(c);
    return code;
}
