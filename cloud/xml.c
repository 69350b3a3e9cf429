/* SPDX-License-Identifier: Apache-2.0
 *
 * See xml.h.
 */
#include "cloud/xml.h"
#include "base/str.h"
#include <string.h>

#define PARSE_OPTIONS (XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING | XML_PARSE_NOBLANKS)

static int set_parse_error(const xmlParserCtxt *parser, const char *bytes, size_t n, struct err *e)
{
    char why[160] = "";
    STR_COPY(why, parser->lastError.message);
    why[strcspn(why, "\r\n")] = '\0';
    if (xml_looks_like_html(bytes, n))
        return err_set(e, ERR_INVALID, "expected XML, found an HTML page of %zu bytes", n);
    return err_set(e, ERR_INVALID, "expected XML, found %zu bytes that are none from line %d on: %s", n,
        parser->lastError.line, why);
}

int xml_open(struct xml *x, const char *bytes, size_t n, struct err *e)
{
    if (n == 0)
        return err_set(e, ERR_INVALID, "expected XML, found nothing");
    if (n > XML_BYTES_MAX)
        return err_set(e, ERR_INVALID, "XML of %zu bytes; at most %d are read", n, XML_BYTES_MAX);
    if (memmem(bytes, n, "<!DOCTYPE", strlen("<!DOCTYPE")) && !xml_looks_like_html(bytes, n))
        return err_set(e, ERR_INVALID, "expected plain XML, found a document type declaration");
    xmlParserCtxt *parser = xmlNewParserCtxt();
    xmlDoc *doc = xmlCtxtReadMemory(parser, bytes, (int)n, NULL, "UTF-8", PARSE_OPTIONS);
    if (!doc || !xmlDocGetRootElement(doc) || doc->intSubset) {
        int rc = set_parse_error(parser, bytes, n, e);
        xmlFreeDoc(doc);
        xmlFreeParserCtxt(parser);
        return rc;
    }
    *x = (struct xml){.parser = parser, .doc = doc};
    return 0;
}

void xml_close(struct xml *x)
{
    xmlFreeDoc(x->doc);
    xmlFreeParserCtxt(x->parser);
    *x = (struct xml){0};
}

const xmlNode *xml_root(const struct xml *x)
{
    return xmlDocGetRootElement(x->doc);
}

const char *xml_name(const xmlNode *node)
{
    return (const char *)node->name;
}

static const xmlNode *find(const xmlNode *node, const char *name)
{
    while (node && (node->type != XML_ELEMENT_NODE || strcmp(xml_name(node), name) != 0))
        node = node->next;
    return node;
}

const xmlNode *xml_child(const xmlNode *node, const char *name)
{
    return node ? find(node->children, name) : NULL;
}

const xmlNode *xml_next(const xmlNode *node)
{
    return find(node->next, xml_name(node));
}

/* Appends the child's text to dst as far as it fits; false if it did not, or if there is more than text. */
static bool copy_text(const xmlNode *node, const char *name, char *dst, size_t size)
{
    const xmlNode *child = xml_child(node, name);
    size_t used = 0;
    bool whole = true;
    dst[0] = '\0';
    for (const xmlNode *part = child ? child->children : NULL; part; part = part->next) {
        if (part->type == XML_COMMENT_NODE)
            continue;
        if (part->type == XML_TEXT_NODE || part->type == XML_CDATA_SECTION_NODE) {
            whole = str_copy(dst + used, size - used, (const char *)part->content) && whole;
            used += strlen(dst + used);
        } else {
            whole = false;
        }
    }
    return whole;
}

int xml_text(const xmlNode *node, const char *name, char *dst, size_t size, struct err *e)
{
    if (copy_text(node, name, dst, size))
        return 0;
    return err_set(e, ERR_INVALID, "<%s>: expected text of at most %zu bytes", name, size - 1);
}

void xml_text_cut(const xmlNode *node, const char *name, char *dst, size_t size)
{
    copy_text(node, name, dst, size);
    size_t n = strlen(dst);
    while (n > 0 && !str_is_utf8(dst, n))
        dst[--n] = '\0';
}

bool xml_looks_like_html(const char *bytes, size_t n)
{
    size_t head = n > 512 ? 512 : n;
    for (size_t i = 0; i + 5 <= head; i++)
        if (bytes[i] == '<' && (strncasecmp(bytes + i, "<html", 5) == 0 ||
                                   (i + 14 <= head && strncasecmp(bytes + i, "<!doctype html", 14) == 0)))
            return true;
    return false;
}
