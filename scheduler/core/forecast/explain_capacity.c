/* SPDX-License-Identifier: Apache-2.0
 *
 * Reasons about nodes, launchable machines, and rack power for a pending job. Examines every node
 * and offer, which is acceptable for interactive requests.
 */
#include "scheduler/core/forecast/explain_private.h"

#include "base/str.h"
#include "scheduler/core/deadline/procurement.h"
#include "scheduler/core/lifecycle/gang_resize.h"
#include "scheduler/core/lifecycle/instances.h"
#include "scheduler/core/lifecycle/nodes.h"
#include "scheduler/core/model/resources.h"
#include "scheduler/core/lifecycle/certificates.h"
#include "scheduler/core/model/state.h"
#include "scheduler/core/model/text.h"
#include "scheduler/core/placement/constraints_model.h"
#include "scheduler/core/placement/criu.h"
#include "scheduler/core/placement/maintenance.h"
#include "scheduler/core/queue/windows.h"
#include "scheduler/core/placement/racks.h"
#include "scheduler/core/placement/reserve.h"
#include "scheduler/core/queue/budgets.h"
#include "scheduler/core/queue/labels.h"
#include "scheduler/core/queue/limits.h"
#include "scheduler/core/supply/base_load.h"
#include "scheduler/core/supply/boots.h"
#include "scheduler/core/supply/offers.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Whether it has the demanded properties besides size. node: its name; NULL: to be launched, of
 * this type. */
static bool has_constraints(struct survey *v, const struct shape *s, const char *node,
    const char *type, const struct gpu_kind *gpu, const char *features,
    const struct counts *resources)
{
    const struct constraints *x = s->constraints;
    const char *name = node ? node : type;
    if (!x || constraints_suit(x, node, gpu, features, resources))
        return true;
    if (v->no_constraints++ > 0)
        return false;
    const struct count *want = counts_short(resources, &x->resources);
    if (!constraints_allow(x, node))
        text_format(v->no_constraints_what, sizeof v->no_constraints_what, "%.60s %s", name,
            !node                         ? "would be launched, under a name that is not known yet"
            : hosts_has(x->exclude, node) ? "is excluded by --exclude"
                                          : "is not in its --nodelist");
    else if (!gpu_serves(gpu, &x->gpu))
        text_format(v->no_constraints_what, sizeof v->no_constraints_what,
            "the GPUs of %.50s are %s, %" PRId64 " MiB", name,
            gpu->model[0] ? gpu->model : "of a model not known", gpu->memory_mib);
    else if (!constraint_matches(&x->constraint, features))
        text_format(v->no_constraints_what, sizeof v->no_constraints_what,
            "%.60s lacks the features", name);
    else
        text_format(v->no_constraints_what, sizeof v->no_constraints_what,
            "%.60s has %" PRId64 " %s", name, counts_of(resources, want->name), want->name);
    return false;
}

/* Whether a machine of this size and market can ever serve the job. */
static bool machine_may_fit(struct survey *v, const struct shape *s, const struct pool *p,
    const struct resources *total, enum market market)
{
    if (total->cpus > v->largest.cpus)
        v->largest = *total;
    if (!resources_fit(&s->need, total)) {
        v->too_small++;
        return false;
    }
    if (!market_wish_allows(s->wish, market)) {
        v->other_market++;
        return false;
    }
    if (!procurement_allows(s->procurement, market)) {
        v->other_procurement++;
        return false;
    }
    if (!shape_may_use(s, p, market)) {
        v->asks = v->uncertified++ ? v->asks : p->row.name;
        return false;
    }
    return true;
}

/* Counts machines on which CRIU cannot checkpoint the job; the first one is named. */
static bool count_criu(struct survey *v, bool may, const char *who, const char *why)
{
    v->no_criu += !may;
    if (!may && !v->no_criu_who) {
        v->no_criu_who = who;
        v->no_criu_why = why[0] ? why : "its agent does not report what CRIU can do there";
    }
    return may;
}

/* Whether the job may use the pool. Missing labels for a pool that could serve it are reported. */
static bool pool_is_allowed(struct survey *v, const struct shape *s, const struct pool *p,
    const struct resources *total, enum market market)
{
    if (!shape_allows_pool(s, p) || labels_suffice(s->labels, p))
        return shape_allows_pool(s, p);
    if (!v->unlabelled && resources_fit(&s->need, total) && market_wish_allows(s->wish, market))
        v->unlabelled = p;
    return false;
}

