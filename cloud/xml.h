/* SPDX-License-Identifier: Apache-2.0
 *
 * XML from outside, parsed by expat: elements and their text. Document types are refused, so the
 * only entities are XML's five and numeric characters. Attributes are skipped and namespaces
 * ignored: elements are found by their local names. Bounded in bytes, depth and elements.
 */
#ifndef BELAY_CLOUD_XML_H
#define BELAY_CLOUD_XML_H

#include "base/buf.h"
#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>

#define XML_BYTES_MAX (64 * 1024 * 1024)
#define XML_DEPTH_MAX 32
#define XML_NODES_MAX 2000000

struct xml_node;

struct xml {
    struct buf texts;       /* names and texts, each terminated by NUL */
    struct xml_node *nodes; /* in document order; the root is the first */
    size_t n, cap;
};

/* Parses exactly n bytes. ERR_INVALID gives the line of the first error; there is nothing to close
 * then. */
int xml_open(struct xml *x, const char *bytes, size_t n, struct err *e);
void xml_close(struct xml *x);

/* Nodes are borrowed until xml_close. */
const struct xml_node *xml_root(const struct xml *x);
const char *xml_name(const struct xml_node *node);
/* The first child element with this name; the next sibling element with the same name. NULL if
 * there is none, or if node is NULL. */
const struct xml_node *xml_child(const struct xml_node *node, const char *name);
const struct xml_node *xml_next(const struct xml_node *node);

/* The text of the child `name`; "" if there is no such child. ERR_INVALID: it contains elements, or
 * more than size - 1 bytes. */
int xml_text(const struct xml_node *node, const char *name, char *dst, size_t size, struct err *e);
/* The same for text that may be cut (never within a character). Elements inside it are ignored. */
void xml_text_cut(const struct xml_node *node, const char *name, char *dst, size_t size);

/* For errors: whether the body is an HTML page instead of XML. */
bool xml_looks_like_html(const char *bytes, size_t n);

#endif
