/* SPDX-License-Identifier: Apache-2.0
 *
 * The static driver: glue between the bytes (protocol.h) and a runner of ssh.
 *
 *   launch:  ask all hosts --- one has the token -----------------------------> that one
 *               |     \--- one where it may be does not answer ---------------> UNAVAILABLE
 *               |      \--- none is free -------------------------------------> NO_CAPACITY
 *               v
 *            claim a free one --- ours ---------------------------------------> new
 *               |     \--- no whole answer: in doubt -------------------------> UNAVAILABLE
 *               +--- taken meanwhile, or cannot: the next free one
 *
 * Invariants:
 *  1. A claim without a whole answer is in doubt: until its host has answered, nothing is claimed elsewhere under its
 *     token. A host answers after what it did before, so its answer decides.
 *  2. Free hosts are tried in an order that the token gives. So a belayd that was started again, and has forgotten the
 *     doubt, begins with the same one.
 */
#include "cloud/static/static.h"

#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "cloud/call.h"
#include "cloud/static/protocol.h"
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define RUN_TIMEOUT_MS SECONDS_MS(50) /* a release waits for processes to end */
#define AT_ONCE 16

struct host {
    char label[STATIC_HOST_MAX + 1]; /* as the pool's file has it; part of ids */
    char name[STATIC_HOST_MAX + 1];
    int port;
    bool is_hidden;   /* the last listing did not see it, or there was none */
    bool is_silent;   /* told of in the log */
    bool is_claiming; /* a launch of ours is at it */
};

struct doubt {
    struct link link;
    char token[CLOUD_TOKEN_MAX];
    size_t host;
};

struct static_driver {
    struct cloud_driver base;
    struct cloud_calls calls;
    struct static_options o; /* its texts are owned */
    struct host *hosts;
    size_t n_hosts;
    struct list doubts;
};

/* One host that is asked something, and what it said. */
struct question {
    size_t host;
    struct buf request;
    struct err e; /* ERR_NONE: report holds */
    struct static_report report;
};

/* One ssh under way. Outlives its call if that is cancelled. */
struct asking {
    struct link link; /* in call.asking */
    struct static_call *call;
    size_t question;
    struct static_ssh ssh;
    struct run *run;
};

struct static_call {
    struct cloud_call base;
    struct static_driver *d;
    struct question *questions;
    size_t n_questions, n_asked, n_answered;
    void (*then)(struct static_call *c); /* all of them have been answered */
    struct list asking;
    char token[CLOUD_TOKEN_MAX], cluster[CLOUD_NAME_MAX];
    struct buf claim; /* the request; holds a one-use secret */
    bool *is_free;    /* by host: a launch may try it */
    size_t at;        /* the host that is being claimed */
    bool is_claiming;
    bool is_looking; /* all hosts are asked what is on them */
};

/* ---- questions ---- */

static void drop_questions(struct static_call *c)
{
    for (size_t i = 0; i < c->n_questions; i++)
        buf_wipe(&c->questions[i].request);
    free(c->questions);
    c->questions = NULL;
    c->n_questions = c->n_asked = c->n_answered = 0;
}

static void ask_more(struct static_call *c);

/* Who is silent is told of once, and once when it is back. */
static void note_answer(struct host *h, const struct err *e)
{
    if (e->kind != ERR_NONE && !h->is_silent)
        log_warn("a host of a static pool cannot be used; it is left out until it answers",
            log_s("host", h->label), log_err(e));
    else if (e->kind == ERR_NONE && h->is_silent)
        log_info("a host of a static pool answers again", log_s("host", h->label));
    h->is_silent = e->kind != ERR_NONE;
}

static void free_asking(struct asking *a)
{
    link_remove(&a->link);
    static_ssh_deinit(&a->ssh);
    free(a);
}

