/* SPDX-License-Identifier: Apache-2.0 */
#include "base/wire/plain.h"
#include "tests/wire/everything.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "job/member.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static void status_survives_a_round_trip(void **state)
{
    (void)state;
    struct wire_status m = status_of_everything(), back;
    struct buf text = {0}, again = {0};
    struct err e;
    wire_status_encode(&m, &text);
    assert_int_equal(wire_status_decode(text.data, text.len, &back, &e), 0);
    assert_int_equal(back.n_attempts, 2);
    assert_int_equal(back.attempts[0].phase, WIRE_SAVING);
    assert_int_equal(back.attempts[0].n_checkpoints, 2);
    assert_int_equal(back.attempts[0].checkpoints[0].progress, 0);
    assert_true(back.attempts[0].checkpoints[1].progress == WIRE_NONE);
    assert_true(back.attempts[1].started_at == WIRE_NONE);
    assert_int_equal(back.attempts[1].exit_code, 255);
    assert_int_equal(back.notice.kind, WIRE_NOTICE_RECLAIM);
    assert_int_equal(back.attempts[0].reused_bytes, 400);
    assert_int_equal(back.attempts[0].usage.cpu_user_ms, 100000);
    assert_int_equal(back.attempts[0].usage.cpu_milli, 1875);
    assert_int_equal(back.attempts[1].usage.cpu_ms, 0);
    assert_int_equal(back.n_kept, 1);
    assert_int_equal(back.kept[0].job, 7);
    assert_int_equal(back.n_task_loads, 1);
    assert_memory_equal(&back.task_loads[0], &m.task_loads[0], sizeof(m.task_loads[0]));
    assert_int_equal(back.n_gpu_loads, 2);
    assert_memory_equal(&back.gpu_loads[0].load, &m.gpu_loads[0].load, sizeof(m.gpu_loads[0].load));
    assert_int_equal(back.n_tails, 1);
    assert_int_equal(back.tails[0].offset, 70);
    assert_string_equal(back.tails[0].hex, "00ff0a");
    assert_string_equal(back.gpu_loads[0].gpu, "GPU-1");
    assert_true(back.gpu_loads[1].is_slice);
    wire_status_encode(&back, &again);
    assert_string_equal(text.data, again.data);
    wire_status_deinit(&m);
    wire_status_deinit(&back);
    buf_deinit(&text);
    buf_deinit(&again);
}

static void desired_survives_a_round_trip(void **state)
{
    (void)state;
    struct wire_desired m = desired_of_everything(), back;
    struct buf text = {0}, again = {0};
    struct err e;
    wire_desired_encode(&m, &text);
    assert_int_equal(wire_desired_decode(text.data, text.len, &back, &e), 0);
    assert_int_equal(back.n_attempts, 2);
    assert_int_equal(back.n_unneeded, 1);
    assert_int_equal(back.unneeded[0].job, 9);
    assert_string_equal(back.attempts[0].script, m.attempts[0].script);
    assert_int_equal(back.attempts[0].n_args, 2);
    assert_string_equal(back.attempts[0].args[1], "");
    assert_string_equal(back.attempts[0].env[0].value, "1 2\n3");
    assert_true(back.attempts[0].slurm_env);
    assert_true(back.attempts[0].gang_ended);
    assert_string_equal(back.attempts[0].output, "%x-%j.out");
    assert_string_equal(back.attempts[0].error, "%j.err");
    assert_string_equal(back.attempts[0].input, "in.txt");
    assert_int_equal(back.attempts[0].open_mode, WIRE_OPEN_APPEND);
    assert_int_equal(back.attempts[0].tasks, 4);
    assert_int_equal(back.attempts[0].cpus_per_task, 2);
    assert_null(back.attempts[1].output);
    assert_string_equal(back.attempts[0].cluster, "lab");
    assert_string_equal(back.attempts[0].pool, "burst");
    assert_true(back.attempts[0].needs_secrets);
    assert_int_equal(back.attempts[0].secrets.version, 3);
    assert_int_equal(back.attempts[0].secrets.n_checkpoint_keys, 2);
    assert_string_equal(back.attempts[0].secrets.checkpoint_keys[1], "fedcba9876543210");
    assert_true(back.attempts[0].secrets.encrypts && back.attempts[0].secrets.refuses_plain);
    assert_int_equal(back.attempts[1].secrets.n_checkpoint_keys, 0);
    assert_string_equal(back.attempts[0].secrets.store_token, "t");
    assert_int_equal(back.attempts[0].secrets.store_left_ms, 3600000);
    assert_string_equal(back.attempts[0].job_token, "j1.2.abc");
    assert_null(back.attempts[1].job_token);
    assert_null(back.attempts[1].script);
    assert_int_equal(back.attempts[1].want, WIRE_SAVE_STOP);
    assert_int_equal(back.task_loads_taken, 12);
    assert_int_equal(back.gpu_loads_taken, 13);
    wire_desired_encode(&back, &again);
    assert_string_equal(text.data, again.data);
    wire_desired_deinit(&m);
    wire_desired_deinit(&back);
    buf_deinit(&text);
    buf_deinit(&again);
}

