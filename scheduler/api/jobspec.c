/* SPDX-License-Identifier: Apache-2.0
 *
 * Job specifications (see jobspec.h): every limit of docs/reference/api.md is checked here and
 * nowhere else.
 */
#include "scheduler/api/jobspec.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/names.h"
#include "base/str.h"
#include "ckpt/workdir.h"
#include "job/attributes.h"
#include "job/notify_address.h"
#include "job/secret_ref.h"
#include "job/spec_json.h"
#include "scheduler/config/egress.h"
#include "scheduler/core/queue/budget_options.h"
#include "scheduler/core/placement/constraints.h"
#include "scheduler/core/queue/policy.h"
#include "scheduler/notify/notify_seal.h"
#include "scheduler/secrets/env_seal.h"
#include <assert.h>
#include <ctype.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define ARG_MAX_BYTES 65536
#define ENV_NAME_MAX 256
#define YEAR_MS (366 * DAY_MS)

static bool is_env_name(const char *s)
{
    size_t n = strlen(s);
    if (n == 0 || n > ENV_NAME_MAX || isdigit((unsigned char)s[0]))
        return false;
    for (; *s; s++)
        if (!isalnum((unsigned char)*s) && *s != '_')
            return false;
    return true;
}

static char *read_args(struct json_reader *r)
{
    const json_t *args = json_opt_array(r, "args", JOBSPEC_ARGS_MAX);
    size_t i;
    const json_t *item;
    json_array_foreach(args, i, item)
    {
        const char *text = json_string_value(item);
        if (!text || strlen(text) != json_string_length(item) ||
            json_string_length(item) > ARG_MAX_BYTES)
            json_reader_fail(
                r, "args", "expected texts of at most %d bytes without NUL", ARG_MAX_BYTES);
    }
    return args && r->rc == 0 ? json_dump_text(args) : mem_strdup("[]");
}

/* Reads an object of strings whose names is_name accepts. Returns its JSON; the caller frees it. */
static char *read_texts(struct json_reader *r, const char *key, size_t max,
    bool (*is_name)(const char *), const char *what)
{
    const json_t *object = json_opt_object(r, key);
    const char *name;
    char shown[STR_SHOW_MAX];
    json_t *value;
    if (object && json_object_size(object) > max)
        json_reader_fail(r, key, "at most %zu entries, found %zu", max, json_object_size(object));
    json_object_foreach((json_t *)object, name, value)
    {
        const char *text = json_string_value(value);
        if (!is_name(name))
            json_reader_fail(r, key, "%s is not %s", str_show(name, shown), what);
        else if (!text || strlen(text) != json_string_length(value) ||
                 json_string_length(value) > ARG_MAX_BYTES)
            json_reader_fail(
                r, key, "%s: expected a text of at most %d bytes without NUL", name, ARG_MAX_BYTES);
    }
    return object && r->rc == 0 ? json_dump_text(object) : mem_strdup("{}");
}

static bool is_label_name(const char *s)
{
    return str_is_name(s, CORE_NAME_MAX - 1);
}

static void read_at(struct json_reader *r, struct job_spec *spec)
{
    struct daily d;
    struct err e;
    const char *text = json_opt_str(r, "at", 1024, "");
    if (r->rc != 0)
        return;
    if (daily_parse(text, &d, &e) == 0)
        daily_format(&d, spec->ckpt_at);
    else
        json_reader_fail(r, "at", "%s", e.text);
}

static void read_checkpoint(struct json_reader *outer, struct job_spec *spec)
{
    const json_t *object = json_opt_object(outer, "checkpoint");
    if (!object)
        return;
    struct json_reader r;
    json_reader_init(&r, object, "spec.checkpoint", outer->e);
    job_spec_read(&r, "checkpoint.", spec);
    read_at(&r, spec);
    if (r.rc == 0 && spec->ckpt_every_ms != CKPT_EVERY_AUTO && spec->ckpt_every_ms < 1000)
        json_reader_fail(&r, "every_ms", "expected 0 (auto) or at least 1000, found %lld",
            (long long)spec->ckpt_every_ms);
    if (r.rc == 0 && (spec->ckpt_signal == SIGKILL || spec->ckpt_signal == SIGSTOP))
        json_reader_fail(&r, "signal", "SIGKILL and SIGSTOP cannot be handled by a program");
    int rc = json_reader_finish(&r);
    if (outer->rc == 0)
        outer->rc = rc;
}

