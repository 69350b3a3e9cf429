/* SPDX-License-Identifier: Apache-2.0
 *
 * Session policies: IAM's JSON, as far as S3 needs it. A session may do what some statement of its
 * policy allows and none denies; the role's own permissions are not emulated, it may do everything.
 *
 * Known: Effect, Action, Resource, and Condition with StringLike and StringEquals (each also with
 * IfExists) on s3:prefix. Anything else is refused, so that a part that was not understood grants
 * nothing.
 */
#ifndef BELAY_EMULATOR_POLICY_H
#define BELAY_EMULATOR_POLICY_H

#include "base/json.h"
#include <stdbool.h>

#define POLICY_MAX 2048 /* characters */

struct policy {
    json_t *statements; /* an array; NULL if there is no policy */
};

/* ERR_INVALID with the reason. */
int policy_parse(const char *text, size_t n, struct policy *ret_policy, struct err *e);
void policy_deinit(struct policy *p); /* p may be zeroed */

/* action: "s3:GetObject"; resource: an ARN; prefix: the request's s3:prefix, may be NULL. */
bool policy_allows(
    const struct policy *p, const char *action, const char *resource, const char *prefix);

#endif
