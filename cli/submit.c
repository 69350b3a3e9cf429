/* SPDX-License-Identifier: Apache-2.0
 *
 * belay submit SCRIPT [ARG...], belay submit --wrap COMMAND
 */
#include "cli/submit.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/verbs.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SCRIPT_MAX (1u << 20)

enum { VAL_WAIT = 1, VAL_WRAP };

struct submit {
    struct submission s;
    char *wrap; /* NULL: a script is submitted */
};

static int on_option(void *ctx, int val, const char *arg)
{
    struct submit *u = ctx;
    if (val >= CLI_JOB_FLAG)
        return submission_add_flag(&u->s, val, arg);
    if (val == VAL_WAIT) {
        u->s.wait = true;
        return 0;
    }
    free(u->wrap);
    u->wrap = mem_strdup(arg);
    return 0;
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
static int submit_wrapped(struct submit *u, const struct cli_args *a)
{
    struct buf script = {0};
    struct err e = {0};
    if (a->n_rest > 0 || !u->wrap[strspn(u->wrap, " \t\r\n")]) {
        cli_error("--wrap: %s", a->n_rest > 0
                                    ? "it takes the place of a script and its arguments: put the whole "
                                      "command in quotes"
                                    : "expected a command");
        return CLI_USAGE;
    }
    buf_printf(&script, "#!/bin/sh\n%s\n", u->wrap);
    int rc = submission_build(&u->s, "--wrap", buf_str(&script), script.len, "wrap", NULL, 0, &e);
    buf_deinit(&script);
    if (rc != 0) {
        cli_error("%s", e.text);
        return CLI_USAGE;
    }
    return submission_send(&u->s);
}

static int submit_script(struct submission *s, const struct cli_args *a)
{
    struct buf script = {0};
    struct err e = {0};
    const char *path = a->n_rest > 0 ? a->rest[0] : isatty(STDIN_FILENO) ? NULL : "-";
    if (!path) {
        cli_error("which script? belay submit SCRIPT [ARG...], a script on standard input, or "
                  "--wrap COMMAND");
        return CLI_USAGE;
    }
    const char *slash = strrchr(path, '/');
    const char *file = str_eq(path, "-") ? "(standard input)" : path;
    int rc = read_script(path, &script, &e);
    if (rc == 0)
        rc = submission_build(s, file, buf_str(&script), script.len,
            str_eq(path, "-") ? "job"
            : slash           ? slash + 1
                              : path,
            a->n_rest > 1 ? a->rest + 1 : NULL, a->n_rest > 1 ? a->n_rest - 1 : 0, &e);
    buf_deinit(&script);
    if (rc != 0) {
        cli_error("%s", e.text);
        return CLI_USAGE;
    }
    return submission_send(s);
}

static int run(int argc, const char **argv)
{
    struct submit u = {0};
    struct cli_args a;
    submission_init(&u.s);
    int rc = cli_parse(&verb_submit, argc, argv, true, on_option, &u, &a);
    u.s.json = a.json;
    if (rc == 0)
        rc = u.wrap ? submit_wrapped(&u, &a) : submit_script(&u.s, &a);
    cli_args_deinit(&a);
    submission_deinit(&u.s);
    free(u.wrap);
    return rc < 0 ? CLI_OK : rc;
}

static const struct poptOption options[] = {
    {"wait", 'W', POPT_ARG_NONE, NULL, VAL_WAIT, "wait for the job's end and return its exit code", NULL},
    {"wrap", 0, POPT_ARG_STRING, NULL, VAL_WRAP, "submit this shell command instead of a script", "COMMAND"},
    POPT_TABLEEND,
};

const struct verb verb_submit = {
    "submit", "[OPTION...] SCRIPT [ARG...] | --wrap COMMAND", "submit a job script", run, options, true};
