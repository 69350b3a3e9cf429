/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds a tree from libyaml's events. Constructs that libyaml accepts and we do not (aliases,
 * tags, merge keys, several documents, keys that are not scalars, duplicate keys) are refused here,
 * where the line is known. Recursion is bounded by YAML_DEPTH_MAX. Reading mappings is in
 * yaml_reader.c.
 */
#include "base/yaml.h"

#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

struct reading {
    yaml_parser_t parser;
    const char *file, *text;
    size_t n_nodes;
    struct err *e;
};

static int refuse(struct reading *r, const yaml_mark_t *mark, const char *problem)
{
    return err_set(r->e, ERR_INVALID, "%s:%zu: %s", r->file, mark->line + 1, problem);
}

static int refuse_syntax(struct reading *r)
{
    const yaml_parser_t *p = &r->parser;
    if (p->error == YAML_MEMORY_ERROR)
        mem_out_of_memory();
    yaml_mark_t mark = p->problem_mark;
    /* for an invalid byte libyaml knows only the offset */
    if (p->error == YAML_READER_ERROR)
        for (size_t i = 0; i < p->problem_offset; i++)
            mark.line += r->text[i] == '\n';
    char problem[256];
    snprintf(problem, sizeof(problem), "%s%s%s", p->context ? p->context : "",
        p->context ? ", " : "", p->problem);
    return refuse(r, &mark, problem);
}

static int next_event(struct reading *r, yaml_event_t *ret_event)
{
    return yaml_parser_parse(&r->parser, ret_event) ? 0 : refuse_syntax(r);
}

static void set_position(struct yaml_node *node, const yaml_mark_t *mark)
{
    node->line = (int)mark->line + 1;
    node->column = (int)mark->column + 1;
}

static void add_item(struct yaml_node *parent, struct yaml_node *item)
{
    if ((parent->n_items & (parent->n_items - 1)) == 0) /* full at every power of two */
        parent->items = mem_resize(
            parent->items, parent->n_items ? parent->n_items * 2 : 1, sizeof(*parent->items));
    parent->items[parent->n_items++] = item;
}

static const char *refused_feature(const yaml_event_t *event, int depth)
{
    const char *anchor = NULL, *tag = NULL;
    switch (event->type) {
    case YAML_ALIAS_EVENT:
        return "aliases (*name) are not allowed: write the value out";
    case YAML_SCALAR_EVENT:
        anchor = (const char *)event->data.scalar.anchor;
        tag = (const char *)event->data.scalar.tag;
        if (memchr(event->data.scalar.value, 0, event->data.scalar.length))
            return "a NUL character is not allowed";
        break;
    case YAML_SEQUENCE_START_EVENT:
        anchor = (const char *)event->data.sequence_start.anchor;
        tag = (const char *)event->data.sequence_start.tag;
        break;
    case YAML_MAPPING_START_EVENT:
        anchor = (const char *)event->data.mapping_start.anchor;
        tag = (const char *)event->data.mapping_start.tag;
        break;
    default:
        break;
    }
    if (anchor)
        return "anchors (&name) are not allowed: write the value out";
    if (tag)
        return "tags (!name) are not allowed";
    return depth > YAML_DEPTH_MAX ? "nested too deeply" : NULL;
}

static int read_node(
    struct reading *r, const yaml_event_t *event, int depth, struct yaml_node **ret_node);

static int read_items(struct reading *r, struct yaml_node *sequence, int depth)
{
    for (;;) {
        yaml_event_t event;
        struct yaml_node *item;
        int rc = next_event(r, &event);
        if (rc)
            return rc;
        bool end = event.type == YAML_SEQUENCE_END_EVENT;
        if (!end)
            rc = read_node(r, &event, depth + 1, &item);
        yaml_event_delete(&event);
        if (end || rc)
            return rc;
        add_item(sequence, item);
    }
}

/* Checks an entry's key: a scalar that is not in `keys`, the mapping's earlier keys. */
static int check_key(struct reading *r, const yaml_event_t *key, int depth, struct smap *keys)
{
    if (key->type != YAML_SCALAR_EVENT && key->type != YAML_ALIAS_EVENT)
        return refuse(r, &key->start_mark, "a key must be plain text");
    const char *problem = refused_feature(key, depth);
    if (problem)
        return refuse(r, &key->start_mark, problem);
    const char *text = (const char *)key->data.scalar.value;
    if (*text == 0)
        return refuse(r, &key->start_mark, "a key must not be empty");
    if (str_eq(text, "<<"))
        return refuse(r, &key->start_mark, "merge keys (<<) are not allowed: write the values out");
    if (smap_get(keys, text)) {
        char shown[STR_SHOW_MAX], message[128];
        snprintf(message, sizeof(message), "duplicate key %s", str_show(text, shown));
        return refuse(r, &key->start_mark, message);
    }
    smap_put(keys, text, r);
    return 0;
}

