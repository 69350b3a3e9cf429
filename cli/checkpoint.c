/* SPDX-License-Identifier: Apache-2.0
 *
 * belay checkpoint. commit is libbelay for shells: used inside a job, without belayd. Outside belay
 * it is a no-op, so that a script works in both cases. save goes to belayd, the other actions
 * (checkpoint_store.c) to the store.
 */
#include "cli/adopt.h"
#include "cli/change.h"
#include "cli/checkpoint_store.h"
#include "cli/verbs.h"

#include "base/mem.h"
#include "base/str.h"
#include "ckpt/lib/belay.h"
#include <stdlib.h>

enum {
    VAL_PROGRESS = 1,
    VAL_TOTAL,
    VAL_STORE,
    VAL_CLUSTER,
    VAL_CONFIG,
    VAL_KEY_FILE,
    VAL_FORCE,
    VAL_WAIT,
    VAL_YES
};

struct given {
    int64_t progress, total; /* -1 = unknown */
    bool of_commit, of_store, wait, yes;
    struct checkpoints_options o; /* owns its texts */
};

static int take_number(struct given *g, int val, const char *arg)
{
    struct err e;
    const char *name = val == VAL_PROGRESS ? "--progress" : "--total";
    g->of_commit = true;
    if (str_to_i64(arg, 0, INT64_MAX, name, val == VAL_PROGRESS ? &g->progress : &g->total, &e) ==
        0)
        return CLI_OK;
    cli_error("%s", e.text);
    return CLI_USAGE;
}

static void take_text(const char **at, const char *arg)
{
    free((char *)*at);
    *at = mem_strdup(arg);
}

static int on_option(void *ctx, int val, const char *arg)
{
    struct given *g = ctx;
    if (val == VAL_PROGRESS || val == VAL_TOTAL)
        return take_number(g, val, arg);
    if (val == VAL_WAIT) {
        g->of_commit = g->wait = true;
        return CLI_OK;
    }
    g->of_store = true;
    if (val == VAL_STORE)
        take_text(&g->o.location.store, arg);
    else if (val == VAL_CLUSTER)
        take_text(&g->o.location.cluster, arg);
    else if (val == VAL_CONFIG)
        take_text(&g->o.location.config, arg);
    else if (val == VAL_KEY_FILE)
        take_text(&g->o.location.key_file, arg);
    else if (val == VAL_YES)
        g->yes = true;
    else
        g->o.force = true;
    return CLI_OK;
}

static int commit(const struct given *c, bool json)
{
    char why[256];
    int rc = c->wait ? belay_commit_wait(c->progress, c->total, why, sizeof(why))
                     : belay_commit(c->progress, c->total, why, sizeof(why));
    if (rc != 0) {
        cli_error("not saved: %s", why);
        return CLI_FAILED;
    }
    if (json) {
        json_t *v =
            json_pack("{s:b,s:b}", "stop", belay_stopping(), "durable", belay_last_durable(NULL));
        cli_print_json(v);
        json_decref(v);
    }
    return belay_stopping() ? BELAY_EXIT_CHECKPOINTED : CLI_OK;
}

static int request_saves(const struct cli_args *a)
{
    int rc = CLI_OK;
    if (a->n_rest < 2) {
        cli_error("expected a job: belay checkpoint save JOB...");
        return CLI_USAGE;
    }
    for (int i = 1; i < a->n_rest; i++) {
        int one =
            change_job(a->rest[i], "save", "was asked for a checkpoint and keeps running", a->json);
        rc = one > rc ? one : rc;
    }
    return rc;
}

