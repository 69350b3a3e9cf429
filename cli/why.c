/* SPDX-License-Identifier: Apache-2.0
 *
 * belay why JOB: every reason why it waits, when it will start, and what would let it start now.
 */
#include "cli/verbs.h"

#include "base/mem.h"
#include "base/time.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int no_options(void *ctx, int val, const char *arg)
{
    (void)ctx, (void)val, (void)arg;
    return CLI_USAGE;
}

/* "2026-11-22 05:10 (in 1h20m)", by the clock of the wall. False: it is not known. */
static bool format_moment(const json_t *o, const char *key, char *out, size_t size)
{
    const char *text = json_string_value(json_object_get(o, key));
    char at[32], in[32];
    struct wall then;
    struct tm tm;
    if (!text || time_parse_iso(text, &then, NULL) != 0)
        return false;
    int64_t ms = then.ms - clock_wall(&clock_system).ms;
    time_t t = (time_t)(then.ms / 1000);
    if (!localtime_r(&t, &tm) || strftime(at, sizeof(at), "%Y-%m-%d %H:%M", &tm) == 0)
        return false;
    time_format_duration(ms > 0 ? ms : 0, in, sizeof(in));
    snprintf(out, size, "%s (in %s)", at, in);
    return true;
}

static void print_estimate(const json_t *o)
{
    char median[96], latest[96];
    const char *node = json_string_value(json_object_get(o, "node")), *pool = json_string_value(json_object_get(o, "pool"));
    if (!json_is_object(o) || json_is_true(json_object_get(o, "now")))
        return;
    if (!format_moment(o, "median", median, sizeof(median))) {
        printf("when it starts is not known: %s\n", cli_text(o, "unknown"));
        return;
    }
    printf("it starts about %s", median);
    if (node || pool)
        printf(" on %s%s", node ? node : "a new machine of pool ", node ? "" : pool);
    if (format_moment(o, "latest", latest, sizeof(latest)))
        printf(",\n  at the latest %s if nobody comes before it\n", latest);
    else
        printf(";\n  nobody can say when at the latest: %s\n", cli_text(o, "unknown"));
}

static void print_reasons(const json_t *v)
{
    size_t i;
    json_t *r;
    printf("job %lld is %s\n", (long long)cli_int(v, "id", 0), cli_text(v, "state"));
    json_array_foreach(json_object_get(v, "reasons"), i, r) printf("  - %s\n", cli_text(r, "text"));
    json_array_foreach(json_object_get(v, "warnings"), i, r) printf("  ! %s\n", cli_text(r, "text"));
    print_estimate(json_object_get(v, "estimate"));
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
