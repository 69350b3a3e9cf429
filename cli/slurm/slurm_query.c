/* SPDX-License-Identifier: Apache-2.0
 *
 * Selects the jobs of a Slurm query, and the data needed of each (see slurm.h).
 */
#include "cli/slurm/slurm.h"

#include "base/mem.h"
#include "base/str.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REASONS_MAX 100 /* for named jobs, whose reasons are requested one by one */
#define PAGE 200
#define WORDS_MAX 16      /* limits of belayd for a list parameter: number of names, */
#define NAME_MAX_BYTES 64 /* bytes of one name with its NUL */

json_t *slurm_get(const char *program, struct client *c, const char *path)
{
    json_t *v = NULL;
    struct err e;
    if (client_json(c, "GET", path, NULL, &v, &e) == 0)
        return v;
    slurm_error(program, "%s", e.text);
    return NULL;
}

int64_t slurm_job_number(const char *text)
{
    char number[24] = "";
    size_t n = strspn(text, "0123456789");
    int64_t id = 0;
    if (n == 0 || n >= sizeof(number) || (text[n] && text[n] != '.' && text[n] != '+'))
        return 0;
    memcpy(number, text, n);
    return str_to_i64(number, 1, INT64_MAX, "job", &id, NULL) == 0 ? id : 0;
}

bool slurm_job_name(const char *text, int64_t *ret_id, char ret_tasks[SLURM_TASKS_MAX])
{
    char number[24] = "";
    size_t n = strspn(text, "0123456789");
    const char *tasks = text[n] == '_' ? text + n + 1 : "";
    size_t len = strlen(tasks);
    bool brackets = tasks[0] == '[' && str_ends(tasks, "]");
    ret_tasks[0] = '\0';
    if (text[n] != '_') {
        *ret_id = slurm_job_number(text);
        return *ret_id > 0;
    }
    if (n == 0 || n >= sizeof(number) || len == 0 || len >= SLURM_TASKS_MAX ||
        (!brackets && strspn(tasks, "0123456789") != strcspn(tasks, ".+")))
        return false;
    memcpy(number, text, n);
    memcpy(ret_tasks, tasks + brackets, brackets ? len - 2 : strcspn(tasks, ".+"));
    ret_tasks[brackets ? len - 2 : strcspn(tasks, ".+")] = '\0';
    return ret_tasks[0] && str_to_i64(number, 1, INT64_MAX, "job", ret_id, NULL) == 0;
}

struct walk {
    struct client *c;
    const struct slurm_query *q;
    slurm_job_fn on_job;
    void *ctx;
    json_t *nodes; /* all, live and gone; read when first needed */
    json_t *pools; /* active ones; read when first needed */
    int reasons;
    int starts;
};

static const char *node_name(struct walk *w, int64_t id)
{
    size_t i;
    const json_t *node;
    struct err e;
    if (!w->nodes && client_pages(w->c, "/api/v1/nodes?state=all", "nodes", &w->nodes, &e) != 0)
        slurm_error(w->q->program, "%s", e.text);
    json_array_foreach(json_object_get(w->nodes, "nodes"), i, node)
    {
        if (cli_int(node, "id", 0) == id)
            return cli_text(node, "name");
    }
    return NULL;
}

/* Adds the names of the nodes of the job's newest attempt, by rank. */
static void add_nodes(struct walk *w, const json_t *detail, const json_t *job, struct buf *out)
{
    const json_t *attempts = json_object_get(detail, "attempts"), *a;
    size_t i;
    json_array_foreach(attempts, i, a)
    {
        const char *name = cli_int(a, "attempt", 0) == cli_int(job, "attempts", 0)
                               ? node_name(w, cli_int(a, "node", 0))
                               : NULL;
        if (name)
            buf_printf(out, "%s%s", out->len ? "," : "", name);
    }
}

/* A job without a pool may run in any. */
static void add_all_pools(struct walk *w, struct buf *out)
{
    size_t i;
    const json_t *pool;
    if (!w->pools)
        w->pools = slurm_get(w->q->program, w->c, "/api/v1/pools");
    json_array_foreach(json_object_get(w->pools, "pools"), i, pool)
        buf_printf(out, "%s%s", out->len ? "," : "", cli_text(pool, "name"));
}

