/* SPDX-License-Identifier: Apache-2.0
 *
 * See xml.h. One pass over a copy of the document: names and texts are ended by a NUL where they stand, and text is
 * moved down over the references that it replaces, which are never shorter than what they stand for. All text of an
 * element is one string, without that of its children.
 *
 * Deliberately not here: whether names are made of the right letters, whether attributes are unique; nothing that is
 * read depends on it.
 */
#include "cloud/xml.h"
#include "base/mem.h"
#include "base/str.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct xml_node {
    const char *name; /* without its prefix */
    char *text;       /* where its text is collected */
    size_t text_len;
    unsigned n_below; /* all elements in it; what comes next is behind them */
    bool is_last;     /* of its siblings */
    bool has_children;
};

struct reader {
    struct xml *x;
    char *at, *end;
    size_t open[XML_DEPTH_MAX];     /* indices of the elements that are open */
    size_t last[XML_DEPTH_MAX + 1]; /* of the last one that was closed at a depth */
    const char *names[XML_DEPTH_MAX];
    size_t name_lens[XML_DEPTH_MAX]; /* with the prefix, as the end tag has it */
    unsigned depth;
    const char *why;
};

static bool fail(struct reader *r, const char *why)
{
    r->why = why;
    return false;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static bool starts(const struct reader *r, const char *text)
{
    size_t n = strlen(text);
    return (size_t)(r->end - r->at) >= n && memcmp(r->at, text, n) == 0;
}

/* Behind the next `text`; false if there is none. */
static bool skip_past(struct reader *r, const char *text)
{
    size_t n = strlen(text);
    char *found = memmem(r->at, (size_t)(r->end - r->at), text, n);
    if (!found)
        return fail(r, "something does not end");
    r->at = found + n;
    return true;
}

/* ---- Text ---- */

static struct xml_node *innermost(struct reader *r)
{
    return r->depth > 0 ? &r->x->nodes[r->open[r->depth - 1]] : NULL;
}

/* What is added lies behind what is there, or where it is to be. */
static void add_text(struct reader *r, const char *p, size_t n)
{
    struct xml_node *node = innermost(r);
    if (!node->text)
        node->text = (char *)p;
    memmove(node->text + node->text_len, p, n);
    node->text_len += n;
}

/* "&amp;", "&#38;", "&#x26;" at r->at. */
static size_t decode(const char *ref, size_t n, char out[4])
{
    static const struct {
        const char *name;
        char c;
    } names[] = {{"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strlen(names[i].name) == n && memcmp(names[i].name, ref, n) == 0) {
            out[0] = names[i].c;
            return 1;
        }
    uint32_t c = 0;
    bool is_hex = n > 2 && ref[1] == 'x';
    if (n < 2 || n > 9 || ref[0] != '#')
        return 0;
    for (size_t i = is_hex ? 2 : 1; i < n; i++) {
        const char *digit = ref[i] ? memchr("0123456789abcdef", ref[i] | 0x20, is_hex ? 16 : 0) : NULL;
        if (ref[i] >= '0' && ref[i] <= '9')
            c = c * (is_hex ? 16 : 10) + (uint32_t)(ref[i] - '0');
        else if (digit)
            c = c * 16 + (uint32_t)((ref[i] | 0x20) - 'a' + 10);
        else
            return 0;
        if (c > 0x10ffff)
            return 0;
    }
    if ((c < 0x20 && c != '\t' && c != '\n' && c != '\r') || (c >= 0xd800 && c < 0xe000) || c == 0xfffe ||
        c == 0xffff)
        return 0;
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xc0 | c >> 6), out[1] = (char)(0x80 | (c & 63));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (char)(0xe0 | c >> 12), out[1] = (char)(0x80 | (c >> 6 & 63)),
        out[2] = (char)(0x80 | (c & 63));
        return 3;
    }
    out[0] = (char)(0xf0 | c >> 18), out[1] = (char)(0x80 | (c >> 12 & 63)),
    out[2] = (char)(0x80 | (c >> 6 & 63)), out[3] = (char)(0x80 | (c & 63));
    return 4;
}

