/* SPDX-License-Identifier: Apache-2.0
 *
 * Job specifications: required members, defaults, every limit, every malformed form.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/json.h"
#include "base/mem.h"
#include "scheduler/api/jobspec.h"
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static int parse(const char *text, struct jobspec *s, struct err *e)
{
    json_t *v = NULL;
    *s = (struct jobspec){0};
    *e = (struct err){0};
    int rc = json_parse(text, strlen(text), JOBSPEC_BYTES_MAX, &v, e);
    if (rc != 0)
        fail_msg("not JSON: %s in %.200s", e->text, text);
    rc = jobspec_parse(v, s, e);
    json_decref(v);
    return rc;
}

static struct jobspec parsed(const char *text)
{
    struct jobspec s;
    struct err e;
    if (parse(text, &s, &e) != 0)
        fail_msg("%s", e.text);
    return s;
}

static void only_script_and_cwd_are_required(void **state)
{
    (void)state;
    struct jobspec s = parsed("{\"script\": \"#!/bin/sh\\n\", \"cwd\": \"/\"}");
    assert_string_equal(s.row.spec.name, "job");
    assert_string_equal(s.row.user, "");
    assert_string_equal(s.row.spec.pool, "");
    assert_int_equal(s.row.spec.need.cpus, 1);
    assert_int_equal(s.row.spec.need.gpus, 0);
    assert_int_equal(s.row.spec.need.memory_mib, 0);
    assert_int_equal(s.row.spec.time_limit_ms, 0);
    assert_int_equal(s.row.spec.market, WISH_ANY);
    assert_int_equal(s.row.spec.method, CKPT_NONE);
    assert_int_equal(s.row.spec.ckpt_every_ms, CKPT_EVERY_AUTO);
    assert_int_equal(s.row.spec.ckpt_keep, 3);
    assert_int_equal(s.row.spec.ckpt_keep_every, 0);
    assert_int_equal(s.row.spec.ckpt_after, AFTER_AUTO);
    assert_int_equal(s.row.spec.ckpt_signal, SIGUSR1);
    assert_int_equal(s.row.spec.retries.n[RETRY_FAILED], 0);
    assert_string_equal(s.texts.args_json, "[]");
    assert_string_equal(s.texts.env_json, "{}");
    assert_string_equal(s.texts.labels_json, "{}");
    assert_string_equal(s.texts.launch_json, "{}");
    jobspec_deinit(&s);
    assert_null(s.texts.script);
}

static void everything_of_the_manual_is_read(void **state)
{
    (void)state;
    struct jobspec s = parsed(
        "{\"name\": \"train\", \"script\": \"#!/bin/sh\\necho hi\\n\", \"args\": [\"--lr\", "
        "\"0.1\", \"\"], \"cwd\": \"/home/ann/exp\", \"env\": {\"SEED\": \"1\", \"_x9\": \"\"},"
        " \"cpus\": 8, \"nodes\": 8, \"nodes_min\": 2, \"on_loss\": \"wait\", \"script_on\":"
        " \"first\", \"memory_mib\": 1024, \"gpus\": 2, \"pool\": \"burst\", \"market\": \"spot\","
        " \"time_limit_ms\": 3600000, \"checkpoint\": {\"method\": \"coop\", \"every_ms\": 60000,"
        " \"keep\": 5, \"keep_every\": 7, \"after\": \"last\", \"signal\": 12}, \"retries\": 4, "
        "\"labels\": {\"team\": \"nlp\"},"
        " \"launch\": {\"output\": \"%x-%j.out\", \"all_tasks\": 9, \"tasks\": 4, "
        "\"cpus_per_task\": 2, \"slurm\": true, \"open_mode\": \"append\"}}");
    assert_string_equal(s.row.spec.name, "train");
    assert_string_equal(s.row.spec.pool, "burst");
    assert_int_equal(s.row.spec.need.cpus, 8);
    assert_int_equal(s.row.spec.need.gpus, 2);
    assert_int_equal(s.row.spec.nodes_min, 2);
    assert_int_equal(s.row.spec.on_loss, LOSS_WAIT);
    assert_int_equal(s.row.spec.script_on, SCRIPT_ON_FIRST);
    assert_int_equal(s.row.spec.need.memory_mib, 1024);
    assert_int_equal(s.row.spec.time_limit_ms, 3600000);
    assert_int_equal(s.row.spec.market, WISH_SPOT);
    assert_int_equal(s.row.spec.method, CKPT_COOP);
    assert_int_equal(s.row.spec.ckpt_every_ms, 60000);
    assert_int_equal(s.row.spec.ckpt_keep, 5);
    assert_int_equal(s.row.spec.ckpt_keep_every, 7);
    assert_int_equal(s.row.spec.ckpt_after, AFTER_LAST);
    assert_int_equal(s.row.spec.ckpt_signal, 12);
    assert_int_equal(s.row.spec.retries.n[RETRY_FAILED], 4);
    assert_string_equal(s.texts.script, "#!/bin/sh\necho hi\n");
    assert_string_equal(s.texts.cwd, "/home/ann/exp");
    assert_string_equal(s.texts.args_json, "[\"--lr\",\"0.1\",\"\"]");
    assert_string_equal(s.texts.env_json, "{\"SEED\":\"1\",\"_x9\":\"\"}");
    assert_string_equal(s.texts.labels_json, "{\"team\":\"nlp\"}");
    assert_string_equal(s.texts.launch_json,
        "{\"output\":\"%x-%j.out\",\"all_tasks\":9,\"tasks\":4,\"cpus_per_"
        "task\":2,\"slurm\":true,\"open_mode\":\"append\"}");
    jobspec_deinit(&s);
}

#define WITH(member) "{\"script\": \"#!/bin/sh\", \"cwd\": \"/\", " member "}"

static const struct refused {
    const char *text, *expected;
} refused[] = {
    {"[]", "spec: "},
    {"\"x\"", "spec: "},
    {"{}", "script"},
    {"{\"script\": \"#!/bin/sh\"}", "cwd"},
    {"{\"cwd\": \"/\"}", "script"},
    {"{\"script\": null, \"cwd\": \"/\"}", "script"},
    {"{\"script\": \"echo\", \"cwd\": \"/\"}", "spec.script: must begin with \"#!\""},
    {"{\"script\": \"\", \"cwd\": \"/\"}", "spec.script"},
    {"{\"script\": 4, \"cwd\": \"/\"}", "spec.script"},
    {"{\"script\": \"#!/bin/sh\", \"cwd\": \"exp\"}",
        "spec.cwd: expected an absolute path, found \"exp\""},
    {"{\"script\": \"#!/bin/sh\", \"cwd\": \"\"}", "spec.cwd"},
    {"{\"script\": \"#!/bin/sh\", \"cwd\": \"a\\u001b[2J\"}",
        "spec.cwd: expected an absolute path, found \"a?[2J\""},
    {WITH("\"cpu\": 1"), "did you mean \"cpus\"?"},
    {WITH("\"cpus\": \"four\""), "spec.cpus: expected an integer in 1 .. 4096, found \"four\""},
    {WITH("\"cpus\": 0"), "spec.cpus"},
    {WITH("\"cpus\": 4097"), "spec.cpus"},
    {WITH("\"cpus\": 1.0"), "spec.cpus"},
    {WITH("\"cpus\": 9223372036854775807"), "spec.cpus"},
    {WITH("\"on_loss\": \"wait\""),
        "spec.on_loss: is for jobs whose number of nodes is a range, and this one always has 1"},
    {WITH("\"nodes\": 4, \"on_loss\": \"shrink\""),
        "this one always has 4: give a range, as --nodes 2-8"},
    {WITH("\"nodes\": 4, \"nodes_min\": 4, \"on_loss\": \"wait\""), "spec.on_loss"},
    {WITH("\"nodes\": 4, \"nodes_min\": 2, \"on_loss\": \"grow\""), "spec.on_loss"},
    {WITH("\"nodes\": 4, \"script_on\": \"last\""), "spec.script_on"},
    {WITH("\"nodes\": 4, \"script_on\": \"first\", \"launch\": {\"image\": \"debian\"}"),
        "the tasks on the other nodes would not be in it"},
    {WITH("\"nodes\": 4, \"launch\": {\"all_tasks\": 4}"),
        "is for jobs of several nodes whose script starts on the first"},
    {WITH("\"nodes\": 4, \"script_on\": \"first\", \"launch\": {\"all_tasks\": 0}"), "all_tasks"},
    {WITH("\"depends\": [{\"kind\": \"afterok\", \"job\": 4, \"task\": -1}]"), "task"},
    {WITH("\"depends\": [{\"kind\": \"afterok\", \"job\": 4, \"task\": 1000000}]"), "task"},
    {WITH("\"depends\": [{\"kind\": \"aftercorr\", \"job\": 4, \"task\": 1}]"), "task"},
    {WITH("\"depends\": [{\"kind\": \"aftercorr\"}]"), "job"},
    {WITH("\"depends\": [{\"kind\": \"afterok\", \"job\": 4, \"task\": \"7\"}]"), "task"},
    {WITH("\"depends\": [{\"kind\": \"singleton\", \"task\": 7}]"), "singleton takes no job"},
    {WITH("\"gpus\": -1"), "spec.gpus"},
    {WITH("\"gpus\": 65"), "spec.gpus"},
    {WITH("\"gpus\": 1, \"gpu_model\": \"-1\""), "spec.gpu_model"},
    {WITH("\"resources\": {\"lego\": -1}"), "spec.resources"},
    {WITH("\"memory_mib\": -1"), "spec.memory_mib"},
    {WITH("\"gpu_model\": \"1g.10gb\""), "spec.gpu_model"},
    {WITH("\"gpus\": 1, \"resources\": {\"1g.10gb\": 1}"), "spec.gpus"},
    {WITH("\"exclusive\": 1"), "spec.exclusive"},
    {WITH("\"memory_mib\": -1"), "spec.memory_mib"},
    {WITH("\"memory_mib\": 1073741825"), "spec.memory_mib"},
    {WITH("\"time_limit_ms\": -1"), "spec.time_limit_ms"},
    {WITH("\"retries\": 1001"), "spec.retries"},
    {WITH("\"retries\": 1, \"retry\": {\"failed\": 1}"),
        "spec.retries: is the same as retry.failed"},
    {WITH("\"retry\": {\"failed\": 1001}"), "spec.retry.failed"},
    {WITH("\"retry\": {\"failed\": -1}"), "spec.retry.failed"},
    {WITH("\"retry\": {\"faild\": 1}"), "did you mean \"failed\"?"},
    {WITH("\"retry\": 3"), "spec.retry"},
    {WITH("\"requeue\": 1"), "spec.requeue"},
    {WITH("\"market\": \"reserved\""), "spec.market"},
    {WITH("\"market\": \"spott\""), "spot"},
    {WITH("\"launch\": []"), "spec.launch"},
    {WITH("\"launch\": {\"outputs\": \"x\"}"), "did you mean \"output\"?"},
    {WITH("\"launch\": {\"output\": \"a\\nb\"}"),
        "spec.launch.output: must not contain control characters"},
    {WITH("\"launch\": {\"input\": 3}"), "spec.launch.input"},
    {WITH("\"launch\": {\"open_mode\": \"w\"}"), "spec.launch.open_mode"},
    {WITH("\"launch\": {\"workdir\": \"x\"}"), "spec.launch.workdir: expected the hash"},
    {WITH("\"launch\": {\"image\": \"a b\"}"), "spec.launch.image: expected an image"},
    {WITH("\"launch\": {\"image\": \"a\\n\"}"), "spec.launch.image: expected an image"},
    {WITH("\"launch\": {\"image\": \"--privileged\"}"), "spec.launch.image: must not begin with -"},
    {WITH("\"launch\": {\"image\": 3}"), "spec.launch.image"},
    {WITH("\"checkpoint\": {\"method\": \"criu\"}, \"launch\": {\"image\": \"a\"}"),
        "spec.launch.image"},
    {WITH("\"launch\": {\"tasks\": 4097}"), "spec.launch.tasks"},
    {WITH("\"cpus\": 3, \"launch\": {\"tasks\": 2, \"cpus_per_task\": 2}"),
        "spec.launch.tasks: 2 of 2 CPUs each are more than the 3 CPUs of a node"},
    {WITH("\"checkpoint\": {\"method\": \"criu\"}, \"launch\": {\"error\": \"e\"}"),
        "spec.launch.error"},
    {WITH("\"name\": \"\""), "spec.name: must not be empty"},
    {WITH("\"name\": \"a\\nb\""), "spec.name: must not contain control characters"},
    {WITH("\"name\": \"\\u009b31m\""), "spec.name: must not contain control characters"}, /* CSI */
    {WITH("\"name\": \"a\\u202egnp.exe\""), "marks of text direction"},
    {WITH("\"name\": \"\\u2069\""), "marks of text direction"},
    {WITH("\"name\": \"a\\u200f\""), "marks of text direction"},
    {WITH("\"launch\": {\"error\": \"a\\u2066b\"}"), "marks of text direction"},
    {WITH("\"name\": \"a\\u007fb\""), "spec.name"},
    {WITH("\"pool\": \"../x\""), "spec.pool: \"../x\" is not a pool's name"},
    {WITH("\"args\": \"x\""), "spec.args"},
    {WITH("\"args\": [1]"), "spec.args: expected texts"},
    {WITH("\"args\": [[\"x\"]]"), "spec.args"},
    {WITH("\"env\": []"), "spec.env"},
    {WITH("\"env\": {\"A\": 1}"), "spec.env: A: expected a text"},
    {WITH("\"env\": {\"\": \"1\"}"), "spec.env"},
    {WITH("\"env\": {\"1A\": \"1\"}"), "spec.env: \"1A\" is not a variable's name"},
    {WITH("\"env\": {\"A=B\": \"1\"}"), "spec.env"},
    {WITH("\"env\": {\"a\\nb\": \"1\"}"), "spec.env: \"a?b\" is not"},
    {WITH("\"pool\": \"a\\nb\""), "spec.pool: \"a?b\" is not a pool's name"},
    {WITH("\"labels\": {\"a b\": \"1\"}"), "spec.labels: \"a b\" is not a label's name"},
    {WITH("\"labels\": {\"a\": null}"), "spec.labels"},
    {WITH("\"checkpoint\": \"coop\""), "spec.checkpoint"},
    {WITH("\"checkpoint\": {\"method\": \"dmtcp\"}"), "spec.checkpoint.method"},
    {WITH("\"checkpoint\": {\"methd\": \"coop\"}"), "did you mean \"method\"?"},
    {WITH("\"checkpoint\": {\"at\": \"06:00,6\"}"),
        "spec.checkpoint.at: expected times of the day"},
    {WITH("\"checkpoint\": {\"at\": 6}"), "spec.checkpoint.at"},
    {WITH("\"checkpoint\": {\"every_ms\": 999}"), "expected 0 (auto) or at least 1000, found 999"},
    {WITH("\"checkpoint\": {\"every_ms\": -1}"), "spec.checkpoint.every_ms"},
    {WITH("\"checkpoint\": {\"keep\": 0}"), "spec.checkpoint.keep"},
    {WITH("\"checkpoint\": {\"keep\": 1001}"), "spec.checkpoint.keep"},
    {WITH("\"checkpoint\": {\"after\": \"never\"}"), "spec.checkpoint.after"},
    {WITH("\"checkpoint\": {\"keep_every\": -1}"), "spec.checkpoint.keep_every"},
    {WITH("\"checkpoint\": {\"keep_every\": \"2\"}"), "spec.checkpoint.keep_every"},
    {WITH("\"checkpoint\": {\"signal\": 9}"), "SIGKILL"},
    {WITH("\"checkpoint\": {\"signal\": 19}"), "SIGSTOP"},
    {WITH("\"checkpoint\": {\"signal\": 65}"), "spec.checkpoint.signal"},
    {WITH("\"nodelist\": \"n[\""), "spec.nodelist"},
    {WITH("\"exclude\": \"a b\""), "spec.exclude"},
    {WITH("\"exclude\": [\"a\"]"), "spec.exclude"},
    {WITH("\"input\": \"s3://lab/x\""), "spec.input"},
    {WITH("\"input\": {}"), "spec.input"},
    {WITH("\"input\": {\"bytes\": 0}"), "spec.input"},
    {WITH("\"input\": {\"bytes\": 1, \"size\": 1}"), "spec.input"},
    {WITH("\"input\": {\"bytes\": 1, \"place\": \"aws\"}"), "spec.input"},
    {WITH("\"input\": {\"bytes\": 1, \"place\": \"nowhere/x\"}"), "spec.input"},
    {WITH("\"deadline_at_ms\": 0"), "spec.deadline_at_ms"},
    {WITH("\"deadline_at_ms\": \"now\""), "spec.deadline_at_ms"},
    {WITH("\"kill_on_invalid_dep\": \"no\""), "spec.kill_on_invalid_dep"},
    {WITH("\"launch\": {\"grace\": 10}"), "spec.launch.grace"},
    {WITH("\"launch\": {\"grace\": {\"signal\": 10}}"), "spec.launch.grace.before_ms"},
    {WITH("\"launch\": {\"grace\": {\"signal\": 0, \"before_ms\": 1}}"),
        "spec.launch.grace.signal"},
    {WITH("\"launch\": {\"grace\": {\"signal\": 1, \"before_ms\": 65535001}}"),
        "spec.launch.grace.before_ms"},
    {WITH("\"launch\": {\"grace\": {\"signal\": 1, \"before_ms\": 1, \"script_only\": 1}}"),
        "spec.launch.grace.script_only"},
};