static void join_survives_a_round_trip(void **state)
{
    (void)state;
    struct wire_join m = {.token = "t",
        .csr_pem = "pem",
        .host = "n1",
        .version = "0.1.0",
        .cpus = 2,
        .memory_mib = 512};
    struct wire_join back = {.token = "untouched"};
    struct buf text = {0};
    struct err e;
    wire_join_encode(&m, &text);
    assert_int_equal(wire_join_decode(text.data, text.len, &back, &e), 0);
    assert_memory_equal(&m, &back, sizeof(m));
    buf_deinit(&text);
}

static void joined_and_renew_survive_a_round_trip(void **state)
{
    (void)state;
    struct wire_joined m = {.node = 1,
        .name = "n1",
        .cluster = "lab",
        .cert_pem = "c",
        .ca_pem = "ca",
        .store = "file:///srv"};
    struct wire_joined *back = mem_alloc(sizeof(*back));
    struct wire_renew r = {.csr_pem = "pem"}, r_back = {0};
    struct buf text = {0};
    struct err e;
    wire_joined_encode(&m, &text);
    assert_int_equal(wire_joined_decode(text.data, text.len, back, &e), 0);
    assert_memory_equal(&m, back, sizeof(m));
    buf_clear(&text);
    wire_renew_encode(&r, &text);
    assert_int_equal(wire_renew_decode(text.data, text.len, &r_back, &e), 0);
    assert_memory_equal(&r, &r_back, sizeof(r));
    buf_deinit(&text);
    free(back);
}

static void a_text_that_is_not_utf8_is_truncated_to_what_the_reader_accepts(void **state)
{
    (void)state;
    struct wire_attempt_status a = {.job = 1,
        .attempt = 1,
        .phase = WIRE_ENDED,
        .started_at = WIRE_NONE,
        .restored_progress = WIRE_NONE,
        .first_done = WIRE_NONE,
        .done = WIRE_NONE,
        .total = WIRE_NONE};
    memset(a.text, 0xff, sizeof(a.text) - 1);
    struct wire_status m = {
        .incarnation = 1, .seq = 1, .notice.deadline = WIRE_NONE, .attempts = &a, .n_attempts = 1};
    struct wire_status back;
    struct buf text = {0};
    struct err e;
    wire_status_encode(&m, &text);
    assert_int_equal(wire_status_decode(text.data, text.len, &back, &e), 0);
    assert_int_equal(strlen(back.attempts[0].text), 255);
    assert_true(str_is_utf8(back.attempts[0].text, 255));
    wire_status_deinit(&back);
    buf_deinit(&text);
}

static void an_unknown_key_is_tolerated(void **state)
{
    (void)state;
    static const char text[] =
        "{\"rev\":1,\"sync_ms\":0,\"lease_ms\":1,\"later\":[1,{}],"
        "\"attempts\":[{\"job\":1,\"attempt\":1,\"want\":\"stop\",\"later\":true}]}";
    struct wire_desired m;
    struct err e;
    assert_int_equal(wire_desired_decode(text, strlen(text), &m, &e), 0);
    assert_int_equal(m.n_attempts, 1);
    wire_desired_deinit(&m);
}

