/* SPDX-License-Identifier: Apache-2.0
 *
 * The key file of a cluster.
 */
#include "ckpt/master.h"
#include "base/fs.h"
#include "base/str.h"
#include "tests/ckpt/tools.h"
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define UID "0123456789abcdef"
#define OTHER_KEY "ff0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1eff"

static int parse(const char *text, struct master *ret, struct err *e)
{
    return master_parse("k", text, strlen(text), ret, e);
}

static void a_file_that_is_made_is_its_owners_only_and_is_read_again(void **state)
{
    struct scratch *s = *state;
    const char *path = path_in(s->dir, "keys");
    struct master m, again;
    struct stat st;
    struct err e;

    OK(master_make(path, "# keys\n", UID, &e));
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    OK(master_read(path, &m, &e));
    assert_string_equal(m.cluster_uid, UID);
    assert_int_equal(m.n, 1);
    /* a key is never replaced by a new one */
    FAILS(ERR_CONFLICT, master_make(path, "# keys\n", UID, &e));
    OK(master_read(path, &again, &e));
    assert_memory_equal(&m, &again, sizeof(m));
    assert_int_equal(chmod(path, 0640), 0);
    FAILS(ERR_DENIED, master_read(path, &m, &e));
    FAILS(ERR_NOT_FOUND, master_read(path_in(s->dir, "none"), &m, &e));
}

static void jobs_clusters_and_keys_have_keys_of_their_own(void **state)
{
    struct master m, other;
    struct ckpt_crypt c = {0};
    char keys[5][CRYPT_KEY_HEX + 1];
    char hash[] = SCRATCH_KEY, first[CRYPT_NAME_HEX + 1], second[CRYPT_NAME_HEX + 1];
    struct err e;

    (void)state;
    OK(parse("# c\n\ncluster " UID "\nkey " SCRATCH_KEY "\nkey " OTHER_KEY, &m, &e));
    OK(parse("cluster 1123456789abcdef\nkey " SCRATCH_KEY "\n", &other, &e));
    master_job_key(&m, 0, 7, keys[0]);
    master_job_key(&m, 0, 8, keys[1]);
    master_job_key(&m, 1, 7, keys[2]);
    master_job_key(&other, 0, 7, keys[3]);
    STR_COPY(keys[4], SCRATCH_KEY);
    for (int i = 0; i < 5; i++)
        for (int j = 0; j < i; j++)
            assert_string_not_equal(keys[i], keys[j]);
    /* Every release must derive the same keys, or it could not read earlier checkpoints. */
    assert_string_equal(
        keys[0], "5b6a818444f51105dc4aa25b60410d1099cf02ee68486a7ecd70042b8af40185");
    master_job_crypt(&m, 7, &c);
    assert_int_equal(c.n, 2);
    assert_false(c.encrypts);
    crypt_name(&c.keys[0], hash, first);
    memset(&c, 0, sizeof(c));
    OK(crypt_add(&c, keys[0], &e)); /* keys sent to an agent equal those from the cluster's file */
    crypt_name(&c.keys[0], hash, second);
    assert_string_equal(first, second);
}

static void a_malformed_file_is_refused_and_no_error_shows_a_key(void **state)
{
    static const char *const bad[] = {"", "cluster " UID "\n", "key " SCRATCH_KEY "\n",
        "cluster " UID "\ncluster " UID "\nkey " SCRATCH_KEY "\n",
        "cluster 0123\nkey " SCRATCH_KEY "\n", "cluster " UID "\nkey " SCRATCH_KEY "00\n",
        "cluster " UID "\nkey  " SCRATCH_KEY "\n",
        "cluster " UID "\nkey " SCRATCH_KEY "\nkey " SCRATCH_KEY "\n",
        "cluster " UID "\nkye " SCRATCH_KEY "\n", "cluster " UID "\n" SCRATCH_KEY "\n"};
    struct master m;
    struct err e;
    char nine[1024] = "cluster " UID "\n";

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        FAILS(ERR_INVALID, parse(bad[i], &m, &e));
        assert_null(strstr(e.text, "0405060708"));
    }
    for (int i = 0; i < CRYPT_KEYS_MAX + 1; i++)
        snprintf(
            nine + strlen(nine), sizeof(nine) - strlen(nine), "key %02d%s\n", i, &SCRATCH_KEY[2]);
    FAILS(ERR_INVALID, parse(nine, &m, &e));
    assert_non_null(strstr(e.text, "line 10"));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, scratch_setup, scratch_teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_file_that_is_made_is_its_owners_only_and_is_read_again),
        TEST(jobs_clusters_and_keys_have_keys_of_their_own),
        TEST(a_malformed_file_is_refused_and_no_error_shows_a_key),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