static void add_pools(struct walk *w, const json_t *job, struct buf *out)
{
    const char *used = cli_string(json_object_get(job, "pool_used")),
               *asked = cli_string(json_object_get(job, "pool"));
    if (used && !str_eq(cli_text(job, "state"), "pending"))
        buf_adds(out, used);
    else if (asked)
        buf_adds(out, asked);
    else
        add_all_pools(w, out);
}

/* An array whose tasks have all started is shown by its tasks. An ended one had no attempt of its
 * own, and ended as they did. */
static bool is_all_tasks(const json_t *job)
{
    const char *state = cli_text(job, "state"), *end = cli_text(job, "end");
    return str_eq(state, "unfolded") ||
           (str_eq(state, "ended") && cli_int(job, "attempts", 0) == 0 &&
               !str_eq(end, "cancelled") && !str_eq(end, "dependency") && !str_eq(end, "deadline"));
}

static bool is_wanted(const struct slurm_query *q, const struct slurm_job *j)
{
    const struct slurm_state *s = slurm_job_state(j);
    struct wall ended = cli_time(j->job, "ended_at"), submitted = cli_time(j->job, "submitted_at");
    if (!q->jobs && is_all_tasks(j->job))
        return false;
    if (q->states && !slurm_list_has(q->states, s->name) &&
        !slurm_list_has(q->states, s->compact) && !slurm_list_has(q->states, "all"))
        return false;
    if (wall_is_set(q->ended_after) && wall_is_set(ended) && ended.ms < q->ended_after.ms)
        return false;
    if (wall_is_set(q->submitted_until) && wall_is_set(submitted) &&
        submitted.ms > q->submitted_until.ms)
        return false;
    return slurm_list_has(q->user, cli_text(j->job, "user")) &&
           slurm_list_has(q->name, cli_text(j->job, "name")) &&
           slurm_lists_intersect(q->pool, j->pools);
}

/* Passes the job on if the query wants it. detail: the reply of GET /jobs/ID; if NULL it is
 * requested if needed. Both are borrowed. */
static void visit(struct walk *w, const json_t *job, const json_t *detail)
{
    struct slurm_job j = {.job = job, .detail = detail};
    struct buf nodes = {0}, pools = {0};
    json_t *own = NULL, *why = NULL, *start = NULL;
    const char *path = CLI_PATH("/api/v1/jobs/%lld", (long long)cli_int(job, "id", 0));
    bool pending = str_eq(cli_text(job, "state"), "pending"),
         ended = str_eq(cli_text(job, "state"), "ended"),
         hidden = json_is_true(json_object_get(job, "hidden")); /* there is no more to ask for */
    if (!detail && !hidden && str_eq(cli_text(job, "end"), "failed") &&
        cli_int(job, "exit_code", 0) > 128)
        /* to distinguish out of memory from killed */
        j.detail = detail = own = slurm_get(w->q->program, w->c, path);
    add_pools(w, job, &pools);
    j.pools = buf_str(&pools);
    if (!is_wanted(w->q, &j))
        goto out;
    const char *node = cli_string(json_object_get(job, "node"));
    bool needs_attempts =
        w->q->wants_nodes && !pending && (ended || cli_int(job, "nodes", 1) > 1 || !node);
    if (!detail && !hidden && (needs_attempts || w->q->wants_detail))
        j.detail = own = slurm_get(w->q->program, w->c, path);
    if (needs_attempts)
        add_nodes(w, j.detail, job, &nodes);
    else if (!pending && node)
        buf_adds(&nodes, node);
    const char *listed = json_string_value(json_object_get(json_object_get(job, "why"), "code"));
    if (pending && listed)
        j.reason = slurm_reason(listed);
    else if (pending && !hidden && w->q->wants_reasons && w->reasons < REASONS_MAX) {
        struct err e;
        char *ask = mem_printf("%s/why?brief=1", path);
        w->reasons++;
        if (client_json(w->c, "GET", ask, NULL, &why, &e) == 0)
            j.reason =
                slurm_reason(cli_text(json_array_get(json_object_get(why, "reasons"), 0), "code"));
        free(ask);
    }
    if (pending && !hidden && w->q->wants_starts && w->starts++ < STARTS_MAX) {
        struct err e;
        char *ask = mem_printf("%s/why", path);
        if (client_json(w->c, "GET", ask, NULL, &start, &e) == 0)
            j.expected = cli_string(json_object_get(json_object_get(start, "estimate"), "median"));
        free(ask);
    }
    j.nodes = buf_str(&nodes);
    w->on_job(w->ctx, &j);
out:
    json_decref(start);
    json_decref(own);
    json_decref(why);
    buf_deinit(&nodes);
    buf_deinit(&pools);
}

