/* SPDX-License-Identifier: Apache-2.0
 *
 * The section `windows:` of belayd's configuration.
 */
#ifndef BELAY_SCHEDULER_CONFIG_WINDOWS_H
#define BELAY_SCHEDULER_CONFIG_WINDOWS_H

#include "job/window.h"
#include "base/yaml.h"

#define CONFIG_WINDOWS_MAX 100

struct config_window {
    struct window window; /* without its zone */
    char tz[ZONE_NAME_MAX];
};

/* Reads the section; call it while the caller's reader is at the file's root. Free *ret_windows
 * with free() in all cases. */
void config_read_windows(
    struct yaml_reader *root, struct config_window **ret_windows, size_t *ret_n);

/* Reads the keys of one window with reader r, which is at its mapping `node`. */
void config_read_window(struct yaml_reader *r, const struct yaml_node *node,
    struct window *ret_window, char ret_tz[ZONE_NAME_MAX]);

#endif
