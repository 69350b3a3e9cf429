/* SPDX-License-Identifier: Apache-2.0
 *
 * belay why JOB: every reason why it waits, when it will start, and what would let it start now.
 */
#include "cli/estimate.h"
#include "cli/verbs.h"

#include "base/mem.h"
#include <stdio.h>
#include <stdlib.h>

static int no_options(void *ctx, int val, const char *arg)
{
    (void)ctx, (void)val, (void)arg;
    return CLI_USAGE;
}

static void print_reasons(const json_t *v)
{
    size_t i;
    json_t *r;
    printf("job %lld is %s\n", (long long)cli_int(v, "id", 0), cli_text(v, "state"));
    json_array_foreach(json_object_get(v, "reasons"), i, r) printf("  - %s\n", cli_text(r, "text"));
    json_array_foreach(json_object_get(v, "warnings"), i, r)
        printf("  ! %s\n", cli_text(r, "text"));
    estimate_print(json_object_get(v, "estimate"), false);
    json_array_foreach(json_object_get(v, "changes"), i, r) printf("  > %s\n", cli_text(r, "text"));
}

static int run(int argc, const char **argv)
{
    struct cli_args a;
    int64_t id;
    int rc = cli_parse(&verb_why, argc, argv, false, no_options, NULL, &a);
    if (rc == 0 && !cli_job_id(a.n_rest == 1 ? a.rest[0] : NULL, &id))
        rc = CLI_USAGE;
    if (rc == 0) {
        char *path = mem_printf("/api/v1/jobs/%lld/why", (long long)id);
        json_t *v = cli_get(path);
        if (v && a.json)
            cli_print_json(v);
        else if (v)
            print_reasons(v);
        rc = v ? CLI_OK : CLI_FAILED;
        json_decref(v);
        free(path);
    }
    cli_args_deinit(&a);
    return rc < 0 ? CLI_OK : rc;
}

const struct verb verb_why = {"why", "[OPTION...] JOB", "say why a job waits", run, NULL, false};
