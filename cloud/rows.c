/* SPDX-License-Identifier: Apache-2.0
 *
 * The lists in which drivers collect replies, page by page (see driver.h).
 */
#include "base/mem.h"
#include "base/str.h"
#include "cloud/driver.h"
#include <stdlib.h>

/* The list, with space for one row after its n rows. */
static void *with_space(void *list, size_t n, size_t *cap, size_t size)
{
    if (n < *cap)
        return list;
    *cap = *cap ? 2 * *cap : 32;
    return mem_resize(list, *cap, size);
}

int cloud_instances_add(struct cloud_instances *l, const struct cloud_instance *i, struct err *e)
{
    if (l->n == CLOUD_LIST_MAX)
        return err_set(e, ERR_INVALID, "more than %d instances", CLOUD_LIST_MAX);
    l->list = with_space(l->list, l->n, &l->cap, sizeof(*l->list));
    l->list[l->n++] = *i;
    return 0;
}

void cloud_instances_deinit(struct cloud_instances *l)
{
    free(l->list);
    *l = (struct cloud_instances){0};
}

int cloud_volumes_add(struct cloud_volumes *l, const struct cloud_volume *v, struct err *e)
{
    if (l->n == CLOUD_VOLUMES_MAX)
        return err_set(e, ERR_INVALID, "more than %d volumes", CLOUD_VOLUMES_MAX);
    l->list = with_space(l->list, l->n, &l->cap, sizeof(*l->list));
    l->list[l->n++] = *v;
    return 0;
}

void cloud_volumes_deinit(struct cloud_volumes *l)
{
    free(l->list);
    *l = (struct cloud_volumes){0};
}

int cloud_quotas_add(struct cloud_quotas *l, const struct cloud_quota *q, struct err *e)
{
    if (l->n == CLOUD_QUOTAS_MAX)
        return err_set(e, ERR_INVALID, "more than %d quotas", CLOUD_QUOTAS_MAX);
    l->list = with_space(l->list, l->n, &l->cap, sizeof(*l->list));
    l->list[l->n++] = *q;
    return 0;
}

void cloud_quotas_deinit(struct cloud_quotas *l)
{
    free(l->list);
    *l = (struct cloud_quotas){0};
}

/* Linear search: the lists are short (types of a pool times zones of a region). */
int cloud_prices_keep(struct cloud_prices *l, const struct cloud_price *p, struct err *e)
{
    for (size_t i = 0; i < l->n; i++) {
        struct cloud_price *known = &l->list[i];
        if (known->market == p->market && str_eq(known->type, p->type) &&
            str_eq(known->zone, p->zone)) {
            if (p->since.ms > known->since.ms)
                *known = *p;
            return 0;
        }
    }
    if (l->n == CLOUD_PRICES_MAX)
        return err_set(e, ERR_INVALID, "prices of more than %d zones and types", CLOUD_PRICES_MAX);
    l->list = with_space(l->list, l->n, &l->cap, sizeof(*l->list));
    l->list[l->n++] = *p;
    return 0;
}

void cloud_prices_deinit(struct cloud_prices *l)
{
    free(l->list);
    *l = (struct cloud_prices){0};
}
