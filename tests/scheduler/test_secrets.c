/* SPDX-License-Identifier: Apache-2.0
 *
 * Sealing: what is sealed opens only with its key, for its owner, unchanged; a database is only
 * used with the key file that belongs to it; and a secret is for those to whom it was granted.
 */
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "scheduler/secrets/env_seal.h"
#include "scheduler/secrets/key_file.h"
#include "scheduler/secrets/store.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#define UID "0123456789abcdef"

static struct master two_keys(void)
{
    struct master m = {.cluster_uid = UID, .n = 2};
    memset(m.keys[0], 7, CRYPT_KEY_BYTES);
    memset(m.keys[1], 9, CRYPT_KEY_BYTES);
    return m;
}

static int opens(const struct sealer *s, const char *what, const char *sealed, const char *expected)
{
    struct buf out = {0};
    struct err e;
    int rc = seal_open(s, what, sealed, &out, &e);
    if (rc == 0)
        assert_string_equal(buf_str(&out), expected);
    buf_wipe(&out);
    return rc;
}

static void what_is_sealed_opens_for_its_owner_only(void **state)
{
    const struct master m = two_keys();
    struct sealer *s = sealer_create(&m);
    (void)state;
    for (size_t n = 0; n < 20; n++) { /* all lengths of padding */
        const char *text = "correct horse battery" + 20 - n;
        char *sealed = seal(s, "secret a ann", text, strlen(text));
        assert_true(strlen(sealed) <= SEAL_SIZE(strlen(text)));
        assert_true(seal_is_sealed(sealed));
        assert_true(seal_is_current(s, sealed));
        assert_null(n > 3 ? strstr(sealed, text) : NULL);
        assert_int_equal(opens(s, "secret a ann", sealed, text), 0);
        assert_int_equal(opens(s, "secret a bob", sealed, text), ERR_CORRUPT);
        assert_int_equal(opens(s, "secret b ann", sealed, text), ERR_CORRUPT);
        free(sealed);
    }
    sealer_destroy(s);
}

static void each_changed_byte_is_noticed(void **state)
{
    const struct master m = two_keys();
    struct sealer *s = sealer_create(&m);
    char *sealed = seal(s, "x", "battery staple", 14);
    (void)state;
    for (size_t i = 0; sealed[i]; i++) {
        char was = sealed[i];
        sealed[i] = was == 'a' ? 'b' : 'a';
        int rc = opens(s, "x", sealed, "battery staple");
        assert_true(rc == ERR_CORRUPT || rc == ERR_INVALID || rc == ERR_NOT_FOUND);
        sealed[i] = was;
    }
    for (size_t n = strlen(sealed) - 1; n > 0; n--) {
        sealed[n] = '\0';
        int rc = opens(s, "x", sealed, "battery staple");
        assert_true(rc == ERR_CORRUPT || rc == ERR_INVALID);
    }
    free(sealed);
    sealer_destroy(s);
}

static void a_new_first_key_opens_what_the_old_one_sealed(void **state)
{
    struct master m = two_keys(), old = two_keys();
    char mac[SEAL_MAC_HEX + 1], old_mac[SEAL_MAC_HEX + 1];
    (void)state;
    memcpy(old.keys[0], m.keys[1], CRYPT_KEY_BYTES);
    old.n = 1;
    struct sealer *before = sealer_create(&old), *after = sealer_create(&m);
    char *sealed = seal(before, "x", "staple", 6);
    assert_int_equal(opens(after, "x", sealed, "staple"), 0);
    assert_false(seal_is_current(after, sealed));
    sealer_mac(before, "job:1.1", old_mac);
    sealer_mac(after, "job:1.1", mac);
    assert_string_equal(mac, old_mac); /* tokens stay valid */
    char *newer = seal(after, "x", "staple", 6);
    assert_int_equal(opens(before, "x", newer, "staple"), ERR_NOT_FOUND);
    STR_COPY(m.cluster_uid, "fedcba9876543210");
    struct sealer *other = sealer_create(&m);
    assert_int_equal(opens(other, "x", newer, "staple"), ERR_NOT_FOUND);
    free(sealed);
    free(newer);
    sealer_destroy(before);
    sealer_destroy(after);
    sealer_destroy(other);
}