static void an_image_asks_for_nodes_that_can_run_it(void **state)
{
    static const char *const cases[][2] = {
        {"\"launch\": {\"image\": \"python:3.12\"}", "constraint=apptainer|podman"},
        {"\"launch\": {\"image\": \"/a/b.sif\"}", "constraint=apptainer"},
        {"\"launch\": {\"image\": \"x\"}, \"constraint\": \"ib|roce\"",
            "constraint=(ib|roce)&(apptainer|podman)"},
        {"\"launch\": {\"image\": \"\"}", ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char *text = mem_printf("{\"script\": \"#!/bin/sh\\n\", \"cwd\": \"/\", %s}", cases[i][0]);
        struct jobspec s = parsed(text);
        assert_string_equal(s.texts.constraints, cases[i][1]);
        jobspec_deinit(&s);
        free(text);
    }
}

static void nodes_and_a_deadline_are_read(void **state)
{
    (void)state;
    struct jobspec s = parsed("{\"script\": \"#!/bin/sh\\n\", \"cwd\": \"/\", \"nodelist\": "
                              "\"n3,n1,n2\", \"exclude\": \"n2\","
                              "\"deadline_at_ms\": 1790000000000, \"kill_on_invalid_dep\": false}");
    assert_string_equal(s.texts.constraints, "nodes=n[1-3] exclude=n2");
    assert_int_equal(s.row.spec.deadline_ms, 1790000000000);
    assert_true(s.row.spec.keep_unmeetable);
    jobspec_deinit(&s);
}

static void what_is_malformed_is_refused_with_its_path(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        struct jobspec s;
        struct err e;
        int rc = parse(refused[i].text, &s, &e);
        if (rc != ERR_INVALID || e.kind != ERR_INVALID)
            fail_msg("taken, or refused as %d: %s", rc, refused[i].text);
        if (!strstr(e.text, refused[i].expected))
            fail_msg(
                "\"%s\" is not in \"%s\", for %s", refused[i].expected, e.text, refused[i].text);
        assert_null(s.texts.script);
    }
}

