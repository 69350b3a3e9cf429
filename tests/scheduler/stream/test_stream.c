/* SPDX-License-Identifier: Apache-2.0
 *
 * What clients send to a stream of events, and that no text of a user can end a line of one.
 * test_stream.py has the streams of a real belayd.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/str.h"
#include "scheduler/api/stream/stream_frame.h"
#include "scheduler/api/stream/stream_messages.h"
#include <stdlib.h>
#include <string.h>

static void types_are_a_list_of_kinds(void **state)
{
    (void)state;
    uint32_t types;
    struct err e;
    assert_int_equal(stream_types_parse("job", &types, &e), 0);
    assert_int_equal(types, 1u << STREAM_JOB);
    assert_int_equal(stream_types_parse("event,node,event", &types, &e), 0);
    assert_int_equal(types, 1u << STREAM_NODE | 1u << STREAM_EVENT);
    assert_int_equal(
        stream_types_parse("job,node,instance,pool,cron,budget,summary,log,event", &types, &e), 0);
    assert_int_equal(types, STREAM_ALL);
}

static void malformed_types_are_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {"", ",", "job,", ",job", "job,,node", "jobs", "jo", "Job",
        " job", "job node", "job;node", "job\n", "\xff", NULL};
    uint32_t types = 7;
    struct err e;
    char many[STREAM_TYPES_MAX + 8];
    for (size_t i = 0; wrong[i]; i++) {
        if (stream_types_parse(wrong[i], &types, &e) != ERR_INVALID)
            fail_msg("accepted: %s", wrong[i]);
        assert_non_null(strstr(e.text, "types: expected a list of job, node, instance"));
    }
    for (size_t i = 0; i + 4 < sizeof(many); i += 4)
        memcpy(many + i, "log,", 5);
    memcpy(many + strlen(many) - 1, "", 1);
    assert_int_equal(stream_types_parse(many, &types, &e), ERR_INVALID);
    assert_int_equal(types, 7);
}

static void a_position_is_read_as_it_is_written(void **state)
{
    (void)state;
    static const struct stream_position some[] = {
        {0, 0}, {0, 1}, {3, 4711}, {INT64_MAX, INT64_MAX}};
    char text[STREAM_POSITION_MAX];
    struct stream_position p;
    struct err e;
    for (size_t i = 0; i < sizeof(some) / sizeof(some[0]); i++) {
        stream_position_format(some[i], text);
        assert_int_equal(stream_position_parse(text, &p, &e), 0);
        assert_true(p.epoch == some[i].epoch && p.event == some[i].event);
    }
}

static void malformed_positions_are_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {"", "-", "0-", "-1", "1", "1-2-3", "1--2", " 1-2", "1-2 ",
        "+1-2", "0x1-2", "a-b", "9223372036854775808-1", "1-9223372036854775808",
        "00000000000000000000000000001-1", "1-2\n", NULL};
    struct stream_position p = {5, 6};
    struct err e;
    for (size_t i = 0; wrong[i]; i++) {
        if (stream_position_parse(wrong[i], &p, &e) != ERR_INVALID)
            fail_msg("accepted: %s", wrong[i]);
        assert_non_null(strstr(e.text, "Last-Event-ID"));
    }
    assert_true(p.epoch == 5 && p.event == 6);
}

static int lines(const char *text)
{
    int n = 0;
    for (; *text; text++)
        n += *text == '\n' || *text == '\r';
    return n;
}

static void no_text_ends_a_line_or_an_event(void **state)
{
    (void)state;
    static const char *const texts[] = {"\n", "\r", "\r\n", "\n\nevent: forged\ndata: {}\n\n",
        "a\rid: 9-9\r", "\xe2\x80\xa8", "\xff\n\xfe", "\\n", "\"}\n", "\x0b\x0c", NULL};
    const struct stream_position at = {1, 2};
    for (size_t i = 0; texts[i]; i++) {
        char *text = stream_text("job", &at, json_pack("{s:o}", "name", json_text(texts[i])));
        assert_true(str_starts(text, "id: 1-2\nevent: job\ndata: {\"name\":\""));
        assert_int_equal(lines(text), 4);
        assert_string_equal(text + strlen(text) - 4, "\"}\n\n");
        free(text);
    }
}

static void assert_written(const struct stream_frame *f, const char *text)
{
    struct buf out = {0};
    stream_frame_write(f, 2, &out);
    assert_string_equal(buf_str(&out), text);
    buf_deinit(&out);
}

static void a_later_state_takes_the_place_of_one_that_waits(void **state)
{
    (void)state;
    struct stream_frame f = {0};
    assert_written(&f, "");
    stream_frame_add(&f, "job 7 pending\n\n", 7, 0);
    stream_frame_add(&f, "event 11\n\n", 0, 11);
    f.last = 11;
    assert_written(&f, "job 7 pending\n\nevent 11\n\n");
    stream_frame_add(&f, "job 8 pending\n\n", 8, 0);
    stream_frame_add(&f, "job 7 ended\n\n", 7, 0);
    stream_frame_add(&f, "event 12\n\n", 0, 12);
    stream_frame_add(&f, "event 12\n\n", 0, 12); /* events are not merged */
    assert_int_equal(f.n, 5);
    f.last = 14; /* events 13 and 14 are not for this viewer */
    assert_written(&f, "job 7 ended\n\nevent 11\n\njob 8 pending\n\n"
                       "event 12\n\nevent 12\n\nid: 2-14\n\n");
    stream_frame_deinit(&f);
    assert_written(&f, "");
}

static void what_was_replaced_does_not_add_up(void **state)
{
    (void)state;
    struct stream_frame f = {0};
    char text[1024];
    size_t most = 0;
    memset(text, 'x', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    stream_frame_add(&f, "first", 0, 0);
    for (int i = 0; i < 1000; i++) {
        text[0] = (char)('a' + i % 26);
        stream_frame_add(&f, text, 1 + i % 2, 0);
        most = f.text.len > most ? f.text.len : most;
    }
    assert_int_equal(f.n, 3);
    assert_int_equal(f.len, 5 + 2 * (sizeof(text) - 1));
    assert_in_range(most, f.len, 32 << 10);
    struct buf out = {0};
    stream_frame_write(&f, 0, &out);
    assert_int_equal(out.len, f.len);
    assert_int_equal(out.data[5], 'a' + 998 % 26);
    assert_int_equal(out.data[5 + sizeof(text) - 1], 'a' + 999 % 26);
    buf_deinit(&out);
    stream_frame_deinit(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types_are_a_list_of_kinds),
        cmocka_unit_test(malformed_types_are_refused),
        cmocka_unit_test(a_position_is_read_as_it_is_written),
        cmocka_unit_test(malformed_positions_are_refused),
        cmocka_unit_test(no_text_ends_a_line_or_an_event),
        cmocka_unit_test(a_later_state_takes_the_place_of_one_that_waits),
        cmocka_unit_test(what_was_replaced_does_not_add_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