static void depends_free(struct jobspec *s)
{
    for (size_t i = 0; i < s->n_depends; i++) {
        if (s->depends[i].array)
            bits_deinit(&s->depends[i].array->succeeded);
        free(s->depends[i].array);
    }
    free(s->depends);
}

/* Reads for example [{"kind": "afterok", "job": 17}, {"kind": "after", "job": 18, "delay_ms":
 * 60000}, {"kind": "singleton"}]. */
static void read_depends(struct json_reader *outer, struct jobspec *s)
{
    const json_t *list = json_opt_array(outer, "depends", DEPENDS_MAX), *item;
    size_t i;
    if (!list)
        return;
    s->depends = mem_alloc((json_array_size(list) + 1) * sizeof(*s->depends));
    json_array_foreach(list, i, item)
    {
        struct json_reader r;
        struct depend_ask *a = &s->depends[s->n_depends++];
        json_reader_init(&r, item, "spec.depends", outer->e);
        a->kind = (enum depend_kind)json_req_enum(&r, "kind", depend_kind_names);
        a->on = json_opt_i64(&r, "job", 1, INT64_MAX, CORE_ID_NONE);
        a->task = (int32_t)json_opt_i64(&r, "task", 0, RANGES_NUMBER_MAX, 0);
        a->of_task = json_object_get(item, "task") != NULL;
        a->delay_ms = json_opt_i64(&r, "delay_ms", 0, YEAR_MS, 0);
        if (r.rc == 0 && (a->kind == DEPEND_SINGLETON) != (a->on == CORE_ID_NONE))
            json_reader_fail(
                &r, "job", "%s", a->on ? "singleton takes no job" : "expected the id of a job");
        if (r.rc == 0 && a->of_task && a->kind == DEPEND_SINGLETON)
            json_reader_fail(&r, "task", "singleton takes no job");
        if (r.rc == 0 && a->of_task && a->kind == DEPEND_AFTERCORR)
            json_reader_fail(&r, "task", "aftercorr is on all tasks of an array: expected no task");
        if (r.rc == 0 && a->delay_ms > 0 && a->kind != DEPEND_AFTER)
            json_reader_fail(&r, "delay_ms", "is for kind after only");
        int rc = json_reader_finish(&r);
        outer->rc = outer->rc ? outer->rc : rc;
        if (outer->rc != 0)
            return;
    }
}

/* Reads "0-99", or "0-99%10" for at most ten tasks at once. */
static void read_array(struct json_reader *r, struct jobspec *s)
{
    char text[RANGES_TEXT_MAX + 16];
    struct err e;
    json_opt_strcpy(r, "array", text, sizeof(text), "none");
    if (r->rc != 0 || str_eq(text, "none"))
        return;
    char *at_once = strchr(text, '%');
    int64_t n = 0;
    if (at_once)
        *at_once++ = '\0';
    if (ranges_parse(text, &s->tasks, &e) != 0 ||
        (at_once && str_to_i64(at_once, 1, RANGES_NUMBER_MAX, "the number after %", &n, &e) != 0))
        json_reader_fail(r, "array", "%s", e.text);
    s->at_once = (int32_t)n;
}

/* Reads nodes_min. Refuses on_loss for a fixed number of nodes. */
static void read_nodes_min(struct json_reader *r, struct job_spec *spec)
{
    spec->nodes_min = (int32_t)json_opt_i64(r, "nodes_min", 1, spec->nodes, spec->nodes);
    if (r->rc == 0 && spec->nodes_min == spec->nodes && json_object_get(r->object, "on_loss"))
        json_reader_fail(r, "on_loss",
            "is for jobs whose number of nodes is a range, and this one always has %d: give a "
            "range, as --nodes 2-8 (nodes_min 2, nodes 8), or leave out --on-loss",
            (int)spec->nodes);
}

/* Reads for example {"failed": 2, "reclaimed": null}; null = unlimited. */
static void read_retry(struct json_reader *outer, struct job_spec *spec)
{
    const json_t *object = json_opt_object(outer, "retry");
    struct json_reader r;
    if (!object)
        return;
    json_reader_init(&r, object, "spec.retry", outer->e);
    for (int k = 0; k < RETRY_KINDS; k++) {
        int64_t n = json_opt_i64(&r, retry_kind_names[k], 0, RETRIES_MAX, RETRIES_UNLIMITED);
        if (json_object_get(object, retry_kind_names[k]))
            spec->retries.n[k] = n == 0 ? RETRIES_NEVER : (int32_t)n;
    }
    int rc = json_reader_finish(&r);
    outer->rc = outer->rc ? outer->rc : rc;
}

