/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages that are refused: malformed, too long, too many, or truncated anywhere.
 */
#include "tests/wire/everything.h"

#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static int decode_join(const char *member, const char *value, struct err *e)
{
    struct wire_join m;
    char text[1024];
    bool is_host = str_eq(member, "host");
    snprintf(text, sizeof(text),
        "{\"token\":\"t\",\"csr_pem\":\"x\",\"version\":\"1\",\"cpus\":1,\"memory_mib\":1,%s"
        "\"%s\":\"%s\"}",
        is_host ? "" : "\"host\":\"n1\",", member, value);
    return wire_join_decode(text, strlen(text), &m, e);
}

static void a_join_with_a_malformed_name_feature_or_resource_is_refused(void **state)
{
    static const struct {
        const char *member, *value, *says;
    } bad[] = {
        {"host", "", "name: \"\" is not a node's name"},
        {"host", "../../etc", "\"../../etc\" is not a node's name"},
        {"host", "a\\nb", "\"a?b\" is not a node's name"},
        {"host", "\\u001b[2J", "correct name: in the node's belay-agent.yaml"},
        {"host", "n[1-3]", "\"n[1-3]\""},
        {"host", "a,b", "\"a,b\""},
        {"host", "-x", "a letter or digit first"},
        {"host", "\xC3\xA9", "at most 63 letters"},
        {"features", ",,,", "features: expected a word"},
        {"features", ",", "features: expected a word"},
        {"features", ",a,,b,", "features: expected a word"},
        {"features", ",a b,", "found \"a b\""},
        {"features", ",a,b,a,", "a is named twice"},
        {"features", ",\\u001b[2J,", "correct features: in the node's belay-agent.yaml"},
        {"resources", "a:99999999999999999999", "resources: "},
        {"resources", "a:0", "resources: "},
        {"resources", "a:1,a:2", "a is named twice"},
        {"resources", "a b:1", "resources: \"a b\" is not a name"},
        {"resources", ",", "resources: "},
    };
    static const char *const good[][2] = {{"host", "n1"}, {"host", "GPU_4.lab-2"},
        {"features", ",a,ib+x,"}, {"features", "a,b"}, {"features", ""},
        {"resources", "lego:4,shmem"}, {"resources", ""}};
    struct err e;
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        e = (struct err){0};
        if (decode_join(bad[i].member, bad[i].value, &e) != ERR_INVALID ||
            !strstr(e.text, bad[i].says))
            fail_msg("%s %s: \"%s\"", bad[i].member, bad[i].value, e.text);
    }
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        assert_int_equal(decode_join(good[i][0], good[i][1], &e), 0);
}

/* Like a text that exceeds its array. */
static void a_word_that_is_too_long_is_refused(void **state)
{
    (void)state;
    static const char fits[] = "{\"incarnation\":1,\"seq\":1,\"criu\":\"1234567\"}",
                      is_long[] = "{\"incarnation\":1,\"seq\":1,\"criu\":\"12345678\"}",
                      is_number[] = "{\"incarnation\":1,\"seq\":1,\"criu\":1}";
    struct wire_status m;
    struct err e;
    assert_int_equal(wire_status_decode(fits, strlen(fits), &m, &e), 0);
    wire_status_deinit(&m);
    assert_int_equal(wire_status_decode(is_long, strlen(is_long), &m, &e), ERR_INVALID);
    assert_non_null(strstr(e.text, "criu"));
    assert_int_equal(wire_status_decode(is_number, strlen(is_number), &m, &e), ERR_INVALID);
}

static void a_malformed_message_is_refused_with_its_path(void **state)
{
    (void)state;
    static const struct {
        const char *text, *word;
    } bad[] = {
        {"", ""},
        {"[]", ""},
        {"{}", "rev"},
        {"{\"rev\":1,\"sync_ms\":0,\"lease_ms\":1} x", ""},
        {"{\"rev\":1,\"rev\":2,\"sync_ms\":0,\"lease_ms\":1}", "duplicate"},
        {"{\"rev\":0,\"sync_ms\":0,\"lease_ms\":1}", "rev"},
        {"{\"rev\":1,\"sync_ms\":25001,\"lease_ms\":1}", "sync_ms"},
        {"{\"rev\":1.5,\"sync_ms\":0,\"lease_ms\":1}", "rev"},
        {"{\"rev\":1,\"sync_ms\":0,\"lease_ms\":1,\"attempts\":{}}", "attempts"},
        {"{\"rev\":1,\"sync_ms\":0,\"lease_ms\":1,\"attempts\":[7]}", "attempts[0]"},
        {"{\"rev\":1,\"sync_ms\":0,\"lease_ms\":1,\"attempts\":[{\"job\":1,\"attempt\":1,\"want\":"
         "\"rin\"}]}",
            "attempts[0].want"},
        {"{\"rev\":1,\"sync_ms\":0,\"lease_ms\":1,\"attempts\":[{\"job\":1,\"attempt\":1,\"want\":"
         "\"run\",\"env\":[{\"name\":\"A\",\"value\":\"1\"},{\"name\":\"A-B\",\"value\":\"1\"}]}]}",
            "attempts[0].env[1].name"},
        {"{\"rev\":1,\"sync_ms\":0,\"lease_ms\":1,\"attempts\":[{\"job\":1,\"attempt\":1,\"want\":"
         "\"run\",\"cwd\":\"tmp\"}]}",
            "attempts[0].cwd"},
        {"{\"rev\":1,\"sync_ms\":0,\"lease_ms\":1,\"attempts\":[{\"job\":1,\"attempt\":1,\"want\":"
         "\"run\",\"args\":[\"a\",1]}]}",
            "attempts[0].args"},
        {"{\"rev\":1,\"sync_ms\":0,\"lease_ms\":1,\"attempts\":[{\"job\":1,\"attempt\":1,\"want\":"
         "\"run\",\"name\":\"0123456789012345678901234567890123456789012345678901234567890123\"}]}",
            "attempts[0].name"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct wire_desired m = {.rev = 77};
        struct err e = {0};
        assert_int_equal(
            wire_desired_decode(bad[i].text, strlen(bad[i].text), &m, &e), ERR_INVALID);
        if (!strstr(e.text, bad[i].word))
            fail_msg("%s: %s", bad[i].text, e.text);
        assert_int_equal(m.rev, 77);
    }
}

static void malformed_usage_is_refused_with_its_path(void **state)
{
    static const char *const bad[][2] = {{"7", "attempts[0].usage"},
        {"{\"cpu_ms\":-1}", "usage.cpu_ms"}, {"{\"cpu_user_ms\":[]}", "usage.cpu_user_ms"},
        {"{\"cpu_milli\":\"1\"}", "usage.cpu_milli"},
        {"{\"memory_bytes\":1.5}", "usage.memory_bytes"},
        {"{\"memory_peak_bytes\":9223372036854775807}", "usage.memory_peak_bytes"},
        {"[]", "usage"}};
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        char text[512];
        struct wire_status m = {.seq = 77};
        struct err e = {0};
        snprintf(text, sizeof(text),
            "{\"incarnation\":1,\"seq\":1,\"attempts\":[{\"job\":1,\"attempt\":1,\"phase\":"
            "\"running\",\"usage\":%s}]}",
            bad[i][0]);
        assert_int_equal(wire_status_decode(text, strlen(text), &m, &e), ERR_INVALID);
        if (!strstr(e.text, bad[i][1]))
            fail_msg("%s: %s", text, e.text);
        assert_int_equal(m.seq, 77);
    }
}

