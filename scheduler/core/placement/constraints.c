/* SPDX-License-Identifier: Apache-2.0
 *
 * Demands besides cpus, GPUs and memory (constraints.h), and what nodes, offers and the cluster
 * have of them.
 *
 * Features of a node: those reported by its agent, those of its pool, and its provider, region,
 * zone, instance type and market. An elastic node also has all features of its offer, so that it is
 * accepted for the job that it was launched for. An offer has the features of its future machines.
 * Named resources of a node: as reported by its agent; those that it does not report, as configured
 * for its pool.
 *
 * Licences belong to the cluster. A job holds them from its placement to the end of its last rank.
 * A job that lacks only licences reserves them against jobs behind it in the queue (plan.c):
 * otherwise jobs that need one could starve a job that needs ten.
 */
#include "scheduler/core/lifecycle/nodes.h"
#include "scheduler/core/model/changes.h"
#include "scheduler/core/model/model_access.h"
#include "scheduler/core/model/resources.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/model/text.h"
#include "scheduler/core/placement/constraints_model.h"
#include "scheduler/core/placement/racks.h"
#include "scheduler/core/placement/reserve.h"

#include "base/mem.h"
#include "base/str.h"
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the text ---- */

enum part {
    PART_GPU,
    PART_GPU_MEMORY,
    PART_CONSTRAINT,
    PART_RESOURCES,
    PART_LICENCES,
    PART_EXCLUSIVE,
    PART_NODES,
    PART_EXCLUDE,
    PART_INPUT,
    N_PARTS
};
static const char *const part_keys[N_PARTS] = {"gpu=", "gpu-memory=", "constraint=", "resources=",
    "licences=", "exclusive=", "nodes=", "exclude=", "input="};

static int read_hosts(const char *value, char out[HOSTS_TEXT_MAX], struct err *e)
{
    int64_t n = 0;
    int rc = hosts_check(value, &n, e);
    if (!rc && strlen(value) >= HOSTS_TEXT_MAX)
        rc = err_set(e, ERR_INVALID,
            "a list of nodes is at most %d bytes long: fold names together, as n[1-3,7]",
            HOSTS_TEXT_MAX - 1);
    if (!rc && n == 0)
        rc = err_set(e, ERR_INVALID, "expected names of nodes, found none");
    if (!rc)
        str_copy(out, HOSTS_TEXT_MAX, value);
    return rc;
}

bool input_split_location(
    const char *text, char ret_provider[INPUT_PROVIDER_MAX], char ret_region[CORE_NAME_MAX])
{
    const char *slash = strchr(text, '/');
    size_t n = slash ? (size_t)(slash - text) : 0;
    if (n == 0 || n >= INPUT_PROVIDER_MAX || !str_is_name(slash + 1, CORE_NAME_MAX - 1))
        return false;
    memcpy(ret_provider, text, n);
    ret_provider[n] = '\0';
    str_copy(ret_region, CORE_NAME_MAX, slash + 1);
    return true;
}

bool input_parse_location(const char *text, struct input *ret_input)
{
    struct input in = {.bytes = ret_input->bytes};
    if (!str_eq(text, "store") && !input_split_location(text, in.provider, in.region))
        return false;
    *ret_input = in;
    return true;
}

void input_format_location(const struct input *in, char out[INPUT_LOCATION_MAX])
{
    text_format(out, INPUT_LOCATION_MAX, "%s%s%s", in->provider[0] ? in->provider : "store",
        in->provider[0] ? "/" : "", in->region);
}

static int read_input(const char *value, struct input *ret_input, struct err *e)
{
    char location[INPUT_LOCATION_MAX] = "", shown[STR_SHOW_MAX];
    const char *colon = strrchr(value, ':');
    if (!colon || (size_t)(colon - value) >= sizeof location)
        return err_set(e, ERR_INVALID, "expected PLACE:BYTES");
    memcpy(location, value, (size_t)(colon - value));
    if (!input_parse_location(location, ret_input))
        return err_set(e, ERR_INVALID,
            "expected the location of the input, PROVIDER/REGION or store, found %s",
            str_show(location, shown));
    return str_to_i64(colon + 1, 1, INPUT_BYTES_MAX, "bytes", &ret_input->bytes, e);
}

