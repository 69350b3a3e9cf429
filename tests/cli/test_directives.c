/* SPDX-License-Identifier: Apache-2.0
 *
 * Directives: the meaning of each flag, the parsing of lines, refusals by name, and warnings.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/buf.h"
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

struct result {
    int rc;
    struct err e;
    char *spec; /* JSON */
    struct buf warnings;
};

static void on_warning(void *ctx, const char *text)
{
    struct buf *all = ctx;
    buf_printf(all, "%s\n", text);
}

/* The script has no NUL after it, so that reading too far is detected. */
static struct result apply_as(const char *script, size_t n, bool repeated)
{
    struct result r = {0};
    json_t *spec = json_object();
    char *exact = malloc(n ? n : 1);
    memcpy(exact, script, n);
    r.rc = directives_apply_script("train.sh", exact, n, spec, on_warning, &r.warnings, &r.e);
    if (repeated)
        directives_be_repeated(spec);
    if (r.rc == 0)
        r.rc = directives_finish(spec, on_warning, &r.warnings, &r.e);
    r.spec = json_dump_text(spec);
    json_decref(spec);
    free(exact);
    return r;
}

static struct result apply_bytes(const char *script, size_t n)
{
    return apply_as(script, n, false);
}

static void result_deinit(struct result *r)
{
    buf_deinit(&r->warnings);
    free(r->spec);
}

static void check_result(struct result *r, const char *expected)
{
    if (r->rc != 0)
        fail_msg("%s", r->e.text);
    assert_string_equal(r->spec, expected);
    assert_string_equal(buf_str(&r->warnings), "");
    result_deinit(r);
}

static void check_spec(const char *script, const char *expected)
{
    struct result r = apply_bytes(script, strlen(script));
    check_result(&r, expected);
}

/* For a cron entry. */
static void check_repeated(const char *script, const char *expected)
{
    struct result r = apply_as(script, strlen(script), true);
    check_result(&r, expected);
}

static void check_warned(const char *script, const char *expected, const char *warning)
{
    struct result r = apply_bytes(script, strlen(script));
    if (r.rc != 0)
        fail_msg("%s", r.e.text);
    assert_string_equal(r.spec, expected);
    if (!strstr(buf_str(&r.warnings), warning))
        fail_msg("\"%s\" is not in \"%s\"", warning, buf_str(&r.warnings));
    result_deinit(&r);
}

static void check_refused(const char *script, const char *expected)
{
    struct result r = apply_bytes(script, strlen(script));
    if (r.rc >= 0 || r.rc != (int)r.e.kind || !strstr(r.e.text, expected))
        fail_msg("%d: \"%s\" is not in \"%s\", for %s", r.rc, expected, r.e.text, script);
    result_deinit(&r);
}

/* ---- meaning of flags ---- */

static void every_flag_sets_what_it_says(void **state)
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
    check_refused("#SBATCH -N3 -w n[1-2]\n", "--nodelist names 2 nodes, and --nodes asks for 3");
    check_refused("#SBATCH -w n[1-\n", "train.sh:1: --nodelist: expected one pair of brackets");
    check_refused("#SBATCH -x ,\n", "train.sh:1: --exclude: expected names of nodes");
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
    check_refused("#BELAY --input s3://lab/x\n", "--input: how large it is has to be said");
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
    check_refused("#BELAY --finish-by +0\n",
        "train.sh:1: --finish-by: expected a second at least, found \"0\"");
    check_refused("#BELAY --work 0\n", "train.sh:1: --work: expected a second at least");
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

