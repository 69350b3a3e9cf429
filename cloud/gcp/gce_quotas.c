/* SPDX-License-Identifier: Apache-2.0
 *
 * Reference: https://cloud.google.com/compute/resource-usage and the resources `regions` and
 * `projects` of Compute Engine v1.
 */
#include "cloud/gcp/gce_quotas.h"

#include "base/str.h"
#include "cloud/catalogue.h"
#include "cloud/gcp/gce.h"
#include <stdio.h>
#include <string.h>

#define METRIC_MAX 64
#define ALL_REGIONS "all regions"

void gce_path_region(const char *region, struct buf *out)
{
    buf_printf(out, "/regions/%s", region);
}

/* ---- replies ---- */

static int read_quota(const json_t *item, struct cloud_quota_values *list, struct err *e)
{
    struct cloud_quota_value v = {0};
    struct json_reader r;
    json_reader_init(&r, item, "quotas", e);
    json_req_strcpy(&r, "metric", v.name, sizeof(v.name));
    int rc = json_reader_finish_lenient(&r);
    if (rc == 0)
        rc = cloud_quota_count(json_object_get(item, "limit"), "quotas.limit", &v.limit, e);
    if (rc == 0)
        rc = cloud_quota_count(json_object_get(item, "usage"), "quotas.usage", &v.used, e);
    return rc == 0 ? cloud_quota_values_add(list, &v, e) : rc;
}

int gce_parse_quotas(const char *body, size_t n, struct cloud_quota_values *list, struct err *e)
{
    struct json_reader r;
    json_t *root;
    int rc = json_parse(body, n, GCE_REPLY_MAX, &root, e);
    if (rc != 0)
        return err_wrap(e, "Compute Engine's quotas");
    json_reader_init(&r, root, "", e);
    const json_t *quotas = json_opt_array(&r, "quotas", CLOUD_QUOTA_VALUES_MAX);
    rc = json_reader_finish_lenient(&r);
    for (size_t i = 0; rc == 0 && i < json_array_size(quotas); i++)
        rc = read_quota(json_array_get(quotas, i), list, e);
    json_decref(root);
    return rc == 0 ? 0 : err_wrap(e, "Compute Engine's quotas");
}

/* ---- which quota ---- */

/* Built-in GPUs by the start of a type's name; longer ones first. */
static const struct {
    const char *machines, *gpu;
} built_in[] = {
    {"a2-ultragpu-", "A100_80GB"},
    {"a2-", "A100"},
    {"a3-megagpu-", "H100_MEGA"},
    {"a3-ultragpu-", "H200"},
    {"a3-", "H100"},
    {"g2-", "L4"},
};

/* "T4"; "" if the type has none, or one that is not known. */
static void gpu_of(const char *type, char out[METRIC_MAX])
{
    struct catalogue_parts parts;
    out[0] = '\0';
    if (catalogue_split("gcp", type, &parts, NULL) == 0 && parts.gpu) {
        str_copy(out, METRIC_MAX, parts.gpu->model);
        return;
    }
    for (size_t i = 0; i < sizeof(built_in) / sizeof(built_in[0]) && !out[0]; i++)
        if (str_starts(type, built_in[i].machines))
            str_copy(out, METRIC_MAX, built_in[i].gpu);
}

/* The quota of its vCPUs: the family's if the region has one, else CPUS for the families that count
 * there; "" for others. */
static void cpus_of(const char *type, const struct cloud_quota_values *l, char out[METRIC_MAX])
{
    static const char *const shared[] = {"n1", "e2", "f1", "g1", NULL};
    char family[16];
    size_t n = strcspn(type, "-");
    out[0] = '\0';
    if (n == 0 || n >= sizeof(family))
        return;
    memcpy(family, type, n);
    family[n] = '\0';
    if (str_is_one_of(family, shared)) {
        str_copy(out, METRIC_MAX, "CPUS");
        return;
    }
    for (size_t i = 0; i < n; i++)
        if (family[i] >= 'a' && family[i] <= 'z')
            family[i] = (char)(family[i] - 'a' + 'A');
    snprintf(out, METRIC_MAX, "%s_CPUS", family);
    if (!cloud_quota_values_find(l, out))
        out[0] = '\0';
}

/* Adds a row for the first of these quotas that the reply has; a preemptible one only if granted.
 */
static int draw(const struct cloud_quota_values *l, const struct cloud_machine *m, size_t index,
    const char *preemptible, const char *standard, int64_t each, const char *scope,
    struct cloud_quotas *rows, struct err *e)
{
    const struct cloud_quota_value *v = NULL;
    if (m->market == CLOUD_SPOT && preemptible)
        v = cloud_quota_values_find(l, preemptible);
    if (!v || v->limit == 0)
        v = cloud_quota_values_find(l, standard);
    return v ? cloud_quotas_draw(rows, index, each, v, scope, e) : 0;
}

int gce_draw_quotas(const struct cloud_machine *m, size_t index, const char *region,
    const struct cloud_quota_values *of_region, const struct cloud_quota_values *of_project,
    struct cloud_quotas *rows, struct err *e)
{
    char gpu[METRIC_MAX], cpus[METRIC_MAX], standard[2 * METRIC_MAX], spot[3 * METRIC_MAX];
    gpu_of(m->type, gpu);
    cpus_of(m->type, of_region, cpus);
    int rc = 0;
    if (cpus[0])
        rc = draw(of_region, m, index, "PREEMPTIBLE_CPUS", cpus, m->vcpus, region, rows, e);
    if (rc == 0 && cpus[0])
        rc = draw(of_project, m, index, NULL, "CPUS_ALL_REGIONS", m->vcpus, ALL_REGIONS, rows, e);
    if (rc != 0 || !gpu[0])
        return rc;
    snprintf(standard, sizeof(standard), "NVIDIA_%s_GPUS", gpu);
    snprintf(spot, sizeof(spot), "PREEMPTIBLE_%s", standard);
    rc = draw(of_region, m, index, spot, standard, m->gpus, region, rows, e);
    return rc == 0
               ? draw(of_project, m, index, NULL, "GPUS_ALL_REGIONS", m->gpus, ALL_REGIONS, rows, e)
               : rc;
}
