/* SPDX-License-Identifier: Apache-2.0
 *
 * See update_request.h. The changes are added to a specification with those values of the job that
 * they interact with, and it is parsed like any other: limits and error texts are therefore those
 * of a submit.
 */
#include "scheduler/api/update_request.h"

#include "base/mem.h"
#include "base/str.h"
#include "job/attributes.h"
#include "scheduler/core/placement/constraints.h"
#include "scheduler/api/json_constraints.h"
#include <stdlib.h>
#include <string.h>

/* Returns the option with this member that a change may name, or NULL. */
static const struct job_attribute *changeable(const char *key)
{
    for (size_t i = 0; i < job_attributes_count; i++) {
        const struct job_attribute *a = &job_attributes[i];
        if (a->name && a->field != JOB_FIELD_NONE && str_eq(a->name, key))
            return a;
    }
    return NULL;
}

/* Options of a submit that cannot change, and what to do instead. */
static const struct {
    const char *key, *instead;
} fixed[] = {{"script", "submit the job again"}, {"args", "submit the job again"},
    {"env", "submit the job again"}, {"cwd", "submit the job again"},
    {"launch", "submit the job again"}, {"labels", "submit the job again"},
    {"checkpoint", "submit the job again"}, {"drill", "belay drill drills a job that runs"},
    {"notify", "submit the job again"}, {"kill_on_invalid_dep", "submit the job again"},
    {"hold", "hold and release do that"},
    {"array", "at_once is how many of its tasks run at once, and cancel takes tasks out"}};
#define N_FIXED (sizeof(fixed) / sizeof(fixed[0]))

static int refuse_key(const char *key, struct err *e)
{
    char shown[STR_SHOW_MAX];
    for (size_t i = 0; i < N_FIXED; i++)
        if (str_eq(fixed[i].key, key))
            return err_set(e, ERR_INVALID,
                "changes.%s: this cannot be changed after the submit: %s", key, fixed[i].instead);
    const char **names = mem_array(job_attributes_count + 2, sizeof(*names));
    size_t n = 0;
    for (size_t i = 0; i < job_attributes_count; i++)
        if (job_attributes[i].name && job_attributes[i].field != JOB_FIELD_NONE)
            names[n++] = job_attributes[i].name;
    names[n] = "tasks";
    const char *near = str_nearest(key, names);
    free(names);
    return err_set(e, ERR_INVALID, "changes: %s is not an option that can be changed%s%s%s",
        str_show(key, shown), near ? "; did you mean " : " (docs/reference/api.md lists what can)",
        near ? near : "", near ? "?" : "");
}

static int read_keys(const json_t *changes, uint64_t *ret_fields, struct err *e)
{
    const char *key;
    json_t *value;
    *ret_fields = 0;
    json_object_foreach((json_t *)(uintptr_t)changes, key, value)
    {
        const struct job_attribute *a = changeable(key);
        if (a)
            *ret_fields |= UPDATE_BIT(a->field);
        else if (!str_eq(key, "tasks"))
            return refuse_key(key, e);
    }
    if (json_object_get(changes, "depends_any") && !json_object_get(changes, "depends"))
        return err_set(e, ERR_INVALID,
            "changes.depends_any: goes with depends, which replaces all that the job depends on");
    return *ret_fields ? 0 : err_set(e, ERR_INVALID, "changes: nothing is to be changed");
}

/* Members that are not in a specification: "tasks": "3,5-7", and "at_once". */
static int read_own(const json_t *changes, struct update_request *u, struct err *e)
{
    struct json_reader r;
    struct err why;
    char text[RANGES_TEXT_MAX];
    json_reader_init(&r, changes, "changes", e);
    json_opt_strcpy(&r, "tasks", text, sizeof(text), "");
    u->to.at_once = (int32_t)json_opt_i64(&r, "at_once", 0, RANGES_NUMBER_MAX, 0);
    if (r.rc == 0 && text[0] && ranges_parse(text, &u->tasks, &why) != 0)
        json_reader_fail(&r, "tasks", "%s", why.text);
    return json_reader_finish_lenient(&r);
}

static bool changes_any(uint64_t fields, uint64_t of)
{
    return (fields & of) != 0;
}

