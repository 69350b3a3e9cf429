/* SPDX-License-Identifier: Apache-2.0
 *
 * Directives: what each flag means.
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
#include "base/time.h"
#include "cli/flags/begin.h"
#include "cli/flags/directives.h"
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void every_flag_sets_its_option(void **state)
{
    (void)state;
    check_spec("#BELAY --job-name train\n", "{\"name\":\"train\"}");
    check_spec("#BELAY --partition burst\n", "{\"pool\":\"burst\"}");
    check_spec("#BELAY --pool burst\n", "{\"pool\":\"burst\"}");
    check_spec("#BELAY --cpus-per-task 8\n", "{\"cpus\":8}");
    check_spec("#BELAY --name train --cpus 8\n", "{\"name\":\"train\",\"cpus\":8}");
    check_spec("#BELAY --gpus 2\n", "{\"gpus\":2}");
    check_spec("#BELAY --gpus-per-node 2\n", "{\"gpus\":2}");
    check_spec("#SBATCH --gres=gpu:2,lego:4,shmem\n",
        "{\"gpus\":2,\"resources\":{\"lego\":4,\"shmem\":1}}");
    check_spec("#SBATCH --gres=lego:4\n#SBATCH --gres=none\n", "{}");
    check_spec("#SBATCH -C 'intel | amd'\n", "{\"constraint\":\"intel|amd\"}");
    check_spec("#SBATCH --gres=gpu:1g.10gb:2,lego\n", "{\"resources\":{\"lego\":1,\"1g.10gb\":2}}");
    check_spec(
        "#SBATCH --gpus=a100:2\n#SBATCH -G 1g.10gb+me\n", "{\"resources\":{\"1g.10gb.me\":1}}");
    check_spec("#SBATCH -G 1g.10gb:2\n#SBATCH --gpus=1\n", "{\"gpus\":1}");
    check_spec("#SBATCH --exclusive\n", "{\"exclusive\":true}");
    check_spec(
        "#BELAY --nodelist n3,n1,n2 -x n2\n", "{\"nodelist\":\"n[1-3]\",\"exclude\":\"n2\"}");
    check_spec("#SBATCH -w n1\n", "{\"nodelist\":\"n1\"}");
    check_spec("#SBATCH -N1 -w n[1-3]\n", "{\"nodes\":1,\"nodelist\":\"n[1-3]\"}");
    /* all of them */
    check_spec(
        "#SBATCH -w n[1-3]\n", "{\"nodelist\":\"n[1-3]\",\"nodes\":3,\"script_on\":\"first\"}");
    check_refused("#SBATCH -N3 -w n[1-2]\n", "--nodelist names 2 nodes, but --nodes is 3");
    check_refused("#SBATCH -w n[1-\n", "train.sh:1: -w: expected one pair of brackets");
    check_refused("#SBATCH -x ,\n", "train.sh:1: -x: expected names of hosts between commas");
    check_refused("#SBATCH --nodefile=/nowhere/x\n", "train.sh:1: --nodefile: ");
    check_spec("#BELAY --input s3://lab/imagenet,size=140G\n",
        "{\"input\":{\"bytes\":150323855360},\"env\":{\"BELAY_INPUT\":\"s3://lab/imagenet\"}}");
    check_spec("#BELAY --input s3://lab/x?a=b&region=eu-west-1,size=1T\n",
        "{\"input\":{\"place\":\"aws/"
        "eu-west-1\",\"bytes\":1099511627776},\"env\":{\"BELAY_INPUT\":\"s3://lab/"
        "x?a=b&region=eu-west-1\"}}");
    check_spec("#BELAY --input gs://lab/x,place=gcp/us-central1,size=512M\n",
        "{\"input\":{\"place\":\"gcp/"
        "us-central1\",\"bytes\":536870912},\"env\":{\"BELAY_INPUT\":\"gs://lab/x\"}}");
    check_refused("#BELAY --input s3://lab/x\n", "--input: the size must be given");
    check_refused(
        "#BELAY --input s3://lab/x,140G\n", "--input: expected size=SIZE or place=PROVIDER/REGION");
    check_refused("#BELAY --input s3://lab/x,size=0\n", "--input: ");
    check_refused("#BELAY --input s3://lab/x,size=lots\n", "--input: ");
    check_refused("#BELAY --input s3://,size=1G\n", "--input: expected data at s3://");
    check_refused("#BELAY --input ftp://x/y,size=1G\n", "--input: expected data at s3://");
    check_spec("#SBATCH -C '[intel|amd]'\n", "{\"constraint\":\"(intel|amd)\"}");
    check_spec("#SBATCH -C '[(intel&ib)|amd]&avx' -N 1\n",
        "{\"constraint\":\"((intel&ib)|amd)&avx\",\"nodes\":1}");
    check_spec("#SBATCH -C '[intel|amd]' -N 2\n#SBATCH -C '[intel]'\n",
        "{\"constraint\":\"intel\",\"nodes\":2,\"script_on\":\"first\"}");
    check_spec("#BELAY --region us-east-1\n", "{\"constraint\":\"us-east-1\"}");
    check_spec("#BELAY --zone us-east-1a,us-east-1b --region us-east-1 -C a100|h100\n",
        "{\"constraint\":\"us-east-1&(us-east-1a|us-east-1b)&(a100|h100)\"}");
    check_spec(
        "#BELAY --zone a,b -C (x|y)&ib\n#BELAY --zone c\n", "{\"constraint\":\"c&((x|y)&ib)\"}");
    check_spec("#BELAY --zone a --zone=\n", "{}");
    check_spec("#SBATCH --constraint=a100&ib -L matlab:2,ansys\n",
        "{\"constraint\":\"a100&ib\",\"licences\":{\"ansys\":1,\"matlab\":2}}");
    check_spec("#BELAY --mem 4G\n", "{\"memory_mib\":4096}");
    check_spec("#BELAY --mem 512\n", "{\"memory_mib\":512}");
    check_spec("#BELAY --market spot\n", "{\"market\":\"spot\"}");
    check_spec("#BELAY --checkpoint coop\n", "{\"checkpoint\":{\"method\":\"coop\"}}");
    check_spec("#BELAY --checkpoint-every 90\n", "{\"checkpoint\":{\"every_ms\":90000}}");
    check_spec("#BELAY --checkpoint-every auto\n", "{\"checkpoint\":{\"every_ms\":0}}");
    check_spec(
        "#BELAY --checkpoint-at 18:30Z,06:00Z\n", "{\"checkpoint\":{\"at\":\"06:00,18:30\"}}");
    check_spec(
        "#BELAY --finish-by +8h --work 5h\n", "{\"finish_in_ms\":28800000,\"work_ms\":18000000}");
    /* the last one applies */
    check_spec(
        "#BELAY --finish-by now+2days\n#BELAY --finish-by +90m\n", "{\"finish_in_ms\":5400000}");
    check_repeated(
        "#BELAY --finish-by 07:00 --work 5h\n", "{\"work_ms\":18000000,\"finish_at\":\"07:00\"}");
    check_repeated(
        "#BELAY --finish-by 07:00\n#BELAY --finish-by +8h\n", "{\"finish_in_ms\":28800000}");
    check_repeated(
        "#BELAY --finish-by +8h\n#BELAY --finish-by 23:59\n", "{\"finish_at\":\"23:59\"}");
    check_refused("#BELAY --finish-by +soon\n", "train.sh:1: --finish-by: expected a duration");
    check_refused(
        "#BELAY --finish-by 8h\n", "or with Z appended in UTC, or +8h from now, found \"8h\"");
    check_refused("#BELAY --finish-by +0\n",
        "train.sh:1: --finish-by: expected at least one second, found \"0\"");
    check_refused("#BELAY --work 0\n", "train.sh:1: --work: expected at least one second");
    check_spec("#BELAY --keep 5\n", "{\"checkpoint\":{\"keep\":5}}");
    check_spec("#BELAY --checkpoints-after last\n", "{\"checkpoint\":{\"after\":\"last\"}}");
    check_spec("#BELAY --keep-every 10\n", "{\"checkpoint\":{\"keep_every\":10}}");
    check_spec("#BELAY --retries 3\n", "{\"retry\":{\"failed\":3}}");
    check_spec(
        "#BELAY --label team=nlp --label a=b=c\n", "{\"labels\":{\"team\":\"nlp\",\"a\":\"b=c\"}}");
    check_spec("#BELAY --account nlp\n", "{\"team\":\"nlp\",\"labels\":{\"account\":\"nlp\"}}");
    check_spec("#BELAY --chdir /data\n", "{\"cwd\":\"/data\"}");
    check_spec("#SBATCH --gpus-per-task=2\n", "{\"gpus\":2}");
    check_spec("#SBATCH --nodes=1-1\n", "{\"nodes\":1}");
    check_spec("#BELAY -N 4\n", "{\"nodes\":4}");
    check_spec("#BELAY --nodes=4-4\n", "{\"nodes\":4}");
    check_spec("#BELAY --nodes=2-8 --on-loss wait\n",
        "{\"nodes\":8,\"nodes_min\":2,\"on_loss\":\"wait\"}");
    check_spec("#BELAY --nodes=2-8\n#BELAY --nodes=3\n", "{\"nodes\":3}");
    check_spec("#SBATCH --nodes=1-4\n", "{\"nodes\":4,\"nodes_min\":1,\"script_on\":\"first\"}");
    check_spec("#SBATCH --nodes=2\n", "{\"nodes\":2,\"script_on\":\"first\"}");
    /* belay's own flag is explicit */
    check_spec("#SBATCH -N 2\n#BELAY --nodes 2\n", "{\"nodes\":2}");
    check_spec("#BELAY --nodes 2\n#SBATCH -N 3\n", "{\"nodes\":3}");
    check_spec("#SBATCH -N 2\n#BELAY --script-on each\n", "{\"nodes\":2}");
    check_spec("#BELAY -N 2 --script-on first\n", "{\"nodes\":2,\"script_on\":\"first\"}");
    check_spec("#BELAY --script-on first\n", "{}");
    check_spec("#SBATCH --ntasks=8 --ntasks-per-node=2 -c 3\n",
        "{\"cpus\":6,\"nodes\":4,\"script_on\":\"first\",\"launch\":{\"all_tasks\":8,\"tasks\":2,"
        "\"cpus_per_task\":3}}");
    check_spec("#SBATCH -N 3 -n 7\n", "{\"nodes\":3,\"script_on\":\"first\",\"launch\":{\"all_"
                                      "tasks\":7,\"tasks\":3,\"cpus_per_task\":1},\"cpus\":3}");
    check_spec("#SBATCH -N 2-4 -n 8\n",
        "{\"nodes\":4,\"nodes_min\":2,\"script_on\":\"first\",\"launch\":{"
        "\"all_tasks\":8,\"tasks\":4,\"cpus_per_task\":1},\"cpus\":4}");
    check_spec("#SBATCH -N 4 -n 2\n",
        "{\"nodes\":2,\"script_on\":\"first\",\"launch\":{\"all_tasks\":2}}");
    check_spec("#SBATCH -N 4 -n 1\n", "{\"nodes\":1}");
    check_spec("#SBATCH -N 2 --ntasks-per-node=1\n",
        "{\"nodes\":2,\"script_on\":\"first\",\"launch\":{\"tasks\":1}}");
    check_spec("#SBATCH -N 2 -G 4\n", "{\"nodes\":2,\"gpus\":2,\"script_on\":\"first\"}");
    check_spec(
        "#SBATCH -N 2 --gpus-per-node 4\n", "{\"nodes\":2,\"gpus\":4,\"script_on\":\"first\"}");
    check_spec("#BELAY --nodes 1 --ntasks 1 --ntasks-per-node=1\n", "{\"nodes\":1}");
    check_spec("#BELAY --requeue --parsable --comment 'to be kept'\n", "{\"requeue\":true}");
    check_spec("#SBATCH --no-requeue\n", "{\"requeue\":false}");
    check_spec("#SBATCH --no-requeue\n#SBATCH --requeue\n", "{\"requeue\":true}");
    check_spec("#BELAY --retry failed=2,node-lost=10 --retry failed=0,reclaimed=unlimited\n",
        "{\"retry\":{\"failed\":0,\"node-lost\":10,\"reclaimed\":null}}");
    check_spec("#BELAY --checkpoint signal --keep 2 --checkpoint-every 5m\n",
        "{\"checkpoint\":{\"method\":\"signal\",\"keep\":2,\"every_ms\":300000}}");
}

