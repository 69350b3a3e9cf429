/* SPDX-License-Identifier: Apache-2.0
 *
 * Records that the agent reads back from a task's directory; the first byte selects the type. An
 * agent that is not root runs tasks as its own user, so a program may have written them. The
 * functions that need no file are static in agent/task/record.c.
 */
#include "agent/task/record.c"

#include "fuzz/check.h"
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void round_trip(const struct wire_table *t, const void *m)
{
    struct buf first = {0}, second = {0};
    struct err e;
    void *back = mem_alloc(t->size);
    wire_table_encode(t, m, &first);
    int rc = wire_table_decode(t, first.data, first.len, WIRE_MESSAGE_MAX, back, &e);
    assert(rc == 0);
    (void)rc;
    wire_table_encode(t, back, &second);
    assert(str_eq(first.data, second.data));
    wire_table_deinit(t, back);
    free(back);
    buf_deinit(&first);
    buf_deinit(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    const struct wire_table *t = data[0] == 's'   ? &state_table
                                 : data[0] == 'x' ? &exit_table
                                                  : &start_table;
    void *m = mem_alloc(t->size);
    struct err e = {0};
    memset(m, CHECK_PATTERN, t->size);
    int rc = wire_table_decode(t, (const char *)data + 1, size - 1, WIRE_MESSAGE_MAX, m, &e);
    if (rc == 0) {
        round_trip(t, m);
        wire_table_deinit(t, m);
    } else {
        check_error(rc, &e);
        check_untouched(m, t->size);
    }
    free(m);
    return 0;
}