static int read_part(enum part which, const char *value, struct constraints *x, struct err *e)
{
    char model[GPU_MODEL_MAX], shown[STR_SHOW_MAX];
    switch (which) {
    case PART_GPU:
        gpu_model(value, model);
        if (!model[0] || !str_eq(model, value))
            return err_set(e, ERR_INVALID, "%s is not a model's short name, such as a100",
                str_show(value, shown));
        STR_COPY(x->gpu.model, model);
        return 0;
    case PART_GPU_MEMORY:
        return str_to_i64(value, 1, CONSTRAINTS_GPU_MIB_MAX, "MiB", &x->gpu.memory_mib, e);
    case PART_CONSTRAINT:
        return constraint_parse(value, &x->constraint, e);
    case PART_RESOURCES:
        return counts_parse(value, &x->resources, e);
    case PART_EXCLUSIVE:
        x->exclusive = str_eq(value, "yes");
        return x->exclusive
                   ? 0
                   : err_set(e, ERR_INVALID, "expected yes, found %s", str_show(value, shown));
    case PART_NODES:
        return read_hosts(value, x->nodes, e);
    case PART_EXCLUDE:
        return read_hosts(value, x->exclude, e);
    case PART_INPUT:
        return read_input(value, &x->input, e);
    case PART_LICENCES:
    case N_PARTS:
        break;
    }
    return counts_parse(value, &x->licences, e);
}

int constraints_parse(const char *text, struct constraints *ret_constraints, struct err *e)
{
    struct constraints x = {0};
    char part[CONSTRAINTS_TEXT_MAX], shown[STR_SHOW_MAX];
    int next = 0;
    for (const char *p = text; *text && p;) {
        size_t n = strcspn(p, " ");
        int which = next;
        if (n >= sizeof part)
            return err_set(e, ERR_INVALID, "a part of more than %zu bytes", sizeof part - 1);
        memcpy(part, p, n);
        part[n] = '\0';
        while (which < N_PARTS && !str_starts(part, part_keys[which]))
            which++;
        if (which == N_PARTS)
            return err_set(e, ERR_INVALID,
                "expected gpu=, gpu-memory=, constraint=, resources=, licences=, exclusive=, "
                "nodes=, exclude= or input=, in this order, found %s",
                str_show(part, shown));
        size_t key = strlen(part_keys[which]);
        if (read_part((enum part)which, part + key, &x, e) != 0)
            return err_wrap(e, "%.*s", (int)key - 1, part_keys[which]);
        next = which + 1;
        p = p[n] ? p + n + 1 : NULL;
    }
    *ret_constraints = x;
    return 0;
}

static void add_part(char *out, const char *key, const char *value)
{
    size_t n = strlen(out);
    if (value[0])
        text_format(out + n, CONSTRAINTS_TEXT_MAX - n, "%s%s=%s", n ? " " : "", key, value);
}

void constraints_format(const struct constraints *x, char out[CONSTRAINTS_TEXT_MAX])
{
    char counts[COUNTS_TEXT_MAX];
    out[0] = '\0';
    add_part(out, "gpu", x->gpu.model);
    counts[0] = '\0';
    if (x->gpu.memory_mib > 0)
        text_format(counts, sizeof counts, "%" PRId64, x->gpu.memory_mib);
    add_part(out, "gpu-memory", counts);
    add_part(out, "constraint", x->constraint.text);
    counts_format(&x->resources, counts);
    add_part(out, "resources", counts);
    counts_format(&x->licences, counts);
    add_part(out, "licences", counts);
    add_part(out, "exclusive", x->exclusive ? "yes" : "");
    add_part(out, "nodes", x->nodes);
    add_part(out, "exclude", x->exclude);
    if (x->input.bytes > 0) {
        char location[INPUT_LOCATION_MAX], input[INPUT_LOCATION_MAX + 24];
        input_format_location(&x->input, location);
        text_format(input, sizeof input, "%s:%" PRId64, location, x->input.bytes);
        add_part(out, "input", input);
    }
}

bool constraints_name_nodes(const struct constraints *x)
{
    return x && (x->nodes[0] || x->exclude[0]);
}

/* ---- in the model ---- */

int constraints_read(
    const struct model *m, const char *text, struct constraints *ret_constraints, struct err *e)
{
    int rc = constraints_parse(text, ret_constraints, e);
    struct input *in = &ret_constraints->input;
    if (rc == 0 && in->provider[0] && m->options.egress)
        in->egress = m->options.egress(in->provider);
    return rc;
}

