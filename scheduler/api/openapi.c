/* SPDX-License-Identifier: Apache-2.0
 *
 * The OpenAPI document: the embedded openapi.json, which is written by hand, and the options of
 * jobs as job/attributes.c has them. For an option that is a member of struct job_spec, or that is
 * only stored, everything comes from its row; openapi.json may add to it (an example, a pattern).
 * For every other option the row adds what openapi.json does not say: range and description. The
 * role that an operation needs comes from the table of routes.
 */
#include "scheduler/api/api_private.h"

#include "base/mem.h"
#include "base/str.h"
#include "job/member.h"
#include <string.h>

extern const char openapi_json[];

static const char *const units[] = {[JOB_UNIT_NONE] = NULL,
    [JOB_UNIT_MS] = "milliseconds",
    [JOB_UNIT_MINUTES] = "minutes",
    [JOB_UNIT_MIB] = "MiB",
    [JOB_UNIT_UUSD] = "micro-dollars"};

/* True if the option's schema comes from its row alone. */
static bool is_generated(const struct job_attribute *a)
{
    return a->name && (a->member_type != JOB_MEMBER_NONE || (a->masks & JOB_IN_DOCUMENT));
}

static bool is_moment(const struct job_attribute *a)
{
    return a->type == JOB_TYPE_MOMENT || a->member_type == JOB_MEMBER_MOMENT ||
           (a->masks & JOB_SHOWN_AS_TIME);
}

static const char *type_of(const struct job_attribute *a)
{
    if (a->member_type == JOB_MEMBER_BOOL || a->member_type == JOB_MEMBER_NOT ||
        a->type == JOB_TYPE_BOOL || a->type == JOB_TYPE_TRUE || a->type == JOB_TYPE_FALSE)
        return "boolean";
    return a->words || a->member_type == JOB_MEMBER_TEXT || a->type == JOB_TYPE_TEXT ||
                   a->type == JOB_TYPE_NAME || a->type == JOB_TYPE_URL
               ? "string"
               : "integer";
}

/* True if null stands for the default, and 0 or "" does not. */
static bool is_nullable(const struct job_attribute *a)
{
    json_t *to = a->reset ? json_loads(a->reset, 0, NULL) : NULL;
    const bool is_null = json_is_null(json_object_get(to, a->name));
    json_decref(to);
    return is_null || (a->masks & JOB_IN_DOCUMENT);
}

/* Returns NULL if the row has no description. */
static json_t *description_of(const struct job_attribute *a)
{
    const char *text = a->api_help ? a->api_help : a->help ? a->help : a->key_help;
    const char *unit = is_moment(a) ? "milliseconds since 1970" : units[a->unit];
    if (!text || a->alias_of)
        return unit ? json_string(unit) : NULL;
    char *whole =
        unit && !strstr(text, unit) ? mem_printf("%s (%s)", text, unit) : mem_strdup(text);
    json_t *v = json_string(whole);
    free(whole);
    return v;
}

static void set_type(json_t *o, const struct job_attribute *a, bool or_null)
{
    const char *type = type_of(a);
    json_t *words = json_array();
    for (size_t i = 0; a->words && a->words[i]; i++)
        json_array_append_new(words, json_string(a->words[i]));
    if (a->words && or_null)
        json_array_append_new(words, json_null());
    if (a->words)
        json_object_set(o, "enum", words);
    json_decref(words);
    json_object_set_new(o, "type", or_null ? json_pack("[s,s]", type, "null") : json_string(type));
}

static void set_range(json_t *o, const struct job_attribute *a)
{
    const bool is_text = str_eq(type_of(a), "string");
    const int64_t bytes = a->max > 0 ? a->max : (int64_t)a->size - 1;
    if (is_text && !a->words && bytes > 0 && !(a->masks & JOB_READ_APART))
        json_object_set_new(o, "maxLength", json_integer(bytes));
    if (str_eq(type_of(a), "integer") && a->max > 0) {
        json_object_set_new(o, "minimum", json_integer(a->min));
        json_object_set_new(o, "maximum", json_integer(a->max));
    }
}

/* The value of an option that is not set; no "default" if an absent option has no value. */
static void set_default(json_t *o, const struct job_attribute *a)
{
    const bool is_number = job_member_is_number(a);
    const int64_t n = is_number ? job_member_number(a, &job_spec_default) : 0;
    if (a->masks & JOB_READ_APART)
        return;
    if (a->member_type == JOB_MEMBER_WORD)
        json_object_set_new(o, "default", json_string(a->words[n]));
    else if (is_number && n >= a->min && n <= a->max)
        json_object_set_new(o, "default", json_integer(n));
    else if (a->member_type == JOB_MEMBER_TEXT)
        json_object_set_new(o, "default", json_string(job_member_text(a, &job_spec_default)));
    else if (a->member_type == JOB_MEMBER_BOOL || a->member_type == JOB_MEMBER_NOT)
        json_object_set_new(o, "default", json_boolean(job_member_truth(a, &job_spec_default)));
}

/* Returns the flag of the option, of its row or of one that sets the same; NULL if it has none. */
static const char *flag_of(const struct job_attribute *a)
{
    if (a->flag || !(a->masks & JOB_ALIAS) || a->field == JOB_FIELD_NONE)
        return a->flag;
    for (size_t i = 0; i < job_attributes_count; i++)
        if (job_attributes[i].field == a->field && job_attributes[i].flag)
            return job_attributes[i].flag;
    return NULL;
}

