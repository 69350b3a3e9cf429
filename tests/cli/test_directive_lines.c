/* SPDX-License-Identifier: Apache-2.0
 *
 * How directives are found in a script and read: words, quotes, limits, refusals by name, warnings.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/cli/directives_check.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/flags/directives.h"
#include <stdlib.h>
#include <string.h>

static void flags_of_slurm_that_belay_does_not_need_are_ignored_with_a_warning(void **state)
{
    (void)state;
    check_warned("#SBATCH --contiguous --switches=1\n", "{}", "--switches has no effect in belay");
    check_spec("#SBATCH --hint=nomultithread --propagate\n#SBATCH -m block:cyclic -v\n", "{}");
    check_spec("#SBATCH --mail-type=END,fail,TIME_LIMIT_80 --mail-user=ann@example.com\n",
        "{\"notify\":{\"mail_types\":[\"end\",\"fail\",\"time-limit-80\"],\"mail_user\":\"ann@"
        "example.com\"}}");
    check_spec(
        "#SBATCH --mail-type=ALL\n#SBATCH --mail-type=NONE\n", "{\"notify\":{\"mail_types\":[]}}");
    check_spec("#SBATCH --mail-type=ALL,ARRAY_TASKS,STAGE_OUT\n",
        "{\"notify\":{\"mail_types\":[\"begin\",\"end\",\"fail\",\"requeue\",\"invalid-depend\","
        "\"array-tasks\"]}}");
    check_spec("#BELAY --notify https://a.example/x --notify https://b.example/y --notify "
               "https://a.example/x\n",
        "{\"notify\":{\"urls\":[\"https://a.example/x\",\"https://b.example/y\"]}}");
    check_refused("#SBATCH --mail-type=SOMETIMES\n", "--mail-type: expected BEGIN");
    check_refused("#SBATCH --mail-type=END,,FAIL\n", "--mail-type: expected BEGIN");
    check_refused("#SBATCH --mail-user=\n", "--mail-user");
    check_refused("#BELAY --notify ftp://a.example\n", "--notify: expected https://");
    check_refused("#BELAY --notify @/nowhere/at/all\n", "--notify");
    check_refused("#BELAY --notify http://a/1 --notify http://a/2 --notify http://a/3 --notify "
                  "http://a/4 --notify http://a/5\n",
        "--notify: at most 4");
    check_warned("#SBATCH --mem=0\n", "{}", "no limit");
    check_warned("#SBATCH --nice=-5 -q high\n", "{\"qos\":\"high\"}", "no effect");
    check_spec("#SBATCH --nice\n", "{\"nice\":100}");
    check_spec("#SBATCH --nice -q high\n", "{\"nice\":100,\"qos\":\"high\"}");
    check_spec("#SBATCH --nice 7 -q high\n", "{\"nice\":7,\"qos\":\"high\"}");
    check_refused("#SBATCH --nice high\n", "expected flags like");
    check_spec("#BELAY --team red --nice 30 --qos=spare\n",
        "{\"team\":\"red\",\"nice\":30,\"qos\":\"spare\"}");
}

static void words_are_split_and_quoted_as_in_a_shell(void **state)
{
    (void)state;
    check_spec(
        "#BELAY --job-name 'a b' --keep 1\n", "{\"name\":\"a b\",\"checkpoint\":{\"keep\":1}}");
    check_spec("#BELAY --job-name=\"a b\"\n", "{\"name\":\"a b\"}");
    check_spec("#BELAY --label=x='a \"b\"'\n", "{\"labels\":{\"x\":\"a \\\"b\\\"\"}}");
    check_spec(
        "#BELAY -Jtrain -c4 -p=burst\n", "{\"name\":\"train\",\"cpus\":4,\"pool\":\"burst\"}");
    check_spec("#BELAY\t-J\ttrain  # a remark --keep 9\n", "{\"name\":\"train\"}");
    check_spec("#BELAY --job-name a#b\n", "{\"name\":\"a#b\"}");
    check_spec("#BELAY --label x=\"\"\n", "{\"labels\":{\"x\":\"\"}}");
    check_spec("#BELAY\n#SBATCH   \n", "{}");
    check_spec("#BELAY --job-name train\r\n", "{\"name\":\"train\"}");
    check_spec("#BELAY --job-name train", "{\"name\":\"train\"}");
}

static void the_last_of_repeated_flags_wins(void **state)
{
    (void)state;
    check_spec("#SBATCH -c 2\n#BELAY -c 4\n", "{\"cpus\":4}");
}

static void directives_end_at_the_first_command(void **state)
{
    (void)state;
    check_spec(
        "#!/bin/sh\n# a remark\n\n  \t\n#BELAY -c 2\n\nset -e\n#BELAY -c 4\n", "{\"cpus\":2}");
    check_spec(
        "#!/bin/sh\n  # an indented remark is no command\n\t#\n#BELAY -c 4\n", "{\"cpus\":4}");
    check_spec("#!/bin/sh\n  set -e # a command\n#BELAY -c 4\n", "{}");
    check_spec("##BELAY -c 4\n# SBATCH -c 5\n#sbatch -c 6\n", "{}");
    check_spec("", "{}");
    check_spec("   ", "{}");
}

static void malformed_directives_are_refused_with_their_line(void **state)
{
    (void)state;
    check_refused("#!/bin/sh\n\n#BELAY train\n",
        "train.sh:3: expected flags like --time 2h, found \"train\"");
    check_refused("#BELAY --requeue now\n", "found \"now\"");
    check_refused("#BELAY -\n", "found \"-\"");
    check_refused("#BELAY --\n", "\"--\" is not known");
    check_refused("#BELAY --job-name\n", "train.sh:1: --job-name needs a value (NAME)");
    check_refused("#BELAY -J\n", "train.sh:1: -J needs a value (NAME)");
    check_refused("#BELAY --requeue=1\n", "--requeue takes no value, found \"1\"");
    check_refused(
        "#BELAY --job-name 'a b\n", "train.sh:1: the quote after \"--job-name\" is not closed");
    check_refused("#BELAY --job-name='a b\n", "is not closed");
    check_refused("#BELAY 'x\n", "found \"x\"");
    check_refused("#BELAY --cpus-per-task four\n",
        "train.sh:1: --cpus-per-task: expected an integer in 1 .. 4096");
    check_refused("#BELAY --cpus-per-task=\n", "--cpus-per-task");
    check_refused("#BELAY --mem lots\n", "--mem");
    check_refused("#BELAY --market cheap\n", "--market: expected one of any, spot, on-demand");
    check_refused(
        "#BELAY --checkpoint dmtcp\n", "--checkpoint: expected one of none, signal, coop, criu");
    check_refused("#BELAY --checkpoint-every 10ms\n", "--checkpoint-every");
    check_refused("#BELAY --checkpoint-at 6am\n",
        "--checkpoint-at: expected times of the day, as 06:00,18:30");
    check_refused("#BELAY --checkpoint-at 06:00Z,\n", "--checkpoint-at");
    check_refused("#BELAY --checkpoint-at 06:00z\n", "--checkpoint-at");
    check_refused("#BELAY --checkpoint-at ''\n", "--checkpoint-at");
    check_refused(
        "#BELAY --checkpoint-at 01:00Z,02:00Z,03:00Z,04:00Z,05:00Z,06:00Z,07:00Z,08:00Z,09:00Z\n",
        "at most 8");
    check_refused("#BELAY --keep 0\n", "--keep");
    check_refused("#BELAY --checkpoints-after never\n", "--checkpoints-after");
    check_refused("#BELAY --keep-every 0\n", "--keep-every");
    check_refused("#BELAY --keep-every=often\n", "--keep-every");
    check_refused("#BELAY --retries -1\n", "--retries");
    check_refused("#BELAY --retry 3\n", "--retry: expected END=N");
    check_refused("#BELAY --retry ''\n", "--retry: expected END=N");
    check_refused("#BELAY --retry failed=2,\n", "--retry: expected END=N");
    check_refused("#BELAY --retry crashed=2\n", "--retry: expected END=N with failed");
    check_refused("#BELAY --retry failed=1001\n", "failed");
    check_refused("#BELAY --retry failed=-1\n", "failed");
    check_refused("#BELAY --retry timeout=\n", "timeout");
    check_refused("#BELAY --label nlp\n", "expected NAME=VALUE, found \"nlp\"");
    check_refused("#BELAY --label 'a b=c'\n", "expected NAME=VALUE");
    check_refused("#BELAY --chdir=\n", "expected a directory");
    check_refused("#BELAY --pool a/b\n", "is not a pool's name");
    check_refused("#SBATCH -p short,,long\n", "has an empty item: expected a pool's name");
    check_refused("#SBATCH -p short,\n", "\"short,\" has an empty item: expected a pool's name");
    check_refused("#SBATCH -p short,long,short\n", "\"short\" is named twice");
    check_refused("#BELAY --script-on last\n", "expected each or first");
    check_refused("#BELAY --nodes=4-2\n", "the least number of nodes");
    check_refused("#BELAY --nodes=0-2\n", "the least number of nodes");
    check_refused("#BELAY --nodes=2-\n", "nodes");
    check_refused("#BELAY --nodes=-2\n", "the least number of nodes");
    check_refused("#BELAY --nodes=00000000002-4\n", "the least number of nodes");
    check_refused("#BELAY --nodes=2-257\n", "nodes");
    check_refused("#BELAY --on-loss=grow\n", "on-loss");
    check_refused("#BELAY --nodes=0\n", "nodes");
    check_refused("#BELAY --nodes=257\n", "nodes");
    check_refused("#SBATCH -n 0\n", "-n:");
    check_refused("#BELAY -N 2 -n 4\n", "in a job on several nodes, belay starts one task on each");
    check_refused(
        "#SBATCH -N 2 -n 5 --ntasks-per-node 2\n", "needs 3 nodes, but --nodes guarantees only 2");
    check_refused("#SBATCH -N 2-4 -n 5 --ntasks-per-node 2\n",
        "needs 3 nodes, but --nodes guarantees only 2");
    check_refused("#SBATCH -n 4096 --ntasks-per-node 2\n", "at most 256 are allowed");
    check_refused("#SBATCH -n 4096 -c 2\n", "8192 are more than the 4096 allowed");
    check_refused("#SBATCH --open-mode=replace\n", "--open-mode: expected one of append, truncate");
    check_refused("#SBATCH -o ''\n", "expected a file");
    check_refused("#SBATCH --cpus-per-gpu=2\n", "asks for no GPUs");
    check_refused("#SBATCH --mem-per-gpu=2G\n", "asks for no GPUs");
    check_refused(
        "#BELAY --job-name 0123456789012345678901234567890123456789012345678901234567890123\n",
        "63 bytes");
    check_refused("#BELAY --job-name \xff\xfe\n", "UTF-8");
}

static void unknown_flags_that_would_change_the_job_are_refused_by_name(void **state)
{
    (void)state;
    check_refused("#SBATCH --reservation=a\n", "train.sh:1: \"--reservation\" is not supported");
    check_refused("#SBATCH --uid=a\n", "is not supported: leave it out");
    check_refused(
        "#SBATCH --frobnicate\n", "\"--frobnicate\" is not known (belay submit --help lists");
    /* belay's own names of flags; Slurm's --cpus could begin several */
    check_refused("#SBATCH --cpus=4\n", "\"--cpus\" is not known");
    check_refused("#SBATCH --name x\n", "\"--name\" is not known");
    check_refused("#BELAY --checkpont coop\n", "did you mean --checkpoint?");
    check_refused("#BELAY --Time 2h\n", "did you mean --time?");
    /* no escape sequence reaches the terminal */
    check_refused("#BELAY --a\x1b[31mb 1\n", "--a?[31mb");
}

