/* SPDX-License-Identifier: Apache-2.0
 *
 * belay why JOB: every reason why it waits, who is ahead of it, when it will start, and what would
 * let it start now.
 */
#include "cli/estimate.h"
#include "cli/verbs.h"

#include "base/str.h"
#include <stdio.h>

/* The jobs ahead one by one, in place of the reason "queue-ahead", which counts them. The reply has
 * only the first of many jobs. */
static void print_ahead(const json_t *ahead)
{
    const json_t *first = json_object_get(ahead, "first"), *j;
    int64_t more = cli_int(ahead, "count", 0) - (int64_t)json_array_size(first);
    size_t i;
    json_array_foreach(first, i, j)
    {
        printf("  < job %s '%s' of %s is ahead: %s\n", cli_text(j, "ref"), cli_text(j, "name"),
            cli_text(j, "user"), cli_text(j, "why"));
    }
    if (more > 0)
        printf("  < and %s%lld more\n",
            json_is_true(json_object_get(ahead, "exact")) ? "" : "about ", (long long)more);
}

/* word: the job as it was named, "42" or "42_7". */
static void print_reasons(const char *word, const json_t *v)
{
    const json_t *ahead = json_object_get(v, "ahead");
    const bool has_ahead = json_array_size(json_object_get(ahead, "first")) > 0;
    size_t i;
    json_t *r;
    printf("job %s %s%s\n", word, str_eq(cli_text(v, "state"), "ended") ? "has " : "is ",
        cli_text(v, "state"));
    json_array_foreach(json_object_get(v, "reasons"), i, r)
    {
        if (!has_ahead || !str_eq(cli_text(r, "code"), "queue-ahead"))
            printf("  - %s\n", cli_text(r, "text"));
    }
    print_ahead(ahead);
    json_array_foreach(json_object_get(v, "warnings"), i, r)
        printf("  ! %s\n", cli_text(r, "text"));
    estimate_print(json_object_get(v, "estimate"), false);
    json_array_foreach(json_object_get(v, "changes"), i, r) printf("  > %s\n", cli_text(r, "text"));
}

static int run(int argc, const char **argv)
{
    struct cli_args a;
    int64_t id;
    int rc = cli_parse(&verb_why, argc, argv, false, NULL, NULL, &a);
    if (rc == 0)
        rc = cli_job_id(a.n_rest == 1 ? a.rest[0] : NULL, &id);
    if (rc == 0) {
        json_t *v = cli_get(CLI_PATH("/api/v1/jobs/%lld/why", (long long)id));
        if (v && a.json)
            cli_print_json(v);
        else if (v)
            print_reasons(a.rest[0], v);
        rc = v ? CLI_OK : CLI_FAILED;
        json_decref(v);
    }
    cli_args_deinit(&a);
    return rc < 0 ? CLI_OK : rc;
}

const struct verb verb_why = {"why", "[OPTION...] JOB", "say why a job waits", run, NULL, false,
    .folds = true, .examples = "belay why 42\n"};
