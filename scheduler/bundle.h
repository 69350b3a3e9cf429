/* SPDX-License-Identifier: Apache-2.0
 *
 * The agent as belayd hands it to machines that have none: a compressed tar for each architecture,
 * made by the build (bundle/meson.build), beside belayd: ../share/belay/bundle/agent-ARCH.tar.gz
 * when installed, ../bundle/ in a build tree. Another architecture's can be put there from a build
 * on such a machine.
 *
 * Opened and hashed once, at start, and kept open: what is served has the hash that is told, also
 * while a new version is being installed.
 */
#ifndef BELAY_SCHEDULER_BUNDLE_H
#define BELAY_SCHEDULER_BUNDLE_H

#include "base/err.h"
#include <stdint.h>

#define BUNDLE_BYTES_MAX ((int64_t)1 << 30)

enum { BUNDLE_X86_64, BUNDLE_AARCH64, BUNDLE_ARCHES };

struct bundle {
    int fd; /* -1: there is none */
    int64_t size_bytes;
    char sha256[65]; /* hex */
};

struct bundles {
    struct bundle of[BUNDLE_ARCHES];
};

/* Blocks for the reading of all there are. That there are none is not an error: images may have the
 * agent. On failure (ERR_IO, ERR_INVALID: larger than BUNDLE_BYTES_MAX) nothing is open. */
int bundles_open(struct bundles *ret_bundles, struct err *e);
/* The same, from this directory. */
int bundles_open_dir(const char *dir, struct bundles *ret_bundles, struct err *e);
/* Of zeroed ones too. */
void bundles_close(struct bundles *b);

/* NULL: ERR_INVALID (not an architecture), ERR_NOT_FOUND (there is none for it). Borrowed. */
const struct bundle *bundles_find(const struct bundles *b, const char *arch, struct err *e);

#endif
