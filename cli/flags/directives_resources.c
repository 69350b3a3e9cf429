/* SPDX-License-Identifier: Apache-2.0
 *
 * The flags for the resources of a node (see directives_private.h). The numbers of tasks, CPUs and
 * GPUs are known once everything has been read. Until then the specification has temporary keys,
 * which directives_finish_resources removes.
 */
#include "cli/flags/directives_private.h"

#include "base/buf.h"
#include "job/counts.h"
#include "job/feature.h"
#include "job/gpu.h"
#include "base/mem.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define MIB_PER_CPU "mib_per_cpu"
#define MIB_PER_GPU "mib_per_gpu"
#define CPUS_PER_GPU "cpus_per_gpu"
#define GPUS_PER_TASK "gpus_per_task"
#define NTASKS "ntasks"
#define GPU_SLICES "gpu_slices"
#define TASKS_PER_NODE "tasks_per_node"
#define TASKS_PER_GPU "tasks_per_gpu"
#define MINCPUS "mincpus"
#define REGION "region" /* constraints, in addition to --constraint */
#define ZONE "zone"
#define GPUS_OF_JOB "gpus_of_job" /* true: `gpus` counts those of all nodes together */
#define DATA_MIB_MAX (1LL << 40)

int directive_cpus(const struct directive_context *c, const char *value, struct err *e)
{
    return directive_number(c, "cpus", value, 1, job_attribute_max("cpus"), e);
}

/* 4, 4-4, 2-8 */
int directive_nodes(const struct directive_context *c, const char *value, struct err *e)
{
    const char *dash = strchr(value, '-'), *most = dash ? dash + 1 : value;
    char least[8];
    int64_t n_most, n_least;
    str_copy(least, sizeof least, value);
    if (dash && (size_t)(dash - value) < sizeof least)
        least[dash - value] = '\0';
    int rc = str_to_i64(most, 1, job_attribute_max("nodes"), "nodes", &n_most, e);
    if (!rc)
        rc =
            str_to_i64(least, 1, n_most, dash ? "the least number of nodes" : "nodes", &n_least, e);
    if (rc)
        return rc;
    if (!c->sbatch || !json_object_get(c->spec, NODES_BY_SLURM))
        json_object_set_new(c->spec, NODES_BY_SLURM, json_boolean(c->sbatch));
    json_object_set_new(c->spec, "nodes", json_integer(n_most));
    if (n_least < n_most)
        json_object_set_new(c->spec, "nodes_min", json_integer(n_least));
    else
        json_object_del(c->spec, "nodes_min"); /* from an earlier line */
    return 0;
}

int directive_tasks(const struct directive_context *c, const char *value, struct err *e)
{
    return directive_number(c, NTASKS, value, 1, job_attribute_max("cpus"), e);
}

int directive_tasks_per_node(const struct directive_context *c, const char *value, struct err *e)
{
    return directive_number(c, TASKS_PER_NODE, value, 1, job_attribute_max("cpus"), e);
}

int directive_tasks_per_gpu(const struct directive_context *c, const char *value, struct err *e)
{
    return directive_number(c, TASKS_PER_GPU, value, 1, job_attribute_max("cpus"), e);
}

int directive_mincpus(const struct directive_context *c, const char *value, struct err *e)
{
    return directive_number(c, MINCPUS, value, 1, job_attribute_max("cpus"), e);
}

int directive_cpus_per_gpu(const struct directive_context *c, const char *value, struct err *e)
{
    return directive_number(c, CPUS_PER_GPU, value, 1, job_attribute_max("cpus"), e);
}

/* 1g.10gb:2: a number of GPU slices, which are resources of their own; replaces GPUs. */
static int set_slices(const struct directive_context *c, const char *key, const char *slice,
    const char *number, struct err *e)
{
    int64_t n;
    if (!str_eq(key, "gpus"))
        return err_set(e, ERR_UNSUPPORTED,
            "slices of GPUs are requested for each node: use --gpus %s:N", slice);
    int rc = str_to_i64(number, 1, job_attribute_max("gpus"), "slices", &n, e);
    if (rc == 0) {
        json_object_del(c->spec, "gpus"); /* from an earlier line */
        json_object_del(c->spec, "gpu_model");
        json_object_set_new(c->spec, GPU_SLICES, json_pack("{s:I}", slice, (json_int_t)n));
    }
    return rc;
}

