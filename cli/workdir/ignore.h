/* SPDX-License-Identifier: Apache-2.0
 *
 * Patterns in the syntax of gitignore(5), one per line: # begins a comment; ! re-includes what
 * earlier lines excluded; a / before the end anchors a pattern to the directory, one at the end
 * matches directories only; *, ? and [a-z] do not match a /, ** does; a backslash makes a character
 * literal. The last matching pattern decides. Pure.
 */
#ifndef BELAY_CLI_WORKDIR_IGNORE_H
#define BELAY_CLI_WORKDIR_IGNORE_H

#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>

#define IGNORE_BYTES_MAX (256u << 10)
#define IGNORE_PATTERNS_MAX 1000
#define IGNORE_PATTERN_MAX 1023
#define IGNORE_STARS_MAX 4 /* number of ** in one pattern */

struct ignore_pattern {
    char *text; /* without !, and without leading or trailing / */
    bool reincludes, only_dirs, is_anchored;
};

struct ignore {
    struct ignore_pattern *v;
    size_t n;
};

enum ignored { IGNORED_NOT_NAMED, IGNORED_YES, IGNORED_REINCLUDED };

/* ERR_INVALID names the line. */
int ignore_parse(const char *p, size_t n, struct ignore *ret_ignore, struct err *e);
void ignore_deinit(struct ignore *g);

/* Whether the patterns exclude this path, without leading or trailing /. Everything below an
 * excluded directory is excluded too; the caller handles that. */
enum ignored ignore_match(const struct ignore *g, const char *path, bool is_dir);

#endif