const struct constraints *model_constraints(const struct model *m, int64_t id)
{
    return id == CONSTRAINTS_NONE ? NULL : map_get(&m->placement.constraints, id);
}

static struct constraints *constraints_add(
    struct model *m, const struct constraints *x, int64_t id, const char *text)
{
    struct constraints *own = mem_dup(x, sizeof *x);
    own->id = id;
    own->n_jobs = 0;
    map_put(&m->placement.constraints, id, own);
    smap_put(&m->placement.constraints_by_text, text, own);
    return own;
}

int64_t constraints_intern(struct model *m, const struct constraints *x)
{
    char text[CONSTRAINTS_TEXT_MAX];
    constraints_format(x, text);
    if (!text[0])
        return CONSTRAINTS_NONE;
    struct constraints *own = smap_get(&m->placement.constraints_by_text, text);
    if (!own) {
        struct constraints_row *r = ADD_ROW(m, constraints);
        r->id = NEXT_ID(m, constraints);
        STR_COPY(r->text, text);
        own = constraints_add(m, x, r->id, text);
    }
    own->n_jobs++;
    return own->id;
}

void constraints_ref(struct model *m, int64_t id)
{
    struct constraints *own =
        id == CONSTRAINTS_NONE ? NULL : map_get(&m->placement.constraints, id);
    if (own)
        own->n_jobs++;
}

void constraints_unref(struct model *m, int64_t id)
{
    char text[CONSTRAINTS_TEXT_MAX];
    struct constraints *own =
        id == CONSTRAINTS_NONE ? NULL : map_get(&m->placement.constraints, id);
    if (!own || --own->n_jobs > 0)
        return;
    constraints_format(own, text);
    smap_remove(&m->placement.constraints_by_text, text);
    map_remove(&m->placement.constraints, id);
    free(own);
}

int model_load_constraints(struct model *m, const struct constraints_row *r, struct err *e)
{
    struct constraints x;
    char text[CONSTRAINTS_TEXT_MAX];
    struct err why;
    if (r->id < 1 || model_constraints(m, r->id))
        return err_set(e, ERR_CORRUPT, "stored constraints %" PRId64 " come twice", r->id);
    if (constraints_read(m, r->text, &x, &why) != 0)
        return err_set(
            e, ERR_CORRUPT, "stored constraints %" PRId64 " cannot be read: %s", r->id, why.text);
    SAW_ID(m, constraints, r->id);
    constraints_format(&x, text);
    if (!text[0])
        return err_set(e, ERR_CORRUPT, "stored constraints %" PRId64 " are empty", r->id);
    constraints_add(m, &x, r->id, text);
    return 0;
}

/* ---- features and resources of nodes and offers ---- */

static void add_pools(
    const struct pool *p, const char *zone, const char *type, enum market market, char *set)
{
    features_add_all(set, FEATURES_ALL_MAX, p->row.features);
    if (!p->row.elastic)
        return;
    features_add(set, FEATURES_ALL_MAX, p->row.provider);
    features_add(set, FEATURES_ALL_MAX, p->row.region);
    features_add(set, FEATURES_ALL_MAX, zone);
    features_add(set, FEATURES_ALL_MAX, type);
    features_add(set, FEATURES_ALL_MAX, market_names[market]);
}

/* Names missing in the first are taken from the second. */
static void merge_counts(const char *own, const char *pools, struct counts *ret_counts)
{
    struct counts more;
    if (counts_parse(own, ret_counts, NULL) != 0)
        *ret_counts = (struct counts){0};
    if (counts_parse(pools, &more, NULL) != 0)
        return;
    for (size_t i = 0; i < more.n; i++)
        if (counts_of(ret_counts, more.v[i].name) == 0)
            /* as many as fit */
            counts_add(ret_counts, more.v[i].name, more.v[i].n, NULL);
}

void offer_describe(struct offer *o)
{
    o->features[0] = '\0';
    features_add(o->features, sizeof o->features, o->row.arch);
    features_add(o->features, sizeof o->features, o->row.gpu.model);
    add_pools(o->pool, o->row.zone, o->row.type, o->row.market, o->features);
    merge_counts("", o->pool->row.resources, &o->resources);
}

