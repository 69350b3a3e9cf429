/* SPDX-License-Identifier: Apache-2.0
 *
 * XML from outside, read with libxml2: no network, no document types, no entities but the five of XML,
 * libxml2's own limits on depth and sizes. Namespaces are ignored: elements are found by their local names.
 */
#ifndef BELAY_CLOUD_XML_H
#define BELAY_CLOUD_XML_H

#include "base/err.h"
#include <libxml/parser.h>
#include <stddef.h>

#define XML_BYTES_MAX (64 * 1024 * 1024)

struct xml {
    xmlParserCtxt *parser;
    xmlDoc *doc;
};

/* Parses exactly n bytes. ERR_INVALID says in which line it stops being XML; nothing is to be closed then. */
int xml_open(struct xml *x, const char *bytes, size_t n, struct err *e);
void xml_close(struct xml *x);

/* Nodes are borrowed until xml_close. */
const xmlNode *xml_root(const struct xml *x);
const char *xml_name(const xmlNode *node);
/* The first child element with this name, the next sibling element with the same name; NULL if there is none,
 * or if node is NULL. */
const xmlNode *xml_child(const xmlNode *node, const char *name);
const xmlNode *xml_next(const xmlNode *node);

/* The text of the child `name`; "" if there is no such child. ERR_INVALID: it holds elements, or more than
 * size - 1 bytes. */
int xml_text(const xmlNode *node, const char *name, char *dst, size_t size, struct err *e);
/* The same for text that may be cut (never within a character). Elements in it are left out. */
void xml_text_cut(const xmlNode *node, const char *name, char *dst, size_t size);

/* For errors: what came instead of XML. */
bool xml_looks_like_html(const char *bytes, size_t n);

#endif
