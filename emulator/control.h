/* SPDX-License-Identifier: Apache-2.0
 *
 * The control endpoint: its content, as functions of the regions, one per provider, and its HTTP
 * handler.
 */
#ifndef BELAY_EMULATOR_CONTROL_H
#define BELAY_EMULATOR_CONTROL_H

#include "base/uv/http_server.h"
#include "emulator/region.h"

struct emulator;

/* GET /state for all regions. A new object. */
json_t *control_state(struct region *const *regions, size_t n_regions, struct wall now);

/* POST /events: one event or an array of them. *ret_reply is a new object {"seq": ..., "results":
 * [...]}. The first invalid event stops it; the events before it have taken effect. */
int control_events(struct region *const *regions, size_t n_regions, const char *text, size_t n,
    struct wall now, json_t **ret_reply, struct err *e);

/* The control endpoint's HTTP handler; ctx is the emulator. */
void control_handle(void *ctx, struct http_exchange *x, const struct http_server_request *r);
/* answers the requests whose events are now in the journal */
void control_wake(struct emulator *em);

#endif
