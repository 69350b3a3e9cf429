/* SPDX-License-Identifier: Apache-2.0
 *
 * The sealed form (scheduler/secrets/seal.h) and sealed environments, from a database that someone
 * else may have written: nothing that was not sealed with the key opens, and what is sealed here
 * opens as it was. And the references to secrets in jobs (job/secret_ref.h).
 */
#include "base/mem.h"
#include "job/secret_ref.h"
#include "scheduler/secrets/env_seal.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The name becomes the name of a file. */
static void check_reference(const char *text)
{
    struct secret_ref ref;
    struct err e = {0};
    if (secret_ref_parse(text, &ref, &e) == 0)
        assert(ref.name[0] && ref.name[0] != '.' && !strchr(ref.name, '/'));
    else
        assert(e.kind == ERR_INVALID && e.text[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct master m = {.cluster_uid = "0123456789abcdef", .n = 1};
    struct sealer *s = sealer_create(&m);
    char *text = mem_strndup((const char *)data, size);
    struct buf out = {0};
    struct err e = {0};
    json_t *env;

    int rc = seal_open(s, "fuzz", text, &out, &e);
    assert(rc < 0 && e.text[0] && out.len == 0);
    assert(seal_is_sealed(text) == (rc != ERR_INVALID));
    if (env_open(s, "ann", text, &env, &e) == 0)
        json_wipe(env);
    check_reference(text);
    char *sealed = seal(s, "fuzz", data, size);
    rc = seal_open(s, "fuzz", sealed, &out, &e);
    assert(rc == 0 && out.len == size && (size == 0 || memcmp(out.data, data, size) == 0));
    buf_wipe(&out);
    free(sealed);
    free(text);
    sealer_destroy(s);
    return 0;
}
