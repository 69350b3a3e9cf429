/* SPDX-License-Identifier: Apache-2.0
 *
 * Slurm's formats: output formats, lists of hosts, times, states, and malformed input.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "cli/since.h"
#include "cli/slurm/scontrol_update.h"
#include "cli/flags/directives.h"
#include "cli/slurm/slurm.h"
#include "cli/slurm/slurm_env.h"
#include "cli/submission.h"
#include "cli/flags/updates.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ID, NAME, STATE };
static const struct slurm_field fields[] = {{"jobid", 'i', "JOBID", -6, ID},
    {"jobidraw", 0, "JobIDRaw", -6, ID}, {"name", 'j', "NAME", 8, NAME},
    {"statecompact", 't', "ST", 10, STATE}, {"cluster", 'c', "CLUSTER", 10, .fixed = "belay"},
    {NULL, 0, NULL, 0, 0}};

struct row {
    const char *id, *name, *state;
};

static void value(const void *row, int what, struct buf *out)
{
    const struct row *r = row;
    buf_adds(out, what == ID ? r->id : what == NAME ? r->name : r->state);
}

typedef int (*parse_fn)(
    const char *, const struct slurm_field *, struct slurm_format *, struct err *);

static void check(parse_fn parse, const char *text, const char *title, const char *line)
{
    static const struct row row = {"42", "tr\xc3\xa4ining", "R"};
    struct slurm_format f;
    struct buf out = {0};
    struct err e = {0};
    if (parse(text, fields, &f, &e) != 0)
        fail_msg("%s: %s", text, e.text);
    if (title)
        slurm_format_line(&f, value, NULL, &out);
    slurm_format_line(&f, value, &row, &out);
    char *want = mem_printf("%s%s", title ? title : "", line);
    assert_string_equal(buf_str(&out), want);
    free(want);
    buf_deinit(&out);
    slurm_format_deinit(&f);
}

static void check_refused(parse_fn parse, const char *text, const char *part)
{
    struct slurm_format f;
    struct err e = {0};
    int rc = parse(text, fields, &f, &e);
    if (rc != ERR_INVALID || !strstr(e.text, part))
        fail_msg("%s: %d \"%s\"", text, rc, e.text);
    slurm_format_deinit(&f);
}

/* These variables are in Slurm's manuals, and each represents a known flag, possibly one to be
 * refused. */
static void variables_stand_for_flags(void **state)
{
    static const char *const programs[] = {"sbatch", "salloc", "srun"};
    static const struct slurm_variable a_switch = {"BELAY_TEST_VARIABLE", "x", VARIABLE_SWITCH},
                                       a_value = {"BELAY_TEST_VARIABLE", "x", VARIABLE_VALUE};
    (void)state;
    for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
        struct slurm_variable *all = slurm_variables(programs[i]);
        for (const struct slurm_variable *v = all; v->name[0]; v++) {
            json_t *spec = json_object();
            struct err e = {0};
            directives_begin_slurm(spec);
            bool is_wait = str_eq(v->flag, "wait");
            int rc = directives_apply_flag(v->name, v->flag,
                v->kind == VARIABLE_SWITCH ? NULL : "1", true, spec, NULL, NULL, &e);
            if (!is_wait && rc != 0 &&
                (strstr(e.text, "not known") || strstr(e.text, "takes no value") ||
                    strstr(e.text, "needs a value")))
                fail_msg("%s: %s", v->name, e.text);
            json_decref(spec);
        }
        free(all);
    }
    struct slurm_variable *of_sacct = slurm_variables("sacct");
    assert_int_equal(of_sacct->name[0], '\0');
    free(of_sacct);
    unsetenv("BELAY_TEST_VARIABLE");
    assert_null(slurm_variable_value(&a_value));
    setenv("BELAY_TEST_VARIABLE", "", 1);
    assert_null(slurm_variable_value(&a_value));
    setenv("BELAY_TEST_VARIABLE", "No", 1);
    assert_null(slurm_variable_value(&a_switch));
    assert_string_equal(slurm_variable_value(&a_value), "No");
    setenv("BELAY_TEST_VARIABLE", "user", 1);
    assert_string_equal(slurm_variable_value(&a_switch), "user");
    unsetenv("BELAY_TEST_VARIABLE");
}

/* A value of each flag that a variable stands for; and a flag that it needs. */
static const struct {
    const char *flag, *value, *with[2];
} values[] = {{"account", "vision", {NULL}}, {"array", "0-3", {NULL}}, {"constraint", "ib", {NULL}},
    {"cpus-per-gpu", "3", {"gpus", "2"}}, {"cpus-per-task", "5", {NULL}},
    {"dependency", "afterok:17", {NULL}}, {"error", "e.txt", {NULL}}, {"exclusive", NULL, {NULL}},
    {"export", "HOME", {NULL}}, {"gpus", "2", {NULL}}, {"gpus-per-node", "2", {NULL}},
    {"gpus-per-task", "2", {NULL}}, {"gres", "lego:2", {NULL}}, {"input", "i.txt", {NULL}},
    {"job-name", "other", {NULL}}, {"mem", "4G", {NULL}}, {"mem-per-cpu", "4G", {NULL}},
    {"mem-per-gpu", "4G", {"gpus", "2"}}, {"no-requeue", NULL, {NULL}},
    {"open-mode", "append", {NULL}}, {"output", "o.txt", {NULL}}, {"partition", "burst", {NULL}},
    {"qos", "high", {NULL}}, {"requeue", NULL, {NULL}}, {"signal", "USR2@99", {NULL}},
    {"time", "1:30:00", {NULL}}};