static int read_pages(struct walk *w, int64_t array, json_t *all);

/* For an array: the started tasks in order, those in `tasks` or ("") all; then, unless named tasks
 * were found, the part that has not started. */
static int visit_tasks(struct walk *w, const json_t *detail, const char *tasks)
{
    const json_t *job = json_object_get(detail, "job"), *task;
    json_t *all = json_array();
    bool found = false;
    int rc = read_pages(w, cli_int(job, "id", 0), all);
    for (size_t i = json_array_size(all); rc == CLI_OK && i-- > 0;) {
        char index[24];
        task = json_array_get(all, i);
        snprintf(index, sizeof(index), "%lld", (long long)cli_int(task, "array_index", -1));
        if (*tasks && !slurm_list_has(tasks, index))
            continue;
        found = true;
        visit(w, task, NULL);
    }
    json_decref(all);
    if (rc == CLI_OK && (!found || !*tasks) && strchr(cli_text(job, "ref"), '_'))
        visit(w, job, detail); /* the part not started */
    return rc;
}

static int visit_named(struct walk *w, bool strict)
{
    struct buf item = {0};
    const char *list = w->q->jobs;
    int rc = CLI_OK;
    while (slurm_next_item(&list, &item)) {
        char tasks[SLURM_TASKS_MAX];
        int64_t id;
        struct err e = {0};
        json_t *v = NULL;
        int failed = ERR_NOT_FOUND;
        if (slurm_job_name(buf_str(&item), &id, tasks)) {
            const char *path = CLI_PATH("/api/v1/jobs/%lld", (long long)id);
            failed = client_json(w->c, "GET", path, NULL, &v, &e);
        }
        if (failed == 0 && json_is_object(json_object_get(v, "array")))
            rc = visit_tasks(w, v, tasks) == CLI_OK ? rc : CLI_FAILED;
        else if (failed == 0)
            visit(w, json_object_get(v, "job"), v);
        else if (failed != ERR_NOT_FOUND)
            slurm_error(w->q->program, "%s", e.text);
        else if (strict)
            fputs("slurm_load_jobs error: Invalid job id specified\n", stderr);
        rc = failed == 0 || (failed == ERR_NOT_FOUND && !strict) ? rc : CLI_FAILED;
        json_decref(v);
    }
    buf_deinit(&item);
    return rc;
}

/* "&user=ann,bob": filters for belayd. A list that belayd would refuse is left to is_wanted. */
static void add_words(struct buf *path, const char *name, const char *list)
{
    struct buf words = {0}, item = {0};
    size_t n = 0;
    bool fits = list != NULL;
    while (fits && slurm_next_item(&list, &item)) {
        fits = item.len > 0 && item.len < NAME_MAX_BYTES && ++n <= WORDS_MAX;
        buf_adds(&words, n > 1 ? "," : "");
        str_url_encode(&words, buf_str(&item), item.len);
    }
    if (fits && n > 0)
        buf_printf(path, "&%s=%s", name, buf_str(&words));
    buf_deinit(&words);
    buf_deinit(&item);
}

