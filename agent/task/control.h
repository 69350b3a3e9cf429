/* SPDX-License-Identifier: Apache-2.0
 *
 * The agent's side of the file protocol with the program (docs/reference/checkpoints.md), in the
 * task's control directory:
 *
 *     request     the agent wants a checkpoint: {"id", "reason", "deadline_ms"}; there until it has
 *                 one
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
 *  - A look reads CONTROL_LOOK_MAX names and goes on from there in the next one.
 *  - What is removed is first moved to where the program has no access, and stays there until the
 *    task is removed (on a thread) if it is large or a directory: to free the blocks of a large
 *    file may take seconds.
 *  - Files are made where the program has no access, and appear by rename or link.
 */
#ifndef BELAY_AGENT_TASK_CONTROL_H
#define BELAY_AGENT_TASK_CONTROL_H

#include "base/err.h"
#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CONTROL_NONE INT64_MIN /* an absent number */
#define CONTROL_LOOK_MAX 256   /* names in one look; what is done about one counts as several */

struct control_numbers {
    int64_t done, total; /* CONTROL_NONE = not given */
    bool may_go_on;      /* of a commit: it is content with being accepted */
};

struct control {
    int fd; /* -1: not open */
    /* private */
    int task_fd;            /* the task's directory, in which the program has no rights */
    DIR *scan;              /* a look that is not complete; NULL if none */
    bool is_clearing;       /* its second part: old results are removed */
    int64_t first;          /* of it: the smallest commit; 0 = none so far */
    int64_t newest, oldest; /* results; 0 = none so far */
    uint64_t discarded;
    bool is_warned; /* of an answer that could not be written */
};

void control_init(struct control *c);
/* The directory `control` of a task's directory. Harmless when it is open; stays closed if that
 * fails. */
void control_open(struct control *c, const char *task_dir);
void control_close(struct control *c); /* harmless when it is not open */

/* They need an open one, or fail. Blocking, small; nothing is synced. */

/* reason: "periodic" "user" "limit" "notice" "evict". deadline_ms: wall, or CONTROL_NONE. Replaces
 * an older request. */
int control_request(
    struct control *c, int64_t id, const char *reason, int64_t deadline_ms, struct err *e);
void control_request_done(struct control *c);

int control_notice(
    struct control *c, const char *kind, int64_t deadline_ms, int64_t now_ms, struct err *e);

enum control_found {
    CONTROL_NOTHING,
    CONTROL_COMMIT, /* the smallest K with a commit that has no result */
    /* the directory has more names than one look reads: look again, after a pause */
    CONTROL_MORE,
};

/* Commits whose program has given up are cleared away, and old results. The commit may be gone when
 * it is read. */
enum control_found control_next_commit(struct control *c, int64_t *ret_k);

/* ERR_NOT_FOUND, or ERR_INVALID: what is in it. e is filled in any case. */
int control_read_commit(
    const struct control *c, int64_t k, struct control_numbers *ret_n, struct err *e);
int control_read_progress(const struct control *c, struct control_numbers *ret_n, struct err *e);

/* -1: it does not say, or nothing that makes sense. */
int64_t control_read_waited(const struct control *c);

struct control_answer {
    const struct err *failed; /* NULL: it is stored */
    int64_t attempt, sequence;
    bool stop;     /* nothing more will be kept here: the program should exit with 85 */
    bool accepted; /* it is not durable yet */
};

/* Answers commit K and clears it away. */
void control_answer(struct control *c, int64_t k, const struct control_answer *a);

/* What came of commits that were accepted, from the first to the last (the newest of them, if they
 * are many). */
void control_stored(struct control *c, int64_t first, int64_t last, const struct control_answer *a);

/* As an agent begins: commits which the one before has accepted, and not told what came of them.
 * Those up to `sequence` (of attempt; 0 = none) are durable, the others were lost. Reads so many
 * names that only a program that does not keep to the protocol has more. */
void control_settle(struct control *c, int64_t attempt, int64_t sequence);

/* Removes another name that the program may have made, without waiting for the blocks of what it
 * names. Nothing is there: harmless. */
void control_discard(struct control *c, int dir, const char *name);

/* Pure: the JSON of commit, progress and waited files (the first key is "progress", "done" or "ms";
 * "wait" is of the first). */
int control_parse_numbers(const char *text, size_t n, const char *first_key,
    struct control_numbers *ret_n, struct err *e);

#endif