static bool machine_is_affordable(struct survey *v, const struct shape *s, const struct pool *p,
    const struct resources *total, int64_t uusd_h)
{
    int64_t costs = s->least * resources_share(shape_takes(s, total), total, uusd_h);
    if (!shape_pays(s) || budgets_afford(s, p, costs))
        return true;
    if (v->unpaid++ == 0 || costs < v->unpaid_uusd_h) {
        v->unpaid_uusd_h = costs;
        v->unpaid_in = p;
    }
    return false;
}

void explain_survey_nodes(const struct model *m, const struct shape *s, struct survey *v)
{
    LIST_FOREACH (model_nodes(m), l) {
        const struct node *n = LIST_ENTRY(l, struct node, in_all);
        if (!pool_is_allowed(v, s, n->pool, &n->row.total, n->row.market) ||
            !machine_may_fit(v, s, n->pool, &n->row.total, n->row.market) ||
            !has_constraints(v, s, n->row.name, "", &n->gpu, n->features, &n->resources) ||
            !count_criu(v, node_can_criu(n, s->criu), n->row.name, n->row.criu_text))
            continue;
        v->nodes++;
        v->draining += n->row.state == NODE_DRAINING;
        if (n->row.state == NODE_DRAINING && n->row.drain_text[0] && !v->drained)
            v->drained = n;
        v->noticed += n->row.state == NODE_NOTICED;
        v->lost += n->row.state == NODE_LOST;
        if (n->row.state == NODE_UP && n->throttle != NODE_THROTTLE_NONE)
            v->throttles = v->throttled++ ? v->throttles : n;
        if (n->row.state == NODE_UP && n->disk_full[0])
            v->full_node = v->full++ ? v->full_node : n;
        if (n->row.state == NODE_UP && !maintenance_allows(n, s, v->now.wall)) {
            v->maintained = v->n_maintained++ ? v->maintained : n;
            continue;
        }
        v->busy += node_takes_work(n) && !node_has_resources(n, s);
        if (!node_takes_work(n) || !node_has_resources(n, s) || n->row.id == s->avoid)
            continue;
        if (!machine_is_affordable(v, s, n->pool, &n->row.total, n->row.price_uusd_h))
            continue;
        if (!limits_afford(s, &n->row.total, n->row.price_uusd_h)) {
            v->too_expensive++;
        } else if (node_is_kept_from(n, s)) {
            v->kept++;
        } else if (!rack_has_power_on(n, s)) {
            v->lacks_power = v->unpowered++ ? v->lacks_power : n;
        } else if (reserve_allows(n, s, v->now)) {
            v->ready++;
        } else if (v->reserved++ == 0) {
            const struct shape *first =
                n->reserved_for ? n->reserved_for : rack_reserved_for(n->rack);
            v->reserved_for = first->head;
            v->reserved_until = first->reserved_until;
        }
    }
}

void explain_survey_offers(const struct model *m, const struct shape *s, struct survey *v)
{
    LIST_FOREACH (model_pools(m), lp) {
        const struct pool *p = LIST_ENTRY(lp, struct pool, in_all);
        if (!p->row.elastic || p->row.max_nodes == 0)
            continue;
        LIST_FOREACH (&p->offers, lo) {
            const struct offer *o = LIST_ENTRY(lo, struct offer, in_pool);
            struct resources total = offer_total(o);
            if (o->row.rank == OFFER_WITHDRAWN ||
                !pool_is_allowed(v, s, p, &total, o->row.market) ||
                !machine_may_fit(v, s, p, &total, o->row.market) ||
                !has_constraints(
                    v, s, NULL, o->row.type, &o->row.gpu, o->features, &o->resources) ||
                !count_criu(v, pool_may_criu(p, s->criu), p->row.name, pool_criu_why(p)))
                continue;
            v->offers++;
            machine_is_affordable(v, s, p, &total, o->row.price_uusd_h);
            v->too_expensive += !limits_afford(s, &total, o->row.price_uusd_h);
        }
    }
}

/* "4 cpus, 1 gpu, 16.0 GiB"; zero amounts are omitted. */
static void size_text(const struct resources *r, char *out, size_t size)
{
    char gpus[32] = "", memory[32] = "";
    if (r->gpus > 0)
        snprintf(gpus, sizeof gpus, ", %" PRId32 " gpu%s", r->gpus, explain_plural(r->gpus));
    if (r->memory_mib > 0) {
        char bytes[24];
        str_format_bytes((uint64_t)r->memory_mib << 20, bytes, sizeof bytes);
        snprintf(memory, sizeof memory, ", %s", bytes);
    }
    snprintf(out, size, "%" PRId32 " cpu%s%s%s", r->cpus, explain_plural(r->cpus), gpus, memory);
}

