/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of cgroups contain a hash, which an agent of another version must compute too.
 */
#include "base/hash.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Vectors of the authors of FNV (draft-eastlake-fnv). */
static void the_hash_is_fnv_1a(void **state)
{
    (void)state;
    assert_true(hash_text("") == UINT64_C(0xcbf29ce484222325));
    assert_true(hash_text("a") == UINT64_C(0xaf63dc4c8601ec8c));
    assert_true(hash_text("foobar") == UINT64_C(0x85944171f73967e8));
}

static void a_hash_can_be_continued(void **state)
{
    (void)state;
    uint64_t foo = hash_bytes(HASH_INIT, "foo", 3);
    assert_true(hash_bytes(foo, "bar", 3) == hash_text("foobar"));
    assert_true(hash_bytes(foo, "", 0) == foo);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_hash_is_fnv_1a),
        cmocka_unit_test(a_hash_can_be_continued),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
