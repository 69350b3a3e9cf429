/* SPDX-License-Identifier: Apache-2.0
 *
 * The machine's time zones, as its tzdata package has them, read by GLib: the one library of the
 * distribution that reads the system's own tables, is safe beside threads (localtime() of another
 * zone means setenv("TZ"), which is not, and takes a name that it does not know for UTC), and tells
 * an unknown name from a known one. ICU brings zone tables of its own, which are as old as the
 * library; libical's repeat a rule wrongly after a change.
 *
 * What GLib is asked for is copied into a plain table (base/zone.h) once, so that what decides does
 * not call it.
 */
#ifndef BELAY_BASE_TZ_SYSTEM_H
#define BELAY_BASE_TZ_SYSTEM_H

#include "base/zone.h"

/* Blocks for reading one file. ERR_NOT_FOUND: no such zone; ERR_IO: no zone tables on this
 * machine. */
extern const struct zone_source zone_source_system;

#endif
