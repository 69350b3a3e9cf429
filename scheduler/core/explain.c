/* SPDX-License-Identifier: Apache-2.0
 *
 * Why a job waits. The same facts that plan.h decides on, put into words; it looks at every node and offer,
 * which is fine for a question that a person asks.
 */
#include "scheduler/core/explain.h"
#include "scheduler/core/ahead.h"
#include "scheduler/core/impl.h"

#include "base/str.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct answer {
    struct reason *out;
    size_t n, max;
    const struct ahead *ahead; /* or NULL: it is worked out when it is needed */
};

static void say(struct answer *a, const char *code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static void say(struct answer *a, const char *code, const char *fmt, ...)
{
    if (a->n == a->max)
        return;
    struct reason *r = &a->out[a->n++];
    STR_COPY(r->code, code);
    va_list ap;
    va_start(ap, fmt);
    text_vformat(r->text, sizeof r->text, fmt, ap);
    va_end(ap);
}

/* What there is for a job of this kind of demand. */
struct survey {
    struct stamp now;
    int64_t reserved;     /* nodes that have room, for others */
    int64_t reserved_for; /* the job of the first of those */
    int64_t reserved_until;
    int64_t unpowered;           /* nodes that have room, in racks that may not draw so much more */
    const struct node *lacks_power; /* the first of those */
    int64_t nodes, other_market, too_small; /* nodes and offers that are large enough, but ... */
    int64_t uncertified;                    /* of pools that ask for a drill first */
    const char *asks;                       /* the first of those */
    int64_t unpaid;                         /* that have room, but cost more than budgets, its own cap, or what it takes an hour allow ... */
    int64_t unpaid_uusd_h;                  /* ... all of its nodes on the cheapest of those ... */
    const struct pool *unpaid_in;           /* ... which is there */
    const struct pool *unlabelled;          /* the first that could hold it, but asks for labels that it has not */
    int64_t dear; /* nodes and offers that cost more than its user or team may still pay, or have more than they may have */
    int64_t no_extras;                      /* that lack features or named resources */
    char no_extras_what[128];               /* of the first of those */
    int64_t no_criu;
    const char *no_criu_who, *no_criu_why;        /* the first of those */
    int64_t throttled;              /* that are UP */
    const struct node *throttles;   /* the first of those */
    int64_t busy, draining, noticed, lost, kept, ready; /* nodes of the right market and size */
    int64_t offers, coming;
    struct resources largest; /* of the right pool, node or offer */
};

static const char *plural(int64_t n)
{
    return n == 1 ? "" : "s";
}

/* Has it what they ask for beside its size? node: its name; NULL: it is yet to be launched, and of this type. */
static bool has_extras(struct survey *v, const struct shape *s, const char *node, const char *type, const struct gpu_kind *gpu,
    const char *features, const struct counts *resources)
{
    const struct extras *x = s->extras;
    const char *name = node ? node : type;
    if (!x || extras_suit(x, node, gpu, features, resources))
        return true;
    if (v->no_extras++ > 0)
        return false;
    const struct count *want = counts_short(resources, &x->resources);
    if (!extras_allow(x, node))
        text_format(v->no_extras_what, sizeof v->no_extras_what, "%.60s %s", name,
            !node                           ? "would be launched, under a name that nobody knows yet"
            : hosts_has(x->exclude, node)   ? "is one of those that it must not run on"
                                            : "is none of those that it is to run on");
    else if (!gpu_serves(gpu, &x->gpu))
        text_format(v->no_extras_what, sizeof v->no_extras_what, "the GPUs of %.50s are %s, %" PRId64 " MiB", name,
            gpu->model[0] ? gpu->model : "of a model not known", gpu->memory_mib);
    else if (!constraint_holds(&x->constraint, features))
        text_format(v->no_extras_what, sizeof v->no_extras_what, "%.60s has not the features", name);
    else
        text_format(v->no_extras_what, sizeof v->no_extras_what, "%.60s has %" PRId64 " %s", name, counts_of(resources, want->name),
            want->name);
    return false;
}

/* Can a machine of this size and market ever hold it? */
static bool suits(struct survey *v, const struct shape *s, const struct pool *p,
    const struct resources *total, enum market market)
{
    if (total->cpus > v->largest.cpus)
        v->largest = *total;
    if (!resources_fit(&s->need, total)) {
        v->too_small++;
        return false;
    }
    if (!wish_allows(s->wish, market)) {
        v->other_market++;
        return false;
    }
    if (!shape_may_use(s, p, market)) {
        v->asks = v->uncertified++ ? v->asks : p->row.name;
        return false;
    }
    return true;
}

/* ... and would CRIU do on it what the job needs? */
static bool can(struct survey *v, bool may, const char *who, const char *why)
{
    v->no_criu += !may;
    if (!may && !v->no_criu_who) {
        v->no_criu_who = who;
        v->no_criu_why = why[0] ? why : "its agent does not say what CRIU can do there";
    }
    return may;
}

/* Of its pools. Whether it has the labels of one that could hold it is to be told. */
static bool is_allowed(struct survey *v, const struct shape *s, const struct pool *p, const struct resources *total, enum market market)
{
    if (!shape_allows_pool(s, p) || labels_suffice(s->labels, p))
        return shape_allows_pool(s, p);
    if (!v->unlabelled && resources_fit(&s->need, total) && wish_allows(s->wish, market))
        v->unlabelled = p;
    return false;
}

static bool is_paid(struct survey *v, const struct shape *s, const struct pool *p, const struct resources *total, int64_t uusd_h)
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

static void survey_nodes(const struct model *m, const struct shape *s, struct survey *v)
{
    LIST_FOREACH (&m->all_nodes, l) {
        const struct node *n = LIST_ENTRY(l, struct node, in_all);
        if (!is_allowed(v, s, n->pool, &n->row.total, n->row.market) || !suits(v, s, n->pool, &n->row.total, n->row.market) ||
            !has_extras(v, s, n->row.name, "", &n->gpu, n->features, &n->resources) ||
            !can(v, node_can_criu(n, s->criu), n->row.name, n->row.criu_text))
            continue;
        v->nodes++;
        v->draining += n->row.state == NODE_DRAINING;
        v->noticed += n->row.state == NODE_NOTICED;
        v->lost += n->row.state == NODE_LOST;
        if (n->row.state == NODE_UP && n->throttle != THROTTLE_NONE)
            v->throttles = v->throttled++ ? v->throttles : n;
        v->busy += node_takes_work(n) && !node_has_space(n, s);
        if (!node_takes_work(n) || !node_has_space(n, s) || n->row.id == s->avoid)
            continue;
        if (!is_paid(v, s, n->pool, &n->row.total, n->row.price_uusd_h))
            continue;
        if (!limits_afford(s, &n->row.total, n->row.price_uusd_h)) {
            v->dear++;
        } else if (node_is_kept_from(n, s)) {
            v->kept++;
        } else if (!rack_has_room(n, s)) {
            v->lacks_power = v->unpowered++ ? v->lacks_power : n;
        } else if (reserve_allows(n, s, v->now)) {
            v->ready++;
        } else if (v->reserved++ == 0) {
            const struct shape *first = n->reserved_for ? n->reserved_for : rack_reserved_for(n->rack);
            v->reserved_for = first->head;
            v->reserved_until = first->reserved_until;
        }
    }
}

static void survey_offers(const struct model *m, const struct shape *s, struct survey *v)
{
    LIST_FOREACH (&m->all_pools, lp) {
        const struct pool *p = LIST_ENTRY(lp, struct pool, in_all);
        if (!p->row.elastic || p->row.max_nodes == 0)
            continue;
        LIST_FOREACH (&p->offers, lo) {
            const struct offer *o = LIST_ENTRY(lo, struct offer, in_pool);
            struct resources total = offer_total(o);
            if (o->row.rank == OFFER_WITHDRAWN || !is_allowed(v, s, p, &total, o->row.market) || !suits(v, s, p, &total, o->row.market) ||
                !has_extras(v, s, NULL, o->row.type, &o->row.gpu, o->features, &o->resources) ||
                !can(v, pool_may_criu(p, s->criu), p->row.name, pool_criu_why(p)))
                continue;
            v->offers++;
            is_paid(v, s, p, &total, o->row.price_uusd_h);
            v->dear += !limits_afford(s, &total, o->row.price_uusd_h);
        }
    }
}

/* "4 cpus, 1 gpu, 16.0 GiB"; what is none of is left out. */
static void size_text(const struct resources *r, char *out, size_t size)
{
    char gpus[32] = "", memory[32] = "";
    if (r->gpus > 0)
        snprintf(gpus, sizeof gpus, ", %" PRId32 " gpu%s", r->gpus, plural(r->gpus));
    if (r->memory_mib > 0) {
        char bytes[24];
        str_format_bytes((uint64_t)r->memory_mib << 20, bytes, sizeof bytes);
        snprintf(memory, sizeof memory, ", %s", bytes);
    }
    snprintf(out, size, "%" PRId32 " cpu%s%s%s", r->cpus, plural(r->cpus), gpus, memory);
}

/* What it asks for, and what lacks it. */
static void say_extras(const struct survey *v, const struct shape *s, struct answer *a)
{
    char text[EXTRAS_TEXT_MAX];
    struct extras x = *s->extras;
    x.licences.n = 0;
    extras_format(&x, text);
    say(a, "extras", "%" PRId64 " machine%s large enough %s not what it asks for, %.100s; %s", v->no_extras, plural(v->no_extras),
        v->no_extras == 1 ? "has" : "have", text, v->no_extras_what);
}

#define HOLDERS_TOLD 3

/* Who has the licences that it waits for. */
static void explain_licences(const struct model *m, const struct job *j, struct answer *a)
{
    const struct extras *x = j->shape->extras;
    for (size_t i = 0; x && i < x->licences.n; i++) {
        const struct count *want = &x->licences.v[i];
        const struct licence *l = licence_named(m, want->name);
        int64_t here = l ? l->what.n : 0, used = l ? l->used : 0;
        if (here - used >= want->n)
            continue;
        char who[96] = "";
        int64_t told = 0;
        const struct job *other;
        for (size_t pos = 0; used > 0 && (other = map_next(&m->jobs, &pos, &(int64_t){0})) != NULL;) {
            int64_t held = other->shape->extras && job_attempt(other) ? counts_of(&other->shape->extras->licences, want->name) : 0;
            size_t n = strlen(who);
            if (held > 0 && told++ < HOLDERS_TOLD)
                text_format(who + n, sizeof who - n, "%s job %" PRId64 " (%" PRId64 ")", n ? "," : "", other->row.id, held);
        }
        say(a, "licences", "it needs %" PRId64 " of the licence %s; of %" PRId64 " there are, %" PRId64 " are in use%s%s%s", want->n,
            want->name, here, used, who[0] ? " by" : "", who, told > HOLDERS_TOLD ? " and others" : "");
    }
}

static void say_criu(const struct survey *v, struct answer *a)
{
    say(a, "criu", "%" PRId64 " machine%s large enough cannot checkpoint it by CRIU; %s: %.180s", v->no_criu,
        plural(v->no_criu), v->no_criu_who, v->no_criu_why);
}

/* only: nothing else is there for it. */
static void say_uncertified(const struct survey *v, const struct job *j, bool only, struct answer *a)
{
    const char *until =
        only ? "and there are no others for it: submit it with --market any, where there are others"
             : "until then it runs on others";
    if (j->row.method == CKPT_NONE)
        say(a, "drill-required",
            "pool %s keeps its spot machines for jobs that a drill has certified, %s. It saves nothing "
            "(--checkpoint none), so "
            "it cannot be",
            v->asks, until);
    else if (job_side(j)->drill || j->row.drill_tries > 0)
        say(a, "drill-required",
            "pool %s keeps its spot machines for jobs that a drill has certified, %s; it %s", v->asks, until,
            job_side(j)->drill ? "is being drilled" : "will be drilled when it has saved");
    else
        say(a, "drill-required",
            "pool %s keeps its spot machines for jobs that a drill has certified, %s: belay drill %" PRId64
            " when it runs, or submit with --drill",
            v->asks, until, j->row.id);
}

static void say_unlabelled(const struct survey *v, const struct shape *s, bool only, struct answer *a)
{
    char names[CORE_TEXT_MAX / 2];
    labels_lacking(s->labels, v->unlabelled, names, sizeof names);
    say(a, "required-labels", "pool %s takes only jobs that say these labels as well: %s; %s", v->unlabelled->row.name, names,
        only ? "there are no others for it: cancel it, and submit it again with --label" : "it runs elsewhere");
}

/* One of those that it names, if it names any. */
static bool knows_a_pool(const struct model *m, const char *pools)
{
    LIST_FOREACH (&m->all_pools, l)
        if (job_pools_allow(pools, LIST_ENTRY(l, struct pool, in_all)->row.name))
            return true;
    return !pools[0];
}

static bool explain_impossible(const struct model *m, const struct job *j, const struct shape *s,
    const struct survey *v, struct answer *a)
{
    bool several = strchr(s->pool, ',');
    if (!knows_a_pool(m, s->pool)) {
        say(a, "no-pool", "there is %s '%s'", several ? "none of the pools" : "no pool", s->pool);
        return true;
    }
    if (v->nodes + v->offers > 0)
        return false;
    if (v->uncertified > 0)
        say_uncertified(v, j, true, a);
    else if (v->unlabelled)
        say_unlabelled(v, s, true, a);
    else if (v->no_criu > 0)
        say_criu(v, a);
    else if (v->no_extras > 0)
        say_extras(v, s, a);
    else if (v->other_market > 0)
        say(a, "market",
            "only machines of another market than %s are large enough; --market any would use them",
            market_wish_names[s->wish]);
    else if (v->too_small > 0) {
        char need[96], largest[96];
        size_text(&s->need, need, sizeof need);
        size_text(&v->largest, largest, sizeof largest);
        say(a, "too-large", "it needs %s; the largest machine has %s", need, largest);
    } else
        say(a, "no-node-fits", "no node has joined%s%s%s and none can be launched",
            several ? " any of the pools '" : s->pool[0] ? " pool '" : "", s->pool, s->pool[0] ? "'" : "");
    return true;
}

static void explain_coming(const struct model *m, const struct shape *s, struct stamp now, struct answer *a)
{
    LIST_FOREACH (&m->all_instances, l) {
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
        bool booting = i->row.state == INSTANCE_LAUNCHED;
        say(a, "launching", "instance %" PRId64 " (%s %s in %s) %s %s%s", i->row.id, i->row.type,
            market_names[i->row.market], i->row.zone, booting ? "has been booting for" : "was asked for",
            since, booting ? "" : " ago");
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

/* Nodes that would have to be launched there for it. */
static int64_t lacking_nodes(const struct model *m, const struct pool *p, const struct shape *s)
{
    int64_t n = s->least;
    LIST_FOREACH (&m->all_nodes, l) {
        const struct node *node = LIST_ENTRY(l, struct node, in_all);
        n -= node->pool == p && node_takes_work(node) && node_has_room(node, s);
    }
    return n;
}

/* Machines of the pool could be had, but there is no power for it on as many as it needs more. */
static void say_rack_of(const struct model *m, const struct pool *p, const struct shape *s, struct answer *a)
{
    const struct rack_options *o = p->rack->options;
    int64_t least_w = -1, n = lacking_nodes(m, p, s);
    LIST_FOREACH (&p->offers, lo) {
        const struct offer *of = LIST_ENTRY(lo, struct offer, in_pool);
        struct resources total = offer_total(of);
        if (of->row.rank == OFFER_WITHDRAWN || !resources_fit(&s->need, &total) || !offer_suits(of, s))
            continue;
        int64_t adds = rack_adds(p->rack_kind, &total, &total, s, 1);
        least_w = least_w < 0 || adds < least_w ? adds : least_w;
    }
    if (least_w < 0 || n <= 0 || n * least_w <= rack_left(p->rack))
        return;
    say(a, "rack", "no node of pool %s is launched for want of power: rack %s draws %s kW of the %s that it may (max_kw), and it would draw %s more there",
        p->row.name, o->name, kilowatts(o->max_w - rack_left(p->rack)).s, kilowatts(o->max_w).s, kilowatts(n * least_w).s);
}

static void explain_offers(const struct model *m, const struct shape *s, struct stamp now, struct answer *a)
{
    const struct room all = model_room(m);
    LIST_FOREACH (&m->all_pools, lp) {
        const struct pool *p = LIST_ENTRY(lp, struct pool, in_all);
        if (!shape_allows_pool(s, p) || !p->row.elastic || p->row.max_nodes == 0 ||
            !pool_may_criu(p, s->criu))
            continue;
        struct room room = pool_room(p);
        if (room.nodes == 0)
            say(a, "pool-full", "pool %s has %" PRId64 " of at most %" PRId64 " nodes%s%s", p->row.name, p->used.nodes, pool_places(p),
                pool_places(p) < p->row.max_nodes ? ", for which there are places in rack " : "",
                pool_places(p) < p->row.max_nodes ? p->rack->options->name : "");
        if (room.nodes > 0 && p->rack)
            say_rack_of(m, p, s, a);
        LIST_FOREACH (&p->offers, lo) {
            const struct offer *o = LIST_ENTRY(lo, struct offer, in_pool);
            struct resources total = offer_total(o);
            struct mono until = o->row.avoid_until;
            if (o->row.rank == OFFER_WITHDRAWN || !resources_fit(&s->need, &total) || !offer_suits(o, s) ||
                !shape_may_use(s, p, o->row.market))
                continue;
            const char *lacks = room_lacks(&room, o), *lacks_all = room_lacks(&all, o);
            if (room.nodes > 0 && (lacks || lacks_all))
                say(a, "limit", "%s %s in %s would exceed the %s that %s may have", o->row.type,
                    market_names[o->row.market], o->row.zone, lacks ? lacks : lacks_all,
                    lacks ? "its pool" : "all pools together");
            if (!mono_is_set(until) || until.ms <= now.mono.ms)
                continue;
            char in[32];
            time_format_duration(until.ms - now.mono.ms, in, sizeof in);
            say(a, "offer-refused",
                "%s %s in %s gave no machine (%" PRId32 " in a row); tried again in %s%s%s", o->row.type,
                market_names[o->row.market], o->row.zone, o->row.refused_in_a_row, in, o->why[0] ? ": " : "",
                o->why);
        }
    }
}

/* n: the first of them; together: it has the power for each of them alone, but not for all that are needed. */
static void say_rack(const struct node *n, int64_t nodes, const struct shape *s, bool together, struct answer *a)
{
    const struct rack_options *o = n->rack->options;
    int64_t draw = o->max_w - rack_left(n->rack), adds = rack_adds(n->rack_kind, &n->row.total, &n->free, s, 1);
    say(a, "rack", "%" PRId64 " node%s room but no power: rack %s draws %s kW of the %s that it may (max_kw), and %s would draw %s more on %s%s", nodes,
        nodes == 1 ? " has" : "s have", o->name, kilowatts(draw).s, kilowatts(o->max_w).s, together ? "each of its ranks" : "it", kilowatts(adds).s,
        n->row.name, together ? " and on others" : "");
}

static void explain_nodes(const struct survey *v, const struct shape *s, struct answer *a)
{
    if (v->unpowered)
        say_rack(v->lacks_power, v->unpowered, s, false, a);
    if (v->throttled)
        say(a, "nodes-throttled", "%" PRId64 " node%s held back by heat, power or the board, and given nothing new until that is over: %s (%s)%s",
            v->throttled, v->throttled == 1 ? " is" : "s are", v->throttles->row.name, throttle_names[v->throttles->throttle],
            v->throttled > 1 ? " and others" : "");
    if (v->busy)
        say(a, "nodes-busy", "%" PRId64 " node%s large enough but %s", v->busy, v->busy == 1 ? " is" : "s are",
            shape_is_exclusive(s) ? "not empty, and it is to have its nodes for itself" : "busy");
    if (v->kept)
        say(a, "nodes-kept-for-another",
            "%" PRId64 " node%s kept for a while for a job of several nodes that is to go on there", v->kept,
            v->kept == 1 ? " is" : "s are");
    if (v->noticed)
        say(a, "nodes-noticed", "%" PRId64 " node%s being reclaimed", v->noticed,
            v->noticed == 1 ? " is" : "s are");
    if (v->draining)
        say(a, "nodes-draining", "%" PRId64 " node%s being emptied", v->draining,
            v->draining == 1 ? " is" : "s are");
    if (v->lost)
        say(a, "nodes-lost", "%" PRId64 " node%s not heard of", v->lost, v->lost == 1 ? " is" : "s are");
}

/* Jobs before it that could run where this one could. */
static void explain_queue(const struct model *m, struct stamp now, const struct job *j, struct answer *a)
{
    struct ahead h = {0};
    char first[CORE_TEXT_MAX] = "";
    if (a->ahead)
        h = *a->ahead;
    else
        core_ahead(m, now, j->row.id, &h);
    if (h.n == 0)
        return;
    for (size_t k = 0; k < h.n_first; k++) {
        size_t n = strlen(first);
        text_format(first + n, sizeof first - n, "%s job %" PRId64 ", '%.20s' of %.20s (%s)", k == 0 ? "" : ", then", h.first[k].job,
            h.first[k].name, h.first[k].user, h.first[k].why);
    }
    say(a, "queue-ahead", "%s%" PRId64 " job%s wait%s before it; the first is%s", h.exact ? "" : "about ", h.n, plural(h.n),
        h.n == 1 ? "s" : "", first);
}

/* "team vision", or the user's name. */
static const char *whose(const struct account *a, const struct allowance *w, char *out, size_t size)
{
    text_format(out, size, "%s%s", w == &a->may ? "" : "team ", w == &a->may ? a->row.user : a->team->name);
    return out;
}

static void usd_text(int64_t uusd_h, char *out, size_t size)
{
    text_format(out, size, "$%" PRId64 ".%02" PRId64, uusd_h / 1000000, uusd_h % 1000000 / 10000);
}

struct money {
    char s[32];
};

/* "12", "0.5": cpus as usage is counted in. */
static void cpus_text(int64_t mcpu, char *out, size_t size)
{
    if (mcpu % 1000 == 0)
        text_format(out, size, "%" PRId64, mcpu / 1000);
    else
        text_format(out, size, "%" PRId64 ".%03" PRId64, mcpu / 1000, mcpu % 1000);
}

/* Who gives up its place on the nodes that are kept for jobs of the shape. */
static int64_t going_for(const struct shape *s)
{
    int64_t going = 0;
    LIST_FOREACH (&s->reserved, ln) {
        LIST_FOREACH (&LIST_ENTRY(ln, struct node, in_reserved)->attempts, la) {
            const struct attempt *other = LIST_ENTRY(la, struct attempt, on_node);
            going += other->row.state == ATTEMPT_STOPPING && other->row.stop_reason == END_EVICTED;
        }
    }
    return going;
}

/* Where its QOS goes before others, what is done about it. */
static void explain_class(const struct job *j, struct answer *a)
{
    const struct shape *s = j->shape;
    int64_t going = going_for(s);
    if (!class_preempts(s->class) || shape_is_exclusive(s))
        return;
    if (s->claims > 0)
        say(a, "preempts", "jobs of QOS %s go before others: %" PRId64 " of these %s being saved and stopped to make places for %" PRId64
            " of its kind", s->class->qos->name, going, going == 1 ? "is" : "are", s->claims);
    else
        say(a, "preempts", "jobs of QOS %s go before others, but none that runs could make room for it now: where it may run there are not "
            "enough of them, or they are other teams' by their quotas, were evicted less than 15 minutes ago, or are stopping", s->class->qos->name);
}

/* Where its team has a quota, or others have: whether it is owed its place, and what is done about it. */
static void explain_quota(const struct model *m, const struct job *j, struct answer *a)
{
    const struct team *t = j->account->team;
    const struct shape *s = j->shape;
    char used[32], quota[32], need[32];
    int64_t going = going_for(s);
    if (list_is_empty(&m->quotas) || (s->claims > 0 && class_preempts(s->class)))
        return;
    cpus_text(t->may.used[LIMIT_MCPU], used, sizeof used);
    cpus_text(t->quota_mcpu, quota, sizeof quota);
    cpus_text(s->mcpu * s->least, need, sizeof need);
    if (shape_is_exclusive(s)) {
        say(a, "quota", "it is to have its nodes for itself, so it is not owed a place; it runs on what others do not use");
        return;
    }
    if (s->claims > 0)
        say(a, "reclaim", "its team is owed its place: %" PRId64 " job%s being saved and stopped to make places for %" PRId64 " of its kind",
            going, going == 1 ? " that borrows is" : "s that borrow are", s->claims);
    else if (quota_owes(s))
        say(a, "quota", "with the %s cpus it needs team %s is within its quota: it uses %s of %s. It goes first where it fits; "
            "where it does not, no jobs that borrow could make room for it now", need, t->name, used, quota);
    else
        say(a, "quota", "with the %s cpus it needs team %s is beyond its quota: it uses %s of %s. It runs on what others do not use",
            need, t->name, used, quota);
}

/* One limit that keeps the job from running whichever node it had. */
static void explain_limit(const struct job *j, const struct allowance *w, enum limit_kind kind, struct answer *a)
{
    char who[CORE_NAME_MAX + 8], used[32], most[32], need[32];
    whose(j->account, w, who, sizeof who);
    if (kind == LIMIT_RUNNING) {
        say(a, "max-running", "%s has %" PRId64 " jobs that run, and may have %" PRId64 " (max_running)", who,
            w->used[kind], w->most[kind]);
    } else if (kind == LIMIT_GPUS) {
        say(a, "max-gpus", "it needs %" PRId64 " GPUs; %s uses %" PRId64 ", and may use %" PRId64 " (max_gpus)",
            (int64_t)j->row.need.gpus * j->least, who, w->used[kind], w->most[kind]);
    } else if (kind == LIMIT_MCPU) {
        cpus_text(j->shape->mcpu * j->least, need, sizeof need);
        cpus_text(w->used[kind], used, sizeof used);
        cpus_text(w->most[kind], most, sizeof most);
        say(a, "max-cpus", "it needs %s cpus; %s uses %s, and may use %s (max_cpus, or its quota, beyond which it may not borrow)",
            need, who, used, most);
    } else {
        usd_text(w->used[kind], used, sizeof used);
        usd_text(w->most[kind], most, sizeof most);
        say(a, "max-usd-per-hour", "what %s runs costs %s an hour, and may cost %s (max_usd_per_hour)", who, used, most);
    }
}

/* Machines that it would have for itself, and of which all counts. */
static void explain_too_much(const struct job *j, const struct allowance *w, int64_t machines, struct answer *a)
{
    static const enum limit_kind kinds[] = {LIMIT_GPUS, LIMIT_MCPU};
    char who[CORE_NAME_MAX + 8], left[32];
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        int64_t room = w->most[kinds[k]] - w->used[kinds[k]];
        if (w->most[kinds[k]] == LIMIT_NONE)
            continue;
        cpus_text((kinds[k] == LIMIT_GPUS ? 1000 : 1) * (room > 0 ? room : 0), left, sizeof left);
        say(a, "too-large-for-limit", "%" PRId64 " machine%s that it would have for itself %s more than %s may still have (%s %s)", machines,
            plural(machines), machines == 1 ? "has" : "have", whose(j->account, w, who, sizeof who), limit_names[kinds[k]], left);
    }
}

static void explain_limits(const struct model *m, const struct job *j, const struct survey *v, struct answer *a)
{
    const struct allowance *const of[] = {&j->account->may, &j->account->team->may};
    char who[CORE_NAME_MAX + 8], left[32];
    for (size_t k = 0; k < sizeof of / sizeof of[0]; k++) {
        int64_t room = of[k]->most[LIMIT_UUSD_H] - of[k]->used[LIMIT_UUSD_H];
        for (int kind = 0; kind < LIMIT_SUBMITTED; kind++)
            if (limits_stop(m, of[k], j->shape, (enum limit_kind)kind))
                explain_limit(j, of[k], (enum limit_kind)kind, a);
        if (v->dear > 0 && shape_is_exclusive(j->shape))
            explain_too_much(j, of[k], v->dear, a);
        if (v->dear == 0 || of[k]->most[LIMIT_UUSD_H] == LIMIT_NONE)
            continue;
        usd_text(room > 0 ? room : 0, left, sizeof left);
        say(a, "too-dear", "%" PRId64 " machine%s it could run on cost%s more than the %s an hour that %s may still pay (max_usd_per_hour)",
            v->dear, plural(v->dear), v->dear == 1 ? "s" : "", left, whose(j->account, of[k], who, sizeof who));
    }
}

static struct money money(int64_t uusd)
{
    struct money t;
    usd_text(uusd, t.s, sizeof t.s);
    return t;
}

/* Where that costs something. */
static const char *with_input(int64_t uusd, char *out, size_t size)
{
    out[0] = '\0';
    if (uusd > 0)
        text_format(out, size, ", with %s for reading its input", money(uusd).s);
    return out;
}

static void explain_budget(const struct budget *b, const struct job *j, const struct survey *v, struct answer *a)
{
    char again[64] = "", in[32], input[64];
    struct stamp now = v->now;
    int64_t uusd_h = v->unpaid_uusd_h, input_uusd = pool_input_uusd(v->unpaid_in, j->shape->extras);
    int64_t needs = budgets_needs(b, j->shape, uusd_h, input_uusd), spent = b->spent;
    const char *period = budget_period_names[b->options->period];
    if (now.wall.ms > b->at.ms)
        spent += core_cost_uusd(now.wall.ms - b->at.ms, b->uusd_h);
    if (wall_is_set(b->row.until)) {
        time_format_duration(b->row.until.ms > now.wall.ms ? b->row.until.ms - now.wall.ms : 0, in, sizeof in);
        text_format(again, sizeof again, "; the next %s begins in %s", period, in);
    }
    if (b->row.is_closed)
        say(a, "budget", "budget %s is used up: of %s in this %s %s are spent%s", b->row.name, money(b->cap_uusd).s, period, money(spent).s, again);
    else if (needs > b->cap_uusd)
        say(a, "budget", "it would cost %s at %s an hour%s, and budget %s has %s for all of a %s: %s would help", money(needs).s,
            money(uusd_h).s, with_input(input_uusd, input, sizeof input), b->row.name, money(b->cap_uusd).s, period,
            input_uusd > b->cap_uusd ? "machines nearer to what it reads" : "a shorter --time");
    else
        say(a, "budget", "budget %s: of %s in this %s %s are spent and %s set aside for what runs; to begin it %s more are needed%s%s", b->row.name,
            money(b->cap_uusd).s, period, money(spent).s, money(b->committed > spent ? b->committed - spent : 0).s, money(needs).s,
            with_input(input_uusd, input, sizeof input), again);
}

/* Where what it would cost keeps it from machines that have room for it, or could be launched. */
static void explain_money(const struct job *j, const struct survey *v, struct answer *a)
{
    const struct shape *s = j->shape;
    const struct budget *b = v->unpaid ? budgets_lacking(s, v->unpaid_in, v->unpaid_uusd_h) : NULL;
    char input[64];
    if (v->unpaid == 0)
        return;
    if (budgets_too_dear(s, v->unpaid_uusd_h))
        say(a, "max-usd-per-hour", "the cheapest of %" PRId64 " machine%s or offer%s for it costs %s an hour now, and it takes at most %s (--max-usd-per-hour): it waits for a lower price",
            v->unpaid, plural(v->unpaid), plural(v->unpaid), money(v->unpaid_uusd_h).s, money(s->max_uusd_h).s);
    else if (budgets_cap_lacks(s, v->unpaid_in, v->unpaid_uusd_h))
        say(a, "max-usd", "it has cost %s, and may cost %s (--max-usd): what is left does not pay for %s at %s an hour%s; belay update %" PRId64
            " max-usd=USD lets it go on", money(j->row.cost_uusd).s, money(j->row.max_uusd).s, s->expect_ms < BUDGET_SLICE_MS ? "all of it" : "ten minutes",
            money(v->unpaid_uusd_h).s, with_input(pool_input_uusd(v->unpaid_in, s->extras), input, sizeof input), j->row.id);
    else if (b)
        explain_budget(b, j, v, a);
}

static void priority_part(char *out, size_t size, const char *what, int64_t ms)
{
    char text[32];
    size_t n = strlen(out);
    time_format_duration(ms < 0 ? -ms : ms, text, sizeof text);
    if (ms != 0)
        text_format(out + n, size - n, ", %s%s %s", ms < 0 ? "less " : "", what, text);
}

/* Where several users wait, or the job says so itself, waiting is not all that counts. */
static void explain_priority(const struct model *m, struct stamp now, const struct job *j, struct answer *a)
{
    struct priority p;
    char total[32], age[32], parts[160] = "";
    core_priority(m, j, now.wall, &p);
    if (m->n_queued_accounts < 2 && p.total_ms == p.age_ms)
        return;
    time_format_duration(p.total_ms, total, sizeof total);
    time_format_duration(p.age_ms, age, sizeof age);
    priority_part(parts, sizeof parts, "fair share", p.fair_ms);
    priority_part(parts, sizeof parts, "QOS", p.qos_ms);
    priority_part(parts, sizeof parts, "size", p.size_ms);
    priority_part(parts, sizeof parts, "nice", p.nice_ms);
    say(a, "priority", "it stands as if it had waited for %s: its waiting %s%s; belay shares says who used what", total,
        age, parts);
}

/* Nodes that have room, in racks that have the power for one of them, but not for them as well. */
struct gang_power {
    int64_t n;
    const struct node *first;
};

/* How many nodes of the pool could be had at once for jobs of this shape, and how many have room now. */
static int64_t gang_nodes(
    const struct model *m, const struct pool *p, const struct shape *s, int64_t *ret_ready, struct gang_power *power)
{
    struct survey v = {0};
    int64_t nodes = 0, ids[JOB_NODES_MAX];
    *ret_ready = 0;
    LIST_FOREACH (&m->all_nodes, l) {
        const struct node *n = LIST_ENTRY(l, struct node, in_all);
        if (n->pool != p || !suits(&v, s, p, &n->row.total, n->row.market) || !node_has_extras(n, s))
            continue;
        nodes++;
        if (!node_takes_work(n) || !node_has_room(n, s) || node_is_kept_from(n, s) || *ret_ready == JOB_NODES_MAX)
            continue;
        if (rack_has_room_beside(m, n, s, ids, (int32_t)*ret_ready))
            ids[(*ret_ready)++] = n->row.id;
        else
            power->first = power->n++ ? power->first : n;
    }
    return p->row.elastic ? p->row.max_nodes : nodes;
}

static void explain_gang(const struct model *m, const struct job *j, struct answer *a)
{
    int64_t most = 0, ready = 0, most_ready = 0;
    struct gang_power power = {0};
    LIST_FOREACH (&m->all_pools, l) {
        const struct pool *p = LIST_ENTRY(l, struct pool, in_all);
        int64_t nodes = shape_allows_pool(j->shape, p) ? gang_nodes(m, p, j->shape, &ready, &power) : 0;
        most = nodes > most ? nodes : most;
        most_ready = nodes > 0 && ready > most_ready ? ready : most_ready;
    }
    if (most < j->row.nodes_min)
        say(a, "too-many-nodes",
            "it needs %" PRId32 " nodes of one pool at once; the largest pool can have %" PRId64,
            j->row.nodes_min, most);
    else
        say(a, "nodes-together",
            "%" PRId64 " of the %" PRId32 " nodes that it %s at once, of one pool, have room", most_ready, j->least,
            j->gathers ? "would like" : j->least > j->row.nodes_min ? "had and waits for again" : "needs");
    if (most_ready < j->least && power.n > 0)
        say_rack(power.first, power.n, j->shape, true, a);
}

/* What it waits for, and for how long. */
static void explain_regroup(const struct job *j, struct stamp now, struct answer *a)
{
    char left[32];
    int64_t kept = 0;
    if (!link_is_in(&job_side(j)->regroups))
        return;
    LIST_FOREACH (&job_side(j)->kept, l)
        kept++;
    int64_t ms = job_side(j)->regroups_until.ms - now.mono.ms;
    time_format_duration(ms > 0 ? ms : 0, left, sizeof left);
    if (kept > 0)
        say(a, "nodes-kept", "%" PRId64 " node%s it ran on %s kept for it, for at most %s", kept,
            kept == 1 ? " that" : "s that", kept == 1 ? "is" : "are", left);
    if (j->least > j->row.nodes_min)
        say(a, "fewer-nodes", "with %" PRId32 " or more it starts in at most %s%s", j->row.nodes_min, left,
            j->gathers ? ", or as soon as no more are to be had" : "");
}

#define DEPENDS_TOLD 4

/* With --kill-on-invalid-dep no. */
static void explain_never(const struct job *j, struct answer *a)
{
    LIST_FOREACH (&job_side(j)->depends, l) {
        const struct dependency_row *r = &LIST_ENTRY(l, struct dependency, of_job)->row;
        if (r->state != DEPEND_NEVER)
            continue;
        say(a, "dependency-never", "%s can never come true, and it is to wait nevertheless (--kill-on-invalid-dep no): belay cancel %" PRId64 " ends it",
            depend_text(r->kind, r->on, r->of_task, r->task).s, j->row.id);
        return;
    }
}

static void explain_dependencies(const struct job *j, struct answer *a)
{
    int64_t n = 0;
    if (j->row.keep_unmeetable)
        explain_never(j, a);
    LIST_FOREACH (&job_side(j)->depends, l) {
        const struct dependency *d = LIST_ENTRY(l, struct dependency, of_job);
        if (d->row.state != DEPEND_WAITS || d->row.kind == DEPEND_AFTERCORR || n++ >= DEPENDS_TOLD)
            continue;
        const struct job *on = d->row.of_task ? array_task(d->on, d->row.task) : d->on;
        say(a, "dependency", "%s: %s %" PRId64 " '%s' %s",
            depend_text(d->row.kind, d->row.on, d->row.of_task, d->row.task).s,
            d->row.of_task ? "that task of job" : "job", d->row.on, d->on->row.name,
            !on || on->row.state == JOB_PENDING ? "has not run yet" : "runs");
    }
    if (n > DEPENDS_TOLD)
        say(a, "dependency", "and %" PRId64 " more jobs%s", n - DEPENDS_TOLD,
            j->row.depends_any ? ", of all of which one is enough" : "");
}

static void explain_window(const struct model *m, struct stamp now, const struct job *j, struct answer *a)
{
    char in[32];
    if (!j->row.window[0] || job_side(j)->not_before.ms <= now.wall.ms)
        return;
    time_format_duration(job_side(j)->not_before.ms - now.wall.ms, in, sizeof in);
    if (!core_window(m, j->row.window))
        say(a, "no-window", "belayd's configuration has no window %s (any more)", j->row.window);
    else
        say(a, "window", "its window %s is closed, or about to close; it opens in %s", j->row.window, in);
}

/* Of an array whose tasks wait for those of others, one by one. */
static void explain_followed(const struct job *j, int64_t left, struct answer *a)
{
    LIST_FOREACH (&job_side(j)->depends, l) {
        const struct dependency *d = LIST_ENTRY(l, struct dependency, of_job);
        if (d->row.kind == DEPEND_AFTERCORR && d->on && left > j->array->n_ready)
            say(a, "dependency", "%s: %" PRId64 " of its tasks wait until those of job %" PRId64 " '%s' with the same index have succeeded",
                depend_text(d->row.kind, d->row.on, false, 0).s, left - j->array->n_ready, d->row.on, d->on->row.name);
    }
}

static void explain_array(const struct job *j, struct answer *a)
{
    if (!j->array)
        return;
    int64_t left = array_left(j->array);
    if (array_is_full(j))
        say(a, "array-limit", "%" PRId64 " of its tasks run, and no more may at once; %" PRId64 " have not begun",
            j->array->n_tasks, left);
    explain_followed(j, left, a);
}

/* How far it has come is no reason: behind those. */
static void explain_array_left(const struct job *j, struct answer *a)
{
    if (j->array && !array_is_full(j))
        say(a, "array", "%" PRId64 " of its tasks have not begun, %" PRId64 " have and go on", array_left(j->array), j->array->n_tasks);
}

/* Once something of them is used, and where there is nothing. */
static void explain_retries(const struct job *j, struct answer *a)
{
    char text[CORE_TEXT_MAX] = "";
    size_t n = 0;
    if (retries_are_none(&j->row)) {
        say(a, "no-requeue", "it is never queued again, whatever it ends as (--no-requeue)");
        return;
    }
    for (int k = 0; k < RETRY_KINDS; k++) {
        int32_t left = retries_left(&j->row, (enum retry_kind)k);
        if (j->row.used[k] == 0 || left == RETRIES_UNLIMITED)
            continue;
        text_format(text + n, sizeof text - n, "%s%" PRId32 " of %" PRId32 " after an end as %s", n ? ", " : "", left,
            j->row.retries.n[k], retry_kind_names[k]);
        n = strlen(text);
    }
    if (n > 0)
        say(a, "retries", "times that it may still be queued again: %s", text);
}

/* What keeps it from the queue. */
static void explain_waiting(const struct model *m, struct stamp now, const struct job *j, struct answer *a)
{
    char in[32];
    if (j->row.hold == HOLD_USER && again_is_held(m, &j->row))
        say(a, "in-vain",
            "it is held: %" PRId32 " times in a row it was restored and began again from before its checkpoint, and never got beyond step %" PRId64
            ": have it go on from what it saved (belay drill shows whether it does), then belay release %" PRId64,
            j->row.in_vain, j->row.best_progress, j->row.id);
    else if (j->row.hold != HOLD_NONE)
        say(a, "held", "it is held%s: belay release %" PRId64 "%s",
            j->row.hold == HOLD_OPERATOR ? " by an operator" : "", j->row.id,
            j->row.hold == HOLD_OPERATOR ? ", by an operator" : "");
    explain_dependencies(j, a);
    if (j->row.begin_at.ms <= now.wall.ms) {
        explain_window(m, now, j, a);
        return;
    }
    time_format_duration(j->row.begin_at.ms - now.wall.ms, in, sizeof in);
    if (j->row.quick_ends > 1)
        say(a, "begin", "it ended as %s soon after its start %" PRId32 " times in a row: it is tried again %s from now",
            end_kind_names[j->row.end], j->row.quick_ends, in);
    else
        say(a, "begin", "it is not to begin before %s from now", in);
}

/* "in 2h05m", by the time limits of what runs there. */
static void say_until(int64_t until, struct stamp now, char *out, size_t size)
{
    char in[32];
    if (!reserve_is_known(until)) {
        text_format(out, size, "when what runs there without a time limit has ended");
        return;
    }
    time_format_duration(until > now.wall.ms ? until - now.wall.ms : 0, in, sizeof in);
    text_format(out, size, "in %s, by the time limits of what runs there", in);
}

static void explain_reserved(const struct survey *v, const struct job *j, struct stamp now, struct answer *a)
{
    const struct shape *s = j->shape;
    const struct link *first = s->head == j->row.id ? list_first(&s->reserved) : NULL;
    char until[96];
    if (first) {
        say_until(s->reserved_until, now, until, sizeof until);
        say(a, "reserved", "%s%s kept for it: it starts there %s, or elsewhere before",
            LIST_ENTRY(first, struct node, in_reserved)->row.name,
            first == list_last(&s->reserved) ? " is" : " and others are", until);
    }
    if (v->reserved > 0) {
        say_until(v->reserved_until, now, until, sizeof until);
        say(a, "reserved-for", "%" PRId64 " node%s room, kept for job %" PRId64 "%s, which is to start %s; %s", v->reserved,
            v->reserved == 1 ? " has" : "s have", v->reserved_for, v->reserved > 1 ? " and others" : "", until,
            s->limit_ms > 0 ? "with a shorter --time it might run until then" : "with a --time it might run until then");
    }
}

static void explain_deadline(struct stamp now, const struct job *j, struct answer *a)
{
    char in[32];
    int64_t left_ms = j->row.deadline_ms - j->row.time_limit_ms - now.wall.ms;
    if (j->row.deadline_ms == 0)
        return;
    time_format_duration(left_ms > 0 ? left_ms : 0, in, sizeof in);
    say(a, "deadline", "unless it has started in %s it ends then: %s it could not have ended by its deadline", in,
        j->row.time_limit_ms > 0 ? "with its time limit" : "after that");
}

struct not_paid {
    char s[160];
};

/* What is in the way of its costing so much more, "" for nothing. What runs has had its part of a budget set aside already. */
static struct not_paid not_paid(const struct job *j, int64_t uusd)
{
    const struct shape *s = j->shape;
    struct not_paid t = {""};
    uint64_t mask = job_attempt(j) ? 0 : s->in_budgets;
    if (j->row.max_uusd > 0 && uusd > j->row.max_uusd - j->row.cost_uusd)
        text_format(t.s, sizeof t.s, ": more than is left of the %s that it may cost (--max-usd), so it is parked before", money(j->row.max_uusd).s);
    for (int k = 0; !t.s[0] && k < BUDGETS_MAX && mask >> k; k++)
        if ((mask >> k & 1) && budgets_left(&s->budgets[k]) < uusd)
            text_format(t.s, sizeof t.s, ": more than is left of budget %s, %s", s->budgets[k].row.name, money(budgets_left(&s->budgets[k])).s);
    return t;
}

static void explain_outlook(const struct model *m, struct stamp now, const struct job *j, struct answer *a)
{
    struct pace_outlook o;
    char median[32], late[32];
    if (a->n == a->max || !core_pace_expects(m, j, now, &o))
        return;
    time_format_duration(o.median_ms, median, sizeof median);
    time_format_duration(o.late_ms, late, sizeof late);
    say(a, "expected", "it is expected to be done in %s, with some bad luck in %s, and to cost $%.2f more%s", median, late, (double)o.uusd / 1e6,
        not_paid(j, o.uusd).s);
}

static void explain_pace(const struct model *m, struct stamp now, const struct job *j, struct answer *a)
{
    char in[32], why[CORE_TEXT_MAX];
    int64_t left_ms = j->row.finish_ms - now.wall.ms;
    if (a->n == a->max || !core_pace_why(m, j, now, why, sizeof why))
        return;
    time_format_duration(left_ms > 0 ? left_ms : -left_ms, in, sizeof in);
    say(a, "finish-by", "it is to be done %s%s; %s", left_ms > 0 ? "in " : "by a time that was over ", in, why);
}

static void explain_pending(const struct model *m, struct stamp now, const struct job *j, struct answer *a)
{
    struct survey v = {.now = now};
    explain_array(j, a);
    if (j->is_waiting)
        explain_waiting(m, now, j, a);
    if (a->n == a->max)
        return;
    survey_nodes(m, j->shape, &v);
    survey_offers(m, j->shape, &v);
    if (explain_impossible(m, j, j->shape, &v, a))
        return;
    if (job_side(j)->avoid != CORE_ID_NONE)
        say(a, "drill",
            "it is being drilled: for up to 10 minutes it waits for another node than the one it was on");
    if (j->is_waiting)
        return; /* the rest may look quite different by then */
    explain_money(j, &v, a);
    explain_limits(m, j, &v, a);
    if (j->shape->aside_of)
        return; /* the rest may look quite different once it may run */
    explain_quota(m, j, a);
    explain_class(j, a);
    explain_regroup(j, now, a);
    explain_licences(m, j, a);
    if (j->row.nodes > 1)
        explain_gang(m, j, a);
    else if (v.ready && !licences_lack(m, j->shape->extras))
        say(a, "ready", "%" PRId64 " node%s room for it: it is placed next", v.ready,
            v.ready == 1 ? " has" : "s have");
    explain_reserved(&v, j, now, a);
    explain_coming(m, j->shape, now, a);
    explain_offers(m, j->shape, now, a);
    explain_nodes(&v, j->shape, a);
    if (v.uncertified > 0)
        say_uncertified(&v, j, false, a);
    if (v.unlabelled)
        say_unlabelled(&v, j->shape, false, a);
    if (v.no_criu > 0)
        say_criu(&v, a);
    if (v.no_extras > 0)
        say_extras(&v, j->shape, a);
    if (a->n == a->max)
        return; /* who asks for less need not wait for the whole queue to be looked at */
    explain_queue(m, now, j, a);
    explain_priority(m, now, j, a);
}

static void explain_running(const struct model *m, const struct job *j, struct answer *out)
{
    struct survey v = {0};
    LIST_FOREACH (&j->ranks, l) {
        const struct attempt *a = LIST_ENTRY(l, struct attempt, in_job);
        char rank[32] = "";
        if (j->row.nodes > 1)
            text_format(rank, sizeof rank, ", rank %" PRId32 ",", a->row.rank);
        if (j->row.state == JOB_RUNNING)
            say(out, "running", "attempt %" PRId64 "%s is %s on %s", a->row.attempt, rank,
                sm_name(&attempt_sm, (int)a->row.state), a->node->row.name);
        else
            say(out, "cancelling", "attempt %" PRId64 "%s on %s is being stopped", a->row.attempt, rank,
                a->node->row.name);
    }
    if (j->row.ranks < j->row.nodes && j->row.state == JOB_RUNNING)
        say(out, "fewer-nodes",
            "it runs on %" PRId32 " nodes of at most %" PRId32 ", and on as many as there are when it starts again",
            j->row.ranks, j->row.nodes);
    survey_offers(m, j->shape, &v);
    if (v.uncertified > 0 && j->row.state == JOB_RUNNING)
        say_uncertified(&v, j, false, out);
}

size_t explain_imagined(const struct model *m, struct stamp now, const struct job *j, struct reason *out, size_t max)
{
    struct answer a = {.out = out, .max = max};
    explain_pending(m, now, j, &a);
    return a.n;
}

size_t core_explain(const struct model *m, struct stamp now, int64_t job, struct reason *out, size_t max)
{
    return core_explain_with(m, now, job, NULL, out, max);
}

size_t core_explain_with(
    const struct model *m, struct stamp now, int64_t job, const struct ahead *ahead, struct reason *out, size_t max)
{
    struct answer a = {.out = out, .max = max, .ahead = ahead};
    const struct job *j = model_job(m, job);
    if (!j)
        return 0;
    if (job_attempt(j))
        explain_running(m, j, &a);
    else if (j->row.state == JOB_UNFOLDED)
        explain_array(j, &a);
    else
        explain_pending(m, now, j, &a);
    explain_array_left(j, &a);
    if (j->row.state == JOB_PENDING)
        explain_deadline(now, j, &a);
    explain_pace(m, now, j, &a);
    explain_outlook(m, now, j, &a);
    explain_retries(j, &a);
    return a.n;
}

/* What keeps one job of a shape from running keeps the others, unless there is something about this one. */
static bool is_like_its_shape(const struct job *j)
{
    return j->row.state == JOB_PENDING && j->shape && !j->is_waiting && !j->array && j->row.nodes == 1 &&
           job_side(j)->avoid == CORE_ID_NONE && !link_is_in(&job_side(j)->regroups) && j->shape->head != j->row.id;
}

bool core_explain_first(
    const struct model *m, struct stamp now, int64_t job, struct explain_memo *memo, struct reason *ret_reason)
{
    const struct job *j = model_job(m, job);
    bool alike = j && is_like_its_shape(j);
    if (alike && memo->shape == j->shape) {
        *ret_reason = memo->reason;
        return true;
    }
    if (core_explain(m, now, job, ret_reason, 1) == 0)
        return false;
    if (alike)
        *memo = (struct explain_memo){j->shape, *ret_reason};
    return true;
}
