/* SPDX-License-Identifier: Apache-2.0
 *
 * See store_auth.h. A wait ends when credentials are set, or fail, after it began: an older failure
 * may be outdated.
 */
#include "ckpt/store/store_auth.h"
#include "base/mem.h"
#include "base/str.h"
#include <errno.h>
#include <openssl/crypto.h>
#include <pthread.h>
#include <stdlib.h>

#define CHECK_MS 100 /* polling of cancel */

struct store_auth {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct store_keys keys; /* number 0 = none yet */
    struct err failure;     /* the last one */
    uint64_t n_failures;
    bool is_refused; /* keys were refused, and take_refusal has not reported it */
    store_auth_want_fn want;
    void *want_ctx;
};

void store_keys_wipe(struct store_keys *k)
{
    OPENSSL_cleanse(k, sizeof(*k));
}

int store_keys_of_token(enum store_keys_kind kind, const char *token, int64_t left_ms,
    struct store_keys *ret_keys, struct err *e)
{
    *ret_keys =
        (struct store_keys){.kind = kind, .expires = {clock_wall(&clock_system).ms + left_ms}};
    if (!STR_COPY(ret_keys->token, token))
        return err_set(
            e, ERR_INVALID, "the token is longer than %zu bytes", sizeof(ret_keys->token) - 1);
    return 0;
}

struct store_auth *store_auth_create(store_auth_want_fn want, void *ctx)
{
    struct store_auth *a = mem_alloc(sizeof(*a));
    pthread_condattr_t attr;
    a->want = want;
    a->want_ctx = ctx;
    pthread_mutex_init(&a->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&a->changed, &attr);
    pthread_condattr_destroy(&attr);
    return a;
}

void store_auth_destroy(struct store_auth *a)
{
    if (!a)
        return;
    pthread_cond_destroy(&a->changed);
    pthread_mutex_destroy(&a->lock);
    store_keys_wipe(&a->keys);
    free(a);
}

void store_auth_set(struct store_auth *a, const struct store_keys *k)
{
    pthread_mutex_lock(&a->lock);
    uint64_t number = a->keys.number + 1;
    store_keys_wipe(&a->keys);
    a->keys = *k;
    a->keys.number = number;
    a->is_refused = false;
    pthread_cond_broadcast(&a->changed);
    pthread_mutex_unlock(&a->lock);
}

void store_auth_fail(struct store_auth *a, const struct err *why)
{
    pthread_mutex_lock(&a->lock);
    a->failure = *why;
    a->n_failures++;
    pthread_cond_broadcast(&a->changed);
    pthread_mutex_unlock(&a->lock);
}

bool store_auth_take_refusal(struct store_auth *a)
{
    pthread_mutex_lock(&a->lock);
    bool is_refused = a->is_refused;
    a->is_refused = false;
    pthread_mutex_unlock(&a->lock);
    return is_refused;
}

static int64_t left_ms(const struct store_auth *a)
{
    return wall_is_set(a->keys.expires) ? a->keys.expires.ms - clock_wall(&clock_system).ms
                                        : INT64_MAX;
}

static bool are_usable(const struct store_auth *a, uint64_t refused)
{
    return a->keys.number > refused && left_ms(a) > 0;
}

/* Waits for a change, at most CHECK_MS. */
static void wait_for_change(struct store_auth *a)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_nsec += CHECK_MS * 1000000L;
    at.tv_sec += at.tv_nsec / 1000000000L;
    at.tv_nsec %= 1000000000L;
    pthread_cond_timedwait(&a->changed, &a->lock, &at);
}

/* Called locked. */
static int wait_for_keys(struct store_auth *a, uint64_t refused, uint64_t failures_before,
    int64_t timeout_ms, const atomic_int *cancel, struct err *e)
{
    const int64_t deadline_ms = clock_mono(&clock_system).ms + timeout_ms;
    while (!are_usable(a, refused)) {
        if (a->n_failures > failures_before) {
            *e = a->failure;
            return e->kind;
        }
        if (cancel && atomic_load(cancel) != 0)
            return err_set(e, ERR_CANCELLED, "cancelled while waiting for credentials");
        if (clock_mono(&clock_system).ms >= deadline_ms)
            return err_set(e, ERR_TIMEOUT, "no credentials within %lld ms", (long long)timeout_ms);
        wait_for_change(a);
    }
    return 0;
}

int store_auth_get(struct store_auth *a, uint64_t refused, int64_t timeout_ms,
    const atomic_int *cancel, struct store_keys *ret_keys, struct err *e)
{
    int rc = 0;
    pthread_mutex_lock(&a->lock);
    const uint64_t failures_before = a->n_failures;
    bool wanted = !are_usable(a, refused);
    a->is_refused = a->is_refused || (refused > 0 && refused == a->keys.number);
    if (a->want && (wanted || left_ms(a) < STORE_AUTH_EARLY_MS)) {
        /* Called without the lock, because it may wait for a thread that sets credentials. */
        pthread_mutex_unlock(&a->lock);
        a->want(a->want_ctx);
        pthread_mutex_lock(&a->lock);
    }
    if (wanted && a->want)
        rc = wait_for_keys(a, refused, failures_before, timeout_ms, cancel, e);
    else if (wanted && a->keys.number == 0)
        rc = err_set(e, ERR_CONFIG, "there are no credentials for this store");
    else if (wanted)
        rc = err_set(
            e, ERR_DENIED, "the credentials were refused or have expired, and there are no others");
    if (rc == 0)
        *ret_keys = a->keys;
    pthread_mutex_unlock(&a->lock);
    return rc;
}
