/* SPDX-License-Identifier: Apache-2.0
 *
 * The control endpoint's content, as functions of the regions, one per provider.
 */
#ifndef BELAY_EMULATOR_CONTROL_H
#define BELAY_EMULATOR_CONTROL_H

#include "emulator/region.h"

/* GET /state for all regions. A new object. */
json_t *control_state(struct region *const *regions, size_t n_regions, struct wall now);

/* POST /events: one event or an array of them. *ret_reply is a new object {"seq": ..., "results":
 * [...]}. The first invalid event stops it; the events before it have taken effect. */
int control_events(struct region *const *regions, size_t n_regions, const char *text, size_t n,
    struct wall now, json_t **ret_reply, struct err *e);

#endif
