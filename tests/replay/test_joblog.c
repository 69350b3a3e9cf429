/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "base/str.h"
#include "replay/joblog.h"
#include <stdlib.h>
#include <string.h>

#define MIDNIGHT 1785542400000 /* 2026-08-01 */

static struct joblog read_log(const char *file, const char *text)
{
    struct joblog l;
    struct err e;
    if (joblog_parse(file, text, strlen(text), &l, &e) != 0)
        fail_msg("%s", e.text);
    return l;
}

/* Expects a refusal with a text that contains `part`. */
static void refuse(const char *file, const char *text, size_t n, const char *part)
{
    struct joblog l;
    struct err e;
    if (joblog_parse(file, text, n, &l, &e) != ERR_INVALID)
        fail_msg("taken: %s", text);
    if (!strstr(e.text, part))
        fail_msg("\"%s\" says nothing of \"%s\"", e.text, part);
}

static void a_csv_log_has_what_jobs_requested(void **state)
{
    (void)state;
    struct joblog l = read_log("jobs.csv",
        "id,name,user,team,pool,submit,run,cpus,gpus,memory,nodes,time_limit,market,checkpoint,"
        "save,checkpoint_every,finish_by,colour\r\n"
        "2,\"say \"\"hi\"\", "
        "then\",bob,vision,,2026-08-01T00:00:10Z,90m,8,1,32G,2,2h,spot,no,,auto,2026-08-01 "
        "03:00:00,red\r\n"
        "\r\n"
        "1,train,ann,nlp,base,2026-08-01T00:00:00.500Z,3600,,,,,,,,7s,10m,,\r\n"
        "3,never,ann,nlp,base,2026-08-01T00:00:00Z,0,,,,,,,,,,,\r\n");
    assert_int_equal(l.n, 2);
    assert_int_equal(l.n_never_ran, 1);
    assert_string_equal(l.ignored, "\"colour\"");
    assert_string_equal(l.jobs[0].name, "train");
    assert_int_equal(l.jobs[0].submit.ms, MIDNIGHT + 500);
    assert_int_equal(l.jobs[0].work_ms, 3600000);
    assert_int_equal(l.jobs[0].need.cpus, 1);
    assert_int_equal(l.jobs[0].save_ms, 7000);
    assert_int_equal(l.jobs[0].every_ms, 600000);
    assert_false(wall_is_set(l.jobs[0].finish_by));
    assert_string_equal(l.jobs[1].name, "say \"hi\", then");
    assert_string_equal(l.jobs[1].team, "vision");
    assert_string_equal(l.jobs[1].pool, "");
    assert_int_equal(l.jobs[1].work_ms, 5400000);
    assert_int_equal(l.jobs[1].need.cpus, 8);
    assert_int_equal(l.jobs[1].need.gpus, 1);
    assert_int_equal(l.jobs[1].need.memory_mib, 32 << 10);
    assert_int_equal(l.jobs[1].nodes, 2);
    assert_int_equal(l.jobs[1].time_limit_ms, 7200000);
    assert_int_equal(l.jobs[1].wish, WISH_SPOT);
    assert_int_equal(l.jobs[1].save_ms, 0);
    assert_int_equal(l.jobs[1].every_ms, 0);
    assert_int_equal(l.jobs[1].finish_by.ms, MIDNIGHT + 3 * 3600000);
    joblog_select(&l, (struct wall){MIDNIGHT + 1000}, WALL_NONE);
    assert_int_equal(l.n, 1);
    joblog_select(&l, WALL_NONE, (struct wall){MIDNIGHT + 10000});
    assert_int_equal(l.n, 0);
    joblog_deinit(&l);
}

