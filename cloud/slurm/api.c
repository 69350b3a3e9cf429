/* SPDX-License-Identifier: Apache-2.0
 *
 * See api.h. Field names from the OpenAPI description of slurmrestd 22.05.8, meanings from replies
 * recorded there.
 */
#include "cloud/slurm/api.h"

#include "base/json.h"
#include "base/str.h"
#include "cloud/refusal.h"
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define TOKEN_PREFIX "belay-"
/* so that it fits into an id, after the largest number */
#define TOKEN_LEN_MAX (CLOUD_NAME_MAX - sizeof("4294967295@"))
#define JOBS_MAX CLOUD_LIST_MAX
#define ERRORS_MAX 100
#define ERROR_BODY_MAX (64u << 10)
#define MESSAGE_MAX 200
#define TIME_MAX_S 253402300799 /* end of the year 9999 */
#define LISTED_VERSIONS_MAX 160 /* bytes of the error's text */

/* ---- ids ---- */

/* Returns the length of "belay-CLUSTER" in belay-CLUSTER-NUMBER, 0 for another name, and for one
 * that is too long for an id. */
static size_t token_cluster_len(const char *name)
{
    const char *last = strrchr(name, '-');
    if (!str_starts(name, TOKEN_PREFIX) || strlen(name) > TOKEN_LEN_MAX)
        return 0;
    size_t n = (size_t)(last - name);
    if (n <= strlen(TOKEN_PREFIX) || !last[1] || strspn(last + 1, "0123456789") != strlen(last + 1))
        return 0;
    return str_is_name(name, TOKEN_LEN_MAX) ? n : 0;
}

void slurm_format_id(int64_t job, const char *token, char ret_id[CLOUD_NAME_MAX])
{
    assert(strlen(token) <= TOKEN_LEN_MAX);
    snprintf(ret_id, CLOUD_NAME_MAX, "%" PRId64 "@%s", job, token);
}

int slurm_split_id(const char *id, int64_t *ret_job, char ret_token[CLOUD_TOKEN_MAX], struct err *e)
{
    char number[24];
    const char *at = strchr(id, '@');
    if (!at || (size_t)(at - id) >= sizeof(number) || token_cluster_len(at + 1) == 0)
        return err_set(
            e, ERR_INVALID, "\"%.64s\" is not a Slurm job's id: expected NUMBER@TOKEN", id);
    memcpy(number, id, (size_t)(at - id));
    number[at - id] = '\0';
    int rc = str_to_i64(number, 1, UINT32_MAX, "the job's number", ret_job, e);
    if (rc == 0)
        str_copy(ret_token, CLOUD_TOKEN_MAX, at + 1);
    return rc;
}

/* ---- requests ---- */

static void set_text(json_t *job, const char *key, const char *value)
{
    if (value)
        json_object_set_new(job, key, json_text(value));
}

static void set_number(json_t *job, const char *key, int64_t value)
{
    if (value > 0)
        json_object_set_new(job, key, json_integer(value));
}

static int check_launch(const struct cloud_launch *l, const struct slurm_pilot *p, struct err *e)
{
    if (token_cluster_len(l->token) == 0)
        return err_set(e, ERR_INVALID, "the token cannot be a Slurm job's name");
    if (!str_starts(l->user_data, "#!"))
        return err_set(e, ERR_INVALID, "the pilot's script does not begin with #!");
    if (strlen(l->user_data) > SLURM_SCRIPT_MAX)
        return err_set(e, ERR_INVALID, "a pilot's script of more than %d bytes", SLURM_SCRIPT_MAX);
    if (p->cpus < 0 || p->cpus > SLURM_CPUS_MAX || p->memory_mib < 0 ||
        p->memory_mib > SLURM_MEMORY_MAX_MIB || p->time_limit_min < 0 ||
        p->time_limit_min > SLURM_LIMIT_MAX_MIN)
        return err_set(e, ERR_CONFIG, "the pilots' cpus, memory or time_limit is out of range");
    return 0;
}

/* Output goes nowhere: the agent ships what matters, and a file would lie in the user's home. 22.05
 * ignores `requeue`, so the script has to turn requeuing off itself. */
