/* SPDX-License-Identifier: Apache-2.0
 *
 * GET /api/v1/jobs: lists jobs. Every parameter is parsed and checked here; the list itself is
 * db/jobs.c.
 */
#include "scheduler/api/api_private.h"

#include "base/mem.h"
#include "base/str.h"
#include "scheduler/core/forecast/explain.h"
#include <stdlib.h>
#include <string.h>

#define LIMIT_DEFAULT 50
/* number of * in a name: each further one multiplies the time of matching by the name's length */
#define WILDCARDS_MAX 2
#define LABEL_VALUE_MAX 1024

#define SHOWN(text) str_show((text), (char[STR_SHOW_MAX]){0})

struct list_query {
    struct job_filter f;
    bool has_state, why;
    char *copies[HTTP_QUERY_MAX]; /* of the values, split into the words that the filter borrows */
    size_t n_copies;
    uint32_t given; /* parameters, by their index in the table */
    int rc;
    struct err *e;
};

/* ---- words ---- */

static char *copy(struct list_query *l, const char *value)
{
    return l->copies[l->n_copies++] = mem_strdup(value);
}

static int add_word(struct job_words *w, const char *name, const char *word, struct err *e)
{
    if (!word[0] || strlen(word) >= CORE_NAME_MAX)
        return err_set(e, ERR_INVALID, "%s: expected a name of 1 to %d bytes, found %s", name,
            CORE_NAME_MAX - 1, SHOWN(word));
    if (w->n == JOB_WORDS_MAX)
        return err_set(e, ERR_INVALID, "%s: at most %d names", name, JOB_WORDS_MAX);
    w->words[w->n++] = word;
    return 0;
}

/* Reads a list such as "ann,bob". */
static int read_words(
    struct list_query *l, struct job_words *w, const char *name, const char *value)
{
    char *rest = copy(l, value), *word;
    int rc = 0;
    while (rc == 0 && (word = strsep(&rest, ",")))
        rc = add_word(w, name, word, l->e);
    return rc;
}

static int read_users(struct list_query *l, const char *name, const char *value)
{
    return read_words(l, &l->f.users, name, value);
}

static int read_teams(struct list_query *l, const char *name, const char *value)
{
    return read_words(l, &l->f.teams, name, value);
}

static int read_pools(struct list_query *l, const char *name, const char *value)
{
    return read_words(l, &l->f.pools, name, value);
}

/* Reads one name, not a list, because names may contain commas. */
static int read_name(struct list_query *l, const char *name, const char *value)
{
    int stars = 0;
    for (const char *p = value; *p; p++)
        stars += *p == '*';
    if (stars > WILDCARDS_MAX)
        return err_set(l->e, ERR_INVALID, "%s: at most %d of the sign *, found %s", name,
            WILDCARDS_MAX, SHOWN(value));
    return add_word(&l->f.names, name, copy(l, value), l->e);
}

/* Reads "exp=3", or "exp" for a label with any value. */
static int read_label(struct list_query *l, const char *name, const char *value)
{
    char *label = copy(l, value), *equals = strchr(label, '=');
    if (equals)
        *equals++ = '\0';
    if (!str_is_name(label, CORE_NAME_MAX - 1))
        return err_set(
            l->e, ERR_INVALID, "%s: expected NAME=VALUE or NAME, found %s", name, SHOWN(value));
    if (equals && strlen(equals) > LABEL_VALUE_MAX)
        return err_set(l->e, ERR_INVALID, "%s: at most %d bytes of a value", name, LABEL_VALUE_MAX);
    if (l->f.n_labels == JOB_LABELS_MAX)
        return err_set(l->e, ERR_INVALID, "%s: at most %d labels", name, JOB_LABELS_MAX);
    l->f.labels[l->f.n_labels].name = label;
    l->f.labels[l->f.n_labels++].value = equals;
    return 0;
}

/* ---- states, times, numbers ---- */