/* What it demands, and what lacks it. */
static void add_unmet_constraints(const struct survey *v, const struct shape *s, struct answer *a)
{
    char text[CONSTRAINTS_TEXT_MAX];
    struct constraints x = *s->constraints;
    x.licences.n = 0;
    constraints_format(&x, text);
    explain_add_reason(a, "extras",
        "%" PRId64 " machine%s large enough but %s not meet its constraints, %.100s; %s",
        v->no_constraints, v->no_constraints == 1 ? " is" : "s are",
        v->no_constraints == 1 ? "does" : "do", text, v->no_constraints_what);
}

static void add_missing_criu(const struct survey *v, struct answer *a)
{
    explain_add_reason(a, "criu",
        "%" PRId64 " machine%s large enough cannot checkpoint it by CRIU; %s: %.180s", v->no_criu,
        explain_plural(v->no_criu), v->no_criu_who, v->no_criu_why);
}

/* only: no other machine fits. */
void explain_uncertified(const struct survey *v, const struct job *j, bool only, struct answer *a)
{
    const char *until =
        only ? "and no other machines fit: submit it with --market any, which allows others"
             : "until then it runs on others";
    if (j->row.spec.method == CKPT_NONE)
        explain_add_reason(a, "drill-required",
            "pool %s keeps its spot machines for jobs that a drill has certified, %s. It saves "
            "nothing (--checkpoint none), so "
            "it cannot be",
            v->asks, until);
    else if (job_side(j)->drill || j->row.spec.drill_tries > 0)
        explain_add_reason(a, "drill-required",
            "pool %s keeps its spot machines for jobs that a drill has certified, %s; it %s",
            v->asks, until,
            job_side(j)->drill ? "is being drilled" : "will be drilled when it has saved");
    else
        explain_add_reason(a, "drill-required",
            "pool %s keeps its spot machines for jobs that a drill has certified, %s: belay drill "
            "%s when it runs, or submit with --drill",
            v->asks, until, job_ref(&j->row).s);
}

static void add_missing_labels(
    const struct survey *v, const struct shape *s, bool only, struct answer *a)
{
    char names[CORE_TEXT_MAX / 2];
    labels_lacking(s->labels, v->unlabelled, names, sizeof names);
    explain_add_reason(a, "required-labels", "pool %s requires further labels of its jobs: %s; %s",
        v->unlabelled->row.name, names,
        only ? "no other pool fits: cancel it, and submit it again with --label"
             : "it runs elsewhere");
}

/* Whether one of the pools that it names exists; true if it names none. */
static bool names_existing_pool(const struct model *m, const char *pools)
{
    LIST_FOREACH (model_pools(m), l)
        if (job_pools_allow(pools, LIST_ENTRY(l, struct pool, in_all)->row.name))
            return true;
    return !pools[0];
}

bool explain_impossible(const struct model *m, const struct job *j, const struct shape *s,
    const struct survey *v, struct answer *a)
{
    bool several = strchr(s->pool, ',');
    if (!names_existing_pool(m, s->pool)) {
        explain_add_reason(
            a, "no-pool", "there is %s '%s'", several ? "none of the pools" : "no pool", s->pool);
        return true;
    }
    if (v->nodes + v->offers + v->other_procurement > 0)
        return false;
    if (v->uncertified > 0)
        explain_uncertified(v, j, true, a);
    else if (v->unlabelled)
        add_missing_labels(v, s, true, a);
    else if (v->no_criu > 0)
        add_missing_criu(v, a);
    else if (v->no_constraints > 0)
        add_unmet_constraints(v, s, a);
    else if (v->other_market > 0)
        explain_add_reason(a, "market",
            "only machines of another market than %s are large enough; --market any would use them",
            market_wish_names[s->wish]);
    else if (v->too_small > 0) {
        char need[96], largest[96];
        size_text(&s->need, need, sizeof need);
        size_text(&v->largest, largest, sizeof largest);
        explain_add_reason(
            a, "too-large", "it needs %s; the largest machine has %s", need, largest);
    } else
        explain_add_reason(a, "no-node-fits", "no node has joined%s%s%s and none can be launched",
            several      ? " any of the pools '"
            : s->pool[0] ? " pool '"
                         : "",
            s->pool, s->pool[0] ? "'" : "");
    return true;
}

