/* SPDX-License-Identifier: Apache-2.0 */
#include "cloud/azure/quotas.h"

#include "cloud/azure/arm_usages.h"
#include "cloud/azure/call.h"

static void finish(struct azure_call *c)
{
    struct err e;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < c->base.n_machines; i++)
        rc = arm_draw_usages(
            &c->base.machines[i], i, c->base.region, &c->usages, &c->base.quotas, &e);
    cloud_call_finish(&c->base, rc == 0 ? NULL : &e);
}

static void on_reply(struct cloud_call *base, const struct http_reply *reply)
{
    struct azure_call *c = (struct azure_call *)base;
    struct err e;
    if (reply->status != 200)
        azure_call_on_refusal(c, reply);
    else if (arm_parse_usages(buf_str(&reply->body), reply->body.len, &c->usages, c->url, &e) != 0)
        cloud_call_finish(base, &e);
    else if (!azure_call_next_page(c, c->d->endpoint_url))
        finish(c);
}

void azure_quotas(struct cloud_driver *d, const char *region, const struct cloud_machine *machines,
    size_t n_machines, cloud_quotas_fn done, void *ctx)
{
    static const struct cloud_call_ops ops = {"usages", azure_call_step, on_reply,
        azure_call_deinit,
        .permission = "Microsoft.Compute/locations/usages/read in the subscription"};
    struct azure_call *c = azure_call_new(d, region, USAGES);
    cloud_call_quotas(&c->d->calls, &c->base, &ops, region, machines, n_machines, done, ctx);
}
