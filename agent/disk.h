/* SPDX-License-Identifier: Apache-2.0
 *
 * The file system of the agent's directory, and the part of it that is kept for the agent's own
 * records (fs_reserve). Without room for them no task can be started, and the end of one that ran
 * could not be recorded.
 *
 * Nothing prevents other files of jobs from taking that room. So that the end of a job can be
 * recorded even then, a small part of it is in a file, DISK_HELD, and is given away piece by piece
 * when a record finds no room.
 *
 * A node with less than that free reports it, and refuses nothing by itself: belayd gives it no new
 * work (struct wire_status). It has room again with a quarter more than that, so that its
 * state does not change with every file. A start whose records found no room although some is free
 * (a quota, for example) counts as a full disk for DISK_REFUSED_MS. One that only found no room for
 * the job's own files (its checkpoint, its working directory) does not: they may be larger than
 * what is free, or than the quota of the job's user, and others still find room.
 */
#ifndef BELAY_AGENT_DISK_H
#define BELAY_AGENT_DISK_H

#include "base/err.h"
#include "base/timers.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DISK_INODES_MAX 1024 /* inodes that are kept: a sixty-fourth of all, at most so many */
#define DISK_INODES_SHARE 64
#define DISK_LOOK_MS 2000
#define DISK_HELD "reserve"       /* in dir */
#define DISK_HELD_SHARE 8         /* an eighth of what is kept, ... */
#define DISK_HELD_MAX (1LL << 20) /* ... at most so much */
#define DISK_REFUSED_MS 60000
#define DISK_REFUSED_TEXT "a start found no room on it"

struct disk_room {
    int64_t total_bytes, free_bytes;
    int64_t total_inodes, free_inodes; /* total 0: they have no limit */
};

enum disk_cause { DISK_HAS_ROOM, DISK_NO_BYTES, DISK_NO_INODES, DISK_REFUSED };

/* Pure. Not DISK_REFUSED. was: at the last look; what was short has room with a quarter more. */
enum disk_cause disk_judge(const struct disk_room *r, enum disk_cause was);
/* False if it cannot be read: nothing is known then. */
bool disk_read(const char *dir, struct disk_room *ret);
bool disk_read_fd(int fd, struct disk_room *ret);

/* The state of the disk as it is reported to belayd. */
struct disk {
    /* set by the caller; borrowed */
    const char *dir;
    struct timers *timers;
    void (*changed)(void *ctx); /* it has become full, for another reason, or has room again */
    void *ctx;
    /* private */
    struct timer look;
    struct mono refused_at;
    enum disk_cause cause;
    bool is_held;
    char text[160]; /* the cause, as of the moment it began */
};

/* Gives away a piece of the file at path, for a record. False if nothing is left. */
bool disk_give(const char *path);
/* fs_write_atomic with mode 0600. On a full disk, gives away pieces of what is held in dir until
 * the text fits. */
int disk_write_record(const char *dir, const char *path, const void *p, size_t n, struct err *e);

void disk_start(struct disk *d);
void disk_stop(struct disk *d); /* no effect when zeroed */
/* A start found no room: looks at once. of_records: for the agent's own records. why, its error, is
 * only logged: it may name files of the job, and every user sees why a node's disk is full. */
void disk_refused(struct disk *d, bool of_records, const char *why);
/* Why it is full; "" if it has room. */
const char *disk_full(const struct disk *d);

#endif