/* Returns the specification that this program makes of the flag, or of the variable; of neither if
 * both are NULL. */
static json_t *spec_by(const char *program, size_t at, const char *flag, const char *variable)
{
    static const char script[] = "#!/bin/sh\ntrue\n";
    struct submission s;
    struct err e = {0};
    submission_init(&s);
    s.slurm = program;
    if (values[at].with[0])
        submission_add_named(&s, values[at].with[0], values[at].with[1]);
    if (flag)
        submission_add_named(&s, flag, values[at].value);
    if (variable)
        setenv(variable, values[at].value ? values[at].value : "1", 1);
    int rc = submission_build(&s, "x.sh", script, sizeof(script) - 1, "x", NULL, 0, &e);
    if (rc != 0)
        fail_msg("%s: %s %s", program, variable ? variable : "", e.text);
    if (variable) {
        unsetenv(variable);
        if (!str_starts(variable, "SLURM_")) /* those are never passed on to the job */
            json_object_del(json_object_get(s.spec, "env"), variable);
    }
    json_t *spec = json_incref(s.spec);
    submission_deinit(&s);
    return spec;
}

static size_t value_of(const char *flag)
{
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
        if (str_eq(values[i].flag, flag))
            return i;
    fail_msg("no value for --%s", flag);
    return 0;
}

static void check_variable(const struct job_attribute *a, const char *name)
{
    const char *program = str_starts(name, "SBATCH_")   ? "sbatch"
                          : str_starts(name, "SALLOC_") ? "salloc"
                                                        : "srun";
    size_t at = value_of(a->flag);
    json_t *none = spec_by(program, at, NULL, NULL), *by_flag = spec_by(program, at, a->flag, NULL),
           *by_variable = spec_by(program, at, NULL, name);
    if (!json_equal(by_flag, by_variable) || json_equal(none, by_variable))
        fail_msg("%s is not as --%s of %s", name, a->flag, program);
    json_decref(none);
    json_decref(by_flag);
    json_decref(by_variable);
}

static void each_variable_of_the_table_is_as_its_flag(void **state)
{
    size_t n = 0;
    (void)state;
    for (size_t i = 0; i < job_attributes_count; i++) {
        char *names = mem_strdup(job_attributes[i].env), *rest = NULL;
        for (char *name = names ? strtok_r(names, " ", &rest) : NULL; name;
             name = strtok_r(NULL, " ", &rest), n++)
            check_variable(&job_attributes[i], name);
        free(names);
    }
    assert_true(n > 55);
}

static void letters_have_widths_sides_and_text_between(void **state)
{
    (void)state;
    check(slurm_format_letters, "%i %t", "JOBID ST\n", "42 R\n");
    check(slurm_format_letters, "%.8i|%8i|", "   JOBID|JOBID   |\n", "      42|42      |\n");
    check(slurm_format_letters, "%.4j", "NAME\n", "tr\xc3\xa4i\n"); /* characters, not bytes */
    check(slurm_format_letters, "%3j%%", "NAM%\n", "tr\xc3\xa4%\n");
    check(slurm_format_letters, "%.8c|%i", " CLUSTER|JOBID\n", "   belay|42\n");
    check(slurm_format_letters, "", "\n", "\n");
    check(slurm_format_letters, "no fields", "no fields\n", "no fields\n");
    check_refused(slurm_format_letters, "%i %Y", "Invalid job format specification: \"%Y\"");
    check_refused(slurm_format_letters, "%", "Invalid job format");
    check_refused(slurm_format_letters, "%.", "Invalid job format");
    check_refused(slurm_format_letters, "%1001i", "at most 1000 wide");
    check_refused(slurm_format_letters, "%99999999999999999999i", "at most 1000 wide");
}

static void names_have_widths_of_twenty(void **state)
{
    (void)state;
    check(slurm_format_names, "jobid:4,name:.10", "JOBI      NAME\n", "42    tr\xc3\xa4ining\n");
    check(slurm_format_names, " JobID , statecompact:3", "JOBID               ST \n",
        "42                  R  \n");
    check(slurm_format_names, "jobid:|,name:4/", "JOBID|NAME/\n", "42|tr\xc3\xa4i/\n");
    check_refused(slurm_format_names, "", "needs a field");
    check_refused(slurm_format_names, "job", "Invalid job format specification: \"job\"");
    check_refused(slurm_format_names, "jobid:2000", "at most 1000 wide");
    check_refused(slurm_format_names, ":4", "Invalid");
}

/* For a job on three nodes: sacct adds up the memory of all nodes since 21.08, scontrol shows that
 * of one. */
