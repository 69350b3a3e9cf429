/* SPDX-License-Identifier: Apache-2.0
 *
 * Secrets in the kernel's keyring: own entries are read back with their age; entries of others are
 * not.
 */
#include "agent/keyring.h"
#include "base/err.h"
#include "base/mem.h"
#include <linux/keyctl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
/* cmocka after its needs */
#include <cmocka.h>

static char key[] = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
static char access_key[] = "A", secret_key[] = "S", token[] = "T";
static char *keys[] = {key};
static const struct wall at = {1000000};

static struct wire_secrets of_store(int64_t left_ms)
{
    return (struct wire_secrets){.version = 9,
        .checkpoint_keys = keys,
        .n_checkpoint_keys = 1,
        .encrypts = true,
        .store_access_key = access_key,
        .store_secret_key = secret_key,
        .store_token = token,
        .store_left_ms = left_ms};
}

static int get(const char *dir, int64_t ms, struct wire_secrets *ret_s)
{
    struct err e;
    *ret_s = (struct wire_secrets){0};
    return keyring_get(dir, (struct wall){ms}, ret_s, &e);
}

static void secrets_can_be_read_until_they_are_dropped(void **state)
{
    const char *dir = *state;
    struct wire_secrets s = of_store(60000), back;
    struct err e;
    assert_int_equal(get(dir, at.ms, &back), ERR_NOT_FOUND);
    assert_int_equal(keyring_put(dir, &s, at, &e), 0);
    s.version = 10;
    assert_int_equal(keyring_put(dir, &s, at, &e), 0); /* replaces the first */
    assert_int_equal(get(dir, at.ms, &back), 0);
    assert_int_equal(back.version, 10);
    assert_true(back.encrypts && !back.refuses_plain);
    assert_int_equal(back.n_checkpoint_keys, 1);
    assert_string_equal(back.checkpoint_keys[0], key);
    assert_string_equal(back.store_token, token);
    wire_secrets_wipe(&back);
    keyring_renew(dir);
    keyring_drop(dir);
    keyring_drop(dir);
    assert_int_equal(get(dir, at.ms, &back), ERR_NOT_FOUND);
}

static void credentials_age_in_the_keyring(void **state)
{
    const char *dir = *state;
    struct wire_secrets s = of_store(60000), back;
    struct err e;
    assert_int_equal(keyring_put(dir, &s, at, &e), 0);
    assert_int_equal(get(dir, at.ms + 59000, &back), 0);
    assert_int_equal(back.store_left_ms, 1000);
    wire_secrets_wipe(&back);
    assert_int_equal(get(dir, at.ms - 5000, &back), 0); /* the clock was set back */
    assert_int_equal(back.store_left_ms, 60000);
    wire_secrets_wipe(&back);
    assert_int_equal(get(dir, at.ms + 60000, &back), ERR_NOT_FOUND);
    s.store_access_key = s.store_secret_key = s.store_token = NULL; /* static keys do not expire */
    assert_int_equal(keyring_put(dir, &s, at, &e), 0);
    assert_int_equal(get(dir, at.ms + INT64_C(86400000) * 365, &back), 0);
    wire_secrets_wipe(&back);
}

static void secrets_that_are_too_large_are_refused(void **state)
{
    struct wire_secrets s = of_store(60000);
    struct err e;
    char long_token[WIRE_STORE_TOKEN_MAX];
    memset(long_token, 1, sizeof(long_token)); /* six bytes each in JSON */
    long_token[sizeof(long_token) - 1] = '\0';
    s.store_token = long_token;
    assert_int_equal(keyring_put(*state, &s, at, &e), ERR_INVALID);
}

static void malformed_keys_are_refused(void **state)
{
    static const char *const texts[] = {"x", "\n", "12", "12\n", "12\n{}", "12x\n{}",
        "12\n{\"rev\":1,\"attempts\":[]}",
        "12\n{\"rev\":1,\"attempts\":[{\"job\":1,\"attempt\":1,\"want\":\"run\"}]}"};
    struct wire_secrets back;
    char *name = mem_printf("belay:%s", (const char *)*state);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        assert_true(syscall(SYS_add_key, "user", name, texts[i], strlen(texts[i]),
                        (long)KEY_SPEC_USER_KEYRING) > 0);
        assert_int_equal(get(*state, at.ms, &back), ERR_INVALID);
        keyring_drop(*state);
    }
    free(name);
}

static int end(void **state)
{
    keyring_drop(*state);
    return 0;
}

int main(void)
{
    static char dir[64];
    struct wire_secrets s = of_store(1);
    struct err e;
    snprintf(dir, sizeof(dir), "/test/of/%d", (int)getpid());
#define TEST(f) cmocka_unit_test_prestate_setup_teardown(f, NULL, end, dir)
    const struct CMUnitTest tests[] = {
        TEST(secrets_can_be_read_until_they_are_dropped),
        TEST(credentials_age_in_the_keyring),
        TEST(secrets_that_are_too_large_are_refused),
        TEST(malformed_keys_are_refused),
    };
    int rc = keyring_put(dir, &s, at, &e);
    if (rc == ERR_UNSUPPORTED || rc == ERR_DENIED) {
        fprintf(stderr, "%s\n", e.text);
        return 77; /* skipped */
    }
    keyring_drop(dir);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
