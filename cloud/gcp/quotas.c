/* SPDX-License-Identifier: Apache-2.0
 *
 *   regions.get --> projects.get --> done
 */
#include "cloud/gcp/quotas.h"

#include "cloud/gcp/call.h"
#include "cloud/gcp/gce_quotas.h"

static void finish_denied(struct gcp_call *c, const struct err *e, const char *permission)
{
    struct err wrapped = *e;
    if (e->kind == ERR_DENIED)
        err_wrap(&wrapped, "it needs the permission %s", permission);
    gcp_call_finish(c, &wrapped);
}

/* ---- the project ---- */

static void path_project(struct gcp_call *c, struct buf *out)
{
    (void)c, (void)out; /* the project itself */
}

static void on_project(struct gcp_call *c, const char *body, size_t n)
{
    struct cloud_quota_values project = {0};
    struct err e;
    int rc = gce_parse_quotas(body, n, &project, &e);
    for (size_t i = 0; rc == 0 && i < c->base.n_machines; i++)
        rc = gce_draw_quotas(&c->base.machines[i], i, c->base.region, &c->region_quotas, &project,
            &c->base.quotas, &e);
    cloud_quota_values_deinit(&project);
    gcp_call_finish(c, rc == 0 ? NULL : &e);
}

static void on_project_refused(struct gcp_call *c, const struct err *e)
{
    finish_denied(c, e, "compute.projects.get");
}

static const struct stage project_stage = {"GET", path_project, on_project, on_project_refused};

/* ---- the region ---- */

static void path_region(struct gcp_call *c, struct buf *out)
{
    gce_path_region(c->base.region, out);
}

static void on_region(struct gcp_call *c, const char *body, size_t n)
{
    struct err e;
    if (gce_parse_quotas(body, n, &c->region_quotas, &e) != 0)
        gcp_call_finish(c, &e);
    else
        gcp_call_continue(c, &project_stage);
}

static void on_region_refused(struct gcp_call *c, const struct err *e)
{
    finish_denied(c, e, "compute.regions.get");
}

void gcp_quotas(struct cloud_driver *d, const char *region, const struct cloud_machine *machines,
    size_t n_machines, cloud_quotas_fn done, void *ctx)
{
    static const struct stage stage = {"GET", path_region, on_region, on_region_refused};
    static const struct cloud_call_ops ops = {
        "quotas", gcp_call_step, gcp_call_on_reply, gcp_call_deinit};
    struct gcp_call *c = gcp_call_new(d, region, &stage);
    cloud_call_quotas(&c->d->calls, &c->base, &ops, region, machines, n_machines, done, ctx);
}