static void memory_is_of_a_node_or_of_all(void **state)
{
    (void)state;
    json_t *job = json_pack("{s:i,s:i}", "memory_mib", 1536, "nodes", 3);
    struct slurm_job j = {.job = job};
    struct buf out = {0};
    slurm_job_value(&j, JOB_MEMORY, &out);
    buf_adds(&out, " ");
    slurm_job_value(&j, JOB_ALL_MEMORY, &out);
    assert_string_equal(buf_str(&out), "1536M 4608M");
    buf_deinit(&out);
    json_decref(job);
}

static void sacct_marks_what_it_cuts_and_takes_beginnings(void **state)
{
    (void)state;
    check(slurm_format_sacct, "jobid,state%3", "JOBID   ST \n", "42       R \n");
    check(slurm_format_sacct, "jobid,name", "JOBID      NAME \n", "42     tr\xc3\xa4ining \n");
    check(slurm_format_sacct, "name%5,JOBIDR%-4", " NAME Job+ \n", "tr\xc3\xa4i+ 42   \n");
    check_refused(slurm_format_sacct, "jobid,nonsense", "Invalid field requested: \"nonsense\"");
    check_refused(slurm_format_sacct, "name%", "expected a width");
    check_refused(slurm_format_sacct, "name%0", "expected a width");
    check_refused(slurm_format_sacct, "name%9x", "expected a width");
    check_refused(slurm_format_sacct, "name%1001", "expected a width");
    check_refused(slurm_format_sacct, ",", "needs a field");
}

static void fields_and_bytes_have_a_limit(void **state)
{
    struct buf text = {0};
    (void)state;
    for (int i = 0; i < SLURM_FIELDS_MAX; i++)
        buf_adds(&text, "%i");
    struct slurm_format f;
    struct err e;
    assert_int_equal(slurm_format_letters(buf_str(&text), fields, &f, &e), 0);
    slurm_format_deinit(&f);
    buf_adds(&text, "%i");
    check_refused(slurm_format_letters, buf_str(&text), "at most 128 fields");
    buf_clear(&text);
    while (text.len < SLURM_FORMAT_MAX)
        buf_addc(&text, 'x');
    check_refused(slurm_format_letters, buf_str(&text), "at most 4095 bytes");
    buf_deinit(&text);
}

static void parsable_output_has_no_widths(void **state)
{
    static const struct row row = {"42", "a", "R"};
    struct slurm_format f;
    struct buf out = {0};
    struct err e;
    (void)state;
    assert_int_equal(slurm_format_sacct("jobid%20,name,state", fields, &f, &e), 0);
    slurm_format_plain(&f, "|", false, value, NULL, &out);
    slurm_format_plain(&f, "|", false, value, &row, &out);
    slurm_format_plain(&f, ";;", true, value, &row, &out);
    assert_string_equal(buf_str(&out), "JOBID|NAME|ST\n42|a|R\n42;;a;;R;;\n");
    buf_deinit(&out);
    slurm_format_deinit(&f);
}

/* ---- lists ---- */

static void check_hosts(const char *list, const char *want)
{
    struct buf out = {0};
    struct err e = {0};
    if (slurm_hosts_expand(list, &out, &e) != 0)
        fail_msg("%s: %s", list, e.text);
    assert_string_equal(buf_str(&out), want);
    buf_deinit(&out);
}

static void lists_of_hosts_are_taken_apart(void **state)
{
    static const char *const refused[] = {"n[", "n]", "n[1", "n[]", "n[a]", "n[1-]", "n[3-1]",
        "n[1,]x[2]", "n[-1]", "n[1--2]", "n[0-65536]", "n[1234567890]", "n[[1]]",
        "n[1-9999999999]"};
    (void)state;
    check_hosts("", "");
    check_hosts("n1", "n1\n");
    check_hosts("n1,n2", "n1\nn2\n");
    check_hosts("n[1-3,7]", "n1\nn2\nn3\nn7\n");
    check_hosts("a[08-10]b,c", "a08b\na09b\na10b\nc\n");
    check_hosts("rack1-n[1],,x", "rack1-n1\nx\n");
    check_hosts(",,n1,", "n1\n");
    check_hosts(",", "");
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        struct buf out = {0};
        struct err e;
        if (slurm_hosts_expand(refused[i], &out, &e) != ERR_INVALID)
            fail_msg("%s", refused[i]);
        buf_deinit(&out);
    }
}

static void names_of_nodes_are_folded_together(void **state)
{
    static const char *const all[][2] = {{"", ""}, {"n1", "n1"}, {"n1,n2,n3,n7", "n[1-3,7]"},
        {"ip-10-0-0-8,ip-10-0-0-7", "ip-10-0-0-[7-8]"}, {"no list[", "no list["}};
    (void)state;
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        struct buf out = {0};
        buf_adds(&out, "(");
        slurm_hosts_fold(all[i][0], &out);
        assert_string_equal(buf_str(&out) + 1, all[i][1]);
        buf_deinit(&out);
    }
}

static void words_are_found_whatever_their_case(void **state)
{
    (void)state;
    assert_true(slurm_list_has(NULL, "x"));
    assert_true(slurm_list_has("a, B ,c", "b"));
    assert_false(slurm_list_has("a,bc", "b"));
    assert_false(slurm_list_has("", "b"));
}

