/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON: an accepted value survives writing and reading; a reader of any object ends with 0 or an
 * error with a text; any bytes become strings that can be read.
 */
#include "base/json.h"
#include "base/str.h"
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_object(const json_t *v)
{
    static const char *const names[] = {"spot", "on-demand", NULL};
    struct json_reader r;
    struct err e = {0};
    char text[16];
    json_reader_init(&r, v, "spec", &e);
    int64_t n = json_opt_i64(&r, "n", 1, 100, 7);
    json_opt_bool(&r, "b", true);
    const char *s = json_opt_str(&r, "s", 8, NULL);
    json_opt_strcpy(&r, "t", text, sizeof(text), "fallback");
    int w = json_opt_enum(&r, "w", names, 0);
    const json_t *a = json_opt_array(&r, "a", 3);
    json_opt_object(&r, "o");
    int rc = json_reader_finish(&r);
    assert(rc == (int)e.kind && (rc == 0 || e.text[0]));
    assert(str_is_utf8(e.text, strlen(e.text)));
    assert(n >= 1 && n <= 100 && w >= 0 && w <= 1 && json_array_size(a) <= 3);
    assert(!s || strlen(s) <= 8);
}

static void round_trip(const json_t *v)
{
    struct err e;
    json_t *again;
    char *text = json_dump_text(v);
    int rc = json_parse(text, strlen(text), SIZE_MAX, &again, &e);
    assert(rc == 0 && json_equal(v, again));
    json_decref(again);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *v;
    struct err e = {0};
    if (json_parse((const char *)data, size, 1 << 16, &v, &e) == 0) {
        round_trip(v);
        read_object(v);
        json_decref(v);
    } else {
        assert(e.kind == ERR_INVALID && e.text[0]);
    }
    v = json_textn((const char *)data, size);
    round_trip(v);
    json_decref(v);
    return 0;
}
