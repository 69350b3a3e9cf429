/* SPDX-License-Identifier: Apache-2.0
 *
 * The free space of the file system of the agent's directory, and the reserve for the agent's own
 * records (fs_reserve). Without space for its records the agent can start no task, and cannot
 * record the end of one.
 *
 * Nothing prevents files of jobs from using up the reserve. A small part of it is therefore a file,
 * DISK_RESERVE_FILE. If a record finds no space, the file is truncated piece by piece, so that the
 * end of a job can be recorded even then.
 *
 * A node with less free than the reserve reports a full disk (struct wire_status), and belayd gives
 * it no new work; the agent itself refuses nothing. The disk has space again when a quarter more
 * than the reserve is free, so that the state does not change with every file. If the records of a
 * start find no space although some is free (because of a quota, for example), the disk counts as
 * full for DISK_REFUSED_MS. If only the job's own files find no space (its checkpoint, its working
 * directory), it does not: they may be larger than the free space, or than the quota of the job's
 * user, and other jobs still find space.
 */
#ifndef BELAY_AGENT_DISK_H
#define BELAY_AGENT_DISK_H

#include "base/err.h"
#include "base/timers.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* maximum of reserved inodes: a sixty-fourth of all inodes, up to this number */
#define DISK_INODES_MAX 1024
#define DISK_INODES_SHARE 64
#define DISK_CHECK_MS 2000
#define DISK_RESERVE_FILE "reserve"  /* a file in dir */
#define DISK_RESERVE_SHARE 8         /* its size: an eighth of the reserve, ... */
#define DISK_RESERVE_MAX (1LL << 20) /* ... up to this size */
#define DISK_REFUSED_MS 60000
#define DISK_REFUSED_TEXT "a start found no space on it"

struct disk_space {
    int64_t total_bytes, free_bytes;
    int64_t total_inodes, free_inodes; /* total 0: no limit */
};

enum disk_cause { DISK_HAS_SPACE, DISK_NO_BYTES, DISK_NO_INODES, DISK_REFUSED };

/* Pure. Never returns DISK_REFUSED. was: the result of the last check; a resource that was short
 * needs a quarter more to have space again. */
enum disk_cause disk_judge(const struct disk_space *r, enum disk_cause was);
/* False if the sizes cannot be read. */
bool disk_read(const char *dir, struct disk_space *ret);
bool disk_read_fd(int fd, struct disk_space *ret);

/* The state of the disk as it is reported to belayd. */
struct disk {
    /* set by the caller; borrowed */
    const char *dir;
    struct timers *timers;
    /* called when the disk has become full, is full for another reason, or has space again */
    void (*changed)(void *ctx);
    void *ctx;
    /* private */
    struct timer check;
    struct mono refused_at;
    enum disk_cause cause;
    bool has_reserve;
    char text[160]; /* the cause, with figures from the moment when it began */
};

/* Truncates the file at path by a piece, to make space for a record. False if it is empty. */
bool disk_give(const char *path);
/* fs_write_atomic with mode 0600. On a full disk, truncates DISK_RESERVE_FILE in dir piece by piece
 * until the text fits. */
int disk_write_record(const char *dir, const char *path, const void *p, size_t n, struct err *e);

void disk_start(struct disk *d);
void disk_stop(struct disk *d); /* no effect when zeroed */
/* Call when a start found no space; examines the disk at once. of_records: the agent's own records
 * found no space. why, the error, is only logged: it may name files of the job, and every user can
 * see why a node's disk is full. */
void disk_refused(struct disk *d, bool of_records, const char *why);
/* The reason why the disk is full; "" if it has space. */
const char *disk_full(const struct disk *d);

#endif
