/* SPDX-License-Identifier: Apache-2.0
 *
 * A job's spec as JSON: only non-default values are written, and they are read back unchanged;
 * invalid values are refused with their path.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/str.h"
#include "job/member.h"
#include "job/spec_json.h"
#include "job/spec_plain.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static json_t *parse(const char *text)
{
    json_t *v = NULL;
    struct err e = {0};
    if (json_parse(text, strlen(text), SIZE_MAX, &v, &e) != 0)
        fail_msg("%s: %s", text, e.text);
    return v;
}

static int from_text(const char *text, struct job_spec *s, struct err *e)
{
    json_t *v = parse(text);
    int rc = job_spec_from_json(v, s, e);
    json_decref(v);
    return rc;
}

static void assert_json(json_t *v, const char *text)
{
    char *own = v ? json_dump_text(v) : NULL;
    assert_non_null(own);
    assert_string_equal(own, text);
    free(own);
    json_decref(v);
}

/* Sets the row's member to a value other than the default, within its range. */
static void change(const struct job_attribute *a, struct job_spec *s)
{
    char *at = (char *)s + a->at;
    int64_t n = 0;
    bool *truth = (bool *)at;
    memcpy(&n, at, a->size < sizeof(n) ? a->size : sizeof(n));
    n = n == a->max ? a->min : a->max;
    switch (a->member_type) {
    case JOB_MEMBER_BOOL:
    case JOB_MEMBER_NOT:
        *truth = !*truth;
        break;
    case JOB_MEMBER_TEXT:
        memset(at, 'x', a->size - 1);
        break;
    case JOB_MEMBER_WORD:
        *(int32_t *)(void *)at = 1;
        break;
    case JOB_MEMBER_INT32:
        *(int32_t *)(void *)at = (int32_t)n;
        break;
    default:
        memcpy(at, &n, sizeof(n));
    }
}

static void check_row(const struct job_attribute *a)
{
    struct job_spec s = job_spec_default, again;
    struct err e = {0};
    change(a, &s);
    json_t *v = job_spec_to_json(&s, 0);
    if (!v)
        fail_msg("%s: nothing is written", a->name);
    memset(&again, 0xa5, sizeof(again));
    if (job_spec_from_json(v, &again, &e) != 0)
        fail_msg("%s: %s", a->name, e.text);
    json_t *second = job_spec_to_json(&again, 0);
    assert_true(json_equal(v, second));
    assert_memory_equal((char *)&s + a->at, (char *)&again + a->at, a->size);
    json_decref(v);
    json_decref(second);
}

static void each_row_round_trips(void **state)
{
    (void)state;
    size_t n = 0;
    for (size_t i = 0; i < job_attributes_count; i++)
        if (job_attributes[i].member_type != JOB_MEMBER_NONE) {
            check_row(&job_attributes[i]);
            n++;
        }
    for (size_t i = 0; i < job_stored_count; i++, n++)
        check_row(&job_stored[i]);
    assert_true(n > 30);
}

/* Any member that is added is stored: every byte of a spec belongs to a row, except padding. */
static void every_member_has_a_row(void **state)
{
    (void)state;
    char covered[sizeof(struct job_spec)] = {0};
    size_t gap = 0, last = 0;
    for (int k = 0; k < 2; k++) {
        const struct job_attribute *rows = k ? job_stored : job_attributes;
        for (size_t i = 0; i < (k ? job_stored_count : job_attributes_count); i++) {
            last = last > rows[i].at ? last : rows[i].at;
            for (size_t b = 0; b < rows[i].size; b++)
                if (covered[rows[i].at + b]++)
                    fail_msg("%s: another row has its member", rows[i].name);
        }
    }
    for (size_t b = 0; b < sizeof(covered); b++) {
        gap = covered[b] ? 0 : gap + 1;
        /* at most seven bytes of padding at the end, three elsewhere */
        if (gap >= (b > last ? sizeof(int64_t) : sizeof(int32_t)))
            fail_msg("the member at byte %zu has no row: job/attributes.c", b - gap + 1);
    }
}

static void a_plain_job_is_an_empty_document(void **state)
{
    (void)state;
    struct job_spec s = {0};
    struct err e;
    assert_null(job_spec_to_json(&job_spec_default, 0));
    assert_int_equal(from_text("{}", &s, &e), 0);
    assert_null(job_spec_to_json(&s, 0));
    assert_int_equal(s.need.cpus, 1);
    assert_int_equal(s.ckpt_keep, 3);
    assert_false(wall_is_set(s.begin_at));
    assert_string_equal(s.name, "job");
}

