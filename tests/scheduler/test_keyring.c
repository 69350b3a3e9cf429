/* SPDX-License-Identifier: Apache-2.0
 *
 * belayd's key file for encrypted checkpoints: created once, never silently again.
 */
#include "scheduler/keyring.h"

#include "base/fs.h"
#include "base/log.h"
#include "base/str.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#define UID "0123456789abcdef"

struct fixture {
    struct config config;
    struct err e;
};

static int setup(void **state)
{
    static char dir[] = "/tmp/belay-keyring-XXXXXX";
    struct fixture *f = calloc(1, sizeof(*f));
    memcpy(strrchr(dir, '-') + 1, "XXXXXX", 6);
    assert_non_null(mkdtemp(dir));
    STR_COPY(f->config.state_dir, dir);
    snprintf(f->config.key_file, sizeof(f->config.key_file), "%s/checkpoint.keys", dir);
    f->config.encryption = ENCRYPTION_CLIENT;
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(fs_remove_tree(f->config.state_dir, &f->e), 0);
    free(f);
    return 0;
}

/* Secrets for agents of job 7; closes the keyring. */
static struct wire_secrets secrets_of(struct fixture *f)
{
    struct wire_secrets s = {0};
    struct keyring *k;
    if (keyring_open(&f->config, UID, &k, &f->e) != 0)
        fail_msg("%s", f->e.text);
    keyring_fill(k, 7, &s);
    keyring_close(k);
    return s;
}

static void assert_refused(struct fixture *f, const char *uid, const char *because)
{
    struct keyring *k;
    assert_int_equal(keyring_open(&f->config, uid, &k, &f->e), ERR_CONFIG);
    assert_non_null(strstr(f->e.text, because));
}

static void the_first_start_with_encryption_makes_the_file_and_the_next_ones_read_it(void **state)
{
    struct fixture *f = *state;
    struct wire_secrets first = secrets_of(f), second = secrets_of(f);
    assert_int_equal(first.n_checkpoint_keys, 1);
    assert_string_equal(first.checkpoint_keys[0], second.checkpoint_keys[0]);
    assert_true(first.encrypts && !first.refuses_plain);
    f->config.encryption = ENCRYPTION_REQUIRED;
    wire_secrets_wipe(&second);
    second = secrets_of(f);
    assert_true(second.encrypts && second.refuses_plain);
    f->config.encryption = ENCRYPTION_NONE; /* encrypted checkpoints must still be restored */
    wire_secrets_wipe(&second);
    second = secrets_of(f);
    assert_true(!second.encrypts && second.n_checkpoint_keys == 1);
    wire_secrets_wipe(&first);
    wire_secrets_wipe(&second);
}

static void without_encryption_there_is_no_file(void **state)
{
    struct fixture *f = *state;
    f->config.encryption = ENCRYPTION_NONE;
    struct wire_secrets s = secrets_of(f);
    assert_int_equal(s.n_checkpoint_keys, 0);
    assert_false(fs_exists(f->config.key_file));
}

static void a_file_that_is_lost_is_not_replaced(void **state)
{
    struct fixture *f = *state;
    char ids[1100];
    struct wire_secrets s = secrets_of(f);
    assert_int_equal(unlink(f->config.key_file), 0);
    assert_refused(f, UID, "is gone");
    f->config.encryption = ENCRYPTION_NONE;
    assert_refused(f, UID, "checkpoint.key-ids");
    assert_false(fs_exists(f->config.key_file));
    snprintf(ids, sizeof(ids), "%s/checkpoint.key-ids", f->config.state_dir);
    assert_int_equal(unlink(ids), 0); /* the operator discarded them */
    f->config.encryption = ENCRYPTION_CLIENT;
    struct wire_secrets other = secrets_of(f);
    assert_string_not_equal(s.checkpoint_keys[0], other.checkpoint_keys[0]);
    wire_secrets_wipe(&s);
    wire_secrets_wipe(&other);
}

/* Puts a line with a key first, as for a key rotation; NULL: keeps only that one. */
static void rewrite(struct fixture *f, const char *key, bool keep)
{
    struct buf old = {0}, text = {0};
    assert_int_equal(fs_read(f->config.key_file, MASTER_FILE_MAX, &old, &f->e), 0);
    buf_printf(
        &text, "cluster %s\nkey %s\n%s", UID, key, keep ? strstr(buf_str(&old), "\nkey ") + 1 : "");
    assert_int_equal(fs_write_atomic(f->config.key_file, text.data, text.len, 0600, &f->e), 0);
    buf_deinit(&old);
    buf_deinit(&text);
}

static void a_new_key_goes_before_the_old_one_which_is_not_left_out_by_mistake(void **state)
{
    static const char key[] = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
    struct fixture *f = *state;
    struct wire_secrets before = secrets_of(f);
    rewrite(f, key, true);
    struct wire_secrets after = secrets_of(f);
    assert_int_equal(after.n_checkpoint_keys, 2);
    assert_string_equal(after.checkpoint_keys[1], before.checkpoint_keys[0]);
    rewrite(f, key, false);
    assert_refused(f, UID, "lacks the key");
    assert_null(strstr(f->e.text, "0405060708"));
    wire_secrets_wipe(&before);
    wire_secrets_wipe(&after);
}

static void the_file_of_another_cluster_is_refused(void **state)
{
    struct fixture *f = *state;
    struct wire_secrets s = secrets_of(f);
    assert_refused(f, "1123456789abcdef", "another cluster");
    wire_secrets_wipe(&s);
}

static void ignore_log(void *ctx, enum log_level level, const char *line)
{
    (void)ctx;
    (void)level;
    (void)line;
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(the_first_start_with_encryption_makes_the_file_and_the_next_ones_read_it),
        TEST(without_encryption_there_is_no_file),
        TEST(a_file_that_is_lost_is_not_replaced),
        TEST(a_new_key_goes_before_the_old_one_which_is_not_left_out_by_mistake),
        TEST(the_file_of_another_cluster_is_refused),
    };
    log_set_sink(ignore_log, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
