/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/base/tools.h"

#include "base/yaml.h"
#include "base/yaml_print.h"
#include <stdlib.h>
#include <string.h>

static char *printed(const char *json)
{
    char *text;
    size_t n;
    json_t *v = json_loads(json, JSON_DECODE_ANY, NULL);
    assert_non_null(v);
    FILE *f = open_memstream(&text, &n);
    yaml_print(v, f);
    fclose(f);
    json_decref(v);
    return text;
}

static void check(const char *json, const char *yaml)
{
    char *text = printed(json);
    assert_string_equal(text, yaml);
    free(text);
}

static void values_are_printed_in_blocks(void **state)
{
    (void)state;
    check("{\"jobs\": [{\"id\": 7, \"name\": \"train\", \"url\": null, \"held\": true}], \"free\": "
          "{}, \"none\": [], \"part\": 0.5}",
        "jobs:\n- id: 7\n  name: train\n  url: null\n  held: true\nfree: {}\nnone: []\npart: "
        "0.5\n");
}

static void texts_that_look_like_other_types_are_quoted(void **state)
{
    (void)state;
    check("[\"7\", \"1e3\", \"no\", \"Null\", \"\", \"~\", \"0x10\"]",
        "- \"7\"\n- \"1e3\"\n- \"no\"\n- \"Null\"\n- \"\"\n- \"~\"\n- \"0x10\"\n");
    check("{\"yes\": \"07:00\"}", "\"yes\": \"07:00\"\n");
}

/* What is printed is read back as the same texts, whatever is in them. */
static void texts_survive(void **state)
{
    static const char *const texts[] = {"a: b", "- x", "# no comment", "two\\nlines\\n", " blanks ",
        "\\u001b[31mred", "caf\\u00e9", "\\\"quoted\\\"", "it's", "{[", "&anchor", "*alias", "!tag",
        "%percent", "@at", "`tick", "|", ">", "?", ": ", "a#b", "\\t"};
    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        char json[128];
        struct yaml_node *root;
        struct err e;
        snprintf(json, sizeof(json), "{\"text\": \"%s\"}", texts[i]);
        char *text = printed(json);
        json_t *v = json_loads(json, 0, NULL);
        assert_int_equal(yaml_parse("printed", text, strlen(text), &root, &e), 0);
        assert_string_equal(root->items[0]->text, json_string_value(json_object_get(v, "text")));
        assert_null(strchr(text, '\033'));
        yaml_node_free(root);
        json_decref(v);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_printed_in_blocks),
        cmocka_unit_test(texts_that_look_like_other_types_are_quoted),
        cmocka_unit_test(texts_survive),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
