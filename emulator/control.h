/* SPDX-License-Identifier: Apache-2.0
 *
 * What the control endpoint shows, as functions of the regions, one a provider.
 */
#ifndef BELAY_EMULATOR_CONTROL_H
#define BELAY_EMULATOR_CONTROL_H

#include "emulator/region.h"

/* GET /state of all regions. A new object. */
json_t *control_state(struct region *const *regions, size_t n_regions, struct wall now);

/* POST /events: one event or an array of them. *ret_reply is {"seq": ..., "results": [...]} of all,
 * a new object. The first that is wrong ends it; those before it have happened. */
int control_events(struct region *const *regions, size_t n_regions, const char *text, size_t n,
    struct wall now, json_t **ret_reply, struct err *e);

#endif
