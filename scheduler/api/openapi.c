/* SPDX-License-Identifier: Apache-2.0
 *
 * The OpenAPI document. The embedded openapi.json is written by hand; the options of jobs that are
 * only stored come from job/attributes.c.
 */
#include "scheduler/api/api_private.h"

#include "base/str.h"
#include "job/attributes.h"

extern const char openapi_json[];

/* The schema of a value, from its type. */
static json_t *schema_of(const struct job_attribute *a)
{
    json_t *o = json_object(), *words = json_array();
    const char *type = "integer";
    switch (a->type) {
    case JOB_TYPE_BOOL:
    case JOB_TYPE_TRUE:
    case JOB_TYPE_FALSE:
        type = "boolean";
        break;
    case JOB_TYPE_TEXT:
    case JOB_TYPE_NAME:
    case JOB_TYPE_URL:
    case JOB_TYPE_ENUM:
        type = "string";
        break;
    default:
        json_object_set_new(o, "minimum", json_integer(a->min));
        json_object_set_new(o, "maximum", json_integer(a->max));
    }
    if (str_eq(type, "string") && a->max > 0)
        json_object_set_new(o, "maxLength", json_integer(a->max));
    for (size_t i = 0; a->words && a->words[i]; i++)
        json_array_append_new(words, json_string(a->words[i]));
    if (a->words)
        json_object_set(o, "enum", words);
    json_decref(words);
    json_object_set_new(o, "type", json_pack("[s,s]", type, "null"));
    json_object_set_new(o, "description", json_string(a->api_help ? a->api_help : a->help));
    json_object_set_new(o, "examples", json_pack("[n]"));
    return o;
}

char *openapi_text(void)
{
    json_t *doc = json_loads(openapi_json, 0, NULL);
    json_t *schemas = json_object_get(json_object_get(doc, "components"), "schemas"),
           *shown = json_object_get(schemas, "Job");
    for (size_t i = 0; i < job_attributes_count; i++) {
        const struct job_attribute *a = &job_attributes[i];
        if (!(a->masks & JOB_IN_DOCUMENT))
            continue;
        json_t *schema = schema_of(a);
        json_object_set(
            json_object_get(json_object_get(schemas, "JobSpec"), "properties"), a->name, schema);
        json_object_set(
            json_object_get(json_object_get(schemas, "JobChange"), "properties"), a->name, schema);
        json_object_set(json_object_get(shown, "properties"), a->name, schema);
        json_array_append_new(json_object_get(shown, "required"), json_string(a->name));
        json_decref(schema);
    }
    char *text = json_dumps(doc, JSON_INDENT(1));
    json_decref(doc);
    return text;
}