static void on_run(void *ctx, const struct err *e, const struct runner_result *r)
{
    struct asking *a = ctx;
    struct static_call *c = a->call;
    if (c) {
        struct question *q = &c->questions[a->question];
        struct host *h = &c->d->hosts[q->host];
        if (e)
            q->e = *e;
        else
            static_parse_reply(r, &q->report, &q->e);
        if (c->is_looking)
            note_answer(h, &q->e);
        if (q->e.kind != ERR_NONE)
            err_wrap(&q->e, "%s", h->label);
        c->n_answered++;
    }
    free_asking(a);
    if (c && c->n_answered == c->n_questions)
        c->then(c);
    else if (c)
        ask_more(c);
}

static void ask(struct static_call *c, size_t question)
{
    struct question *q = &c->questions[question];
    const struct host *h = &c->d->hosts[q->host];
    struct asking *a = mem_alloc(sizeof(*a));
    a->call = c;
    a->question = question;
    list_push_back(&c->asking, &a->link);
    static_ssh_init(&a->ssh, &c->d->o, h->name, h->port);
    struct runner_command cmd = {.argv = a->ssh.argv,
        .input = buf_str(&q->request),
        .input_len = q->request.len,
        .timeout_ms = RUN_TIMEOUT_MS,
        .max_output_bytes = STATIC_REPLY_MAX};
    a->run = runner_start(c->d->o.runner, &cmd, on_run, a);
}

static void ask_more(struct static_call *c)
{
    for (; c->n_asked < c->n_questions && c->n_asked - c->n_answered < AT_ONCE; c->n_asked++)
        ask(c, c->n_asked);
}

static void ask_all_hosts(struct static_call *c, void (*then)(struct static_call *c))
{
    drop_questions(c);
    c->n_questions = c->d->n_hosts;
    c->questions = mem_array(c->n_questions, sizeof(*c->questions));
    for (size_t i = 0; i < c->n_questions; i++) {
        c->questions[i].host = i;
        static_build_list(&c->questions[i].request);
    }
    c->then = then;
    c->is_looking = true;
    ask_more(c);
}

/* ---- the life of a call ---- */

static struct static_call *new_call(struct cloud_driver *d)
{
    struct static_call *c = mem_alloc(sizeof(*c));
    c->d = (struct static_driver *)d;
    return c;
}

static void end_claiming(struct static_call *c)
{
    if (c->is_claiming && c->base.owner)
        c->d->hosts[c->at].is_claiming = false;
    c->is_claiming = false;
}

static void deinit_call(struct cloud_call *base)
{
    struct static_call *c = (struct static_call *)base;
    LIST_FOREACH (&c->asking, l) {
        struct asking *a = LIST_ENTRY(l, struct asking, link);
        link_remove(&a->link);
        a->call = NULL;
        runner_cancel(c->d->o.runner, a->run);
    }
    end_claiming(c);
    drop_questions(c);
    buf_wipe(&c->claim);
    free(c->is_free);
}

/* There is no HTTP in these calls. */
static void on_no_reply(struct cloud_call *base, const struct http_reply *reply)
{
    (void)base, (void)reply;
}

/* ---- doubts ---- */

static struct doubt *find_doubt(const struct static_driver *d, const char *token)
{
    LIST_FOREACH (&d->doubts, l) {
        struct doubt *x = LIST_ENTRY(l, struct doubt, link);
        if (str_eq(x->token, token))
            return x;
    }
    return NULL;
}

static void add_doubt(struct static_call *c)
{
    struct doubt *x = find_doubt(c->d, c->token);
    if (!x) {
        x = mem_alloc(sizeof(*x));
        STR_COPY(x->token, c->token);
        list_push_back(&c->d->doubts, &x->link);
    }
    x->host = c->at;
}

static void drop_doubt(struct static_call *c)
{
    struct doubt *x = find_doubt(c->d, c->token);
    if (x)
        link_remove(&x->link);
    free(x);
}

/* ---- launch ---- */

static void try_next(struct static_call *c);

static bool is_ours(const struct static_call *c, const struct static_claim *x)
{
    return x->id[0] && str_eq(x->token, c->token) && str_eq(x->cluster, c->cluster);
}

