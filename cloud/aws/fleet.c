/* SPDX-License-Identifier: Apache-2.0
 *
 * A launch that EC2 may fill from several capacity pools: CreateFleet, of type instant.
 *
 *   CreateLaunchTemplate --> CreateFleet --> reported; then, separately: DeleteLaunchTemplate
 *     (existing: ok)
 *
 * A fleet takes its machine description only from a launch template, including the user data, which
 * differs for each instance. So each launch has its own template, named by a hash of its content: a
 * repeated launch finds or creates the same one, and the fleet's parameters stay the same under
 * their token.
 *
 * Invariant: a template is deleted as soon as EC2 has given a definite answer, or lists the
 * instance. If the launch was never answered it is deleted some minutes later; if a crash left it
 * behind, an hour later, with the next launch. A template costs nothing, and the token in it is
 * useless once its instance has joined.
 */
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "cloud/aws/driver_parts.h"
#include <stdlib.h>
#include <string.h>

#define TIDY_EVERY_MS SECONDS_MS(3600)
#define LEFT_BEHIND_MS SECONDS_MS(3600)
#define UNANSWERED_MS SECONDS_MS(600) /* by then the launch has been repeated, or never will be */
#define DELETE_BACKOFF_MS SECONDS_MS(1)
#define DELETE_TRIES 8
#define LEFTOVERS_MAX 64

/* A template that may exist. */
struct aws_leftover {
    char name[EC2_TEMPLATE_NAME_MAX], region[CLOUD_NAME_MAX], cluster[CLOUD_NAME_MAX];
    char token[CLOUD_TOKEN_MAX]; /* of a launch without an answer; "" if it was answered */
    struct mono due;             /* deleted with the first listing from then on */
    int tries;
};

/* A fleet launch in progress; for a call that only cleans up, the template and the cluster. */
struct aws_fleet {
    char template[EC2_TEMPLATE_NAME_MAX];
    bool may_exist;     /* the template, and its deletion is not scheduled */
    struct buf request; /* the body of CreateFleet, prepared at the start */
    char *cluster, *token;
    enum cloud_market market;
    /* the first is the chosen one; texts owned */
    struct cloud_target targets[CLOUD_ALTERNATIVES_MAX + 1];
    size_t n_targets;
    struct ec2_fleet result;
};

/* ---- templates that may exist ---- */

static struct aws_leftover *find_leftover(struct aws_driver *d, const char *name)
{
    for (size_t i = 0; i < d->n_leftovers; i++)
        if (str_eq(d->leftovers[i].name, name))
            return &d->leftovers[i];
    return NULL;
}

static void forget(struct aws_driver *d, const char *name)
{
    struct aws_leftover *l = find_leftover(d, name);
    if (l)
        *l = d->leftovers[--d->n_leftovers];
}

/* Beyond the limit the oldest is dropped: it is found an hour later. */
static struct aws_leftover *remember(
    struct aws_driver *d, const struct aws_fleet *f, const char *region)
{
    struct aws_leftover *l = find_leftover(d, f->template);
    if (l)
        return l;
    if (d->n_leftovers == LEFTOVERS_MAX)
        memmove(d->leftovers, d->leftovers + 1, --d->n_leftovers * sizeof(*l));
    d->leftovers = mem_resize(d->leftovers, d->n_leftovers + 1, sizeof(*l));
    l = &d->leftovers[d->n_leftovers++];
    *l = (struct aws_leftover){0};
    STR_COPY(l->name, f->template);
    STR_COPY(l->region, region);
    STR_COPY(l->cluster, f->cluster);
    return l;
}

static void keep_for_now(struct aws_call *c)
{
    struct aws_driver *d = c->d;
    struct aws_leftover *l = remember(d, c->fleet, c->base.region);
    STR_COPY(l->token, c->fleet->token);
    l->due.ms = clock_mono(d->calls.timers->clock).ms + UNANSWERED_MS;
}

void aws_fleet_free(struct aws_call *c)
{
    struct aws_fleet *f = c->fleet;
    if (!f)
        return;
    if (f->may_exist && c->base.owner) /* otherwise the driver is being destroyed too */
        keep_for_now(c);
    for (size_t i = 0; i < f->n_targets; i++) {
        free((char *)f->targets[i].zone);
        free((char *)f->targets[i].type);
    }
    free(f->cluster);
    free(f->token);
    buf_deinit(&f->request);
    free(f);
}

/* ---- deleting unneeded templates ---- */

static void on_tidied(void *ctx, const struct err *e)
{
    (void)ctx;
    if (e && e->kind != ERR_CANCELLED)
        log_info("a launch template could not be deleted yet; will be tried again", log_err(e));
}

static int parse_deleted(struct aws_call *c, const char *body, size_t n, struct err *e)
{
    int rc = ec2_parse_done(body, n, "DeleteLaunchTemplateResponse", e);
    if (rc == 0)
        forget(c->d, c->fleet->template);
    return rc;
}

