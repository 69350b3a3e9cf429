/* SPDX-License-Identifier: Apache-2.0
 *
 * Which objects the manifests of a job name, as an attempt has written or read them: so that its
 * cleanings read each manifest at most once. A manifest is never rewritten.
 */
#ifndef BELAY_CKPT_NAMED_H
#define BELAY_CKPT_NAMED_H

#include "ckpt/manifest.h"

#define NAMED_BYTES 65 /* the last part of an object's name, and the NUL */

/* Objects of one manifest. */
struct named_one {
    struct ckpt_id id;
    char (*names)[NAMED_BYTES];
    size_t n;
    bool is_kept; /* by the cleaning that is under way */
};

/* Zeroed is valid and empty. */
struct named {
    struct named_one *v;
    size_t n, cap;
};

void named_deinit(struct named *l);

/* Remembers m, which is in the store, in place of one with its id, which is there no more. The
 * result is borrowed until the next add or end. */
struct named_one *named_add(struct named *l, const struct ckpt_job *j, const struct manifest *m);
struct named_one *named_find(const struct named *l, struct ckpt_id id); /* NULL if not known */

/* At the start of a cleaning: none is kept. At its end: forgets those that are not kept. */
void named_start(struct named *l);
void named_end(struct named *l);

#endif
