/* SPDX-License-Identifier: Apache-2.0
 *
 * See retry.h.
 */
#include "cli/flags/retry.h"

#include "base/mem.h"
#include "base/str.h"
#include "job/attributes.h"
#include <stdlib.h>
#include <string.h>

static const char *const ends[] = {
    "failed", "timeout", "node-lost", "reclaimed", "evicted", "drained", NULL};

static bool is_end(const char *word)
{
    for (size_t i = 0; ends[i]; i++)
        if (str_eq(ends[i], word))
            return true;
    return false;
}

static int parse_one(char *item, json_t *retry, struct err *e)
{
    char *eq = strchr(item, '='), shown[STR_SHOW_MAX];
    int64_t n = 0;
    if (eq)
        *eq = '\0';
    if (!eq || !is_end(item))
        return err_set(e, ERR_INVALID,
            "expected END=N with failed, timeout, node-lost, reclaimed, evicted or drained, found "
            "%s",
            str_show(item, shown));
    bool unlimited = str_eq(eq + 1, "unlimited");
    int rc = unlimited ? 0 : str_to_i64(eq + 1, 0, job_attribute_max("retry.failed"), item, &n, e);
    if (rc == 0)
        json_object_set_new(retry, item, unlimited ? json_null() : json_integer(n));
    return rc;
}

int retry_parse(const char *text, json_t *spec, struct err *e)
{
    char *copy = mem_strdup(text), *rest = copy;
    json_t *had = json_object_get(spec, "retry"), *retry = had ? json_copy(had) : json_object();
    int rc = 0;
    for (char *item; rc == 0 && (item = strsep(&rest, ","));)
        rc = parse_one(item, retry, e);
    if (rc == 0)
        json_object_set(spec, "retry", retry);
    json_decref(retry);
    free(copy);
    return rc;
}

void retry_format(const json_t *job, struct buf *out)
{
    const json_t *retry = json_object_get(job, "retry");
    for (size_t i = 0; ends[i] && json_is_object(retry); i++) {
        const json_t *one = json_object_get(retry, ends[i]), *limit = json_object_get(one, "limit");
        int64_t most = json_integer_value(limit),
                used = json_integer_value(json_object_get(one, "used"));
        buf_printf(out, "%s%s ", i ? ", " : "", ends[i]);
        if (!json_is_integer(limit))
            buf_adds(out, "any number");
        else if (most == 0)
            buf_adds(out, "none");
        else
            buf_printf(out, "%lld of %lld left", (long long)(most - used), (long long)most);
    }
}
