/* SPDX-License-Identifier: Apache-2.0
 *
 * What the last save of an attempt has read, so that the next need not read it again: for each
 * chunk the stamps of the files it was made of (device, inode, size, modification and change time)
 * and its hash.
 *
 * Equal stamps mean equal bytes only where the kernel lets nobody write without a new change time;
 * that is relied upon when all of this holds, else the chunk is read:
 *  1. The file system is ext2/3/4, XFS or btrfs, local: it stamps with this machine's clock, and a
 *     page that is written through a mapping stamps the file when it is first written. (tmpfs does
 *     not stamp for mappings, and the clock of a file server is not ours.) The file is on the file
 *     system of the directory itself.
 *  2. The change time is older than the start of the scan that preceded the reading, by more than
 *     the clock's granularity: what is written after the scan gets a later one. No program can set
 *     it, only the clock.
 *  3. When it was opened for that reading, nobody had the file open for writing or mapped writable
 *     (a read lease was given, see fcntl(2)): a page that was written before the scan, and is still
 *     writable in somebody's mapping, could change without a stamp.
 *  4. At the end of that save all stamps were what the scan had found.
 *  5. The clock was not set back since (the distance of CLOCK_REALTIME from CLOCK_BOOTTIME tells).
 * Whoever may set the clock or write to the block device can make this wrong, and no one else.
 */
#ifndef BELAY_CKPT_SEEN_H
#define BELAY_CKPT_SEEN_H

#include "ckpt/manifest.h"
#include "ckpt/scan.h"

#define SEEN_KEY_BYTES 32

struct seen_key {
    unsigned char bytes[SEEN_KEY_BYTES];
};

/* One save's use of it: zeroed is valid and knows nothing. */
struct seen_save {
    struct ckpt_seen *seen; /* borrowed; NULL: nothing is known of earlier saves */
    bool usable;            /* 1. holds */
    uint64_t dev;
    int64_t start_ns;      /* of the scan, on the clock of the stamps */
    int64_t distance_ns;   /* of the clocks, then */
    struct seen_key *keys; /* of the manifest's chunks */
    /* 2. holds of all of the chunk's files, and as long as nothing else is found, 3. */
    unsigned char *fits;
};

/* Before the scan. */
void seen_begin(struct seen_save *u, int root_fd);

/* After it: m is cut and laid out. */
void seen_plan(struct seen_save *u, const struct manifest *m, const struct scan *scan);

/* From now on u finds what earlier saves have read, if 5. holds, and seen_end puts there what this
 * one has. seen may be NULL. */
void seen_attach(struct seen_save *u, struct ckpt_seen *seen);

/* True if chunk i was read before: its hash and size in the store are then in *c. */
bool seen_find(const struct seen_save *u, size_t i, struct manifest_chunk *c);

/* fd, opened read-only, is about to be read for chunk i: 3. is seen to. For one chunk, from one
 * thread at a time. */
void seen_reads(struct seen_save *u, size_t i, int fd);

/* 3. of the file that fd, opened read-only, is open on; and what to do where it does not hold, and
 * seen_reads is not called. */
bool seen_has_no_writer(int fd);
void seen_doubt(struct seen_save *u, size_t i);

/* True if what is written to a file with this stamp from now on shows in its change time: 1. and,
 * as of now, 2. */
bool seen_would_notice(const struct seen_save *u, const struct scan_stamp *stamp);

/* 4. holds, and m's chunks have their hashes: from now on these are what was read. */
void seen_end(struct seen_save *u, const struct manifest *m);

void seen_save_deinit(struct seen_save *u);

#endif