/* 2, a100:2, a100 */
static int set_gpus(
    const struct directive_context *c, const char *key, const char *value, struct err *e)
{
    const char *colon = strchr(value, ':');
    char *model = mem_strndup(value, strcspn(value, ":")), name[GPU_MODEL_MAX];
    int rc;
    json_object_del(c->spec, GPU_SLICES); /* from an earlier line */
    if (gpu_slice(model, name)) {
        rc = set_slices(c, key, name, colon ? colon + 1 : "1", e);
    } else if (!colon && isdigit((unsigned char)value[0])) {
        rc = directive_number(c, key, value, 0, job_attribute_max("gpus"), e);
        json_object_del(c->spec, "gpu_model"); /* likewise */
    } else {
        /* gpu_model skips a sign: without the check below -1 would be a model "1" */
        gpu_model(model, name);
        rc =
            name[0] && isalnum((unsigned char)value[0])
                ? directive_number(c, key, colon ? colon + 1 : "1", 0, job_attribute_max("gpus"), e)
                : err_set(e, ERR_INVALID, "expected N (0 .. %lld), MODEL or MODEL:N, found %s",
                      (long long)job_attribute_max("gpus"), SHOWN(value));
        if (rc == 0)
            json_object_set_new(c->spec, "gpu_model", json_string(name));
    }
    free(model);
    return rc;
}

int directive_gpu_memory(const struct directive_context *c, const char *value, struct err *e)
{
    int64_t mib;
    int rc = str_to_mib(value, &mib, e);
    if (rc == 0 && mib > job_attribute_max("gpu_memory_mib"))
        rc = err_set(e, ERR_INVALID, "at most 16T, found %s", SHOWN(value));
    if (rc == 0)
        json_object_set_new(c->spec, "gpu_memory_mib", json_integer(mib));
    return rc;
}

int directive_gpus(const struct directive_context *c, const char *value, struct err *e)
{
    json_object_del(c->spec, GPUS_OF_JOB);
    return set_gpus(c, "gpus", value, e);
}

/* --gpus counts the job's GPUs in Slurm, each node's in belay. */
int directive_gpus_of_job(const struct directive_context *c, const char *value, struct err *e)
{
    int rc = directive_gpus(c, value, e);
    if (rc == 0 && c->sbatch)
        json_object_set_new(c->spec, GPUS_OF_JOB, json_true());
    return rc;
}

int directive_script_on(const struct directive_context *c, const char *value, struct err *e)
{
    if (!str_eq(value, "each") && !str_eq(value, "first"))
        return err_set(e, ERR_INVALID, "expected each or first, found %s", SHOWN(value));
    json_object_set_new(c->spec, "script_on", json_string(value));
    return 0;
}

int directive_gpus_per_task(const struct directive_context *c, const char *value, struct err *e)
{
    return set_gpus(c, GPUS_PER_TASK, value, e);
}

static json_t *counts_json(const struct counts *n)
{
    json_t *o = json_object();
    for (size_t i = 0; i < n->n; i++)
        json_object_set_new(o, n->v[i].name, json_integer(n->v[i].n));
    return o;
}

/* gpu, gpu:2, gpu:a100, gpu:a100:2, lego, lego:2, separated by commas: resources of a node. belayd
 * checks whether a node has them. */
int directive_gres(const struct directive_context *c, const char *value, struct err *e)
{
    struct counts named = {0};
    struct buf others = {0};
    bool has_gpus = false;
    char *copy = mem_strdup(value), *save = NULL;
    int rc = *value ? 0 : err_set(e, ERR_INVALID, "expected gpu:N or NAME:N, found nothing");
    for (char *item = strtok_r(copy, ",", &save); item && rc == 0;
         item = strtok_r(NULL, ",", &save)) {
        bool is_gpus = str_eq(item, "gpu") || str_starts(item, "gpu:");
        if (is_gpus && has_gpus)
            rc = err_set(e, ERR_UNSUPPORTED,
                "a job can have GPUs of one model only: %s is the second", SHOWN(item));
        else if (is_gpus)
            rc = directive_gpus(c, item[3] ? item + 4 : "1", e);
        else if (!str_eq(item, "none"))
            buf_printf(&others, "%s%s", others.len ? "," : "", item);
        has_gpus |= is_gpus;
    }
    if (rc == 0)
        rc = counts_parse(buf_str(&others), &named, e);
    if (rc == 0 && named.n > 0)
        json_object_set_new(c->spec, "resources", counts_json(&named));
    else if (rc == 0)
        json_object_del(c->spec, "resources"); /* from an earlier line */
    free(copy);
    buf_deinit(&others);
    return rc;
}

