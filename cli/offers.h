/* SPDX-License-Identifier: Apache-2.0
 *
 * Offers in the replies of belayd, for the verbs that print them.
 */
#ifndef BELAY_CLI_OFFERS_H
#define BELAY_CLI_OFFERS_H

#include "base/json.h"

/* Removes offers that are no longer configured. */
void offers_drop_withdrawn(json_t *offers);

#endif