/* From a newer version; wire.h defines the fallback. It is not sent on. */
static void an_unknown_word_is_tolerated(void **state)
{
    (void)state;
    static const char text[] =
        "{\"incarnation\":1,\"seq\":1,\"notice\":{\"kind\":\"apocalypse\"},\"criu\":\"tpu\","
        "\"attempts\":[{\"job\":1,\"attempt\":1,\"phase\":\"ended\",\"end\":\"bored\","
        "\"checkpoints\":[{\"sequence\":1,\"saved_at\":1,\"cause\":\"whim\"},"
        "{\"sequence\":2,\"saved_at\":1,\"cause\":\"da\\u0069ly\"}]}]}";
    static const char sent[] =
        "{\"incarnation\":1,\"seq\":1,\"attempts\":[{\"job\":1,\"attempt\":1,\"phase\":\"ended\","
        "\"checkpoints\":[{\"sequence\":1,\"saved_at\":1},"
        "{\"sequence\":2,\"saved_at\":1,\"cause\":\"daily\"}]}]}";
    struct wire_status m;
    struct buf out = {0};
    struct err e;
    assert_int_equal(wire_status_decode(text, strlen(text), &m, &e), 0);
    assert_int_equal(m.notice.kind, WIRE_NOTICE_UNKNOWN);
    assert_int_equal(m.criu, WIRE_CRIU_UNKNOWN);
    assert_int_equal(m.attempts[0].end, WIRE_END_UNKNOWN);
    assert_int_equal(m.attempts[0].checkpoints[0].cause, WIRE_CAUSE_UNKNOWN);
    assert_int_equal(m.attempts[0].checkpoints[1].cause, WIRE_CAUSE_DAILY);
    wire_status_encode(&m, &out);
    assert_string_equal(buf_str(&out), sent);
    buf_deinit(&out);
    wire_status_deinit(&m);
}

/* Counts a key in a message. */
static int times(const char *text, const char *key)
{
    char quoted[64];
    int n = 0;
    snprintf(quoted, sizeof(quoted), "\"%s\":", key);
    for (const char *at = text; (at = strstr(at, quoted)); at++)
        n++;
    return n;
}

/* Agents receive exactly the options whose rows say so. */
static void options_for_agents_survive_a_round_trip(void **state)
{
    (void)state;
    struct job_spec all = job_spec_default, sent;
    for (size_t i = 0; i < job_attributes_count; i++)
        if (job_member_is_number(&job_attributes[i]))
            job_member_set_number(&job_attributes[i], &all, job_attributes[i].words ? 1 : 17);
        else if (job_attributes[i].member_type == JOB_MEMBER_TEXT)
            job_member_set_text(&job_attributes[i], &all, "some text");
        else if (job_attributes[i].member_type != JOB_MEMBER_NONE)
            *((bool *)&all + job_attributes[i].at) = true;
    job_spec_for_agent(&all, &sent);
    assert_int_equal(sent.ckpt_keep, 17);
    assert_int_equal(sent.time_limit_ms, 17);
    assert_string_equal(sent.ckpt_at, "some text");
    assert_int_equal(sent.nice, 0);
    for (int is_plain = 0; is_plain < 2; is_plain++) {
        struct wire_desired_attempt a = {.job = 1, .attempt = 1, .options = sent};
        struct wire_desired d = {.rev = 1, .lease_ms = 1, .attempts = &a, .n_attempts = 1}, back;
        struct buf out = {0};
        struct err e;
        wire_desired_encode(&d, &out);
        if (!is_plain) /* otherwise it is read as a tree of values */
            buf_adds(&out, "\n");
        for (size_t i = 0; i < job_attributes_count; i++)
            if (job_attributes[i].wire && times(buf_str(&out), job_attributes[i].wire) != 1)
                fail_msg("%s: %s", job_attributes[i].wire, buf_str(&out));
        assert_int_equal(wire_desired_decode(out.data, out.len, &back, &e), 0);
        assert_memory_equal(&back.attempts[0].options, &sent, sizeof(sent));
        wire_desired_deinit(&back);
        buf_deinit(&out);
    }
}

