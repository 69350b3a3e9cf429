/* SPDX-License-Identifier: Apache-2.0
 *
 * belay run COMMAND [ARG...]: submits one command, shows its output as it comes, returns its exit code.
 */
#include "cli/submit.h"

#include "base/str.h"
#include "cli/verbs.h"
#include <stdio.h>
#include <string.h>

static int on_option(void *ctx, int val, const char *arg)
{
    return submission_add_flag(ctx, val, arg);
}

static int submit(struct submission *s, const struct cli_args *a)
{
    struct buf script = {0};
    struct err e = {0};
    if (a->n_rest == 0) {
        cli_error("which command? belay run COMMAND [ARG...]");
        return CLI_USAGE;
    }
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

static int run(int argc, const char **argv)
{
    struct submission s;
    struct cli_args a;
    submission_init(&s);
    int rc = cli_parse(&verb_run, argc, argv, true, on_option, &s, &a);
    s.json = a.json;
    s.wait = s.follow = true;
    if (rc == 0)
        rc = submit(&s, &a);
    cli_args_deinit(&a);
    submission_deinit(&s);
    return rc < 0 ? CLI_OK : rc;
}

const struct verb verb_run = {
    "run", "[OPTION...] COMMAND [ARG...]", "run one command as a job and show its output", run, NULL, true};
