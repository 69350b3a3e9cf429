/* SPDX-License-Identifier: Apache-2.0
 *
 * Errors. A function that can fail returns 0, or a negative enum err_kind, and fills its last
 * parameter. The kind is for code, the text is for people: "what was tried, on what, why not, what
 * to do". Answers (no capacity, throttled, not found, conflict) belong to the direct caller;
 * everything else travels up with context added and is logged once, where it stops travelling.
 */
#ifndef BELAY_BASE_ERR_H
#define BELAY_BASE_ERR_H

#include <stdarg.h>
#include <stdbool.h>

enum err_kind {
    ERR_NONE = 0,
    ERR_INVALID = -1,   /* the input is malformed or breaks a stated limit */
    ERR_NOT_FOUND = -2, /* the thing named does not exist (or is not yet visible) */
    ERR_CONFLICT = -3,  /* exists already, stale number, lost a conditional create */
    ERR_DENIED = -4,    /* authentication or permission */
    ERR_NO_SPACE = -5,  /* disk or quota of the file system is full */
    ERR_IO = -6,        /* an operation of the operating system or a peer failed */
    ERR_TIMEOUT = -7,   /* a deadline passed */
    ERR_CANCELLED = -8, /* the caller cancelled it */
    ERR_NO_CAPACITY = -9,
    ERR_THROTTLED = -10,
    ERR_QUOTA = -11,       /* a provider's account limit: no sibling zone helps */
    ERR_UNAVAILABLE = -12, /* the peer is there but cannot serve now: try again later */
    ERR_CORRUPT = -13,     /* stored data does not match its hash or its format */
    /* refused for a reason that only an operator can fix (image, subnet, rights) */
    ERR_CONFIG = -14,
    ERR_UNSUPPORTED = -15,
    ERR_INTERNAL = -16, /* a bug of belay that could be contained */
    /* credentials cannot be had just now, so nothing was sent: try again later */
    ERR_NO_CREDENTIALS = -17
};

#define ERR_TEXT_MAX 512

struct err {
    enum err_kind kind;
    char text[ERR_TEXT_MAX];
    /* The checkpoint store failed, not this machine: ERR_NO_SPACE may mean either. Set only by
     * store_open and the stores it opens (ckpt/store/store.h); err_wrap keeps it, a new error
     * clears it. */
    bool of_store;
    /* The quota of a job's user is used up, not the disk: ERR_NO_SPACE may mean either. Set only
     * where the agent gives a file to that user (agent/task/handover.h); otherwise like of_store.
     * */
    bool of_user;
};

/* Fills *e (may be NULL) and returns kind, so that `return err_set(e, ERR_INVALID, "...")` works.
 * A text of more than ERR_TEXT_MAX - 1 bytes loses its middle (str_shorten): its start says what
 * was tried, its end why it failed. It is one line that a terminal can show: control characters and
 * bytes that are not UTF-8 become '?'. kind must not be ERR_NONE. The arguments may point into
 * e->text. */
int err_set(struct err *e, enum err_kind kind, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* As err_set with ": strerror(errnum)" appended. The kind follows errnum: ENOSPC and EDQUOT ->
 * ERR_NO_SPACE, ENOENT -> ERR_NOT_FOUND, EEXIST -> ERR_CONFLICT, EACCES and EPERM -> ERR_DENIED,
 * ETIMEDOUT -> ERR_TIMEOUT, all others -> ERR_IO. ENOMEM aborts. */
int err_errno(struct err *e, int errnum, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts "context: " before the text already in e and keeps the rest. Returns e->kind. e must have an
 * error. Cut like err_set: the reason, at the end of the inner text, stays. */
int err_wrap(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The kind's stable lower-case name ("no-capacity"), used in JSON replies and logs. Never NULL. */
const char *err_kind_name(enum err_kind kind);

/* The kind with this name, or ERR_NONE if there is none. */
enum err_kind err_kind_from_name(const char *name);

#endif