static int act(struct given *g, const struct cli_args *a)
{
    const char *action = a->n_rest > 0 ? a->rest[0] : "";
    bool commits = str_eq(action, "commit"), asks = str_eq(action, "save"),
         adopts = str_eq(action, "adopt");
    if (!commits && !asks && !adopts && !checkpoints_has(action)) {
        cli_error("expected commit, save, list, show, get, verify, pin, unpin, remove, export or "
                  "adopt, found %s",
            action[0] ? str_show(action, (char[STR_SHOW_MAX]){0}) : "nothing");
        return CLI_USAGE;
    }
    if (commits ? g->of_store : g->of_commit) {
        cli_error(commits ? "belay checkpoint commit takes --progress, --total and --wait only: it "
                            "goes to the job's agent"
                          : "--progress, --total and --wait are for belay checkpoint commit");
        return CLI_USAGE;
    }
    if (asks && g->of_store) {
        cli_error(
            "belay checkpoint save takes jobs only: it goes to belayd, which knows the store");
        return CLI_USAGE;
    }
    if (asks)
        return request_saves(a);
    if (g->o.location.config && g->o.location.store) {
        cli_error("--config also names the store: leave out --config or --store");
        return CLI_USAGE;
    }
    if ((commits || adopts) && a->n_rest > 1) {
        cli_error("unexpected word \"%s\" (see belay checkpoint --help)", a->rest[1]);
        return CLI_USAGE;
    }
    g->o.json = a->json;
    if (adopts)
        return adopt_run(&g->o, g->yes);
    return commits ? commit(g, a->json)
                   : checkpoints_run(&g->o, action, a->rest + 1, a->n_rest - 1);
}

static int run(int argc, const char **argv)
{
    struct given g = {.progress = -1, .total = -1};
    struct cli_args a;
    int rc = cli_parse(&verb_checkpoint, argc, argv, false, on_option, &g, &a);
    if (rc == 0)
        rc = act(&g, &a);
    free((char *)g.o.location.store);
    free((char *)g.o.location.cluster);
    free((char *)g.o.location.config);
    free((char *)g.o.location.key_file);
    cli_args_deinit(&a);
    return rc < 0 ? CLI_OK : rc;
}

static const struct poptOption options[] = {
    {"progress", 0, POPT_ARG_STRING, NULL, VAL_PROGRESS,
        "commit: the step that the program has reached", "N"},
    {"total", 0, POPT_ARG_STRING, NULL, VAL_TOTAL, "commit: the number of its steps in all", "N"},
    {"wait", 0, POPT_ARG_NONE, NULL, VAL_WAIT, "commit: wait until the checkpoint is durable",
        NULL},
    {"store", 0, POPT_ARG_STRING, NULL, VAL_STORE, "the store (default: BELAY_STORE, or belayd's)",
        "URL"},
    {"cluster", 0, POPT_ARG_STRING, NULL, VAL_CLUSTER,
        "the cluster's name in the store (default: BELAY_CLUSTER, or belay)", "NAME"},
    {"config", 0, POPT_ARG_STRING, NULL, VAL_CONFIG,
        "take store and cluster from belayd's configuration", "FILE"},
    {"key-file", 0, POPT_ARG_STRING, NULL, VAL_KEY_FILE,
        "the keys of encrypted checkpoints (default: BELAY_KEY_FILE, or checkpoint.keys in "
        "belayd's state directory on this machine)",
        "FILE"},
    {"force", 0, POPT_ARG_NONE, NULL, VAL_FORCE,
        "remove: also the newest checkpoint of a running job", NULL},
    {"yes", 'y', POPT_ARG_NONE, NULL, VAL_YES, "adopt: do not ask for confirmation", NULL},
    POPT_TABLEEND,
};

const struct verb verb_checkpoint = {"checkpoint",
    "[OPTION...] commit|save|list|show|get|verify|pin|unpin|remove|export|adopt "
    "[JOB[@ATTEMPT.SEQUENCE]] [DIR]",
    "commit a checkpoint inside a job (exit code 85: stop now); ask a job to save; list, fetch, "
    "verify, pin or remove a job's checkpoints; adopt the store of a cluster that is gone",
    run, options, false,
    .examples = "belay checkpoint list 42\n"
                "belay checkpoint get 42 /tmp/state\n"
                "belay checkpoint commit    # in a job script\n"};