static int parse_templates(struct aws_call *c, const char *body, size_t n, struct err *e)
{
    struct wall before = {clock_wall(c->d->calls.timers->clock).ms - LEFT_BEHIND_MS};
    struct ec2_names names = {0};
    int rc = ec2_parse_launch_templates(body, n, before, &names, e);
    for (size_t i = 0; i < names.n; i++)
        cloud_call_add_words(&c->base, &(const char *){names.list[i]}, 1);
    return rc;
}

/* Not found: already gone, unless it was created a moment ago and is not visible everywhere;
 * retried later. */
static bool may_wait(struct aws_call *c, const struct err *e)
{
    const struct aws_leftover *l = find_leftover(c->d, c->fleet->template);
    if (l && l->tries > 1 && e->kind == ERR_NOT_FOUND)
        forget(c->d, c->fleet->template);
    return e->kind != ERR_DENIED;
}

static bool next_to_tidy(struct aws_call *c)
{
    struct aws_driver *d = c->d;
    struct mono now = clock_mono(d->calls.timers->clock);
    aws_call_clear_request(c);
    c->excuse = may_wait;
    if (c->base.n_words > 0) { /* names of templates */
        char *name = c->base.words[--c->base.n_words];
        ec2_build_delete_template(name, &c->request);
        STR_COPY(c->fleet->template, name);
        free(name);
        c->parse = parse_deleted;
        return true;
    }
    if (mono_is_set(d->tidied) && now.ms - d->tidied.ms < TIDY_EVERY_MS)
        return false;
    d->tidied = now;
    ec2_build_describe_templates(c->fleet->cluster, &c->request);
    c->parse = parse_templates;
    return true;
}

static void tidy(struct aws_driver *d, struct aws_leftover *l)
{
    static const struct cloud_call_ops ops = {
        "DeleteLaunchTemplate", aws_call_step, aws_call_on_reply, aws_call_deinit};
    struct aws_call *c = aws_call_new(d, l->region);
    l->token[0] = '\0';
    l->due.ms = clock_mono(d->calls.timers->clock).ms + (DELETE_BACKOFF_MS << l->tries++);
    c->fleet = mem_alloc(sizeof(*c->fleet));
    c->fleet->cluster = mem_strdup(l->cluster);
    cloud_call_add_words(&c->base, &(const char *){l->name}, 1);
    c->next = next_to_tidy;
    next_to_tidy(c);
    cloud_call_terminate(&d->calls, &c->base, &ops, l->region, on_tidied, NULL);
}

/* EC2 has answered, and will not read the template again. */
static void tidy_after(struct aws_call *c)
{
    c->fleet->may_exist = false;
    tidy(c->d, remember(c->d, c->fleet, c->base.region));
}

static bool is_listed(const struct aws_call *c, const char *token)
{
    const struct cloud_instances *list = &c->base.instances;
    for (size_t i = 0; i < list->n; i++)
        if (token[0] && str_eq(list->list[i].token, token))
            return true;
    return false;
}

bool aws_fleet_listed(struct aws_call *c)
{
    struct aws_driver *d = c->d;
    struct mono now = clock_mono(d->calls.timers->clock);
    for (size_t i = d->n_leftovers; i-- > 0;) {
        struct aws_leftover *l = &d->leftovers[i];
        if (!str_eq(l->region, c->base.region) || !str_eq(l->cluster, c->base.cluster) ||
            (l->due.ms > now.ms && !is_listed(c, l->token)))
            continue;
        if (l->tries < DELETE_TRIES)
            tidy(d, l);
        else
            *l = d->leftovers[--d->n_leftovers]; /* a search finds it an hour later */
    }
    return false;
}

/* ---- the reply ---- */

static bool is_of(const struct ec2_fleet_error *error, const struct cloud_target *p)
{
    return (!error->type[0] || str_eq(error->type, p->type)) &&
           (!error->zone[0] || str_eq(error->zone, p->zone));
}

static const struct ec2_fleet_error *error_of(
    const struct ec2_fleet *r, const struct cloud_target *p)
{
    for (size_t i = 0; i < r->n_errors; i++)
        if (is_of(&r->errors[i], p))
            return &r->errors[i];
    return NULL;
}

/* Nothing was launched, and nothing will be under this token: whatever EC2's code says, it is a
 * refusal. */
static void set_refusal(struct aws_call *c)
{
    const struct ec2_fleet *r = &c->fleet->result;
    const struct ec2_fleet_error *first = error_of(r, &c->fleet->targets[0]);
    first = first ? first : r->n_errors > 0 ? &r->errors[0] : NULL;
    if (first)
        c->outcome = first->e;
    else
        err_set(
            &c->outcome, ERR_NO_CAPACITY, "EC2's fleet launched no instance and gave no reason");
}