static int read_entry(
    struct reading *r, const yaml_event_t *key, int depth, struct yaml_node **ret_node)
{
    yaml_event_t value;
    int rc = next_event(r, &value);
    if (rc)
        return rc;
    rc = read_node(r, &value, depth, ret_node);
    yaml_event_delete(&value);
    if (rc)
        return rc;
    set_position(*ret_node, &key->start_mark);
    (*ret_node)->key = mem_strdup((const char *)key->data.scalar.value);
    return 0;
}

static int read_entries(struct reading *r, struct yaml_node *mapping, int depth)
{
    struct smap keys = {0};
    int rc;
    for (;;) {
        yaml_event_t key;
        struct yaml_node *item;
        rc = next_event(r, &key);
        if (rc)
            break;
        bool end = key.type == YAML_MAPPING_END_EVENT;
        if (!end)
            rc = check_key(r, &key, depth, &keys);
        if (!end && rc == 0)
            rc = read_entry(r, &key, depth + 1, &item);
        yaml_event_delete(&key);
        if (end || rc)
            break;
        add_item(mapping, item);
    }
    smap_deinit(&keys);
    return rc;
}

static int read_node(
    struct reading *r, const yaml_event_t *event, int depth, struct yaml_node **ret_node)
{
    const char *problem = refused_feature(event, depth);
    if (!problem && r->n_nodes++ == YAML_NODES_MAX)
        problem = "too many values in one file";
    if (problem)
        return refuse(r, &event->start_mark, problem);
    struct yaml_node *node = mem_alloc(sizeof(*node));
    set_position(node, &event->start_mark);
    int rc = 0;
    switch (event->type) {
    case YAML_SEQUENCE_START_EVENT:
        node->type = YAML_SEQUENCE;
        rc = read_items(r, node, depth);
        break;
    case YAML_MAPPING_START_EVENT:
        node->type = YAML_MAPPING;
        rc = read_entries(r, node, depth);
        break;
    default:
        node->type = YAML_SCALAR;
        node->plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
        node->text = mem_strdup((const char *)event->data.scalar.value);
    }
    if (rc)
        yaml_node_free(node);
    else
        *ret_node = node;
    return rc;
}

/* Reads the only document of a stream; *ret_root is NULL if the stream is empty. */
static int read_document(struct reading *r, struct yaml_node **ret_root)
{
    int rc = 0;
    struct yaml_node *root = NULL;
    for (bool end = false; !end && rc == 0;) {
        yaml_event_t event;
        rc = next_event(r, &event);
        if (rc)
            break;
        switch (event.type) {
        case YAML_STREAM_START_EVENT:
        case YAML_DOCUMENT_END_EVENT:
            break;
        case YAML_STREAM_END_EVENT:
            end = true;
            break;
        case YAML_DOCUMENT_START_EVENT:
            if (root)
                rc = refuse(r, &event.start_mark, "a second document (---) is not allowed");
            break;
        default:
            rc = read_node(r, &event, 1, &root);
        }
        yaml_event_delete(&event);
    }
    if (rc)
        yaml_node_free(root);
    else
        *ret_root = root;
    return rc;
}

/* A file with only comments and "---" is an empty mapping. */
static struct yaml_node *or_empty_mapping(struct yaml_node *root)
{
    if (root && !yaml_is_null(root))
        return root;
    yaml_node_free(root);
    struct yaml_node *empty = mem_alloc(sizeof(*empty));
    *empty = (struct yaml_node){.type = YAML_MAPPING, .line = 1, .column = 1};
    return empty;
}

int yaml_parse(
    const char *file, const char *text, size_t n, struct yaml_node **ret_root, struct err *e)
{
    if (n > YAML_BYTES_MAX)
        return err_set(
            e, ERR_INVALID, "%s: %zu bytes exceed the limit of %u", file, n, YAML_BYTES_MAX);
    struct reading r = {.file = file, .text = text, .e = e};
    if (!yaml_parser_initialize(&r.parser))
        mem_out_of_memory();
    yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, n);
    struct yaml_node *root;
    int rc = read_document(&r, &root);
    if (rc == 0)
        *ret_root = or_empty_mapping(root);
    yaml_parser_delete(&r.parser);
    return rc;
}

bool yaml_is_null(const struct yaml_node *node)
{
    return node->type == YAML_SCALAR && node->plain &&
           (str_eq(node->text, "") || str_eq(node->text, "~") || str_eq(node->text, "null"));
}

void yaml_node_free(struct yaml_node *root)
{
    if (!root)
        return;
    for (size_t i = 0; i < root->n_items; i++)
        yaml_node_free(root->items[i]);
    free(root->items);
    free(root->key);
    free(root->text);
    free(root);
}