void node_take_stock(struct node *n, const struct job *j, int64_t sign)
{
    if (j->shape->constraints)
        stock_add(&n->stock, &j->shape->constraints->resources, -sign);
}

/* Attempts keep what they have even if the total falls below it: the node is then overdrawn until
 * they end. */
static void set_stock(struct node *n, const struct counts *all)
{
    n->resources = *all;
    n->stock = stock_of(&n->resources);
    LIST_FOREACH (&n->attempts, l)
        node_take_stock(n, LIST_ENTRY(l, struct attempt, on_node)->job, 1);
    for (size_t k = 0; k < n->resources.n; k++)
        n->stock.overdrawn |= n->stock.free[k] < 0;
}

void node_describe(struct node *n)
{
    const struct instance *i = n->instance;
    struct counts all;
    n->features[0] = '\0';
    features_add_all(n->features, sizeof n->features, n->row.features);
    n->gpu = i && i->offer && i->offer->row.gpu.model[0] ? i->offer->row.gpu : n->row.gpu;
    if (i && i->offer)
        features_add(n->features, sizeof n->features, i->offer->row.arch);
    features_add(n->features, sizeof n->features, n->gpu.model);
    add_pools(n->pool, i ? i->row.zone : "", i ? i->row.type : "", n->row.market, n->features);
    merge_counts(n->row.resources, n->pool->row.resources, &all);
    set_stock(n, &all);
}

void pool_describe(struct model *m, struct pool *p)
{
    LIST_FOREACH (&p->offers, l)
        offer_describe(LIST_ENTRY(l, struct offer, in_pool));
    LIST_FOREACH (model_nodes(m), l) {
        struct node *n = LIST_ENTRY(l, struct node, in_all);
        if (n->pool != p)
            continue;
        node_describe(n);
        if (!reserve_is_valid(n))
            reserve_drop(m, n->reserved_for);
        node_refresh(m, n, true);
    }
}

/* ---- matching ---- */

struct stock stock_of(const struct counts *all)
{
    struct stock s = {.all = all};
    for (size_t k = 0; k < all->n; k++)
        s.free[k] = (int32_t)all->v[k].n;
    return s;
}

int64_t stock_times(const struct stock *s, const struct counts *need)
{
    int64_t times = INT64_MAX;
    for (size_t i = 0; i < need->n; i++) {
        int64_t here = 0;
        for (size_t k = 0; k < s->all->n; k++)
            if (str_eq(s->all->v[k].name, need->v[i].name))
                here = s->free[k] / need->v[i].n;
        times = here < times ? here : times;
    }
    return times;
}

void stock_add(struct stock *s, const struct counts *need, int64_t times)
{
    for (size_t i = 0; i < need->n; i++)
        for (size_t k = 0; k < s->all->n; k++)
            if (str_eq(s->all->v[k].name, need->v[i].name))
                s->free[k] += (int32_t)(times * need->v[i].n);
}

bool constraints_allow(const struct constraints *x, const char *node)
{
    return (!x->nodes[0] || (node && hosts_has(x->nodes, node))) &&
           !(x->exclude[0] && node && hosts_has(x->exclude, node));
}

bool constraints_suit(const struct constraints *x, const char *node, const struct gpu_kind *gpu,
    const char *features, const struct counts *resources)
{
    return constraints_allow(x, node) && gpu_serves(gpu, &x->gpu) &&
           constraint_matches(&x->constraint, features) && counts_cover(resources, &x->resources);
}

bool offer_suits(const struct offer *o, const struct shape *s)
{
    return !s->constraints ||
           constraints_suit(s->constraints, NULL, &o->row.gpu, o->features, &o->resources);
}

bool node_has_constraints(const struct node *n, const struct shape *s)
{
    return !s->constraints ||
           constraints_suit(s->constraints, n->row.name, &n->gpu, n->features, &n->resources);
}

bool node_has_resources(const struct node *n, const struct shape *s)
{
    return resources_fit(&s->need, &n->free) &&
           (list_is_empty(&n->attempts) || !shape_is_exclusive(s)) &&
           (!s->constraints || stock_times(&n->stock, &s->constraints->resources) > 0);
}

bool node_has_capacity(const struct node *n, const struct shape *s)
{
    return node_has_resources(n, s) && rack_has_power_on(n, s);
}

/* ---- licences ---- */