void explain_coming(
    const struct model *m, const struct shape *s, struct stamp now, struct answer *a)
{
    LIST_FOREACH (model_instances(m), l) {
        const struct instance *i = LIST_ENTRY(l, struct instance, in_all);
        const struct offer *o = i->offer;
        if (!instance_is_coming(i) || !o || !shape_allows_pool(s, i->pool) ||
            !pool_may_criu(i->pool, s->criu) || !shape_may_use(s, i->pool, i->row.market))
            continue;
        struct resources total = offer_total(o);
        if (!resources_fit(&s->need, &total) || !offer_suits(o, s))
            continue;
        char since[32];
        time_format_duration(now.mono.ms - i->since.ms, since, sizeof since);
        static const char *const does[] = {[INSTANCE_INTENDED] = "was requested",
            [INSTANCE_QUEUED] = "has been waiting in the provider's queue for",
            [INSTANCE_LAUNCHED] = "has been booting for"};
        explain_add_reason(a, "launching", "instance %" PRId64 " (%s %s in %s) %s %s%s", i->row.id,
            i->row.type, market_names[i->row.market], i->row.zone, does[i->row.state], since,
            i->row.state == INSTANCE_INTENDED ? " ago" : "");
    }
}

struct kilowatts {
    char s[24];
};

static struct kilowatts kilowatts(int64_t watts)
{
    struct kilowatts k;
    text_format(k.s, sizeof k.s, "%" PRId64 ".%" PRId64, watts / 1000, watts % 1000 / 100);
    return k;
}

/* Number of nodes that would have to be launched there. */
static int64_t missing_nodes(const struct model *m, const struct pool *p, const struct shape *s)
{
    int64_t n = s->least;
    LIST_FOREACH (model_nodes(m), l) {
        const struct node *node = LIST_ENTRY(l, struct node, in_all);
        n -= node->pool == p && node_takes_work(node) && node_has_capacity(node, s);
    }
    return n;
}

/* The pool may have more machines, but their rack lacks power for the number needed. */
static void add_rack_power_of_pool(
    const struct model *m, const struct pool *p, const struct shape *s, struct answer *a)
{
    const struct rack_options *o = p->rack->options;
    int64_t least_w = -1, n = missing_nodes(m, p, s);
    LIST_FOREACH (&p->offers, lo) {
        const struct offer *of = LIST_ENTRY(lo, struct offer, in_pool);
        struct resources total = offer_total(of);
        if (of->row.rank == OFFER_WITHDRAWN || !resources_fit(&s->need, &total) ||
            !offer_suits(of, s))
            continue;
        int64_t adds = rack_single_w(p->rack_kind, total, s);
        least_w = least_w < 0 || adds < least_w ? adds : least_w;
    }
    if (least_w < 0 || n <= 0 || n * least_w <= rack_left(p->rack))
        return;
    explain_add_reason(a, "rack",
        "no node of pool %s is launched for lack of power: rack %s draws %s kW of at most %s "
        "(max_kw), and it would draw %s more there",
        p->row.name, o->name, kilowatts(o->max_w - rack_left(p->rack)).s, kilowatts(o->max_w).s,
        kilowatts(n * least_w).s);
}

/* Failed boots; the console's lines are joined here. */
static void add_boot_failures(const struct pool *p, struct stamp now, struct answer *a)
{
    const struct pool_boots *b = &p->row.boots;
    char in[32], next[96];
    int64_t left_ms =
        mono_is_set(p->probe_at) && p->probe_at.ms > now.mono.ms ? p->probe_at.ms - now.mono.ms : 0;
    time_format_duration(left_ms, in, sizeof in);
    if (p->n_coming > 0)
        STR_COPY(next, "one that was launched to try again is booting");
    else if (p->on_trial)
        STR_COPY(next, "one that was launched to try again has joined, and no job has begun there");
    else if (left_ms > 0)
        text_format(next, sizeof next,
            "one is launched in %s to try again; belay pools apply --yes tries at once", in);
    else
        STR_COPY(next, "one is launched to try again for the next job that may have it");
    explain_add_reason(a, "boots-fail",
        "pool %s: the last %" PRId32 " machines that it launched never joined%s (instance %" PRId64
        ": %.160s); %s",
        p->row.name, b->failed, pool_boots_disk_full(p) ? ", or had no space on their disks" : "",
        b->instance, b->text, next);
    if (!b->console[0])
        return;
    char line[CORE_TEXT_MAX - 64];
    size_t len = strlen(b->console), from = len > sizeof line - 1 ? len - (sizeof line - 1) : 0,
           n = 0;
    for (const char *c = b->console + from; *c; c++)
        line[n++] = *c == '\n' ? ' ' : *c;
    line[n] = '\0';
    explain_add_reason(
        a, "boot-console", "the console of instance %" PRId64 " ended with: %s", b->instance, line);
}