static void lists_intersect_where_they_have_one_in_common(void **state)
{
    (void)state;
    assert_true(slurm_lists_intersect(NULL, ""));
    assert_true(slurm_lists_intersect("a,b", "c, B"));
    assert_false(slurm_lists_intersect("a,b", "c,ab"));
    assert_false(slurm_lists_intersect("a,b", ""));
    assert_false(slurm_lists_intersect("n[1-2]", "n1"));
    assert_true(slurm_hosts_intersect(NULL, "n1"));
    assert_true(slurm_hosts_intersect("n2", "n1,n2"));
    assert_true(slurm_hosts_intersect("x,n[1-3,7]", "n9,n7"));
    assert_true(slurm_hosts_intersect("N7", "n9,n7"));
    assert_false(slurm_hosts_intersect("n[1-3,7]", "n4,n33"));
    assert_false(slurm_hosts_intersect("n[1-3]", ""));
}

/* ---- times ---- */

static void check_used(int64_t ms, bool long_form, const char *want)
{
    struct buf out = {0};
    slurm_time_used(ms, long_form, &out);
    assert_string_equal(buf_str(&out), want);
    buf_deinit(&out);
}

static void durations_are_written_as_slurm_does(void **state)
{
    (void)state;
    check_used(0, false, "0:00");
    check_used(65999, false, "1:05");
    check_used(3723000, false, "1:02:03");
    check_used(90061000, false, "1-01:01:01");
    check_used(0, true, "00:00:00");
    check_used(65000, true, "00:01:05");
    check_used(90061000, true, "1-01:01:01");
    check_used(TIME_NONE_MS, true, "INVALID");
    check_used(-1, false, "INVALID");
}

static void check_time(const char *text, const char *want)
{
    struct wall now, at = WALL_NONE;
    struct err e = {0};
    struct buf out = {0};
    assert_int_equal(time_parse_iso("2026-11-21T20:44:26Z", &now, &e), 0);
    int rc = slurm_time_parse(text, now, &at, &e);
    if (!want) {
        assert_int_equal(rc, ERR_INVALID);
        return;
    }
    if (rc != 0)
        fail_msg("%s: %s", text, e.text);
    slurm_time_at(at, "none", &out);
    assert_string_equal(buf_str(&out), want);
    buf_deinit(&out);
}

static void moments_that_are_over_are_read_in_more_forms(void **state)
{
    static const struct {
        const char *text, *want;
    } forms[] = {{"10m", "2026-11-21T20:34:26"}, {"2h", "2026-11-21T18:44:26"},
        {"2026-11-20T10:20:00Z", "2026-11-20T10:20:00"}, {"10:20", "2026-11-21T10:20:00"},
        {"today", "2026-11-21T00:00:00"}, {"now-2hours", "2026-11-21T18:44:26"},
        {"1120", "2026-11-20T00:00:00"}};
    static const char *const refused[] = {
        "", "soon", "10", "10x", "-10m", "2026-13-01", "99999999999999999999d"};
    struct wall now, at;
    struct err e;
    (void)state;
    setenv("TZ", "UTC0", 1);
    tzset();
    assert_int_equal(time_parse_iso("2026-11-21T20:44:26Z", &now, &e), 0);
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        struct buf out = {0};
        assert_int_equal(since_parse(forms[i].text, now, &at, &e), 0);
        slurm_time_at(at, "none", &out);
        assert_string_equal(buf_str(&out), forms[i].want);
        buf_deinit(&out);
    }
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        assert_int_equal(since_parse(refused[i], now, &at, &e), ERR_INVALID);
        assert_non_null(strstr(e.text, "10m (ago)"));
    }
}

static void moments_are_read_as_slurm_does(void **state)
{
    static const char *const refused[] = {"", "soon", "now-", "now-2", "now*2hours",
        "now-2fortnights", "2026-13-01", "25:00", "2026-11-21T", "20261121", "112",
        "now-99999999999s", "12:3x", "-1", "12/40"};
    (void)state;
    setenv("TZ", "UTC0", 1);
    tzset();
    check_time("2026-11-21", "2026-11-21T00:00:00");
    check_time("2026-11-20T10:20", "2026-11-20T10:20:00");
    check_time("2026-11-20T10:20:30", "2026-11-20T10:20:30");
    check_time("10:20", "2026-11-21T10:20:00");
    check_time("10:20:30", "2026-11-21T10:20:30");
    check_time("now", "2026-11-21T20:44:26");
    check_time("now-2hours", "2026-11-21T18:44:26");
    check_time("now+1day", "2026-11-22T20:44:26");
    check_time("now-30seconds", "2026-11-21T20:43:56");
    check_time("today", "2026-11-21T00:00:00");
    check_time("Noon", "2026-11-21T12:00:00");
    check_time("yesterday", "2026-11-20T00:00:00");
    check_time("tomorrow", "2026-11-22T00:00:00");
    check_time("1120", "2026-11-20T00:00:00");
    check_time("112025", "2025-11-20T00:00:00");
    check_time("11/20", "2026-11-20T00:00:00");
    check_time("11/20/25-10:20", "2025-11-20T10:20:00");
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
        if (!str_eq(refused[i], "now-2")) /* seconds */
            check_time(refused[i], NULL);
    check_time("now-2", "2026-11-21T20:44:24");
}

/* ---- jobs ---- */

