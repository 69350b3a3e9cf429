/* SPDX-License-Identifier: Apache-2.0
 *
 * belay checkpoint commit: libbelay for shells. Called inside a job; belayd is not asked. Outside belay it
 * does nothing, so that a script needs no second way to run.
 */
#include "cli/verbs.h"

#include "base/str.h"
#include "ckpt/lib/belay.h"
#include <stdlib.h>

enum { VAL_PROGRESS = 1, VAL_TOTAL };

struct commit {
    int64_t progress, total; /* -1: not known */
};

static int on_option(void *ctx, int val, const char *arg)
{
    struct commit *c = ctx;
    struct err e;
    const char *name = val == VAL_PROGRESS ? "--progress" : "--total";
    if (str_to_i64(arg, 0, INT64_MAX, name, val == VAL_PROGRESS ? &c->progress : &c->total, &e) == 0)
        return CLI_OK;
    cli_error("%s", e.text);
    return CLI_USAGE;
}

static int commit(const struct commit *c, bool json)
{
    char why[256];
    if (belay_commit(c->progress, c->total, why, sizeof(why)) != 0) {
        cli_error("not saved: %s", why);
        return CLI_FAILED;
    }
    if (json) {
        json_t *v = json_pack("{s:b}", "stop", belay_stopping());
        cli_print_json(v);
        json_decref(v);
    }
    return belay_stopping() ? BELAY_EXIT_CHECKPOINTED : CLI_OK;
}

static int run(int argc, const char **argv)
{
    struct commit c = {-1, -1};
    struct cli_args a;
    int rc = cli_parse(&verb_checkpoint, argc, argv, false, on_option, &c, &a);
    if (rc == 0 && (a.n_rest != 1 || !str_eq(a.rest[0], "commit"))) {
        cli_error("what about the checkpoint? belay checkpoint commit");
        rc = CLI_USAGE;
    }
    if (rc == 0)
        rc = commit(&c, a.json);
    cli_args_deinit(&a);
    return rc < 0 ? CLI_OK : rc;
}

static const struct poptOption options[] = {
    {"progress", 0, POPT_ARG_STRING, NULL, VAL_PROGRESS, "the program's step", "N"},
    {"total", 0, POPT_ARG_STRING, NULL, VAL_TOTAL, "its last step", "N"},
    POPT_TABLEEND,
};

const struct verb verb_checkpoint = {"checkpoint", "[OPTION...] commit",
    "inside a job: commit a checkpoint (exit code 85: stop now)", run, options, false};