/* retries is short for retry.failed. requeue sets the kinds that retry leaves out: true to
 * RETRIES_DEFAULT, except failed and timeout; false to RETRIES_NEVER. */
static void read_retries(struct json_reader *r, struct job_spec *spec)
{
    int64_t failed = json_opt_i64(r, "retries", 0, RETRIES_MAX, RETRIES_UNLIMITED);
    bool requeue = json_opt_bool(r, "requeue", false),
         is_boolean = json_is_boolean(json_object_get(r->object, "requeue"));
    read_retry(r, spec);
    if (r->rc == 0 && failed != RETRIES_UNLIMITED && spec->retries.n[RETRY_FAILED] != 0)
        json_reader_fail(r, "retries", "is the same as retry.failed: expected one of them");
    if (failed != RETRIES_UNLIMITED)
        spec->retries.n[RETRY_FAILED] = failed == 0 ? RETRIES_NEVER : (int32_t)failed;
    for (int k = 0; is_boolean && k < RETRY_KINDS; k++)
        if (spec->retries.n[k] == 0 && (!requeue || (k != RETRY_FAILED && k != RETRY_TIMEOUT)))
            spec->retries.n[k] = requeue ? RETRIES_DEFAULT : RETRIES_NEVER;
}

/* Reads the deadline: a moment (finish_by_ms), a duration from the submit on (finish_in_ms), or the
 * next occurrence of a time of the day (finish_at). *ret_of_day: 1 + its minute of the day, 0 if
 * not given. */
static void read_finish(struct json_reader *r, struct job_row *row, int32_t *ret_of_day)
{
    const int64_t by_ms = json_opt_i64(r, "finish_by_ms", 1, INT64_MAX / 2, 0),
                  in_ms = json_opt_i64(r, "finish_in_ms", 1, job_attribute_max("finish_in_ms"), 0);
    const char *at = json_opt_str(r, "finish_at", 1024, "");
    char shown[STR_SHOW_MAX];
    int minute = 0;

    if (r->rc == 0 && (by_ms > 0) + (in_ms > 0) + (*at != '\0') > 1)
        json_reader_fail(r, *at ? "finish_at" : "finish_in_ms",
            "says the same as %s: give one of them", by_ms > 0 ? "finish_by_ms" : "finish_in_ms");
    else if (r->rc == 0 && *at && !daily_parse_time(at, strlen(at), &minute))
        json_reader_fail(
            r, "finish_at", "expected a time of the day as 07:00, found %s", str_show(at, shown));
    *ret_of_day = *at ? minute + 1 : 0;
    row->spec.finish_ms = *at ? -DAY_MS : in_ms > 0 ? -in_ms : by_ms;
}

static void read_row(struct json_reader *r, struct job_row *row)
{
    struct job_spec *spec = &row->spec;
    struct err why;
    *spec = job_spec_default;
    spec->retries = (struct retries){0}; /* none is set */
    job_spec_read(r, "", spec);
    read_nodes_min(r, spec);
    read_retries(r, spec);
    row->hold = json_opt_bool(r, "hold", false) ? HOLD_USER : HOLD_NONE;
    spec->drill_tries = json_opt_bool(r, "drill", false) ? DRILL_TRIES_DEFAULT : 0;
    read_checkpoint(r, spec);
    if (r->rc == 0 && spec->drill_tries > 0 && spec->method == CKPT_NONE)
        json_reader_fail(
            r, "drill", "with checkpoint.method \"none\" nothing is saved: choose signal or coop");
    if (r->rc == 0 && spec->name[0] == '\0')
        json_reader_fail(r, "name", "must not be empty");
    if (r->rc == 0 && str_has_control(spec->name))
        json_reader_fail(
            r, "name", "must not contain control characters or marks of text direction");
    if (r->rc == 0 && spec->pool[0] &&
        names_check(spec->pool, sizeof(spec->pool), "a pool's name", &why) != 0)
        json_reader_fail(r, "pool", "%s", why.text);
}