static void times_of_the_day_are_in_local_time(void **state)
{
    (void)state;
    setenv("TZ", "HERE-02:30", 1); /* two and a half hours before UTC's */
    tzset();
    check_spec("#BELAY --checkpoint-at 06:00,01:00,00:15Z\n",
        "{\"checkpoint\":{\"at\":\"00:15,03:30,22:30\"}}");
    unsetenv("TZ");
    tzset();
}

static void gpus_are_read_as_slurm_writes_them(void **state)
{
    (void)state;
    check_spec("#SBATCH --gres=gpu\n", "{\"gpus\":1}");
    check_spec("#SBATCH --gres=gpu:2\n", "{\"gpus\":2}");
    check_refused(
        "#SBATCH --gpus -1\n", "--gpus: expected N (0 .. 64), MODEL or MODEL:N, found \"-1\"");
    check_refused("#SBATCH -G -2:3\n", "-G: expected N");
    check_refused("#SBATCH --gpus +1\n", "--gpus: expected N");
    check_refused("#SBATCH --gpus-per-node=-1\n", "--gpus-per-node: expected N");
    check_refused("#SBATCH --gpus-per-task=-1\n", "--gpus-per-task: expected N");
    check_refused("#SBATCH --gres=gpu:-1\n", "--gres: expected N");
    check_refused("#SBATCH --gpus a100:-1\n", "--gpus: ");
    check_refused("#SBATCH --gres=lego:-1\n", "--gres: ");
    check_refused("#SBATCH --licenses=lego:-1\n", "--licenses: ");
    check_refused("#SBATCH --mem=-1\n", "--mem: ");
    check_refused("#BELAY --gpu-memory=-1\n", "--gpu-memory: ");
    check_refused("#SBATCH -N -1\n", "-N: ");
    check_spec("#SBATCH --gpus=4090:2\n", "{\"gpus\":2,\"gpu_model\":\"4090\"}");
    check_spec("#SBATCH --gres=gpu:a100\n", "{\"gpus\":1,\"gpu_model\":\"a100\"}");
    check_spec("#SBATCH --gres=gpu:A100-SXM4-40GB:4\n", "{\"gpus\":4,\"gpu_model\":\"a100\"}");
    check_spec("#SBATCH -G rtx:4\n#BELAY --gpu-memory 24G\n",
        "{\"gpus\":4,\"gpu_model\":\"rtx\",\"gpu_memory_mib\":24576}");
    check_spec("#SBATCH -G a100:4\n#SBATCH -G 2\n", "{\"gpus\":2}");
    check_refused("#SBATCH --gres=lego:0\n", "--gres: lego: expected an integer in 1 .. 1000000");
    check_refused("#SBATCH --gres=lego:red:1\n", "--gres: lego: ");
    check_refused("#SBATCH --gres=gpu:2,gpu:v100:1\n",
        "--gres: a job can have GPUs of one model only: \"gpu:v100:1\" is the second");
    check_refused("#SBATCH --gres=\n", "--gres");
    check_refused("#SBATCH -L matlab@db:1\n", "-L: ");
    check_refused("#SBATCH --gpus=1g.10gb:0\n", "--gpus: slices: expected an integer in 1 .. 64");
    check_refused("#SBATCH --gpus-per-task=1g.10gb:1\n", "use --gpus 1g.10gb:N");
    check_refused("#SBATCH --exclusive=user\n", "--exclusive takes no value");
    check_refused("#BELAY --zone 'a b'\n", "--zone: at 3: ");
    check_refused("#BELAY --zone 'a&b'\n", "--zone: expected names with commas between them");
    check_refused("#BELAY --region a,,b\n", "--region: at 3: ");
    check_refused("#SBATCH -C 'a|b&c'\n", "-C: at 4: expected parentheses");
    check_refused("#SBATCH -C '[a|b]' -N 2\n", "is supported for jobs on one node only");
    check_refused("#SBATCH -C '[a|b]' -w n[1-3]\n", "is supported for jobs on one node only");
    check_refused("#SBATCH -C '[a|b]' -N 1-2\n", "is supported for jobs on one node only");
    check_refused("#SBATCH -C '[a*2&b*4]'\n",
        "-C: at 3: expected & or | or ) (there are no numbers of nodes)");
    check_refused("#SBATCH -C '[a|b'\n", "-C: at 1: ");
    check_refused("#SBATCH -C 'a|b]'\n", "-C: at 4: ");
    check_refused("#SBATCH -C '[a|b]&[c|d]'\n", "-C: at 1: ");
    check_refused("#SBATCH -C ']a[' -N 2\n", "-C: at 1: ");
    check_refused("#SBATCH --gres=gpu:\n", "train.sh:1: --gres");
    check_refused("#SBATCH --gpus 65\n", "0 .. 64");
}

