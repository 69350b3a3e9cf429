/* SPDX-License-Identifier: Apache-2.0
 *
 * See yaml_print.h. libyaml writes events; one it refuses would be a bug here, except for a failed
 * write, which stops it.
 */
#include "base/yaml_print.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

/* A text that is quoted: plain, it could be a number, a time, a truth value or null. */
static bool needs_quotes(const char *text)
{
    static const char *const words[] = {
        "", "~", "null", "true", "false", "yes", "no", "on", "off", "y", "n"};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strcasecmp(text, words[i]) == 0)
            return true;
    return strchr("0123456789+-.", text[0]) != NULL;
}

static bool put_scalar(yaml_emitter_t *y, const char *text, bool quoted)
{
    yaml_event_t ev;
    yaml_scalar_event_initialize(&ev, NULL, NULL, (const yaml_char_t *)text, (int)strlen(text), 1,
        1, quoted ? YAML_DOUBLE_QUOTED_SCALAR_STYLE : YAML_ANY_SCALAR_STYLE);
    return yaml_emitter_emit(y, &ev);
}

static bool put(yaml_emitter_t *y, const json_t *v);

static bool put_array(yaml_emitter_t *y, const json_t *v)
{
    yaml_event_t ev;
    size_t i;
    json_t *item;
    bool is_empty = json_array_size(v) == 0;
    yaml_sequence_start_event_initialize(
        &ev, NULL, NULL, 1, is_empty ? YAML_FLOW_SEQUENCE_STYLE : YAML_BLOCK_SEQUENCE_STYLE);
    if (!yaml_emitter_emit(y, &ev))
        return false;
    json_array_foreach((json_t *)(uintptr_t)v, i, item)
    {
        if (!put(y, item))
            return false;
    }
    yaml_sequence_end_event_initialize(&ev);
    return yaml_emitter_emit(y, &ev);
}

static bool put_object(yaml_emitter_t *y, const json_t *v)
{
    yaml_event_t ev;
    const char *name;
    json_t *item;
    bool is_empty = json_object_size(v) == 0;
    yaml_mapping_start_event_initialize(
        &ev, NULL, NULL, 1, is_empty ? YAML_FLOW_MAPPING_STYLE : YAML_BLOCK_MAPPING_STYLE);
    if (!yaml_emitter_emit(y, &ev))
        return false;
    json_object_foreach((json_t *)(uintptr_t)v, name, item)
    {
        if (!put_scalar(y, name, needs_quotes(name)) || !put(y, item))
            return false;
    }
    yaml_mapping_end_event_initialize(&ev);
    return yaml_emitter_emit(y, &ev);
}

static bool put(yaml_emitter_t *y, const json_t *v)
{
    char number[32];
    switch (json_typeof(v)) {
    case JSON_OBJECT:
        return put_object(y, v);
    case JSON_ARRAY:
        return put_array(y, v);
    case JSON_STRING:
        return put_scalar(y, json_string_value(v), needs_quotes(json_string_value(v)));
    case JSON_INTEGER:
        snprintf(number, sizeof(number), "%lld", (long long)json_integer_value(v));
        return put_scalar(y, number, false);
    case JSON_REAL:
        snprintf(number, sizeof(number), "%.17g", json_real_value(v));
        return put_scalar(y, number, false);
    case JSON_TRUE:
        return put_scalar(y, "true", false);
    case JSON_FALSE:
        return put_scalar(y, "false", false);
    case JSON_NULL:
        return put_scalar(y, "null", false);
    }
    return false;
}

void yaml_print(const json_t *v, FILE *out)
{
    yaml_emitter_t y;
    yaml_event_t ev;
    if (!yaml_emitter_initialize(&y))
        abort();
    yaml_emitter_set_output_file(&y, out);
    yaml_emitter_set_unicode(&y, 1);
    yaml_stream_start_event_initialize(&ev, YAML_UTF8_ENCODING);
    bool is_fine = yaml_emitter_emit(&y, &ev);
    yaml_document_start_event_initialize(&ev, NULL, NULL, NULL, 1);
    is_fine = is_fine && yaml_emitter_emit(&y, &ev) && put(&y, v);
    if (is_fine) {
        yaml_document_end_event_initialize(&ev, 1);
        is_fine = yaml_emitter_emit(&y, &ev);
    }
    if (is_fine)
        yaml_emitter_flush(&y);
    yaml_emitter_delete(&y);
}