static void times_of_the_day_are_those_of_the_clock_here(void **state)
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
    check_refused("#SBATCH -G -2:3\n", "--gpus: expected N");
    check_refused("#SBATCH --gpus +1\n", "--gpus: expected N");
    check_refused("#SBATCH --gpus-per-node=-1\n", "--gpus-per-node: expected N");
    check_refused("#SBATCH --gpus-per-task=-1\n", "--gpus-per-task: expected N");
    check_refused("#SBATCH --gres=gpu:-1\n", "--gres: expected N");
    check_refused("#SBATCH --gpus a100:-1\n", "--gpus: ");
    check_refused("#SBATCH --gres=lego:-1\n", "--gres: ");
    check_refused("#SBATCH --licenses=lego:-1\n", "--licenses: ");
    check_refused("#SBATCH --mem=-1\n", "--mem: ");
    check_refused("#BELAY --gpu-memory=-1\n", "--gpu-memory: ");
    check_refused("#SBATCH -N -1\n", "--nodes: ");
    check_spec("#SBATCH --gpus=4090:2\n", "{\"gpus\":2,\"gpu_model\":\"4090\"}");
    check_spec("#SBATCH --gres=gpu:a100\n", "{\"gpus\":1,\"gpu_model\":\"a100\"}");
    check_spec("#SBATCH --gres=gpu:A100-SXM4-40GB:4\n", "{\"gpus\":4,\"gpu_model\":\"a100\"}");
    check_spec("#SBATCH -G rtx:4\n#BELAY --gpu-memory 24G\n",
        "{\"gpus\":4,\"gpu_model\":\"rtx\",\"gpu_memory_mib\":24576}");
    check_spec("#SBATCH -G a100:4\n#SBATCH -G 2\n", "{\"gpus\":2}");
    check_refused("#SBATCH --gres=lego:0\n", "--gres: lego: expected an integer in 1 .. 1000000");
    check_refused("#SBATCH --gres=lego:red:1\n", "--gres: lego: ");
    check_refused("#SBATCH --gres=gpu:2,gpu:v100:1\n",
        "--gres: a job has GPUs of one kind: \"gpu:v100:1\" is the second");
    check_refused("#SBATCH --gres=\n", "--gres");
    check_refused("#SBATCH -L matlab@db:1\n", "--licenses: ");
    check_refused("#SBATCH --gpus=1g.10gb:0\n", "--gpus: slices: expected an integer in 1 .. 64");
    check_refused("#SBATCH --gpus-per-task=1g.10gb:1\n", "say --gpus 1g.10gb:N");
    check_refused("#SBATCH --exclusive=user\n", "--exclusive takes no value");
    check_refused("#BELAY --zone 'a b'\n", "--zone: at 3: ");
    check_refused("#BELAY --zone 'a&b'\n", "--zone: expected names with commas between them");
    check_refused("#BELAY --region a,,b\n", "--region: at 3: ");
    check_refused("#SBATCH -C 'a|b&c'\n", "--constraint: at 4: expected parentheses");
    check_refused("#SBATCH -C '[a|b]' -N 2\n", "is for jobs on one node");
    check_refused("#SBATCH -C '[a|b]' -w n[1-3]\n", "is for jobs on one node");
    check_refused("#SBATCH -C '[a|b]' -N 1-2\n", "is for jobs on one node");
    check_refused("#SBATCH -C '[a*2&b*4]'\n",
        "--constraint: at 3: expected & or | or ) (there are no numbers of nodes)");
    check_refused("#SBATCH -C '[a|b'\n", "--constraint: at 1: ");
    check_refused("#SBATCH -C 'a|b]'\n", "--constraint: at 4: ");
    check_refused("#SBATCH -C '[a|b]&[c|d]'\n", "--constraint: at 1: ");
    check_refused("#SBATCH -C ']a[' -N 2\n", "--constraint: at 1: ");
    check_refused("#SBATCH --gres=gpu:\n", "train.sh:1: --gres");
    check_refused("#SBATCH --gpus 65\n", "0 .. 64");
}

static void memory_for_each_cpu_is_multiplied_when_all_is_read(void **state)
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