int slurm_build_submit(
    const struct cloud_launch *l, const struct slurm_pilot *p, struct buf *out, struct err *e)
{
    int rc = check_launch(l, p, e);
    if (rc != 0)
        return rc;
    json_t *job = json_pack("{s:o, s:i, s:i, s:s, s:b, s:o, s:s, s:s, s:{s:s}}", "name",
        json_text(l->token), "nodes", 1, "tasks", 1, "dependency", "singleton", "requeue", 0,
        "current_working_directory", json_text(p->directory), "standard_output", "/dev/null",
        "standard_error", "/dev/null", "environment", "PATH",
        "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin");
    set_text(job, "partition", p->partition);
    set_text(job, "account", p->account);
    set_text(job, "qos", p->qos);
    set_text(job, "gres", p->gres);
    set_text(job, "constraints", p->constraint);
    set_text(job, "reservation", p->reservation);
    set_number(job, "cpus_per_task", p->cpus);
    set_number(job, "memory_per_node", p->memory_mib);
    set_number(job, "time_limit", p->time_limit_min);
    json_t *body = json_pack("{s:o, s:o}", "job", job, "script", json_text(l->user_data));
    json_add_secret(out, body); /* the script contains one */
    return 0;
}

/* ---- replies ---- */

struct slurm_error {
    int64_t number; /* 0 = none */
    char text[MESSAGE_MAX];
};

static int64_t error_number(const json_t *v)
{
    const json_t *number = json_object_get(v, "error_number");
    return json_integer_value(number ? number : json_object_get(v, "error_code"));
}

/* The first error with a number. Errors without one only add words to it. */
static struct slurm_error first_error(const json_t *root)
{
    struct slurm_error found = {0};
    const json_t *list = json_object_get(root, "errors");
    for (size_t k = 0; k < json_array_size(list) && k < ERRORS_MAX; k++) {
        const json_t *v = json_array_get(list, k);
        const char *error = json_string_value(json_object_get(v, "error"));
        const char *description = json_string_value(json_object_get(v, "description"));
        const char *text = error ? error : description;
        if (text && !found.text[0])
            str_copy(found.text, sizeof(found.text), text);
        found.number = error_number(v);
        if (found.number == 0)
            continue;
        if (description && error && found.text[0])
            snprintf(found.text, sizeof(found.text), "%.90s: %.90s", description, error);
        break;
    }
    return found;
}

static int read_reply(const char *body, size_t n, size_t max, json_t **ret_root, struct err *e)
{
    *ret_root = NULL;
    int rc = json_parse(body, n, max, ret_root, e);
    return rc != 0 ? err_wrap(e, "slurmrestd's reply") : 0;
}

int slurm_parse_submit(const char *body, size_t n, int64_t *ret_job, struct err *e)
{
    json_t *root;
    struct json_reader r;
    int rc = read_reply(body, n, SLURM_REPLY_MAX, &root, e);
    if (rc == 0) {
        json_reader_init(&r, root, "slurmrestd's reply", e);
        int64_t job = json_req_i64(&r, "job_id", 1, UINT32_MAX);
        rc = json_reader_finish_lenient(&r);
        if (rc == 0)
            *ret_job = job;
    }
    json_decref(root);
    return rc;
}

/* What happened to a job, by its state. */
static const struct state {
    const char *name;
    enum cloud_state state;
    bool is_reclaim; /* Slurm ended it, and not because its script had ended */
} states[] = {
    {"PENDING", CLOUD_QUEUED},
    {"CONFIGURING", CLOUD_PENDING},
    {"REQUEUED", CLOUD_QUEUED},
    {"REQUEUE_FED", CLOUD_QUEUED},
    {"REQUEUE_HOLD", CLOUD_QUEUED},
    {"SPECIAL_EXIT", CLOUD_QUEUED},
    {"RESV_DEL_HOLD", CLOUD_QUEUED},
    {"COMPLETING", CLOUD_STOPPING},
    {"STAGE_OUT", CLOUD_STOPPING},
    {"COMPLETED", CLOUD_GONE},
    {"CANCELLED", CLOUD_GONE},
    {"FAILED", CLOUD_GONE},
    {"OUT_OF_MEMORY", CLOUD_GONE},
    {"REVOKED", CLOUD_GONE},
    {"TIMEOUT", CLOUD_GONE, true},
    {"DEADLINE", CLOUD_GONE, true},
    {"PREEMPTED", CLOUD_GONE, true},
    {"NODE_FAIL", CLOUD_GONE, true},
    {"BOOT_FAIL", CLOUD_GONE, true},
};

