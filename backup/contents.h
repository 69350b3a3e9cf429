/* SPDX-License-Identifier: Apache-2.0
 *
 * The last entry of a backup: what is in it, with sizes and hashes, and of which cluster it is. An
 * archive without one is incomplete.
 */
#ifndef BELAY_BACKUP_CONTENTS_H
#define BELAY_BACKUP_CONTENTS_H

#include "base/buf.h"
#include "base/time.h"

#define MANIFEST_NAME "manifest.json"
#define CONTENTS_FILES_MAX 64
#define CONTENTS_BYTES_MAX (64 << 10)

struct contents_file {
    char name[100];
    int64_t bytes;
    char sha256[65];
};

struct contents {
    char belay[32];       /* version of the program that made it */
    char cluster_uid[17]; /* "" = unknown */
    int64_t schema, epoch;
    struct wall made_at;
    char config[1024]; /* where the configuration was; "" = none is in the backup */
    size_t n_files;
    struct contents_file files[CONTENTS_FILES_MAX];
};

void contents_format(const struct contents *m, struct buf *out);
/* ERR_CORRUPT; ERR_UNSUPPORTED: written by a newer belay in another format. */
int contents_parse(const char *text, size_t n, struct contents *ret_contents, struct err *e);
/* NULL if there is none. */
const struct contents_file *contents_find(const struct contents *m, const char *name);

#endif