static void an_environment_keeps_no_value_in_clear(void **state)
{
    const struct master m = two_keys();
    struct sealer *s = sealer_create(&m);
    const char *env = mem_strdup("{\"WANDB_API_KEY\":\"hunter2-hunter2\",\"A\":\"\"}");
    json_t *opened;
    struct err e;
    (void)state;
    env_seal(s, "ann", &env);
    assert_null(strstr(env, "hunter2"));
    assert_null(strstr(env, "WANDB"));
    assert_int_equal(env_open(s, "ann", env, &opened, &e), 0);
    assert_string_equal(
        json_string_value(json_object_get(opened, "WANDB_API_KEY")), "hunter2-hunter2");
    assert_int_equal(json_object_size(opened), 2);
    json_wipe(opened);
    assert_int_equal(env_open(s, "bob", env, &opened, &e), ERR_CORRUPT);
    char *with_time = mem_printf("{\"BELAY_CRON_TIME\":\"t\",%s", env + 1);
    assert_int_equal(env_open(s, "ann", with_time, &opened, &e), 0);
    assert_int_equal(json_object_size(opened), 3);
    json_wipe(opened);
    free(with_time);
    free((char *)env);
    env = mem_strdup("{}");
    env_seal(s, "ann", &env);
    assert_string_equal(env, "{}");
    free((char *)env);
    sealer_destroy(s);
}

/* ---- grants ---- */

static bool may(const struct secret_row *row, const char *user, const char *team, const char *pools)
{
    struct policy_team teams[] = {{.name = "vision"}};
    const struct queue_policy p = {.teams = teams, .n_teams = 1};
    const struct secret_user u = {.user = user, .team = team, .pools = pools};
    return secret_is_granted(row, &p, &u);
}

