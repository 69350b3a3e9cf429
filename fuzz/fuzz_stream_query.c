/* SPDX-License-Identifier: Apache-2.0
 *
 * What clients send to GET /api/v1/stream: the types, then, after a line end, Last-Event-ID. What
 * is accepted is a position that is read again as it is written.
 */
#include "fuzz/check.h"
#include "scheduler/api/stream/stream_query.h"
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1), out[STREAM_POSITION_MAX];
    struct stream_position p, again;
    uint32_t types = 0;
    struct err e;
    if (!text)
        abort();
    memcpy(text, data, size);
    text[size] = '\0';
    char *position = text + strcspn(text, "\n");
    if (*position)
        *position++ = '\0';
    if (stream_types_parse(text, &types, &e) == 0)
        assert(types != 0 && (types & ~STREAM_ALL) == 0);
    if (stream_position_parse(position, &p, &e) == 0) {
        stream_position_format(p, out);
        if (stream_position_parse(out, &again, &e) != 0)
            abort();
        assert(again.epoch == p.epoch && again.event == p.event);
    }
    free(text);
    return 0;
}
