/* SPDX-License-Identifier: Apache-2.0
 *
 * A decodable message encodes, and decodes again to the same; also after a blank, which makes it
 * take the path through a JSON tree.
 */
#include "base/wire/wire.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* NULL if it does not decode. */
static char *decode_and_encode(const char *p, size_t n)
{
    struct wire_desired m;
    struct buf text = {0};
    struct err e;
    if (wire_desired_decode(p, n, &m, &e))
        return NULL;
    wire_desired_encode(&m, &text);
    wire_desired_deinit(&m);
    return buf_take(&text);
}

static void check_slow_way(const char *p, size_t n)
{
    struct buf spaced = {0};
    buf_adds(&spaced, " ");
    buf_add(&spaced, p, n);
    char *one = decode_and_encode(p, n), *other = decode_and_encode(spaced.data, spaced.len);
    if (!one != !other || (one && strcmp(one, other) != 0))
        abort();
    free(one);
    free(other);
    buf_deinit(&spaced);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wire_desired m, back;
    struct err e;
    if (size < WIRE_MESSAGE_MAX)
        check_slow_way((const char *)data, size);
    if (wire_desired_decode((const char *)data, size, &m, &e))
        return 0;
    struct buf first = {0}, second = {0};
    wire_desired_encode(&m, &first);
    if (wire_desired_decode(first.data, first.len, &back, &e))
        abort();
    wire_desired_encode(&back, &second);
    if (strcmp(first.data, second.data) != 0)
        abort();
    buf_deinit(&first);
    buf_deinit(&second);
    wire_desired_deinit(&m);
    wire_desired_deinit(&back);
    return 0;
}
