/* SPDX-License-Identifier: Apache-2.0
 *
 * belay logs JOB: one continuous log over all attempts.
 */
#include "cli/verbs.h"

#include "base/str.h"
#include "cli/since.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JSON_LOG_MAX (64u << 20)
#define RANK_MAX 255
#define LINES_MAX 1000000

enum { VAL_FOLLOW = 1, VAL_TAIL, VAL_TAIL_BYTES, VAL_RANK, VAL_ATTEMPT, VAL_SINCE };

struct choice {
    bool follow;
    struct log_part part;
};

static int on_option(void *ctx, int val, const char *arg)
{
    struct choice *c = ctx;
    struct log_part *p = &c->part;
    struct err e;
    int64_t bytes;
    int rc = 0;
    switch (val) {
    case VAL_FOLLOW:
        c->follow = true;
        break;
    case VAL_RANK:
        rc = str_to_i64(arg, 0, RANK_MAX, "--rank", &p->rank, &e);
        break;
    case VAL_ATTEMPT:
        rc = str_to_i64(arg, 1, INT32_MAX, "--attempt", &p->attempt, &e);
        break;
    case VAL_TAIL:
        rc = str_to_i64(arg, 1, LINES_MAX, "--tail", &p->tail, &e);
        break;
    case VAL_SINCE:
        rc = since_parse(arg, clock_wall(&clock_system), &p->since, &e);
        if (rc != 0)
            err_wrap(&e, "--since");
        break;
    default:
        rc = str_to_i64(arg, 1, 1LL << 40, "--tail-bytes", &bytes, &e);
        p->offset = rc == 0 ? -bytes : 0;
    }
    if (rc == 0)
        return CLI_OK;
    cli_error("%s", e.text);
    return CLI_USAGE;
}

/* A complete log as one JSON text must fit in memory. */
static int print_as_json(struct client *c, int64_t id, const struct log_part *part, struct err *e)
{
    struct buf all = {0};
    int64_t next = -1;
    int rc = 0;
    for (size_t n = 1; rc == 0 && n > 0;) {
        struct client_reply reply = {0};
        char *path = cli_log_path(id, part, next, 0);
        rc = client_call(c, "GET", path, NULL, 60000, &reply, e);
        free(path);
        n = reply.body.len;
        if (rc == 0)
            rc = buf_add_limited(&all, buf_str(&reply.body), n, JSON_LOG_MAX, e);
        if (rc == ERR_INVALID && n > 0)
            err_set(e, ERR_INVALID,
                "the log is larger than %u MiB: print it without --json, or its end with --tail",
                JSON_LOG_MAX >> 20);
        next = reply.log_next;
        client_reply_deinit(&reply);
    }
    if (rc == 0) {
        json_t *v =
            json_pack("{s:I,s:o}", "id", (json_int_t)id, "log", json_textn(buf_str(&all), all.len));
        cli_print_json(v);
        json_decref(v);
    }
    buf_deinit(&all);
    return rc;
}

/* ERR_INVALID for an array's own number, which has no output. Says that there is none yet, unless
 * the caller waits for it. */
static int check_is_job(struct client *c, int64_t id, bool waits, struct err *e)
{
    json_t *v = NULL;
    int rc = client_json(c, "GET", CLI_PATH("/api/v1/jobs/%lld", (long long)id), NULL, &v, e);
    const char *tasks = json_string_value(json_object_get(json_object_get(v, "array"), "tasks"));
    if (rc == 0 && tasks)
        rc = err_set(e, ERR_INVALID,
            "job %lld is an array of the tasks %.100s, each with an output of its own: belay logs "
            "%lld_%.*s shows one",
            (long long)id, tasks, (long long)id, (int)strspn(tasks, "0123456789"), tasks);
    const json_t *job = json_object_get(v, "job");
    if (rc == 0 && !waits && str_eq(cli_text(job, "state"), "pending") &&
        cli_int(job, "attempts", 0) == 0)
        fprintf(stderr, "belay: job %s has not started; belay why %s says what it waits for\n",
            cli_text(job, "ref"), cli_text(job, "ref"));
    json_decref(v);
    return rc;
}

static int run(int argc, const char **argv)
{
    struct choice choice = {.part = {.since = WALL_NONE}};
    struct cli_args a;
    struct client *c = NULL;
    struct err e = {0};
    int64_t id;
    int rc = cli_parse(&verb_logs, argc, argv, false, on_option, &choice, &a);
    if (rc == 0 && a.json && choice.follow) {
        cli_error("--follow and --json exclude each other");
        rc = CLI_USAGE;
    }
    if (rc == 0)
        rc = cli_job_id(a.n_rest == 1 ? a.rest[0] : NULL, &id);
    if (rc == 0) {
        int failed = client_create(&c, &e);
        if (failed == 0)
            failed = check_is_job(c, id, choice.follow, &e);
        if (failed == 0)
            failed = a.json ? print_as_json(c, id, &choice.part, &e)
                            : cli_print_logs(c, id, &choice.part, choice.follow, &e);
        client_destroy(c);
        if (failed != 0)
            cli_error("%s", e.text);
        rc = failed == 0 ? CLI_OK : CLI_FAILED;
    }
    cli_args_deinit(&a);
    return rc < 0 ? CLI_OK : rc;
}

static const struct poptOption options[] = {
    {"follow", 'f', POPT_ARG_NONE, NULL, VAL_FOLLOW,
        "keep printing until the job has ended, across attempts", NULL},
    {"rank", 0, POPT_ARG_STRING, NULL, VAL_RANK,
        "rank to show, for a job on several nodes, from 0 (default 0)", "N"},
    {"attempt", 0, POPT_ARG_STRING, NULL, VAL_ATTEMPT,
        "only this attempt, without the lines that separate attempts", "N"},
    {"since", 0, POPT_ARG_STRING, NULL, VAL_SINCE,
        "start with output of this time, such as 20:44, or 10m (ago)", "TIME"},
    {"tail", 'n', POPT_ARG_STRING, NULL, VAL_TAIL, "start this many lines before the end", "N"},
    {"tail-bytes", 0, POPT_ARG_STRING, NULL, VAL_TAIL_BYTES, "start this many bytes before the end",
        "N"},
    POPT_TABLEEND,
};

const struct verb verb_logs = {"logs", "[OPTION...] JOB", "print a job's output", run, options,
    false,
    .examples = "belay logs -f 42\n"
                "belay logs --tail 20 42_7\n"};