/* Each word has a fixed encoding, so that both sides of an upgrade understand each other. */
static void every_word_survives_a_round_trip(void **state)
{
    (void)state;
    for (int i = WIRE_METHOD_NONE; i < WIRE_METHOD_UNKNOWN; i++)
        for (int j = WIRE_END_NONE; j < WIRE_END_UNKNOWN; j++) {
            struct wire_desired_attempt a = {.job = 1,
                .attempt = 1,
                .reason = (enum wire_end)j,
                .method = (enum wire_method)i,
                .open_mode = (enum wire_open_mode)(j % WIRE_OPEN_UNKNOWN)};
            struct wire_desired d = {.rev = 1, .lease_ms = 1, .attempts = &a, .n_attempts = 1},
                                back;
            struct buf out = {0};
            struct err e;
            char word[64];
            wire_desired_encode(&d, &out);
            snprintf(word, sizeof(word), "\"method\":\"%s\"", wire_method_names[i]);
            assert_non_null(strstr(buf_str(&out), word));
            snprintf(word, sizeof(word), "\"reason\":\"%s\"", wire_end_names[j]);
            assert_int_equal(strstr(buf_str(&out), word) != NULL, j != WIRE_END_NONE);
            assert_int_equal(wire_desired_decode(out.data, out.len, &back, &e), 0);
            assert_int_equal(back.attempts[0].reason, j);
            assert_int_equal(back.attempts[0].method, i);
            assert_int_equal(back.attempts[0].open_mode, a.open_mode);
            wire_desired_deinit(&back);
            buf_deinit(&out);
        }
}

static void a_status_without_a_notice_has_none(void **state)
{
    (void)state;
    static const char text[] = "{\"incarnation\":1,\"seq\":1}";
    struct wire_status m;
    struct err e;
    assert_int_equal(wire_status_decode(text, strlen(text), &m, &e), 0);
    assert_int_equal(m.notice.kind, WIRE_NOTICE_NONE);
    assert_true(m.notice.deadline == WIRE_NONE);
    wire_status_deinit(&m);
}

/* A message that begins with a space is read through a JSON tree. */
static void expect_alike(const char *text, size_t n)
{
    struct wire_desired m = {0}, slow = {0};
    struct buf spaced = {0}, again = {0}, slow_again = {0};
    struct err e;
    buf_adds(&spaced, " ");
    buf_add(&spaced, text, n);
    int rc = wire_desired_decode(text, n, &m, &e),
        slow_rc = wire_desired_decode(spaced.data, spaced.len, &slow, &e);
    assert_int_equal(rc, slow_rc);
    if (rc == 0) {
        wire_desired_encode(&m, &again);
        wire_desired_encode(&slow, &slow_again);
        assert_string_equal(again.data, slow_again.data);
        wire_desired_deinit(&m);
        wire_desired_deinit(&slow);
    }
    buf_deinit(&spaced);
    buf_deinit(&again);
    buf_deinit(&slow_again);
}

static void reading_from_bytes_equals_reading_from_a_tree(void **state)
{
    (void)state;
    static const char other[] = "\"{}[],:\\ 019-.ue\x01\x7f\xc3\xff";
    struct wire_desired m = desired_of_everything();
    struct buf text = {0}, changed = {0};
    wire_desired_encode(&m, &text);
    expect_alike(text.data, text.len);
    for (size_t at = 0; at < text.len; at++)
        for (size_t i = at % 3; i <= sizeof(other); i += 3) { /* another byte, a zero, one less */
            buf_clear(&changed);
            buf_add(&changed, text.data, at);
            if (i < sizeof(other))
                buf_addc(&changed, other[i]);
            buf_add(&changed, text.data + at + 1, text.len - at - 1);
            expect_alike(changed.data, changed.len);
        }
    wire_desired_deinit(&m);
    buf_deinit(&text);
    buf_deinit(&changed);
}

