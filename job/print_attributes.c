/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints the table of a job's options as JSON. The build generates or checks the manual, the
 * documents and the Python client with it. Not installed.
 */
#include "base/json.h"
#include "base/str.h"
#include "job/member.h"
#include <stdio.h>
#include <stdlib.h>

static const char *const types[] = {[JOB_TYPE_STRUCTURED] = "structured",
    [JOB_TYPE_IGNORED] = "ignored",
    [JOB_TYPE_TEXT] = "text",
    [JOB_TYPE_NAME] = "name",
    [JOB_TYPE_URL] = "url",
    [JOB_TYPE_INTEGER] = "integer",
    [JOB_TYPE_DURATION] = "duration",
    [JOB_TYPE_MONEY] = "money",
    [JOB_TYPE_MOMENT] = "moment",
    [JOB_TYPE_ENUM] = "enum",
    [JOB_TYPE_BOOL] = "bool",
    [JOB_TYPE_TRUE] = "true",
    [JOB_TYPE_FALSE] = "false"};

static const struct {
    unsigned mask;
    const char *name;
} masks[] = {{JOB_ALIAS, "alias"}, {JOB_IN_DOCUMENT, "in-document"},
    {JOB_UPDATE_INSIDE, "update-inside"}, {JOB_SHOWN_OR_NULL, "shown-or-null"},
    {JOB_SHOWN_AS_TIME, "shown-as-time"}};

static void put(json_t *o, const char *key, const char *text)
{
    if (text)
        json_object_set_new(o, key, json_string(text));
}

static bool changes_while_running(const struct job_attribute *a)
{
    for (size_t i = 0; i < job_attributes_count; i++)
        if (a->field != JOB_FIELD_NONE && job_attributes[i].field == a->field &&
            (job_attributes[i].masks & JOB_WHILE_RUNNING))
            return true;
    return false;
}

static const char *const units[] = {[JOB_UNIT_NONE] = NULL,
    [JOB_UNIT_MS] = "ms",
    [JOB_UNIT_MINUTES] = "minutes",
    [JOB_UNIT_MIB] = "MiB",
    [JOB_UNIT_UUSD] = "uusd"};

/* The option's default; NULL if it is not a number or word in struct job_spec. */
static json_t *default_of(const struct job_attribute *a)
{
    if (!job_member_is_number(a) || a->member_type == JOB_MEMBER_MOMENT)
        return NULL;
    const int64_t n = job_member_number(a, &job_spec_default);
    return a->member_type == JOB_MEMBER_WORD ? json_string(a->words[n]) : json_integer(n);
}

static json_t *row(const struct job_attribute *a)
{
    json_t *o = json_object(), *words = json_array(), *set = json_array();
    char letter[2] = {a->letter};
    put(o, "name", a->name);
    put(o, "flag", a->flag);
    put(o, "letter", a->letter ? letter : NULL);
    put(o, "env", a->env);
    put(o, "takes", a->takes);
    put(o, "help", a->help);
    put(o, "alias_of", a->alias_of);
    put(o, "api_help", a->api_help);
    put(o, "bare", a->bare);
    put(o, "key", a->key);
    put(o, "key_flag", a->key_flag);
    put(o, "key_takes", a->key_takes);
    put(o, "key_help", a->key_help);
    put(o, "type", types[a->type]);
    for (size_t i = 0; a->words && a->words[i]; i++)
        json_array_append_new(words, json_string(a->words[i]));
    for (size_t i = 0; i < sizeof(masks) / sizeof(masks[0]); i++)
        if (a->masks & masks[i].mask)
            json_array_append_new(set, json_string(masks[i].name));
    put(o, "unit", units[a->unit]);
    json_object_set_new(o, "default", default_of(a));
    json_object_set_new(o, "words", words);
    json_object_set_new(o, "masks", set);
    json_object_set_new(o, "changes", json_boolean(a->field != JOB_FIELD_NONE));
    json_object_set_new(o, "changes_while_running", json_boolean(changes_while_running(a)));
    json_object_set_new(o, "min", json_integer(a->flag_min ? a->flag_min : a->min));
    json_object_set_new(o, "max", json_integer(a->max));
    return o;
}

int main(void)
{
    json_t *all = json_array();
    for (size_t i = 0; i < job_attributes_count; i++)
        json_array_append_new(all, row(&job_attributes[i]));
    int rc = json_dumpf(all, stdout, JSON_INDENT(1) | JSON_PRESERVE_ORDER);
    json_decref(all);
    return rc == 0 && putchar('\n') == '\n' && fflush(stdout) == 0 ? 0 : 1;
}