/* belayd checks whether they exist. */
int directive_licences(const struct directive_context *c, const char *value, struct err *e)
{
    struct counts named = {0};
    int rc = *value ? counts_parse(value, &named, e)
                    : err_set(e, ERR_INVALID, "expected NAME or NAME:N, found nothing");
    if (rc == 0)
        json_object_set_new(c->spec, "licences", counts_json(&named));
    return rc;
}

/* [a|b]: all nodes must have the same one of the features; on one node it equals (a|b). */
int directive_constraint(const struct directive_context *c, const char *value, struct err *e)
{
    struct constraint read;
    char *text = mem_strdup(value), *from = strchr(text, '['),
         *to = from ? strchr(from, ']') : NULL;
    bool same = false;
    if (to && !strchr(from + 1, '[')) {
        *from = '(';
        *to = ')';
        same = memchr(from, '|', (size_t)(to - from));
    }
    int rc = constraint_parse(text, &read, e);
    free(text);
    if (rc == 0 && read.n_names == 0)
        json_object_del(c->spec, "constraint");
    else if (rc == 0)
        json_object_set_new(c->spec, "constraint", json_string(read.text));
    if (rc == 0 && same)
        json_object_set_new(c->spec, SAME_FEATURE, json_true());
    else
        json_object_del(c->spec, SAME_FEATURE);
    return rc;
}

/* Regions and zones are features of their nodes. One of the list is required: us-east-1a,us-east-1b
 * becomes (us-east-1a|us-east-1b). */
static int set_locations(
    const struct directive_context *c, const char *key, const char *value, struct err *e)
{
    struct buf locations = {0};
    struct constraint read;
    for (const char *p = value; *p; p++)
        buf_addc(&locations, *p == ',' ? '|' : *p);
    int rc = constraint_parse(buf_str(&locations), &read, e);
    for (size_t i = 0; rc == 0 && read.text[i]; i++)
        if (strchr("&()", read.text[i]))
            rc = err_set(e, ERR_INVALID,
                "expected names with commas between them, such as us-east-1a,us-east-1b, found %s",
                SHOWN(value));
    if (rc == 0 && read.n_names == 0)
        json_object_del(c->spec, key);
    else if (rc == 0)
        json_object_set_new(c->spec, key, json_string(read.text));
    buf_deinit(&locations);
    return rc;
}

int directive_region(const struct directive_context *c, const char *value, struct err *e)
{
    return set_locations(c, REGION, value, e);
}

int directive_zone(const struct directive_context *c, const char *value, struct err *e)
{
    return set_locations(c, ZONE, value, e);
}

/* Adds --region and --zone to the constraint: nodes must satisfy all three. */
static int finish_locations(json_t *spec, struct err *e)
{
    static const char *const keys[] = {REGION, ZONE, "constraint"};
    struct buf all = {0};
    struct constraint read;
    if (!json_object_get(spec, REGION) && !json_object_get(spec, ZONE))
        return 0;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const char *part = json_string_value(json_object_get(spec, keys[i]));
        if (part)
            buf_printf(&all, "%s%s%s%s", all.len > 0 ? "&" : "", strchr(part, '|') ? "(" : "", part,
                strchr(part, '|') ? ")" : "");
    }
    int rc = constraint_parse(buf_str(&all), &read, e);
    if (rc == 0)
        json_object_set_new(spec, "constraint", json_string(read.text));
    else
        err_wrap(e, "--region, --zone and --constraint together");
    json_object_del(spec, REGION);
    json_object_del(spec, ZONE);
    buf_deinit(&all);
    return rc;
}

