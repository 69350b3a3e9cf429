/* SPDX-License-Identifier: Apache-2.0
 *
 * The section `calendars:` of belayd's configuration: names to lists of days.
 */
#ifndef BELAY_SCHEDULER_CONFIG_CALENDARS_H
#define BELAY_SCHEDULER_CONFIG_CALENDARS_H

#include "job/calendar.h"
#include "base/yaml.h"

#define CONFIG_CALENDARS_MAX 100

/* Reads the section; call it while the caller's reader is at the file's root. Free the calendars
 * with config_calendars_free in all cases. */
void config_read_calendars(
    struct yaml_reader *root, struct calendar **ret_calendars, size_t *ret_n);
void config_calendars_free(struct calendar *calendars, size_t n);

#endif