static void read_counts(struct json_reader *r, const char *key, struct counts *ret_counts)
{
    const json_t *object = json_opt_object(r, key);
    const char *name;
    struct err why;
    json_t *value;
    json_object_foreach((json_t *)object, name, value)
    {
        json_int_t n = json_integer_value(value);
        if (!json_is_integer(value))
            json_reader_fail(r, key, "expected names and numbers");
        else if (counts_add(ret_counts, name, n, &why) != 0)
            json_reader_fail(r, key, "%s", why.text);
    }
}

/* Reads the constraint. An image adds that of a container runtime. */
static void read_constraint(struct json_reader *r, struct constraint *ret_constraint)
{
    const char *own = json_opt_str(r, "constraint", CONSTRAINT_TEXT_MAX, "");
    const char *image =
        json_string_value(json_object_get(json_object_get(r->object, "launch"), "image"));
    const char *runtime = str_ends(image ? image : "", ".sif") ? "apptainer" : "apptainer|podman";
    struct err why;
    if (r->rc == 0 && constraint_parse(own, ret_constraint, &why) != 0)
        json_reader_fail(r, "constraint", "%s", why.text);
    if (r->rc != 0 || !image || !*image)
        return;
    char *both = *own ? mem_printf("(%s)&(%s)", own, runtime) : mem_strdup(runtime);
    if (constraint_parse(both, ret_constraint, &why) != 0)
        json_reader_fail(r, "constraint", "with an image: %s", why.text);
    free(both);
}

/* A program sees GPUs or slices of them, not both. */
static void check_slices(struct json_reader *r, const struct constraints *x)
{
    char slice[GPU_MODEL_MAX];
    for (size_t i = 0; r->rc == 0 && i < x->resources.n; i++)
        if (gpu_slice(x->resources.v[i].name, slice) &&
            json_integer_value(json_object_get(r->object, "gpus")) > 0)
            json_reader_fail(r, "gpus",
                "cannot be had together with %s: a program sees whole GPUs or slices", slice);
}

static void read_hosts(struct json_reader *r, const char *key, char ret_list[HOSTS_TEXT_MAX])
{
    const char *list = json_opt_str(r, key, HOSTS_TEXT_MAX - 1, "");
    struct err why;
    if (r->rc == 0 && hosts_fold(list, ret_list, &why) != 0)
        json_reader_fail(r, key, "%s", why.text);
}

/* Reads the size and location of the data that the job reads when it starts, as the user states
 * them. belay does not know the path; the program does. */
static void read_input(struct json_reader *r, struct input *ret_input)
{
    const json_t *object = json_opt_object(r, "input");
    struct json_reader in;
    struct err why;
    if (r->rc != 0 || !object)
        return;
    json_reader_init(&in, object, "input", &why);
    const char *location = json_opt_str(&in, "place", INPUT_LOCATION_MAX - 1, "store");
    ret_input->bytes = json_req_i64(&in, "bytes", 1, INPUT_BYTES_MAX);
    int rc = json_reader_finish(&in);
    rc = rc ? rc : config_read_input_location(location, ret_input, &why);
    if (rc)
        json_reader_fail(r, "input", "%s", why.text);
}

/* Reads what the job requires in addition to cpus, GPUs and memory. Returns it as the text of
 * constraints_format; the caller frees it. */
static char *read_constraints(struct json_reader *r)
{
    struct constraints x = {0};
    char text[CONSTRAINTS_TEXT_MAX];
    const char *model = json_opt_str(r, "gpu_model", GPU_MODEL_MAX - 1, "");
    x.gpu.memory_mib = json_opt_i64(r, "gpu_memory_mib", 0, job_attribute_max("gpu_memory_mib"), 0);
    gpu_model(r->rc == 0 ? model : "", x.gpu.model);
    if (r->rc == 0 && gpu_slice(model, x.gpu.model))
        json_reader_fail(
            r, "gpu_model", "a slice of a GPU is one of resources: {\"%s\": 1}", x.gpu.model);
    if (r->rc == 0 && *model && (!x.gpu.model[0] || !isalnum((unsigned char)*model)))
        json_reader_fail(r, "gpu_model", "expected a model such as a100");
    read_constraint(r, &x.constraint);
    read_counts(r, "resources", &x.resources);
    check_slices(r, &x);
    read_counts(r, "licences", &x.licences);
    x.exclusive = json_opt_bool(r, "exclusive", false);
    read_hosts(r, "nodelist", x.nodes);
    read_hosts(r, "exclude", x.exclude);
    read_input(r, &x.input);
    constraints_format(&x, text);
    return mem_strdup(text);
}

