/* SPDX-License-Identifier: Apache-2.0
 *
 * See depend.h.
 */
#include "cli/flags/depend.h"

#include "base/mem.h"
#include "job/ranges.h"
#include "base/str.h"
#include <stdlib.h>
#include <string.h>

#define MINUTE_MS 60000
#define DELAY_MAX_MINUTES (366LL * 24 * 60)

/* "17", "17_3" for a task of an array (except for aftercorr), or "17+5" for the type `after`. */
static int add_job(json_t *list, const char *kind, char *item, struct err *e)
{
    char *plus = strchr(item, '+');
    char *under = strchr(item, '_');
    int64_t id, task = 0, minutes = 0;
    if (plus && !str_eq(kind, "after"))
        return err_set(e, ERR_INVALID, "+MINUTES is for after:JOB+MINUTES only, not for %s", kind);
    if (under && str_eq(kind, "aftercorr"))
        return err_set(e, ERR_INVALID,
            "aftercorr is for all tasks of an array: give aftercorr:JOB, or afterok:JOB_TASK for "
            "one task");
    if (plus)
        *plus++ = '\0';
    if (under)
        *under++ = '\0';
    int rc = str_to_i64(item, 1, INT64_MAX, "the number of a job", &id, e);
    if (rc == 0 && under)
        rc = str_to_i64(under, 0, RANGES_NUMBER_MAX, "the index of a task", &task, e);
    if (rc == 0 && plus)
        rc = str_to_i64(plus, 0, DELAY_MAX_MINUTES, "the minutes after +", &minutes, e);
    if (rc != 0)
        return rc;
    json_t *one = json_pack("{s:s,s:I}", "kind", kind, "job", (json_int_t)id);
    if (under)
        json_object_set_new(one, "task", json_integer(task));
    if (minutes > 0)
        json_object_set_new(one, "delay_ms", json_integer(minutes * MINUTE_MS));
    json_array_append_new(list, one);
    return 0;
}

static int add_term(json_t *list, char *term, struct err *e)
{
    static const char *const kinds[] = {
        "after", "afterany", "afterok", "afternotok", "aftercorr", "singleton", NULL};
    const char *kind = strsep(&term, ":");
    char shown[STR_SHOW_MAX];
    size_t k = 0;
    while (kinds[k] && !str_eq(kinds[k], kind))
        k++;
    if (!kinds[k])
        return err_set(e, ERR_INVALID,
            "%s: expected after, afterany, afterok, afternotok or aftercorr and :JOB..., or "
            "singleton",
            str_show(kind, shown));
    if (str_eq(kind, "singleton")) {
        json_array_append_new(list, json_pack("{s:s}", "kind", kind));
        return term ? err_set(e, ERR_INVALID, "singleton takes no job") : 0;
    }
    if (!term)
        return err_set(e, ERR_INVALID, "%s: expected a job: %s:JOB", kind, kind);
    int rc = 0;
    for (char *item; rc == 0 && (item = strsep(&term, ":"));)
        rc = add_job(list, kinds[k], item, e);
    return rc;
}

int depend_parse(const char *text, json_t *spec, struct err *e)
{
    char *copy = mem_strdup(text), *rest = copy;
    bool any = strchr(text, '?');
    json_t *list = json_array();
    int rc = any && strchr(text, ',') ? err_set(e, ERR_INVALID,
                                            "expected either ',' (all must be met) or '?' (one is "
                                            "enough) between the dependencies, found both")
                                      : 0;
    for (char *term; rc == 0 && (term = strsep(&rest, ",?"));)
        rc = add_term(list, term, e);
    free(copy);
    if (rc != 0) {
        json_decref(list);
        return rc;
    }
    json_object_set_new(spec, "depends", list);
    json_object_set_new(spec, "depends_any", json_boolean(any));
    return 0;
}
