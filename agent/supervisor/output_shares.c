/* SPDX-License-Identifier: Apache-2.0
 *
 * Invariant: a process has at most one entry. It is found by its pid, so that a supervisor keeps no
 * handle from task to task.
 */
#include "agent/supervisor/output_shares.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

struct share {
    atomic_int pid; /* 0 = free */
    atomic_uint user;
    atomic_llong bytes;
};

struct output_shares {
    struct share v[OUTPUT_SHARES_MAX];
};

struct output_shares *output_shares_create(void)
{
    struct output_shares *s =
        mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return s == MAP_FAILED ? NULL : s;
}

static bool is_gone(int pid)
{
    return kill(pid, 0) < 0 && errno == ESRCH;
}

static struct share *own(struct output_shares *s)
{
    int self = getpid();
    for (size_t i = 0; i < OUTPUT_SHARES_MAX; i++)
        if (atomic_load(&s->v[i].pid) == self)
            return &s->v[i];
    return NULL;
}

static struct share *claim(struct output_shares *s)
{
    for (size_t i = 0; i < OUTPUT_SHARES_MAX; i++) {
        int pid = atomic_load(&s->v[i].pid);
        if ((pid == 0 || is_gone(pid)) &&
            atomic_compare_exchange_strong(&s->v[i].pid, &pid, getpid()))
            return &s->v[i];
    }
    return NULL;
}

void output_shares_set(struct output_shares *s, uid_t user, int64_t bytes)
{
    struct share *x = s ? own(s) : NULL;
    if (s && !x && bytes > 0)
        x = claim(s);
    if (!x)
        return;
    atomic_store(&x->user, user);
    atomic_store(&x->bytes, bytes);
    if (bytes == 0)
        atomic_store(&x->pid, 0);
}

int64_t output_shares_others(const struct output_shares *s, uid_t user)
{
    int64_t sum = 0;
    for (size_t i = 0; s && i < OUTPUT_SHARES_MAX; i++) {
        const struct share *x = &s->v[i];
        int pid = atomic_load(&x->pid);
        if (pid != 0 && pid != getpid() && atomic_load(&x->user) == user && !is_gone(pid))
            sum += atomic_load(&x->bytes);
    }
    return sum;
}