static void check_file(struct json_reader *r, const char *key)
{
    const char *path = json_opt_str(r, key, JOBSPEC_PATH_MAX, "");
    if (r->rc == 0 && str_has_control(path))
        json_reader_fail(r, key, "must not contain control characters or marks of text direction");
}

/* Checks the hash of the working directory, which was sent before. Not for CRIU: processes that it
 * restores have files open in the working directory of the previous node. */
static void check_workdir(struct json_reader *r, const struct job_row *row)
{
    const char *hash = json_opt_str(r, "workdir", JOBSPEC_PATH_MAX, "");
    if (r->rc == 0 && *hash && !workdir_is_hash(hash))
        json_reader_fail(r, "workdir",
            "expected the hash that belayd gave for a working directory, 64 hex digits");
    if (r->rc == 0 && *hash && row->spec.method == CKPT_CRIU)
        json_reader_fail(r, "workdir",
            "with checkpoint.method \"criu\" the working directory has to be one that all nodes "
            "share");
}

/* Checks the image, which becomes a word of a command line on the node. */
static void check_image(struct json_reader *r, const struct job_row *row)
{
    const char *image = json_opt_str(r, "image", JOBSPEC_IMAGE_MAX, "");
    for (const char *p = image; r->rc == 0 && *p; p++)
        if (!isgraph((unsigned char)*p))
            json_reader_fail(
                r, "image", "expected an image as podman or apptainer name it, without blanks");
    if (r->rc == 0 && image[0] && row->spec.nodes > 1 && row->spec.script_on == SCRIPT_ON_FIRST)
        json_reader_fail(r, "image",
            "with script_on first the tasks on the other nodes would not be in it: leave it out, "
            "or start the script on each");
    if (r->rc == 0 && image[0] == '-')
        json_reader_fail(r, "image", "must not begin with -");
    if (r->rc == 0 && *image && row->spec.method == CKPT_CRIU)
        json_reader_fail(r, "image", "with checkpoint.method \"criu\" a job runs in no container");
}

/* Checks which secrets the job gets. Not for CRIU: the processes that it restores have the values
 * of an earlier attempt. */
static void read_secrets(struct json_reader *r, struct job_row *row)
{
    const json_t *list = json_opt_array(r, "secrets", SECRET_REFS_MAX), *item;
    struct secret_ref ref;
    struct err why;
    size_t i;
    json_array_foreach(list, i, item)
    {
        const char *text = json_string_value(item);
        if (!text || strlen(text) != json_string_length(item))
            json_reader_fail(r, "secrets", "expected texts");
        else if (secret_ref_parse(text, &ref, &why) != 0)
            json_reader_fail(r, "secrets", "%s", why.text);
    }
    row->spec.secrets = (int32_t)json_array_size(list);
    if (r->rc == 0 && row->spec.secrets > 0 && row->spec.method == CKPT_CRIU)
        json_reader_fail(r, "secrets",
            "with checkpoint.method \"criu\" a restored job would have old values: leave them out");
}

static void read_grace(struct json_reader *outer)
{
    const json_t *object = json_opt_object(outer, "grace");
    struct json_reader r;
    if (!object || outer->rc != 0)
        return;
    json_reader_init(&r, object, "spec.launch.grace", outer->e);
    json_req_i64(&r, "signal", 1, 64);
    json_req_i64(&r, "before_ms", 0, JOBSPEC_GRACE_MAX_MS);
    json_opt_bool(&r, "script_only", false);
    outer->rc = json_reader_finish(&r);
}

static int32_t mail_types(struct json_reader *r)
{
    const json_t *list = json_opt_array(r, "mail_types", NOTIFY_EVENTS + 1), *item;
    int32_t events = 0;
    size_t i;
    json_array_foreach(list, i, item)
    {
        const char *word = json_string_value(item);
        int32_t bit = word && str_eq(word, "array-tasks") ? NOTIFY_ARRAY_TASKS : 0;
        for (int k = 0; word && k < NOTIFY_EVENTS; k++)
            bit |= k != NOTIFY_BUDGET && k != NOTIFY_BOOTS && k != NOTIFY_IDLE_GPUS &&
                           k != NOTIFY_NODE_DRAINED && k != NOTIFY_DIGEST && k != NOTIFY_SPEND &&
                           str_eq(word, notify_event_names[k])
                       ? 1 << k
                       : 0;
        if (!bit)
            json_reader_fail(r, "mail_types",
                "expected begin, end, fail, requeue, time-limit, time-limit-50, -80, -90, "
                "invalid-depend or array-tasks");
        events |= bit;
    }
    return events;
}