static void malformed_loads_are_refused_with_their_path(void **state)
{
    static const char *const bad[][2] = {
        {"\"task_loads\":[{\"at\":1,\"job\":1,\"attempt\":1}]", "task_loads[0].no"},
        {"\"task_loads\":[{\"no\":0,\"at\":1,\"job\":1,\"attempt\":1}]", "task_loads[0].no"},
        {"\"task_loads\":[{\"no\":1,\"at\":1,\"job\":1,\"attempt\":1,\"load\":{\"cpu_ms\":-1}}]",
            "load.cpu_ms"},
        {"\"task_loads\":[{\"no\":1,\"at\":1,\"job\":1,\"attempt\":1,\"load\":{\"net_is_nodes\":2}}"
         "]",
            "load.net_is_nodes"},
        {"\"task_loads\":{}", "task_loads"},
        {"\"gpu_loads\":[{\"no\":1,\"at\":1}]", "gpu_loads[0].gpu"},
        {"\"gpu_loads\":[{\"no\":1,\"at\":1,\"gpu\":"
         "\"0123456789012345678901234567890123456789012345678901234567890123\"}]",
            "gpu_loads[0].gpu"},
        {"\"gpu_loads\":[{\"no\":1,\"at\":1,\"gpu\":\"GPU-1\",\"load\":{\"busy_ms\":"
         "9223372036854775807}}]",
            "load.busy_ms"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        char text[512];
        struct wire_status m = {.seq = 77};
        struct err e = {0};
        snprintf(text, sizeof(text), "{\"incarnation\":1,\"seq\":1,%s}", bad[i][0]);
        assert_int_equal(wire_status_decode(text, strlen(text), &m, &e), ERR_INVALID);
        if (!strstr(e.text, bad[i][1]))
            fail_msg("%s: %s", text, e.text);
        assert_int_equal(m.seq, 77);
    }
}

static void too_many_attempts_are_refused(void **state)
{
    (void)state;
    struct buf text = {0};
    buf_adds(&text, "{\"rev\":1,\"sync_ms\":0,\"lease_ms\":1,\"attempts\":[");
    for (int i = 0; i <= WIRE_ATTEMPTS_MAX; i++)
        buf_printf(&text, "%s{\"job\":%d,\"attempt\":1,\"want\":\"stop\"}", i ? "," : "", i + 1);
    buf_adds(&text, "]}");
    struct wire_desired m;
    struct err e;
    assert_int_equal(wire_desired_decode(text.data, text.len, &m, &e), ERR_INVALID);
    assert_non_null(strstr(e.text, "attempts"));
    buf_deinit(&text);
}

static void a_truncated_message_is_refused_at_every_length(void **state)
{
    (void)state;
    struct wire_desired m = desired_of_everything(), back;
    struct buf text = {0};
    wire_desired_encode(&m, &text);
    for (size_t n = 0; n < text.len; n++) {
        struct err e;
        assert_int_equal(wire_desired_decode(text.data, n, &back, &e), ERR_INVALID);
    }
    wire_desired_deinit(&m);
    buf_deinit(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_join_with_a_malformed_name_feature_or_resource_is_refused),
        cmocka_unit_test(a_word_that_is_too_long_is_refused),
        cmocka_unit_test(a_malformed_message_is_refused_with_its_path),
        cmocka_unit_test(malformed_usage_is_refused_with_its_path),
        cmocka_unit_test(malformed_loads_are_refused_with_their_path),
        cmocka_unit_test(too_many_attempts_are_refused),
        cmocka_unit_test(a_truncated_message_is_refused_at_every_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
