/* SPDX-License-Identifier: Apache-2.0
 *
 * The machine's time zones, from its tzdata package, read by GLib. GLib is the one library of the
 * distribution that reads the system's own tables, is thread-safe, and tells an unknown name from a
 * known one. localtime() of another zone needs setenv("TZ"), which is not thread-safe, and takes an
 * unknown name for UTC. ICU ships its own tables, which are as old as the library; libical repeats
 * rules incorrectly after a change.
 *
 * The data is copied once into a plain table (base/zone.h), so that decisions do not call GLib.
 */
#ifndef BELAY_BASE_TZ_SYSTEM_H
#define BELAY_BASE_TZ_SYSTEM_H

#include "base/zone.h"

/* Blocks to read one file. ERR_NOT_FOUND: no such zone; ERR_IO: this machine has no zone tables. */
extern const struct zone_source zone_source_system;

#endif
