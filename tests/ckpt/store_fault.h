/* SPDX-License-Identifier: Apache-2.0
 *
 * A store around another one that goes wrong on purpose, or at whose N-th call something else
 * happens.
 */
#ifndef BELAY_TESTS_CKPT_STORE_FAULT_H
#define BELAY_TESTS_CKPT_STORE_FAULT_H

#include "ckpt/store/store.h"
#include <stdatomic.h>

enum fault_mode {
    FAULT_NONE,
    FAULT_ONCE,        /* call `at` fails and does nothing */
    FAULT_REPLY,       /* call `at` does its work, and its answer is lost */
    FAULT_ONWARD,      /* call `at` and all after it fail */
    FAULT_HOOK,        /* before call `at`, hook runs */
    FAULT_HOOK_ONWARD, /* before call `at` and all after it, on several threads at once */
};

struct store_fault {
    struct store base;
    struct store *inner; /* borrowed */
    enum fault_mode mode;
    enum err_kind kind; /* of the failure */
    int at;             /* from 1 */
    const char *of;     /* only calls on names that contain this count; NULL: all */
    bool of_writes;     /* only calls that make a name count */
    atomic_int calls;
    atomic_int struck; /* times something was done */
    void (*hook)(void *ctx);
    void *hook_ctx;
};

/* Needs no closing. */
void store_fault_init(struct store_fault *f, struct store *inner, enum fault_mode mode, int at);

#endif
