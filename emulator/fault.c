/* SPDX-License-Identifier: Apache-2.0 */
#include "emulator/fault.h"
#include "base/mem.h"
#include "base/str.h"
#include <stdlib.h>
#include <string.h>

void faults_deinit(struct faults *f)
{
    free(f->list);
    *f = (struct faults){0};
}

bool faults_add(struct faults *f, const struct fault *fault)
{
    if (f->n == FAULTS_MAX)
        return false;
    f->list = mem_resize(f->list, f->n + 1, sizeof(*f->list));
    f->list[f->n++] = *fault;
    return true;
}

static bool applies(const struct fault *fault, enum fault_kind kind, const char *action)
{
    return fault->kind == kind &&
           (str_eq(fault->action, action) ||
               (str_eq(fault->action, "*") && !str_eq(action, FAULT_ACTION_METADATA)));
}

bool faults_take(
    struct faults *f, enum fault_kind kind, const char *action, struct fault *ret_fault)
{
    for (size_t i = 0; i < f->n; i++) {
        struct fault *fault = &f->list[i];
        if (!applies(fault, kind, action))
            continue;
        fault->count--;
        *ret_fault = *fault;
        if (fault->count == 0) {
            memmove(fault, fault + 1, (f->n - i - 1) * sizeof(*fault));
            f->n--;
        }
        return true;
    }
    return false;
}