/* Checks the URLs, each sealed or plain. Returns their number. */
static int32_t check_urls(struct json_reader *r)
{
    const json_t *list = json_opt_array(r, "urls", NOTIFY_URLS_MAX), *item;
    char host[NOTIFY_HOST_MAX];
    struct err why;
    size_t i;
    json_array_foreach(list, i, item)
    {
        const char *url = json_string_value(item);
        if (!url || strlen(url) != json_string_length(item))
            json_reader_fail(r, "urls", "expected texts");
        else if (!notify_sealed_host(url, host) && notify_check_url(url, NULL, &why) != 0)
            json_reader_fail(r, "urls", "%s", why.text);
    }
    return (int32_t)json_array_size(list);
}

/* Reads who is notified of the job's changes. Returns its JSON, NULL if absent; the caller frees
 * it. */
static char *read_notify(struct json_reader *outer, struct job_row *row)
{
    const json_t *object = json_opt_object(outer, "notify");
    struct json_reader r;
    struct err why;
    if (!object || outer->rc != 0)
        return NULL;
    json_reader_init(&r, object, "spec.notify", outer->e);
    row->spec.mail = mail_types(&r);
    const char *to = json_opt_str(&r, "mail_user", NOTIFY_ADDRESS_MAX, "");
    if (r.rc == 0 && *to && notify_check_address(to, &why) != 0)
        json_reader_fail(&r, "mail_user", "%s", why.text);
    row->spec.urls = check_urls(&r);
    outer->rc = json_reader_finish(&r);
    return outer->rc == 0 ? json_dump_text(object) : NULL;
}

/* Checks launch, which only the agent uses. Returns its JSON unchanged; the caller frees it. */
static char *read_launch(struct json_reader *outer, struct job_row *row)
{
    static const char *const modes[] = {"", "append", "truncate", NULL};
    const json_t *object = json_opt_object(outer, "launch");
    struct json_reader r;
    if (!object || outer->rc != 0)
        return mem_strdup("{}");
    json_reader_init(&r, object, "spec.launch", outer->e);
    check_file(&r, "output");
    check_file(&r, "error");
    check_file(&r, "input");
    json_opt_enum(&r, "open_mode", modes, 0);
    json_opt_bool(&r, "slurm", false);
    check_workdir(&r, row);
    check_image(&r, row);
    read_secrets(&r, row);
    read_grace(&r);
    int64_t tasks = json_opt_i64(&r, "tasks", 1, 4096, 1);
    int64_t each = json_opt_i64(&r, "cpus_per_task", 1, 4096, 1);
    json_opt_i64(&r, "all_tasks", 1, 4096 * JOB_NODES_MAX, 1);
    if (r.rc == 0 && row->spec.script_on == SCRIPT_ON_EACH && json_object_get(object, "all_tasks"))
        json_reader_fail(&r, "all_tasks",
            "is for jobs of several nodes whose script starts on the first: see script_on");
    if (r.rc == 0 && tasks * each > row->spec.need.cpus)
        json_reader_fail(&r, "tasks", "%lld of %lld CPUs each are more than the %d CPUs of a node",
            (long long)tasks, (long long)each, (int)row->spec.need.cpus);
    if (r.rc == 0 && json_object_get(object, "error") && row->spec.method == CKPT_CRIU)
        json_reader_fail(&r, "error",
            "with checkpoint.method \"criu\" output and errors go to one file: leave it out");
    if (r.rc == 0 && row->spec.method == CKPT_CRIU &&
        str_eq(json_string_value(json_object_get(object, "input")), "-"))
        json_reader_fail(&r, "input",
            "with checkpoint.method \"criu\" no client can attach to the job: leave it out");
    outer->rc = json_reader_finish(&r);
    return outer->rc == 0 ? json_dump_text(object) : mem_strdup("{}");
}

