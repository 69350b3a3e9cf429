/* SPDX-License-Identifier: Apache-2.0 */
#include "cloud/xml.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* after the four above */
#include <cmocka.h>

static void elements_are_found_by_their_local_names(void **state)
{
    static const char text[] =
        "\xef\xbb\xbf<?xml version='1.0'?>\n<!-- <a> -->\n<p:r xmlns:p='u' x=\"a>b\">\n"
        " <a>1 &lt;&amp;&#65;&#x20ac; 2</a><a><![CDATA[<x>&amp;]]>z<!-- c -->y</a><q:b/>"
        "<c>t<d>u</d>v</c><e></e></p:r>\n<!-- end -->";
    struct xml x;
    struct err e;
    char out[64];
    (void)state;
    assert_int_equal(xml_open(&x, text, strlen(text), &e), 0);
    const struct xml_node *root = xml_root(&x);
    assert_string_equal(xml_name(root), "r");
    assert_null(xml_next(root));
    assert_int_equal(xml_text(root, "a", out, sizeof(out), &e), 0);
    assert_string_equal(out, "1 <&A\xe2\x82\xac 2");
    assert_int_equal(xml_text(root, "a", out, 6, &e), ERR_INVALID);
    xml_text_cut(root, "a", out, 8); /* inside a character */
    assert_string_equal(out, "1 <&A");
    const struct xml_node *a = xml_next(xml_child(root, "a"));
    assert_non_null(a);
    assert_null(xml_next(a));
    assert_non_null(xml_child(root, "b"));
    assert_null(xml_child(root, "d"));
    assert_null(xml_child(NULL, "d"));
    assert_int_equal(xml_text(root, "b", out, sizeof(out), &e), 0);
    assert_string_equal(out, "");
    assert_int_equal(xml_text(root, "none", out, sizeof(out), &e), 0);
    assert_int_equal(xml_text(root, "c", out, sizeof(out), &e), ERR_INVALID);
    assert_int_equal(xml_text(xml_child(root, "c"), "d", out, sizeof(out), &e), 0);
    assert_string_equal(out, "u");
    xml_close(&x);
    static const char joined[] = "<r><a>b<![CDATA[c]]>d<!-- -->e&#10;</a></r>";
    assert_int_equal(xml_open(&x, joined, strlen(joined), &e), 0);
    assert_int_equal(xml_text(xml_root(&x), "a", out, sizeof(out), &e), 0);
    assert_string_equal(out, "bcde\n");
    xml_close(&x);
}

static void what_is_no_xml_is_refused_with_its_line(void **state)
{
    static const struct {
        const char *text, *says;
    } cases[] = {{"", "found nothing"}, {"x", "line 1"}, {" ", "no element found"},
        {"<a>\n", "line 2"}, {"<a></b>", "mismatched tag"}, {"<a/><b/>", "junk"},
        {"<a>&x;</a>", "undefined entity"}, {"<a>&lt</a>", "not well-formed"},
        {"<a>&#0;</a>", "character number"}, {"<a>&#xd800;</a>", "character number"},
        {"<a>&#x110000;</a>", "character number"}, {"<a b='<'/>", "not well-formed"},
        {"<a b='", "unclosed"}, {"<a", "unclosed"}, {"</a>", "not well-formed"}, {"<a/>x", "junk"},
        {"<a>\xff</a>", "not well-formed"}, {"<a><![CDATA[x</a>", "unclosed"},
        {"<a><!-- </a>", "unclosed"}, {"<!DOCTYPE a [<!ENTITY x 'y'>]><a>&x;</a>", "document type"},
        {"<a><!ELEMENT b></a>", "not well-formed"}, {"<!doctype html><html>", "HTML"},
        {"<html><body>502</html>", "HTML"}, {"<a>< b></a>", "not well-formed"}};
    struct xml x;
    struct err e;
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (xml_open(&x, cases[i].text, strlen(cases[i].text), &e) != ERR_INVALID ||
            !strstr(e.text, cases[i].says))
            fail_msg("%s: %s", cases[i].text, e.text);
    }
    assert_int_equal(xml_open(&x, "<a>\0</a>", 8, &e), ERR_INVALID);
}

static void depth_is_bounded(void **state)
{
    struct buf text = {0};
    struct xml x;
    struct err e;
    (void)state;
    for (int depth = XML_DEPTH_MAX; depth <= XML_DEPTH_MAX + 1; depth++) {
        buf_clear(&text);
        for (int i = 0; i < depth; i++)
            buf_adds(&text, "<a>");
        for (int i = 0; i < depth; i++)
            buf_adds(&text, "</a>");
        assert_int_equal(
            xml_open(&x, buf_str(&text), text.len, &e), depth > XML_DEPTH_MAX ? ERR_INVALID : 0);
        if (depth <= XML_DEPTH_MAX)
            xml_close(&x);
    }
    buf_deinit(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements_are_found_by_their_local_names),
        cmocka_unit_test(what_is_no_xml_is_refused_with_its_line),
        cmocka_unit_test(depth_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
