/* SPDX-License-Identifier: Apache-2.0
 *
 * Launch templates, with one version each, and CreateFleet of type instant.
 *
 * A fleet tries its overrides in order, spot by price and on-demand by priority, until it has what
 * it was asked for. An override that gives nothing is listed in the reply's errors, next to what
 * the others gave. Each try is a RunInstances with the parameters of the template and the override,
 * so a fleet is refused for the same reasons.
 */
#include "base/mem.h"
#include "base/str.h"
#include "emulator/ec2/ec2.h"
#include "emulator/xml_write.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEMPLATES_MAX 5000
#define FLEETS_MAX 100000
#define OVERRIDES_MAX 300
#define TARGET_MAX 1000
#define DATA "LaunchTemplateData."

struct ec2_template {
    char id[24], name[129];
    struct wall made;
    struct tags tags;
    struct buf params; /* of RunInstances, as a form; starts with & */
};

struct ec2_fleet_record {
    char token[65], fingerprint[65];
    struct buf reply; /* the content between <requestId/> and the end */
};

static void template_deinit(struct ec2_template *t)
{
    tags_deinit(&t->tags);
    buf_deinit(&t->params);
}

void ec2_store_deinit(struct ec2_store *s)
{
    for (size_t i = 0; i < s->n_templates; i++)
        template_deinit(&s->templates[i]);
    for (size_t i = 0; i < s->n_fleets; i++)
        buf_deinit(&s->fleets[i].reply);
    free(s->templates);
    free(s->fleets);
}

json_t *ec2_store_state(const struct ec2_store *s)
{
    json_t *list = json_array();
    for (size_t i = 0; i < s->n_templates; i++)
        json_array_append_new(list, json_pack("{s:s, s:s, s:s}", "type", "launch-template", "id",
                                        s->templates[i].id, "name", s->templates[i].name));
    return list;
}

static int need_store(struct ec2_call *c)
{
    return c->account->store
               ? 0
               : ec2_fail(c, "UnsupportedOperation", "This account has no launch templates.");
}

/* ---- templates ---- */

static struct ec2_template *find(const struct ec2_store *s, const char *id, const char *name)
{
    for (size_t i = 0; i < s->n_templates; i++)
        if (id ? str_eq(s->templates[i].id, id) : str_eq(s->templates[i].name, name))
            return &s->templates[i];
    return NULL;
}

/* The template named by PREFIX.LaunchTemplateId or .LaunchTemplateName. -1 with the error reply
 * set. */
static int read_template(struct ec2_call *c, const char *prefix, struct ec2_template **ret_template)
{
    const char *id = form_get(c->form, "%sLaunchTemplateId", prefix);
    const char *name = form_get(c->form, "%sLaunchTemplateName", prefix);
    if (!id == !name)
        return ec2_fail(c, id ? "InvalidParameterCombination" : "MissingParameter",
            "The request must contain exactly one of LaunchTemplateId and LaunchTemplateName");
    *ret_template = find(c->account->store, id, name);
    if (*ret_template)
        return 0;
    if (id)
        return ec2_fail(c, "InvalidLaunchTemplateId.NotFound",
            "The specified launch template, with template ID %.60s, does not exist.", id);
    return ec2_fail(c, "InvalidLaunchTemplateName.NotFoundException",
        "The specified launch template, with template name %.130s, does not exist.", name);
}

static void template_xml(struct ec2_call *c, const char *element, const struct ec2_template *t)
{
    struct buf *b = &c->reply->body;
    xmlw_open(b, element);
    xmlw_leaf(b, "launchTemplateId", t->id);
    xmlw_leaf(b, "launchTemplateName", t->name);
    ec2_iso(b, "createTime", t->made);
    xmlw_printf(b, "createdBy", "arn:aws:iam::%s:root", c->region->o->account);
    buf_adds(b, "<defaultVersionNumber>1</defaultVersionNumber><latestVersionNumber>1</"
                "latestVersionNumber>");
    ec2_tags_xml(b, &t->tags);
    xmlw_close(b, element);
}