static void memory_per_cpu_is_multiplied_after_all_lines_are_read(void **state)
{
    (void)state;
    check_spec("#SBATCH --mem-per-cpu=2G\n", "{\"memory_mib\":2048}");
    check_spec("#SBATCH --mem-per-cpu=2G\n#SBATCH -c 4\n", "{\"cpus\":4,\"memory_mib\":8192}");
    check_spec("#SBATCH --mem-per-cpu=2G --mem=1G\n", "{\"memory_mib\":1024}");
    check_spec("#SBATCH --mem=1G --mem-per-cpu=2G\n", "{\"memory_mib\":2048}");
    check_refused(
        "#SBATCH --mem-per-cpu=some\n", "train.sh:1: --mem-per-cpu: expected a memory size");
    check_refused(
        "#SBATCH --mem-per-cpu=1024T -c 2\n", "--mem-per-cpu, in MiB: 2147483648 are more");
    check_refused("#SBATCH --mem-per-cpu=2000T\n", "train.sh:1: --mem-per-cpu: ");
}

static void options_per_task_are_multiplied_after_all_lines_are_read(void **state)
{
    (void)state;
    check_spec("#SBATCH -n 1\n", "{}");
    check_spec("#SBATCH -n 4\n", "{\"launch\":{\"tasks\":4,\"cpus_per_task\":1},\"cpus\":4}");
    check_spec("#SBATCH --ntasks-per-node=2 -c 3\n",
        "{\"cpus\":6,\"launch\":{\"tasks\":2,\"cpus_per_task\":3}}");
    check_spec("#SBATCH -n 2 --ntasks-per-node=2\n",
        "{\"launch\":{\"tasks\":2,\"cpus_per_task\":1},\"cpus\":2}");
    check_spec("#SBATCH -n 2 --gpus-per-task=1 --mem-per-cpu=1G\n",
        "{\"gpus\":2,\"launch\":{\"tasks\":2,\"cpus_per_task\":1},\"cpus\":2,\"memory_mib\":2048}");
    check_spec("#SBATCH -n 4 --ntasks-per-gpu=2\n",
        "{\"gpus\":2,\"launch\":{\"tasks\":4,\"cpus_per_task\":1},\"cpus\":4}");
    check_spec("#SBATCH -G 2 --ntasks-per-gpu=2\n",
        "{\"gpus\":2,\"launch\":{\"tasks\":4,\"cpus_per_task\":1},\"cpus\":4}");
    check_spec("#SBATCH -N 2 --gres=gpu:2 --ntasks-per-gpu=1\n",
        "{\"nodes\":2,\"gpus\":2,\"script_on\":\"first\",\"launch\":{\"tasks\":2,\"cpus_per_task\":"
        "1},\"cpus\":2}");
    check_refused("#SBATCH -G 2 -n 3 --ntasks-per-gpu=2\n",
        "--ntasks-per-gpu 2 with 2 GPUs contradicts --ntasks 3");
    check_refused("#SBATCH --ntasks-per-gpu=2\n", "needs --gpus or --ntasks");
    check_refused("#SBATCH -G 2 --ntasks-per-node=2 --ntasks-per-gpu=2\n",
        "not together with --ntasks-per-node");
    check_spec(
        "#SBATCH --mincpus=8 -n 2\n", "{\"launch\":{\"tasks\":2,\"cpus_per_task\":1},\"cpus\":8}");
    check_spec("#SBATCH --mincpus=2 -c 3\n", "{\"cpus\":3}");
    check_spec(
        "#SBATCH --kill-on-invalid-dep=no --ignore-pbs\n", "{\"kill_on_invalid_dep\":false}");
    check_refused(
        "#SBATCH --kill-on-invalid-dep=maybe\n", "expected one of yes, no, found \"maybe\"");
    check_refused("#SBATCH --deadline=yesterday\n", "train.sh:1: --deadline: ");
    check_spec("#BELAY -N 2 -n 2\n", "{\"nodes\":2}");
    check_spec("#SBATCH -G 2 --cpus-per-gpu=4 --mem-per-gpu=8G\n",
        "{\"gpus\":2,\"cpus\":8,\"memory_mib\":16384}");
}