static void a_secret_is_for_its_owner_and_those_granted(void **state)
{
    struct secret_row row = {.owner = "ann", .name = "wandb"};
    struct err e;
    (void)state;
    assert_true(may(&row, "ann", "", ""));
    assert_false(may(&row, "bob", "", ""));
    assert_int_equal(secret_grant(&row, "user:bob", true, &e), 0);
    assert_int_equal(secret_grant(&row, "user:bob", true, &e), 0);
    assert_string_equal(row.grants, "user:bob");
    assert_int_equal(secret_grant(&row, "team:vision", true, &e), 0);
    assert_int_equal(secret_grant(&row, "team:other", true, &e), 0);
    assert_int_equal(secret_grant(&row, "pool:cfd", true, &e), 0);
    assert_true(may(&row, "bob", "", ""));
    assert_false(may(&row, "bo", "", ""));
    assert_false(may(&row, "user:bob", "", ""));
    assert_true(may(&row, "eve", "vision", ""));
    assert_false(may(&row, "eve", "other", "")); /* no team of the configuration */
    assert_true(may(&row, "eve", "", "cfd"));
    assert_false(may(&row, "eve", "", "cfd,base")); /* it might run in the other one */
    assert_false(may(&row, "eve", "", ""));
    assert_int_equal(secret_grant(&row, "user:bob", false, &e), 0);
    assert_string_equal(row.grants, "team:vision team:other pool:cfd");
    assert_int_equal(secret_grant(&row, "user:bob", false, &e), ERR_NOT_FOUND);
    assert_int_equal(secret_grant(&row, "pool:cfd", false, &e), 0);
    assert_string_equal(row.grants, "team:vision team:other");
    static const char *const bad[] = {"", "user:", "bob", "user:a b", "group:x", "user:a\n"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(secret_grant(&row, bad[i], true, &e), ERR_INVALID);
    for (int i = 2; i < SECRET_GRANTS_MAX; i++) {
        char grant[32];
        snprintf(grant, sizeof(grant), "user:u%d", i);
        assert_int_equal(secret_grant(&row, grant, true, &e), 0);
    }
    assert_int_equal(secret_grant(&row, "user:one-more", true, &e), ERR_INVALID);
}

/* ---- the key file ---- */

static int setup(void **state)
{
    char dir[] = "/tmp/belay-secrets.XXXXXX";
    assert_non_null(mkdtemp(dir));
    *state = mem_strdup(dir);
    unsetenv("CREDENTIALS_DIRECTORY");
    return 0;
}

static int teardown(void **state)
{
    struct err e;
    unsetenv("CREDENTIALS_DIRECTORY");
    fs_remove_tree(*state, &e);
    free(*state);
    return 0;
}

static int open_in(const char *dir, const char *uid, const char *known, char ret_id[17])
{
    struct config c = {0};
    struct sealer *s = NULL;
    struct err e;
    STR_COPY(c.state_dir, dir);
    bool created = false;
    int rc = key_file_open(&c, uid, known, &s, &created, &e);
    if (rc == 0 && ret_id)
        str_copy(ret_id, 17, sealer_key_id(s));
    sealer_destroy(s);
    return rc;
}

static void a_lost_key_file_is_not_replaced(void **state)
{
    char *path = mem_printf("%s/secret.keys", (char *)*state), id[17], again[17];
    struct stat st;
    assert_int_equal(open_in(*state, UID, "", id), 0);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(open_in(*state, UID, id, again), 0);
    assert_string_equal(again, id);
    assert_int_equal(open_in(*state, UID, "0000000000000000", NULL), ERR_CONFIG);
    assert_int_equal(open_in(*state, "fedcba9876543210", id, NULL), ERR_CONFIG);
    assert_int_equal(chmod(path, 0640), 0);
    assert_int_equal(open_in(*state, UID, id, NULL), ERR_DENIED);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(open_in(*state, UID, id, NULL), ERR_CONFIG);
    assert_int_equal(stat(path, &st), -1);
    free(path);
}

static void a_new_database_gets_a_file_of_its_own(void **state)
{
    char *path = mem_printf("%s/secret.keys", (char *)*state), *kept = mem_printf("%s." UID, path);
    char id[17], other[17], again[17];
    assert_int_equal(open_in(*state, UID, "", id), 0);
    assert_int_equal(open_in(*state, "fedcba9876543210", "", other), 0);
    assert_string_not_equal(other, id);
    assert_int_equal(rename(kept, path), 0);
    assert_int_equal(open_in(*state, UID, id, again), 0);
    assert_string_equal(again, id);
    free(path);
    free(kept);
}

static void a_credential_of_the_unit_comes_first(void **state)
{
    char *own = mem_printf("%s/secret.keys", (char *)*state),
         *credential = mem_printf("%s/" KEY_FILE_CREDENTIAL, (char *)*state), id[17], again[17];
    assert_int_equal(open_in(*state, UID, "", id), 0);
    assert_int_equal(rename(own, credential), 0);
    assert_int_equal(open_in(*state, UID, id, NULL), ERR_CONFIG);
    setenv("CREDENTIALS_DIRECTORY", *state, 1);
    assert_int_equal(open_in(*state, UID, id, again), 0);
    assert_string_equal(again, id);
    free(own);
    free(credential);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_sealed_opens_for_its_owner_only),
        cmocka_unit_test(each_changed_byte_is_noticed),
        cmocka_unit_test(a_new_first_key_opens_what_the_old_one_sealed),
        cmocka_unit_test(an_environment_keeps_no_value_in_clear),
        cmocka_unit_test(a_secret_is_for_its_owner_and_those_granted),
        TEST(a_lost_key_file_is_not_replaced),
        TEST(a_new_database_gets_a_file_of_its_own),
        TEST(a_credential_of_the_unit_comes_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