void licences_init(struct model *m, const struct count *v, size_t n)
{
    assert(n <= LICENCES_MAX);
    for (size_t i = 0; i < n; i++)
        m->placement.licences[i] = (struct licence){.what = v[i]};
    m->placement.n_licences = n;
}

void licences_renew(struct model *m, const struct count *v, size_t n)
{
    licences_init(m, v, n);
    struct job *j;
    for (size_t pos = 0; (j = model_next_job(m, &pos)) != NULL;)
        if (job_attempt(j))
            licences_load(m, j);
}

struct licence *licence_named(const struct model *m, const char *name)
{
    for (size_t i = 0; i < m->placement.n_licences; i++)
        if (str_eq(m->placement.licences[i].what.name, name))
            return (struct licence *)&m->placement.licences[i];
    return NULL;
}

const struct count *licences_lack(const struct model *m, const struct constraints *x)
{
    for (size_t i = 0; x && i < x->licences.n; i++) {
        const struct licence *l = licence_named(m, x->licences.v[i].name);
        if (!l || l->what.n - l->used < x->licences.v[i].n)
            return &x->licences.v[i];
    }
    return NULL;
}

static void licences_add(struct model *m, const struct job *j, int64_t sign)
{
    const struct constraints *x = j->shape->constraints;
    for (size_t i = 0; x && i < x->licences.n; i++) {
        struct licence *l = licence_named(m, x->licences.v[i].name);
        if (l)
            l->used += sign * x->licences.v[i].n;
    }
}

void licences_take(struct model *m, const struct job *j)
{
    licences_add(m, j, 1);
}

void licences_load(struct model *m, const struct job *j)
{
    licences_take(m, j);
    for (size_t i = 0; i < m->placement.n_licences; i++)
        if (m->placement.licences[i].used > m->placement.licences[i].what.n)
            m->placement.licences[i].granted = m->placement.licences[i].used;
}

void licences_give(struct model *m, const struct job *j)
{
    if (!j->shape->constraints || j->shape->constraints->licences.n == 0)
        return;
    licences_add(m, j, -1);
    model_note_rewind(m); /* other jobs may get them now */
    model_note_retry_all(m);
    model_note_change(m);
}

/* ---- submit ---- */

/* Properties of the machines that a job may use. */
struct machine_survey {
    const struct job_row *job;
    const struct constraints *x;
    char all[64 * FEATURE_MAX]; /* names of features, as far as they fit */
    char models[64 * FEATURE_MAX];
    int64_t machines, suitable, constrained; /* constrained: the constraint is met */
    /* Machines with such GPUs; the largest memory of that model. */
    int64_t with_gpu, most_mib;
};

static void survey_machine(struct machine_survey *k, const char *node, const struct gpu_kind *gpu,
    const char *features, const struct counts *resources)
{
    struct gpu_kind asked = k->x->gpu;
    if (!constraints_allow(k->x, node))
        return;
    asked.memory_mib = 0;
    k->machines++;
    k->with_gpu += gpu_serves(gpu, &k->x->gpu);
    if (gpu_serves(gpu, &asked) && gpu->memory_mib > k->most_mib)
        k->most_mib = gpu->memory_mib;
    features_add(k->models, sizeof k->models, gpu->model);
    k->constrained += constraint_matches(&k->x->constraint, features);
    k->suitable += constraints_suit(k->x, node, gpu, features, resources);
    features_add_all(k->all, sizeof k->all, features);
}

static void survey_machines(const struct model *m, struct machine_survey *k)
{
    LIST_FOREACH (model_nodes(m), l) {
        const struct node *n = LIST_ENTRY(l, struct node, in_all);
        if (job_pools_allow(k->job->spec.pool, n->row.pool) &&
            market_wish_allows(k->job->spec.market, n->row.market))
            survey_machine(k, n->row.name, &n->gpu, n->features, &n->resources);
    }
    LIST_FOREACH (model_pools(m), lp) {
        const struct pool *p = LIST_ENTRY(lp, struct pool, in_all);
        struct counts own;
        if (!job_pools_allow(k->job->spec.pool, p->row.name))
            continue;
        merge_counts("", p->row.resources, &own);
        if (!p->row.elastic)
            /* nodes may still join it */
            survey_machine(k, NULL, &(struct gpu_kind){0}, p->row.features, &own);
        LIST_FOREACH (&p->offers, l) {
            const struct offer *o = LIST_ENTRY(l, struct offer, in_pool);
            if (o->row.rank != OFFER_WITHDRAWN &&
                market_wish_allows(k->job->spec.market, o->row.market))
                survey_machine(k, NULL, &o->row.gpu, o->features, &o->resources);
        }
    }
}