void explain_offers(
    const struct model *m, const struct shape *s, struct stamp now, struct answer *a)
{
    const struct capacity all = model_capacity(m);
    LIST_FOREACH (model_pools(m), lp) {
        const struct pool *p = LIST_ENTRY(lp, struct pool, in_all);
        if (!shape_allows_pool(s, p) || !p->row.elastic || p->row.max_nodes == 0 ||
            !pool_may_criu(p, s->criu))
            continue;
        struct capacity capacity = pool_limits(p);
        if (pool_boots_fail(p))
            add_boot_failures(p, now, a);
        if (capacity.nodes == 0)
            explain_add_reason(a, "pool-full",
                "pool %s has %" PRId64 " of at most %" PRId64 " nodes%s%s", p->row.name,
                p->used.nodes, pool_nodes_max(p),
                pool_nodes_max(p) < p->row.max_nodes ? ", for which there are places in rack " : "",
                pool_nodes_max(p) < p->row.max_nodes ? p->rack->options->name : "");
        if (capacity.nodes > 0 && p->rack)
            add_rack_power_of_pool(m, p, s, a);
        LIST_FOREACH (&p->offers, lo) {
            const struct offer *o = LIST_ENTRY(lo, struct offer, in_pool);
            struct resources total = offer_total(o);
            struct mono until = o->row.avoid_until;
            if (o->row.rank == OFFER_WITHDRAWN || !resources_fit(&s->need, &total) ||
                !offer_suits(o, s) || !shape_may_use(s, p, o->row.market))
                continue;
            const char *lacks = capacity_lacks(&capacity, o), *lacks_all = capacity_lacks(&all, o);
            if (capacity.nodes > 0 && (lacks || lacks_all))
                explain_add_reason(a, "limit", "%s %s in %s would exceed the maximum %s of %s",
                    o->row.type, market_names[o->row.market], o->row.zone,
                    lacks ? lacks : lacks_all, lacks ? "its pool" : "all pools together");
            if (!mono_is_set(until) || until.ms <= now.mono.ms)
                continue;
            char in[32];
            time_format_duration(until.ms - now.mono.ms, in, sizeof in);
            bool early = o->row.refused_in_a_row == 0 && o->early_reclaims_in_a_row > 0;
            explain_add_reason(a, early ? "offer-reclaims" : "offer-refused",
                "%s %s in %s %s (%" PRId32 " in a row); tried again in %s%s%s", o->row.type,
                market_names[o->row.market], o->row.zone,
                early ? "reclaims its machines soon after they boot" : "provided no machine",
                early ? o->early_reclaims_in_a_row : o->row.refused_in_a_row, in,
                o->why[0] ? ": " : "", o->why);
        }
    }
}

/* ", so it can begin there at 2026-11-29 04:00 (Europe/Berlin)"; "" if it never can. */
static void format_maintenance_end(const struct maintenance *r, uint64_t mask, const struct job *j,
    struct stamp now, char out[MAINTENANCE_PERIOD_MAX])
{
    char at[ZONE_TIME_MAX];
    struct wall earliest = maintenance_earliest(mask, j->shape, now.wall, false);
    out[0] = '\0';
    if (earliest.ms >= WALL_NEVER.ms)
        return;
    core_maintenance_moment(r, earliest, at);
    text_format(
        out, MAINTENANCE_PERIOD_MAX, ", so it can begin there at %s (%s)", at, r->zone->name);
}

/* "at least 2 nodes, 1 without a job (window office)" */
static void format_kept(const struct base_values *v, char *out, size_t size)
{
    text_format(out, size, "at least %" PRId32 " node%s, %" PRId32 " without a job (%s%s)",
        v->min_nodes, v->min_nodes == 1 ? "" : "s", v->warm_nodes,
        v->window ? "window " : "outside of windows", v->window ? v->window->window.name : "");
}

