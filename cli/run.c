/* SPDX-License-Identifier: Apache-2.0
 *
 * belay run COMMAND [ARG...]: submits one command, shows its output as it arrives, returns its exit
 * code. With --interactive or --tty the command's input comes from here (cli/interactive.h).
 */
#include "cli/submission.h"

#include "base/str.h"
#include "cli/interactive.h"
#include "cli/verbs.h"
#include <stdio.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { VAL_TTY = 1, VAL_INTERACTIVE };

struct choice {
    struct submission s;
    bool tty, interactive;
};

static int on_option(void *ctx, int val, const char *arg)
{
    struct choice *c = ctx;
    if (val != VAL_TTY && val != VAL_INTERACTIVE)
        return submission_add_flag(&c->s, val, arg);
    c->tty = c->tty || val == VAL_TTY;
    c->interactive = true;
    return CLI_OK;
}

/* A file or a pipe with something in it. */
static bool has_input(void)
{
    struct stat st;
    int n = 0;
    if (fstat(STDIN_FILENO, &st) != 0)
        return false;
    if (S_ISREG(st.st_mode))
        return st.st_size > lseek(STDIN_FILENO, 0, SEEK_CUR);
    return S_ISFIFO(st.st_mode) && ioctl(STDIN_FILENO, FIONREAD, &n) == 0 && n > 0;
}

static int submit(struct submission *s, const struct cli_args *a)
{
    struct buf script = {0};
    struct err e = {0};
    if (a->n_rest == 0) {
        cli_error("expected a command: belay run COMMAND [ARG...]");
        return CLI_USAGE;
    }
    if (has_input())
        cli_warn(
            "the command does not get the standard input; belay run --interactive passes it on");
    buf_adds(&script, "#!/bin/sh\nexec");
    for (int i = 0; i < a->n_rest; i++) {
        buf_addc(&script, ' ');
        str_shell_quote(&script, a->rest[i]);
    }
    buf_addc(&script, '\n');
    const char *slash = strrchr(a->rest[0], '/');
    int rc = submission_build(
        s, "(command)", buf_str(&script), script.len, slash ? slash + 1 : a->rest[0], NULL, 0, &e);
    buf_deinit(&script);
    if (rc != 0) {
        cli_error("%s", e.text);
        return CLI_USAGE;
    }
    return submission_send(s);
}

static int connect_to(struct choice *c, const struct cli_args *a)
{
    if (c->tty && !isatty(STDIN_FILENO)) {
        cli_error("--tty: standard input is not a terminal; --interactive needs none");
        return CLI_USAGE;
    }
    if (a->n_rest == 0) {
        cli_error("expected a command: belay run --tty COMMAND [ARG...]");
        return CLI_USAGE;
    }
    return interactive_run(&c->s, a->rest, a->n_rest, c->tty);
}

static int run(int argc, const char **argv)
{
    struct choice c = {0};
    struct cli_args a;
    if (argc > 1 && str_eq(argv[1], INTERACTIVE_HOST))
        return interactive_host();
    if (argc > 2 && str_eq(argv[1], INTERACTIVE_GUEST))
        return interactive_guest((char *const *)(uintptr_t)(argv + 2));
    submission_init(&c.s);
    int rc = cli_parse(&verb_run, argc, argv, true, on_option, &c, &a);
    c.s.json = a.json;
    c.s.wait = c.s.follow = true;
    if (rc == 0)
        rc = c.interactive ? connect_to(&c, &a) : submit(&c.s, &a);
    cli_args_deinit(&a);
    submission_deinit(&c.s);
    return rc < 0 ? CLI_OK : rc;
}

static const struct poptOption options[] = {
    {"tty", 'T', POPT_ARG_NONE, NULL, VAL_TTY,
        "connect the command to this terminal: for shells, editors, debuggers", NULL},
    {"interactive", 'I', POPT_ARG_NONE, NULL, VAL_INTERACTIVE,
        "connect the command's input and output to those of belay run, without a terminal", NULL},
    POPT_TABLEEND,
};

const struct verb verb_run = {"run", "[OPTION...] COMMAND [ARG...]",
    "run one command as a job and show its output", run, options, true,
    .examples = "belay run -- make -j8 check\n"
                "belay run -G 1 -- python3 train.py --epochs 3\n"};
