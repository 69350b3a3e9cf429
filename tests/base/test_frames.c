/* SPDX-License-Identifier: Apache-2.0
 *
 * Frames of sessions: encoded frames decode to the same, however the bytes are split; malformed
 * ones are refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/frames.h"
#include <string.h>

static void frames_are_reassembled_from_any_split(void **state)
{
    static const struct {
        enum frame_type type;
        const char *p;
        size_t n;
    } in[] = {{FRAME_OUT, "hello\n", 6}, {FRAME_ERR, "", 0}, {FRAME_EOF, "", 0},
        {FRAME_SIZE, "\0\30\0\120", 4}, {FRAME_SIGNAL, "\2", 1}, {FRAME_EXIT, "\7", 1}};
    struct buf all = {0};
    struct err e;
    (void)state;
    for (size_t i = 0; i < sizeof(in) / sizeof(in[0]); i++)
        frame_add(&all, in[i].type, in[i].p, in[i].n);
    for (size_t piece = 1; piece <= all.len; piece++) {
        struct buf got = {0};
        size_t n = 0;
        for (size_t at = 0; at < all.len; at += piece) {
            struct frame f;
            size_t used;
            buf_add(&got, all.data + at, piece < all.len - at ? piece : all.len - at);
            while (frame_read(buf_str(&got), got.len, &f, &used, &e) == 1) {
                assert_int_equal(f.type, in[n].type);
                assert_int_equal(f.n, in[n].n);
                assert_memory_equal(f.p, in[n].p, f.n);
                buf_remove_front(&got, used);
                n++;
            }
        }
        assert_int_equal(n, sizeof(in) / sizeof(in[0]));
        assert_int_equal(got.len, 0);
        buf_deinit(&got);
    }
    buf_deinit(&all);
}

static void a_malformed_header_is_refused_before_its_payload_arrives(void **state)
{
    static const char *const bad[] = {"\0\0\0\0\0", "\11\0\0\0\0", "\377\0\0\0\0", "\1\0\1\0\1",
        "\1\377\377\377\377", "\3\0\0\0\0", "\3\0\0\0\2", "\6\0\0\0\1", "\7\0\0\0\3",
        "\10\0\0\0\2"};
    struct frame f;
    struct err e;
    size_t used;
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(frame_read(bad[i], FRAME_HEAD, &f, &used, &e), ERR_INVALID);
    assert_int_equal(frame_read("\10\0\0\0\1\0", 6, &f, &used, &e), ERR_INVALID); /* signal 0 */
    assert_int_equal(frame_read("\10\0\0\0\1\101", 6, &f, &used, &e), ERR_INVALID);
    assert_int_equal(frame_read("\1\0\0\0", 4, &f, &used, &e), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_are_reassembled_from_any_split),
        cmocka_unit_test(a_malformed_header_is_refused_before_its_payload_arrives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