static void finish_launch(struct static_call *c, size_t host, const struct static_claim *x)
{
    drop_doubt(c);
    end_claiming(c);
    static_to_instance(c->d->hosts[host].label, x, &c->base.instance);
    cloud_call_finish(&c->base, NULL);
}

/* The host has ended its work and says that nothing of ours is there. */
static bool is_definite(enum err_kind k)
{
    return k == ERR_NO_SPACE || k == ERR_IO || k == ERR_DENIED || k == ERR_CONFIG || k == ERR_CORRUPT ||
           k == ERR_NOT_FOUND || k == ERR_CONFLICT;
}

static void on_claimed(struct static_call *c)
{
    const struct question *q = &c->questions[0];
    struct err e = q->e;
    if (e.kind == ERR_NONE && is_ours(c, &q->report.claim)) {
        finish_launch(c, c->at, &q->report.claim);
    } else if (e.kind == ERR_NONE || is_definite(e.kind)) {
        drop_doubt(c);
        end_claiming(c);
        c->is_free[c->at] = false;
        try_next(c);
    } else {
        e.kind = ERR_UNAVAILABLE;
        err_wrap(&e, "whether the host has taken the claim is not known");
        cloud_call_finish(&c->base, &e);
    }
}

static void claim(struct static_call *c, size_t host)
{
    drop_questions(c);
    c->at = host;
    c->is_looking = false;
    c->is_claiming = c->d->hosts[host].is_claiming = true;
    add_doubt(c);
    c->n_questions = 1;
    c->questions = mem_array(1, sizeof(*c->questions));
    c->questions[0].host = host;
    buf_add(&c->questions[0].request, c->claim.data, c->claim.len);
    c->then = on_claimed;
    ask_more(c);
}

/* FNV-1a */
static size_t first_host(const struct static_call *c)
{
    uint64_t h = 0xCBF29CE484222325;
    for (const char *p = c->token; *p; p++)
        h = (h ^ (unsigned char)*p) * 0x100000001B3;
    return (size_t)(h % c->d->n_hosts);
}

static void try_next(struct static_call *c)
{
    size_t first = first_host(c), silent = 0;
    struct err e;
    for (size_t i = 0; i < c->d->n_hosts; i++) {
        size_t k = (first + i) % c->d->n_hosts;
        silent += c->d->hosts[k].is_silent;
        if (c->is_free[k] && !c->d->hosts[k].is_claiming) {
            claim(c, k);
            return;
        }
    }
    err_set(&e, ERR_NO_CAPACITY, "none of the pool's %zu hosts is free (%zu cannot be used)", c->d->n_hosts,
        silent);
    cloud_call_finish(&c->base, &e);
}

/* True: the host where the token may be already has decided, or was asked to. */
static bool decide_doubt(struct static_call *c)
{
    const struct doubt *x = find_doubt(c->d, c->token);
    if (!x)
        return false;
    const struct question *q = &c->questions[x->host];
    struct err e = q->e;
    size_t host = x->host;
    if (e.kind != ERR_NONE || c->d->hosts[host].is_claiming) {
        err_set(&e, ERR_UNAVAILABLE, "whether %s has taken the claim is not known: %s",
            c->d->hosts[host].label, e.kind != ERR_NONE ? e.text : "it is being asked");
        cloud_call_finish(&c->base, &e);
        return true;
    }
    if (q->report.claim.id[0]) {
        drop_doubt(c); /* another's */
        return false;
    }
    claim(c, host);
    return true;
}

static void on_looked(struct static_call *c)
{
    size_t ended = c->n_questions;
    c->is_free = mem_array(c->d->n_hosts, sizeof(*c->is_free));
    for (size_t i = 0; i < c->n_questions; i++) {
        const struct question *q = &c->questions[i];
        if (q->e.kind != ERR_NONE)
            continue;
        if (is_ours(c, &q->report.claim) && q->report.claim.state == STATIC_STARTING &&
            !c->d->hosts[i].is_claiming) {
            claim(c, i); /* begun, and cut off: go on */
            return;
        }
        if (is_ours(c, &q->report.claim)) {
            finish_launch(c, i, &q->report.claim);
            return;
        }
        if (is_ours(c, &q->report.last))
            ended = i;
        c->is_free[i] = !q->report.claim.id[0];
    }
    if (ended < c->n_questions)
        finish_launch(c, ended, &c->questions[ended].report.last);
    else if (!decide_doubt(c))
        try_next(c);
}