static void what_is_for_each_task_is_multiplied_when_all_is_read(void **state)
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
        "--ntasks-per-gpu 2: with 2 GPUs that is not --ntasks 3");
    check_refused("#SBATCH --ntasks-per-gpu=2\n", "asks for no GPUs");
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

static void files_of_output_are_told_to_the_agent(void **state)
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
        directives_be_slurms(spec);
        if (*cases[i].flags)
            assert_int_equal(directives_apply_flag("command line", "export", cases[i].flags, true,
                                 spec, NULL, NULL, &e),
                0);
        assert_int_equal(directives_finish(spec, on_warning, &warnings, &e), 0);
        const json_t *env = json_object_get(spec, "env");
        assert_true(str_eq(json_string_value(json_object_get(env, "HERE")), cases[i].here));
        assert_true(str_eq(
            json_string_value(json_object_get(env, "BELAY_HOME")), cases[i].here ? "/h" : NULL));
        assert_true(str_eq(json_string_value(json_object_get(env, "NAMED")), cases[i].named));
        assert_null(json_object_get(env, "MY_API_TOKEN"));
        assert_null(json_object_get(env, "SLURM_JOB_ID"));
        assert_int_equal(strstr(buf_str(&warnings), "stays here: MY_API_TOKEN (") != NULL,
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
    struct result r = apply_bytes("#SBATCH -D sub/dir\n", strlen("#SBATCH -D sub/dir\n"));
    (void)state;
    assert_int_equal(r.rc, 0);
    assert_non_null(getcwd(here, sizeof(here)));
    char *expected = mem_printf("{\"cwd\":\"%s/sub/dir\"}", here);
    assert_string_equal(r.spec, expected);
    free(expected);
    result_deinit(&r);
}

static void a_bare_time_is_minutes_in_sbatch_lines_and_seconds_in_ours(void **state)
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
    check_refused("#SBATCH -t soon\n", "train.sh:1: --time:");
    check_refused("#BELAY -t -5\n", "--time:");
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
        "{\"time_limit_ms\":60000," GRACE("9", "60000", "false") "}", "comes at the start");
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
    check_refused("#SBATCH --signal=R:USR1@60\n", "R: is about reservations");
    check_refused("#SBATCH --signal=RB:USR1@60\n", "R: is about reservations");
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
    assert_non_null(strstr(e.text, "one that a program can handle"));
    json_decref(spec);
}

static void only_named_variables_travel(void **state)
{
    (void)state;
    setenv("BELAY_TEST_HERE", "yes", 1);
    unsetenv("BELAY_TEST_GONE");
    check_spec("#BELAY --export A=1,B=x=y,BELAY_TEST_HERE\n",
        "{\"env\":{\"A\":\"1\",\"B\":\"x=y\",\"BELAY_TEST_HERE\":\"yes\"}}");
    check_spec("#BELAY --export NONE\n", "{}");
    check_warned("#BELAY --export ALL,A=1\n", "{\"env\":{\"A\":\"1\"}}", "name what it needs");
    check_warned("#BELAY --export BELAY_TEST_GONE\n", "{}", "BELAY_TEST_GONE is not set here");
    check_refused("#BELAY --export =1\n", "expected NAME or NAME=VALUE");
    check_refused("#BELAY --export 'A B=1'\n", "expected NAME or NAME=VALUE, found \"A B=1\"");
    check_refused("#BELAY --export 1A=1\n", "expected NAME or NAME=VALUE");
}

static void what_slurm_has_and_we_do_not_need_is_told_and_passed_over(void **state)
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

/* ---- lines ---- */

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

static void the_last_word_on_a_thing_wins(void **state)
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

