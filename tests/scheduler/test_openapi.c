/* SPDX-License-Identifier: Apache-2.0
 *
 * The document at /api/v1/openapi.json matches the router exactly and is consistent. test_api.py
 * compares responses and bodies with it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "job/attributes.h"
#include "scheduler/api/api_private.h"
#include <stdlib.h>
#include <string.h>

extern const char openapi_json[];

static json_t *document(void)
{
    struct err e;
    json_t *v = NULL;
    char *text = openapi_text();
    if (json_parse(text, strlen(text), 4 << 20, &v, &e) != 0)
        fail_msg("%s", e.text);
    free(text);
    return v;
}

/* "/api/v1/jobs/{id}/why" in the router's form: "/api/v1/jobs/#/why"; {path} is "*". The caller
 * frees. */
static char *as_route(const char *path)
{
    struct buf out = {0};
    for (; *path; path++) {
        buf_addc(&out, str_starts(path, "{path}") ? '*' : *path == '{' ? '#' : *path);
        if (*path == '{')
            path = strchr(path, '}');
        assert_non_null(path);
    }
    return buf_take(&out);
}

static bool is_described(const json_t *doc, const char *method, const char *route)
{
    const char *path, *verb;
    json_t *item, *operation;
    json_object_foreach(json_object_get(doc, "paths"), path, item)
    {
        char *same = as_route(path);
        bool is_it = str_eq(same, route);
        free(same);
        json_object_foreach(
            item, verb, operation) if (is_it && strcasecmp(verb, method) == 0) return true;
    }
    return false;
}

static bool is_routed(const char *verb, const char *path)
{
    const char *method, *route;
    enum right right;
    char *wanted = as_route(path);
    bool found = false;
    for (size_t i = 0; !found && api_route(i, &method, &route, &right); i++)
        found = str_eq(route, wanted) && strcasecmp(method, verb) == 0;
    free(wanted);
    return found;
}

static void every_route_is_described_and_nothing_else(void **state)
{
    (void)state;
    json_t *doc = document(), *item, *operation;
    const char *method, *route, *path, *verb;
    enum right right;
    size_t n = 0;
    for (; api_route(n, &method, &route, &right); n++)
        if (!is_described(doc, method, route))
            fail_msg("%s %s is not in scheduler/api/openapi.json", method, route);
    assert_true(n > 40);
    json_object_foreach(json_object_get(doc, "paths"), path, item)
    {
        json_object_foreach(item, verb, operation)
        {
            if (!is_routed(verb, path))
                fail_msg("%s %s of scheduler/api/openapi.json is no route", verb, path);
            n--;
        }
    }
    assert_int_equal(n, 0);
    json_decref(doc);
}

/* The target of every $ref exists. */
static void check_refs(const json_t *doc, const json_t *v)
{
    const char *key, *text = json_string_value(json_object_get(v, "$ref"));
    size_t i;
    json_t *member;
    if (text) {
        char *names = mem_strdup(text + 2), *rest = names;
        const json_t *at = doc;
        assert_true(str_starts(text, "#/"));
        for (char *name; (name = strsep(&rest, "/"));)
            at = json_object_get(at, name);
        if (!at)
            fail_msg("%s is not there", text);
        free(names);
    }
    json_object_foreach((json_t *)v, key, member) check_refs(doc, member);
    json_array_foreach(v, i, member) check_refs(doc, member);
}

static void the_document_is_whole(void **state)
{
    (void)state;
    json_t *doc = document(), *item, *operation, *ids = json_object(), *p;
    const char *path, *verb;
    size_t i;
    check_refs(doc, doc);
    json_object_foreach(json_object_get(doc, "paths"), path, item)
    {
        json_object_foreach(item, verb, operation)
        {
            const char *id = json_string_value(json_object_get(operation, "operationId"));
            size_t n_ids = 0;
            assert_non_null(id);
            if (json_object_get(ids, id))
                fail_msg("operationId %s is there twice", id);
            json_object_set_new(ids, id, json_true());
            json_array_foreach(json_object_get(operation, "parameters"), i, p)
            {
                const char *name = json_string_value(json_object_get(p, "name"));
                char *place = mem_printf("{%s}", name);
                bool in_path = str_eq(json_string_value(json_object_get(p, "in")), "path");
                if (in_path != (strstr(path, place) != NULL))
                    fail_msg("%s: %s", path, name);
                n_ids += in_path;
                free(place);
            }
            for (const char *c = path; *c; c++)
                n_ids -= *c == '{';
            assert_int_equal(n_ids, 0);
            assert_true(json_object_size(json_object_get(operation, "responses")) >= 2);
        }
    }
    /* The error kinds are those of the program. */
    const json_t *kinds = json_object_get(
        json_object_get(json_object_get(json_object_get(doc, "components"), "schemas"), "Error"),
        "properties");
    kinds = json_object_get(
        json_object_get(json_object_get(json_object_get(kinds, "error"), "properties"), "kind"),
        "enum");
    assert_true(json_array_size(kinds) > 10);
    json_array_foreach(kinds, i, p) if (err_kind_from_name(json_string_value(p)) == ERR_NONE)
        fail_msg("%s is no kind", json_string_value(p));
    json_decref(ids);
    json_decref(doc);
}