static void long_lines_and_many_lines_are_refused(void **state)
{
    struct buf text = {0};
    (void)state;
    buf_adds(&text, "#BELAY --comment ");
    while (text.len < DIRECTIVE_LINE_MAX - 1)
        buf_addc(&text, 'x');
    check_spec(buf_str(&text), "{}");
    buf_addc(&text, 'x');
    check_refused(buf_str(&text), "train.sh:1: a directive is at most 4095 bytes");
    buf_clear(&text);
    for (int i = 0; i < DIRECTIVES_MAX; i++)
        buf_adds(&text, "#BELAY --keep 1\n");
    check_spec(buf_str(&text), "{\"checkpoint\":{\"keep\":1}}");
    buf_adds(&text, "#BELAY --keep 1\n");
    check_refused(buf_str(&text), "train.sh:257: ");
    buf_deinit(&text);
}

static void a_script_may_hold_any_bytes(void **state)
{
    static const char script[] = "#BELAY -c 2\0 -J x\n\0\xff\n#BELAY -c 4\n";
    (void)state;
    struct result r = result_of(script, sizeof(script) - 1);
    assert_int_equal(r.rc, 0);
    assert_string_equal(r.spec, "{\"cpus\":2}");
    result_deinit(&r);
}

static void flags_of_the_command_line_name_it_in_errors(void **state)
{
    json_t *spec = json_object();
    struct err e;
    (void)state;
    assert_int_equal(
        directives_apply_flag("command line", "time", "90s", false, spec, NULL, NULL, &e), 0);
    assert_int_equal(json_integer_value(json_object_get(spec, "time_limit_ms")), 90000);
    assert_int_equal(
        directives_apply_flag("command line", "keep", "x", false, spec, NULL, NULL, &e),
        ERR_INVALID);
    assert_true(str_starts(e.text, "command line: --keep: "));
    assert_int_equal(
        directives_apply_flag("command line", "error", "f", false, spec, NULL, NULL, &e), 0);
    json_decref(spec);
}