static void output_files_are_sent_to_the_agent(void **state)
{
    (void)state;
    check_spec("#SBATCH -o out-%j.txt\n#SBATCH --error=e\n",
        "{\"launch\":{\"output\":\"out-%j.txt\",\"error\":\"e\"}}");
    check_spec("#SBATCH --input=in.txt --open-mode=append\n",
        "{\"launch\":{\"input\":\"in.txt\",\"open_mode\":\"append\"}}");
}

static void sbatch_passes_the_environment_on_but_no_secrets(void **state)
{
    (void)state;
    static const struct {
        const char *flags, *here, *named;
    } cases[] = {{"", "yes", NULL}, {"NONE", NULL, NULL}, {"NAMED=1", NULL, "1"},
        {"ALL,NAMED=1", "yes", "1"}};
    setenv("BELAY_HOME", "/h", 1);
    setenv("HERE", "yes", 1);
    setenv("MY_API_TOKEN", "s3cret", 1);
    setenv("SLURM_JOB_ID", "9", 1);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        json_t *spec = json_object();
        struct buf warnings = {0};
        struct err e;
        directives_begin_slurm(spec);
        if (*cases[i].flags)
            assert_int_equal(directives_apply_flag("command line", "export", cases[i].flags, true,
                                 spec, NULL, NULL, &e),
                0);
        assert_int_equal(directives_finish(spec, result_add_warning, &warnings, &e), 0);
        const json_t *env = json_object_get(spec, "env");
        assert_true(str_eq(json_string_value(json_object_get(env, "HERE")), cases[i].here));
        assert_true(str_eq(
            json_string_value(json_object_get(env, "BELAY_HOME")), cases[i].here ? "/h" : NULL));
        assert_true(str_eq(json_string_value(json_object_get(env, "NAMED")), cases[i].named));
        assert_null(json_object_get(env, "MY_API_TOKEN"));
        assert_null(json_object_get(env, "SLURM_JOB_ID"));
        assert_int_equal(strstr(buf_str(&warnings), "is not passed: MY_API_TOKEN (") != NULL,
            cases[i].here != NULL);
        assert_null(strstr(buf_str(&warnings), "s3cret"));
        assert_true(json_is_true(json_object_get(json_object_get(spec, "launch"), "slurm")));
        assert_null(json_object_get(spec, "export_all"));
        buf_deinit(&warnings);
        json_decref(spec);
    }
    unsetenv("BELAY_HOME");
    unsetenv("SLURM_JOB_ID");
}