/* As `belay submit --input`, but without the address. */
static void a_log_has_the_input_of_jobs(void **state)
{
    (void)state;
    struct joblog l = read_log("jobs.csv",
        "submit,run,input,input_place\n0,1,140G,aws/us-east-1\n1,1,512M,\n2,1,1G,store\n3,1,,aws/"
        "us-east-1\n4,1,0,\n5,1,140G,aws/us-east-1\n");
    static const char *const constraints[] = {"input=aws/us-east-1:150323855360",
        "input=store:536870912", "input=store:1073741824", NULL, NULL};
    assert_int_equal(l.n, 6);
    for (int i = 0; i < 5; i++) {
        if (constraints[i])
            assert_string_equal(l.jobs[i].constraints, constraints[i]);
        else
            assert_null(l.jobs[i].constraints);
    }
    assert_ptr_equal(l.jobs[5].constraints, l.jobs[0].constraints);
    joblog_deinit(&l);
#define JOB                                                                                        \
    "{\"submitted_at\": \"2026-08-01T00:00:00Z\", \"started_at\": \"2026-08-01T00:00:00Z\", "      \
    "\"ended_at\": \"2026-08-01T01:00:00Z\", \"input\": "
    l = read_log(
        "jobs.json", "[" JOB "{\"place\": \"gcp/us-central1\", \"bytes\": 7}}, " JOB "null}]");
    assert_int_equal(l.n, 2);
    assert_string_equal(l.jobs[0].constraints, "input=gcp/us-central1:7");
    assert_null(l.jobs[1].constraints);
    joblog_deinit(&l);
    static const char *const wrong[] = {"{\"bytes\": 0}}]", "{\"bytes\": 1152921504606846977}}]",
        "{\"place\": \"aws\", \"bytes\": 7}}]", "{}}]", "7}]"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char text[400] = "[" JOB;
        strcat(text, wrong[i]);
        refuse("f.json", text, strlen(text), "jobs[0].input");
    }
}

/* sacct -P --format=JobID,JobName,User,Account,Submit,Start,End,Elapsed,State,AllocCPUS,ReqMem,
 * NNodes,Timelimit,AllocTRES */
static void output_of_sacct_is_a_log(void **state)
{
    (void)state;
    struct joblog l =
        read_log("sacct.txt", "JobID|JobName|User|Account|Submit|Start|End|Elapsed|State|AllocCPUS|"
                              "ReqMem|NNodes|Timelimit|AllocTRES\n"
                              "101|train|ann|nlp|2026-08-01T00:00:00|2026-08-01T00:05:00|2026-08-"
                              "02T02:05:00|1-02:00:00|COMPLETED|16|4Gc|2|2-00:00:00|"
                              "billing=16,cpu=16,gres/gpu=2,mem=64G,node=2\n"
                              "101.batch|batch||nlp|2026-08-01T00:05:00|2026-08-01T00:05:00|2026-"
                              "08-02T02:05:00|1-02:00:00|COMPLETED|8||1||\n"
                              "102|gone|bob|nlp|2026-08-01T00:00:00|None|2026-08-01T00:01:00|00:00:"
                              "00|CANCELLED by 7|0|64Gn|1|UNLIMITED|\n");
    assert_int_equal(l.n, 1);
    assert_int_equal(l.n_never_ran, 1);
    assert_int_equal(l.jobs[0].work_ms, 26 * 3600000);
    assert_int_equal(l.jobs[0].nodes, 2);
    assert_int_equal(l.jobs[0].need.cpus, 8);
    assert_int_equal(l.jobs[0].need.gpus, 1);
    assert_int_equal(l.jobs[0].need.memory_mib, 32 << 10);
    assert_int_equal(l.jobs[0].time_limit_ms, 48 * 3600000);
    assert_string_equal(l.jobs[0].team, "nlp");
    joblog_deinit(&l);
}

/* Memory of all nodes together, as a fraction of a unit; and a separator after the last column, as
 * printed by sacct -p. */
