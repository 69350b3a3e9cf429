/* SPDX-License-Identifier: Apache-2.0
 *
 * The agent's side of the file protocol with the program (docs/reference/checkpoints.md), in the
 * task's control directory:
 *
 *     request     the agent wants a checkpoint: {"id", "reason", "deadline_ms"}; exists until it
 *                 has one
 *     commit.K    the program has written one: {"progress", "total", "wait"}; made exclusively, K =
 *                 1, 2, ...
 *     result.K    the answer: {"ok": true, "attempt", "sequence", "stop"} or {"ok": false,
 *                 "error"}; made exclusively, by the agent or by a program that would not wait any
 *                 longer. With "durable": false it is accepted, and there will be a
 *     stored.K    {"ok": true, "attempt", "sequence"}: it or a later one is durable; {"ok": false,
 *                 "error"}
 *     progress    {"done", "total"}
 *     waited      {"ms"}: how long it has waited for its other ranks since it began
 *     notice      the provider's warning: {"kind", "deadline_ms", "deadline", "seconds_left"}
 *
 * The program owns the directory, so nothing in it is trusted, and nothing that is there may cost
 * the agent's loop more than a bounded time:
 *  - Files are opened without following links or waiting, must be regular, the user's and small.
 *  - A scan reads CONTROL_SCAN_MAX names; the next one continues from there.
 *  - A file to remove is first moved to where the program has no access. Large files and
 *    directories stay there until the task is removed (on a thread), because freeing the blocks of
 *    a large file may take seconds.
 *  - Files are created where the program has no access, and appear by rename or link.
 */
#ifndef BELAY_AGENT_TASK_CONTROL_H
#define BELAY_AGENT_TASK_CONTROL_H

#include "base/err.h"
#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CONTROL_NONE INT64_MIN /* number is absent */
#define CONTROL_SCAN_MAX 256   /* names in one scan; acting on a name counts as several */

struct control_numbers {
    int64_t done, total; /* CONTROL_NONE = not given */
    bool may_go_on;      /* of a commit: an accepted (not yet durable) checkpoint suffices */
};

struct control {
    int fd; /* -1 = not open */
    /* private */
    int task_fd;            /* the task's directory, in which the program has no rights */
    DIR *scan;              /* the unfinished scan; NULL if none */
    bool is_clearing;       /* second part of the scan: removing old results */
    int64_t first;          /* smallest commit of this scan; 0 = none so far */
    int64_t newest, oldest; /* results of this scan; 0 = none so far */
    uint64_t discarded;
    bool is_warned; /* an answer that could not be written was logged */
};

void control_init(struct control *c);
/* Opens the directory `control` of a task's directory. No-op when open; stays closed on failure. */
void control_open(struct control *c, const char *task_dir);
void control_close(struct control *c); /* no-op when not open */

/* The functions below fail unless c is open. They block for a few small operations and sync
 * nothing. */

/* reason: "periodic" "user" "limit" "notice" "evict". deadline_ms: wall, or CONTROL_NONE. Replaces
 * an earlier request. */
int control_request(
    struct control *c, int64_t id, const char *reason, int64_t deadline_ms, struct err *e);
void control_request_done(struct control *c);

int control_notice(
    struct control *c, const char *kind, int64_t deadline_ms, int64_t now_ms, struct err *e);

enum control_found {
    CONTROL_NOTHING,
    CONTROL_COMMIT, /* the smallest K whose commit has no result */
    /* the directory has more names than one scan reads: call again after a pause */
    CONTROL_MORE,
};

/* Finds the next commit to serve. Removes old results, and commits that the program no longer waits
 * for. The commit may be gone when it is read. */
enum control_found control_next_commit(struct control *c, int64_t *ret_k);

/* Returns 0, ERR_NOT_FOUND, or ERR_INVALID (malformed). Fills e on every failure. */
int control_read_commit(
    const struct control *c, int64_t k, struct control_numbers *ret_n, struct err *e);
int control_read_progress(const struct control *c, struct control_numbers *ret_n, struct err *e);

/* Milliseconds from the file `waited`; -1 if there is none or it is malformed. */
int64_t control_read_waited(const struct control *c);

struct control_answer {
    const struct err *failed; /* NULL if it is stored */
    int64_t attempt, sequence;
    bool stop;     /* no more checkpoints will be kept here: the program should exit with 85 */
    bool accepted; /* accepted, but not yet durable */
};

/* Answers commit K and removes it. */
void control_answer(struct control *c, int64_t k, const struct control_answer *a);

/* Writes stored.K, the outcome, for the accepted commits first .. last (only the newest if they are
 * many). */
void control_stored(struct control *c, int64_t first, int64_t last, const struct control_answer *a);

/* For a starting agent: writes the outcome of commits that the previous agent accepted and left
 * open. Those up to `sequence` (of attempt; 0 = none) are durable, the others were lost. Reads a
 * bounded number of names; only a program that breaks the protocol has more. */
void control_settle(struct control *c, int64_t attempt, int64_t sequence);

/* Removes another name that the program may have made, without waiting for its blocks to be freed.
 * No-op if it does not exist. */
void control_discard(struct control *c, int dir, const char *name);

/* Pure: the JSON of commit, progress and waited files (the first key is "progress", "done" or "ms";
 * "wait" is of the first). */
int control_parse_numbers(const char *text, size_t n, const char *first_key,
    struct control_numbers *ret_n, struct err *e);

#endif