/* Returns the schema of the option in a request. Where JobChange allows null, JobSpec does, too. */
static json_t *schema_asked(const struct job_attribute *a)
{
    json_t *o = json_object(), *text = description_of(a);
    if (is_generated(a)) {
        set_type(o, a, is_nullable(a));
        set_default(o, a);
    }
    if (is_generated(a) || a->type == JOB_TYPE_INTEGER || a->unit != JOB_UNIT_NONE)
        set_range(o, a);
    if (text)
        json_object_set_new(o, "description", text);
    if (flag_of(a))
        json_object_set_new(o, "x-belay-flag", json_string(flag_of(a)));
    if (is_generated(a) && is_nullable(a))
        json_object_set_new(o, "examples", json_pack("[n]"));
    else if (a->member_type == JOB_MEMBER_TEXT)
        json_object_set_new(o, "examples", json_pack("[s]", job_member_text(a, &job_spec_default)));
    return o;
}

static json_t *schema_shown(const struct job_attribute *a)
{
    json_t *o = json_object(), *text = description_of(a);
    if (a->masks & JOB_SHOWN_AS_TIME) {
        json_object_set_new(o, "type", json_pack("[s,s]", "string", "null"));
        json_object_set_new(o, "format", json_string("date-time"));
    } else
        set_type(o, a, a->masks & (JOB_SHOWN_OR_NULL | JOB_IN_DOCUMENT));
    if (text && !(a->masks & JOB_SHOWN_AS_TIME))
        json_object_set(o, "description", text);
    json_decref(text);
    return o;
}

/* Adds to the object's property `name`, n bytes long, what it lacks of schema; "checkpoint.keep" is
 * "keep" of the object "checkpoint". Takes ownership of schema. */
static void add(json_t *object, const char *name, size_t n, bool is_required, json_t *schema)
{
    json_t *all = json_object_get(object, "properties");
    const char *dot = memchr(name, '.', n);
    const size_t n_first = dot ? (size_t)(dot - name) : n;
    json_t *own = json_object_getn(all, name, n_first);
    if (own && dot) {
        add(own, dot + 1, n - n_first - 1, is_required, schema);
        return;
    }
    if (own)
        json_object_update_missing(own, schema);
    else
        json_object_setn(all, name, n_first, schema);
    if (is_required)
        json_array_append_new(json_object_get(object, "required"), json_stringn(name, n_first));
    json_decref(schema);
}

/* True if the object has the property, which may be nested as in "checkpoint.keep". */
static bool has(const json_t *object, const char *name)
{
    const char *dot = strchr(name, '.');
    const size_t n = dot ? (size_t)(dot - name) : strlen(name);
    const json_t *own = json_object_getn(json_object_get(object, "properties"), name, n);
    return own && (!dot || has(own, dot + 1));
}

/* True if "/api/v1/jobs/{id}/why" is the path of the route "/api/v1/jobs/#/why". */
static bool is_path_of(const char *path, const char *route)
{
    for (; *path && *route; path++, route++) {
        if (*path == '{' && *route == '#')
            path = strchr(path, '}');
        else if (*path != *route)
            return false;
        if (!path)
            return false;
    }
    return *path == *route;
}

/* Says of each operation of a user which role it needs at least, and that a lesser one is
 * refused. */
static void add_roles(json_t *paths)
{
    const char *method, *route, *path, *verb;
    enum right right;
    json_t *item, *operation;
    for (size_t i = 0; api_route(i, &method, &route, &right); i++)
        json_object_foreach(paths, path, item)
        {
            if (right == RIGHT_NONE || right == RIGHT_UNSET || !is_path_of(path, route))
                continue;
            json_object_foreach(item, verb, operation)
            {
                json_t *responses = json_object_get(operation, "responses");
                if (strcasecmp(verb, method) != 0)
                    continue;
                json_object_set_new(
                    operation, "x-belay-role", json_string(role_names[right_least_role(right)]));
                json_object_set_new(operation, "x-belay-right", json_string(right_names[right]));
                if (!json_object_get(responses, "403"))
                    json_object_set_new(
                        responses, "403", json_pack("{s:s}", "$ref", "#/components/responses/403"));
            }
        }
}

char *openapi_text(void)
{
    json_t *doc = json_loads(openapi_json, 0, NULL);
    add_roles(json_object_get(doc, "paths"));
    json_t *schemas = json_object_get(json_object_get(doc, "components"), "schemas"),
           *spec = json_object_get(schemas, "JobSpec"),
           *change = json_object_get(schemas, "JobChange"),
           *shown = json_object_get(schemas, "Job");
    for (size_t i = 0; i < job_attributes_count; i++) {
        const struct job_attribute *a = &job_attributes[i];
        const unsigned time = a->masks & JOB_SHOWN_AS_TIME,
                       any = JOB_SHOWN | JOB_SHOWN_OR_NULL | JOB_IN_DOCUMENT;
        const size_t n = a->name ? strlen(a->name) : 0;
        if (a->name && (is_generated(a) || has(spec, a->name)))
            add(spec, a->name, n, false, schema_asked(a));
        if (a->name && ((is_generated(a) && a->field != JOB_FIELD_NONE) || has(change, a->name)))
            add(change, a->name, n, false, schema_asked(a));
        if (is_generated(a) && (time || (a->masks & any)))
            add(shown, a->name, n - (time ? strlen("_ms") : 0), true, schema_shown(a));
    }
    char *text = json_dumps(doc, JSON_INDENT(1));
    json_decref(doc);
    return text;
}

void api_openapi(struct request *q)
{
    http_reply_text(q->x, 200, "application/json", q->api->openapi);
}
