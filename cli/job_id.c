/* SPDX-License-Identifier: Apache-2.0
 *
 * Jobs as users name them: "42", and "42_7" for a task of an array.
 */
#include "cli/cli.h"

#include "base/mem.h"
#include "base/str.h"
#include "job/ranges.h"
#include <stdlib.h>
#include <string.h>

/* Says why the task has no row of its own. */
static void say_why_none(int64_t array, int32_t index)
{
    json_t *v = cli_get(CLI_PATH("/api/v1/jobs/%lld", (long long)array));
    const json_t *a = json_object_get(v, "array");
    const char *tasks = cli_text(a, "tasks"), *left = cli_text(a, "left");
    struct ranges all, waiting = {0};
    struct err e;
    bool has_ended = str_eq(cli_text(json_object_get(v, "job"), "state"), "ended");
    if (v && ranges_parse(tasks, &all, &e) != 0)
        cli_error("job %lld is not an array: it has no task %d", (long long)array, (int)index);
    else if (v && !ranges_has(&all, index))
        cli_error(
            "array %lld has no task %d: its tasks are %.200s", (long long)array, (int)index, tasks);
    else if (v && !has_ended && ranges_parse(left, &waiting, &e) == 0 &&
             ranges_has(&waiting, index))
        cli_error("task %d of array %lld has not started: until then it is part of job %lld",
            (int)index, (long long)array, (long long)array);
    else if (v)
        cli_error("task %d of array %lld ended before it started", (int)index, (long long)array);
    json_decref(v);
}

/* "42_7", a task that has started. */
static int task_id(const char *text, int64_t *ret_id)
{
    char *array = mem_strdup(text), *index = strchr(array, '_');
    int64_t id, n;
    struct err e;
    *index++ = '\0';
    bool is_one = str_to_i64(array, 1, INT64_MAX, "job", &id, &e) == 0 &&
                  str_to_i64(index, 0, INT32_MAX, "task", &n, &e) == 0;
    free(array);
    if (!is_one) {
        cli_error("expected a task such as 42_7, found \"%s\"", text);
        return CLI_USAGE;
    }
    const char *path =
        CLI_PATH("/api/v1/jobs?state=all&array=%lld&index=%lld", (long long)id, (long long)n);
    json_t *v = cli_get(path);
    *ret_id = cli_int(json_array_get(json_object_get(v, "jobs"), 0), "id", 0);
    if (v && *ret_id == 0)
        say_why_none(id, (int32_t)n);
    json_decref(v);
    return *ret_id > 0 ? CLI_OK : CLI_FAILED;
}

int cli_job_id(const char *text, int64_t *ret_id)
{
    struct err e;
    if (text && strchr(text, '_'))
        return task_id(text, ret_id);
    if (text && str_to_i64(text, 1, INT64_MAX, "job", ret_id, &e) == 0)
        return CLI_OK;
    if (text)
        cli_error("expected a job's number, found \"%s\" (belay list shows them)", text);
    else
        cli_error("expected one job's number (belay list shows them)");
    return CLI_USAGE;
}
