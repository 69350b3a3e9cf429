/* SPDX-License-Identifier: Apache-2.0
 *
 *   regions.get --> projects.get --> [quotaInfos.get -->] done
 *
 * The last one is for the families that the others lack. Where it is refused, as in a project that
 * has not enabled Cloud Quotas, these have no quota, as far as this driver knows.
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

static void finish(struct gcp_call *c)
{
    struct err e;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < c->base.n_machines; i++)
        rc = gce_draw_quotas(&c->base.machines[i], i, c->base.region, &c->region_quotas,
            &c->project_quotas, &c->base.quotas, &e);
    gcp_call_finish(c, rc == 0 ? NULL : &e);
}

/* ---- the families ---- */

static void path_families(struct gcp_call *c, struct buf *out)
{
    (void)c;
    gce_path_family_quota(out);
}

static void on_families(struct gcp_call *c, const char *body, size_t n)
{
    struct err e;
    if (gce_parse_family_quota(body, n, c->base.region, &c->region_quotas, &e) != 0)
        gcp_call_finish(c, &e);
    else
        finish(c);
}

static void on_families_refused(struct gcp_call *c, const struct err *e)
{
    if (e->kind == ERR_DENIED || e->kind == ERR_NOT_FOUND)
        finish(c);
    else
        gcp_call_finish(c, e);
}

static const struct stage family_stage = {
    "GET", path_families, on_families, on_families_refused, .of_cloud_quotas = true};

/* ---- the project ---- */

static void path_project(struct gcp_call *c, struct buf *out)
{
    (void)c, (void)out; /* the project itself */
}

static void on_project(struct gcp_call *c, const char *body, size_t n)
{
    bool lacks_families = false;
    struct err e;
    if (gce_parse_quotas(body, n, &c->project_quotas, &e) != 0) {
        gcp_call_finish(c, &e);
        return;
    }
    for (size_t i = 0; i < c->base.n_machines; i++)
        lacks_families |= gce_needs_family_quota(&c->base.machines[i], &c->region_quotas);
    if (lacks_families)
        gcp_call_continue(c, &family_stage);
    else
        finish(c);
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
