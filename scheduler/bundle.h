/* SPDX-License-Identifier: Apache-2.0
 *
 * The agent that belayd serves to machines without one: a compressed tar for each architecture,
 * made by the build (bundle/meson.build), at ../share/belay/bundle/agent-ARCH.tar.gz relative to
 * belayd when installed, in ../bundle/ in a build tree. Bundles of other architectures can be
 * copied there from a build on such a machine.
 *
 * Opened and hashed once, at the start, and kept open: the served file has the announced hash even
 * while a new version is being installed.
 */
#ifndef BELAY_SCHEDULER_BUNDLE_H
#define BELAY_SCHEDULER_BUNDLE_H

#include "base/err.h"
#include <stdint.h>

#define BUNDLE_BYTES_MAX ((int64_t)1 << 30)

enum { BUNDLE_X86_64, BUNDLE_AARCH64, BUNDLE_ARCHES };

struct bundle {
    int fd; /* -1 = none */
    int64_t size_bytes;
    char sha256[65]; /* hex */
};

struct bundles {
    struct bundle of[BUNDLE_ARCHES];
};

/* Opens all bundles; blocks while reading them. A missing bundle is not an error, because images
 * may have the agent. On failure (ERR_IO, ERR_INVALID: larger than BUNDLE_BYTES_MAX) nothing is
 * open. */
int bundles_open(struct bundles *ret_bundles, struct err *e);
/* The same, from this directory. */
int bundles_open_dir(const char *dir, struct bundles *ret_bundles, struct err *e);
/* Accepts zeroed ones. */
void bundles_close(struct bundles *b);

/* Returns the bundle, borrowed, or NULL: ERR_INVALID (not an architecture), ERR_NOT_FOUND (no
 * bundle for it). */
const struct bundle *bundles_find(const struct bundles *b, const char *arch, struct err *e);

#endif
