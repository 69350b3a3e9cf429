/* SPDX-License-Identifier: Apache-2.0
 *
 * Quotas of vCPUs. EC2 does not report what is used of them, so the vCPUs of the instances that
 * count are added up:
 *
 *   DescribeInstances, all pages --> for each quota: GetServiceQuota --> done
 *                                                       | the account has no value of its own
 *                                                       v
 *                                                    GetAWSDefaultServiceQuota
 */
#include "base/mem.h"
#include "base/str.h"
#include "cloud/aws/driver_parts.h"
#include "cloud/aws/service_quotas.h"
#include "cloud/catalogue.h"
#include <stdlib.h>

#define TIMEOUT_MS SECONDS_MS(15)

/* ---- the service ---- */

static char *endpoint_of(const struct aws_driver *d, const char *region)
{
    if (d->quotas_url)
        return mem_strdup(d->quotas_url);
    return mem_printf(
        "https://servicequotas.%s.amazonaws.com%s", region, str_starts(region, "cn-") ? ".cn" : "");
}

static void add_no_page(const char *page, struct buf *body)
{
    (void)page, (void)body; /* a reply has one */
}

/* A credential or clock error is not retried here: EC2 would have reported it a moment ago. */
static int applied_error(
    int status, const char *body, size_t n, enum ec2_remedy *ret_remedy, struct err *e)
{
    *ret_remedy = EC2_REMEDY_NONE;
    return service_quotas_parse_error(status, body, n, SERVICE_QUOTAS_APPLIED, e);
}

static int default_error(
    int status, const char *body, size_t n, enum ec2_remedy *ret_remedy, struct err *e)
{
    *ret_remedy = EC2_REMEDY_NONE;
    return service_quotas_parse_error(status, body, n, SERVICE_QUOTAS_DEFAULT, e);
}

static const struct aws_service applied = {.name = "servicequotas",
                                    .content_type = SERVICE_QUOTAS_CONTENT_TYPE,
                                    .target = SERVICE_QUOTAS_TARGET SERVICE_QUOTAS_APPLIED,
                                    .timeout_ms = TIMEOUT_MS,
                                    .pages_max = 1,
                                    .endpoint = endpoint_of,
                                    .add_page = add_no_page,
                                    .parse_error = applied_error},
                                by_default = {.name = "servicequotas",
                                    .content_type = SERVICE_QUOTAS_CONTENT_TYPE,
                                    .target = SERVICE_QUOTAS_TARGET SERVICE_QUOTAS_DEFAULT,
                                    .timeout_ms = TIMEOUT_MS,
                                    .pages_max = 1,
                                    .endpoint = endpoint_of,
                                    .add_page = add_no_page,
                                    .parse_error = default_error};

/* ---- what is used ---- */

static int64_t vcpus_of(const struct cloud_instance *i)
{
    struct catalogue_type t;
    if (i->vcpus > 0)
        return i->vcpus;
    return catalogue_find("aws", i->type, &t, NULL) == 0 ? t.vcpus : -1;
}

/* The vCPUs of the account's instances that count against a quota: those that run or boot. -1 if
 * those of one are not known. */
static int64_t used_of(const struct cloud_instances *l, const char *code)
{
    int64_t sum = 0;
    for (size_t k = 0; k < l->n; k++) {
        const struct cloud_instance *i = &l->list[k];
        bool counts = i->state == CLOUD_PENDING || i->state == CLOUD_RUNNING;
        if (!counts || !str_eq(service_quotas_code(i->type, i->market), code))
            continue;
        int64_t n = vcpus_of(i);
        if (n < 0)
            return -1;
        sum += n;
    }
    return sum;
}

static int parse_list(struct aws_call *c, const char *body, size_t n, struct err *e)
{
    return ec2_parse_describe_instances(body, n, &c->base.instances, c->page, e);
}

/* Names the missing permission: the one of the call's other requests is another. */
static bool excuse_list(struct aws_call *c, const struct err *e)
{
    if (e->kind != ERR_DENIED)
        return false;
    c->outcome = *e;
    err_wrap(&c->outcome, "it needs the permission ec2:DescribeInstances");
    c->next = NULL;
    return true;
}

/* ---- the limits ---- */

static bool next_quota(struct aws_call *c);

static int parse_quota(struct aws_call *c, const char *body, size_t n, struct err *e)
{
    const char *code = cloud_call_word(&c->base);
    struct cloud_quota_value v;
    int rc = service_quotas_parse(body, n, code, &v, e);
    v.used = c->used_vcpus;
    for (size_t i = 0; rc == 0 && i < c->base.n_machines; i++) {
        const struct cloud_machine *m = &c->base.machines[i];
        if (str_eq(service_quotas_code(m->type, m->market), code))
            rc = cloud_quotas_draw(&c->base.quotas, i, m->vcpus, &v, c->base.region, e);
    }
    return rc;
}

static bool after_quota(struct aws_call *c)
{
    c->base.next_word++;
    return next_quota(c);
}

static bool to_default(struct aws_call *c)
{
    c->service = &by_default;
    c->excuse = NULL;
    c->next = after_quota;
    return true;
}

static bool excuse_quota(struct aws_call *c, const struct err *e)
{
    if (e->kind == ERR_NOT_FOUND)
        c->next = to_default;
    return e->kind == ERR_NOT_FOUND;
}

static bool next_quota(struct aws_call *c)
{
    const char *code = cloud_call_word(&c->base);
    if (!code)
        return false;
    c->used_vcpus = used_of(&c->base.instances, code);
    aws_call_clear_request(c);
    service_quotas_build_get(code, &c->request);
    c->service = &applied;
    c->parse = parse_quota;
    c->excuse = excuse_quota;
    c->next = after_quota;
    return true;
}

/* ---- the whole call ---- */

static void add_code(struct aws_call *c, const char *code)
{
    for (size_t i = 0; i < c->base.n_words; i++)
        if (str_eq(c->base.words[i], code))
            return;
    cloud_call_add_words(&c->base, &code, 1);
}

/* Without a quota to ask for, nothing is sent. */
static void step(struct cloud_call *base)
{
    if (base->n_words == 0)
        cloud_call_finish(base, NULL);
    else
        aws_call_step(base);
}

void aws_quotas(struct cloud_driver *d, const char *region, const struct cloud_machine *machines,
    size_t n_machines, cloud_quotas_fn done, void *ctx)
{
    static const struct cloud_call_ops ops = {"quotas", step, aws_call_on_reply, aws_call_deinit};
    struct aws_call *c = aws_call_new((struct aws_driver *)d, region);
    if (c->d->endpoint_url && !c->d->quotas_url && c->base.refused.kind == ERR_NONE)
        err_set(&c->base.refused, ERR_UNSUPPORTED,
            "the pool has an endpoint of its own; name that of Service Quotas with `quotas`");
    for (size_t i = 0; i < n_machines; i++) {
        const char *code = service_quotas_code(machines[i].type, machines[i].market);
        if (code)
            add_code(c, code);
    }
    ec2_build_describe_instances(NULL, &c->request);
    c->parse = parse_list;
    c->excuse = excuse_list;
    c->next = next_quota;
    cloud_call_quotas(&c->d->calls, &c->base, &ops, region, machines, n_machines, done, ctx);
}
