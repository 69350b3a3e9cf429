/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/base/tools.h"

#include "base/mem.h"
#include "base/yaml.h"
#include <stdio.h>

static const char *const words[] = {"spot", "on-demand", NULL};

static struct yaml_node *parsed(const char *text)
{
    struct err e;
    struct yaml_node *root = NULL;
    if (yaml_parse("f.yaml", text, strlen(text), &root, &e) != 0)
        fail_msg("%s", e.text);
    return root;
}

static void assert_refused(const char *text, size_t n, const char *part)
{
    struct err e = {0};
    struct yaml_node *root = NULL;
    int rc = yaml_parse("f.yaml", text, n, &root, &e);
    if (rc != ERR_INVALID)
        fail_msg("not refused: %s", text);
    assert_err(&e, ERR_INVALID, part);
    assert_null(root);
}

/* ---- documents ---- */

static void unsupported_yaml_is_refused_with_its_line(void **state)
{
    static const struct {
        const char *text, *part;
    } cases[] = {
        {"a: &x 1\n", "f.yaml:1: anchors"},
        {"a: 1\nb: *x\n", "f.yaml:2: aliases"},
        {"a: !!int 1\n", "f.yaml:1: tags"},
        {"a: !!map {}\n", "f.yaml:1: tags"},
        {"a: &x [1]\n", "f.yaml:1: anchors"},
        {"<<: {a: 1}\n", "merge keys"},
        {"a: 1\nb: 2\na: 3\n", "f.yaml:3: duplicate key \"a\""},
        {"[a]: 1\n", "a key must be plain text"},
        {"? {a: 1}\n: 2\n", "a key must be plain text"},
        {"'': 1\n", "must not be empty"},
        {"a: 1\n---\nb: 2\n", "f.yaml:2: a second document"},
        {"a: [1, 2\n", "f.yaml:2: "},
        {"a: 1\n\tb: 2\n", "f.yaml:2: "},
        {"a: \"\\0\"\n", "NUL"},
        {"a: 1\n b: 2\n", "f.yaml:2: "},
        {"x\n\n\xFF: 1\n", "f.yaml:3: "},
    };
    (void)state;
    for (size_t i = 0; i < LEN(cases); i++)
        assert_refused(cases[i].text, strlen(cases[i].text), cases[i].part);
    assert_refused("a: \0b\n", 6, "f.yaml:1: ");
}

static void an_empty_file_is_an_empty_mapping(void **state)
{
    static const char *const texts[] = {
        "", "# only a comment\n", "---\n", "null\n", "~", "---\n...\n"};
    (void)state;
    for (size_t i = 0; i < LEN(texts); i++) {
        struct yaml_node *root = parsed(texts[i]);
        assert_int_equal(root->type, YAML_MAPPING);
        assert_int_equal(root->n_items, 0);
        yaml_node_free(root);
    }
    yaml_node_free(NULL);
}

static void depth_count_and_size_are_limited(void **state)
{
    char deep[64];
    struct buf many = {0};
    (void)state;
    memset(deep, '[', YAML_DEPTH_MAX);
    memset(deep + YAML_DEPTH_MAX, ']', YAML_DEPTH_MAX);
    deep[2 * YAML_DEPTH_MAX] = 0;
    yaml_node_free(parsed(deep));
    memset(deep, '[', YAML_DEPTH_MAX + 1);
    assert_refused(deep, strlen(deep), "nested too deeply");
    buf_adds(&many, "a:\n");
    for (int i = 0; i < YAML_NODES_MAX; i++)
        buf_adds(&many, " - 1\n");
    assert_refused(many.data, many.len, "too many values");
    while (many.len <= YAML_BYTES_MAX)
        buf_adds(&many, "# a comment takes space, too, and so the limit is reached some time\n");
    assert_refused(many.data, many.len, "exceed the limit");
    buf_deinit(&many);
}

static void nodes_have_line_column_and_style(void **state)
{
    struct yaml_node *root = parsed("a: 1\nb:\n  - x\n  - \"null\"\n  - null\nc: |\n  line\n");
    (void)state;
    assert_int_equal(root->n_items, 3);
    const struct yaml_node *b = root->items[1], *c = root->items[2];
    assert_string_equal(b->key, "b");
    assert_int_equal(b->line, 2);
    assert_int_equal(b->n_items, 3);
    assert_int_equal(b->items[1]->line, 4);
    assert_int_equal(b->items[1]->column, 5);
    assert_false(yaml_is_null(b->items[1])); /* quoted */
    assert_true(yaml_is_null(b->items[2]));
    assert_string_equal(c->text, "line\n");
    assert_false(c->plain);
    yaml_node_free(root);
}