static void a_relative_directory_counts_from_the_current_one(void **state)
{
    char here[PATH_MAX];
    struct result r = result_of("#SBATCH -D sub/dir\n", strlen("#SBATCH -D sub/dir\n"));
    (void)state;
    assert_int_equal(r.rc, 0);
    assert_non_null(getcwd(here, sizeof(here)));
    char *expected = mem_printf("{\"cwd\":\"%s/sub/dir\"}", here);
    assert_string_equal(r.spec, expected);
    free(expected);
    result_deinit(&r);
}

static void a_time_without_unit_is_minutes_for_SBATCH_and_seconds_for_BELAY(void **state)
{
    (void)state;
    check_spec("#SBATCH --time=90\n", "{\"time_limit_ms\":5400000}");
    check_spec("#BELAY --time=90\n", "{\"time_limit_ms\":5400000}");
    check_spec("#BELAY --time=90s\n", "{\"time_limit_ms\":90000}");
    check_spec("#SBATCH -t 1:30:00\n", "{\"time_limit_ms\":5400000}");
    check_spec("#BELAY -t 1:30:00\n", "{\"time_limit_ms\":5400000}");
    check_spec("#SBATCH -t 1-00\n", "{\"time_limit_ms\":86400000}");
    check_spec("#BELAY -t 2h\n", "{\"time_limit_ms\":7200000}");
    check_spec("#SBATCH -t UNLIMITED\n", "{}");
    check_refused("#SBATCH -t soon\n", "train.sh:1: -t:");
    check_refused("#BELAY -t -5\n", "-t:");
}