static void what_is_malformed_is_refused_with_its_line(void **state)
{
    (void)state;
    check_refused("#!/bin/sh\n\n#BELAY train\n",
        "train.sh:3: expected flags like --time 2h, found \"train\"");
    check_refused("#BELAY --requeue now\n", "found \"now\"");
    check_refused("#BELAY -\n", "found \"-\"");
    check_refused("#BELAY --\n", "\"--\" is not known");
    check_refused("#BELAY --job-name\n", "train.sh:1: --job-name needs a value (NAME)");
    check_refused("#BELAY -J\n", "--job-name needs a value");
    check_refused("#BELAY --requeue=1\n", "--requeue takes no value, found \"1\"");
    check_refused(
        "#BELAY --job-name 'a b\n", "train.sh:1: the quote after \"--job-name\" is not closed");
    check_refused("#BELAY --job-name='a b\n", "is not closed");
    check_refused("#BELAY 'x\n", "found \"x\"");
    check_refused("#BELAY --cpus-per-task four\n",
        "train.sh:1: --cpus-per-task: cpus: expected an integer in 1 .. 4096");
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
    check_refused("#SBATCH -p short,,long\n", "\"\" is not a pool's name");
    check_refused("#SBATCH -p short,\n", "\"short,\" does not end with a pool's name");
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
    check_refused("#SBATCH -n 0\n", "--ntasks");
    check_refused("#BELAY -N 2 -n 4\n", "a node runs one task of a job of several nodes");
    check_refused("#SBATCH -N 2 -n 5 --ntasks-per-node 2\n", "needs 3 nodes, and it asks for 2");
    check_refused("#SBATCH -N 2-4 -n 5 --ntasks-per-node 2\n", "needs 3 nodes, and it asks for 2");
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

static void flags_that_would_change_the_job_and_are_not_known_are_refused_by_name(void **state)
{
    (void)state;
    check_refused("#SBATCH --reservation=a\n", "train.sh:1: \"--reservation\" is not supported");
    check_refused("#SBATCH --uid=a\n", "is not supported: take it out");
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
    struct result r = apply_bytes(script, sizeof(script) - 1);
    assert_int_equal(r.rc, 0);
    assert_string_equal(r.spec, "{\"cpus\":2}");
    result_deinit(&r);
}

/* ---- the command line ---- */

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
        cmocka_unit_test(every_flag_sets_what_it_says),
        cmocka_unit_test(times_of_the_day_are_those_of_the_clock_here),
        cmocka_unit_test(gpus_are_read_as_slurm_writes_them),
        cmocka_unit_test(memory_for_each_cpu_is_multiplied_when_all_is_read),
        cmocka_unit_test(what_is_for_each_task_is_multiplied_when_all_is_read),
        cmocka_unit_test(files_of_output_are_told_to_the_agent),
        cmocka_unit_test(sbatch_passes_the_environment_on_but_no_secrets),
        cmocka_unit_test(a_relative_directory_counts_from_the_current_one),
        cmocka_unit_test(a_bare_time_is_minutes_in_sbatch_lines_and_seconds_in_ours),
        cmocka_unit_test(signals_have_names_and_numbers),
        cmocka_unit_test(a_signal_that_asks_for_checkpoints_can_be_handled),
        cmocka_unit_test(only_named_variables_travel),
        cmocka_unit_test(what_slurm_has_and_we_do_not_need_is_told_and_passed_over),
        cmocka_unit_test(words_are_split_and_quoted_as_in_a_shell),
        cmocka_unit_test(the_last_word_on_a_thing_wins),
        cmocka_unit_test(directives_end_at_the_first_command),
        cmocka_unit_test(what_is_malformed_is_refused_with_its_line),
        cmocka_unit_test(a_time_to_begin_is_read_as_sbatch_does),
        cmocka_unit_test(flags_that_would_change_the_job_and_are_not_known_are_refused_by_name),
        cmocka_unit_test(long_lines_and_many_lines_are_refused),
        cmocka_unit_test(a_script_may_hold_any_bytes),
        cmocka_unit_test(flags_of_the_command_line_name_it_in_errors),
        cmocka_unit_test(the_table_is_one_to_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
