/* SPDX-License-Identifier: Apache-2.0
 *
 * What the last save of an attempt has read, so that the next need not read it again: for each
 * chunk the stamps of the files it was made of (device, inode, size, modification and change time)
 * and its hash.
 *
 * Equal stamps mean equal bytes only if every write gets a new change time. That is so if all of
 * the following is true; otherwise the chunk is read:
 *  1. The file system is ext2/3/4, XFS or btrfs, local: it stamps with this machine's clock, and
 *     the first write to a mapped page stamps the file. (tmpfs does not stamp for mappings, and a
 *     file server has another clock.) The file is on the file system of the directory itself.
 *  2. The change time is older than the start of the scan that preceded the reading, by more than
 *     the clock's granularity: writes after the scan get a later one. Programs cannot set it,
 *     except through the clock.
 *  3. When it was opened for that reading, no process had the file open for writing or mapped
 *     writable (a read lease was granted, see fcntl(2)): a page written before the scan that is
 *     still writable in a mapping could change without a stamp.
 *  4. At the end of that save all stamps were as scanned.
 *  5. The clock was not set back since (shown by the difference of CLOCK_REALTIME and
 *     CLOCK_BOOTTIME).
 * Only those who may set the clock or write to the block device can break this.
 */
#ifndef BELAY_CKPT_SEEN_H
#define BELAY_CKPT_SEEN_H

#include "ckpt/manifest.h"
#include "ckpt/named.h"
#include "ckpt/scan.h"

#define SEEN_KEY_BYTES 32

struct seen_key {
    unsigned char bytes[SEEN_KEY_BYTES];
};

/* State of one save; zeroed is valid and knows nothing. */
struct seen_save {
    struct ckpt_seen *seen; /* borrowed; NULL if nothing is known of earlier saves */
    bool usable;            /* 1. is true */
    uint64_t dev;
    int64_t start_ns;      /* of the scan, on the clock of the stamps */
    int64_t distance_ns;   /* difference of the clocks at that moment */
    struct seen_key *keys; /* of the manifest's chunks */
    /* 2. is true of all of the chunk's files, and 3. unless found otherwise */
    unsigned char *fits;
};

/* What the manifests that the attempt has written or read name. */
struct named *seen_named(struct ckpt_seen *seen);

/* Call before the scan. */
void seen_begin(struct seen_save *u, int root_fd);

/* Call after the scan, when m is cut and laid out. */
void seen_plan(struct seen_save *u, const struct manifest *m, const struct scan *scan);

/* Connects u with what earlier saves have read, if 5. is true, and where seen_end stores what this
 * save has read. seen may be NULL. */
void seen_attach(struct seen_save *u, struct ckpt_seen *seen);

/* True if chunk i was read before; *c then has its hash and stored size. */
bool seen_find(const struct seen_save *u, size_t i, struct manifest_chunk *c);

/* Call before reading fd, opened read-only, for chunk i: checks 3. For each chunk from one thread
 * at a time. */
void seen_reads(struct seen_save *u, size_t i, int fd);

/* seen_has_no_writer: whether 3. is true of the file that fd, opened read-only, is open on.
 * seen_exclude: records that it is not true, for files that seen_reads does not check. */
bool seen_has_no_writer(int fd);
void seen_exclude(struct seen_save *u, size_t i);

/* True if later writes to a file with this stamp will show in its change time: 1. and, as of now,
 * 2. */
bool seen_would_notice(const struct seen_save *u, const struct scan_stamp *stamp);

/* Call when 4. is true and m's chunks have their hashes: records them as read. */
void seen_end(struct seen_save *u, const struct manifest *m);

void seen_save_deinit(struct seen_save *u);

#endif