static void signals_have_names_and_numbers(void **state)
{
    (void)state;
#define GRACE(number, ms, script)                                                                  \
    "\"launch\":{\"grace\":{\"signal\":" number ",\"before_ms\":" ms ",\"script_only\":" script "}}"
    check_spec("#BELAY -t 2h --signal USR2\n", "{\"time_limit_ms\":7200000," GRACE("12", "60000",
                                                   "false") ",\"checkpoint\":{\"signal\":12}}");
    check_spec(
        "#BELAY -t 2h --signal SIGTERM@5\n", "{\"time_limit_ms\":7200000," GRACE("15", "5000",
                                                 "false") ",\"checkpoint\":{\"signal\":15}}");
    check_spec("#BELAY -t 2h --signal 10@0\n",
        "{\"time_limit_ms\":7200000," GRACE("10", "0", "false") ",\"checkpoint\":{\"signal\":10}}");
    check_spec("#SBATCH -t 2:00:00 --signal=B:usr1@120\n",
        "{\"time_limit_ms\":7200000," GRACE(
            "10", "120000", "true") ",\"checkpoint\":{\"signal\":10}}");
    check_spec("#BELAY -t 2h --signal KILL@90\n",
        "{\"time_limit_ms\":7200000," GRACE("9", "90000", "false") "}");
    check_warned(
        "#BELAY --signal KILL\n", "{" GRACE("9", "60000", "false") "}", "no effect without --time");
    check_warned("#BELAY -t 1m --signal KILL\n",
        "{\"time_limit_ms\":60000," GRACE("9", "60000", "false") "}", "it is sent at the start");
    check_spec("#BELAY --checkpoint signal --signal 10\n",
        "{\"checkpoint\":{\"method\":\"signal\",\"signal\":10}," GRACE("10", "60000", "false") "}");
    check_refused("#BELAY --signal 65\n", "expected a signal");
    check_refused("#BELAY --signal 0\n", "expected a signal");
    check_refused("#BELAY --signal SIG\n", "expected a signal");
    check_refused("#BELAY --signal B:@9\n", "expected a signal");
    check_refused(
        "#BELAY --signal AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n", "expected a signal");
    check_refused("#BELAY --signal USR1@\n", "the seconds after @");
    check_refused("#BELAY --signal USR1@65536\n", "the seconds after @");
    check_refused("#BELAY --signal USR1@1m\n", "the seconds after @");
    check_refused("#BELAY --signal X:USR1\n", "expected [B:]SIGNAL[@SECONDS]");
    check_refused("#BELAY --signal BB:USR1\n", "expected [B:]SIGNAL[@SECONDS]");
    check_refused("#SBATCH --signal=R:USR1@60\n", "R: is for reservations");
    check_refused("#SBATCH --signal=RB:USR1@60\n", "R: is for reservations");
#undef GRACE
}