static void escapes_numbers_and_brackets_are_read_alike(void **state)
{
    (void)state;
    static const char *const values[] = {"\"name\":\"a\\u0007b\"", "\"name\":\"\\u0000\"",
        "\"name\":\"\\u00e9\"", "\"name\":\"\\u001f\"", "\"name\":\"\\u001F\"",
        "\"name\":\"\\/\\b\\f\\n\\r\\t\\\"\\\\\"", "\"name\":\"\\x\"", "\"name\":\"\\",
        "\"name\":\"\\u00", "\"name\":null", "\"name\":\"\\ud83d\\ude00\"", "\"cpus\":-0",
        "\"cpus\":01", "\"cpus\":1e2", "\"cpus\":100000000000000000000",
        "\"cpus\":000000000000000000", "\"cpus\":", "\"cpus\":-", "\"args\":[]",
        "\"args\":[\"]\",\"[\",\"\\\"\"]", "\"args\":[,]", "\"args\":[\"a\",]", "\"args\":[\"a\"",
        "\"args\":[\"a\"}", "\"env\":[{\"name\":\"A\"}]",
        "\"env\":[{\"name\":\"A\",\"value\":\"]}\"}]", "\"slurm_env\":truefalse",
        "\"slurm_env\":false", "\"secrets\":{}", "\"secrets\":{\"version\":1}", "\"want\":\"run\"",
        "\"later\":[{}]"};
    for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
        struct buf text = {0};
        buf_printf(&text,
            "{\"rev\":1,\"sync_ms\":0,\"lease_ms\":1,\"attempts\":[{\"job\":1,\"attempt\":1,"
            "\"want\":\"run\",%s}]}",
            values[i]);
        expect_alike(text.data, text.len);
        buf_deinit(&text);
    }
}

static struct wire_attempt_status attempt_of(const char *text)
{
    struct wire_attempt_status a = {.job = 1,
        .attempt = INT64_MAX,
        .phase = WIRE_ENDED,
        .started_at = WIRE_NONE,
        .restored_progress = WIRE_NONE,
        .first_done = WIRE_NONE,
        .done = WIRE_NONE,
        .total = WIRE_NONE};
    STR_COPY(a.text, text);
    return a;
}

static void written_messages_are_json_and_are_read_from_bytes(void **state)
{
    (void)state;
    struct wire_attempt_status a = attempt_of(""), back = {0};
    struct buf text = {0};
    struct err e;
    json_t *v;
    for (int c = 1; c < 0x80; c++)
        a.text[c - 1] = (char)c;
    wire_table_encode(&wire_attempt_status_table, &a, &text);
    assert_int_equal(json_parse(text.data, text.len, text.len, &v, &e), 0);
    char *dumped = json_dump_text(v);
    assert_string_equal(dumped, text.data);
    a.attempt = INT64_C(1) << 50;
    buf_clear(&text);
    wire_table_encode(&wire_attempt_status_table, &a, &text);
    assert_true(wire_plain_read(&wire_attempt_status_table, text.data, text.len, &back));
    assert_memory_equal(&a, &back, sizeof(a));
    wire_table_deinit(&wire_attempt_status_table, &back);
    buf_deinit(&text);
    free(dumped);
    json_decref(v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(status_survives_a_round_trip),
        cmocka_unit_test(desired_survives_a_round_trip),
        cmocka_unit_test(options_for_agents_survive_a_round_trip),
        cmocka_unit_test(join_survives_a_round_trip),
        cmocka_unit_test(joined_and_renew_survive_a_round_trip),
        cmocka_unit_test(a_text_that_is_not_utf8_is_truncated_to_what_the_reader_accepts),
        cmocka_unit_test(an_unknown_key_is_tolerated),
        cmocka_unit_test(an_unknown_word_is_tolerated),
        cmocka_unit_test(every_word_survives_a_round_trip),
        cmocka_unit_test(a_status_without_a_notice_has_none),
        cmocka_unit_test(reading_from_bytes_equals_reading_from_a_tree),
        cmocka_unit_test(escapes_numbers_and_brackets_are_read_alike),
        cmocka_unit_test(written_messages_are_json_and_are_read_from_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
