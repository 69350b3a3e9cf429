/* SPDX-License-Identifier: Apache-2.0
 *
 * Labels decide which pools a job may use and which budgets it counts in. A pool may accept only
 * jobs with certain label names, regardless of the values (required_labels). A budget may select
 * jobs by label values. The model therefore keeps only the label names and the matching budgets,
 * shared by all jobs with equal ones; db/ has the rest. Jobs with different ones are of different
 * shapes.
 *
 * Tasks of an array have its labels.
 */
#include "scheduler/core/model/resources.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/model/text.h"
#include "scheduler/core/placement/constraints_model.h"
#include "scheduler/core/queue/labels.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define LABELS_JSON_MAX (1 << 20)

/* ---- parsing ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool has_label(const json_t *o, const char *name, const char *value)
{
    const char *is = json_string_value(json_object_get(o, name));
    return is && str_eq(is, value);
}

static void match_budgets(const struct model *m, const json_t *o, struct labels *l)
{
    l->has_team = json_object_get(o, "team") != NULL;
    for (size_t k = 0; k < m->queue.n_budgets; k++) {
        const struct budget_options *b = m->queue.budgets[k].options;
        bool all = true;
        for (size_t i = 0; i < b->n_labels && all; i++)
            all = has_label(o, b->labels[i].name, b->labels[i].value);
        l->matches |= all ? 1ULL << k : 0;
        l->team_of |= has_label(o, "team", b->team) ? 1ULL << k : 0;
    }
}

static void add_names(const json_t *o, struct labels *l)
{
    const char *names[LABELS_MAX], *key;
    json_t *value;
    size_t n = 0;
    json_object_foreach((json_t *)o, key, value) if (n < LABELS_MAX) names[n++] = key;
    qsort(names, n, sizeof names[0], by_name);
    for (size_t k = 0; k < n; k++)
        features_add(l->names, sizeof l->names, names[k]);
}

/* Checked first: most jobs have no labels, and struct labels is large. */
static bool is_without_labels(const char *json)
{
    return !json || str_eq(json, "{}");
}

/* A text that is not an object of strings has no labels: submits were validated before. */
static void labels_read(const struct model *m, const char *json, struct labels *ret_labels)
{
    json_t *o;
    *ret_labels = (struct labels){0};
    if (json_parse(json, strlen(json), LABELS_JSON_MAX, &o, NULL) != 0)
        return;
    if (json_is_object(o)) {
        add_names(o, ret_labels);
        match_budgets(m, o, ret_labels);
    }
    json_decref(o);
    text_format(ret_labels->key, sizeof ret_labels->key, "%" PRIx64 " %" PRIx64 " %s",
        ret_labels->team_of, ret_labels->matches, ret_labels->names);
}

bool labels_of_submit(const struct model *m, const struct event *submit, struct labels *ret_labels)
{
    const char *json = submit->submit.texts ? submit->submit.texts->labels_json : NULL;
    if (is_without_labels(json))
        return false;
    labels_read(m, json, ret_labels);
    return ret_labels->names[0] != '\0';
}

/* ---- jobs ---- */

struct labels *labels_intern(struct model *m, const char *json)
{
    if (is_without_labels(json))
        return NULL;
    struct labels read, *l;
    labels_read(m, json, &read);
    if (!read.names[0])
        return NULL;
    l = smap_get(&m->queue.labels, read.key);
    if (!l) {
        l = mem_dup(&read, sizeof read);
        l->id = ++m->queue.n_labels;
        smap_put(&m->queue.labels, l->key, l);
    }
    l->n_jobs++;
    return l;
}

void labels_renew(struct model *m, struct job *j, const char *json)
{
    const struct job *array = j->row.array != CORE_ID_NONE ? model_job(m, j->row.array) : NULL;
    struct labels *former = j->labels;
    j->labels = array ? labels_ref(array->labels) : labels_intern(m, json);
    labels_unref(m, former);
}

struct labels *labels_ref(struct labels *l)
{
    if (l)
        l->n_jobs++;
    return l;
}

void labels_unref(struct model *m, struct labels *l)
{
    if (!l || --l->n_jobs > 0)
        return;
    smap_remove(&m->queue.labels, l->key);
    free(l);
}

int model_load_labels(struct model *m, int64_t job, const char *labels_json, struct err *e)
{
    struct labels *l = labels_intern(m, labels_json),
                  *before = l ? map_remove(&m->queue.loaded_labels, job) : NULL;
    if (l)
        map_put(&m->queue.loaded_labels, job, l);
    labels_unref(m, before);
    return before ? err_set(e, ERR_CORRUPT, "stored job %" PRId64 " has two sets of labels", job)
                  : 0;
}

