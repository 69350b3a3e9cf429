/* SPDX-License-Identifier: Apache-2.0
 *
 * belay submit SCRIPT [ARG...]
 */
#include "cli/submit.h"

#include "base/fs.h"
#include "base/str.h"
#include "cli/verbs.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SCRIPT_MAX (1u << 20)

enum { VAL_WAIT = 1 };

static int on_option(void *ctx, int val, const char *arg)
{
    struct submission *s = ctx;
    if (val >= CLI_JOB_FLAG)
        return submission_add_flag(s, val, arg);
    s->wait = true;
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

static int submit(struct submission *s, const struct cli_args *a)
{
    struct buf script = {0};
    struct err e = {0};
    const char *path = a->n_rest > 0 ? a->rest[0] : isatty(STDIN_FILENO) ? NULL : "-";
    if (!path) {
        cli_error("which script? belay submit SCRIPT [ARG...] (or a script on standard input)");
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
    struct submission s;
    struct cli_args a;
    submission_init(&s);
    int rc = cli_parse(&verb_submit, argc, argv, true, on_option, &s, &a);
    s.json = a.json;
    if (rc == 0)
        rc = submit(&s, &a);
    cli_args_deinit(&a);
    submission_deinit(&s);
    return rc < 0 ? CLI_OK : rc;
}

static const struct poptOption options[] = {
    {"wait", 'W', POPT_ARG_NONE, NULL, VAL_WAIT, "wait for the job's end and return its exit code", NULL},
    POPT_TABLEEND,
};

const struct verb verb_submit = {
    "submit", "[OPTION...] SCRIPT [ARG...]", "submit a job script", run, options, true};
