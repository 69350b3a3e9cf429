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

/* "/api/v1/jobs/{id}/why" in the router's form: "/api/v1/jobs/#/why". The caller frees. */
static char *as_route(const char *path)
{
    struct buf out = {0};
    for (; *path; path++) {
        buf_addc(&out, *path == '{' ? '#' : *path);
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
    char *wanted = as_route(path);
    bool found = false;
    for (size_t i = 0; !found && api_route(i, &method, &route); i++)
        found = str_eq(route, wanted) && strcasecmp(method, verb) == 0;
    free(wanted);
    return found;
}

static void every_route_is_described_and_nothing_else(void **state)
{
    (void)state;
    json_t *doc = document(), *item, *operation;
    const char *method, *route, *path, *verb;
    size_t n = 0;
    for (; api_route(n, &method, &route); n++)
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

/* Limits written in openapi.json equal those that submits are validated with. */
static void limits_of_a_specification_are_those_of_the_table(void **state)
{
    (void)state;
    json_t *doc = document(), *schemas = json_object_get(doc, "components"), *schema;
    const char *name;
    size_t n = 0;
    schemas = json_object_get(schemas, "schemas");
    json_object_foreach(
        json_object_get(json_object_get(schemas, "JobSpec"), "properties"), name, schema)
    {
        const struct job_attribute *a = job_attribute_by_name(name);
        const json_t *max = json_object_get(schema, "maximum");
        if (!a || !max || a->max == 0)
            continue;
        if (json_integer_value(json_object_get(schema, "minimum")) != a->min ||
            json_integer_value(max) != a->max)
            fail_msg("%s of JobSpec has other limits than job/attributes.c", name);
        n++;
    }
    assert_true(n >= 5);
    json_decref(doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_route_is_described_and_nothing_else),
        cmocka_unit_test(the_document_is_whole),
        cmocka_unit_test(limits_of_a_specification_are_those_of_the_table),
        cmocka_unit_test(every_operation_has_the_answers_of_the_http_server),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