/* ---- limits ---- */

static json_t *minimal(void)
{
    return json_pack("{s:s,s:s}", "script", "#!/bin/sh", "cwd", "/");
}

static char *repeat(char c, size_t n)
{
    char *s = mem_alloc(n + 1);
    memset(s, c, n);
    return s;
}

/* Takes ownership of spec. */
static void check(json_t *spec, bool taken, const char *expected)
{
    struct jobspec s = {0};
    struct err e = {0};
    int rc = jobspec_parse(spec, &s, &e);
    if (taken && rc != 0)
        fail_msg("refused: %s", e.text);
    if (!taken && (rc != ERR_INVALID || !strstr(e.text, expected)))
        fail_msg("%d: \"%s\" is not in \"%s\"", rc, expected, e.text);
    jobspec_deinit(&s);
    json_decref(spec);
}

static json_t *with_text(const char *key, const char *before, char fill, size_t n)
{
    json_t *o = minimal();
    char *tail = repeat(fill, n);
    char *text = mem_printf("%s%s", before, tail);
    json_object_set_new(o, key, json_string(text));
    free(text);
    free(tail);
    return o;
}

static void texts_are_taken_up_to_their_limit(void **state)
{
    (void)state;
    check(with_text("script", "#!", 'x', JOBSPEC_SCRIPT_MAX - 2), true, NULL);
    check(with_text("script", "#!", 'x', JOBSPEC_SCRIPT_MAX - 1), false, "spec.script");
    check(with_text("cwd", "/", 'x', 4094), true, NULL);
    check(with_text("cwd", "/", 'x', 4095), false, "spec.cwd");
    check(with_text("name", "", 'x', 63), true, NULL);
    check(with_text("name", "", 'x', 64), false, "spec.name");
    check(with_text("pool", "", 'x', 63), true, NULL);
    check(with_text("pool", "", 'x', 64), false, "spec.pool");
    check(with_text("pool", "a,", 'x', 61), true, NULL);
    check(with_text("pool", "a,", 'x', 62), false, "spec.pool");
}

