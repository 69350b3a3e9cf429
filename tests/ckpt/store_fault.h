/* SPDX-License-Identifier: Apache-2.0
 *
 * Wraps a store to make its N-th call fail, or to run a hook at it.
 */
#ifndef BELAY_TESTS_CKPT_STORE_FAULT_H
#define BELAY_TESTS_CKPT_STORE_FAULT_H

#include "ckpt/store/store.h"
#include <stdatomic.h>

enum fault_mode {
    FAULT_NONE,
    FAULT_ONCE,        /* call `at` fails and does nothing */
    FAULT_REPLY,       /* call `at` is executed, but its reply is lost */
    FAULT_ONWARD,      /* call `at` and all after it fail */
    FAULT_HOOK,        /* before call `at`, hook runs */
    FAULT_HOOK_ONWARD, /* before call `at` and all after it, on several threads at once */
};

struct store_fault {
    struct store base;
    struct store *inner; /* borrowed */
    enum fault_mode mode;
    enum err_kind kind; /* kind of the failure */
    int at;             /* from 1 */
    const char *of;     /* count only calls on names that contain this; NULL = all */
    bool of_writes;     /* count only calls that create a name */
    atomic_int calls;
    atomic_int struck; /* how often a fault or hook was triggered */
    void (*hook)(void *ctx);
    void *hook_ctx;
};

/* Need not be closed. */
void store_fault_init(struct store_fault *f, struct store *inner, enum fault_mode mode, int at);

#endif