static void a_signal_that_asks_for_checkpoints_can_be_handled(void **state)
{
    struct err e;
    json_t *spec = json_object();
    (void)state;
    assert_int_equal(
        directives_apply_flag("command line", "signal", "KILL@60", false, spec, NULL, NULL, &e), 0);
    assert_int_equal(directives_finish(spec, NULL, NULL, &e), 0);
    assert_int_equal(
        directives_apply_flag("command line", "checkpoint", "signal", false, spec, NULL, NULL, &e),
        0);
    assert_int_equal(directives_finish(spec, NULL, NULL, &e), ERR_INVALID);
    assert_non_null(strstr(e.text, "a signal that a program can handle"));
    json_decref(spec);
}

static void only_named_variables_are_passed_on(void **state)
{
    (void)state;
    setenv("BELAY_TEST_HERE", "yes", 1);
    unsetenv("BELAY_TEST_GONE");
    check_spec("#BELAY --export A=1,B=x=y,BELAY_TEST_HERE\n",
        "{\"env\":{\"A\":\"1\",\"B\":\"x=y\",\"BELAY_TEST_HERE\":\"yes\"}}");
    check_spec("#BELAY --export NONE\n", "{}");
    check_warned(
        "#BELAY --export ALL,A=1\n", "{\"env\":{\"A\":\"1\"}}", "name the variables that it needs");
    check_warned("#BELAY --export BELAY_TEST_GONE\n", "{}", "BELAY_TEST_GONE is not set here");
    check_refused("#BELAY --export =1\n", "expected NAME or NAME=VALUE");
    check_refused("#BELAY --export 'A B=1'\n", "expected NAME or NAME=VALUE, found \"A B=1\"");
    check_refused("#BELAY --export 1A=1\n", "expected NAME or NAME=VALUE");
}

/* The time parsed at 2026-10-31T20:30:00 in New York, where the clocks are put back the following
 * night. */
static void check_begin(const char *text, const char *expected)
{
    struct wall now, at = {-7};
    struct err e = {0};
    char iso[TIME_ISO_MAX];
    assert_int_equal(time_parse_iso("2026-11-01T00:30:00Z", &now, &e), 0);
    if (!expected) {
        assert_int_equal(begin_parse(text, now, &at, &e), ERR_INVALID);
        assert_non_null(strstr(e.text, text));
        assert_int_equal(at.ms, -7);
        return;
    }
    if (begin_parse(text, now, &at, &e) != 0)
        fail_msg("%s: %s", text, e.text);
    time_format_iso(at, iso);
    assert_string_equal(iso, expected);
}

