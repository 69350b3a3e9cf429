/* SPDX-License-Identifier: Apache-2.0
 *
 * Patterns of what is left out, as gitignore(5) has them: a line each; # begins a comment and !
 * takes out of what earlier lines left out; a / before the end ties a pattern to the directory, one
 * at the end means directories only; *, ? and [a-z] stop at a /, ** does not; a backslash takes a
 * character as it is. The last pattern that matches counts. Pure.
 */
#ifndef BELAY_CLI_WORKDIR_IGNORE_H
#define BELAY_CLI_WORKDIR_IGNORE_H

#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>

#define IGNORE_BYTES_MAX (256u << 10)
#define IGNORE_PATTERNS_MAX 1000
#define IGNORE_PATTERN_MAX 1023
#define IGNORE_STARS_MAX 4 /* of ** in one pattern */

struct ignore_pattern {
    char *text; /* without !, and without a / before or behind it */
    bool takes_back, only_dirs, is_tied;
};

struct ignore {
    struct ignore_pattern *v;
    size_t n;
};

enum ignored { IGNORED_NOT_NAMED, IGNORED_YES, IGNORED_TAKEN_BACK };

/* ERR_INVALID names the line. */
int ignore_parse(const char *p, size_t n, struct ignore *ret_ignore, struct err *e);
void ignore_deinit(struct ignore *g);

/* What the patterns say of this path itself, without a / before or behind it. What is below a
 * directory that is left out is left out, too; to find that is the caller's. */
enum ignored ignore_look(const struct ignore *g, const char *path, bool is_dir);

#endif
