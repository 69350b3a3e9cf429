/* SPDX-License-Identifier: Apache-2.0
 *
 * The static driver: connects the pure part (protocol.h) to a runner of ssh. Queries to hosts are
 * in call.c, launches in launch.c; the operations with one round of queries (list, terminate) and
 * the driver itself are here.
 */
#include "cloud/static/static.h"

#include "base/mem.h"
#include "base/str.h"
#include "cloud/static/call.h"
#include "cloud/static/launch.h"
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- list ---- */

static int add_claim(
    struct static_call *c, size_t host, const struct static_claim *x, struct err *e)
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
        const struct static_question *q = &c->questions[i];
        c->d->hosts[i].is_hidden = q->e.kind != ERR_NONE;
        n_seen += q->e.kind == ERR_NONE;
        if (q->e.kind == ERR_NONE && e.kind == ERR_NONE &&
            add_claim(c, i, &q->report.claim, &e) == 0)
            add_claim(c, i, &q->report.last, &e);
    }
    if (n_seen == 0)
        err_set(&e, ERR_UNAVAILABLE, "no host answers; %s", c->questions[0].e.text);
    cloud_call_finish(&c->base, e.kind != ERR_NONE ? &e : NULL);
}

static void step_list(struct cloud_call *base)
{
    static_call_query_all((struct static_call *)base, on_listed);
}

static void static_list(
    struct cloud_driver *d, const char *region, const char *cluster, cloud_list_fn done, void *ctx)
{
    static const struct cloud_call_ops ops = {
        "list", step_list, static_call_no_reply, static_call_deinit};
    struct static_call *c = static_call_new(d);
    cloud_call_list(&c->d->calls, &c->base, &ops, region, cluster, done, ctx);
}

static bool is_at(const char *label, const char *id)
{
    const char *claim_id = static_claim_of_id(id);
    size_t n = claim_id ? (size_t)(claim_id - id) - 1 : 0;
    return claim_id && strlen(label) == n && strncmp(label, id, n) == 0;
}

/* The host of an id; n_hosts if it is not one of ours. */
static size_t host_of(const struct static_driver *d, const char *id)
{
    size_t i = 0;
    while (i < d->n_hosts && !is_at(d->hosts[i].label, id))
        i++;
    return i;
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
    static_call_query(c);
}

static void static_terminate(struct cloud_driver *d, const char *region, const char *const *ids,
    size_t n_ids, cloud_done_fn done, void *ctx)
{
    static const struct cloud_call_ops ops = {
        "terminate", step_terminate, static_call_no_reply, static_call_deinit};
    struct static_call *c = static_call_new(d);
    if (n_ids == 0)
        err_set(&c->base.refused, ERR_INVALID, "no instance to terminate");
    c->questions = mem_array(n_ids, sizeof(*c->questions));
    for (size_t i = 0; i < n_ids && c->base.refused.kind == ERR_NONE; i++) {
        size_t host = host_of(c->d, ids[i]);
        if (host == c->d->n_hosts) {
            err_set(&c->base.refused, ERR_CONFIG,
                "%s: its host is not in the pool; put it back, or release it there by hand",
                ids[i]);
            break;
        }
        struct static_question *q = &c->questions[c->n_questions++];
        q->host = host;
        static_build_release(static_claim_of_id(ids[i]), &q->request);
    }
    cloud_call_terminate(&c->d->calls, &c->base, &ops, region, done, ctx);
}

/* ---- prices: from the pool's file ---- */

static void step_prices(struct cloud_call *base)
{
    cloud_call_finish(base, NULL);
}

static void static_prices(struct cloud_driver *d, const char *region, const char *const *types,
    size_t n_types, cloud_prices_fn done, void *ctx)
{
    static const struct cloud_call_ops ops = {
        "prices", step_prices, static_call_no_reply, static_call_deinit};
    struct static_call *c = static_call_new(d);
    (void)types, (void)n_types;
    cloud_call_prices(&c->d->calls, &c->base, &ops, region, done, ctx);
}

/* ---- the driver ---- */

static void static_destroy(struct cloud_driver *driver)
{
    struct static_driver *d = (struct static_driver *)driver;
    cloud_calls_cancel(&d->calls);
    static_forget_doubts(d);
    cloud_kept_deinit(&d->kept);
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

/* ssh interprets blanks, '%' and '~' in paths. */
static int check_path(const char *key, const char *path, struct err *e)
{
    bool is_plain = *path == '/';
    for (const char *p = path; *p; p++)
        is_plain = is_plain && *p > ' ' && *p <= '~' && !strchr("%\"'\\", *p);
    return is_plain ? 0
                    : err_set(e, ERR_CONFIG,
                          "%s: \"%.128s\": expected an absolute path without blanks, quotes and %%",
                          key, path);
}

static int check_key(const char *path, struct err *e)
{
    struct stat st;
    if (stat(path, &st) < 0)
        return err_set(e, ERR_CONFIG, "key: %s cannot be read", path);
    if (st.st_mode & 077)
        return err_set(e, ERR_CONFIG,
            "key: %s is a secret but others may read it (mode %03o): chmod 600 it", path,
            (unsigned)(st.st_mode & 0777));
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
    struct static_host h = {0};
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

int static_driver_create(
    const struct static_options *o, struct cloud_driver **ret_driver, struct err *e)
{
    struct static_driver *d = mem_alloc(sizeof(*d));
    d->base.ops = &static_ops;
    d->calls = (struct cloud_calls){.provider = "static", .timers = o->timers};
    d->o = *o;
    d->o.hosts = NULL;
    d->o.user = cloud_keep(&d->kept, o->user);
    d->o.key = cloud_keep(&d->kept, o->key);
    d->o.known_hosts = cloud_keep(&d->kept, o->known_hosts);
    d->o.agent = cloud_keep(&d->kept, o->agent);
    d->o.dir = cloud_keep(&d->kept, o->dir);
    int rc = check_options(o, e);
    if (rc == 0)
        rc = add_hosts(d, o->hosts, e);
    if (rc == 0)
        *ret_driver = &d->base;
    else
        static_destroy(&d->base);
    return rc;
}

/* ---- the provider ---- */

static const struct cloud_setting static_settings[] = {
    {"hosts", CLOUD_SETTING_LIST, STATIC_HOSTS_MAX,
        "the machines it may use: HOST or HOST:PORT each", true},
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
            "disk_gib, endpoint and credentials do not apply to machines reached over ssh: "
            "remove them");
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

const struct cloud_provider static_provider = {.name = "static",
    .offers = CLOUD_OFFERS_HOSTS,
    .settings = static_settings,
    .create = create,
    .is_at = is_at};