static void check_job(
    const char *text, const char *state_name, const char *compact, const char *code)
{
    json_t *all = json_loads(text, 0, NULL);
    assert_non_null(all);
    const json_t *detail = json_object_get(all, "job") ? all : NULL;
    struct slurm_job j = {.job = detail ? json_object_get(all, "job") : all, .detail = detail};
    struct buf exit_code = {0};
    const struct slurm_state *s = slurm_job_state(&j);
    assert_string_equal(s->name, state_name);
    assert_string_equal(s->compact, compact);
    slurm_job_value(&j, JOB_EXIT, &exit_code);
    assert_string_equal(buf_str(&exit_code), code);
    buf_deinit(&exit_code);
    json_decref(all);
}

static void states_have_slurms_words(void **state)
{
    (void)state;
    check_job("{\"state\": \"pending\"}", "PENDING", "PD", "0:0");
    check_job("{\"state\": \"running\"}", "CONFIGURING", "CF", "0:0");
    check_job("{\"state\": \"running\", \"started_at\": \"2026-11-21T20:44:26Z\"}", "RUNNING", "R",
        "0:0");
    check_job("{\"state\": \"cancelling\"}", "COMPLETING", "CG", "0:0");
    check_job("{\"state\": \"ended\", \"end\": \"succeeded\", \"exit_code\": 0}", "COMPLETED", "CD",
        "0:0");
    check_job(
        "{\"state\": \"ended\", \"end\": \"failed\", \"exit_code\": 3}", "FAILED", "F", "3:0");
    check_job(
        "{\"state\": \"ended\", \"end\": \"failed\", \"exit_code\": 139}", "FAILED", "F", "0:11");
    check_job("{\"state\": \"ended\", \"end\": \"cancelled\", \"exit_code\": 143}", "CANCELLED",
        "CA", "0:15");
    check_job(
        "{\"state\": \"ended\", \"end\": \"timeout\", \"exit_code\": 143}", "TIMEOUT", "TO", "0:0");
    check_job("{\"state\": \"ended\", \"end\": \"node-lost\", \"exit_code\": 0}", "NODE_FAIL", "NF",
        "0:0");
    check_job("{\"state\": \"ended\", \"end\": \"reclaimed\", \"exit_code\": 0}", "PREEMPTED", "PR",
        "0:0");
    check_job("{\"job\": {\"state\": \"ended\", \"end\": \"failed\", \"exit_code\": 137}, "
              "\"attempts\": [{\"text\": \"killed: it used "
              "all of the 64 MiB of memory that it asked for\"}]}",
        "OUT_OF_MEMORY", "OOM", "137:0");
    check_job("{\"job\": {\"state\": \"ended\", \"end\": \"failed\", \"exit_code\": 137}, "
              "\"attempts\": [{\"text\": \"exit code "
              "137\"}]}",
        "FAILED", "F", "137:0");
    assert_string_equal(slurm_state_find("cg")->name, "COMPLETING");
    assert_string_equal(slurm_state_find("node_fail")->compact, "NF");
    assert_null(slurm_state_find("gone"));
}

static void check_value(const char *text, int what, const char *expected)
{
    json_t *job = json_loads(text, 0, NULL);
    struct slurm_job j = {.job = job};
    struct buf out = {0};
    assert_non_null(job);
    slurm_job_value(&j, what, &out);
    assert_string_equal(buf_str(&out), expected);
    buf_deinit(&out);
    json_decref(job);
}

/* A task of an array that failed, with everything that a job may have. */
static const char a_failed_task[] =
    "{\"job\": {\"id\": 43, \"ref\": \"42_7\", \"array_id\": 42, \"array_index\": 7, "
    "\"name\": \"train\", \"user\": \"root\", \"team\": \"vision\", \"qos\": \"high\", "
    "\"priority\": 5, \"nice\": 2, \"state\": \"ended\", \"end\": \"failed\", "
    "\"exit_code\": 3, \"attempts\": 2, \"nodes\": 2, \"cpus\": 4, \"memory_mib\": 1536, "
    "\"gpus\": 1, \"gpu_model\": \"a100\", \"constraint\": \"ib\", "
    "\"nodelist\": \"n[1-2]\", \"exclude\": \"n9\", \"licences\": {\"matlab\": 2}, "
    "\"exclusive\": true, \"time_limit_ms\": 5400000, "
    "\"submitted_at\": \"2026-11-21T20:40:00Z\", \"eligible_at\": \"2026-11-21T20:41:00Z\", "
    "\"started_at\": \"2026-11-21T20:44:26Z\", \"ended_at\": \"2026-11-21T21:46:27Z\", "
    "\"deadline_at\": \"2026-11-22T08:00:00Z\"}, "
    "\"spec\": {\"cwd\": \"/home/ann\", \"launch\": {\"output\": \"%j.out\", "
    "\"error\": \"/tmp/%a.err\", \"tasks\": 6}}, "
    "\"depends\": [{\"kind\": \"afterok\", \"job\": 17, \"state\": \"waits\"}, "
    "{\"kind\": \"after\", \"job\": 18, \"delay_ms\": 300000, \"state\": \"waits\"}], "
    "\"attempts\": [{\"attempt\": 2, \"rank\": 0, \"started_at\": \"2026-11-21T20:44:26Z\", "
    "\"ended_at\": \"2026-11-21T21:46:27Z\", \"cpu_ms\": 61500, \"cpu_user_ms\": 60000, "
    "\"memory_peak_bytes\": 1048576}, "
    "{\"attempt\": 2, \"rank\": 1, \"started_at\": \"2026-11-21T20:44:26Z\", "
    "\"ended_at\": \"2026-11-21T21:46:27Z\", \"cpu_ms\": 1500, \"cpu_user_ms\": 1000, "
    "\"memory_peak_bytes\": 3145728}]}";

