/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/api/json_constraints.h"

#include "scheduler/core/placement/constraints.h"

json_t *json_features(const char *set)
{
    json_t *list = json_array();
    char name[FEATURE_MAX];
    for (size_t pos = 0; features_next(set, &pos, name);)
        json_array_append_new(list, json_text(name));
    return list;
}

json_t *json_counts(const struct counts *c)
{
    json_t *o = json_object();
    for (size_t i = 0; i < c->n; i++)
        json_object_set_new(o, c->v[i].name, json_integer(c->v[i].n));
    return o;
}

json_t *json_counts_text(const char *text)
{
    struct counts c = {0};
    if (counts_parse(text, &c, NULL) != 0)
        c = (struct counts){0};
    return json_counts(&c);
}

json_t *json_stock(const struct stock *s)
{
    json_t *o = json_object();
    for (size_t i = 0; i < s->all->n; i++)
        json_object_set_new(o, s->all->v[i].name, json_integer(s->free[i]));
    return o;
}

void json_set_constraints(json_t *o, const char *text)
{
    struct constraints x = {0};
    if (constraints_parse(text, &x, NULL) != 0)
        x = (struct constraints){0};
    json_object_set_new(o, "gpu_model", x.gpu.model[0] ? json_text(x.gpu.model) : json_null());
    json_object_set_new(
        o, "gpu_memory_mib", x.gpu.memory_mib ? json_integer(x.gpu.memory_mib) : json_null());
    json_object_set_new(
        o, "constraint", x.constraint.text[0] ? json_text(x.constraint.text) : json_null());
    json_object_set_new(o, "resources", json_counts(&x.resources));
    json_object_set_new(o, "licences", json_counts(&x.licences));
    json_object_set_new(o, "exclusive", json_boolean(x.exclusive));
    json_object_set_new(o, "nodelist", x.nodes[0] ? json_text(x.nodes) : json_null());
    json_object_set_new(o, "exclude", x.exclude[0] ? json_text(x.exclude) : json_null());
    char location[INPUT_LOCATION_MAX];
    input_format_location(&x.input, location);
    json_object_set_new(o, "input",
        x.input.bytes > 0
            ? json_pack("{s:s,s:I}", "place", location, "bytes", (json_int_t)x.input.bytes)
            : json_null());
}
