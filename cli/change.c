/* SPDX-License-Identifier: Apache-2.0
 *
 * See change.h.
 */
#include "cli/change.h"

#include "base/mem.h"
#include <stdio.h>
#include <stdlib.h>

static int no_options(void *ctx, int val, const char *arg)
{
    (void)ctx, (void)val, (void)arg;
    return CLI_USAGE;
}

int change_job(const char *word, const char *action, const char *done, bool json)
{
    int64_t id;
    if (!cli_job_id(word, &id))
        return CLI_USAGE;
    char *path = mem_printf("/api/v1/jobs/%lld/%s", (long long)id, action);
    json_t *v = cli_post(path, NULL);
    free(path);
    if (v && json)
        cli_print_json(v);
    else if (v)
        printf("job %lld %s\n", (long long)id, done);
    int rc = v ? CLI_OK : CLI_FAILED;
    json_decref(v);
    return rc;
}

int change_jobs(const struct verb *v, const char *action, const char *done, int argc, const char **argv)
{
    struct cli_args a;
    int rc = cli_parse(v, argc, argv, false, no_options, NULL, &a);
    if (rc == 0 && a.n_rest == 0) {
        cli_error("which job? belay %s JOB...", v->name);
        rc = CLI_USAGE;
    }
    for (int i = 0; (rc == CLI_OK || rc == CLI_FAILED) && i < a.n_rest; i++) {
        int one = change_job(a.rest[i], action, done, a.json);
        rc = one > rc ? one : rc;
    }
    cli_args_deinit(&a);
    return rc < 0 ? CLI_OK : rc;
}