/* The base load of the pools that it may use, in force and after the next change. */
void explain_base_load(
    const struct model *m, const struct shape *s, struct stamp now, struct answer *a)
{
    LIST_FOREACH (model_pools(m), l) {
        const struct pool *p = LIST_ENTRY(l, struct pool, in_all);
        struct base_view v;
        char kept[160], next[256] = "", at[ZONE_TIME_MAX];
        if (!p->row.elastic || !shape_allows_pool(s, p) ||
            (p->n_windows == 0 && p->row.min_nodes == 0 && p->row.warm_nodes == 0))
            continue;
        core_base_load(p, now.wall, &v);
        format_kept(&v.now, kept, sizeof kept);
        if (wall_is_set(v.next_at)) {
            const struct pool_window *w = v.next.window ? v.next.window : v.now.window;
            const struct time_zone *zone = w && w->window.zone ? w->window.zone : &zone_utc;
            zone_format(zone, v.next_at, at);
            int n = snprintf(next, sizeof next, "; from %s (%s): ", at, zone->name);
            format_kept(&v.next, next + n, sizeof next - (size_t)n);
        }
        explain_add_reason(a, "base-load", "pool %s keeps %s%s", p->row.name, kept, next);
    }
}

/* Why the job cannot run there before it; "" if it is open. */
static void format_maintenance_demand(
    const struct maintenance *r, const struct job *j, struct stamp now, char *out, size_t size)
{
    char limit[32], counted[32];
    const int64_t ms = j->row.spec.time_limit_ms;
    time_format_duration(ms, limit, sizeof limit);
    time_format_duration(j->shape->limit_ms, counted, sizeof counted);
    out[0] = '\0';
    if (r->row.state == MAINTENANCE_OPEN || now.wall.ms >= r->row.from_at.ms || j->shape->can_drain)
        return;
    if (ms == 0)
        text_format(out, size, ", and this job has no time limit (--time) and cannot be saved");
    else if (now.wall.ms + ms <= r->row.from_at.ms)
        text_format(out, size,
            ", and this job asks for %s, which counts as %s, and cannot be saved", limit, counted);
    else
        text_format(out, size, ", and this job asks for %s and cannot be saved", limit);
}

/* It is repeated, and the job never fits between two times. */
static bool excludes_always(const struct maintenance *r, const struct job *j)
{
    const int64_t ms = j->row.spec.time_limit_ms;
    return r->row.is_weekly && !j->shape->can_drain &&
           (ms == 0 || j->shape->limit_ms > MAINTENANCE_WEEK_MS - r->row.for_ms);
}

void explain_maintenance(
    const struct model *m, const struct survey *v, const struct job *j, struct answer *a)
{
    const struct node *n = v->maintained;
    const struct maintenance *r = n ? maintenance_of_node(n, j->shape, v->now.wall) : NULL;
    char period[MAINTENANCE_PERIOD_MAX], demand[128], end[MAINTENANCE_PERIOD_MAX], others[32] = "";
    if (v->n_maintained > 1)
        text_format(others, sizeof others, " and %" PRId64 " more", v->n_maintained - 1);
    if (r) {
        core_maintenance_period(r, period);
        format_maintenance_demand(r, j, v->now, demand, sizeof demand);
        format_maintenance_end(r, n->maintenance, j, v->now, end);
        bool is_never = excludes_always(r, j) && v->n_maintained == v->nodes && v->offers == 0;
        explain_add_reason(a, is_never ? "maintenance-always" : "maintenance",
            "node %s%s %s reserved for maintenance (%s) from %s%s%s%s", n->row.name, others,
            v->n_maintained > 1 ? "are" : "is", r->row.name, period,
            excludes_always(r, j) ? ", and every week" : "", demand, end);
    }
    LIST_FOREACH (model_pools(m), l) {
        const struct pool *p = LIST_ENTRY(l, struct pool, in_all);
        r = p->row.elastic && shape_allows_pool(j->shape, p)
                ? maintenance_of_pool(p, j->shape, v->now.wall)
                : NULL;
        if (!r)
            continue;
        core_maintenance_period(r, period);
        format_maintenance_demand(r, j, v->now, demand, sizeof demand);
        explain_add_reason(a, "maintenance",
            "pool %s is reserved for maintenance (%s) from %s: no node is launched for it there%s",
            p->row.name, r->row.name, period, demand);
    }
}