static const struct state *find_state(const char *name)
{
    for (size_t k = 0; k < sizeof(states) / sizeof(states[0]); k++)
        if (str_eq(states[k].name, name))
            return &states[k];
    return NULL;
}

struct times {
    int64_t start_s, end_s, preempt_s; /* 0 = none */
};

/* While a job waits, start_time is an estimate; while it runs, end_time is its time limit. A job
 * that ends within the grace of a preemption is FAILED or COMPLETED: preempt_time tells. One that
 * is cancelled while it waits starts and ends at the same time. */
static void set_state(
    struct cloud_instance *i, const char *name, const char *why, const struct times *t)
{
    const struct state *s = find_state(name);
    i->state = s ? s->state : CLOUD_RUNNING;
    bool is_over = i->state == CLOUD_GONE;
    i->reclaimed = is_over && (s->is_reclaim || t->preempt_s > 0);
    bool has_run = i->state != CLOUD_QUEUED && (!is_over || t->end_s > t->start_s);
    if (has_run && t->start_s > 0)
        i->launched_at.ms = SECONDS_MS(t->start_s);
    if (is_over && t->end_s > 0)
        i->ended_at.ms = SECONDS_MS(t->end_s);
    if (!s || is_over || i->state == CLOUD_QUEUED)
        snprintf(i->reason, sizeof(i->reason), "%.40s%s%.60s%s", name, *why ? ": " : "", why,
            i->reclaimed && t->preempt_s > 0 ? ", preempted" : "");
    str_sanitize(i->reason, strlen(i->reason));
}

static bool is_pilot(const json_t *v, const char *user)
{
    const char *name = json_string_value(json_object_get(v, "name"));
    const char *owner = json_string_value(json_object_get(v, "user_name"));
    return name && str_eq(owner, user) && token_cluster_len(name) > 0;
}

static int read_job(const json_t *v, struct cloud_instances *out, struct err *e)
{
    struct cloud_instance i = {
        .market = CLOUD_OWNED, .launched_at = WALL_NONE, .ended_at = WALL_NONE};
    struct json_reader r;
    json_reader_init(&r, v, "a job", e);
    int64_t job = json_req_i64(&r, "job_id", 1, UINT32_MAX);
    json_req_strcpy(&r, "name", i.token, sizeof(i.token));
    const char *state = json_req_str(&r, "job_state", 40);
    const char *why = json_opt_str(&r, "state_reason", 60, "");
    struct times t = {
        .start_s = json_opt_i64(&r, "start_time", 0, TIME_MAX_S, 0),
        .end_s = json_opt_i64(&r, "end_time", 0, TIME_MAX_S, 0),
        .preempt_s = json_opt_i64(&r, "preempt_time", 0, TIME_MAX_S, 0),
    };
    i.vcpus = (int32_t)json_opt_i64(&r, "cpus", 0, INT32_MAX, 0);
    int rc = json_reader_finish_lenient(&r);
    if (rc != 0)
        return rc;
    size_t prefix = strlen(TOKEN_PREFIX);
    memcpy(i.cluster, i.token + prefix, token_cluster_len(i.token) - prefix);
    set_state(&i, state, str_eq(why, "None") ? "" : why, &t);
    slurm_format_id(job, i.token, i.id);
    return cloud_instances_add(out, &i, e);
}

int slurm_parse_jobs(
    const char *body, size_t n, const char *user, struct cloud_instances *out, struct err *e)
{
    json_t *root, *v;
    struct json_reader r;
    size_t k;
    int rc = read_reply(body, n, SLURM_REPLY_MAX, &root, e);
    if (rc == 0) {
        json_reader_init(&r, root, "slurmrestd's reply", e);
        const json_t *jobs = json_req_array(&r, "jobs", JOBS_MAX);
        rc = json_reader_finish_lenient(&r);
        json_array_foreach(jobs, k, v)
        {
            if (rc == 0 && is_pilot(v, user))
                rc = read_job(v, out, e);
        }
    }
    json_decref(root);
    return rc;
}

