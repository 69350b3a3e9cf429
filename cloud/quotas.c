/* SPDX-License-Identifier: Apache-2.0 */
#include "cloud/quotas.h"

#include "base/mem.h"
#include "base/str.h"
#include <stdlib.h>

int cloud_quota_values_add(
    struct cloud_quota_values *l, const struct cloud_quota_value *v, struct err *e)
{
    if (l->n == CLOUD_QUOTA_VALUES_MAX)
        return err_set(e, ERR_INVALID, "more than %d quotas", CLOUD_QUOTA_VALUES_MAX);
    if (l->n == l->cap) {
        l->cap = l->cap ? 2 * l->cap : 32;
        l->list = mem_resize(l->list, l->cap, sizeof(*l->list));
    }
    l->list[l->n++] = *v;
    return 0;
}

void cloud_quota_values_deinit(struct cloud_quota_values *l)
{
    free(l->list);
    *l = (struct cloud_quota_values){0};
}

const struct cloud_quota_value *cloud_quota_values_find(
    const struct cloud_quota_values *l, const char *name)
{
    for (size_t i = 0; i < l->n; i++)
        if (str_eq(l->list[i].name, name))
            return &l->list[i];
    return NULL;
}

int cloud_quota_count(const json_t *v, const char *what, int64_t *ret_n, struct err *e)
{
    double n = json_number_value(v); /* 0 for any other value */
    if (!json_is_number(v))
        return err_set(e, ERR_INVALID, "%s: expected a number", what);
    if (!(n >= 0))
        return err_set(e, ERR_INVALID, "%s: expected a number from 0 on, found %g", what, n);
    *ret_n = n < (double)CLOUD_QUOTA_LIMIT_MAX ? (int64_t)n : CLOUD_QUOTA_LIMIT_MAX;
    return 0;
}

int cloud_quotas_draw(struct cloud_quotas *l, size_t machine, int64_t per_machine,
    const struct cloud_quota_value *v, const char *scope, struct err *e)
{
    struct cloud_quota q = {
        .machine = machine, .per_machine = per_machine, .limit = v->limit, .used = v->used};
    STR_COPY(q.name, v->name);
    STR_COPY(q.scope, scope);
    return cloud_quotas_add(l, &q, e);
}
