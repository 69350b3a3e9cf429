/* SPDX-License-Identifier: Apache-2.0
 *
 * YAML: a tree within its limits, or an error that names the file and an existing line.
 */
#include "base/str.h"
#include "base/yaml.h"
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_tree(const struct yaml_node *n, int lines, int depth)
{
    assert(depth <= YAML_DEPTH_MAX + 1);
    assert(n->line >= 1 && n->line <= lines && n->column >= 1);
    assert((n->type == YAML_SCALAR) == (n->text != NULL));
    for (size_t i = 0; i < n->n_items; i++) {
        assert((n->type == YAML_MAPPING) == (n->items[i]->key != NULL));
        check_tree(n->items[i], lines, depth + 1);
    }
}

static void check_error(const struct err *e, int lines)
{
    int64_t line;
    char text[sizeof(e->text)];
    assert(e->kind == ERR_INVALID && str_starts(e->text, "f:"));
    STR_COPY(text, e->text + 2);
    text[strspn(text, "0123456789")] = 0;
    int rc = str_to_i64(text, 1, lines, "line", &line, NULL);
    assert(rc == 0);
}

static void read_mapping(const struct yaml_node *root, int lines)
{
    static const char *const names[] = {"spot", "on-demand", NULL};
    struct yaml_reader r;
    struct err e = {0};
    yaml_reader_init(&r, "f", root, &e);
    int64_t n = yaml_opt_i64(&r, "n", 1, 100, 7);
    const char *s = yaml_opt_str(&r, "s", 8, "");
    int64_t ms = yaml_opt_duration_ms(&r, "t", 1);
    int64_t uusd = yaml_opt_uusd(&r, "m", 1);
    int w = yaml_opt_enum(&r, "w", names, 0);
    const struct yaml_node *a = yaml_opt_seq(&r, "a", 3);
    yaml_opt_map(&r, "o");
    int rc = yaml_reader_finish(&r);
    assert(n >= 1 && n <= 100 && strlen(s) <= 8 && ms >= 0 && uusd >= 0 && w >= 0 && w <= 1);
    assert(!a || a->n_items <= 3);
    if (rc)
        check_error(&e, lines);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct yaml_node *root;
    struct err e = {0};
    int lines = 2; /* an error may be reported at the line after the last */
    /* YAML's line breaks; U+0085, U+2028 and U+2029 end in these bytes */
    for (size_t i = 0; i < size; i++)
        lines += data[i] == '\n' || data[i] == '\r' || data[i] == 0x85 || data[i] == 0xA8 ||
                 data[i] == 0xA9;
    if (yaml_parse("f", (const char *)data, size, &root, &e) == 0) {
        check_tree(root, lines, 1);
        read_mapping(root, lines);
        yaml_node_free(root);
    } else {
        check_error(&e, lines);
    }
    return 0;
}