/* The name in a set closest to `name`, into out; "" if none is close. */
static void nearest_name(const char *set, const char *name, char out[FEATURE_MAX])
{
    char names[64][FEATURE_MAX];
    const char *list[65] = {NULL};
    size_t n = 0;
    for (size_t pos = 0; n < 64 && features_next(set, &pos, names[n]); n++)
        list[n] = names[n];
    const char *near = str_nearest(name, list);
    str_copy(out, FEATURE_MAX, near);
}

static int refuse_name(const char *what, const char *name, const char *set, struct err *e)
{
    char near[FEATURE_MAX];
    nearest_name(set, name, near);
    return err_set(e, ERR_INVALID,
        "no node or pool that it may use has %s \"%s\"%s%s%s (see belay nodes)", what, name,
        near[0] ? "; did you mean \"" : "", near, near[0] ? "\"?" : "");
}

static int refuse_constraint(const struct machine_survey *k, struct err *e)
{
    const char *name;
    for (size_t i = 0; (name = constraint_name(&k->x->constraint, i)); i++)
        if (!features_has(k->all, name) && (str_eq(name, "apptainer") || str_eq(name, "podman")))
            return err_set(e, ERR_INVALID,
                "no node or pool that it may use has podman or apptainer, one of which a container "
                "image needs (a .sif file: apptainer): install it on the nodes, or name it in "
                "features: of a pool with it on its machines");
        else if (!features_has(k->all, name))
            return refuse_name("the feature", name, k->all, e);
    return err_set(e, ERR_INVALID,
        "no node or pool that it may use satisfies the whole constraint %s", k->x->constraint.text);
}

static int refuse_gpu(const struct machine_survey *k, struct err *e)
{
    const struct gpu_kind *g = &k->x->gpu;
    if (k->most_mib == 0 && g->model[0])
        return refuse_name("GPUs of the model", g->model, k->models, e);
    return err_set(e, ERR_INVALID,
        "it needs GPUs %s%sof %" PRId64
        " MiB, and no node or pool that it may use has such GPUs of more than %" PRId64 " MiB",
        g->model, g->model[0] ? " " : "", g->memory_mib, k->most_mib);
}

static void max_count_of(
    const struct counts *have, const char *name, int64_t *most, char *names, size_t size)
{
    int64_t n = counts_of(have, name);
    *most = n > *most ? n : *most;
    for (size_t i = 0; i < have->n; i++)
        features_add(names, size, have->v[i].name);
}

static int refuse_resources(const struct model *m, const struct machine_survey *k, struct err *e)
{
    for (size_t i = 0; i < k->x->resources.n; i++) {
        const struct count *want = &k->x->resources.v[i];
        char names[64 * FEATURE_MAX] = "";
        int64_t most = 0;
        LIST_FOREACH (model_nodes(m), l)
            max_count_of(&LIST_ENTRY(l, struct node, in_all)->resources, want->name, &most, names,
                sizeof names);
        LIST_FOREACH (model_pools(m), l) {
            struct counts own;
            merge_counts("", LIST_ENTRY(l, struct pool, in_all)->row.resources, &own);
            max_count_of(&own, want->name, &most, names, sizeof names);
        }
        if (most == 0)
            return refuse_name("the resource", want->name, names, e);
        if (most < want->n)
            return err_set(e, ERR_INVALID,
                "it needs %s:%" PRId64 " of a node, and no node has more than %" PRId64, want->name,
                want->n, most);
    }
    return err_set(e, ERR_INVALID,
        "no node or pool that it may use has all its resources and features together");
}