static const struct {
    enum slurm_job_value what;
    const char *of_the_task, *of_nothing; /* of_nothing: for a job without the member */
} job_values[] = {{JOB_ID, "42_7", "-"}, {JOB_ID_RAW, "43", "0"}, {JOB_ARRAY_ID, "42", "0"},
    {JOB_ARRAY_INDEX, "7", "N/A"}, {JOB_NAME, "train", "-"}, {JOB_USER, "root", "-"},
    {JOB_UID, "0", "-1"}, {JOB_PARTITION, "burst", "any"}, {JOB_STATE, "FAILED", "CONFIGURING"},
    {JOB_STATE_SHORT, "F", "CF"}, {JOB_REASON, "NonZeroExitCode", "None"},
    {JOB_REASON_LIST, "n[1-2]", "(None)"}, {JOB_NODES, "n[1-2]", ""}, {JOB_N_NODES, "2", "1"},
    {JOB_CPUS, "8", "1"}, {JOB_TASKS, "6", "1"}, {JOB_MEMORY, "1536M", "0"},
    {JOB_ALL_MEMORY, "3G", "0"}, {JOB_GRES, "gres:gpu:a100:1", "N/A"},
    {JOB_TRES, "cpu=8,mem=3G,node=2,billing=8,gres/gpu=2", "cpu=1,node=1,billing=1"},
    {JOB_USED, "1:02:01", "0:00"}, {JOB_USED_LONG, "01:02:01", "00:00:00"},
    {JOB_USED_S, "3721", "0"}, {JOB_LIMIT, "1:30:00", "UNLIMITED"},
    {JOB_LIMIT_LONG, "01:30:00", "UNLIMITED"}, {JOB_LIMIT_MINUTES, "90", ""},
    {JOB_LEFT, "27:59", "UNLIMITED"}, {JOB_SUBMITTED, "2026-11-21T20:40:00", "N/A"},
    {JOB_STARTED, "2026-11-21T20:44:26", "N/A"}, {JOB_ENDED, "2026-11-21T21:46:27", "N/A"},
    {JOB_STARTED_LONG, "2026-11-21T20:44:26", "Unknown"},
    {JOB_ENDED_LONG, "2026-11-21T21:46:27", "Unknown"}, {JOB_EXIT, "3:0", "0:0"},
    {JOB_ACCOUNT, "vision", ""}, {JOB_QOS, "high", "normal"}, {JOB_PRIORITY, "5", "0"},
    {JOB_DIR, "/home/ann", ""}, {JOB_COMMAND, "train", "(null)"},
    {JOB_OUTPUT, "/home/ann/43.out", ""}, {JOB_ERROR, "/tmp/7.err", ""}, {JOB_RESTARTS, "1", "0"},
    {JOB_BATCH_HOST, "n1", ""}, {JOB_CPU_TIME, "08:16:08", "00:00:00"},
    {JOB_CPU_TIME_S, "29768", "0"}, {JOB_SHARED, "NO", "OK"}, {JOB_FEATURES, "ib", "(null)"},
    {JOB_LICENCES, "matlab:2", "(null)"}, {JOB_NICE, "2", "0"},
    {JOB_DEPENDENCY, "afterok:17,after:18+5", "(null)"},
    {JOB_ELIGIBLE, "2026-11-21T20:41:00", "Unknown"}, {JOB_DEADLINE, "2026-11-22T08:00:00", "N/A"},
    {JOB_NODES_WANTED, "n[1-2]", "(null)"}, {JOB_NODES_EXCLUDED, "n9", "(null)"},
    {JOB_TOTAL_CPU, "01:03.000", ""}, {JOB_USER_CPU, "01:01.000", ""},
    {JOB_SYSTEM_CPU, "00:02.000", ""}, {JOB_AVE_CPU, "00:00:31", ""}, {JOB_MAX_RSS, "3072K", ""},
    {JOB_MAX_RSS_NODE, "n2", ""}, {JOB_MAX_RSS_TASK, "1", ""}, {JOB_AVE_RSS, "2048K", ""}};