/* ---- data ---- */

static int read_size(const char *text, json_t *data, struct err *e)
{
    int64_t mib;
    int rc = str_to_mib(text, &mib, e);
    if (rc == 0 && (mib < 1 || mib > DATA_MIB_MAX))
        rc = err_set(e, ERR_INVALID, "size: expected 1M to 1048576T, found %s", SHOWN(text));
    if (rc == 0)
        json_object_set_new(data, "bytes", json_integer(mib << 20));
    return rc;
}

/* s3://lab/data?region=us-east-1 contains its location. */
static void set_location_by_uri(const char *uri, json_t *data)
{
    const char *query = strchr(uri, '?'), *region = query ? strstr(query, "region=") : NULL;
    if (!str_starts(uri, "s3://") || !region || (region[-1] != '?' && region[-1] != '&'))
        return;
    region += strlen("region=");
    char *location = mem_printf("aws/%.*s", (int)strcspn(region, "&"), region);
    json_object_set_new(data, "place", json_string(location));
    free(location);
}

static int read_data(char *rest, json_t *data, struct err *e)
{
    static const char *const schemes[] = {"s3://", "gs://", "az://", "https://"};
    const char *uri = strsep(&rest, ","), *word;
    bool is_known = false;
    int rc = 0;
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++)
        is_known = is_known || (str_starts(uri, schemes[i]) && uri[strlen(schemes[i])]);
    if (!is_known)
        return err_set(e, ERR_INVALID,
            "expected data at s3://, gs://, az:// or https://, or a file, found %s", SHOWN(uri));
    set_location_by_uri(uri, data);
    while (rc == 0 && (word = strsep(&rest, ","))) {
        if (str_starts(word, "size="))
            rc = read_size(word + 5, data, e);
        else if (str_starts(word, "place="))
            json_object_set_new(data, "place", json_text(word + 6));
        else
            rc = err_set(e, ERR_INVALID,
                "expected size=SIZE or place=PROVIDER/REGION after the URI, found %s", SHOWN(word));
    }
    if (rc == 0 && !json_object_get(data, "bytes"))
        rc = err_set(e, ERR_INVALID,
            "the size must be given, because belay does not access the data: %s,size=140G",
            SHOWN(uri));
    return rc;
}

int directive_data(const struct directive_context *c, const char *value, struct err *e)
{
    json_t *data = json_object();
    char *copy = mem_strdup(value);
    int rc = read_data(copy, data, e);
    if (rc == 0) {
        json_object_set(c->spec, "input", data);
        /* `copy` ends after the URI: read_data has split it */
        json_object_set_new(directive_object(c->spec, "env"), "BELAY_INPUT", json_text(copy));
    }
    json_decref(data);
    free(copy);
    return rc;
}

int directive_memory(const struct directive_context *c, const char *value, struct err *e)
{
    int64_t mib;
    if (str_eq(value, "0")) {
        directive_warn(c, "--mem 0 (all of a node's memory) is taken as no limit");
        return 0;
    }
    int rc = str_to_mib(value, &mib, e);
    if (rc == 0) {
        json_object_set_new(c->spec, "memory_mib", json_integer(mib));
        json_object_del(c->spec, MIB_PER_CPU);
        json_object_del(c->spec, MIB_PER_GPU);
    }
    return rc;
}

/* key, other: MIB_PER_CPU and MIB_PER_GPU. The later flag replaces the other one, and --mem. */
static int set_memory_per(const struct directive_context *c, const char *key, const char *other,
    const char *value, struct err *e)
{
    int64_t mib;
    int rc = str_to_mib(value, &mib, e);
    if (rc == 0 && mib > job_attribute_max("memory_mib"))
        rc = err_set(e, ERR_INVALID, "at most %lld MiB, found %s",
            (long long)job_attribute_max("memory_mib"), SHOWN(value));
    if (rc == 0) {
        json_object_set_new(c->spec, key, json_integer(mib));
        json_object_del(c->spec, other);
        json_object_del(c->spec, "memory_mib");
    }
    return rc;
}

