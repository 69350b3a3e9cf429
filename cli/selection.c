/* SPDX-License-Identifier: Apache-2.0
 *
 * See selection.h.
 */
#include "cli/selection.h"

#include "base/str.h"

#define PAGE 200

void selection_add(struct buf *query, int val, const char *arg)
{
    static const char *const names[] = {[SELECTION_STATE] = "state",
        [SELECTION_USER] = "user",
        [SELECTION_TEAM] = "team",
        [SELECTION_POOL] = "pool",
        [SELECTION_NAME] = "name",
        [SELECTION_LABEL] = "label"};
    cli_add_parameter(query, names[val], arg);
}

/* The error of a parameter begins with its name. Its flag has the same. */
static int name_flag(struct err *e)
{
    struct err copy = *e;
    if (e->kind == ERR_INVALID && str_starts(e->text, "state: "))
        err_set(e, copy.kind, "--%s", copy.text);
    return copy.kind;
}

int selection_read(struct client *c, const char *query, int64_t before, int64_t limit, json_t *jobs,
    int64_t *ret_next, struct err *e)
{
    do {
        struct buf path = {0};
        int64_t left = limit - (int64_t)json_array_size(jobs);
        json_t *v = NULL;
        buf_printf(&path, "/api/v1/jobs%s%climit=%lld", query, *query ? '&' : '?',
            (long long)(left < PAGE ? left : PAGE));
        if (before > 0)
            buf_printf(&path, "&before=%lld", (long long)before);
        int rc = client_json(c, "GET", buf_str(&path), NULL, &v, e);
        buf_deinit(&path);
        if (rc != 0)
            return name_flag(e);
        json_array_extend(jobs, json_object_get(v, "jobs"));
        before = cli_int(v, "next", 0);
        json_decref(v);
    } while (before > 0 && (int64_t)json_array_size(jobs) < limit);
    *ret_next = before;
    return 0;
}