static void each_value_of_a_job_is_as_in_slurm(void **state)
{
    json_t *detail = json_loads(a_failed_task, 0, NULL), *nothing = json_object();
    const struct slurm_job task = {.job = json_object_get(detail, "job"),
                               .detail = detail,
                               .pools = "burst",
                               .nodes = "n1,n2"},
                           empty = {.job = nothing};
    bool seen[JOB_NODES_EXCLUDED + 1] = {false};
    (void)state;
    assert_non_null(detail);
    setenv("TZ", "UTC0", 1);
    tzset();
    for (size_t i = 0; i < sizeof(job_values) / sizeof(job_values[0]); i++) {
        struct buf of_task = {0}, of_nothing = {0};
        seen[job_values[i].what] = true;
        buf_adds(&of_task, "");
        buf_adds(&of_nothing, "");
        slurm_job_value(&task, (int)job_values[i].what, &of_task);
        slurm_job_value(&empty, (int)job_values[i].what, &of_nothing);
        assert_string_equal(buf_str(&of_task), job_values[i].of_the_task);
        assert_string_equal(buf_str(&of_nothing), job_values[i].of_nothing);
        buf_deinit(&of_task);
        buf_deinit(&of_nothing);
    }
    for (int what = JOB_ID; what <= JOB_NODES_EXCLUDED; what++)
        if (!seen[what])
            fail_msg("no text is expected for value %d", what);
    json_decref(detail);
    json_decref(nothing);
}

/* squeue -h -j $SLURM_JOB_ID -o %L, in a job that queries its remaining time */
static void a_job_that_was_queued_again_has_all_of_its_time(void **state)
{
    (void)state;
    static const char *const waits =
        "{\"state\": \"pending\", \"time_limit_ms\": 600000, \"attempts\": 1, "
        "\"started_at\": \"2026-11-21T20:44:26Z\", \"attempt_started_at\": null}";
    static const char *const restores =
        "{\"state\": \"running\", \"time_limit_ms\": 600000, \"attempts\": 2, "
        "\"started_at\": \"2026-11-21T20:44:26Z\", \"attempt_started_at\": null}";
    static const char *const runs =
        "{\"state\": \"running\", \"time_limit_ms\": 600000, \"attempts\": 2, "
        "\"started_at\": \"2026-11-21T20:44:26Z\", \"attempt_started_at\": "
        "\"2226-11-21T20:44:26Z\"}";
    check_value(waits, JOB_LEFT, "10:00");
    check_value(waits, JOB_USED, "0:00");
    check_value(waits, JOB_STARTED, "N/A");
    check_value(restores, JOB_LEFT, "10:00");
    check_value(restores, JOB_STATE, "CONFIGURING");
    check_value(runs, JOB_LEFT, "10:00");
    check_value(runs, JOB_STATE, "RUNNING");
}

static void a_job_is_named_by_a_number_or_a_part_of_it(void **state)
{
    (void)state;
    assert_int_equal(slurm_job_number("42"), 42);
    assert_int_equal(slurm_job_number("42.batch"), 42);
    assert_int_equal(slurm_job_number("42.0"), 42);
    assert_int_equal(slurm_job_number("x"), 0);
    assert_int_equal(slurm_job_number(""), 0);
    assert_int_equal(slurm_job_number("0"), 0);
    assert_int_equal(slurm_job_number("42x"), 0);
    assert_int_equal(slurm_job_number("99999999999999999999"), 0);
}

static void tasks_of_an_array_are_named_behind_it(void **state)
{
    static const struct {
        const char *text;
        int64_t id;
        const char *tasks;
    } names[] = {{"42", 42, ""}, {"42_7", 42, "7"}, {"42_[5-10,12]", 42, "5-10,12"},
        {"42_7.batch", 42, "7"}, {"42.batch", 42, ""}};
    static const char *const refused[] = {
        "", "_7", "42_", "42_x", "42_[]", "42_7x", "x_1", "42_7_8", "99999999999999999999_1"};
    char tasks[SLURM_TASKS_MAX], *longest = mem_alloc(3 * SLURM_TASKS_MAX);
    int64_t id;
    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        assert_true(slurm_job_name(names[i].text, &id, tasks));
        assert_int_equal(id, names[i].id);
        assert_string_equal(tasks, names[i].tasks);
    }
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
        if (slurm_job_name(refused[i], &id, tasks))
            fail_msg("%s", refused[i]);
    memset(longest, '1', 3 * SLURM_TASKS_MAX - 1);
    memcpy(longest, "1_", 2);
    assert_false(slurm_job_name(longest, &id, tasks));
    free(longest);
}

static void add_index(void *ctx, int64_t index)
{
    buf_printf(ctx, "%lld ", (long long)index);
}

static void lists_of_indexes_are_taken_apart(void **state)
{
    static const char *const lists[][2] = {{"0-6:2,9%20", "0 2 4 6 9 "}, {"7]", "7 "},
        {"3,5-6]", "3 5 6 "}, {"", ""}, {"x", ""}, {"5-3", ""}, {"1-9:0", ""}, {"2-,4", "4 "}};
    (void)state;
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        struct buf out = {0};
        slurm_each_index(lists[i][0], add_index, &out);
        assert_string_equal(buf_str(&out), lists[i][1]);
        buf_deinit(&out);
    }
}

