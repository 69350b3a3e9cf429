/* SPDX-License-Identifier: Apache-2.0
 *
 * Reference: https://learn.microsoft.com/en-us/rest/api/compute/usage/list
 */
#include "cloud/azure/arm_usages.h"

#include "base/json.h"
#include "base/str.h"
#include <stdio.h>
#include <string.h>

#define USAGES_API "2022-08-01"
#define FAMILY_MAX 96
#define SPOT "lowPriorityCores"
#define ALL "cores"

void arm_path_usages(const struct azure_machine *m, const char *region, struct buf *out)
{
    buf_printf(out,
        "/subscriptions/%s/providers/Microsoft.Compute/locations/%s/usages?api-version=" USAGES_API,
        m->subscription, region);
}

/* ---- replies ---- */

static int read_usage(const json_t *item, struct cloud_quota_values *list, struct err *e)
{
    struct cloud_quota_value v = {0};
    struct json_reader r;
    json_reader_init(&r, item, "value", e);
    const json_t *name = json_req_object(&r, "name");
    int rc = json_reader_finish_lenient(&r);
    if (rc != 0)
        return rc;
    json_reader_init(&r, name, "value.name", e);
    json_req_strcpy(&r, "value", v.name, sizeof(v.name));
    rc = json_reader_finish_lenient(&r);
    if (rc == 0)
        rc = cloud_quota_count(json_object_get(item, "limit"), "value.limit", &v.limit, e);
    if (rc == 0)
        rc = cloud_quota_count(
            json_object_get(item, "currentValue"), "value.currentValue", &v.used, e);
    return rc == 0 ? cloud_quota_values_add(list, &v, e) : rc;
}

int arm_parse_usages(
    const char *body, size_t n, struct cloud_quota_values *list, char *next, struct err *e)
{
    struct json_reader r;
    char link[ARM_URL_MAX + 1] = "";
    json_t *root;
    int rc = json_parse(body, n, ARM_REPLY_MAX, &root, e);
    if (rc != 0)
        return err_wrap(e, "Azure's reply");
    json_reader_init(&r, root, "", e);
    const json_t *items = json_req_array(&r, "value", CLOUD_QUOTA_VALUES_MAX);
    json_opt_strcpy(&r, "nextLink", link, sizeof(link), "");
    rc = json_reader_finish_lenient(&r);
    for (size_t i = 0; rc == 0 && i < json_array_size(items); i++)
        rc = read_usage(json_array_get(items, i), list, e);
    json_decref(root);
    if (rc != 0)
        return err_wrap(e, "Azure's reply");
    str_copy(next, ARM_URL_MAX + 1, link);
    return 0;
}

/* ---- which quota ---- */

/* Adds the letters, in lower case, and digits of the n bytes at s. */
static void add_plain(char *out, size_t size, const char *s, size_t n)
{
    size_t len = strlen(out);
    for (size_t i = 0; i < n && len + 1 < size; i++) {
        char c = s[i] >= 'A' && s[i] <= 'Z' ? (char)(s[i] - 'A' + 'a') : s[i];
        if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))
            out[len++] = c;
    }
    out[len] = '\0';
}

/* "Standard_NC4as_T4_v3" into "nc", "as", "t4" and "v3". False for another form. */
static bool split(
    const char *size, char series[FAMILY_MAX], char gpu[FAMILY_MAX], char version[FAMILY_MAX])
{
    static const char head[] = "Standard_";
    series[0] = gpu[0] = version[0] = '\0';
    if (!str_starts(size, head))
        return false;
    const char *p = size + strlen(head);
    size_t letters = strspn(p, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
    size_t digits = strspn(p + letters, "0123456789-");
    if (letters == 0 || digits == 0)
        return false;
    add_plain(series, FAMILY_MAX, p, letters);
    p += letters + digits;
    add_plain(series, FAMILY_MAX, p, strcspn(p, "_"));
    for (p += strcspn(p, "_"); *p == '_'; p += strcspn(p, "_")) {
        p++;
        bool is_version = *p == 'v' && p[1] >= '0' && p[1] <= '9';
        add_plain(is_version ? version : gpu, FAMILY_MAX, p, strcspn(p, "_"));
    }
    return true;
}

/* Azure writes the version before or after the GPU: "Standard NCASv3_T4 Family",
 * "StandardNCADSA100v4Family". */
static const struct cloud_quota_value *find_family(
    const char *size, const struct cloud_quota_values *l)
{
    char series[FAMILY_MAX], gpu[FAMILY_MAX], version[FAMILY_MAX], name[CLOUD_QUOTA_NAME_MAX];
    char wanted[2][4 * FAMILY_MAX];
    if (!split(size, series, gpu, version))
        return NULL;
    snprintf(wanted[0], sizeof(wanted[0]), "standard%s%s%sfamily", series, gpu, version);
    snprintf(wanted[1], sizeof(wanted[1]), "standard%s%s%sfamily", series, version, gpu);
    for (size_t i = 0; i < l->n; i++) {
        name[0] = '\0';
        add_plain(name, sizeof(name), l->list[i].name, strlen(l->list[i].name));
        if (str_eq(name, wanted[0]) || str_eq(name, wanted[1]))
            return &l->list[i];
    }
    return NULL;
}

int arm_draw_usages(const struct cloud_machine *m, size_t index, const char *region,
    const struct cloud_quota_values *values, struct cloud_quotas *rows, struct err *e)
{
    bool is_spot = m->market == CLOUD_SPOT;
    const struct cloud_quota_value *all = cloud_quota_values_find(values, is_spot ? SPOT : ALL),
                                   *family = is_spot ? NULL : find_family(m->type, values);
    int rc = all ? cloud_quotas_draw(rows, index, m->vcpus, all, region, e) : 0;
    return rc == 0 && family ? cloud_quotas_draw(rows, index, m->vcpus, family, region, e) : rc;
}