/* A specification with the job's current values, as far as the changes interact with them. */
static json_t *spec_of(const struct update_request_of *of, uint64_t fields)
{
    const struct job_row *row = of->row;
    const char *launch = of->launch_json ? of->launch_json : "{}";
    json_t *o = json_pack("{s:s, s:s, s:i, s:i, s:i, s:{s:s}}", "script", "#!/bin/sh\n", "cwd", "/",
        "cpus", (int)row->spec.need.cpus, "gpus", (int)row->spec.need.gpus, "nodes",
        (int)row->spec.nodes, "checkpoint", "method", ckpt_method_names[row->spec.method]);
    if (row->spec.nodes_min < row->spec.nodes)
        json_object_set_new(o, "nodes_min", json_integer(row->spec.nodes_min));
    if (row->spec.script_on != SCRIPT_ON_EACH)
        json_object_set_new(o, "script_on", json_string(script_on_names[row->spec.script_on]));
    json_t *launch_json = json_loads(launch, 0, NULL);
    if (launch_json)
        json_object_set_new(o, "launch", launch_json);
    if (changes_any(fields, UPDATE_BIT(UPDATE_GPUS))) { /* slices exclude GPUs */
        struct constraints x;
        struct err unused;
        if (constraints_parse(of->constraints, &x, &unused) == 0)
            json_object_set_new(o, "resources", json_counts(&x.resources));
    }
    return o;
}

static void put_changes(json_t *spec, const json_t *changes)
{
    const char *key;
    json_t *value;
    if (json_object_get(changes, "nodes") && !json_object_get(changes, "nodes_min"))
        json_object_del(spec, "nodes_min");
    json_object_foreach((json_t *)(uintptr_t)changes, key, value)
    {
        if (!str_eq(key, "tasks") && !str_eq(key, "at_once"))
            json_object_set(spec, key, value);
    }
}

/* The patch of the options that are only stored; null removes one. */
static char *document_patch(const json_t *changes, const char *document_json)
{
    json_t *to = document_json ? json_loads(document_json, 0, NULL) : json_object(),
           *patch = json_object();
    for (size_t i = 0; i < job_attributes_count; i++) {
        const struct job_attribute *a = &job_attributes[i];
        json_t *value = json_object_get(to, a->name);
        if ((a->masks & JOB_IN_DOCUMENT) && json_object_get(changes, a->name))
            json_object_set_new(patch, a->name, value ? json_incref(value) : json_null());
    }
    char *text = json_object_size(patch) > 0 ? json_dump_text(patch) : NULL;
    json_decref(to);
    json_decref(patch);
    return text;
}

int update_request_parse(const json_t *changes, const struct update_request_of *of,
    struct update_request *ret_update, struct err *e)
{
    struct update_request u = {0};
    if (!json_is_object(changes))
        return err_set(e, ERR_INVALID, "changes: expected an object");
    int rc = read_keys(changes, &u.fields, e);
    if (rc == 0)
        rc = read_own(changes, &u, e);
    if (rc != 0)
        return rc;
    int32_t at_once = u.to.at_once;
    json_t *spec = spec_of(of, u.fields);
    put_changes(spec, changes);
    rc = jobspec_parse(spec, &u.to, e);
    json_decref(spec);
    if (rc != 0)
        return rc;
    u.to.at_once = at_once;
    u.document = document_patch(changes, u.to.texts.document_json);
    if (u.to.row.spec.begin_at.ms <= 0)
        u.to.row.spec.begin_at = WALL_NONE; /* 0 removes it */
    *ret_update = u;
    return 0;
}

void update_request_deinit(struct update_request *u)
{
    jobspec_deinit(&u->to);
    free(u->document);
    *u = (struct update_request){0};
}

struct event update_request_event(const struct update_request *u, int64_t job, const char *by)
{
    struct event ev = {.type = EV_UPDATE,
        .update = {.job = job,
            .fields = u->fields,
            .to = &u->to.row,
            .constraints = u->to.texts.constraints,
            .document = u->document,
            .depends = u->to.depends,
            .n_depends = u->to.n_depends,
            .at_once = u->to.at_once,
            .tasks = u->tasks.n > 0 ? &u->tasks : NULL}};
    STR_COPY(ev.update.by, by);
    return ev;
}
