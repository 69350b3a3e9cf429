/* SPDX-License-Identifier: Apache-2.0
 *
 * The body of a request for a reservation for maintenance, as values.
 */
#ifndef BELAY_SCHEDULER_API_RESERVATIONS_RESERVATION_REQUEST_H
#define BELAY_SCHEDULER_API_RESERVATIONS_RESERVATION_REQUEST_H

#include "base/json.h"
#include "base/zone.h"
#include "scheduler/core/placement/maintenance_row.h"

#define RESERVATION_REQUEST_BYTES_MAX 65536

/* Sets the request's members of the row; it begins at `now` if the body does not say when. Whether
 * the nodes exist and the times are possible is the core's to say. ERR_INVALID. */
int reservation_request_parse(const json_t *body, struct zones *zones, struct wall now,
    struct maintenance_row *ret_row, struct err *e);

#endif
