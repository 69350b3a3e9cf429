/* SPDX-License-Identifier: Apache-2.0
 *
 * Refusals of AWS's services that speak JSON 1.1: {"__type": CODE, "Message": TEXT}.
 */
#ifndef BELAY_CLOUD_AWS_JSON_ERROR_H
#define BELAY_CLOUD_AWS_JSON_ERROR_H

#include "cloud/refusal.h"

/* Fills e, with the kind from the code by the service's table, and returns the kind. A body that is
 * no such document is judged by the status. */
int aws_json_error(const char *service, const struct refusal *table, int status, const char *body,
    size_t n, struct err *e);

#endif
