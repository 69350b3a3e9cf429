/* SPDX-License-Identifier: Apache-2.0
 *
 * The files of the web console (web/), which web/bundle.py made part of the program.
 */
#ifndef BELAY_SCHEDULER_CONSOLE_H
#define BELAY_SCHEDULER_CONSOLE_H

#include <stddef.h>

struct console_file {
    const char *path; /* "/console/assets/main-0123456789abcdef.js": its name has its digest */
    const char *content_type;
    const unsigned char *plain;
    size_t plain_len;
    const unsigned char *zipped; /* by gzip */
    size_t zipped_len;
};

/* The first is index.html; ends with a row whose path is NULL. Without the console there is only
 * that row. */
extern const struct console_file console_files[];

#endif