static void a_time_to_begin_is_read_as_sbatch_does(void **state)
{
    (void)state;
    setenv("TZ", "America/New_York", 1);
    tzset();
    check_begin("now", "2026-11-01T00:30:00Z");
    check_begin("today", "2026-11-01T00:30:00Z");
    check_begin("now+1hour", "2026-11-01T01:30:00Z");
    check_begin("now+90", "2026-11-01T00:31:30Z");
    check_begin("now + 2 weeks", "2026-11-15T00:30:00Z");
    check_begin("now+3Days", "2026-11-04T00:30:00Z");
    check_begin("now+5minute", "2026-11-01T00:35:00Z");
    check_begin("now+10s", "2026-11-01T00:30:10Z");
    check_begin("now+10 secs", "2026-11-01T00:30:10Z");
    check_begin("now+10seconds", "2026-11-01T00:30:10Z");
    check_begin("now+5m", "2026-11-01T00:35:00Z");
    check_begin("now+5mins", "2026-11-01T00:35:00Z");
    check_begin("now+2h", "2026-11-01T02:30:00Z");
    check_begin("now+2hrs", "2026-11-01T02:30:00Z");
    check_begin("now+1d", "2026-11-02T00:30:00Z");
    check_begin("now+1W", "2026-11-08T00:30:00Z");
    check_begin("21:00", "2026-11-01T01:00:00Z");
    check_begin("9:05:07pm", "2026-11-01T01:05:07Z");
    check_begin("20:30", "2026-11-02T01:30:00Z"); /* tomorrow, with another offset by then */
    check_begin("16:00", "2026-11-01T21:00:00Z");
    check_begin("12:00AM", "2026-11-01T04:00:00Z");
    check_begin("midnight", "2026-11-01T04:00:00Z");
    check_begin("noon", "2026-11-01T17:00:00Z");
    check_begin("tomorrow", "2026-11-01T04:00:00Z");
    check_begin("2026-12-01", "2026-12-01T05:00:00Z");
    check_begin("2026-12-01T10:00", "2026-12-01T15:00:00Z");
    check_begin("2026-12-01T10:00:09", "2026-12-01T15:00:09Z");
    check_begin("2026-12-01T10:00:00Z", "2026-12-01T10:00:00Z"); /* as belay prints it */
    check_begin("120126", "2026-12-01T05:00:00Z");
    check_begin("12/01", "2026-12-01T05:00:00Z");
    check_begin("12/01/27", "2027-12-01T05:00:00Z");
    static const char *const wrong[] = {"", "soon", "now+", "now+x", "now+s", "now+1ss", "now+1mo",
        "now+1hs2", "now+1fortnight", "now-1hour", "nowish", "24:00", "9:60", "0:30am", "13:00pm",
        "16:00:60", "16", "2026-13-01", "2026-02-29", "2026-12-01T", "2026-12-01T25:00",
        "2026-12-01 10:00", "13/01", "12/32", "12/01/2027", "999999", "2026-10-31", "2025-01-01",
        "2037-01-01", "2025-01-01T00:00:00Z", "2026-12-01T10:00Y", "now+99999999weeks",
        "now+1000000000000"};
    for (size_t k = 0; k < sizeof(wrong) / sizeof(wrong[0]); k++)
        check_begin(wrong[k], NULL);
    unsetenv("TZ");
    tzset();
    check_refused("#SBATCH --begin=teatimes\n", "train.sh:1: --begin: expected a time");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_flag_sets_its_option),
        cmocka_unit_test(times_of_the_day_are_in_local_time),
        cmocka_unit_test(gpus_are_read_as_slurm_writes_them),
        cmocka_unit_test(memory_per_cpu_is_multiplied_after_all_lines_are_read),
        cmocka_unit_test(options_per_task_are_multiplied_after_all_lines_are_read),
        cmocka_unit_test(output_files_are_sent_to_the_agent),
        cmocka_unit_test(sbatch_passes_the_environment_on_but_no_secrets),
        cmocka_unit_test(a_relative_directory_counts_from_the_current_one),
        cmocka_unit_test(a_time_without_unit_is_minutes_for_SBATCH_and_seconds_for_BELAY),
        cmocka_unit_test(signals_have_names_and_numbers),
        cmocka_unit_test(a_signal_that_asks_for_checkpoints_can_be_handled),
        cmocka_unit_test(only_named_variables_are_passed_on),
        cmocka_unit_test(a_time_to_begin_is_read_as_sbatch_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
