/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/core/lifecycle/node_failures.h"

#include "scheduler/core/lifecycle/apply_node.h"
#include "scheduler/core/model/changes.h"
#include "scheduler/core/model/model_access.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/model/text.h"

#include "base/minmax.h"
#include "base/str.h"
#include <inttypes.h>
#include <string.h>

#define PART_OF_POOL 4 /* one node in this many may be drained, and at least one */
#define NAMED_MAX 6    /* jobs that a reason names */

static void remove_at(struct node_failures *f, int32_t k)
{
    f->n--;
    memmove(&f->last[k], &f->last[k + 1], (size_t)(f->n - k) * sizeof f->last[0]);
}

static void forget_old(struct node_failures *f, int64_t within_ms, struct mono now)
{
    while (f->n > 0 && now.ms - f->last[0].at.ms > within_ms)
        remove_at(f, 0);
}

/* Moves the entry of the job, or of its array, to the end; makes it if there is none. */
static struct node_failure *add(struct node_failures *f, const struct job *j, struct mono now)
{
    const int64_t of = j->row.array != CORE_ID_NONE ? j->row.array : j->row.id;
    struct node_failure one = {.of = of, .job = j->row.id, .account = j->account};
    for (int32_t k = 0; k < f->n; k++)
        if (f->last[k].of == of) {
            one.retries = f->last[k].job == j->row.id ? f->last[k].retries : 0;
            remove_at(f, k);
            break;
        }
    if (f->n == NODE_FAILURES_MAX)
        remove_at(f, 0);
    one.at = now;
    f->last[f->n] = one;
    return &f->last[f->n++];
}

static int32_t count_users(const struct node_failures *f)
{
    int32_t users = 0;
    for (int32_t k = 0; k < f->n; k++) {
        bool is_new = true; /* a user has an account in each team */
        for (int32_t i = 0; i < k; i++)
            is_new = is_new && !str_eq(f->last[i].account->row.user, f->last[k].account->row.user);
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
        drained += n->pool == p && n->row.drain && n->row.drain_text[0];
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
    if (end == END_SUCCEEDED || ran_ms >= o->quick_ms)
        n->failures.n = 0;
    else if (end == END_FAILED) {
        forget_old(&n->failures, o->within_ms, now.mono);
        struct node_failure *one = add(&n->failures, a->job, now.mono);
        if (n->failures.n >= o->jobs && count_users(&n->failures) >= o->users &&
            pool_may_lose_one(m, n->pool))
            return true;
        one->retries++;
    }
    return false;
}

bool node_failures_excuse(const struct job *j)
{
    return j->row.state == JOB_RUNNING &&
           j->row.spec.retries.n[RETRY_DRAINED] > j->row.used[RETRY_DRAINED];
}

/* "4 jobs of 3 users failed there at once: jobs 3, 5, 8, 9" */
static void describe(const struct node_failures *f, char *out, size_t size)
{
    int32_t users = count_users(f);
    text_format(out, size, "%" PRId32 " jobs of %" PRId32 " user%s failed there at once: jobs",
        f->n, users, users == 1 ? "" : "s");
    for (int32_t k = 0; k < f->n && k < NAMED_MAX; k++)
        text_format(
            out + strlen(out), size - strlen(out), "%s %" PRId64, k > 0 ? "," : "", f->last[k].job);
    if (f->n > NAMED_MAX)
        text_format(out + strlen(out), size - strlen(out), " and others");
}

static void give_back(struct model *m, const struct node_failure *f)
{
    struct job *j = model_job(m, f->job);
    if (!j || f->retries == 0)
        return;
    j->row.used[RETRY_FAILED] -= (int32_t)min_i64(f->retries, j->row.used[RETRY_FAILED]);
    touch_job(m, j);
}

void node_failures_drain(struct model *m, struct node *n, struct stamp now)
{
    char why[NODE_REASON_MAX];
    describe(&n->failures, why, sizeof why);
    for (int32_t k = 0; k < n->failures.n; k++)
        give_back(m, &n->failures.last[k]);
    n->failures.n = 0;
    node_drain(m, n, now, why);
}