static void output_of_newer_sacct_is_a_log(void **state)
{
    (void)state;
    struct joblog l =
        read_log("sacct.txt", "\xEF\xBB\xBFJobID|Submit|Elapsed|AllocCPUS|ReqMem|NNodes|\n"
                              "1|2026-08-01T00:00:00|01:00:00|4|7.50G|1|\n"
                              "2|2026-08-01T00:00:01|01:00:00|4|128G|4|\n"
                              "3|2026-08-01T00:00:02|01:00:00|4|1.50Gn|2|\n"
                              "4|2026-08-01T00:00:03|01:00:00|4|1000.5Mc|2|\n"
                              "5|2026-08-01T00:00:04|01:00:00|4|0|1|\n"
                              "6|2026-08-01T00:00:05|01:00:00|4|512.50K|1|\n");
    static const int64_t mib[] = {7680, 32 << 10, 1536, 2002, 0, 1};
    assert_int_equal(l.n, 6);
    assert_string_equal(l.ignored, "");
    for (int i = 0; i < 6; i++)
        assert_int_equal(l.jobs[i].need.memory_mib, mib[i]);
    joblog_deinit(&l);
    static const char *const wrong[] = {".5G", "1.G", "1.5.5G", "99999999999.5T", "-1.5G", "1.5X"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char text[100] = "Submit|Elapsed|ReqMem\n0|1|";
        strcat(text, wrong[i]);
        refuse("f.csv", text, strlen(text), "f.csv:2: ReqMem: expected a memory size");
    }
}

/* "+8h" counts from the submit, as in belay submit. */
static void deadlines_may_be_relative_to_the_submit(void **state)
{
    (void)state;
    struct joblog l =
        read_log("x", "submit,run,finish_by,deadline\n10,1h,+8h,\n20,1h,,+90\n30,1h,50,\n");
    assert_int_equal(l.jobs[0].finish_by.ms, 10000 + 8 * 3600000);
    assert_false(l.jobs[0].ends_late);
    assert_int_equal(l.jobs[1].finish_by.ms, 20000 + 90 * 60000);
    assert_true(l.jobs[1].ends_late);
    assert_int_equal(l.jobs[2].finish_by.ms, 50000);
    joblog_deinit(&l);
    static const char soon[] = "submit,run,finish_by\n10,1h,+soon\n",
                      never[] = "submit,run,finish_by\n,1h,+8h\n";
    refuse("f.csv", soon, sizeof soon - 1, "f.csv:2: finish_by: expected a duration");
    static const char bare[] = "submit,run,finish_by\n10,1h,8h\n";
    refuse("f.csv", bare, sizeof bare - 1, "or +8h from its submit, found \"8h\"");
    refuse("f.csv", never, sizeof never - 1, "f.csv:2: submit: expected a time");
}

static void start_and_end_give_the_run_time(void **state)
{
    (void)state;
    struct joblog l = read_log("x", "submit;start;end\n10;20;50.5\n");
    assert_int_equal(l.n, 1);
    assert_int_equal(l.jobs[0].submit.ms, 10000);
    assert_int_equal(l.jobs[0].work_ms, 30500);
    joblog_deinit(&l);
}