/* Appends to o the value of an option that is only stored, unless it is the default. */
static void read_option(struct json_reader *r, const struct job_attribute *a, json_t *o)
{
    struct err why;
    const char *text;
    int64_t n;
    switch (a->type) {
    case JOB_TYPE_BOOL:
    case JOB_TYPE_TRUE:
    case JOB_TYPE_FALSE:
        if (json_opt_bool(r, a->name, false))
            json_object_set_new(o, a->name, json_true());
        return;
    case JOB_TYPE_TEXT:
    case JOB_TYPE_NAME:
    case JOB_TYPE_URL:
    case JOB_TYPE_ENUM:
        text = json_opt_str(r, a->name, JOBSPEC_BYTES_MAX, "");
        if (r->rc != 0 || !text[0])
            return;
        if (job_attribute_check(a, text, &why) != 0)
            json_reader_fail(r, a->name, "%s", why.text);
        else
            json_object_set_new(o, a->name, json_text(text));
        return;
    default:
        n = json_opt_i64(r, a->name, a->min, a->max, 0);
        if (r->rc == 0 && n != 0)
            json_object_set_new(o, a->name, json_integer(n));
    }
}

static char *read_document(struct json_reader *r)
{
    json_t *o = json_object();
    for (size_t i = 0; i < job_attributes_count; i++)
        if (job_attributes[i].masks & JOB_IN_DOCUMENT)
            read_option(r, &job_attributes[i], o);
    char *text = json_object_size(o) > 0 ? json_dump_text(o) : NULL;
    json_decref(o);
    return text;
}

static const char *checked_script(struct json_reader *r)
{
    const char *script = json_req_str(r, "script", JOBSPEC_SCRIPT_MAX);
    if (r->rc == 0 && !str_starts(script, "#!"))
        json_reader_fail(
            r, "script", "must begin with \"#!\" and its interpreter, for example #!/bin/sh");
    return script;
}

static const char *checked_cwd(struct json_reader *r)
{
    char shown[STR_SHOW_MAX];
    const char *cwd = json_req_str(r, "cwd", 4095);
    if (r->rc == 0 && cwd[0] != '/')
        json_reader_fail(r, "cwd", "expected an absolute path, found %s", str_show(cwd, shown));
    return cwd;
}

int jobspec_parse(const json_t *v, struct jobspec *ret_spec, struct err *e)
{
    struct jobspec s = {0};
    struct json_reader r;
    json_reader_init(&r, v, "spec", e);
    s.texts.script = mem_strdup(checked_script(&r));
    s.texts.cwd = mem_strdup(checked_cwd(&r));
    read_row(&r, &s.row);
    read_finish(&r, &s.row, &s.texts.finish_of_day);
    read_depends(&r, &s);
    read_array(&r, &s);
    s.texts.args_json = read_args(&r);
    s.texts.env_json = read_texts(&r, "env", JOBSPEC_ENV_MAX, is_env_name, "a variable's name");
    s.texts.labels_json =
        read_texts(&r, "labels", JOBSPEC_LABELS_MAX, is_label_name, "a label's name");
    s.texts.launch_json = read_launch(&r, &s.row);
    s.texts.constraints = read_constraints(&r);
    s.texts.notify_json = read_notify(&r, &s.row);
    s.texts.document_json = read_document(&r);
    int rc = json_reader_finish(&r);
    if (rc != 0)
        jobspec_deinit(&s);
    else
        *ret_spec = s;
    return rc;
}

void jobspec_deinit(struct jobspec *s)
{
    job_texts_deinit(&s->texts);
    depends_free(s);
    *s = (struct jobspec){0};
}

int jobspec_read(
    const char *text, struct job_row *ret_row, struct job_texts *ret_texts, struct err *e)
{
    struct jobspec s;
    json_t *v;
    int rc = json_parse(text, strlen(text), JOBSPEC_STORED_MAX, &v, e);
    if (rc != 0)
        return rc;
    json_t *env = json_incref(json_object_get(v, "env"));
    bool is_sealed = json_object_get(env, ENV_SEALED) != NULL;
    if (is_sealed)
        json_object_del(v, "env");
    rc = jobspec_parse(v, &s, e);
    if (rc == 0 && is_sealed) {
        free((char *)s.texts.env_json);
        s.texts.env_json = json_dump_text(env);
    }
    json_decref(env);
    json_decref(v);
    if (rc != 0)
        return rc;
    *ret_row = s.row;
    *ret_texts = s.texts;
    depends_free(&s);
    return 0;
}
