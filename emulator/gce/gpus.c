/* SPDX-License-Identifier: Apache-2.0
 *
 * GPUs of a type, built in or attached, with the names of Compute Engine's API and of its quotas.
 */
#include "base/str.h"
#include "cloud/catalogue.h"
#include "emulator/gce/gce.h"
#include <string.h>

#define ALL_REGIONS "GPUS_ALL_REGIONS"

/* quotas: by market. Without a quota for spot, spot GPUs count against the other one. */
struct gce_gpu_model {
    /* prefix of the machine types with this GPU built in; NULL if it is attached */
    const char *machines;
    const char *accelerator;
    const char *quotas[2];
};

/* clang-format off */
#define MODEL(machines, accelerator, quota) \
    {machines, accelerator, \
     {[CLOUD_SPOT] = "PREEMPTIBLE_NVIDIA_" quota "_GPUS", \
      [CLOUD_ON_DEMAND] = "NVIDIA_" quota "_GPUS"}}
/* clang-format on */

/* Longer prefixes first. */
static const struct gce_gpu_model models[] = {
    MODEL("a2-ultragpu-", "nvidia-a100-80gb", "A100_80GB"),
    MODEL("a2-", "nvidia-tesla-a100", "A100"),
    MODEL("a3-megagpu-", "nvidia-h100-mega-80gb", "H100_MEGA"),
    MODEL("a3-", "nvidia-h100-80gb", "H100"),
    MODEL("g2-", "nvidia-l4", "L4"),
    MODEL(NULL, "nvidia-tesla-p4", "P4"),
    MODEL(NULL, "nvidia-tesla-p100", "P100"),
    MODEL(NULL, "nvidia-tesla-t4", "T4"),
    MODEL(NULL, "nvidia-tesla-v100", "V100"),
};
#define N_MODELS (sizeof(models) / sizeof(models[0]))
_Static_assert(GCE_QUOTAS_MAX == 2 * N_MODELS + 1, "every model has two quotas");

static bool fits(const struct gce_gpu_model *m, const char *machine, const char *attached)
{
    return m->machines ? !attached && str_starts(machine, m->machines)
                       : str_eq(m->accelerator, attached);
}

struct gce_gpus gce_gpus_of(const char *type)
{
    struct catalogue_parts parts = {0};
    struct catalogue_type known = {0};
    struct gce_gpus gpus = {.accelerator = ""};
    if (catalogue_split("gcp", type, &parts, NULL) != 0)
        return gpus;
    catalogue_find("gcp", parts.machine, &known, NULL);
    int64_t n = known.gpus + parts.n_gpus;
    for (size_t k = 0; k < N_MODELS && n > 0 && !gpus.model; k++)
        if (fits(&models[k], parts.machine, parts.gpu ? parts.gpu->accelerator : NULL))
            gpus = (struct gce_gpus){&models[k], models[k].accelerator, n};
    return gpus;
}

int gce_machine_len(const char *type)
{
    struct catalogue_parts parts;
    return (int)strlen(catalogue_split("gcp", type, &parts, NULL) == 0 ? parts.machine : type);
}

/* ---- Quotas ---- */

const char *gce_quota_name(size_t k)
{
    if (k < 2 * N_MODELS)
        return models[k / 2].quotas[k % 2];
    return k == 2 * N_MODELS ? ALL_REGIONS : NULL;
}

static const struct gce_quota *find_quota(const struct gce *gce, const char *name)
{
    for (size_t k = 0; k < gce->n_quotas; k++)
        if (str_eq(gce->quotas[k].name, name))
            return &gce->quotas[k];
    return NULL;
}

/* NULL if unlimited. */
static const struct gce_quota *quota_of(
    const struct gce *gce, const struct gce_gpus *gpus, enum cloud_market market)
{
    const struct gce_quota *q = find_quota(gce, gpus->model->quotas[market]);
    return q ? q : find_quota(gce, gpus->model->quotas[CLOUD_ON_DEMAND]);
}

/* quota NULL: of all GPUs. */
static int64_t count_used(const struct gce_call *c, const struct gce_quota *quota)
{
    int64_t n = 0;
    LIST_FOREACH (&c->region->alive, l) {
        const struct instance *i = LIST_ENTRY(l, struct instance, alive);
        const struct gce_gpus gpus = gce_gpus_of(i->pool->type);
        if (gpus.n > 0 && (!quota || quota_of(c->gce, &gpus, i->reservation->spec.market) == quota))
            n += gpus.n;
    }
    return n;
}

int64_t gce_gpus_used(const struct gce_call *c, const struct gce_quota *quota)
{
    return count_used(c, str_eq(quota->name, ALL_REGIONS) ? NULL : quota);
}

int gce_gpus_check_quota(const struct gce_call *c, const struct launch_spec *spec, struct err *e)
{
    const struct gce_gpus gpus = gce_gpus_of(spec->type);
    if (gpus.n == 0)
        return 0;
    const struct gce_quota *q = quota_of(c->gce, &gpus, spec->market),
                           *all = find_quota(c->gce, ALL_REGIONS);
    if (q && count_used(c, q) + gpus.n > q->limit)
        return err_set(e, ERR_QUOTA, "Quota '%s' exceeded.  Limit: %lld.0 in region %s.", q->name,
            (long long)q->limit, c->region->o->name);
    if (all && count_used(c, NULL) + gpus.n > all->limit)
        return err_set(e, ERR_QUOTA, "Quota '%s' exceeded.  Limit: %lld.0 globally.", all->name,
            (long long)all->limit);
    return 0;
}
