/* SPDX-License-Identifier: Apache-2.0
 *
 * belay submit SCRIPT [ARG...], belay submit --wrap COMMAND
 */
#include "cli/submission.h"

#include "base/mem.h"
#include "cli/verbs.h"
#include <stdlib.h>

enum { VAL_WAIT = 1, VAL_WRAP };

struct submit {
    struct submission s;
    char *wrap; /* NULL to submit a script */
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

static int run(int argc, const char **argv)
{
    struct submit u = {0};
    struct cli_args a;
    submission_init(&u.s);
    int rc = cli_parse(&verb_submit, argc, argv, true, on_option, &u, &a);
    u.s.json = a.json;
    if (rc == 0)
        rc = submission_load(&u.s, "submit", u.wrap, a.rest, a.n_rest);
    if (rc == 0)
        rc = submission_send(&u.s);
    cli_args_deinit(&a);
    submission_deinit(&u.s);
    free(u.wrap);
    return rc < 0 ? CLI_OK : rc;
}

static const struct poptOption options[] = {
    {"wait", 'W', POPT_ARG_NONE, NULL, VAL_WAIT, "wait for the job's end and return its exit code",
        NULL},
    {"wrap", 0, POPT_ARG_STRING, NULL, VAL_WRAP, "submit this shell command instead of a script",
        "COMMAND"},
    POPT_TABLEEND,
};

const struct verb verb_submit = {"submit", "[OPTION...] SCRIPT [ARG...] | --wrap COMMAND",
    "submit a job script", run, options, true,
    .examples = "belay submit train.sh\n"
                "belay submit -G 1 --mem 32G -t 8h --finish-by 07:00 train.sh\n"
                "belay submit -a 0-99%10 --wrap 'python3 step.py $BELAY_ARRAY_INDEX'\n"};
