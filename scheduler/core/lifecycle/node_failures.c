/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/core/lifecycle/node_failures.h"

#include "scheduler/core/lifecycle/apply_node.h"
#include "scheduler/core/model/changes.h"
#include "scheduler/core/model/model_access.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/model/text.h"

#include "base/mem.h"
#include "base/minmax.h"
#include "base/str.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define PART_OF_POOL 4 /* one node in this many may be drained, and at least one */
#define NAMED_MAX 6    /* jobs that a reason names */

static struct node_failures *failures_of(struct node *n)
{
    if (!n->failures)
        n->failures = mem_alloc(sizeof *n->failures);
    return n->failures;
}

/* Stores the places from `from` on; there were `before`. */
static void store(struct model *m, const struct node *n, int32_t from, int32_t before)
{
    const struct node_failures *f = n->failures;
    for (int32_t k = from; k < f->n || k < before; k++) {
        struct node_failure_row *row = ADD_ROW(m, node_failures);
        if (k < f->n)
            *row = f->last[k];
        row->node = n->row.id;
        row->place = k;
        row->is_removed = k >= f->n;
    }
}

static void remove_at(struct node_failures *f, int32_t k)
{
    f->n--;
    memmove(&f->last[k], &f->last[k + 1], (size_t)(f->n - k) * sizeof f->last[0]);
}

/* Moves the entry of the job, or of its array, to the end; makes it if there is none. Forgets those
 * that are too old. Returns the first place that has changed. */
static int32_t add(struct node_failures *f, const struct job *j, int64_t within_ms, struct wall now)
{
    const int64_t of = j->row.array != CORE_ID_NONE ? j->row.array : j->row.id;
    struct node_failure_row one = {.of = of, .job = j->row.id, .at = now};
    int32_t from = f->n;
    STR_COPY(one.user, j->row.user);
    for (; f->n > 0 && now.ms - f->last[0].at.ms > within_ms; from = 0)
        remove_at(f, 0);
    for (int32_t k = 0; k < f->n; k++)
        if (f->last[k].of == of) {
            one.retries = f->last[k].job == j->row.id ? f->last[k].retries : 0;
            remove_at(f, k);
            from = (int32_t)min_i64(from, k);
            break;
        }
    if (f->n == NODE_FAILURES_MAX) {
        remove_at(f, 0);
        from = 0;
    }
    f->last[f->n++] = one;
    return from;
}

static int32_t count_users(const struct node_failures *f)
{
    int32_t users = 0;
    for (int32_t k = 0; k < f->n; k++) {
        bool is_new = true;
        for (int32_t i = 0; i < k; i++)
            is_new = is_new && !str_eq(f->last[i].user, f->last[k].user);
        users += is_new;
    }
    return users;
}

/* O(nodes), but only when a node would be drained. */
static bool pool_may_lose_one(const struct model *m, const struct pool *p)
{
    int64_t nodes = 0, drained = 0;
    LIST_FOREACH (model_nodes(m), l) {
        const struct node *n = LIST_ENTRY(l, struct node, in_all);
        nodes += n->pool == p;
        drained += n->pool == p && n->row.drained_by_belay;
    }
    return drained < max_i64(nodes / PART_OF_POOL, 1);
}

bool node_failures_note(
    struct model *m, const struct attempt *a, enum end_kind end, struct stamp now)
{
    const struct node_failures_options *o = &m->options.node_failures;
    struct node *n = a->node;
    const bool has_started = wall_is_set(a->row.started_at);
    const int64_t ran_ms = has_started ? now.wall.ms - a->row.started_at.ms : 0;
    if (o->jobs == 0 || n->row.drain || a->job->row.spec.nodes > 1)
        return false;
    if (end == END_SUCCEEDED || ran_ms >= o->quick_ms) {
        node_failures_forget(m, n);
        return false;
    }
    if (end != END_FAILED || a->user_refused)
        return false;
    struct node_failures *f = failures_of(n);
    int32_t before = f->n, from = add(f, a->job, o->within_ms, now.wall);
    bool drains = f->n >= o->jobs && count_users(f) >= o->users && pool_may_lose_one(m, n->pool);
    f->last[f->n - 1].retries += !drains;
    store(m, n, from, before);
    return drains;
}

bool node_failures_excuse(const struct job *j)
{
    return j->row.state == JOB_RUNNING &&
           j->row.spec.retries.n[RETRY_DRAINED] > j->row.used[RETRY_DRAINED];
}

/* A task that has ended is named by its array. */
static struct job_ref ref_of(const struct model *m, const struct node_failure_row *f)
{
    return job_ref_of(m, model_job(m, f->job) ? f->job : f->of);
}

/* "4 jobs of 3 users failed there at once: jobs 3, 5, 8, 9" */
static void describe(const struct model *m, const struct node_failures *f, char *out, size_t size)
{
    int32_t users = count_users(f);
    text_format(out, size, "%" PRId32 " job%s of %" PRId32 " user%s failed there at once: job%s",
        f->n, f->n == 1 ? "" : "s", users, users == 1 ? "" : "s", f->n == 1 ? "" : "s");
    for (int32_t k = 0; k < f->n && k < NAMED_MAX; k++)
        text_format(out + strlen(out), size - strlen(out), "%s %s", k > 0 ? "," : "",
            ref_of(m, &f->last[k]).s);
    if (f->n > NAMED_MAX)
        text_format(out + strlen(out), size - strlen(out), " and others");
}

static void give_back(struct model *m, const struct node_failure_row *f)
{
    struct job *j = model_job(m, f->job);
    if (!j || f->retries == 0)
        return;
    j->row.used[RETRY_FAILED] -= (int32_t)min_i64(f->retries, j->row.used[RETRY_FAILED]);
    touch_job(m, j);
}

void node_failures_drain(struct model *m, struct node *n, struct stamp now)
{
    char why[NODE_REASON_MAX], jobs[CORE_TEXT_MAX] = "";
    describe(m, n->failures, why, sizeof why);
    for (int32_t k = 0; k < n->failures->n; k++) {
        job_ref_add(jobs, sizeof jobs, ref_of(m, &n->failures->last[k]));
        give_back(m, &n->failures->last[k]);
    }
    node_failures_forget(m, n);
    node_drain(m, n, now, &(struct drain_reason){DRAIN_FAILURES, why, jobs});
}

void node_failures_forget(struct model *m, struct node *n)
{
    if (!n->failures)
        return;
    int32_t before = n->failures->n;
    n->failures->n = 0;
    store(m, n, 0, before);
    free(n->failures);
    n->failures = NULL;
}

void node_failures_destroy_all(struct model *m)
{
    LIST_FOREACH (model_nodes(m), l)
        free(LIST_ENTRY(l, struct node, in_all)->failures);
}

int model_load_node_failure(struct model *m, const struct node_failure_row *r, struct err *e)
{
    struct node *n = model_node(m, r->node);
    if (!n || r->place != (n->failures ? n->failures->n : 0) || r->place >= NODE_FAILURES_MAX ||
        r->of < 1 || r->job < 1 || r->retries < 0 || !r->user[0] || !wall_is_set(r->at))
        return err_set(e, ERR_CORRUPT,
            "the stored failure of job %" PRId64 " on node %" PRId64 " contradicts other rows",
            r->job, r->node);
    failures_of(n)->last[n->failures->n++] = *r;
    return 0;
}
