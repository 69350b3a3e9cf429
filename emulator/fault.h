/* SPDX-License-Identifier: Apache-2.0
 *
 * Faults queued for the next calls of an action. "metadata" is the action of an instance's metadata
 * service; "*" matches every action of the API (not the metadata service).
 */
#ifndef BELAY_EMULATOR_FAULT_H
#define BELAY_EMULATOR_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FAULT_ACTION_METADATA "metadata"
#define FAULT_NAME_MAX 64
#define FAULTS_MAX 1000

enum fault_kind {
    FAULT_THROTTLE, /* refused with RequestLimitExceeded */
    FAULT_REFUSE,   /* refused with a code; no effect */
    FAULT_SLOW,     /* takes effect at once, the reply is delayed by ms */
    FAULT_DROP      /* takes effect, the reply is lost */
};

enum fault_drop { DROP_CLOSE, DROP_GARBAGE, DROP_ERROR, DROP_TORN };

struct fault {
    enum fault_kind kind;
    char action[FAULT_NAME_MAX];
    char code[FAULT_NAME_MAX];
    int64_t ms;
    enum fault_drop drop;
    int64_t count; /* remaining calls it applies to, >= 1 */
};

struct faults {
    struct fault *list;
    size_t n;
};

void faults_deinit(struct faults *f); /* also removes all faults */
/* false if there are FAULTS_MAX already */
bool faults_add(struct faults *f, const struct fault *fault);

/* Takes the oldest fault of that kind for that action, if there is one; decrements its count. */
bool faults_take(
    struct faults *f, enum fault_kind kind, const char *action, struct fault *ret_fault);

#endif