/* The flag as the line has it, and never the member of the request, for each flag and letter. */
static void an_error_names_the_flag_as_it_is_written(void **state)
{
    static const char *const bad[] = {"=\x01 ?", "=", ""};
    size_t refused = 0;
    (void)state;
    for (const struct job_attribute *f = NULL; (f = directives_next(f));) {
        const char letter[2] = {f->letter, '\0'}, *const names[] = {f->flag, letter};
        for (size_t i = 0; i < (f->letter ? 2 : 1) * sizeof(bad) / sizeof(bad[0]); i++) {
            const char *name = names[i % 2 && f->letter], *value = bad[i / (f->letter ? 2 : 1)];
            char shown[80], script[160], start[160];
            snprintf(shown, sizeof(shown), "%s%s", name == letter ? "-" : "--", name);
            snprintf(script, sizeof(script), "#!/bin/sh\n#BELAY '%s%s'\n", shown, value);
            snprintf(start, sizeof(start), "train.sh:2: %s", shown);
            struct result r = result_of(script, strlen(script));
            bool is_named = str_starts(r.e.text, start) && strchr(": ", r.e.text[strlen(start)]);
            if (r.rc != 0 && (!is_named || strstr(r.e.text, "spec.")))
                fail_msg("%s: %s", shown, r.e.text);
            refused += r.rc != 0;
            result_deinit(&r);
        }
    }
    assert_true(refused > 100);
}