static void step_launch(struct cloud_call *base)
{
    ask_all_hosts((struct static_call *)base, on_looked);
}

static void static_launch(
    struct cloud_driver *d, const struct cloud_launch *l, cloud_launch_fn done, void *ctx)
{
    static const struct cloud_call_ops ops = {"launch", step_launch, on_no_reply, deinit_call};
    struct static_call *c = new_call(d);
    STR_COPY(c->token, l->token);
    STR_COPY(c->cluster, l->cluster);
    static_build_claim(l, &c->claim, &c->base.refused);
    cloud_call_launch(&c->d->calls, &c->base, &ops, l, done, ctx);
}

/* ---- list ---- */

static int add_claim(struct static_call *c, size_t host, const struct static_claim *x, struct err *e)
{
    struct cloud_instance i;
    if (!x->id[0])
        return 0;
    static_to_instance(c->d->hosts[host].label, x, &i);
    return cloud_instances_add(&c->base.instances, &i, e);
}

static void on_listed(struct static_call *c)
{
    size_t n_seen = 0;
    struct err e = {0};
    for (size_t i = 0; i < c->n_questions; i++) {
        const struct question *q = &c->questions[i];
        c->d->hosts[i].is_hidden = q->e.kind != ERR_NONE;
        n_seen += q->e.kind == ERR_NONE;
        if (q->e.kind == ERR_NONE && e.kind == ERR_NONE && add_claim(c, i, &q->report.claim, &e) == 0)
            add_claim(c, i, &q->report.last, &e);
    }
    if (n_seen == 0)
        err_set(&e, ERR_UNAVAILABLE, "no host answers; %s", c->questions[0].e.text);
    cloud_call_finish(&c->base, e.kind != ERR_NONE ? &e : NULL);
}

static void step_list(struct cloud_call *base)
{
    ask_all_hosts((struct static_call *)base, on_listed);
}

static void static_list(
    struct cloud_driver *d, const char *region, const char *cluster, cloud_list_fn done, void *ctx)
{
    static const struct cloud_call_ops ops = {"list", step_list, on_no_reply, deinit_call};
    struct static_call *c = new_call(d);
    cloud_call_list(&c->d->calls, &c->base, &ops, region, cluster, done, ctx);
}

/* The host of an id; n_hosts: none of ours. */
static size_t host_of(const struct static_driver *d, const char *id)
{
    const char *claim_id = static_claim_of_id(id);
    size_t i = 0, n = claim_id ? (size_t)(claim_id - id) - 1 : 0;
    while (i < d->n_hosts && (strlen(d->hosts[i].label) != n || strncmp(d->hosts[i].label, id, n) != 0))
        i++;
    return claim_id ? i : d->n_hosts;
}

static bool static_hides(const struct cloud_driver *driver, const char *id)
{
    const struct static_driver *d = (const struct static_driver *)driver;
    size_t i = host_of(d, id);
    return i < d->n_hosts && d->hosts[i].is_hidden;
}

/* ---- terminate ---- */

static void on_released(struct static_call *c)
{
    const struct err *e = NULL;
    for (size_t i = 0; i < c->n_questions && !e; i++)
        e = c->questions[i].e.kind != ERR_NONE ? &c->questions[i].e : NULL;
    cloud_call_finish(&c->base, e);
}

static void step_terminate(struct cloud_call *base)
{
    struct static_call *c = (struct static_call *)base;
    c->then = on_released;
    ask_more(c);
}

