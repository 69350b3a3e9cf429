/* SPDX-License-Identifier: Apache-2.0
 *
 * EC2's notices, from the instance metadata service: spot/instance-action, and the rebalance
 * recommendation. EC2 recommends polling every 5 s; the default here is once a second over one
 * keep-alive connection. 404 is the healthy answer.
 */
#ifndef BELAY_CLOUD_AWS_NOTICE_H
#define BELAY_CLOUD_AWS_NOTICE_H

#include "cloud/notice_reader.h"

extern const struct notice_provider aws_notice_provider;

/* Pure parser of spot/instance-action. Returns 0 and *ret_notice, or ERR_INVALID with the reason.
 */
int aws_notice_parse_action(
    const char *body, size_t n, struct wall now, struct notice *ret_notice, struct err *e);

#endif