/* n: the first of them; together: power for each of them alone, but not for all that are needed. */
static void add_rack_power(
    const struct node *n, int64_t nodes, const struct shape *s, bool together, struct answer *a)
{
    const struct rack_options *o = n->rack->options;
    int64_t draw = o->max_w - rack_left(n->rack),
            adds = rack_adds(n->rack_kind, &n->row.total, &n->free, s, 1);
    explain_add_reason(a, "rack",
        "%" PRId64
        " node%s capacity but no power: rack %s draws %s kW of at most %s (max_kw), and %s "
        "would draw %s more on %s%s",
        nodes, nodes == 1 ? " has" : "s have", o->name, kilowatts(draw).s, kilowatts(o->max_w).s,
        together ? "each of its ranks" : "it", kilowatts(adds).s, n->row.name,
        together ? " and on others" : "");
}

void explain_nodes(const struct survey *v, const struct shape *s, struct answer *a)
{
    if (v->unpowered)
        add_rack_power(v->lacks_power, v->unpowered, s, false, a);
    if (v->throttled)
        explain_add_reason(a, "nodes-throttled",
            "%" PRId64 " node%s throttled by heat, power or the board, and %s no new jobs until "
            "that is over: %s (%s)%s",
            v->throttled, v->throttled == 1 ? " is" : "s are", v->throttled == 1 ? "gets" : "get",
            v->throttles->row.name, node_throttle_names[v->throttles->throttle],
            v->throttled > 1 ? " and others" : "");
    if (v->full)
        explain_add_reason(a, "nodes-full",
            "%" PRId64 " node%s no space on %s disk, and %s no new jobs until there is space: %s "
            "(%.140s)%s",
            v->full, v->full == 1 ? " has" : "s have", v->full == 1 ? "its" : "their",
            v->full == 1 ? "gets" : "get", v->full_node->row.name, v->full_node->disk_full,
            v->full > 1 ? " and others" : "");
    if (v->busy)
        explain_add_reason(a, "nodes-busy", "%" PRId64 " node%s large enough but %s", v->busy,
            v->busy == 1 ? " is" : "s are",
            shape_is_exclusive(s) ? "not empty, and it is exclusive" : "busy");
    if (v->kept)
        explain_add_reason(a, "nodes-kept-for-another",
            "%" PRId64 " node%s temporarily reserved for a multi-node job that will continue there",
            v->kept, v->kept == 1 ? " is" : "s are");
    if (v->noticed)
        explain_add_reason(a, "nodes-noticed", "%" PRId64 " node%s being reclaimed", v->noticed,
            v->noticed == 1 ? " is" : "s are");
    if (v->draining)
        explain_add_reason(a, "nodes-draining", "%" PRId64 " node%s being emptied%s%s%s%.140s%s",
            v->draining, v->draining == 1 ? " is" : "s are", v->drained ? ": " : "",
            v->drained ? v->drained->row.name : "", v->drained ? " (" : "",
            v->drained ? v->drained->row.drain_text : "", v->drained ? ")" : "");
    if (v->lost)
        explain_add_reason(a, "nodes-lost", "%" PRId64 " node%s lost: %s not report", v->lost,
            v->lost == 1 ? " is" : "s are", v->lost == 1 ? "its agent does" : "their agents do");
}

/* Nodes with capacity, and with rack power for one of them but not for all. */
struct gang_power {
    int64_t n;
    const struct node *first;
};

/* How many nodes of the pool are available at once for the shape, and how many have capacity
 * now. */
static int64_t gang_nodes(const struct model *m, const struct pool *p, const struct shape *s,
    int64_t *ret_ready, struct gang_power *power)
{
    struct survey v = {0};
    int64_t nodes = 0, ids[JOB_NODES_MAX];
    *ret_ready = 0;
    LIST_FOREACH (model_nodes(m), l) {
        const struct node *n = LIST_ENTRY(l, struct node, in_all);
        if (n->pool != p || !machine_may_fit(&v, s, p, &n->row.total, n->row.market) ||
            !node_has_constraints(n, s))
            continue;
        nodes++;
        if (!node_takes_work(n) || !node_has_capacity(n, s) || node_is_kept_from(n, s) ||
            *ret_ready == JOB_NODES_MAX)
            continue;
        if (rack_has_power_with(m, n, s, ids, (int32_t)*ret_ready))
            ids[(*ret_ready)++] = n->row.id;
        else
            power->first = power->n++ ? power->first : n;
    }
    return p->row.elastic ? p->row.max_nodes : nodes;
}