/* ---- reading mappings ---- */

static void a_reader_returns_values_or_defaults(void **state)
{
    struct yaml_node *root = parsed("s: 07:00\nn: \"8\"\nt: 10m\nm: 3.56\nw: on-demand\n"
                                    "seq: [1]\nmap: {}\nnone: ~\n");
    struct yaml_reader r;
    struct err e;
    (void)state;
    yaml_reader_init(&r, "f.yaml", root, &e);
    assert_string_equal(yaml_req_str(&r, "s", 5), "07:00");
    assert_int_equal(yaml_opt_i64(&r, "n", 1, 9, 0), 8);
    assert_int_equal(yaml_opt_duration_ms(&r, "t", 0), 600000);
    assert_int_equal(yaml_opt_uusd(&r, "m", 0), 3560000);
    assert_int_equal(yaml_opt_enum(&r, "w", words, 0), 1);
    assert_int_equal(yaml_opt_seq(&r, "seq", 1)->n_items, 1);
    assert_non_null(yaml_opt_map(&r, "map"));
    assert_null(yaml_opt(&r, "none")); /* null counts as absent */
    assert_string_equal(yaml_opt_str(&r, "none", 5, "x"), "x");
    assert_int_equal(yaml_opt_i64(&r, "absent", 1, 9, 77), 77);
    assert_int_equal(yaml_opt_duration_ms(&r, "absent", -1), -1);
    assert_int_equal(yaml_opt_uusd(&r, "absent", -1), -1);
    assert_int_equal(yaml_opt_enum(&r, "absent", words, -1), -1);
    assert_null(yaml_opt_seq(&r, "absent", 1));
    assert_null(yaml_opt_map(&r, "absent"));
    assert_int_equal(yaml_reader_finish(&r), 0);
    yaml_node_free(root);
}

static void ask(struct yaml_reader *r, char what)
{
    switch (what) {
    case 's':
        yaml_req_str(r, "k", 4);
        break;
    case 'i':
        yaml_opt_i64(r, "k", 1, 9, 1);
        break;
    case 't':
        yaml_opt_duration_ms(r, "k", 1);
        break;
    case 'm':
        yaml_opt_uusd(r, "k", 1);
        break;
    case 'e':
        yaml_opt_enum(r, "k", words, 0);
        break;
    case 'q':
        yaml_opt_seq(r, "k", 2);
        break;
    case 'o':
        yaml_opt_map(r, "k");
        break;
    }
}

static void errors_name_line_key_and_what_was_found(void **state)
{
    static const struct {
        const char *text;
        char what;
        const char *error;
    } cases[] = {
        {"\nk: 12345\n", 's', "f.yaml:2: k: 5 bytes long, at most 4 are allowed"},
        {"k: [1]\n", 's', "f.yaml:1: k: expected a text, found a list"},
        {"# none\n", 's', "f.yaml:1: \"k\" is missing"},
        {"other: 1\n", 's', "f.yaml:1: unknown key \"other\""},
        {"a: 1\n", 's', "f.yaml:1: unknown key \"a\"; did you mean \"k\"?"},
        {"k: ten\n", 'i', "f.yaml:1: k: expected an integer in 1 .. 9, found \"ten\""},
        {"k: {}\n", 'i', "f.yaml:1: k: expected an integer, found a mapping"},
        {"k: 10\n", 'i', "f.yaml:1: k: expected an integer in 1 .. 9, found \"10\""},
        {"k: soon\n", 't', "f.yaml:1: k: expected a duration such as"},
        {"k: free\n", 'm', "f.yaml:1: k: expected an amount in dollars"},
        {"k: sopt\n", 'e',
            "f.yaml:1: k: expected one of spot, on-demand (nearest: spot), found \"sopt\""},
        {"k: [1, 2, 3]\n", 'q', "f.yaml:1: k: 3 items, at most 2 are allowed"},
        {"k: 1\n", 'q', "f.yaml:1: k: expected a list, found \"1\""},
        {"k: 1\n", 'o', "f.yaml:1: k: expected a mapping, found \"1\""},
        {"- 1\n", 'i', "f.yaml:1: expected a mapping, found a list"},
        {"\"a\\nb\": 1\n", 'i', "f.yaml:1: unknown key \"a?b\""},
        {"k: 1\nkk: 2\n", 'i', "f.yaml:2: unknown key \"kk\"; did you mean \"k\"?"},
    };
    (void)state;
    for (size_t i = 0; i < LEN(cases); i++) {
        struct yaml_node *root = parsed(cases[i].text);
        struct yaml_reader r;
        struct err e = {0};
        yaml_reader_init(&r, "f.yaml", root, &e);
        ask(&r, cases[i].what);
        assert_int_equal(yaml_reader_finish(&r), ERR_INVALID);
        assert_err(&e, ERR_INVALID, cases[i].error);
        yaml_node_free(root);
    }
}