int slurm_parse_versions(const char *body, size_t n, struct err *e)
{
    json_t *root, *v;
    const char *path;
    char found[LISTED_VERSIONS_MAX] = "";
    bool is_there = false;
    int rc = read_reply(body, n, SLURM_REPLY_MAX, &root, e);
    json_object_foreach(json_object_get(root, "paths"), path, v)
    {
        char version[24];
        size_t used = strlen(found);
        if (sscanf(path, "/slurm/%23[v.0-9]", version) != 1 || !str_ends(path, "/job/submit"))
            continue;
        is_there = is_there || str_eq(version, SLURM_VERSION);
        snprintf(found + used, sizeof(found) - used, "%s%s", used > 0 ? ", " : "", version);
    }
    json_decref(root);
    if (rc != 0 || is_there)
        return rc;
    return err_set(e, ERR_UNSUPPORTED,
        "slurmrestd has no API " SLURM_VERSION
        " (it has %s); start it with -s openapi/" SLURM_VERSION,
        found[0] ? found : "none that can submit jobs");
}

/* ---- refusals ---- */

#define CHECK(what) "check the pool's " what

/* By Slurm's error numbers (slurm_errno.h). */
static const struct refusal refusals[] = {
    {"2000", ERR_CONFIG, CHECK("partition")},
    {"2001", ERR_CONFIG, "name a partition in the pool; Slurm has no default one"},
    {"2002", ERR_DENIED, "check the user of the login, who must be the owner of the pool's jobs"},
    {"2003", ERR_DENIED, "ask for a group that may use the partition"},
    {"2005", ERR_CONFIG, CHECK("cpus and the partition's limits")},
    {"2014", ERR_CONFIG, CHECK("cpus, memory, gres and constraint: no node has them")},
    {"2015", ERR_NO_CAPACITY},
    {"2016", ERR_NO_CAPACITY},
    {"2017", ERR_NOT_FOUND},
    {"2029", ERR_CONFIG, CHECK("constraint")},
    {"2044", ERR_CONFIG, CHECK("memory")},
    {"2045", ERR_CONFIG, CHECK("account and partition")},
    {"2050", ERR_QUOTA, "ask Slurm's administrators for a larger limit, or lower the pool's"},
    {"2051", ERR_CONFIG, CHECK("time_limit and the partition's")},
    {"2052", ERR_DENIED, "ask for access to the reservation"},
    {"2053", ERR_CONFIG, CHECK("reservation")},
    {"2055", ERR_NO_CAPACITY},
    {"2056", ERR_NO_CAPACITY},
    {"2066", ERR_CONFIG, CHECK("qos")},
    {"2068", ERR_NO_CAPACITY},
    {"2070", ERR_NO_CAPACITY},
    {"2072", ERR_CONFIG, CHECK("gres")},
    {"2074", ERR_QUOTA},
    {"2101", ERR_NO_CAPACITY},
    {"2105", ERR_UNAVAILABLE},
    {"2115", ERR_CONFIG, CHECK("gres")},
    {"9001", ERR_CONFIG, CHECK("gres and other words; Slurm cannot read one of them")},
    {"-1", ERR_UNAVAILABLE, "renew the login if it has expired, and see whether slurmctld runs"},
    {"HTTP 401", ERR_DENIED, "check the login of the pool"},
    {"HTTP 404", ERR_UNSUPPORTED, "start slurmrestd with -s openapi/" SLURM_VERSION},
    {NULL},
};

static int refuse(const struct slurm_error *x, struct err *e)
{
    char code[24];
    snprintf(code, sizeof(code), "%" PRId64, x->number);
    const struct refusal *r = refusal_find(refusals, code);
    return refusal_set("Slurm", r ? r->kind : ERR_UNAVAILABLE, code, x->text, r, e);
}

int slurm_parse_cancel(const char *body, size_t n, struct err *e)
{
    json_t *root;
    int rc = read_reply(body, n, SLURM_REPLY_MAX, &root, e);
    struct slurm_error x = first_error(root);
    json_decref(root);
    if (rc == 0 && x.number != 0)
        rc = refuse(&x, e);
    return rc;
}

int slurm_parse_error(int status, const char *body, size_t n, struct err *e)
{
    json_t *root = NULL;
    struct slurm_error x = {0};
    if (json_parse(body, n, ERROR_BODY_MAX, &root, NULL) == 0)
        x = first_error(root);
    json_decref(root);
    if (x.number != 0)
        return refuse(&x, e);
    char code[24];
    snprintf(code, sizeof(code), "HTTP %d", status);
    const struct refusal *r = refusal_find(refusals, code);
    if (r)
        return refusal_set("slurmrestd", r->kind, code, x.text, r, e);
    return refusal_set_stray("slurmrestd", refusal_kind_of_status(refusals, status, ERR_CONFIG),
        status, body, n, "no error of Slurm", e);
}
