/* SPDX-License-Identifier: Apache-2.0
 *
 * regions.get and projects.get, for their quotas. The vCPUs of a spot instance count against
 * PREEMPTIBLE_CPUS if that is configured, else, like the others, against the quota of its family,
 * N2_CPUS, if that is, else against CPUS, which every region has.
 *
 * quotaInfos.get of Cloud Quotas has the limits by family, which it alone reports, without the use.
 */
#include "base/str.h"
#include "cloud/catalogue.h"
#include "emulator/gce/gce.h"
#include <stdio.h>
#include <string.h>

#define CPUS "CPUS"
#define CPUS_DEFAULT 1000000
#define PREEMPTIBLE_CPUS "PREEMPTIBLE_CPUS"
#define SUFFIX_ALL "_ALL_REGIONS"

static bool is_configured(const struct gce *gce, const char *name)
{
    for (size_t i = 0; i < gce->n_cpu_quotas; i++)
        if (str_eq(gce->cpu_quotas[i].name, name))
            return true;
    return false;
}

/* The name of the quota that an instance's vCPUs count against. */
static void counted_in(const struct gce *gce, const struct instance *i, char *out, size_t size)
{
    const char *type = i->pool->type;
    int n = 0;
    if (i->reservation->spec.market == CLOUD_SPOT && is_configured(gce, PREEMPTIBLE_CPUS)) {
        str_copy(out, size, PREEMPTIBLE_CPUS);
        return;
    }
    for (; type[n] && type[n] != '-' && n < 8; n++)
        out[n] = type[n] >= 'a' && type[n] <= 'z' ? (char)(type[n] - 'a' + 'A') : type[n];
    str_copy(out + n, size - (size_t)n, "_" CPUS);
    if (!is_configured(gce, out))
        str_copy(out, size, CPUS);
}

static int64_t cpus_used(const struct gce_call *c, const char *quota)
{
    int64_t n = 0;
    LIST_FOREACH (&c->region->alive, l) {
        const struct instance *i = LIST_ENTRY(l, struct instance, alive);
        struct catalogue_type t;
        char name[32];
        counted_in(c->gce, i, name, sizeof(name));
        if (str_eq(name, quota) && catalogue_find("gcp", i->pool->type, &t, NULL) == 0)
            n += t.vcpus;
    }
    return n;
}

static void add(json_t *list, const char *metric, int64_t limit, int64_t used)
{
    json_t *o = json_object();
    json_object_set_new(o, "metric", json_text(metric));
    json_object_set_new(o, "limit", json_real((double)limit));
    json_object_set_new(o, "usage", json_real((double)used));
    json_array_append_new(list, o);
}

static json_t *quotas_of(const struct gce_call *c, bool of_project)
{
    const struct gce *gce = c->gce;
    json_t *list = json_array();
    for (size_t i = 0; i < gce->n_quotas; i++)
        if (str_ends(gce->quotas[i].name, SUFFIX_ALL) == of_project)
            add(list, gce->quotas[i].name, gce->quotas[i].limit, gce_gpus_used(c, &gce->quotas[i]));
    for (size_t i = 0; i < gce->n_cpu_quotas && !of_project; i++)
        add(list, gce->cpu_quotas[i].name, gce->cpu_quotas[i].limit,
            cpus_used(c, gce->cpu_quotas[i].name));
    if (!of_project && !is_configured(gce, CPUS))
        add(list, CPUS, CPUS_DEFAULT, cpus_used(c, CPUS));
    return list;
}

int gce_regions_get(struct gce_call *c)
{
    if (gce_query_end(c) < 0)
        return -1;
    if (!str_eq(c->zone, c->region->o->name)) /* the first name of the path */
        return gce_fail(c, 404, "notFound",
            "The resource 'projects/%s/regions/%.60s' was not found", c->region->o->account,
            c->zone);
    json_t *o = json_object();
    json_object_set_new(o, "kind", json_string("compute#region"));
    json_object_set_new(o, "name", json_text(c->region->o->name));
    json_object_set_new(o, "status", json_string("UP"));
    json_object_set_new(o, "quotas", quotas_of(c, false));
    gce_reply_json(c, o);
    return 0;
}

int gce_projects_get(struct gce_call *c)
{
    if (gce_query_end(c) < 0)
        return -1;
    json_t *o = json_object();
    json_object_set_new(o, "kind", json_string("compute#project"));
    json_object_set_new(o, "name", json_text(c->region->o->account));
    json_object_set_new(o, "quotas", quotas_of(c, true));
    gce_reply_json(c, o);
    return 0;
}

int gce_family_quota_get(struct gce_call *c)
{
    if (gce_query_end(c) < 0)
        return -1;
    json_t *o = json_object(), *infos = json_array();
    for (size_t i = 0; i < c->gce->n_family_quotas; i++) {
        const struct gce_family_quota *q = &c->gce->family_quotas[i];
        json_t *info = json_object(), *dimensions = json_object(), *details = json_object(),
               *places = json_array();
        json_object_set_new(dimensions, "region", json_text(c->region->o->name));
        json_object_set_new(dimensions, "vm_family", json_text(q->family));
        json_object_set_new(details, "value", json_sprintf("%lld", (long long)q->limit));
        json_array_append_new(places, json_text(c->region->o->name));
        json_object_set_new(info, "dimensions", dimensions);
        json_object_set_new(info, "details", details);
        json_object_set_new(info, "applicableLocations", places);
        json_array_append_new(infos, info);
    }
    json_object_set_new(o, "quotaId", json_string(GCE_FAMILY_QUOTA));
    json_object_set_new(o, "metric", json_string("compute.googleapis.com/cpus_per_vm_family"));
    json_object_set_new(o, "service", json_string("compute.googleapis.com"));
    json_object_set_new(o, "dimensionsInfos", infos);
    gce_reply_json(c, o);
    return 0;
}