int directive_memory_per_cpu(const struct directive_context *c, const char *value, struct err *e)
{
    return set_memory_per(c, MIB_PER_CPU, MIB_PER_GPU, value, e);
}

int directive_memory_per_gpu(const struct directive_context *c, const char *value, struct err *e)
{
    return set_memory_per(c, MIB_PER_GPU, MIB_PER_CPU, value, e);
}

/* ---- after everything has been read ---- */

/* Removes a number from the specification and returns it; fallback if absent. */
static int64_t take(json_t *spec, const char *key, int64_t fallback)
{
    const json_t *v = json_object_get(spec, key);
    int64_t n = v ? json_integer_value(v) : fallback;
    json_object_del(spec, key);
    return n;
}

static int64_t number(const json_t *spec, const char *key, int64_t fallback)
{
    const json_t *v = json_object_get(spec, key);
    return v ? json_integer_value(v) : fallback;
}

static bool take_true(json_t *spec, const char *key)
{
    bool is_true = json_is_true(json_object_get(spec, key));
    json_object_del(spec, key);
    return is_true;
}

static void set_nodes(json_t *spec, int64_t most, int64_t least)
{
    json_object_set_new(spec, "nodes", json_integer(most));
    if (least < most)
        json_object_set_new(spec, "nodes_min", json_integer(least));
    else
        json_object_del(spec, "nodes_min");
}

/* With several nodes and Slurm's flags, the script runs on the first node and starts tasks on all
 * with srun; with belay's flags it runs on each. */
static bool is_on_first(json_t *spec, bool by_slurm)
{
    const char *script_on = json_string_value(json_object_get(spec, "script_on"));
    bool first =
        number(spec, "nodes", 1) > 1 && (script_on ? str_eq(script_on, "first") : by_slurm);
    if (first)
        json_object_set_new(spec, "script_on", json_string("first"));
    else
        json_object_del(spec, "script_on");
    return first;
}

/* As in Slurm, no node is left without a task. */
static int tasks_of_first(json_t *spec, int64_t all, int64_t each, int64_t *ret_tasks)
{
    int64_t most = number(spec, "nodes", 1), least = number(spec, "nodes_min", most);
    if (all > 0 && all < most)
        set_nodes(spec, most = all, least = least < all ? least : all);
    if (most == 1)
        json_object_del(spec, "script_on");
    else if (all > 0)
        json_object_set_new(directive_object(spec, "launch"), "all_tasks", json_integer(all));
    else if (each > 0)
        json_object_set_new(directive_object(spec, "launch"), "tasks", json_integer(each));
    *ret_tasks = all > 0 ? (all + least - 1) / least : each > 0 ? each : 1;
    return 0;
}

/* Computes the tasks from the GPUs, or with --ntasks the GPUs from the tasks. */
static int set_tasks_per_gpu(json_t *spec, int64_t each, struct err *e)
{
    int64_t tasks = number(spec, NTASKS, 0), gpus = number(spec, "gpus", 0);
    bool of_job = json_is_true(json_object_get(spec, GPUS_OF_JOB)) || number(spec, "nodes", 1) == 1;
    if (json_object_get(spec, GPUS_PER_TASK) || json_object_get(spec, TASKS_PER_NODE))
        return err_set(e, ERR_INVALID, "--ntasks-per-gpu: not together with %s",
            json_object_get(spec, GPUS_PER_TASK) ? "--gpus-per-task" : "--ntasks-per-node");
    if (gpus > 0 && tasks > 0 && (!of_job || tasks != gpus * each))
        return err_set(e, ERR_INVALID,
            "--ntasks-per-gpu %lld with %lld GPUs contradicts --ntasks %lld: leave one of them "
            "out",
            (long long)each, (long long)gpus, (long long)tasks);
    if (gpus > 0) {
        json_object_set_new(spec, of_job ? NTASKS : TASKS_PER_NODE, json_integer(gpus * each));
        return 0;
    }
    if (tasks == 0)
        return err_set(e, ERR_INVALID, "--ntasks-per-gpu needs --gpus or --ntasks");
    gpus = (tasks + each - 1) / each;
    if (gpus > job_attribute_max("gpus") * number(spec, "nodes", 1))
        return err_set(e, ERR_INVALID,
            "--ntasks-per-gpu: needs %lld GPUs, and a node may have at most %lld", (long long)gpus,
            (long long)job_attribute_max("gpus"));
    json_object_set_new(spec, "gpus", json_integer(gpus));
    json_object_set_new(spec, GPUS_OF_JOB, json_true());
    return 0;
}