static void static_terminate(struct cloud_driver *d, const char *region, const char *const *ids, size_t n_ids,
    cloud_done_fn done, void *ctx)
{
    static const struct cloud_call_ops ops = {"terminate", step_terminate, on_no_reply, deinit_call};
    struct static_call *c = new_call(d);
    if (n_ids == 0)
        err_set(&c->base.refused, ERR_INVALID, "no instance to terminate");
    c->questions = mem_array(n_ids, sizeof(*c->questions));
    for (size_t i = 0; i < n_ids && c->base.refused.kind == ERR_NONE; i++) {
        size_t host = host_of(c->d, ids[i]);
        if (host == c->d->n_hosts) {
            err_set(&c->base.refused, ERR_CONFIG,
                "%s: its host is not in the pool; put it back, or release it there by hand", ids[i]);
            break;
        }
        struct question *q = &c->questions[c->n_questions++];
        q->host = host;
        static_build_release(static_claim_of_id(ids[i]), &q->request);
    }
    cloud_call_terminate(&c->d->calls, &c->base, &ops, region, done, ctx);
}

/* ---- prices: the pool's file has them ---- */

static void step_prices(struct cloud_call *base)
{
    cloud_call_finish(base, NULL);
}

static void static_prices(struct cloud_driver *d, const char *region, const char *const *types,
    size_t n_types, cloud_prices_fn done, void *ctx)
{
    static const struct cloud_call_ops ops = {"prices", step_prices, on_no_reply, deinit_call};
    struct static_call *c = new_call(d);
    (void)types, (void)n_types;
    cloud_call_prices(&c->d->calls, &c->base, &ops, region, done, ctx);
}

/* ---- the driver ---- */

static void static_destroy(struct cloud_driver *driver)
{
    struct static_driver *d = (struct static_driver *)driver;
    struct link *l;
    cloud_calls_cancel(&d->calls);
    while ((l = list_pop(&d->doubts)))
        free(LIST_ENTRY(l, struct doubt, link));
    free((char *)d->o.user);
    free((char *)d->o.key);
    free((char *)d->o.known_hosts);
    free((char *)d->o.agent);
    free((char *)d->o.dir);
    free(d->hosts);
    free(d);
}

static const struct cloud_driver_ops static_ops = {
    .provider = "static",
    .spot_notice_ms = 0,
    .launch = static_launch,
    .list = static_list,
    .terminate = static_terminate,
    .prices = static_prices,
    .hides = static_hides,
    .destroy = static_destroy,
};

/* ssh reads blanks, '%' and '~' in paths its own way. */
static int check_path(const char *key, const char *path, struct err *e)
{
    bool is_plain = *path == '/';
    for (const char *p = path; *p; p++)
        is_plain = is_plain && *p > ' ' && *p <= '~' && !strchr("%\"'\\", *p);
    return is_plain
               ? 0
               : err_set(e, ERR_CONFIG,
                     "%s: \"%.128s\": expected an absolute path without blanks, quotes and %%", key, path);
}

static int check_key(const char *path, struct err *e)
{
    struct stat st;
    if (stat(path, &st) < 0)
        return err_set(e, ERR_CONFIG, "key: %s cannot be read", path);
    if (st.st_mode & 077)
        return err_set(e, ERR_CONFIG, "key: %s is a secret but others may read it (mode %03o): chmod 600 it",
            path, (unsigned)(st.st_mode & 0777));
    return 0;
}

static int check_options(const struct static_options *o, struct err *e)
{
    int rc = check_path("key", o->key, e);
    if (rc == 0)
        rc = check_key(o->key, e);
    if (rc == 0)
        rc = check_path("known_hosts", o->known_hosts, e);
    if (rc == 0 && o->dir)
        rc = check_path("dir", o->dir, e);
    if (rc == 0 && o->agent)
        rc = check_path("agent", o->agent, e);
    if (rc == 0 && !str_is_name(o->user, 64))
        rc = err_set(e, ERR_CONFIG, "user: \"%.64s\" is not a user's name", o->user);
    return rc;
}

