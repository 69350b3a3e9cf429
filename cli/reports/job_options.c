/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/reports/job_options.h"

#include "base/str.h"
#include "cli/cli.h"
#include <stdio.h>
#include <string.h>

/* Options that have a line of their own. */
static const char *const own_lines[] = {"name", "pool", "time_limit_ms", "begin_at_ms",
    "deadline_at_ms", "finish_by_ms", "max_uusd", "max_uusd_per_hour"};

static bool has_own_line(const struct job_attribute *a)
{
    for (size_t i = 0; i < sizeof(own_lines) / sizeof(own_lines[0]); i++)
        if (str_eq(own_lines[i], a->name))
            return true;
    return false;
}

/* The job's value of an option; NULL for the default. */
static const json_t *option_of(const json_t *job, const struct job_attribute *a)
{
    char name[64];
    size_t n = strlen(a->name);
    if (a->masks & JOB_SHOWN_AS_TIME)
        n -= strlen("_ms");
    snprintf(name, sizeof(name), "%.*s", (int)n, a->name);
    const json_t *v = json_object_get(job, name);
    return json_is_null(v) || json_is_false(v) ? NULL : v;
}

const char *job_option_name(const struct job_attribute *a)
{
    return a->flag ? a->flag : a->name;
}

bool job_option_text(const json_t *job, const struct job_attribute *a, struct buf *out)
{
    const unsigned any = JOB_IN_DOCUMENT | JOB_SHOWN_OR_NULL | JOB_SHOWN_AS_TIME;
    const bool is_shown = (a->masks & any) && !(a->masks & JOB_ALIAS) && !has_own_line(a);
    const json_t *v = is_shown ? option_of(job, a) : NULL;
    const int64_t n = json_integer_value(v);
    char text[32];
    if (!v)
        return false;
    if (json_is_string(v))
        buf_adds(out, cli_string(v));
    else if (json_is_true(v))
        buf_adds(out, "yes");
    else if (a->unit == JOB_UNIT_MS)
        buf_adds(out, cli_duration(n, text, sizeof(text)));
    else if (a->unit == JOB_UNIT_UUSD)
        buf_adds(out, cli_usd(n, text, sizeof(text)));
    else
        buf_printf(out, "%lld%s", (long long)n,
            a->unit == JOB_UNIT_MIB       ? " MiB"
            : a->unit == JOB_UNIT_MINUTES ? " minutes"
                                          : "");
    return true;
}