void explain_gang(const struct model *m, const struct job *j, struct answer *a)
{
    int64_t most = 0, ready = 0, most_ready = 0;
    struct gang_power power = {0};
    LIST_FOREACH (model_pools(m), l) {
        const struct pool *p = LIST_ENTRY(l, struct pool, in_all);
        int64_t nodes =
            shape_allows_pool(j->shape, p) ? gang_nodes(m, p, j->shape, &ready, &power) : 0;
        most = nodes > most ? nodes : most;
        most_ready = nodes > 0 && ready > most_ready ? ready : most_ready;
    }
    if (most < j->row.spec.nodes_min)
        explain_add_reason(a, "too-many-nodes",
            "it needs %" PRId32 " nodes of one pool at once; the largest pool can have %" PRId64,
            j->row.spec.nodes_min, most);
    else
        explain_add_reason(a, "nodes-together",
            "%" PRId64 " of the %" PRId32 " nodes that it %s at once, of one pool, have capacity",
            most_ready, j->least,
            j->gathers                         ? "would like"
            : j->least > j->row.spec.nodes_min ? "had and waits for again"
                                               : "needs");
    if (most_ready < j->least && power.n > 0)
        add_rack_power(power.first, power.n, j->shape, true, a);
}

/* The nodes that an elastic gang waits for, and for how long. */
void explain_gang_resize(const struct job *j, struct stamp now, struct answer *a)
{
    char left[32];
    int64_t kept = 0;
    if (!link_is_in(&job_side(j)->gang_resizes))
        return;
    LIST_FOREACH (&job_side(j)->kept, l)
        kept++;
    int64_t ms = job_side(j)->gang_resize_until.ms - now.mono.ms;
    time_format_duration(ms > 0 ? ms : 0, left, sizeof left);
    if (kept > 0)
        explain_add_reason(a, "nodes-kept",
            "%" PRId64 " node%s it ran on %s reserved for it, for at most %s", kept,
            kept == 1 ? " that" : "s that", kept == 1 ? "is" : "are", left);
    if (j->least > j->row.spec.nodes_min)
        explain_add_reason(a, "fewer-nodes", "with %" PRId32 " or more it starts in at most %s%s",
            j->row.spec.nodes_min, left, j->gathers ? ", or as soon as no more are available" : "");
}

/* "in 2h05m", by the time limits of running jobs. */
static void format_reservation_end(int64_t until, struct stamp now, char *out, size_t size)
{
    char in[32];
    if (!reserve_is_known(until)) {
        text_format(out, size, "when the jobs without a time limit there have ended");
        return;
    }
    time_format_duration(until > now.wall.ms ? until - now.wall.ms : 0, in, sizeof in);
    text_format(out, size, "in %s, by the time limits of the jobs there", in);
}

void explain_reserved(const struct model *m, const struct survey *v, const struct job *j,
    struct stamp now, struct answer *a)
{
    const struct shape *s = j->shape;
    const struct link *first = s->head == j->row.id ? list_first(&s->reserved) : NULL;
    char until[96];
    if (first) {
        format_reservation_end(s->reserved_until, now, until, sizeof until);
        explain_add_reason(a, "reserved",
            "%s%s reserved for it: it starts there %s, or elsewhere before",
            LIST_ENTRY(first, struct node, in_reserved)->row.name,
            first == list_last(&s->reserved) ? " is" : " and others are", until);
    }
    if (v->reserved > 0) {
        format_reservation_end(v->reserved_until, now, until, sizeof until);
        explain_add_reason(a, "reserved-for",
            "%" PRId64 " node%s capacity, reserved for job %s%s, expected to start %s; %s",
            v->reserved, v->reserved == 1 ? " has" : "s have", job_ref_of(m, v->reserved_for).s,
            v->reserved > 1 ? " and others" : "", until,
            s->limit_ms > 0 ? "with a shorter --time it might run until then"
                            : "with a --time it might run until then");
    }
}

void explain_lacking(const struct survey *v, const struct job *j, struct answer *a)
{
    if (v->uncertified > 0)
        explain_uncertified(v, j, false, a);
    if (v->unlabelled)
        add_missing_labels(v, j->shape, false, a);
    if (v->no_criu > 0)
        add_missing_criu(v, a);
    if (v->no_constraints > 0)
        add_unmet_constraints(v, j->shape, a);
}