/* Text up to the next '<'. Outside of the root only blanks are allowed. What stands between children is dropped. */
static bool read_text(struct reader *r)
{
    struct xml_node *node = innermost(r);
    while (r->at < r->end && *r->at != '<') {
        char *ref = memchr(r->at, '&', (size_t)(r->end - r->at));
        char *tag = memchr(r->at, '<', (size_t)(r->end - r->at));
        char *stop = tag ? tag : r->end;
        char bytes[4];
        if (!node && !is_blank(*r->at))
            return fail(r, "text outside of the root element");
        if (!node) {
            r->at++;
            continue;
        }
        if (ref && ref < stop)
            stop = ref;
        if (!node->has_children)
            add_text(r, r->at, (size_t)(stop - r->at));
        r->at = stop;
        if (stop != ref)
            continue;
        char *semicolon = memchr(ref, ';', (size_t)(r->end - ref));
        size_t n = semicolon ? decode(ref + 1, (size_t)(semicolon - ref - 1), bytes) : 0;
        if (n == 0)
            return fail(r, "a reference that is not known");
        if (!node->has_children) {
            memcpy(ref, bytes, n);
            add_text(r, ref, n);
        }
        r->at = semicolon + 1;
    }
    return true;
}

static bool read_cdata(struct reader *r)
{
    struct xml_node *node = innermost(r);
    char *begin = r->at + strlen("<![CDATA[");
    if (!node)
        return fail(r, "text outside of the root element");
    if (!skip_past(r, "]]>"))
        return false;
    if (!node->has_children)
        add_text(r, begin, (size_t)(r->at - strlen("]]>") - begin));
    return true;
}

/* ---- Tags ---- */

static size_t name_len(const struct reader *r)
{
    size_t n = 0;
    while (r->at + n < r->end && !is_blank(r->at[n]) && !strchr("<>/=\"'&!?", r->at[n]))
        n++;
    return n;
}

/* Attributes, up to and with the '>'. */
static bool skip_attributes(struct reader *r, bool *ret_is_empty)
{
    *ret_is_empty = false;
    while (r->at < r->end && *r->at != '>') {
        char c = *r->at++;
        if (c == '<')
            return fail(r, "a '<' in a tag");
        if (c == '"' || c == '\'') {
            char *close = memchr(r->at, c, (size_t)(r->end - r->at));
            if (!close || memchr(r->at, '<', (size_t)(close - r->at)))
                return fail(r, "an attribute that does not end");
            r->at = close + 1;
        }
        *ret_is_empty = c == '/' && r->at < r->end && *r->at == '>';
    }
    if (r->at == r->end)
        return fail(r, "a tag that does not end");
    r->at++;
    return true;
}

static void close_element(struct reader *r)
{
    struct xml_node *node = innermost(r);
    node->n_below = (unsigned)(r->x->n - r->open[r->depth - 1] - 1);
    if (node->text)
        node->text[node->text_len] = '\0'; /* at or before the '<' of the end tag, which was read */
    if (node->n_below > 0)
        r->x->nodes[r->last[r->depth]].is_last = true;
    r->depth--;
    r->last[r->depth] = r->open[r->depth];
}

static struct xml_node *add_node(struct reader *r)
{
    struct xml *x = r->x;
    if (x->n == x->cap) {
        x->cap = x->cap ? 2 * x->cap : 64;
        x->nodes = mem_resize(x->nodes, x->cap, sizeof(*x->nodes));
    }
    struct xml_node *node = &x->nodes[x->n++];
    *node = (struct xml_node){0};
    return node;
}