static void only_values_that_differ_from_defaults_are_written(void **state)
{
    (void)state;
    struct job_spec s = job_spec_default;
    s.keep_unmeetable = true;
    s.ckpt_keep = 5;
    s.method = CKPT_COOP;
    s.retries.n[RETRY_NODE_LOST] = 0;
    s.begin_at.ms = 0;
    STR_COPY(s.window, "night");
    assert_json(job_spec_to_json(&s, 0),
        "{\"checkpoint\":{\"method\":\"coop\",\"keep\":5},\"begin_at_ms\":0,"
        "\"kill_on_invalid_dep\":false,\"window\":\"night\",\"retry\":{\"node-lost\":0}}");
    assert_json(job_spec_to_json(&s, JOB_SHOWN | JOB_SHOWN_OR_NULL),
        "{\"begin_at_ms\":0,\"retry\":{\"node-lost\":0}}");
}

/* Ranges are those of the writer's version. */
static void ranges_are_checked_in_submits_only(void **state)
{
    (void)state;
    static const struct {
        const char *text, *why;
    } asked[] = {
        {"{\"cpus\": 0}", "spec.cpus: expected an integer in 1 .. 4096, found 0"},
        {"{\"gpus\": -1}", "spec.gpus: expected an integer in 0 .. 64, found -1"},
        {"{\"finish_by_ms\": 1}", "spec: unknown key"}, /* read separately */
        /* belongs in an object of its own */
        {"{\"checkpoint\": {\"keep\": 2}}", "spec: unknown key"},
        {"{\"urls\": 1}", "spec: unknown key"}, /* not an option */
    };
    for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
        struct job_spec s = job_spec_default;
        struct json_reader r;
        struct err e = {0};
        json_t *v = parse(asked[i].text);
        json_reader_init(&r, v, "spec", &e);
        job_spec_read(&r, "", &s);
        assert_int_equal(json_reader_finish(&r), ERR_INVALID);
        if (!str_starts(e.text, asked[i].why))
            fail_msg("%s: %s", asked[i].text, e.text);
        assert_int_equal(s.need.cpus, 1);
        assert_int_equal(from_text(asked[i].text, &s, &e), 0);
        json_decref(v);
    }
}

static void impossible_values_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *why;
    } bad[] = {
        {"{\"cpus\": 4294967297}", "cpus: expected an integer in -2147483648 .. 2147483647"},
        {"{\"cpus\": 1.0}", "cpus: expected an integer in"},
        {"{\"market\": \"free\"}", "market: expected"},
        {"{\"nise\": 1}", "unknown key \"nise\""},
        {"{\"checkpoint\": 1}", "unknown key"},
        {"{\"checkpoint\": {\"keep\": \"\"}}", "checkpoint.keep: expected an integer in"},
        {"{\"checkpoint\": {\"kept\": 1}}", "checkpoint: unknown key \"kept\""},
        {"{\"check\": {\"keep\": 1}}", "unknown key \"check\""},
        {"{\"checkpoint.keep\": 4}", "unknown key"},
        {"{\"depends_any\": 1}", "depends_any: expected true or false, found 1"},
        {"{\"window\": \"w\\u0000x\"}", ""},
        {"[]", "expected an object, found an array"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct job_spec s = job_spec_default;
        struct err e = {0};
        json_t *v = json_loads(bad[i].text, JSON_ALLOW_NUL, NULL);
        s.nice = 3;
        assert_int_equal(job_spec_from_json(v, &s, &e), ERR_INVALID);
        if (!str_starts(e.text, bad[i].why))
            fail_msg("%s: %s", bad[i].text, e.text);
        assert_int_equal(s.nice, 3); /* untouched */
        json_decref(v);
    }
}