static void words_of_an_update_become_members_of_a_job(void **state)
{
    static const struct {
        const char *word, *changes; /* for a job of one node, 4 CPUs and an hour */
    } taken[] = {{"timelimit=30", "{\"time_limit_ms\": 1800000}"},
        {"TimeLimit=+1-00:00:00", "{\"time_limit_ms\": 90000000}"},
        {"TimeLimit=-30", "{\"time_limit_ms\": 1800000}"},
        {"TIMELIMIT=UNLIMITED", "{\"time_limit_ms\": 0}"}, {"JobName=a=b", "{\"name\": \"a=b\"}"},
        {"Partition=burst", "{\"pool\": \"burst\"}"}, {"Requeue=0", "{\"requeue\": false}"},
        {"ArrayTaskThrottle=0", "{\"at_once\": 0}"}, {"MinMemoryNode=2G", "{\"memory_mib\": 2048}"},
        {"MinMemoryCPU=100", "{\"memory_mib\": 400}"}, {"NumCPUs=6", "{\"cpus\": 6}"},
        {"NumNodes=2-3", "{\"nodes\": 3, \"nodes_min\": 2, \"script_on\": \"first\"}"},
        {"ReqNodes=1", "{\"nodes\": 1}"},
        {"Gres=gres/gpu:2,lego:1", "{\"gpus\": 2, \"resources\": {\"lego\": 1}}"},
        {"TresPerNode=gres:gpu:1", "{\"gpus\": 1}"},
        {"Features=a100&ib", "{\"constraint\": \"a100&ib\"}"},
        {"Features=", "{\"constraint\": \"\"}"},
        {"Licenses=matlab:2", "{\"licences\": {\"matlab\": 2}}"},
        {"Account=red", "{\"team\": \"red\"}"}, {"Nice=5", "{\"nice\": 5}"},
        {"Dependency=afterok:7",
            "{\"depends\": [{\"kind\": \"afterok\", \"job\": 7}], \"depends_any\": false}"},
        {"Dependency=", "{\"depends\": []}"}, {"Comment=x", "{}"}};
    static const char *const refused[] = {"", "TimeLimit", "=5", "TimeLimit=", "TimeLimit=x",
        "TimeLimit=-60", "TimeLimit=+x", "Priority=7", "priority=0", "TimeMin=5", "EndTime=now",
        "NumTasks=2", "NumCPUs=2-4", "NumCPUs=0", "MinMemoryCPU=x", "NumNodes=0",
        "OverSubscribe=yes", "StdOut=x", "ReservationName=x", "MailUser=x", "Nonsense=1",
        "Requeue=2", "JobName=", "Partition=a b"};
    json_t *job =
        json_pack("{s:i,s:i,s:I}", "nodes", 1, "cpus", 4, "time_limit_ms", (json_int_t)3600000);
    (void)state;
    for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++) {
        json_t *changes = json_object(), *expected = json_loads(taken[i].changes, 0, NULL);
        struct err e = {0};
        char *warning;
        if (scontrol_update_word(taken[i].word, job, changes, &warning, &e) != 0 ||
            updates_finish(changes, NULL, NULL, &e) != 0)
            fail_msg("%s: %s", taken[i].word, e.text);
        if (!json_equal(changes, expected))
            fail_msg("%s: %s", taken[i].word, json_dump_text(changes));
        free(warning);
        json_decref(changes);
        json_decref(expected);
    }
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        json_t *changes = json_object();
        struct err e = {0};
        char *warning;
        if (scontrol_update_word(refused[i], job, changes, &warning, &e) == 0 || !e.text[0])
            fail_msg("taken, or refused without a reason: %s", refused[i]);
        free(warning);
        json_decref(changes);
    }
    json_decref(job);
}

static void programs_are_found_by_the_end_of_a_path(void **state)
{
    (void)state;
    assert_string_equal(slurm_program_find("/usr/bin/squeue")->name, "squeue");
    assert_string_equal(slurm_program_find("sbatch")->name, "sbatch");
    assert_null(slurm_program_find("/usr/bin/belay"));
    assert_null(slurm_program_find("/sbatch/x"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(variables_stand_for_flags),
        cmocka_unit_test(each_variable_of_the_table_is_as_its_flag),
        cmocka_unit_test(letters_have_widths_sides_and_text_between),
        cmocka_unit_test(names_have_widths_of_twenty),
        cmocka_unit_test(memory_is_of_a_node_or_of_all),
        cmocka_unit_test(sacct_marks_what_it_cuts_and_takes_beginnings),
        cmocka_unit_test(fields_and_bytes_have_a_limit),
        cmocka_unit_test(parsable_output_has_no_widths),
        cmocka_unit_test(lists_of_hosts_are_taken_apart),
        cmocka_unit_test(words_are_found_whatever_their_case),
        cmocka_unit_test(lists_intersect_where_they_have_one_in_common),
        cmocka_unit_test(names_of_nodes_are_folded_together),
        cmocka_unit_test(durations_are_written_as_slurm_does),
        cmocka_unit_test(moments_that_are_over_are_read_in_more_forms),
        cmocka_unit_test(moments_are_read_as_slurm_does),
        cmocka_unit_test(states_have_slurms_words),
        cmocka_unit_test(each_value_of_a_job_is_as_in_slurm),
        cmocka_unit_test(a_job_that_was_queued_again_has_all_of_its_time),
        cmocka_unit_test(a_job_is_named_by_a_number_or_a_part_of_it),
        cmocka_unit_test(tasks_of_an_array_are_named_behind_it),
        cmocka_unit_test(lists_of_indexes_are_taken_apart),
        cmocka_unit_test(words_of_an_update_become_members_of_a_job),
        cmocka_unit_test(programs_are_found_by_the_end_of_a_path),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
