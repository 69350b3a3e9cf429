/* SPDX-License-Identifier: Apache-2.0
 *
 * Submitting a job (see submit.h).
 */
#include "cli/submit.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/directives.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SCRIPT_MAX (1u << 20)

static void on_warning(void *ctx, const char *text)
{
    (void)ctx;
    cli_warn("%s", text);
}

void submission_init(struct submission *s)
{
    *s = (struct submission){.spec = json_object(), .flags = json_array()};
}

void submission_deinit(struct submission *s)
{
    json_decref(s->spec);
    json_decref(s->flags);
}

int submission_add_flag(struct submission *s, int val, const char *arg)
{
    const struct directive_flag *f = directives_flag((size_t)(val - CLI_JOB_FLAG));
    s->parsable = s->parsable || str_eq(f->name, "parsable");
    json_array_append_new(s->flags, json_pack("[s,o]", f->name, json_text(arg)));
    return 0;
}

static int apply_flags(struct submission *s, struct err *e)
{
    size_t i;
    json_t *pair;
    json_array_foreach(s->flags, i, pair)
    {
        int rc = directives_apply_flag("command line", json_string_value(json_array_get(pair, 0)),
            json_string_value(json_array_get(pair, 1)), false, s->spec, on_warning, NULL, e);
        if (rc != 0)
            return rc;
    }
    return 0;
}

/* belayd does not know it, and Slurm's scripts may ask for it. */
static void add_submit_host(json_t *spec, const char *script)
{
    char host[HOST_NAME_MAX + 1] = "";
    if (!strstr(script, "\n#SBATCH") || gethostname(host, sizeof(host) - 1) != 0)
        return;
    json_t *env = json_object_get(spec, "env");
    if (!env) {
        env = json_object();
        json_object_set_new(spec, "env", env);
    }
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
            "%s:1: the lines end as in DOS, so that its interpreter would not be found: sed -i 's/\\r$//' "
            "FILE mends "
            "them",
            file);
    if (!getcwd(cwd, sizeof(cwd)))
        return err_set(e, ERR_IO, "the current directory cannot be named; use --chdir DIR");
    json_object_set_new(s->spec, "script", json_textn(script, n));
    json_object_set_new(s->spec, "cwd", json_text(cwd));
    json_object_set_new(s->spec, "name", json_text(name_hint));
    json_t *list = json_array();
    for (int i = 0; i < n_args; i++)
        json_array_append_new(list, json_text(args[i]));
    json_object_set_new(s->spec, "args", list);
    int rc = directives_apply_script(file, script, n, s->spec, on_warning, NULL, e);
    if (rc == 0)
        rc = apply_flags(s, e);
    add_submit_host(s->spec, script);
    return rc == 0 ? directives_finish(s->spec, on_warning, NULL, e) : rc;
}

static int read_script(const char *path, struct buf *out, struct err *e)
{
    char piece[8192];
    size_t n;
    if (!str_eq(path, "-"))
        return fs_read(path, SCRIPT_MAX, out, e);
    while ((n = fread(piece, 1, sizeof(piece), stdin)) > 0)
        if (buf_add_limited(out, piece, n, SCRIPT_MAX, e) != 0)
            return err_wrap(e, "the job script");
    return 0;
}

/* The shell reads the command, so it may be a pipe, a list, several lines. */
static int load_wrapped(struct submission *s, const char *wrap, int n_words, struct err *e)
{
    struct buf script = {0};
    if (n_words > 0)
        return err_set(e, ERR_INVALID,
            "--wrap: it takes the place of a script and its arguments: put the whole command in quotes");
    if (!wrap[strspn(wrap, " \t\r\n")])
        return err_set(e, ERR_INVALID, "--wrap: expected a command");
    buf_printf(&script, "#!/bin/sh\n%s\n", wrap);
    int rc = submission_build(s, "--wrap", buf_str(&script), script.len, "wrap", NULL, 0, e);
    buf_deinit(&script);
    return rc;
}

static int load_script(
    struct submission *s, const char *verb, const char *path, const char **args, int n_args, struct err *e)
{
    struct buf script = {0};
    if (!path)
        return err_set(e, ERR_INVALID,
            "which script? belay %s SCRIPT [ARG...], a script on standard input, or --wrap COMMAND", verb);
    const char *slash = strrchr(path, '/');
    bool is_input = str_eq(path, "-");
    int rc = read_script(path, &script, e);
    if (rc == 0)
        rc = submission_build(s, is_input ? "(standard input)" : path, buf_str(&script), script.len,
            is_input ? "job"
            : slash  ? slash + 1
                     : path,
            args, n_args, e);
    buf_deinit(&script);
    return rc;
}

int submission_load(struct submission *s, const char *verb, const char *wrap, const char **words, int n_words)
{
    struct err e = {0};
    const char *path = n_words > 0 ? words[0] : isatty(STDIN_FILENO) ? NULL : "-";
    int rc = wrap ? load_wrapped(s, wrap, n_words, &e)
                  : load_script(s, verb, path, n_words > 1 ? words + 1 : NULL, n_words > 1 ? n_words - 1 : 0, &e);
    if (rc == 0)
        return 0;
    cli_error("%s", e.text);
    return CLI_USAGE;
}

static int wait_for(struct submission *s, struct client *c, int64_t id)
{
    int code = 0;
    struct err e = {0};
    if (cli_wait_job(c, id, s->follow, &code, &e) == 0)
        return code;
    cli_error("job %lld was submitted, but waiting for it failed: %s", (long long)id, e.text);
    return CLI_FAILED;
}

/* What must change before it can ever run, and what will hurt when it does. */
static void warn_of_trouble(struct client *c, int64_t id)
{
    static const char *const codes[] = {"no-pool", "market", "too-large", "no-node-fits"};
    char *path = mem_printf("/api/v1/jobs/%lld/why", (long long)id);
    json_t *v = NULL;
    struct err e;
    if (client_json(c, "GET", path, NULL, &v, &e) == 0) {
        const json_t *reason = json_array_get(json_object_get(v, "reasons"), 0);
        for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
            if (str_eq(cli_text(reason, "code"), codes[i]))
                cli_warn("job %lld waits until this changes: %s", (long long)id, cli_text(reason, "text"));
        size_t i;
        const json_t *warning;
        json_array_foreach(json_object_get(v, "reasons"), i, warning)
            if (str_eq(cli_text(warning, "code"), "drill-required"))
                cli_warn("job %lld: %s", (long long)id, cli_text(warning, "text"));
        json_array_foreach(json_object_get(v, "warnings"), i, warning)
            cli_warn("%s", cli_text(warning, "text"));
    }
    json_decref(v);
    free(path);
}

int submission_send(struct submission *s)
{
    struct client *c = NULL;
    json_t *reply = NULL;
    struct err e = {0};
    int code = CLI_FAILED;
    if (client_create(&c, &e) != 0 || client_json(c, "POST", "/api/v1/jobs", s->spec, &reply, &e) != 0) {
        cli_error("%s", e.text);
        client_destroy(c);
        return e.kind == ERR_INVALID ? CLI_USAGE : CLI_FAILED;
    }
    int64_t id = cli_int(reply, "id", 0);
    s->follow = s->follow && !s->json;
    if (s->json)
        cli_print_json(reply);
    else if (!s->follow)
        printf(s->parsable ? "%lld\n" : "Submitted batch job %lld\n", (long long)id);
    fflush(stdout);
    warn_of_trouble(c, id);
    code = s->wait ? wait_for(s, c, id) : CLI_OK;
    json_decref(reply);
    client_destroy(c);
    return code;
}