struct labels *labels_take_loaded(struct model *m, int64_t job)
{
    return map_remove(&m->queue.loaded_labels, job);
}

int labels_load_end(struct model *m, struct err *e)
{
    size_t n = map_size(&m->queue.loaded_labels);
    if (n > 0)
        return err_set(e, ERR_CORRUPT, "labels of %zu jobs are stored, but not the jobs", n);
    map_deinit(&m->queue.loaded_labels);
    return 0;
}

void labels_deinit(struct model *m)
{
    const char *key;
    struct labels *l;
    for (size_t pos = 0; (l = smap_next(&m->queue.labels, &pos, &key)) != NULL;)
        free(l);
    smap_deinit(&m->queue.labels);
    map_deinit(&m->queue.loaded_labels);
}

/* ---- pools ---- */

bool labels_suffice(const struct labels *l, const struct pool *p)
{
    char name[FEATURE_MAX];
    for (size_t pos = 0; features_next(p->row.required_labels, &pos, name);)
        if (!l || !features_has(l->names, name))
            return false;
    return true;
}

void labels_lacking(const struct labels *l, const struct pool *p, char *out, size_t size)
{
    char name[FEATURE_MAX];
    size_t n = 0;
    out[0] = '\0';
    for (size_t pos = 0; features_next(p->row.required_labels, &pos, name);) {
        if (l && features_has(l->names, name))
            continue;
        text_format(out + n, size - n, "%s%s", n ? ", " : "", name);
        n = strlen(out);
    }
}

static bool machine_fits(const struct job_row *r, const struct resources *total, enum market market)
{
    return resources_fit(&r->spec.need, total) && market_wish_allows(r->spec.market, market);
}

/* True if the pool has or could have a machine for such a job, and for a reserved pool without
 * nodes, where this is unknown. */
static bool pool_may_serve(const struct model *m, const struct pool *p, const struct job_row *r,
    const struct constraints *x)
{
    bool is_empty = true;
    LIST_FOREACH (&p->offers, l) {
        const struct offer *o = LIST_ENTRY(l, struct offer, in_pool);
        struct resources total = offer_total(o);
        if (o->row.rank != OFFER_WITHDRAWN && p->row.max_nodes > 0 &&
            machine_fits(r, &total, o->row.market) &&
            constraints_suit(x, NULL, &o->row.gpu, o->features, &o->resources))
            return true;
    }
    LIST_FOREACH (model_nodes(m), l) {
        const struct node *n = LIST_ENTRY(l, struct node, in_all);
        if (n->pool != p)
            continue;
        is_empty = false;
        if (machine_fits(r, &n->row.total, n->row.market) &&
            constraints_suit(x, n->row.name, &n->gpu, n->features, &n->resources))
            return true;
    }
    return is_empty && !p->row.elastic;
}

int labels_check_team(
    const struct model *m, const struct job_texts *texts, const char *user, struct err *e)
{
    const struct queue_policy *policy = model_policy(m);
    json_t *o;
    int rc = 0;
    if (policy->n_teams == 0 || !texts || !texts->labels_json ||
        json_parse(texts->labels_json, strlen(texts->labels_json), LABELS_JSON_MAX, &o, NULL) != 0)
        return 0;
    const char *team = json_string_value(json_object_get(o, "team"));
    if (team)
        rc = policy_check_member(policy, team, user, e);
    json_decref(o);
    return rc ? err_wrap(e, "labels: team") : 0;
}

int labels_check_submit(const struct model *m, const struct job_row *r, const struct constraints *x,
    const struct labels *own, struct err *e)
{
    const struct pool *asks = NULL;
    char names[CORE_TEXT_MAX];
    LIST_FOREACH (model_pools(m), l) {
        const struct pool *p = LIST_ENTRY(l, struct pool, in_all);
        if (!job_pools_allow(r->spec.pool, p->row.name) || !pool_may_serve(m, p, r, x))
            continue;
        if (labels_suffice(own, p))
            return 0;
        asks = asks ? asks : p;
    }
    if (!asks)
        return 0;
    labels_lacking(own, asks, names, sizeof names);
    return err_set(e, ERR_INVALID,
        "labels: pool %s requires further labels of its jobs: %s (--label NAME=VALUE, for each)%s",
        asks->row.name, names, r->spec.pool[0] ? "" : "; no other pool has a machine that fits");
}