static json_t *with_entries(const char *key, size_t n, const char *prefix)
{
    json_t *o = minimal(), *entries = json_object();
    for (size_t i = 0; i < n; i++) {
        char name[32];
        snprintf(name, sizeof(name), "%s%zu", prefix, i);
        json_object_set_new(entries, name, json_string("v"));
    }
    json_object_set_new(o, key, entries);
    return o;
}

static json_t *with_args(size_t n, size_t bytes)
{
    json_t *o = minimal(), *args = json_array();
    char *text = repeat('x', bytes);
    for (size_t i = 0; i < n; i++)
        json_array_append_new(args, json_string(text));
    json_object_set_new(o, "args", args);
    free(text);
    return o;
}

static json_t *with_entry(const char *key, size_t name_bytes, size_t value_bytes)
{
    json_t *o = minimal();
    char *name = repeat('A', name_bytes), *value = repeat('x', value_bytes);
    json_object_set_new(o, key, json_pack("{s:s}", name, value));
    free(name);
    free(value);
    return o;
}

static void lists_are_taken_up_to_their_limit(void **state)
{
    (void)state;
    check(with_args(JOBSPEC_ARGS_MAX, 1), true, NULL);
    check(with_args(JOBSPEC_ARGS_MAX + 1, 1), false, "spec.args");
    check(with_args(1, 65536), true, NULL);
    check(with_args(1, 65537), false, "spec.args");
    check(with_entries("env", JOBSPEC_ENV_MAX, "E"), true, NULL);
    check(with_entries("env", JOBSPEC_ENV_MAX + 1, "E"), false, "at most 1000 entries, found 1001");
    check(with_entry("env", 256, 65536), true, NULL);
    check(with_entry("env", 257, 1), false, "spec.env");
    check(with_entry("env", 1, 65537), false, "spec.env");
    check(with_entries("labels", JOBSPEC_LABELS_MAX, "l"), true, NULL);
    check(
        with_entries("labels", JOBSPEC_LABELS_MAX + 1, "l"), false, "at most 64 entries, found 65");
    check(with_entry("labels", 63, 1), true, NULL);
    check(with_entry("labels", 64, 1), false, "spec.labels");
}

static void numbers_are_taken_up_to_their_limit(void **state)
{
    (void)state;
    struct jobspec s =
        parsed(WITH("\"cpus\": 4096, \"gpus\": 64, \"memory_mib\": 1073741824, \"retries\": 1000,"
                    "\"checkpoint\": {\"every_ms\": 1000, \"keep\": 1000, \"signal\": 64}"));
    assert_int_equal(s.row.spec.need.cpus, 4096);
    assert_int_equal(s.row.spec.need.memory_mib, 1073741824);
    jobspec_deinit(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_script_and_cwd_are_required),
        cmocka_unit_test(everything_of_the_manual_is_read),
        cmocka_unit_test(an_image_asks_for_nodes_that_can_run_it),
        cmocka_unit_test(nodes_and_a_deadline_are_read),
        cmocka_unit_test(what_is_malformed_is_refused_with_its_path),
        cmocka_unit_test(texts_are_taken_up_to_their_limit),
        cmocka_unit_test(lists_are_taken_up_to_their_limit),
        cmocka_unit_test(numbers_are_taken_up_to_their_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