/* Of each option that was set: how and where it was last written. */
static void how_options_were_written_is_kept_for_errors_of_belayd(void **state)
{
    static const char script[] = "#!/bin/sh\n#SBATCH -p a --time=1\n#BELAY --partition b\n";
    struct err e;
    json_t *spec = json_object();
    (void)state;
    assert_int_equal(
        directives_apply_script("x.sh", script, sizeof(script) - 1, spec, NULL, NULL, &e), 0);
    assert_int_equal(directives_apply_flag(COMMAND_LINE, "t", "2", true, spec, NULL, NULL, &e), 0);
    assert_int_equal(
        directives_apply_flag("SBATCH_QOS", "qos", "high", true, spec, NULL, NULL, &e), 0);
    json_t *written = directives_take_written(spec),
           *expected = json_pack("{s:[s,s], s:[s,n], s:[s,s]}", "pool", "--partition", "x.sh:3",
               "time_limit_ms", "-t", "qos", "--qos", "SBATCH_QOS");
    assert_true(json_equal(written, expected));
    assert_null(json_object_get(spec, "written"));
    json_decref(written);
    json_decref(expected);
    json_decref(spec);
}

static void the_table_is_one_to_one(void **state)
{
    (void)state;
    for (const struct job_attribute *f = NULL; (f = directives_next(f));) {
        char letter[2] = {f->letter, '\0'};
        assert_true(f->help[0]);
        assert_int_equal(directives_takes_value(f->flag), f->takes != NULL);
        if (f->letter)
            assert_int_equal(directives_takes_value(letter), f->takes != NULL);
        for (const struct job_attribute *k = NULL; (k = directives_next(k)) != f;) {
            assert_false(str_eq(k->flag, f->flag));
            assert_true(!f->letter || k->letter != f->letter);
        }
    }
    assert_false(directives_takes_value(NULL) || directives_takes_value("") ||
                 directives_takes_value("no-such-flag"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flags_of_slurm_that_belay_does_not_need_are_ignored_with_a_warning),
        cmocka_unit_test(words_are_split_and_quoted_as_in_a_shell),
        cmocka_unit_test(the_last_of_repeated_flags_wins),
        cmocka_unit_test(directives_end_at_the_first_command),
        cmocka_unit_test(malformed_directives_are_refused_with_their_line),
        cmocka_unit_test(unknown_flags_that_would_change_the_job_are_refused_by_name),
        cmocka_unit_test(long_lines_and_many_lines_are_refused),
        cmocka_unit_test(a_script_may_hold_any_bytes),
        cmocka_unit_test(flags_of_the_command_line_name_it_in_errors),
        cmocka_unit_test(an_error_names_the_flag_as_it_is_written),
        cmocka_unit_test(how_options_were_written_is_kept_for_errors_of_belayd),
        cmocka_unit_test(the_table_is_one_to_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
