/* SPDX-License-Identifier: Apache-2.0
 *
 * belay logs JOB: one continuous log over all attempts.
 */
#include "cli/verbs.h"

#include "base/str.h"
#include <stdio.h>

#define JSON_LOG_MAX (64u << 20)
#define RANK_MAX 255

enum { VAL_FOLLOW = 1, VAL_TAIL, VAL_RANK };

struct choice {
    bool follow;
    int64_t tail; /* bytes before the end; 0: from the beginning */
    int64_t rank;
};

static int on_option(void *ctx, int val, const char *arg)
{
    struct choice *c = ctx;
    struct err e;
    if (val == VAL_FOLLOW)
        c->follow = true;
    else if (val == VAL_RANK ? str_to_i64(arg, 0, RANK_MAX, "--rank", &c->rank, &e) != 0
                             : str_to_i64(arg, 1, 1LL << 40, "--tail-bytes", &c->tail, &e) != 0) {
        cli_error("%s", e.text);
        return CLI_USAGE;
    }
    return CLI_OK;
}

/* A whole log as one JSON text has to fit into memory. */
static int print_as_json(struct client *c, int64_t id, int64_t rank, int64_t offset, struct err *e)
{
    struct buf all = {0};
    int rc = 0;
    for (size_t n = 1; rc == 0 && n > 0;) {
        struct client_reply reply = {0};
        char path[128];
        snprintf(path, sizeof(path), "/api/v1/jobs/%lld/logs?offset=%lld&rank=%lld", (long long)id,
            (long long)offset, (long long)rank);
        rc = client_call(c, "GET", path, NULL, 60000, &reply, e);
        n = reply.body.len;
        if (rc == 0)
            rc = buf_add_limited(&all, buf_str(&reply.body), n, JSON_LOG_MAX, e);
        if (rc == ERR_INVALID && n > 0)
            err_set(e, ERR_INVALID,
                "the log is larger than %u MiB: print it without --json, or its end with --tail-bytes",
                JSON_LOG_MAX >> 20);
        offset = reply.log_next;
        client_reply_deinit(&reply);
    }
    if (rc == 0) {
        json_t *v = json_pack("{s:I,s:o}", "id", (json_int_t)id, "log", json_textn(buf_str(&all), all.len));
        cli_print_json(v);
        json_decref(v);
    }
    buf_deinit(&all);
    return rc;
}

static int run(int argc, const char **argv)
{
    struct choice choice = {0};
    struct cli_args a;
    struct client *c = NULL;
    struct err e = {0};
    int64_t id;
    int rc = cli_parse(&verb_logs, argc, argv, false, on_option, &choice, &a);
    if (rc == 0 && a.json && choice.follow) {
        cli_error("--follow and --json do not go together");
        rc = CLI_USAGE;
    }
    if (rc == 0 && !cli_job_id(a.n_rest == 1 ? a.rest[0] : NULL, &id))
        rc = CLI_USAGE;
    if (rc == 0) {
        int failed = client_create(&c, &e);
        if (failed == 0)
            failed = a.json ? print_as_json(c, id, choice.rank, -choice.tail, &e)
                            : cli_print_logs(c, id, choice.rank, -choice.tail, choice.follow, &e);
        client_destroy(c);
        if (failed != 0)
            cli_error("%s", e.text);
        rc = failed == 0 ? CLI_OK : CLI_FAILED;
    }
    cli_args_deinit(&a);
    return rc < 0 ? CLI_OK : rc;
}

static const struct poptOption options[] = {
    {"follow", 'f', POPT_ARG_NONE, NULL, VAL_FOLLOW, "go on until the job has ended, across attempts", NULL},
    {"rank", 0, POPT_ARG_STRING, NULL, VAL_RANK, "of a job on several nodes: of this one, from 0 (default 0)",
        "N"},
    {"tail-bytes", 0, POPT_ARG_STRING, NULL, VAL_TAIL, "begin this many bytes before the end", "N"},
    POPT_TABLEEND,
};

const struct verb verb_logs = {"logs", "[OPTION...] JOB", "print a job's output", run, options, false};