/* Responses of the HTTP server before routing (base/uv/http_head.c, http_exchange.c, http_conn.c),
 * under the names shared by all operations. */
static void every_operation_has_the_answers_of_the_http_server(void **state)
{
    (void)state;
    static const char *const statuses[] = {"408", "429", "431", "501", "503"};
    json_t *doc = document(), *item, *operation;
    const char *path, *verb;
    size_t n = 0;
    json_object_foreach(json_object_get(doc, "paths"), path, item)
    {
        json_object_foreach(item, verb, operation)
        {
            const json_t *responses = json_object_get(operation, "responses");
            for (size_t i = 0; i < sizeof(statuses) / sizeof(*statuses); i++, n++) {
                char *name = mem_printf("#/components/responses/%s", statuses[i]);
                const json_t *response = json_object_get(responses, statuses[i]);
                const char *ref = json_string_value(json_object_get(response, "$ref"));
                if (!ref || !str_eq(ref, name))
                    fail_msg("%s %s has no response %s", verb, path, name);
                free(name);
            }
        }
    }
    assert_true(n > 200);
    json_decref(doc);
}

/* The schema of a member "checkpoint.keep" in an object's schema; NULL: there is none. */
static const json_t *member_of(const json_t *object, const char *name)
{
    const char *dot = strchr(name, '.');
    const size_t n = dot ? (size_t)(dot - name) : strlen(name);
    const json_t *own = json_object_getn(json_object_get(object, "properties"), name, n);
    return own && dot ? member_of(own, dot + 1) : own;
}

static bool is_required(const json_t *object, const char *name)
{
    const char *dot = strchr(name, '.');
    const json_t *list = json_object_get(object, "required"), *item;
    size_t i;
    if (dot) {
        char *first = mem_strndup(name, (size_t)(dot - name));
        const json_t *own = json_object_get(json_object_get(object, "properties"), first);
        free(first);
        return is_required(own, dot + 1);
    }
    json_array_foreach(list, i, item) if (str_eq(json_string_value(item), name)) return true;
    return false;
}

/* Whether a schema has this type, alone or with null. */
static bool has_type(const json_t *schema, const char *type)
{
    const json_t *v = json_object_get(schema, "type"), *item;
    size_t i;
    if (!json_is_array(v))
        return str_eq(json_string_value(v), type);
    json_array_foreach(v, i, item) if (str_eq(json_string_value(item), type)) return true;
    return false;
}

/* The schema type that a row must have, derived here independently of scheduler/api/openapi.c. */
static const char *member_type_of(const struct job_attribute *a)
{
    static const char *const types[] = {[JOB_MEMBER_INT32] = "integer",
        [JOB_MEMBER_INT64] = "integer",
        [JOB_MEMBER_BOOL] = "boolean",
        [JOB_MEMBER_NOT] = "boolean",
        [JOB_MEMBER_WORD] = "string",
        [JOB_MEMBER_MOMENT] = "integer",
        [JOB_MEMBER_TEXT] = "string"};
    return types[a->member_type];
}

static void check_words(const struct job_attribute *a, const json_t *schema, const char *where)
{
    const json_t *words = json_object_get(schema, "enum");
    size_t n = 0;
    for (; a->words && a->words[n]; n++) {
        const char *word = json_string_value(json_array_get(words, n));
        if (!word || !str_eq(word, a->words[n]))
            fail_msg("%s of %s: %s is not among its words", a->name, where, a->words[n]);
    }
    const bool has_null = n > 0 && json_is_null(json_array_get(words, n));
    if (json_array_size(words) != n + has_null)
        fail_msg("%s of %s has words that job/attributes.c does not have", a->name, where);
}

/* Requests are checked against the same limits in submits and updates. */
static void check_asked(const struct job_attribute *a, const json_t *schema, const char *where)
{
    static const char *const units[] = {[JOB_UNIT_MS] = "milliseconds",
        [JOB_UNIT_MINUTES] = "minutes",
        [JOB_UNIT_MIB] = "MiB",
        [JOB_UNIT_UUSD] = "micro-dollars"};
    const char *text = json_string_value(json_object_get(schema, "description"));
    if (a->member_type != JOB_MEMBER_NONE && !has_type(schema, member_type_of(a)))
        fail_msg("%s of %s has another type than job/attributes.c", a->name, where);
    if (has_type(schema, "integer") && a->max > 0 &&
        (!json_object_get(schema, "minimum") ||
            json_integer_value(json_object_get(schema, "minimum")) != a->min ||
            json_integer_value(json_object_get(schema, "maximum")) != a->max))
        fail_msg("%s of %s has other limits than job/attributes.c", a->name, where);
    if (a->member_type == JOB_MEMBER_TEXT &&
        json_integer_value(json_object_get(schema, "maxLength")) >= (json_int_t)a->size)
        fail_msg("%s of %s may be longer than it is kept", a->name, where);
    check_words(a, schema, where);
    if (a->unit != JOB_UNIT_NONE && (!text || !strstr(text, units[a->unit])))
        fail_msg("%s of %s: \"%s\" does not say %s", a->name, where, text, units[a->unit]);
    if (a->help && !(a->masks & JOB_ALIAS) && !text)
        fail_msg("%s of %s has no description", a->name, where);
}