static int refuse_state(const char *name, const char *word, struct err *e)
{
    const char *known[32] = {"active", "all"};
    struct buf names = {0};
    size_t n = 2;
    for (int i = 0; i <= JOB_ENDED; i++)
        known[n++] = sm_name(&job_sm, i);
    for (int i = END_NONE + 1; end_kind_names[i] && n < 31; i++)
        known[n++] = end_kind_names[i];
    str_list_names(&names, word, known);
    int rc =
        err_set(e, ERR_INVALID, "%s: expected %s; found %s", name, buf_str(&names), SHOWN(word));
    buf_deinit(&names);
    return rc;
}

static int add_state(struct job_filter *f, const char *name, const char *word, struct err *e)
{
    if (str_eq(word, "active") || str_eq(word, "all")) {
        f->states |= str_eq(word, "all") ? JOBS_LIVE | 1u << JOB_ENDED : JOBS_LIVE;
        return 0;
    }
    for (int i = 0; i <= JOB_ENDED; i++)
        if (str_eq(word, sm_name(&job_sm, i))) {
            f->states |= 1u << i;
            return 0;
        }
    for (int i = END_NONE + 1; end_kind_names[i]; i++)
        if (str_eq(word, end_kind_names[i])) {
            f->ends |= 1u << i;
            return 0;
        }
    return refuse_state(name, word, e);
}

static int read_states(struct list_query *l, const char *name, const char *value)
{
    char *rest = copy(l, value), *word;
    int rc = 0;
    l->has_state = true;
    while (rc == 0 && (word = strsep(&rest, ",")))
        rc = add_state(&l->f, name, word, l->e);
    return rc;
}

static int read_time(struct list_query *l, const char *name, const char *value, int64_t *ret_ms)
{
    struct wall at;
    int rc = time_parse_iso(value, &at, l->e);
    if (rc != 0)
        return err_wrap(l->e, "%s", name);
    *ret_ms = at.ms > 0 ? at.ms : 1;
    return 0;
}

static int read_since(struct list_query *l, const char *name, const char *value)
{
    return read_time(l, name, value, &l->f.since_ms);
}

static int read_until(struct list_query *l, const char *name, const char *value)
{
    return read_time(l, name, value, &l->f.until_ms);
}

static int read_sort(struct list_query *l, const char *name, const char *value)
{
    static const char *const sorts[] = {
        [JOBS_NEWEST] = "newest", [JOBS_OLDEST] = "oldest", [JOBS_BY_END] = "ended", NULL};
    for (int i = 0; sorts[i]; i++)
        if (str_eq(value, sorts[i])) {
            l->f.sort = (enum job_sort)i;
            return 0;
        }
    return err_set(
        l->e, ERR_INVALID, "%s: expected newest, oldest or ended, found %s", name, SHOWN(value));
}

static int read_number(struct list_query *l, const char *name, const char *value, int64_t min,
    int64_t max, int64_t *ret_value)
{
    return str_to_i64(value, min, max, name, ret_value, l->e);
}

static int read_array(struct list_query *l, const char *name, const char *value)
{
    return read_number(l, name, value, 1, INT64_MAX, &l->f.array);
}

static int read_index(struct list_query *l, const char *name, const char *value)
{
    int64_t n = -1;
    int rc = read_number(l, name, value, 0, RANGES_NUMBER_MAX, &n);
    l->f.index = (int32_t)n;
    return rc;
}

static int read_node(struct list_query *l, const char *name, const char *value)
{
    return read_number(l, name, value, 1, INT64_MAX, &l->f.node);
}

static int read_before(struct list_query *l, const char *name, const char *value)
{
    return read_number(l, name, value, 1, INT64_MAX, &l->f.before);
}

static int read_limit(struct list_query *l, const char *name, const char *value)
{
    int64_t n = 0;
    int rc = read_number(l, name, value, 1, API_LIST_MAX, &n);
    l->f.limit = (int32_t)n;
    return rc;
}

static int read_why(struct list_query *l, const char *name, const char *value)
{
    int64_t n = 0;
    int rc = read_number(l, name, value, 0, 1, &n);
    l->why = n == 1;
    return rc;
}