static void the_first_error_is_kept(void **state)
{
    struct yaml_node *root = parsed("a: x\nb: y\n");
    struct yaml_reader r;
    struct err e;
    (void)state;
    yaml_reader_init(&r, "f.yaml", root, &e);
    assert_int_equal(yaml_opt_i64(&r, "a", 0, 9, 3), 3);
    assert_string_equal(yaml_opt_str(&r, "b", 9, "z"), "z");
    yaml_reader_fail(&r, root->items[1], "something else");
    assert_int_equal(yaml_reader_finish(&r), ERR_INVALID);
    assert_err(&e, ERR_INVALID, "f.yaml:1: a: ");
    yaml_reader_init(&r, "f.yaml", NULL, NULL);
    assert_int_equal(yaml_reader_finish(&r), ERR_INVALID);
    yaml_node_free(root);
}

/* An unknown key is reported although a required one is missing, too. */
static void unknown_keys_are_reported_before_missing_ones(void **state)
{
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"in: {a: 1}\nb: 2\n", "f.yaml:1: in: \"k\" is missing"},
        {"in: {a: 1}\nb: 2\nfoo: 3\n", "f.yaml:3: unknown key \"foo\""},
        {"foo: 3\nin: {a: 1}\n", "f.yaml:1: unknown key \"foo\""},
        {"in: {a: 1, bar: 2}\nfoo: 3\n", "f.yaml:1: unknown key \"bar\""},
        {"foo: 3\nin: {k: v, a: x}\n", "f.yaml:2: a: expected an integer"}, /* not missing */
    };
    (void)state;
    for (size_t i = 0; i < LEN(cases); i++) {
        struct yaml_node *root = parsed(cases[i].text);
        struct yaml_reader r, in;
        struct err e = {0};
        yaml_reader_init(&r, "f.yaml", root, &e);
        yaml_reader_init(&in, "f.yaml", yaml_opt_map(&r, "in"), &e);
        yaml_req_str(&in, "k", 4);
        yaml_opt_i64(&in, "a", 1, 9, 1);
        yaml_reader_finish_in(&r, &in);
        yaml_opt_i64(&r, "b", 1, 9, 1);
        assert_int_equal(yaml_reader_finish(&r), ERR_INVALID);
        assert_err(&e, ERR_INVALID, cases[i].error);
        yaml_node_free(root);
    }
}

/* Independent of the number of reads. */
static void a_key_read_repeatedly_counts_once(void **state)
{
    struct yaml_node *root = parsed("k: 1\n");
    struct yaml_reader r;
    struct err e;
    (void)state;
    yaml_reader_init(&r, "f.yaml", root, &e);
    for (int i = 0; i < 3 * YAML_READER_KEYS_MAX; i++)
        assert_int_equal(yaml_opt_i64(&r, "k", 1, 9, 2), 1);
    assert_int_equal(yaml_reader_finish(&r), 0);
    yaml_node_free(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unsupported_yaml_is_refused_with_its_line),
        cmocka_unit_test(an_empty_file_is_an_empty_mapping),
        cmocka_unit_test(depth_count_and_size_are_limited),
        cmocka_unit_test(nodes_have_line_column_and_style),
        cmocka_unit_test(a_reader_returns_values_or_defaults),
        cmocka_unit_test(errors_name_line_key_and_what_was_found),
        cmocka_unit_test(the_first_error_is_kept),
        cmocka_unit_test(unknown_keys_are_reported_before_missing_ones),
        cmocka_unit_test(a_key_read_repeatedly_counts_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
