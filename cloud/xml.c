/* SPDX-License-Identifier: Apache-2.0
 *
 * See xml.h. expat's events become an array of nodes in document order, whose names and texts share
 * one buffer. All text of an element before its first child is one string; text between children is
 * dropped.
 *
 * Why expat: with a store in S3 the agent reads XML, and libxml2 depends on ICU's data, which
 * doubles the bundle that every new machine fetches.
 */
#include "cloud/xml.h"
#include "base/mem.h"
#include "base/str.h"
#include <expat.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct xml_node {
    const char *name, *text; /* set at the end: until then the buffer moves */
    size_t name_at, text_at; /* their offsets in it; the name is without its prefix */
    unsigned n_below;        /* number of descendants; the next sibling follows them */
    bool is_last;            /* among its siblings */
    bool has_children;
};

struct reader {
    XML_Parser parser;
    struct xml *x;
    size_t open[XML_DEPTH_MAX];     /* indices of the open elements */
    size_t last[XML_DEPTH_MAX + 1]; /* index of the last closed element at each depth */
    unsigned depth;
    const char *why; /* why parsing was stopped by us; NULL if it was not */
};

static void stop(struct reader *r, const char *why)
{
    r->why = why;
    XML_StopParser(r->parser, XML_FALSE);
}

static struct xml_node *innermost(struct reader *r)
{
    return r->depth > 0 ? &r->x->nodes[r->open[r->depth - 1]] : NULL;
}

static struct xml_node *add_node(struct xml *x)
{
    if (x->n == x->cap) {
        x->cap = x->cap ? 2 * x->cap : 64;
        x->nodes = mem_resize(x->nodes, x->cap, sizeof(*x->nodes));
    }
    struct xml_node *node = &x->nodes[x->n++];
    *node = (struct xml_node){0};
    return node;
}

/* Texts are adjacent, so the text of an element ends where another begins. */
static void end_text(struct reader *r, const struct xml_node *node)
{
    if (!node->has_children)
        buf_add(&r->x->texts, "", 1);
}

static void on_start(void *ctx, const char *name, const char **attributes)
{
    struct reader *r = ctx;
    struct xml *x = r->x;
    struct xml_node *parent = innermost(r);
    (void)attributes;
    if (r->depth == XML_DEPTH_MAX || x->n == XML_NODES_MAX) {
        stop(r, "too many elements, or too deep");
        return;
    }
    if (parent) {
        end_text(r, parent);
        parent->has_children = true;
    }
    const char *colon = strchr(name, ':');
    struct xml_node *node = add_node(x);
    node->name_at = x->texts.len;
    buf_add(&x->texts, colon ? colon + 1 : name, strlen(colon ? colon + 1 : name) + 1);
    node->text_at = x->texts.len;
    r->open[r->depth++] = x->n - 1;
}

static void on_end(void *ctx, const char *name)
{
    struct reader *r = ctx;
    struct xml_node *node = innermost(r);
    (void)name;
    end_text(r, node);
    node->n_below = (unsigned)(r->x->n - r->open[r->depth - 1] - 1);
    if (node->n_below > 0)
        r->x->nodes[r->last[r->depth]].is_last = true;
    r->depth--;
    r->last[r->depth] = r->open[r->depth];
}

static void on_text(void *ctx, const char *p, int n)
{
    struct reader *r = ctx;
    if (!innermost(r)->has_children)
        buf_add(&r->x->texts, p, (size_t)n);
}

static void on_doctype(
    void *ctx, const char *name, const char *system, const char *public, int has_subset)
{
    (void)name, (void)system, (void)public, (void)has_subset;
    stop(ctx, "a document type declaration");
}

static int set_parse_error(const struct reader *r, const char *bytes, size_t n, struct err *e)
{
    if (xml_looks_like_html(bytes, n))
        return err_set(e, ERR_INVALID, "expected XML, found an HTML page of %zu bytes", n);
    return err_set(e, ERR_INVALID, "expected XML, found %zu bytes with an error in line %lu: %s", n,
        (unsigned long)XML_GetCurrentLineNumber(r->parser),
        r->why ? r->why : XML_ErrorString(XML_GetErrorCode(r->parser)));
}

int xml_open(struct xml *x, const char *bytes, size_t n, struct err *e)
{
    if (n == 0)
        return err_set(e, ERR_INVALID, "expected XML, found nothing");
    if (n > XML_BYTES_MAX)
        return err_set(e, ERR_INVALID, "XML of %zu bytes; at most %d are read", n, XML_BYTES_MAX);
    struct reader r = {.parser = XML_ParserCreate("UTF-8"), .x = x};
    if (!r.parser)
        abort(); /* out of memory */
    *x = (struct xml){0};
    XML_SetUserData(r.parser, &r);
    XML_SetElementHandler(r.parser, on_start, on_end);
    XML_SetCharacterDataHandler(r.parser, on_text);
    XML_SetStartDoctypeDeclHandler(r.parser, on_doctype);
    int rc = 0;
    if (XML_Parse(r.parser, bytes, (int)n, XML_TRUE) != XML_STATUS_OK) {
        rc = set_parse_error(&r, bytes, n, e);
        xml_close(x);
    } else {
        x->nodes[0].is_last = true;
        for (size_t i = 0; i < x->n; i++) {
            x->nodes[i].name = x->texts.data + x->nodes[i].name_at;
            x->nodes[i].text = x->texts.data + x->nodes[i].text_at;
        }
    }
    XML_ParserFree(r.parser);
    return rc;
}

void xml_close(struct xml *x)
{
    free(x->nodes);
    buf_deinit(&x->texts);
    *x = (struct xml){0};
}

const struct xml_node *xml_root(const struct xml *x)
{
    return x->nodes;
}

const char *xml_name(const struct xml_node *node)
{
    return node->name;
}

const struct xml_node *xml_child(const struct xml_node *node, const char *name)
{
    if (!node)
        return NULL;
    const struct xml_node *end = node + 1 + node->n_below;
    for (const struct xml_node *child = node + 1; child < end; child += 1 + child->n_below)
        if (str_eq(child->name, name))
            return child;
    return NULL;
}

const struct xml_node *xml_next(const struct xml_node *node)
{
    const char *name = node->name;
    while (!node->is_last) {
        node += 1 + node->n_below;
        if (str_eq(node->name, name))
            return node;
    }
    return NULL;
}

/* Copies the child's text as far as it fits; false if it did not fit, or if the child contains
 * elements. */
static bool copy_text(const struct xml_node *node, const char *name, char *dst, size_t size)
{
    const struct xml_node *child = xml_child(node, name);
    bool is_whole = str_copy(dst, size, child && !child->has_children ? child->text : NULL);
    return is_whole && !(child && child->has_children);
}

int xml_text(const struct xml_node *node, const char *name, char *dst, size_t size, struct err *e)
{
    if (copy_text(node, name, dst, size))
        return 0;
    return err_set(e, ERR_INVALID, "<%s>: expected text of at most %zu bytes", name, size - 1);
}

void xml_text_cut(const struct xml_node *node, const char *name, char *dst, size_t size)
{
    copy_text(node, name, dst, size);
}

bool xml_looks_like_html(const char *bytes, size_t n)
{
    size_t head = n > 512 ? 512 : n;
    for (size_t i = 0; i + 5 <= head; i++)
        if (bytes[i] == '<' &&
            (strncasecmp(bytes + i, "<html", 5) == 0 ||
                (i + 14 <= head && strncasecmp(bytes + i, "<!doctype html", 14) == 0)))
            return true;
    return false;
}