/* ---- the query ---- */

static const struct {
    const char *name;
    int (*read)(struct list_query *l, const char *name, const char *value);
    bool repeats;
} parameters[] = {
    {"state", read_states, false},
    {"user", read_users, false},
    {"team", read_teams, false},
    {"pool", read_pools, false},
    {"name", read_name, true},
    {"label", read_label, true},
    {"since", read_since, false},
    {"until", read_until, false},
    {"sort", read_sort, false},
    {"array", read_array, false},
    {"index", read_index, false},
    {"node", read_node, false},
    {"before", read_before, false},
    {"limit", read_limit, false},
    {"why", read_why, false},
};
#define N_PARAMETERS (sizeof(parameters) / sizeof(parameters[0]))

static int refuse_parameter(const char *name, struct err *e)
{
    const char *known[N_PARAMETERS + 1] = {0};
    struct buf names = {0};
    for (size_t i = 0; i < N_PARAMETERS; i++)
        known[i] = parameters[i].name;
    str_list_names(&names, name, known);
    int rc = err_set(e, ERR_INVALID, "there is no parameter %s of a list of jobs: %s", SHOWN(name),
        buf_str(&names));
    buf_deinit(&names);
    return rc;
}

static void read_parameter(void *ctx, const char *name, const char *value)
{
    struct list_query *l = ctx;
    size_t i = 0;
    if (l->rc != 0)
        return;
    while (i < N_PARAMETERS && !str_eq(parameters[i].name, name))
        i++;
    if (i == N_PARAMETERS) {
        l->rc = refuse_parameter(name, l->e);
        return;
    }
    if (l->given & 1u << i && !parameters[i].repeats) {
        l->rc = err_set(l->e, ERR_INVALID, "%s: may be given once", name);
        return;
    }
    l->given |= 1u << i;
    l->rc = parameters[i].read(l, name, value);
}

static int check_combination(struct list_query *l)
{
    struct job_filter *f = &l->f;
    if (f->index >= 0 && f->array == 0)
        return err_set(l->e, ERR_INVALID, "index: is of an array; give array=ID too");
    if (f->array > 0 && f->sort != JOBS_NEWEST)
        return err_set(l->e, ERR_INVALID, "sort: the tasks of an array come newest first only");
    if (!l->has_state && f->array == 0)
        f->states = f->sort == JOBS_BY_END ? 1u << JOB_ENDED : JOBS_LIVE;
    if (f->sort == JOBS_BY_END && f->states & JOBS_LIVE)
        return err_set(l->e, ERR_INVALID,
            "sort: only ended jobs can be sorted by their end: add state=ended, or kinds of end");
    return 0;
}

static int read_query(struct http_exchange *x, struct list_query *ret_query, struct err *e)
{
    *ret_query = (struct list_query){.f = {.limit = LIMIT_DEFAULT, .index = -1}, .e = e};
    http_request_each_query(x, read_parameter, ret_query);
    return ret_query->rc != 0 ? ret_query->rc : check_combination(ret_query);
}

static void query_deinit(struct list_query *l)
{
    for (size_t i = 0; i < l->n_copies; i++)
        free(l->copies[i]);
}

/* ---- jobs of others ---- */

/* What the list shows of a job that the caller may not read, so that the queue can be understood:
 * whose it is, its state, size and times. Everything else, and what is added to a job later, is
 * null; the name is API_HIDDEN. */
static const char *const shown_of_others[] = {"id", "ref", "user", "team", "qos", "nice",
    "priority", "pool", "pool_used", "market", "state", "end", "exit_code", "hold", "hidden",
    "nodes", "nodes_min", "on_loss", "ranks", "script_on", "cpus", "memory_mib", "gpus",
    "gpu_model", "gpu_memory_mib", "exclusive", "node", "attempts", "reclaims", "requeue", "retry",
    "checkpoint", "save_ms", "pause_ms", "save_interval_ms", "reclaims_per_hour",
    "requeue_asked_at", "idle_gpus_since", "idle_gpus_parks_at", "lost_ms", "lost_steps",
    "cost_uusd", "on_demand_uusd", "array_id", "array_index", "time_limit_ms", "work_ms",
    "begin_at", "deadline_at", "finish_by", "pace", "window", "max_uusd", "max_uusd_per_hour",
    "depends_any", "kill_on_invalid_dep", "submitted_at", "eligible_at", "started_at",
    "attempt_started_at", "ended_at", NULL};

