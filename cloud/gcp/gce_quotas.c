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

static int read_quota(
    const json_t *item, const char *region, struct cloud_quota_values *list, struct err *e)
{
    (void)region;
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

/* Reads each element of the array under this key of the reply, which is called `what` in errors. */
static int parse_each(const char *body, size_t n, const char *what, const char *key,
    int (*read)(
        const json_t *item, const char *region, struct cloud_quota_values *list, struct err *e),
    const char *region, struct cloud_quota_values *list, struct err *e)
{
    struct json_reader r;
    json_t *root;
    int rc = json_parse(body, n, GCE_REPLY_MAX, &root, e);
    if (rc != 0)
        return err_wrap(e, "%s", what);
    json_reader_init(&r, root, "", e);
    const json_t *items = json_opt_array(&r, key, CLOUD_QUOTA_VALUES_MAX);
    rc = json_reader_finish_lenient(&r);
    for (size_t i = 0; rc == 0 && i < json_array_size(items); i++)
        rc = read(json_array_get(items, i), region, list, e);
    json_decref(root);
    return rc == 0 ? 0 : err_wrap(e, "%s", what);
}

int gce_parse_quotas(const char *body, size_t n, struct cloud_quota_values *list, struct err *e)
{
    return parse_each(body, n, "Compute Engine's quotas", "quotas", read_quota, NULL, list, e);
}

/* ---- vCPUs by family ---- */

#define PER_FAMILY "CPUS_PER_VM_FAMILY"

void gce_path_family_quota(struct buf *out)
{
    buf_adds(out, "/locations/global/services/compute.googleapis.com/quotaInfos/"
                  "CPUS-PER-VM-FAMILY-per-project-region");
}

/* Without a region of its own an entry names those to which it applies, or applies to all. */
static bool is_of_region(const json_t *item, const json_t *dimensions, const char *region)
{
    const json_t *own = json_object_get(dimensions, "region"),
                 *places = json_object_get(item, "applicableLocations"), *place;
    size_t i;
    if (own)
        return str_eq(json_string_value(own), region);
    json_array_foreach(places, i, place)
    {
        if (str_eq(json_string_value(place), region))
            return true;
    }
    return json_array_size(places) == 0;
}

/* Entries come with the more specific ones first, so the first of a name counts. */
static int read_family(
    const json_t *item, const char *region, struct cloud_quota_values *list, struct err *e)
{
    struct cloud_quota_value v = {.used = -1};
    struct json_reader r, details;
    char text[24];
    json_reader_init(&r, item, "dimensionsInfos", e);
    const json_t *dimensions = json_opt_object(&r, "dimensions"),
                 *limit = json_req_object(&r, "details");
    int rc = json_reader_finish_lenient(&r);
    if (rc != 0)
        return rc;
    json_reader_init(&details, limit, "dimensionsInfos.details", e);
    json_req_strcpy(&details, "value", text, sizeof(text));
    rc = json_reader_finish_lenient(&details);
    if (rc == 0 && str_eq(text, "-1"))
        str_copy(text, sizeof(text), "9223372036854775807"); /* no limit */
    if (rc == 0)
        rc = str_to_i64(text, 0, INT64_MAX, "dimensionsInfos.details.value", &v.limit, e);
    if (rc != 0 || !is_of_region(item, dimensions, region))
        return rc;
    const char *family = json_string_value(json_object_get(dimensions, "vm_family"));
    if (v.limit > CLOUD_QUOTA_LIMIT_MAX)
        v.limit = CLOUD_QUOTA_LIMIT_MAX;
    snprintf(v.name, sizeof(v.name), PER_FAMILY "%s%.16s", family ? " " : "", family ? family : "");
    return cloud_quota_values_find(list, v.name) ? 0 : cloud_quota_values_add(list, &v, e);
}

int gce_parse_family_quota(
    const char *body, size_t n, const char *region, struct cloud_quota_values *list, struct err *e)
{
    return parse_each(body, n, "Cloud Quotas", "dimensionsInfos", read_family, region, list, e);
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

/* "C4"; false if the type has no family. */
static bool family_of(const char *type, char out[16])
{
    size_t n = strcspn(type, "-");
    if (n == 0 || n >= 16)
        return false;
    for (size_t i = 0; i < n; i++)
        out[i] = type[i] >= 'a' && type[i] <= 'z' ? (char)(type[i] - 'a' + 'A') : type[i];
    out[n] = '\0';
    return true;
}

/* Families with built-in GPUs are limited by these. */
static bool has_built_in_gpu(const char *type)
{
    for (size_t i = 0; i < sizeof(built_in) / sizeof(built_in[0]); i++)
        if (str_starts(type, built_in[i].machines))
            return true;
    return false;
}

/* The quota of its vCPUs: CPUS for the families that count there, else the family's: its own in the
 * region, or of CPUS_PER_VM_FAMILY. "" if it is in none of the replies. */
static void cpus_of(const char *type, const struct cloud_quota_values *l, char out[METRIC_MAX])
{
    static const char *const shared[] = {"N1", "E2", "F1", "G1", NULL};
    char family[16], forms[3][METRIC_MAX] = {"", "", PER_FAMILY};
    size_t n = has_built_in_gpu(type) ? 1 : 3;
    str_copy(out, METRIC_MAX, "CPUS");
    if (!family_of(type, family))
        out[0] = '\0';
    if (!out[0] || str_is_one_of(family, shared))
        return;
    snprintf(forms[0], METRIC_MAX, "%s_CPUS", family);
    snprintf(forms[1], METRIC_MAX, PER_FAMILY " %s", family);
    out[0] = '\0';
    for (size_t i = 0; i < n && !out[0]; i++)
        if (cloud_quota_values_find(l, forms[i]))
            str_copy(out, METRIC_MAX, forms[i]);
}

bool gce_needs_family_quota(
    const struct cloud_machine *m, const struct cloud_quota_values *of_region)
{
    char cpus[METRIC_MAX], family[16];
    cpus_of(m->type, of_region, cpus);
    return !cpus[0] && family_of(m->type, family) && !has_built_in_gpu(m->type);
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
    if (rc == 0 && cpus[0] && !str_starts(cpus, PER_FAMILY))
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
