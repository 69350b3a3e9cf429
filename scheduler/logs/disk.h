/* SPDX-License-Identifier: Apache-2.0
 *
 * Free space of the disk that output is stored on. When it becomes low, belayd says once what fills
 * the disk and what to do, and agents keep output for a while; then some is cut (log_shares.h).
 *
 * Who stores how much is counted from the files, on a thread, again and again while less than three
 * reserves are free, and never otherwise: a disk with space costs one statvfs a piece.
 */
#ifndef BELAY_SCHEDULER_LOGS_DISK_H
#define BELAY_SCHEDULER_LOGS_DISK_H

#include "base/timers.h"
#include "scheduler/logs/log_shares.h"
#include <uv.h>

#define LOG_DISK_CHECK_MS 10000 /* while it is low */
#define LOG_DISK_SPACE_MS 10000 /* agents try again within this time */
#define LOG_DISK_COUNT_MS 60000 /* from the end of a count to the next, at least */

struct log_disk;

/* Fills *ret_space; false if it is unknown, which is as if there were space. */
typedef bool (*log_space_fn)(void *ctx, struct log_space *ret_space);

/* dir: the output of jobs is DIR/<group>/<job>/<attempt>.log. loop and timers are borrowed until
 * destroy. */
struct log_disk *log_disk_create(uv_loop_t *loop, struct timers *timers, const char *dir);
/* A count on its thread ends soon by itself: run the loop afterwards. d may be NULL. */
void log_disk_destroy(struct log_disk *d);

/* db_path: the database with the owners of jobs; without it nothing is counted, and nothing cut.
 * wait_ms: how long agents keep output before it is cut. */
void log_disk_set(struct log_disk *d, const char *db_path, int64_t wait_ms);
/* For tests: another source than statvfs(dir). */
void log_disk_set_source(struct log_disk *d, log_space_fn fn, void *ctx);

/* Judges n bytes of a job; user is NULL if unknown. */
enum log_verdict log_disk_judge(struct log_disk *d, const char *user, int64_t job_bytes, int64_t n);
/* They were stored. */
void log_disk_stored(struct log_disk *d, const char *user, int64_t job_bytes, int64_t n);

/* Agents keep output. */
bool log_disk_is_low(const struct log_disk *d);

/* Whether n bytes other than output may be stored. Half of the reserve is left to what stops and
 * ends jobs, and to what administrators do. */
bool log_disk_has_space(struct log_disk *d, int64_t n);

#endif