static bool is_shown(const char *key)
{
    for (size_t i = 0; shown_of_others[i]; i++)
        if (str_eq(shown_of_others[i], key))
            return true;
    return false;
}

void api_hide_job(json_t *job)
{
    const char *key;
    json_t *value;
    void *next;
    json_object_foreach_safe(job, next, key, value)
    {
        if (!is_shown(key))
            json_object_set_new(job, key, json_null());
    }
    json_object_set_new(job, "name", json_string(API_HIDDEN));
    json_object_set_new(job, "hidden", json_true());
}

/* ---- the list ---- */

struct job_list {
    const struct api *api;
    const struct caller *viewer;
    bool by_secret; /* the query matches on what is hidden: such a match would tell it */
    json_t *jobs;
    bool why;
    const struct model *model; /* for why; NULL if the disk is full */
    struct explain_memo memo;
    char pool_used[CORE_NAME_MAX]; /* of the current row */
};

static json_t *why_json(struct job_list *l, const struct job_row *row)
{
    struct reason r = {.code = "disk-full", .text = "the disk that holds belayd's state is full"};
    if (!l->why || row->state != JOB_PENDING)
        return json_null();
    if (l->model && !core_explain_first(l->model, tick_now(l->api->o.tick), row->id, &l->memo, &r))
        return json_null();
    return json_pack("{s:s,s:o}", "code", r.code, "text", json_text(r.text));
}

static int add_job(void *ctx, const struct job_row *row)
{
    struct job_list *l = ctx;
    const struct access_object object = api_object_of_job(row);
    bool is_hidden = !access_may(l->viewer, RIGHT_READ_JOB, &object);
    if (is_hidden && l->by_secret)
        return 0;
    json_t *o = api_live_job(l->api, row, l->pool_used);
    if (is_hidden)
        api_hide_job(o);
    else
        json_object_set_new(o, "why", why_json(l, row));
    json_array_append_new(l->jobs, o);
    return 0;
}

static void reply_list(const struct api *a, struct http_exchange *x, const struct caller *viewer,
    const struct list_query *query, const struct model *model)
{
    struct job_list l = {.api = a,
        .viewer = viewer,
        .by_secret = query->f.names.n > 0 || query->f.n_labels > 0,
        .jobs = json_array(),
        .why = query->why,
        .model = model};
    struct job_filter f = query->f;
    int64_t next = 0;
    struct err e;
    f.pool_used = l.pool_used;
    if (db_read_jobs(a->o.reader, &f, add_job, &l, &next, &e) != 0) {
        json_decref(l.jobs);
        http_reply_err(x, &e);
        return;
    }
    api_reply_json(x, 200, json_pack("{s:o,s:o}", "jobs", l.jobs, "next", api_json_opt(next, 0)));
}

/* Runs when the model is on disk. Parses the query again, which has been checked before. */
static void reply_list_with_reasons(const struct api *a, struct http_exchange *x,
    const struct caller *viewer, const struct model *model, int64_t arg)
{
    struct list_query query;
    struct err e;
    (void)arg;
    if (read_query(x, &query, &e) == 0)
        reply_list(a, x, viewer, &query, model);
    else
        http_reply_err(x, &e);
    query_deinit(&query);
}

void api_jobs_list(struct request *q)
{
    struct list_query query;
    struct err e;
    if (read_query(q->x, &query, &e) != 0)
        http_reply_err(q->x, &e);
    else if (query.why)
        api_read_model_or_database(q, reply_list_with_reasons, 0);
    else
        reply_list(q->api, q->x, &q->caller, &query, NULL);
    query_deinit(&query);
}
