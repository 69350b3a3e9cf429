/* SPDX-License-Identifier: Apache-2.0
 *
 * Tags (see tags.h).
 */
#include "emulator/tags.h"

#include "base/mem.h"
#include "base/str.h"
#include <stdlib.h>

void tags_deinit(struct tags *t)
{
    for (size_t i = 0; i < t->n; i++) {
        free(t->list[i].key);
        free(t->list[i].value);
    }
    free(t->list);
    *t = (struct tags){0};
}

static struct tag *tags_find(const struct tags *t, const char *key)
{
    for (size_t i = 0; i < t->n; i++)
        if (str_eq(t->list[i].key, key))
            return &t->list[i];
    return NULL;
}

void tags_set(struct tags *t, const char *key, const char *value)
{
    struct tag *tag = tags_find(t, key);
    if (tag) {
        free(tag->value);
        tag->value = mem_strdup(value);
        return;
    }
    t->list = mem_resize(t->list, t->n + 1, sizeof(*t->list));
    t->list[t->n++] = (struct tag){.key = mem_strdup(key), .value = mem_strdup(value)};
}

void tags_set_all(struct tags *t, const struct tags *others)
{
    for (size_t i = 0; i < others->n; i++)
        tags_set(t, others->list[i].key, others->list[i].value);
}

const char *tags_get(const struct tags *t, const char *key)
{
    const struct tag *tag = tags_find(t, key);
    return tag ? tag->value : NULL;
}

json_t *tags_json(const struct tags *t)
{
    json_t *o = json_object();
    for (size_t i = 0; i < t->n; i++)
        json_object_set_new(o, t->list[i].key, json_text(t->list[i].value));
    return o;
}

json_t *tags_json_list(const struct tags *t, const char *key_name)
{
    json_t *list = json_array();
    for (size_t i = 0; i < t->n; i++)
        json_array_append_new(list, json_pack("{s:o, s:o}", key_name, json_text(t->list[i].key),
                                        "value", json_text(t->list[i].value)));
    return list;
}