static void check_shown(const struct job_attribute *a, const json_t *job)
{
    const bool is_time = a->masks & JOB_SHOWN_AS_TIME;
    char *name = mem_strndup(a->name, strlen(a->name) - (is_time ? strlen("_ms") : 0));
    const json_t *schema = member_of(job, name);
    if (!schema || !is_required(job, name))
        fail_msg("%s is shown, and Job does not require it", name);
    if (!has_type(schema, is_time                      ? "string"
                          : a->masks & JOB_IN_DOCUMENT ? "string"
                                                       : member_type_of(a)))
        fail_msg("%s of Job has another type than job/attributes.c", name);
    if (!has_type(schema, "null") && (is_time || (a->masks & JOB_SHOWN_OR_NULL)))
        fail_msg("%s of Job may be null", name);
    check_words(a, schema, "Job");
    free(name);
}

static void options_are_described_as_the_table_has_them(void **state)
{
    (void)state;
    json_t *doc = document(), *schemas = json_object_get(doc, "components");
    int n_asked = 0, n_changed = 0, n_shown = 0;
    schemas = json_object_get(schemas, "schemas");
    const json_t *job = json_object_get(schemas, "Job"), *own;
    for (size_t i = 0; i < job_attributes_count; i++) {
        const struct job_attribute *a = &job_attributes[i];
        if (!a->name)
            continue;
        own = member_of(json_object_get(schemas, "JobSpec"), a->name);
        if (!own && !str_eq(a->name, "at_once")) /* there it is part of the array */
            fail_msg("%s is not in JobSpec", a->name);
        if (own)
            check_asked(a, own, "JobSpec");
        n_asked += own != NULL;
        own = member_of(json_object_get(schemas, "JobChange"), a->name);
        if (!own && a->field != JOB_FIELD_NONE)
            fail_msg("%s is not in JobChange", a->name);
        if (own)
            check_asked(a, own, "JobChange");
        n_changed += own != NULL;
        if (a->masks & (JOB_SHOWN | JOB_SHOWN_OR_NULL | JOB_SHOWN_AS_TIME | JOB_IN_DOCUMENT)) {
            check_shown(a, job);
            n_shown++;
        }
    }
    assert_true(n_asked > 40 && n_changed > 30 && n_shown > 25);
    json_decref(doc);
}

/* A description copied into openapi.json would hide a change of the table. */
static void options_have_their_flags(void **state)
{
    (void)state;
    json_t *doc = document(), *schemas = json_object_get(doc, "components");
    const json_t *spec = json_object_get(json_object_get(schemas, "schemas"), "JobSpec");
    static const char *const flags[][2] = {{"time_limit_ms", "time"}, {"finish_by_ms", "finish-by"},
        {"finish_in_ms", "finish-by"}}; /* an alias, without a flag of its own */
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        assert_string_equal(
            json_string_value(json_object_get(member_of(spec, flags[i][0]), "x-belay-flag")),
            flags[i][1]);
    json_decref(doc);
}

static void what_the_table_says_is_not_written_by_hand(void **state)
{
    (void)state;
    static const char *const objects[] = {"JobSpec", "JobChange", "Job"}, *const keys[] = {"type",
                                                                              "minimum", "maximum",
                                                                              "enum", "maxLength"};
    json_t *doc = json_loads(openapi_json, 0, NULL),
           *schemas = json_object_get(json_object_get(doc, "components"), "schemas");
    for (size_t i = 0; i < job_attributes_count; i++)
        for (size_t k = 0; k < sizeof(objects) / sizeof(objects[0]); k++) {
            const struct job_attribute *a = &job_attributes[i];
            const json_t *own = a->name && a->member_type != JOB_MEMBER_NONE
                                    ? member_of(json_object_get(schemas, objects[k]), a->name)
                                    : NULL;
            /* null for a job whose number of nodes is not a range */
            const bool is_special = a->name && str_eq(a->name, "on_loss");
            for (size_t n = 0; n < sizeof(keys) / sizeof(keys[0]); n++)
                if (json_object_get(own, keys[n]) && !is_special)
                    fail_msg(
                        "%s of %s has its %s in openapi.json, too", a->name, objects[k], keys[n]);
        }
    json_decref(doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_route_is_described_and_nothing_else),
        cmocka_unit_test(the_document_is_whole),
        cmocka_unit_test(options_are_described_as_the_table_has_them),
        cmocka_unit_test(options_have_their_flags),
        cmocka_unit_test(what_the_table_says_is_not_written_by_hand),
        cmocka_unit_test(every_operation_has_the_answers_of_the_http_server),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