/* The number of tasks on each node. */
static int tasks_of_node(json_t *spec, int64_t *ret_tasks, struct err *e)
{
    int64_t all = take(spec, NTASKS, 0), each = take(spec, TASKS_PER_NODE, 0);
    bool by_slurm = take_true(spec, NODES_BY_SLURM);
    if (all > 0 && each > 0 && !json_object_get(spec, "nodes") && all > each) {
        int64_t nodes = (all + each - 1) / each;
        if (nodes > job_attribute_max("nodes"))
            return err_set(e, ERR_INVALID,
                "--ntasks %lld with --ntasks-per-node %lld needs %lld nodes, at most %lld are "
                "allowed",
                (long long)all, (long long)each, (long long)nodes,
                (long long)job_attribute_max("nodes"));
        set_nodes(spec, nodes, nodes);
        by_slurm = true;
    }
    int64_t nodes = number(spec, "nodes", 1);
    if (all > 0 && each > 0 && all > each * number(spec, "nodes_min", nodes))
        return err_set(e, ERR_INVALID,
            "--ntasks %lld with --ntasks-per-node %lld needs %lld nodes, but --nodes guarantees "
            "only %lld",
            (long long)all, (long long)each, (long long)((all + each - 1) / each),
            (long long)number(spec, "nodes_min", nodes));
    if (is_on_first(spec, by_slurm))
        return tasks_of_first(spec, all, each, ret_tasks);
    *ret_tasks = all > 0 ? (all + nodes - 1) / nodes : each > 0 ? each : 1;
    if (nodes > 1 && *ret_tasks > 1)
        return err_set(e, ERR_UNSUPPORTED,
            "--ntasks: in a job on several nodes, belay starts one task on each: start more in the "
            "script, or use --script-on first and srun");
    return 0;
}

static int multiply(json_t *spec, const char *key, int64_t n, int64_t times, int64_t max,
    const char *what, struct err *e)
{
    if (n * times > max)
        return err_set(e, ERR_INVALID, "%s: %lld are more than the %lld allowed", what,
            (long long)(n * times), (long long)max);
    json_object_set_new(spec, key, json_integer(n * times));
    return 0;
}

/* Converts values of the whole job to values of each node. */
static void divide_gpus(json_t *spec, int64_t nodes)
{
    const char *slice;
    json_t *n;
    if (json_object_get(spec, "gpus"))
        json_object_set_new(
            spec, "gpus", json_integer((number(spec, "gpus", 0) + nodes - 1) / nodes));
    json_object_foreach(json_object_get(spec, GPU_SLICES), slice, n)
        json_integer_set(n, (json_integer_value(n) + nodes - 1) / nodes);
}

static int finish_counts(json_t *spec, int64_t tasks, struct err *e)
{
    int64_t gpus_each = take(spec, GPUS_PER_TASK, 0), cpus_per_gpu = take(spec, CPUS_PER_GPU, 0);
    int64_t nodes = number(spec, "nodes_min", number(spec, "nodes", 1));
    if (take_true(spec, GPUS_OF_JOB) && nodes > 1)
        divide_gpus(spec, nodes);
    int rc = gpus_each > 0 ? multiply(spec, "gpus", gpus_each, tasks, job_attribute_max("gpus"),
                                 "--gpus-per-task", e)
                           : 0;
    int64_t gpus = number(spec, "gpus", 0);
    if (rc == 0 && cpus_per_gpu > 0 && gpus == 0)
        return err_set(e, ERR_INVALID, "--cpus-per-gpu: the job asks for no GPUs");
    if (rc == 0 && tasks > 1) {
        int64_t each = number(spec, "cpus", 1);
        json_object_set_new(directive_object(spec, "launch"), "tasks", json_integer(tasks));
        json_object_set_new(directive_object(spec, "launch"), "cpus_per_task", json_integer(each));
        rc = multiply(spec, "cpus", each, tasks, job_attribute_max("cpus"),
            "--ntasks times --cpus-per-task", e);
    }
    if (rc == 0 && cpus_per_gpu > 0 && cpus_per_gpu * gpus > number(spec, "cpus", 1))
        rc = multiply(
            spec, "cpus", cpus_per_gpu, gpus, job_attribute_max("cpus"), "--cpus-per-gpu", e);
    return rc;
}

