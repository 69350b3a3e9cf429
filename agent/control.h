/* SPDX-License-Identifier: Apache-2.0
 *
 * The agent's side of the file protocol with the program (docs/checkpoints.md), in the task's control
 * directory:
 *
 *     request     the agent wants a checkpoint: {"id", "reason", "deadline_ms"}; there until it has one
 *     commit.K    the program has written one: {"progress", "total", "wait"}; made exclusively, K = 1, 2, ...
 *     result.K    the answer: {"ok": true, "attempt", "sequence", "stop"} or {"ok": false, "error"}; made
 *                 exclusively, by the agent or by a program that would not wait any longer. With "durable": false it
 *                 is accepted, and there will be a
 *     stored.K    {"ok": true, "attempt", "sequence"}: it or a later one is durable; {"ok": false, "error"}
 *     progress    {"done", "total"}
 *     waited      {"ms"}: how long it has waited for its other ranks since it began
 *     notice      the provider's warning: {"kind", "deadline_ms", "deadline", "seconds_left"}
 *
 * The program owns the directory, so nothing in it is trusted: files are opened without following links, must
 * be regular and small.
 */
#ifndef BELAY_AGENT_CONTROL_H
#define BELAY_AGENT_CONTROL_H

#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CONTROL_NONE INT64_MIN /* an absent number */

struct control_numbers {
    int64_t done, total; /* CONTROL_NONE: not given */
    bool may_go_on;      /* of a commit: it is content with being accepted */
};

/* All take the directory's descriptor. Blocking, small; nothing is synced. */

/* reason: "periodic" "user" "limit" "notice" "evict". deadline_ms: wall, or CONTROL_NONE. Replaces an older request. */
int control_request(int dir, int64_t id, const char *reason, int64_t deadline_ms, struct err *e);
void control_request_done(int dir);

int control_notice(int dir, const char *kind, int64_t deadline_ms, int64_t now_ms, struct err *e);

/* The smallest K with a commit that has no result. False: there is none. Commits whose program has given up
 * are cleared away, and old results. */
bool control_next_commit(int dir, int64_t *ret_k);

/* ERR_NOT_FOUND, or ERR_INVALID: what is in it. */
int control_read_commit(int dir, int64_t k, struct control_numbers *ret_n, struct err *e);
int control_read_progress(int dir, struct control_numbers *ret_n, struct err *e);

/* -1: it does not say, or nothing that makes sense. */
int64_t control_read_waited(int dir);

struct control_answer {
    const struct err *failed; /* NULL: it is stored */
    int64_t attempt, sequence;
    bool stop;     /* nothing more will be kept here: the program should exit with 85 */
    bool accepted; /* it is not durable yet */
};

/* Answers commit K and clears it away. */
void control_answer(int dir, int64_t k, const struct control_answer *a);

/* What came of commits that were accepted, from the first to the last (the newest of them, if they are many). */
void control_stored(int dir, int64_t first, int64_t last, const struct control_answer *a);

/* As an agent begins: commits which the one before has accepted, and not told what came of them. Those up to `sequence`
 * (of attempt; 0: none) are durable, the others were lost. */
void control_settle(int dir, int64_t attempt, int64_t sequence);

/* Pure: the JSON of commit, progress and waited files (the first key is "progress", "done" or "ms"; "wait" is of the first). */
int control_parse_numbers(
    const char *text, size_t n, const char *first_key, struct control_numbers *ret_n, struct err *e);

#endif
