/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/secrets/env_seal.h"

#include "base/mem.h"
#include "base/str.h"
#include <stdlib.h>
#include <string.h>

static char *bound_to(const char *user)
{
    return mem_printf("env %s", user);
}

void env_seal(const struct sealer *s, const char *user, const char **env_json)
{
    char *clear = (char *)*env_json;
    if (str_eq(clear, "{}"))
        return;
    char *what = bound_to(user), *sealed = seal(s, what, clear, strlen(clear));
    explicit_bzero(clear, strlen(clear));
    free(clear);
    *env_json = mem_printf("{\"" ENV_SEALED "\":\"%s\"}", sealed);
    free(what);
    free(sealed);
}

static int open_sealed(
    const struct sealer *s, const char *user, const char *sealed, json_t **ret_inner, struct err *e)
{
    char *what = bound_to(user);
    struct buf text = {0};
    int rc = seal_open(s, what, sealed, &text, e);
    if (rc == 0)
        rc = json_parse(text.data, text.len, SEAL_PLAIN_MAX, ret_inner, e);
    free(what);
    buf_wipe(&text);
    return rc;
}

int env_open(
    const struct sealer *s, const char *user, const char *env_json, json_t **ret_env, struct err *e)
{
    json_t *outer = NULL, *inner = NULL;
    int rc = json_parse(env_json, strlen(env_json), SEAL_SIZE(SEAL_PLAIN_MAX) + 4096, &outer, e);
    const char *sealed = rc == 0 ? json_string_value(json_object_get(outer, ENV_SEALED)) : NULL;
    if (sealed)
        rc = open_sealed(s, user, sealed, &inner, e);
    if (rc != 0) {
        json_decref(outer);
        return err_wrap(e, "the environment of %s's job", user);
    }
    if (sealed) {
        json_object_del(outer, ENV_SEALED);
        json_object_update_missing(outer, inner); /* shares the texts, which stay in outer */
        json_decref(inner);
    }
    *ret_env = outer;
    return 0;
}