/* Adds the slices to the other resources of each node. */
static void finish_slices(json_t *spec)
{
    json_t *slices = json_incref(json_object_get(spec, GPU_SLICES));
    if (!slices)
        return;
    json_object_del(spec, GPU_SLICES);
    json_object_update(directive_object(spec, "resources"), slices);
    json_decref(slices);
}

void directives_set_slurm_env(json_t *spec)
{
    bool of_job = json_is_true(json_object_get(spec, GPUS_OF_JOB));
    const struct {
        const char *key, *name;
    } variables[] = {{TASKS_PER_NODE, "SLURM_NTASKS_PER_NODE"}, {MIB_PER_CPU, "SLURM_MEM_PER_CPU"},
        {MIB_PER_GPU, "SLURM_MEM_PER_GPU"}, {"gpus", of_job ? "SLURM_GPUS" : "SLURM_GPUS_PER_NODE"},
        {GPUS_PER_TASK, "SLURM_GPUS_PER_TASK"}, {CPUS_PER_GPU, "SLURM_CPUS_PER_GPU"},
        {TASKS_PER_GPU, "SLURM_NTASKS_PER_GPU"}, {"team", "SLURM_JOB_ACCOUNT"},
        {"qos", "SLURM_JOB_QOS"}};
    json_t *env = directive_object(spec, "env");
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
        const json_t *v = json_object_get(spec, variables[i].key);
        char *text =
            json_is_integer(v) ? mem_printf("%lld", (long long)json_integer_value(v)) : NULL;
        if (text || json_is_string(v))
            json_object_set_new(
                env, variables[i].name, json_text(text ? text : json_string_value(v)));
        free(text);
    }
}

static int check_same_feature(json_t *spec, struct err *e)
{
    if (!take_true(spec, SAME_FEATURE) || number(spec, "nodes", 1) == 1)
        return 0;
    return err_set(e, ERR_UNSUPPORTED,
        "--constraint: [a|b], the same feature on all nodes, is supported for jobs on one node "
        "only, because belay chooses each node separately: ask for one of them, as -C a, or for "
        "(a|b) if nodes may differ");
}

int directives_finish_resources(json_t *spec, struct err *e)
{
    int64_t tasks, per_cpu = take(spec, MIB_PER_CPU, 0), per_gpu = take(spec, MIB_PER_GPU, 0);
    int64_t tasks_per_gpu = take(spec, TASKS_PER_GPU, 0), mincpus = take(spec, MINCPUS, 0);
    int rc = tasks_per_gpu > 0 ? set_tasks_per_gpu(spec, tasks_per_gpu, e) : 0;
    rc = rc ? rc : tasks_of_node(spec, &tasks, e);
    rc = rc ? rc : finish_counts(spec, tasks, e);
    rc = rc ? rc : check_same_feature(spec, e);
    if (rc == 0 && mincpus > number(spec, "cpus", 1))
        json_object_set_new(spec, "cpus", json_integer(mincpus));
    finish_slices(spec);
    rc = rc ? rc : finish_locations(spec, e);
    if (rc == 0 && per_cpu > 0)
        rc = multiply(spec, "memory_mib", per_cpu, number(spec, "cpus", 1),
            job_attribute_max("memory_mib"), "--mem-per-cpu, in MiB", e);
    if (rc == 0 && per_gpu > 0 && number(spec, "gpus", 0) == 0)
        return err_set(e, ERR_INVALID, "--mem-per-gpu: the job asks for no GPUs");
    if (rc == 0 && per_gpu > 0)
        rc = multiply(spec, "memory_mib", per_gpu, number(spec, "gpus", 0),
            job_attribute_max("memory_mib"), "--mem-per-gpu, in MiB", e);
    return rc;
}
