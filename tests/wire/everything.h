/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages with a value in every member, so that a codec that forgets one is found.
 */
#ifndef BELAY_TESTS_WIRE_EVERYTHING_H
#define BELAY_TESTS_WIRE_EVERYTHING_H

#include "base/wire/wire.h"

/* The caller deinitialises them. */
struct wire_status status_of_everything(void);
struct wire_desired desired_of_everything(void);

#endif