static void malformed_logs_are_refused_with_their_line(void **state)
{
    (void)state;
    static const struct {
        const char *text, *part;
    } wrong[] = {
        {"", "empty"},
        {"\n\n", "empty"},
        {"# nothing\n", "empty"},
        {"a,b\n1,2\n", "f.csv:1: a log of jobs begins with"},
        {"submit\n0\n", "f.csv:1: there is no column \"run\""},
        {"submit,start\n0,1\n", "f.csv:1: there is no column \"run\""},
        {"submit,run,Elapsed\n0,1,1\n", "f.csv:1: two columns with the same meaning"},
        {"submit,run\n0,1\n0\n", "f.csv:3: expected 2 columns, as in the first line, found 1"},
        {"submit,run\n0,1,2\n", "f.csv:2: expected 2 columns"},
        {"submit,run\n,1\n", "f.csv:2: submit: expected a time"},
        {"submit,run\n-5,1\n", "f.csv:2: submit: expected a time"},
        {"submit,run\nnoon,1\n", "f.csv:2: submit: expected a time"},
        {"submit,run\n1e400,1\n", "f.csv:2: submit: expected a time"},
        {"submit,run\n0,long\n", "f.csv:2: run:"},
        {"submit,run\n0,-1\n", "f.csv:2: run: expected a duration such as 500ms"},
        {"submit,run\n0,400d\n", "f.csv:2: run: a job may run for at most 366 days"},
        {"submit,run,cpus\n0,1,0\n", "f.csv:2: cpus:"},
        {"submit,run,cpus\n0,1,many\n", "f.csv:2: cpus:"},
        {"submit,run,nodes\n0,1,257\n", "f.csv:2: nodes:"},
        {"submit,run,memory\n0,1,lots\n", "f.csv:2: memory:"},
        {"submit,run,market\n0,1,spott\n", "f.csv:2: market: expected one of any, spot, on-demand "
                                           "(nearest: spot), found \"spott\""},
        {"submit,run,checkpoint\n0,1,maybe\n", "f.csv:2: checkpoint:"},
        {"submit,run,checkpoint_every\n0,1,500ms\n",
            "f.csv:2: checkpoint_every: expected auto, or at least 1s"},
        {"submit,run,checkpoint_every\n0,1,often\n", "f.csv:2: checkpoint_every:"},
        {"submit,run,input\n0,1,lots\n", "f.csv:2: input:"},
        {"submit,run,input\n0,1,-1G\n", "f.csv:2: input:"},
        {"submit,run,input,input_place\n0,1,1G,here\n",
            "f.csv:2: input_place: expected the location of the input, aws/REGION, "
            "azure/REGION, gcp/REGION or store, found \"here\""},
        {"submit,run,input,input_place\n0,1,1G,mars/north\n", "f.csv:2: input_place:"},
        {"submit,run\n\"0,1\n",
            "f.csv:2: column 1 begins with a double quote, but does not end with one"},
        {"submit,run\n\"0\"0,1\n", "f.csv:2: expected a separator after the double quote"},
        {"{\"jobs\": 7}", "f.csv: expected {\"jobs\": [...]}"},
        {"[{}]", "jobs[0].submitted_at"},
        {"[{\"submitted_at\": \"2026-08-01T00:00:00Z\", \"cpus\": 0}]", "jobs[0].cpus"},
        {"[7]", "jobs[0]"},
        {"{", "f.csv"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        refuse("f.csv", wrong[i].text, strlen(wrong[i].text), wrong[i].part);
    refuse("f.csv", "submit,run\n0\0,1\n", 16, "f.csv:2: expected a line of text");
    char *line = malloc(70000);
    memset(line, 'x', 70000);
    memcpy(line, "submit,run\n", 11);
    refuse("f.csv", line, 70000, "f.csv:2: expected a line of text of at most");
    memset(line, ',', 70000);
    refuse("f.csv", line, 200, "f.csv:1: more than 128 columns");
    free(line);
}

static void the_standard_workload_format_is_read(void **state)
{
    (void)state;
    struct joblog l =
        read_log("a.swf", "\xEF\xBB\xBF; Version: 2.2\n; UnixStartTime: 1785542400\n;\n\n"
                          "  1   100 5 3600 32 -1 2048 64 7200 -1 1 12 3 -1 1 -1 -1 -1\n"
                          "2 50 -1 -1 -1 -1 -1 8 60 -1 5 12 3 -1 1 -1 -1 -1\n"
                          "3 60 0 30.5 3.5 -1 -1 -1 -1 -1 1 -1 -1 -1 1 -1 -1 -1\n");
    assert_int_equal(l.n, 2);
    assert_int_equal(l.n_never_ran, 1);
    assert_int_equal(l.jobs[0].submit.ms, MIDNIGHT + 60000);
    assert_int_equal(l.jobs[0].work_ms, 30500);
    assert_int_equal(l.jobs[0].need.cpus, 4);
    assert_string_equal(l.jobs[0].user, "");
    assert_int_equal(l.jobs[1].submit.ms, MIDNIGHT + 100000);
    assert_int_equal(l.jobs[1].need.cpus, 64);
    assert_int_equal(l.jobs[1].need.memory_mib, 128);
    assert_int_equal(l.jobs[1].time_limit_ms, 7200000);
    assert_true(l.jobs[1].is_spread);
    assert_string_equal(l.jobs[1].user, "user12");
    assert_string_equal(l.jobs[1].team, "group3");
    joblog_deinit(&l);
    static const struct {
        const char *text, *part;
    } wrong[] = {
        {"1 2 3\n", "a.swf:1: expected 18 numbers, found fewer, or other text"},
        {"; x\n1 100 5 3600 32 -1 2048 64 7200 -1 1 12 3 -1 1 -1 -1 -1 7\n",
            "a.swf:2: expected 18 numbers, found more"},
        {"1 100 5 36x0 32 -1 2048 64 7200 -1 1 12 3 -1 1 -1 -1 -1\n",
            "a.swf:1: field 4: expected a number"},
        {"1 nan 5 3600 32 -1 2048 64 7200 -1 1 12 3 -1 1 -1 -1 -1\n",
            "a.swf:1: field 2: expected a number"},
        {"1 -9 5 3600 32 -1 2048 64 7200 -1 1 12 3 -1 1 -1 -1 -1\n",
            "a.swf:1: field 2: expected seconds"},
        {"1 9 5 3600 32 -1 2048 1e9 7200 -1 1 12 3 -1 1 -1 -1 -1\n",
            "a.swf:1: field 8: expected at most"},
        {"1 9 5 1e12 32 -1 2048 1 7200 -1 1 12 3 -1 1 -1 -1 -1\n",
            "a.swf:1: field 4: expected at most 366 days"},
        {"; UnixStartTime: -1\n", "a.swf:1: UnixStartTime:"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        refuse("a.swf", wrong[i].text, strlen(wrong[i].text), wrong[i].part);
}

static void output_of_belay_list_is_read(void **state)
{
    (void)state;
    struct joblog l =
        read_log("jobs.json", "{\"jobs\": [{\"id\": 7, \"name\": \"train\", \"user\": \"ann\", "
                              "\"team\": null, \"pool\": \"base\", \"state\": \"ended\","
                              " \"cpus\": 8, \"memory_mib\": 1024, \"gpus\": 1, \"nodes\": 2, "
                              "\"market\": \"any\", \"time_limit_ms\": null,"
                              " \"checkpoint\": {\"method\": \"coop\", \"every_ms\": 90000}, "
                              "\"pause_ms\": 1500, \"lost_ms\": 60000,"
                              " \"submitted_at\": \"2026-08-01T00:00:00Z\", \"started_at\": "
                              "\"2026-08-01T00:01:00Z\", \"deadline_at\": \"2026-08-01T01:00:00Z\","
                              " \"ended_at\": \"2026-08-01T01:01:00Z\"},"
                              " {\"id\": 8, \"submitted_at\": \"2026-08-01T00:00:00Z\", "
                              "\"started_at\": null, \"ended_at\": null}]}");
    assert_int_equal(l.n, 1);
    assert_int_equal(l.n_never_ran, 1);
    assert_int_equal(l.jobs[0].work_ms, 3540000);
    assert_int_equal(l.jobs[0].need.gpus, 1);
    assert_int_equal(l.jobs[0].nodes, 2);
    assert_int_equal(l.jobs[0].save_ms, 1500);
    assert_int_equal(l.jobs[0].every_ms, 90000);
    assert_int_equal(l.jobs[0].finish_by.ms, MIDNIGHT + 3600000);
    joblog_deinit(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_csv_log_has_what_jobs_requested),
        cmocka_unit_test(a_log_has_the_input_of_jobs),
        cmocka_unit_test(output_of_sacct_is_a_log),
        cmocka_unit_test(output_of_newer_sacct_is_a_log),
        cmocka_unit_test(deadlines_may_be_relative_to_the_submit),
        cmocka_unit_test(start_and_end_give_the_run_time),
        cmocka_unit_test(malformed_logs_are_refused_with_their_line),
        cmocka_unit_test(the_standard_workload_format_is_read),
        cmocka_unit_test(output_of_belay_list_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
