/* SPDX-License-Identifier: Apache-2.0
 *
 * XML: an accepted document can be walked, and every text in it is valid.
 */
#include "base/str.h"
#include "check.h"
#include "cloud/xml.h"
#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define WALK_DEPTH 4

static void walk(const struct xml_node *node, int depth)
{
    static const char *const names[] = {"a", "b", "Contents", "Key", "Error", "item"};
    char text[32];
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        xml_text_cut(node, names[i], text, sizeof(text));
        assert(str_is_utf8(text, strlen(text)));
        for (const struct xml_node *c = xml_child(node, names[i]); c && depth < WALK_DEPTH;
             c = xml_next(c)) {
            assert(str_eq(xml_name(c), names[i]));
            walk(c, depth + 1);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct xml x;
    struct err e = {0};
    int rc = xml_open(&x, (const char *)data, size, &e);
    if (rc != 0) {
        check_error(rc, &e);
        return 0;
    }
    assert(!xml_next(xml_root(&x)));
    walk(xml_root(&x), 0);
    xml_close(&x);
    return 0;
}