static int check_licences(const struct model *m, const struct constraints *x, struct err *e)
{
    for (size_t i = 0; i < x->licences.n; i++) {
        const struct count *want = &x->licences.v[i];
        const struct licence *l = licence_named(m, want->name);
        const char *names[LICENCES_MAX + 1] = {NULL};
        for (size_t k = 0; k < m->placement.n_licences; k++)
            names[k] = m->placement.licences[k].what.name;
        const char *near = l ? NULL : str_nearest(want->name, names);
        if (!l)
            return err_set(e, ERR_INVALID,
                "there is no licence \"%s\" in belayd's configuration%s%s%s", want->name,
                near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
        if (l->what.n < want->n)
            return err_set(e, ERR_INVALID,
                "it needs %" PRId64 " of licence %s, and the cluster has %" PRId64, want->n,
                want->name, l->what.n);
    }
    return 0;
}

#define NAMES_COMPARED_MAX 1024 /* for the suggestion of a similar name */

static int refuse_node(const struct model *m, const char *name, struct err *e)
{
    const char *names[NAMES_COMPARED_MAX + 1];
    size_t n = 0;
    LIST_FOREACH (model_nodes(m), l)
        if (n < NAMES_COMPARED_MAX)
            names[n++] = LIST_ENTRY(l, struct node, in_all)->row.name;
    names[n] = NULL;
    const char *near = str_nearest(name, names);
    return err_set(e, ERR_INVALID, "there is no node \"%s\"%s%s%s (belay nodes lists them)", name,
        near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
}

/* All names exist. Elastic nodes come and go: names to exclude may be of nodes that are gone. */
static int check_names(const struct model *m, const char *list, bool may_be_gone, struct err *e)
{
    struct hosts_at at = {0};
    char name[HOSTS_NAME_MAX];
    LIST_FOREACH (model_pools(m), l)
        if (may_be_gone && LIST_ENTRY(l, struct pool, in_all)->row.elastic)
            return 0;
    while (hosts_next(list, &at, name))
        if (!model_node_named(m, name))
            return refuse_node(m, name, e);
    return 0;
}

static int check_nodes(
    const struct model *m, const struct job_row *j, const struct constraints *x, struct err *e)
{
    int64_t least = j->spec.nodes_min ? j->spec.nodes_min : j->spec.nodes, n_allowed = 0,
            n_here = 0;
    int rc = check_names(m, x->nodes, false, e);
    if (!rc)
        rc = check_names(m, x->exclude, true, e);
    if (rc || !x->nodes[0])
        return rc;
    LIST_FOREACH (model_nodes(m), l) {
        const struct node *n = LIST_ENTRY(l, struct node, in_all);
        bool allowed = constraints_allow(x, n->row.name);
        n_allowed += allowed;
        n_here += allowed && job_pools_allow(j->spec.pool, n->row.pool) &&
                  market_wish_allows(j->spec.market, n->row.market);
    }
    if (n_allowed == 0)
        return err_set(
            e, ERR_INVALID, "all nodes of its --nodelist, %s, are excluded as well", x->nodes);
    if (n_here == 0)
        return err_set(e, ERR_INVALID, "none of the nodes %s is %s%s, where it may run", x->nodes,
            j->spec.pool[0] ? "in pool " : "of the market ",
            j->spec.pool[0] ? j->spec.pool : market_wish_names[j->spec.market]);
    if (n_here < least)
        return err_set(e, ERR_INVALID,
            "it needs %" PRId64 " nodes at once, and of its --nodelist, %s, it may have %" PRId64,
            least, x->nodes, n_here);
    return 0;
}

int constraints_check_submit(
    const struct model *m, const struct job_row *j, const struct constraints *x, struct err *e)
{
    struct machine_survey k = {.job = j, .x = x};
    int rc = check_licences(m, x, e);
    if (!rc && constraints_name_nodes(x))
        rc = check_nodes(m, j, x, e);
    if (rc || (x->constraint.n_names == 0 && x->resources.n == 0 && !x->gpu.model[0] &&
                  x->gpu.memory_mib == 0))
        return rc;
    if ((x->gpu.model[0] || x->gpu.memory_mib > 0) && j->spec.need.gpus == 0)
        return err_set(e, ERR_INVALID, "it names a GPU model or memory, but it requests no GPUs");
    survey_machines(m, &k);
    if (k.suitable > 0)
        return 0;
    if (k.with_gpu == 0)
        return refuse_gpu(&k, e);
    return k.constrained == 0 ? refuse_constraint(&k, e) : refuse_resources(m, &k, e);
}

void constraints_deinit(struct model *m)
{
    struct constraints *p;
    for (size_t pos = 0; (p = map_next(&m->placement.constraints, &pos, &(int64_t){0})) != NULL;)
        free(p);
    map_deinit(&m->placement.constraints);
    smap_deinit(&m->placement.constraints_by_text);
}