static int read_name(struct ec2_call *c, struct ec2_template *t)
{
    const char *name;
    if (ec2_required(c, "LaunchTemplateName", &name) < 0)
        return -1;
    size_t n = strlen(name);
    if (n < 3 || n > 128 ||
        strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789().-/_") != n)
        return ec2_fail(c, "InvalidLaunchTemplateName.MalformedException",
            "A launch template name must be between 3 and 128 characters, and may contain letters, "
            "numbers, and the following characters: - ( ) . / _.");
    if (find(c->account->store, NULL, name))
        return ec2_fail(c, "InvalidLaunchTemplateName.AlreadyExistsException",
            "Launch template name already in use.");
    STR_COPY(t->name, name);
    return 0;
}

static int read_template_tags(struct ec2_call *c, struct ec2_template *t)
{
    const char *resource = form_get(c->form, "TagSpecification.1.ResourceType");
    if (resource && !str_eq(resource, "launch-template"))
        return ec2_fail(c, "InvalidParameterValue",
            "'%.60s' is not a valid taggable resource type for this operation.", resource);
    return ec2_read_tags(c, "TagSpecification.1.", &t->tags);
}

static void add_param(struct buf *b, const char *name, const char *value)
{
    buf_printf(b, "&%s=", name);
    str_url_encode(b, value, strlen(value));
}

static int read_data(struct ec2_call *c, struct ec2_template *t)
{
    for (size_t i = 0; i < c->form->n; i++)
        if (str_starts(c->form->list[i].name, DATA))
            add_param(&t->params, c->form->list[i].name + strlen(DATA), c->form->list[i].value);
    form_use_all(c->form, "LaunchTemplateData");
    if (t->params.len == 0)
        return ec2_fail(
            c, "MissingParameter", "The request must contain the parameter LaunchTemplateData");
    return 0;
}

int ec2_create_launch_template(struct ec2_call *c)
{
    struct ec2_store *s = c->account->store;
    struct ec2_template t = {.made = c->now};
    int rc = need_store(c);
    if (rc == 0 && s->n_templates == TEMPLATES_MAX)
        rc = ec2_fail(c, "TemplateLimitExceeded", "At most %d launch templates.", TEMPLATES_MAX);
    form_use_all(c->form, "ClientToken"); /* the name already serves as a token */
    form_use_all(c->form, "VersionDescription");
    if (rc < 0 || read_name(c, &t) < 0 || read_template_tags(c, &t) < 0 || read_data(c, &t) < 0 ||
        ec2_params_end(c) < 0) {
        template_deinit(&t);
        return -1;
    }
    snprintf(
        t.id, sizeof(t.id), "lt-%017llx", (unsigned long long)prng_u64(&c->region->request_ids));
    s->templates = mem_resize(s->templates, s->n_templates + 1, sizeof(*s->templates));
    s->templates[s->n_templates++] = t;
    template_xml(c, "launchTemplate", &t);
    return 0;
}

static bool is_selected(const struct ec2_filters *fs, const struct ec2_template *t)
{
    for (size_t k = 0; k < fs->n; k++) {
        const struct ec2_filter *f = &fs->list[k];
        const char *value = str_starts(f->name, "tag:") ? tags_get(&t->tags, f->name + 4) : t->name;
        if (!value || !ec2_filter_matches(f, value))
            return false;
    }
    return true;
}

static int check_filters(struct ec2_call *c, const struct ec2_filters *fs)
{
    for (size_t k = 0; k < fs->n; k++)
        if (!str_starts(fs->list[k].name, "tag:") &&
            !str_eq(fs->list[k].name, "launch-template-name"))
            return ec2_fail(
                c, "InvalidParameterValue", "The filter '%.100s' is invalid", fs->list[k].name);
    return 0;
}

/* By filters; by at most one name; not by id. */
int ec2_describe_launch_templates(struct ec2_call *c)
{
    struct ec2_filters fs = {0};
    struct ec2_page page;
    const char *name = form_get(c->form, "LaunchTemplateName.1");
    if (need_store(c) < 0 || ec2_read_filters(c, &fs) < 0)
        return -1;
    const struct ec2_store *s = c->account->store;
    int rc = check_filters(c, &fs);
    if (rc == 0)
        rc = ec2_read_page(c, 1, 200, &page);
    if (rc == 0)
        rc = ec2_params_end(c);
    if (rc == 0 && name && !find(s, NULL, name))
        rc = ec2_fail(c, "InvalidLaunchTemplateName.NotFoundException",
            "At least one of the launch templates specified in the request does not exist.");
    if (rc == 0) {
        size_t i = (uint64_t)page.after < s->n_templates ? (size_t)page.after : s->n_templates;
        xmlw_open(&c->reply->body, "launchTemplates");
        for (int64_t n = 0; i < s->n_templates && n < page.max; i++) {
            const struct ec2_template *t = &s->templates[i];
            if (!is_selected(&fs, t) || (name && !str_eq(name, t->name)))
                continue;
            template_xml(c, "item", t);
            n++;
        }
        xmlw_close(&c->reply->body, "launchTemplates");
        if (i < s->n_templates)
            ec2_next_token(&c->reply->body, (int64_t)i);
    }
    free(fs.list);
    return rc;
}

int ec2_delete_launch_template(struct ec2_call *c)
{
    struct ec2_template *t;
    if (need_store(c) < 0 || read_template(c, "", &t) < 0 || ec2_params_end(c) < 0)
        return -1;
    struct ec2_store *s = c->account->store;
    template_xml(c, "launchTemplate", t);
    template_deinit(t);
    memmove(t, t + 1, (size_t)(&s->templates[--s->n_templates] - t) * sizeof(*t));
    return 0;
}

/* ---- fleets ---- */

struct override {
    const char *type, *zone, *subnet; /* NULL: from the template, or any */
    const struct ec2_template *template;
    int64_t priority, uusd_h;
    size_t config, index; /* from 1 */
};

struct fleet {
    int64_t target;
    bool is_spot;
    bool by_price;
    struct override overrides[OVERRIDES_MAX];
    size_t n;
    struct buf errors, instances;
};

static int read_capacity(struct ec2_call *c, struct fleet *f)
{
#define CAPACITY "TargetCapacitySpecification."
    const char *total, *market = form_get(c->form, CAPACITY "DefaultTargetCapacityType");
    const char *type = form_get(c->form, "Type");
    if (!str_eq(type, "instant"))
        return ec2_fail(c, "UnsupportedOperation",
            "Fleets of type %.40s: this emulator has instant ones.", type ? type : "maintain");
    if (ec2_required(c, CAPACITY "TotalTargetCapacity", &total) < 0 ||
        ec2_integer(c, CAPACITY "TotalTargetCapacity", 1, TARGET_MAX, 1, &f->target) < 0)
        return -1;
    if (market && !str_eq(market, "spot") && !str_eq(market, "on-demand"))
        return ec2_fail(c, "InvalidParameterValue",
            "Invalid value '%.40s' for DefaultTargetCapacityType", market);
    f->is_spot = str_eq(market, "spot");
    return 0;
#undef CAPACITY
}

static int read_strategy(struct ec2_call *c, struct fleet *f)
{
    static const char *const spot[] = {"lowest-price", "diversified", "capacity-optimized",
        "capacity-optimized-prioritized", "price-capacity-optimized"};
    const char *s = form_get(c->form, "SpotOptions.AllocationStrategy");
    const char *o = form_get(c->form, "OnDemandOptions.AllocationStrategy");
    bool is_known = !s;
    for (size_t i = 0; i < sizeof(spot) / sizeof(spot[0]); i++)
        is_known = is_known || str_eq(s, spot[i]);
    if (!is_known || (o && !str_eq(o, "lowest-price") && !str_eq(o, "prioritized")))
        return ec2_fail(c, "InvalidParameterValue", "Invalid value '%.60s' for AllocationStrategy",
            is_known ? o : s);
    f->by_price =
        f->is_spot ? !str_eq(s, "capacity-optimized-prioritized") : !str_eq(o, "prioritized");
    return 0;
}

static int read_override(
    struct ec2_call *c, struct fleet *f, const struct ec2_template *t, size_t config, size_t index)
{
    char prefix[80], name[120];
    struct override *o = &f->overrides[f->n];
    snprintf(prefix, sizeof(prefix), "LaunchTemplateConfigs.%zu.Overrides.%zu.", config, index);
    *o = (struct override){.template = t, .config = config, .index = index};
    o->type = form_get(c->form, "%sInstanceType", prefix);
    o->zone = form_get(c->form, "%sAvailabilityZone", prefix);
    o->subnet = form_get(c->form, "%sSubnetId", prefix);
    snprintf(name, sizeof(name), "%sPriority", prefix);
    if (ec2_integer(c, name, 0, 1000000, INT32_MAX, &o->priority) < 0)
        return -1;
    const struct market_pool *p = o->type ? market_find(&c->region->market, o->zone, o->type,
                                                f->is_spot ? CLOUD_SPOT : CLOUD_ON_DEMAND)
                                          : NULL;
    o->uusd_h = p ? p->price_uusd_h[f->is_spot ? CLOUD_SPOT : CLOUD_ON_DEMAND] : INT64_MAX;
    f->n++;
    return 0;
}

static bool has_override(struct ec2_call *c, size_t config, size_t index)
{
    char prefix[80];
    snprintf(prefix, sizeof(prefix), "LaunchTemplateConfigs.%zu.Overrides.%zu.", config, index);
    for (size_t i = 0; i < c->form->n; i++)
        if (str_starts(c->form->list[i].name, prefix))
            return true;
    return false;
}

static int read_config(struct ec2_call *c, struct fleet *f, size_t config)
{
    struct ec2_template *t;
    char prefix[80];
    snprintf(
        prefix, sizeof(prefix), "LaunchTemplateConfigs.%zu.LaunchTemplateSpecification.", config);
    if (read_template(c, prefix, &t) < 0)
        return -1;
    const char *version = form_get(c->form, "%sVersion", prefix);
    if (version && !str_eq(version, "1") && !str_eq(version, "$Latest") &&
        !str_eq(version, "$Default"))
        return ec2_fail(c, "InvalidLaunchTemplateId.VersionNotFound",
            "Could not find the specified version %.20s for the launch template.", version);
    for (size_t k = 1; k == 1 || has_override(c, config, k); k++) {
        if (f->n == OVERRIDES_MAX)
            return ec2_fail(c, "InvalidParameterValue", "At most %d overrides.", OVERRIDES_MAX);
        if (read_override(c, f, t, config, k) < 0)
            return -1;
    }
    return 0;
}

static int read_fleet(struct ec2_call *c, struct fleet *f)
{
    if (read_capacity(c, f) < 0 || read_strategy(c, f) < 0)
        return -1;
    for (size_t k = 1;
         form_get(c->form, "LaunchTemplateConfigs.%zu.LaunchTemplateSpecification.LaunchTemplateId",
             k) ||
         form_get(c->form,
             "LaunchTemplateConfigs.%zu.LaunchTemplateSpecification.LaunchTemplateName", k);
         k++)
        if (read_config(c, f, k) < 0)
            return -1;
    if (f->n == 0)
        return ec2_fail(
            c, "MissingParameter", "The request must contain the parameter LaunchTemplateConfigs");
    return ec2_params_end(c);
}

static int by_price(const void *a, const void *b)
{
    const struct override *x = a, *y = b;
    if (x->uusd_h != y->uusd_h)
        return x->uusd_h < y->uusd_h ? -1 : 1;
    return x->config != y->config ? (x->config < y->config ? -1 : 1)
                                  : (x->index > y->index) - (x->index < y->index);
}

static int by_priority(const void *a, const void *b)
{
    const struct override *x = a, *y = b;
    return x->priority != y->priority ? (x->priority < y->priority ? -1 : 1) : by_price(a, b);
}

static void override_xml(
    struct buf *b, const struct fleet *f, const struct override *o, const struct instance *i)
{
    xmlw_open(b, "launchTemplateAndOverrides");
    xmlw_open(b, "launchTemplateSpecification");
    xmlw_leaf(b, "launchTemplateId", o->template->id);
    buf_adds(b, "<version>1</version>");
    xmlw_close(b, "launchTemplateSpecification");
    xmlw_open(b, "overrides");
    xmlw_leaf(b, "instanceType", o->type);
    xmlw_leaf(b, "subnetId", o->subnet);
    xmlw_leaf(b, "availabilityZone", o->zone ? o->zone : i && !o->subnet ? i->pool->zone : NULL);
    xmlw_close(b, "overrides");
    xmlw_close(b, "launchTemplateAndOverrides");
    xmlw_leaf(b, "lifecycle", f->is_spot ? "spot" : "on-demand");
}

/* Launches one instance of this override: returns 0, or -1 with an entry in the errors. */
static int try_override(struct ec2_call *c, struct fleet *f, const struct override *o)
{
    struct buf text = {0};
    struct form form = {0};
    struct ec2_reply inner = {0};
    struct reservation *v = NULL;
    struct err e;
    buf_adds(&text, "MinCount=1&MaxCount=1");
    buf_add(&text, buf_str(&o->template->params), o->template->params.len);
    if (o->type)
        add_param(&text, "InstanceType", o->type);
    if (o->zone)
        add_param(&text, "Placement.AvailabilityZone", o->zone);
    if (o->subnet)
        add_param(&text, "SubnetId", o->subnet);
    if (f->is_spot)
        buf_adds(&text, "&InstanceMarketOptions.MarketType=spot");
    struct ec2_call one = *c;
    one.form = &form;
    one.reply = &inner;
    int rc = form_parse(buf_str(&text), text.len, &form, &e);
    if (rc < 0)
        ec2_fail(&one, "InvalidParameterCombination",
            "The override and its template do not go together: %.200s", e.text);
    else
        rc = ec2_launch(&one, &v);
    struct buf *b = rc < 0 ? &f->errors : &f->instances;
    xmlw_open(b, "item");
    override_xml(b, f, o, v ? v->instances[0] : NULL);
    if (rc < 0) {
        xmlw_leaf(b, "errorCode", inner.code);
        xmlw_leaf(b, "errorMessage", inner.message);
    } else {
        xmlw_open(b, "instanceIds");
        xmlw_leaf(b, "item", v->instances[0]->id);
        xmlw_close(b, "instanceIds");
        xmlw_leaf(b, "instanceType", v->spec.type);
    }
    xmlw_close(b, "item");
    form_deinit(&form);
    buf_deinit(&inner.body);
    buf_deinit(&text);
    return rc < 0 ? -1 : 0;
}

static void launch_fleet(struct ec2_call *c, struct fleet *f)
{
    int64_t left = f->target;
    qsort(f->overrides, f->n, sizeof(f->overrides[0]), f->by_price ? by_price : by_priority);
    for (size_t k = 0; k < f->n; k++)
        while (left > 0 && try_override(c, f, &f->overrides[k]) == 0)
            left--;
}

static void fleet_xml(struct ec2_call *c, const struct fleet *f)
{
    struct buf *b = &c->reply->body;
    struct prng *ids = &c->region->request_ids;
    unsigned long long x = prng_u64(ids), y = prng_u64(ids);
    xmlw_printf(b, "fleetId", "fleet-%08llx-%04llx-%04llx-%04llx-%012llx", x >> 32,
        x >> 16 & 0xffff, x & 0xffff, y >> 48, y & 0xffffffffffffULL);
    xmlw_open(b, "errorSet");
    buf_add(b, buf_str(&f->errors), f->errors.len);
    xmlw_close(b, "errorSet");
    xmlw_open(b, "fleetInstanceSet");
    buf_add(b, buf_str(&f->instances), f->instances.len);
    xmlw_close(b, "fleetInstanceSet");
}

static struct ec2_fleet_record *find_fleet(const struct ec2_store *s, const char *token)
{
    for (size_t i = 0; token && token[0] && i < s->n_fleets; i++)
        if (str_eq(s->fleets[i].token, token))
            return &s->fleets[i];
    return NULL;
}

/* The first answer under a token is final, including its errors. */
static void keep(struct ec2_call *c, const char *token, const char *fingerprint, size_t from)
{
    struct ec2_store *s = c->account->store;
    if (!token || !token[0] || s->n_fleets == FLEETS_MAX)
        return;
    s->fleets = mem_resize(s->fleets, s->n_fleets + 1, sizeof(*s->fleets));
    struct ec2_fleet_record *r = &s->fleets[s->n_fleets++];
    *r = (struct ec2_fleet_record){0};
    STR_COPY(r->token, token);
    STR_COPY(r->fingerprint, fingerprint);
    buf_add(&r->reply, buf_str(&c->reply->body) + from, c->reply->body.len - from);
}

int ec2_create_fleet(struct ec2_call *c)
{
    static const char *const not_in_fingerprint[] = {"ClientToken", "DryRun", NULL};
    char fingerprint[65];
    const char *token = form_get(c->form, "ClientToken");
    if (need_store(c) < 0)
        return -1;
    if (token && strlen(token) > 64)
        return ec2_fail(
            c, "InvalidParameterValue", "Invalid client token: it is longer than 64 characters");
    form_fingerprint(c->form, not_in_fingerprint, fingerprint);
    const struct ec2_fleet_record *known = find_fleet(c->account->store, token);
    if (known && !str_eq(known->fingerprint, fingerprint))
        return ec2_fail(c, "IdempotentParameterMismatch",
            "Arguments on this idempotent request are inconsistent with arguments used in previous "
            "request(s).");
    struct fleet *f = mem_alloc(sizeof(*f));
    int rc = read_fleet(c, f);
    if (rc == 0 && known) {
        c->region->counts.replays++;
        buf_add(&c->reply->body, buf_str(&known->reply), known->reply.len);
    } else if (rc == 0) {
        size_t from = c->reply->body.len;
        launch_fleet(c, f);
        fleet_xml(c, f);
        keep(c, token, fingerprint, from);
    }
    buf_deinit(&f->errors);
    buf_deinit(&f->instances);
    free(f);
    return rc;
}
