/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/admin/reload.h"

#include "cli/verbs.h"
#include <stdio.h>

static const char *shown(const json_t *change, const char *key)
{
    const char *s = json_string_value(json_object_get(change, key));
    return s ? s : "(absent)";
}

static void print_changes(const json_t *answer, bool dry_run)
{
    const json_t *changes = json_object_get(answer, "changes"), *c;
    size_t i;
    if (json_array_size(changes) == 0) {
        printf("the configuration is the one in force\n");
        return;
    }
    json_array_foreach((json_t *)changes, i, c)
    {
        printf("%s: %s -> %s\n", shown(c, "key"), shown(c, "old"), shown(c, "new"));
    }
    printf(dry_run ? "%zu change%s would be made\n" : "%zu change%s in force\n",
        json_array_size(changes), json_array_size(changes) == 1 ? "" : "s");
}

int admin_reload(const struct admin_options *o, const char *word)
{
    json_t *request = json_pack("{s:b}", "dry_run", (int)o->dry_run);
    json_t *v = cli_post("/api/v1/admin/reload", request);
    (void)word;
    if (v && o->json)
        cli_print_json(v);
    else if (v)
        print_changes(v, o->dry_run);
    int rc = v ? CLI_OK : CLI_FAILED;
    json_decref(v);
    json_decref(request);
    return rc;
}
