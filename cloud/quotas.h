/* SPDX-License-Identifier: Apache-2.0
 *
 * Quotas as providers report them, shared by the drivers: named limits, and what is used of each.
 */
#ifndef BELAY_CLOUD_QUOTAS_H
#define BELAY_CLOUD_QUOTAS_H

#include "base/json.h"
#include "cloud/driver.h"

#define CLOUD_QUOTA_VALUES_MAX 10000 /* of one account and region */
/* Providers report larger ones where there is no limit. */
#define CLOUD_QUOTA_LIMIT_MAX INT64_C(1000000000000)

struct cloud_quota_value {
    char name[CLOUD_QUOTA_NAME_MAX];
    int64_t limit, used; /* used -1 = unknown */
};

/* Grown by appending. Zeroed is valid and empty. */
struct cloud_quota_values {
    struct cloud_quota_value *list;
    size_t n, cap;
};

/* ERR_INVALID beyond CLOUD_QUOTA_VALUES_MAX. */
int cloud_quota_values_add(
    struct cloud_quota_values *l, const struct cloud_quota_value *v, struct err *e);
void cloud_quota_values_deinit(struct cloud_quota_values *l);
/* NULL if there is none of that name. */
const struct cloud_quota_value *cloud_quota_values_find(
    const struct cloud_quota_values *l, const char *name);

/* Reads a count that providers write as an integer or with a fraction, which is cut off; more than
 * CLOUD_QUOTA_LIMIT_MAX counts as that. ERR_INVALID: not a number, or negative; the text names
 * `what`. */
int cloud_quota_count(const json_t *v, const char *what, int64_t *ret_n, struct err *e);

/* Adds the row that the machine of that index takes per_machine of the quota. */
int cloud_quotas_draw(struct cloud_quotas *l, size_t machine, int64_t per_machine,
    const struct cloud_quota_value *v, const char *scope, struct err *e);

#endif
