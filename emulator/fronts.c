/* SPDX-License-Identifier: Apache-2.0
 *
 * The list of fronts, and what they share: headers, queries, replies and refusals.
 */
#include "base/str.h"
#include "base/vformat.h"
#include "emulator/front.h"
#include <string.h>
#include <strings.h>

const struct front *const fronts[] = {&ec2_front, &gce_front, &arm_front, &lambda_front, NULL};

const struct front *front_find(const char *name)
{
    for (size_t k = 0; fronts[k]; k++)
        if (str_eq(fronts[k]->name, name))
            return fronts[k];
    return NULL;
}

const char *front_header(const struct front_request *r, const char *name)
{
    for (size_t k = 0; k < r->n_headers; k++)
        if (strcasecmp(r->headers[k].name, name) == 0)
            return r->headers[k].value;
    return NULL;
}

const char *front_query(const struct front_request *r)
{
    const char *query = strchr(r->target, '?');
    return query ? query + 1 : "";
}

void front_reply_header(struct front_reply *reply, const char *name, const char *fmt, ...)
{
    if (reply->n_headers == FRONT_REPLY_HEADERS_MAX)
        return;
    reply->headers[reply->n_headers].name = name;
    VFORMAT(reply->headers[reply->n_headers].value, fmt);
    reply->n_headers++;
}

const char *front_throttled(struct region *r, const char *action, const char *throttle_code)
{
    struct fault fault;
    return faults_take(&r->faults, FAULT_THROTTLE, action, &fault) ? throttle_code : NULL;
}

const char *front_refusal(
    struct region *r, const char *action, const char *throttle_code, struct fault *ret_fault)
{
    if (faults_take(&r->faults, FAULT_REFUSE, action, ret_fault))
        return ret_fault->code;
    return front_throttled(r, action, throttle_code);
}