static bool read_start(struct reader *r)
{
    struct xml_node *parent = innermost(r);
    size_t n;
    bool is_empty;
    r->at++;
    n = name_len(r);
    if (n == 0)
        return fail(r, "a '<' that begins no tag");
    if (!parent && r->x->n > 0)
        return fail(r, "a second root element");
    if (r->depth == XML_DEPTH_MAX || r->x->n == XML_NODES_MAX)
        return fail(r, "too many elements, or too deep");
    if (parent)
        parent->has_children = true;
    char *name = r->at, *colon = memchr(name, ':', n);
    struct xml_node *node = add_node(r);
    node->name = colon ? colon + 1 : name;
    r->open[r->depth] = r->x->n - 1;
    r->names[r->depth] = name;
    r->name_lens[r->depth] = n;
    r->depth++;
    r->at += n;
    if (!skip_attributes(r, &is_empty))
        return false;
    if (is_empty)
        close_element(r);
    name[n] = '\0'; /* what stood there was read */
    return true;
}

static bool read_end(struct reader *r)
{
    r->at += 2;
    size_t n = name_len(r);
    if (r->depth == 0 || n != r->name_lens[r->depth - 1] || memcmp(r->at, r->names[r->depth - 1], n) != 0)
        return fail(r, "an end tag that fits no start tag");
    r->at += n;
    while (r->at < r->end && is_blank(*r->at))
        r->at++;
    if (r->at == r->end || *r->at != '>')
        return fail(r, "a tag that does not end");
    r->at++;
    close_element(r);
    return true;
}

static bool read_one(struct reader *r)
{
    if (*r->at != '<')
        return read_text(r);
    if (starts(r, "</"))
        return read_end(r);
    if (starts(r, "<!--"))
        return skip_past(r, "-->");
    if (starts(r, "<![CDATA["))
        return read_cdata(r);
    if (starts(r, "<?"))
        return skip_past(r, "?>");
    if (starts(r, "<!"))
        return fail(r, "a declaration");
    return read_start(r);
}

/* ---- The whole ---- */

static int count_lines(const char *from, const char *to)
{
    int n = 1;
    while (from < to && (from = memchr(from, '\n', (size_t)(to - from))))
        n++, from++;
    return n;
}

static int set_parse_error(const struct reader *r, const char *bytes, size_t n, struct err *e)
{
    if (xml_looks_like_html(bytes, n))
        return err_set(e, ERR_INVALID, "expected XML, found an HTML page of %zu bytes", n);
    return err_set(e, ERR_INVALID, "expected XML, found %zu bytes that are none from line %d on: %s", n,
        count_lines(bytes, bytes + (r->at - r->x->text)), r->why);
}

int xml_open(struct xml *x, const char *bytes, size_t n, struct err *e)
{
    struct xml read = {0};
    struct reader r = {.x = &read};
    if (n == 0)
        return err_set(e, ERR_INVALID, "expected XML, found nothing");
    if (n > XML_BYTES_MAX)
        return err_set(e, ERR_INVALID, "XML of %zu bytes; at most %d are read", n, XML_BYTES_MAX);
    if (memmem(bytes, n, "<!DOCTYPE", strlen("<!DOCTYPE")) && !xml_looks_like_html(bytes, n))
        return err_set(e, ERR_INVALID, "expected plain XML, found a document type declaration");
    read.text = mem_alloc(n + 1);
    memcpy(read.text, bytes, n);
    r.at = read.text;
    r.end = read.text + n;
    bool is_good =
        str_is_utf8(bytes, n) && !memchr(bytes, '\0', n) ? true : fail(&r, "bytes that are no text");
    if (is_good && starts(&r, "\xef\xbb\xbf"))
        r.at += 3;
    while (is_good && r.at < r.end)
        is_good = read_one(&r);
    if (is_good && (r.depth > 0 || read.n == 0))
        is_good = fail(&r, "it ends too early");
    if (is_good) {
        read.nodes[0].is_last = true;
        *x = read;
        return 0;
    }
    int rc = set_parse_error(&r, bytes, n, e);
    xml_close(&read);
    return rc;
}

void xml_close(struct xml *x)
{
    free(x->nodes);
    free(x->text);
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

/* Copies the child's text as far as it fits; false if it did not, or if there is more than text. */
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
        if (bytes[i] == '<' && (strncasecmp(bytes + i, "<html", 5) == 0 ||
                                   (i + 14 <= head && strncasecmp(bytes + i, "<!doctype html", 14) == 0)))
            return true;
    return false;
}
