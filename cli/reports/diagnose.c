/* SPDX-License-Identifier: Apache-2.0
 *
 * belay diagnose JOB: what slows a running job down, or slowed down one that has ended, from the
 * activity of its processes and GPUs.
 */
#include "cli/verbs.h"

#include "base/mem.h"
#include "base/time.h"
#include <stdio.h>
#include <stdlib.h>

enum { VAL_OVER = 1 };

struct request {
    int64_t over_ms; /* 0 = as configured in belayd */
};

static int on_option(void *ctx, int val, const char *arg)
{
    struct request *q = ctx;
    struct err e;
    (void)val;
    if (time_parse_duration(arg, false, &q->over_ms, &e) == 0 && q->over_ms > 0)
        return CLI_OK;
    cli_error("--over: expected a time such as 15m, found \"%s\"", arg);
    return CLI_USAGE;
}

static void print_evidence(const json_t *finding)
{
    size_t i;
    json_t *v;
    json_array_foreach(json_object_get(finding, "evidence"), i, v) printf("%s%s %lld%s%s",
        i ? ", " : "      ", cli_text(v, "name"), (long long)cli_int(v, "value", 0),
        json_string_length(json_object_get(v, "unit")) ? " " : "",
        cli_string(json_object_get(v, "unit")));
    printf("\n");
}

static void print_finding(const json_t *f, size_t n_ranks)
{
    size_t i;
    json_t *r;
    printf("\n%s", cli_text(f, "code"));
    if (n_ranks > 1)
        printf(" (rank %lld)", (long long)cli_int(f, "rank", 0));
    printf(": %s\n", cli_text(f, "text"));
    print_evidence(f);
    json_array_foreach(json_object_get(f, "remedies"), i, r) printf("    > %s\n", cli_string(r));
}

static int64_t sum_of(const json_t *list, const char *key)
{
    int64_t sum = 0;
    size_t i;
    json_t *v;
    json_array_foreach(list, i, v) sum += cli_int(v, key, 0);
    return sum;
}

static int64_t most_of(const json_t *list, const char *key)
{
    int64_t most = 0;
    size_t i;
    json_t *v;
    json_array_foreach(list, i, v) most = cli_int(v, key, 0) > most ? cli_int(v, key, 0) : most;
    return most;
}

static void print_seen(const json_t *v)
{
    const json_t *ranks = json_object_get(v, "ranks"), *gpus = json_object_get(v, "gpus");
    int64_t ms = sum_of(ranks, "ms"), known = sum_of(gpus, "known_ms");
    char mem[32];
    printf("job %s, attempt %lld, measured for %s: %.1f cpus in use", cli_text(v, "ref"),
        (long long)cli_int(v, "attempt", 0), cli_duration(most_of(ranks, "ms"), mem, sizeof(mem)),
        ms > 0 ? (double)sum_of(ranks, "cpu_ms") / (double)ms * (double)json_array_size(ranks) : 0);
    if (known > 0)
        printf(", %zu GPUs %lld %% busy", json_array_size(gpus),
            (long long)(sum_of(gpus, "busy_ms") * 100 / known));
    printf("\n");
}

static void print_result(const json_t *v)
{
    const json_t *found = json_object_get(v, "findings"), *ranks = json_object_get(v, "ranks");
    char mem[32];
    size_t i;
    json_t *f;
    if (json_array_size(ranks) == 0) {
        printf("job %s: its node reported nothing about it in that time. Nodes report once a "
               "minute.\n",
            cli_text(v, "ref"));
        return;
    }
    print_seen(v);
    if (!json_is_true(json_object_get(v, "enough")))
        printf("That is too little data: %s are needed.\n",
            cli_duration(cli_int(v, "least_ms", 0), mem, sizeof(mem)));
    else if (json_array_size(found) == 0)
        printf("No bottleneck is visible from outside.\n");
    json_array_foreach(found, i, f) print_finding(f, json_array_size(ranks));
}

static int run(int argc, const char **argv)
{
    struct request q = {0};
    struct cli_args a;
    int64_t id;
    int rc = cli_parse(&verb_diagnose, argc, argv, false, on_option, &q, &a);
    if (rc == 0)
        rc = cli_job_id(a.n_rest == 1 ? a.rest[0] : NULL, &id);
    if (rc == 0) {
        char *query =
            q.over_ms > 0 ? mem_printf("?over_ms=%lld", (long long)q.over_ms) : mem_strdup("");
        char *path = mem_printf("/api/v1/jobs/%lld/diagnose%s", (long long)id, query);
        json_t *v = cli_get(path);
        if (v && a.json)
            cli_print_json(v);
        else if (v)
            print_result(v);
        rc = v ? CLI_OK : CLI_FAILED;
        json_decref(v);
        free(path);
        free(query);
    }
    cli_args_deinit(&a);
    return rc < 0 ? CLI_OK : rc;
}

static const struct poptOption options[] = {
    {"over", 'o', POPT_ARG_STRING, NULL, VAL_OVER,
        "period to examine, up to now or its end (default 15m)", "TIME"},
    POPT_TABLEEND,
};

const struct verb verb_diagnose = {"diagnose", "[OPTION...] JOB",
    "find what slows a job down: disk, memory, network, GPUs", run, options, false, .folds = true,
    .examples = "belay diagnose 42\n"};