/* Each row alone and all together: the fast reader accepts them and reads the same values. */
static void stored_specs_are_read_without_a_json_tree(void **state)
{
    (void)state;
    struct job_spec all = job_spec_default;
    const struct job_attribute *a;
    for (size_t i = 0;; i++) {
        struct job_spec one = job_spec_default, slow, fast;
        struct err e = {0};
        a = job_member_row(i);
        if (a && a->member_type == JOB_MEMBER_NONE)
            continue;
        if (a) {
            change(a, &one);
            change(a, &all);
        }
        json_t *v = job_spec_to_json(a ? &one : &all, 0);
        char *text = json_dump_text(v);
        assert_int_equal(job_spec_from_json(v, &slow, &e), 0);
        /* the largest numbers have too many digits for the fast reader */
        const bool is_long = a ? a->max > 1000000000000000000 : true;
        if (!job_spec_read_plain(text, strlen(text), &fast) && !is_long)
            fail_msg("not read: %s", text);
        if (!is_long)
            assert_memory_equal(&slow, &fast, sizeof(slow));
        /* a truncated text is left to the general reader */
        for (size_t n = 0; n < strlen(text); n++)
            assert_false(job_spec_read_plain(text, n, &fast));
        free(text);
        json_decref(v);
        if (!a)
            break;
    }
}

static void the_fast_reader_refuses_all_but_plain_specs(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "{", "{}", "[]", "null", "{ \"nice\":1}",
        "{\"nice\":1} ", "{\"nice\":01}", "{\"nice\":-0}", "{\"nice\":1.0}", "{\"nice\":1e1}",
        "{\"nice\":99999999999}", "{\"nice\":-}", "{\"nice\":\"1\"}", "{\"nice\":null}",
        "{\"nice\":1,\"nice\":1}", "{\"nice\":1,\"name\":\"a\"}", "{\"nice\":1,}",
        "{\"begin_at_ms\":12345678901234567890}", "{\"on_loss\":\"wai\"}",
        "{\"on_loss\":\"waits\"}", "{\"name\":\"\xc3\xa9\"}", "{\"name\":\"a\\nb\"}",
        "{\"name\":\"\x01\"}", "{\"checkpoint\":{}}", "{\"checkpoint\":1}",
        "{\"checkpoint.keep\":4}", "{\"check\":{\"keep\":4}}", "{\"\":{\"nice\":4}}",
        "{\"checkpoint\":{\"every_ms\":1},\"checkpoint\":{\"keep\":2}}",
        "{\"checkpoint\":{\"keep\":{\"every\":1}}}", "{\"depends_any\":1}",
        "{\"depends_any\":truer}", "{\"cpu\":1}"};
    char text[256];
    struct job_spec s;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (job_spec_read_plain(texts[i], strlen(texts[i]), &s))
            fail_msg("read: %s", texts[i]);
    /* a text of the maximum length, and one byte more */
    for (size_t n = sizeof(s.name) - 1; n <= sizeof(s.name); n++) {
        const int len = snprintf(text, sizeof(text), "{\"name\":\"%0*d\"}", (int)n, 0);
        assert_int_equal(job_spec_read_plain(text, (size_t)len, &s), n < sizeof(s.name));
    }
}

static void absent_values_are_shown_as_null(void **state)
{
    (void)state;
    struct job_spec s = job_spec_default;
    json_t *o = json_object();
    s.deadline_ms = 1000;
    s.time_limit_ms = 60000;
    job_spec_show(&s, o);
    assert_true(json_is_null(json_object_get(o, "begin_at")));
    assert_true(json_is_null(json_object_get(o, "window")));
    assert_true(json_is_null(json_object_get(o, "max_uusd")));
    assert_string_equal(
        json_string_value(json_object_get(o, "deadline_at")), "1970-01-01T00:00:01Z");
    assert_int_equal(json_integer_value(json_object_get(o, "time_limit_ms")), 60000);
    assert_int_equal(json_integer_value(json_object_get(o, "memory_mib")), 0);
    assert_true(json_is_true(json_object_get(o, "kill_on_invalid_dep")));
    assert_int_equal(
        json_integer_value(json_object_get(json_object_get(o, "checkpoint"), "keep")), 3);
    assert_null(json_object_get(json_object_get(o, "checkpoint"), "signal"));
    assert_null(json_object_get(o, "retry"));
    json_decref(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_row_round_trips),
        cmocka_unit_test(every_member_has_a_row),
        cmocka_unit_test(a_plain_job_is_an_empty_document),
        cmocka_unit_test(only_values_that_differ_from_defaults_are_written),
        cmocka_unit_test(ranges_are_checked_in_submits_only),
        cmocka_unit_test(impossible_values_are_refused),
        cmocka_unit_test(stored_specs_are_read_without_a_json_tree),
        cmocka_unit_test(the_fast_reader_refuses_all_but_plain_specs),
        cmocka_unit_test(absent_values_are_shown_as_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