static int add_host(struct static_driver *d, const char *text, size_t n, struct err *e)
{
    struct host h = {0};
    char *label = mem_strndup(text, n);
    int rc = static_parse_host(label, h.name, &h.port, e);
    for (size_t i = 0; rc == 0 && i < d->n_hosts; i++)
        if (str_eq(d->hosts[i].label, label))
            rc = err_set(e, ERR_CONFIG, "hosts: \"%.64s\" is listed twice", label);
    if (rc == 0 && d->n_hosts == STATIC_HOSTS_MAX)
        rc = err_set(e, ERR_CONFIG, "hosts: more than %d", STATIC_HOSTS_MAX);
    if (rc == 0) {
        h.is_hidden = true;
        STR_COPY(h.label, label);
        d->hosts[d->n_hosts++] = h;
    }
    free(label);
    return rc;
}

static int add_hosts(struct static_driver *d, const char *lines, struct err *e)
{
    int rc = 0;
    d->hosts = mem_array(STATIC_HOSTS_MAX, sizeof(*d->hosts));
    while (*lines && rc == 0) {
        size_t n = strcspn(lines, "\n");
        rc = add_host(d, lines, n, e);
        lines += n + (lines[n] == '\n');
    }
    return rc == 0 && d->n_hosts == 0 ? err_set(e, ERR_CONFIG, "hosts: expected at least one") : rc;
}

int static_driver_create(const struct static_options *o, struct cloud_driver **ret_driver, struct err *e)
{
    struct static_driver *d = mem_alloc(sizeof(*d));
    d->base.ops = &static_ops;
    d->calls = (struct cloud_calls){.provider = "static", .timers = o->timers};
    d->o = *o;
    d->o.hosts = NULL;
    d->o.user = mem_strdup(o->user);
    d->o.key = mem_strdup(o->key);
    d->o.known_hosts = mem_strdup(o->known_hosts);
    d->o.agent = mem_strdup(o->agent);
    d->o.dir = mem_strdup(o->dir);
    int rc = check_options(o, e);
    if (rc == 0)
        rc = add_hosts(d, o->hosts, e);
    if (rc == 0)
        *ret_driver = &d->base;
    else
        static_destroy(&d->base);
    return rc;
}

/* ---- as a provider ---- */

static const struct cloud_setting static_settings[] = {
    {"hosts", CLOUD_SETTING_LIST, STATIC_HOSTS_MAX, "the machines it may use: HOST or HOST:PORT each"},
    {"user", CLOUD_SETTING_TEXT, 64, "the user to log in as"},
    {"key", CLOUD_SETTING_TEXT, 1024, "the path of an SSH private key"},
    {"known_hosts", CLOUD_SETTING_TEXT, 1024, "the path of a file with the machines' host keys"},
    {"port", CLOUD_SETTING_TEXT, 5, NULL},
    {"agent", CLOUD_SETTING_TEXT, 1024, NULL},
    {"dir", CLOUD_SETTING_TEXT, 1024, NULL},
    {0},
};

static int create(const struct cloud_setup *s, struct cloud_driver **ret_driver, struct err *e)
{
    const char *text = cloud_setup_get(s, "port");
    int64_t port = 0;
    if (text && str_to_i64(text, 1, 65535, "port", &port, e) != 0)
        return (int)(e->kind = ERR_CONFIG);
    if (s->disk_gib > 0 || s->endpoint || s->credentials)
        return err_set(e, ERR_CONFIG,
            "disk_gib, endpoint and credentials say nothing about machines reached over ssh: "
            "leave them out");
    return static_driver_create(
        &(struct static_options){
            .hosts = cloud_setup_get(s, "hosts"),
            .user = cloud_setup_get(s, "user"),
            .key = cloud_setup_get(s, "key"),
            .known_hosts = cloud_setup_get(s, "known_hosts"),
            .port = (int)port,
            .agent = cloud_setup_get(s, "agent"),
            .dir = cloud_setup_get(s, "dir"),
            .runner = s->runner,
            .timers = s->timers,
        },
        ret_driver, e);
}

const struct cloud_provider static_provider = {
    .name = "static", .offers = CLOUD_OFFERS_HOSTS, .settings = static_settings, .create = create};