static void add_moment(struct buf *path, const char *name, struct wall at)
{
    char iso[TIME_ISO_MAX];
    if (!wall_is_set(at))
        return;
    time_format_iso(at, iso);
    buf_printf(path, "&%s=%s", name, iso);
}

/* All pages of this list. */
static int read_list(struct walk *w, const char *which, json_t *all)
{
    int64_t before = 0;
    do {
        struct buf path = {0};
        buf_printf(&path, "/api/v1/jobs?limit=%d&%s", PAGE, which);
        add_words(&path, "user", w->q->user);
        add_words(&path, "pool", w->q->pool);
        if (w->q->wants_reasons)
            buf_adds(&path, "&why=1");
        if (before > 0)
            buf_printf(&path, "&before=%lld", (long long)before);
        json_t *v = slurm_get(w->q->program, w->c, buf_str(&path));
        buf_deinit(&path);
        if (!v)
            return CLI_FAILED;
        json_array_extend(all, json_object_get(v, "jobs"));
        before = cli_int(v, "next", 0);
        json_decref(v);
    } while (before > 0);
    return CLI_OK;
}

struct numbered {
    int64_t id;
    size_t order;
    json_t *job;
};

/* Newest first; of the copies of a job, which was read twice because it ended meanwhile, the later
 * one first. */
static int compare_jobs(const void *a, const void *b)
{
    const struct numbered *x = a, *y = b;
    if (x->id != y->id)
        return x->id < y->id ? 1 : -1;
    return x->order < y->order ? 1 : -1;
}

static void merge(const json_t *read, json_t *all)
{
    size_t n = json_array_size(read), i;
    struct numbered *list = mem_array(n + 1, sizeof(*list));
    json_t *job;
    json_array_foreach(read, i, job) list[i] = (struct numbered){cli_int(job, "id", 0), i, job};
    qsort(list, n, sizeof(*list), compare_jobs);
    for (i = 0; i < n; i++)
        if (i == 0 || list[i].id != list[i - 1].id)
            json_array_append(all, list[i].job);
    free(list);
}

/* Reads active jobs, and those that ended since a time, which have an order of their own in belayd,
 * served by an index. */
static int read_since(struct walk *w, json_t *all)
{
    struct buf live = {0}, ended = {0};
    json_t *read = json_array();
    buf_adds(&live, "state=active");
    buf_adds(&ended, "state=ended&sort=ended");
    add_moment(&ended, "since", w->q->ended_after);
    add_moment(&live, "until", w->q->submitted_until);
    add_moment(&ended, "until", w->q->submitted_until);
    int rc = read_list(w, buf_str(&live), read);
    if (rc == CLI_OK)
        rc = read_list(w, buf_str(&ended), read);
    if (rc == CLI_OK)
        merge(read, all);
    json_decref(read);
    buf_deinit(&live);
    buf_deinit(&ended);
    return rc;
}

/* Reads all pages before the first job is shown, because they come newest first. */
static int read_pages(struct walk *w, int64_t array, json_t *all)
{
    struct buf which = {0};
    if (array == 0 && w->q->ended && wall_is_set(w->q->ended_after))
        return read_since(w, all);
    buf_printf(&which, "state=%s", w->q->ended || array > 0 ? "all" : "active");
    if (array > 0)
        buf_printf(&which, "&array=%lld", (long long)array);
    add_moment(&which, "until", w->q->submitted_until);
    int rc = read_list(w, buf_str(&which), all);
    buf_deinit(&which);
    return rc;
}

int slurm_each_job(
    struct client *c, const struct slurm_query *q, bool strict, slurm_job_fn on_job, void *ctx)
{
    struct walk w = {.c = c, .q = q, .on_job = on_job, .ctx = ctx};
    int rc;
    if (q->jobs) {
        rc = visit_named(&w, strict);
    } else {
        json_t *all = json_array();
        rc = read_pages(&w, 0, all);
        for (size_t i = json_array_size(all); rc == CLI_OK && i-- > 0;)
            visit(&w, json_array_get(all, i), NULL);
        json_decref(all);
    }
    json_decref(w.nodes);
    json_decref(w.pools);
    return rc;
}
