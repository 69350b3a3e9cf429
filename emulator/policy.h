/* SPDX-License-Identifier: Apache-2.0
 *
 * Session policies: IAM's JSON, as far as S3 needs it. A session may do what one statement of its
 * policy allows and none denies; what the role may itself is not played, it may everything.
 *
 * Known: Effect, Action, Resource, and Condition with StringLike and StringEquals (each also with
 * IfExists) of s3:prefix. Anything else is refused, so that nothing is granted by a part that was
 * not understood.
 */
#ifndef BELAY_EMULATOR_POLICY_H
#define BELAY_EMULATOR_POLICY_H

#include "base/json.h"
#include <stdbool.h>

#define POLICY_MAX 2048 /* characters */

struct policy {
    json_t *statements; /* an array; NULL: there is no policy */
};

/* ERR_INVALID says what is wrong. */
int policy_parse(const char *text, size_t n, struct policy *ret_policy, struct err *e);
void policy_deinit(struct policy *p); /* zeroed is fine */

/* action: "s3:GetObject"; resource: an ARN; prefix: the request's s3:prefix, NULL: it has none. */
bool policy_allows(
    const struct policy *p, const char *action, const char *resource, const char *prefix);

#endif