static void report_refused(struct aws_call *c, bool is_launched)
{
    const struct aws_fleet *f = c->fleet;
    for (size_t i = is_launched ? 0 : 1; i < f->n_targets; i++) {
        const struct ec2_fleet_error *error = error_of(&f->result, &f->targets[i]);
        if (error)
            cloud_call_refused(&c->base, &f->targets[i], &error->e);
    }
}

static bool end_fleet(struct aws_call *c)
{
    struct aws_fleet *f = c->fleet;
    struct cloud_instance *i = &f->result.instance;
    bool is_launched = i->id[0];
    if (!is_launched) {
        set_refusal(c);
    } else {
        if (!i->zone[0] && c->d->machine.subnet)
            STR_COPY(i->zone, f->targets[0].zone);
        STR_COPY(i->token, f->token);
        STR_COPY(i->cluster, f->cluster);
        i->market = f->market;
        c->base.instance = *i;
    }
    report_refused(c, is_launched);
    tidy_after(c);
    return false;
}

static int parse_fleet(struct aws_call *c, const char *body, size_t n, struct err *e)
{
    return ec2_parse_create_fleet(body, n, &c->fleet->result, e);
}

/* ---- the launch ---- */

static bool is_definite(const struct err *e)
{
    return e->kind != ERR_UNAVAILABLE && e->kind != ERR_THROTTLED && e->kind != ERR_TIMEOUT;
}

/* The call itself was refused: if that is definite, the template is no longer needed. A template
 * created a moment ago may not be visible everywhere, which is not definite. */
static bool fleet_refused(struct aws_call *c, const struct err *e)
{
    c->outcome = *e;
    if (e->kind == ERR_NOT_FOUND)
        c->outcome.kind = ERR_UNAVAILABLE;
    if (is_definite(&c->outcome))
        tidy_after(c);
    c->next = NULL;
    return true;
}

static bool next_fleet(struct aws_call *c)
{
    aws_call_clear_request(c);
    buf_add(&c->request, buf_str(&c->fleet->request), c->fleet->request.len);
    c->parse = parse_fleet;
    c->excuse = fleet_refused;
    c->next = end_fleet;
    return true;
}

static int parse_template(struct aws_call *c, const char *body, size_t n, struct err *e)
{
    (void)c;
    return ec2_parse_done(body, n, "CreateLaunchTemplateResponse", e);
}

/* Created by an earlier try: the name implies the same content. */
static bool template_is_there(struct aws_call *c, const struct err *e)
{
    c->fleet->may_exist = e->kind == ERR_CONFLICT || !is_definite(e);
    return e->kind == ERR_CONFLICT;
}

static bool fits_target(
    const struct aws_driver *d, const struct cloud_launch *l, const struct cloud_target *p)
{
    return !d->machine.subnet || str_eq(p->zone, l->zone);
}

bool aws_fleet_wanted(const struct aws_driver *d, const struct cloud_launch *l)
{
    for (size_t i = 0; i < l->n_alternatives; i++)
        if (fits_target(d, l, &l->alternatives[i]))
            return true;
    return false;
}

static void add_target(struct aws_fleet *f, const char *zone, const char *type)
{
    f->targets[f->n_targets++] = (struct cloud_target){mem_strdup(zone), mem_strdup(type)};
}

static struct aws_fleet *new_fleet(const struct aws_driver *d, const struct cloud_launch *l)
{
    struct aws_fleet *f = mem_alloc(sizeof(*f));
    f->cluster = mem_strdup(l->cluster);
    f->token = mem_strdup(l->token);
    f->market = l->market;
    add_target(f, l->zone, l->type);
    for (size_t i = 0; i < l->n_alternatives && f->n_targets <= CLOUD_ALTERNATIVES_MAX; i++)
        if (fits_target(d, l, &l->alternatives[i]))
            add_target(f, l->alternatives[i].zone, l->alternatives[i].type);
    return f;
}

void aws_fleet_launch(
    struct aws_driver *d, const struct cloud_launch *l, cloud_launch_fn done, void *ctx)
{
    static const struct cloud_call_ops ops = {
        "CreateFleet", aws_call_step, aws_call_on_reply, aws_call_deinit};
    struct aws_call *c = aws_call_new(d, l->region);
    struct err *e = &c->base.refused;
    struct aws_fleet *f = c->fleet = new_fleet(d, l);
    if (e->kind == ERR_NONE &&
        ec2_build_create_template(l, &d->machine, f->template, &c->request, e) == 0)
        ec2_build_create_fleet(
            l, &d->machine, f->template, f->targets, f->n_targets, &f->request, e);
    f->may_exist = e->kind == ERR_NONE;
    c->parse = parse_template;
    c->excuse = template_is_there;
    c->next = next_fleet;
    cloud_call_launch(&d->calls, &c->base, &ops, l, done, ctx);
}
