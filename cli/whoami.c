/* SPDX-License-Identifier: Apache-2.0
 *
 * belay whoami
 */
#include "cli/verbs.h"

#include "base/str.h"
#include <stdio.h>

static void print(const json_t *v)
{
    char at[CLI_LOCAL_MAX];
    struct buf teams = {0};
    const char *by = cli_text(v, "by");
    cli_words(json_object_get(v, "teams"), &teams);
    printf("user:   %s\nrole:   %s\nteams:  %s\n", cli_text(v, "user"), cli_text(v, "role"),
        teams.len ? buf_str(&teams) : "-");
    if (str_eq(by, "login") || str_eq(by, "token"))
        printf("by:     %s %lld\n", str_eq(by, "login") ? "belay login, token" : "token",
            (long long)cli_int(v, "token", 0));
    else
        printf("by:     %s\n", str_eq(by, "socket") ? "the UNIX socket" : by);
    printf("until:  %s\n", cli_when(v, "expires_at", at));
    buf_deinit(&teams);
}

static int run(int argc, const char **argv)
{
    struct cli_args a;
    int rc = cli_parse(&verb_whoami, argc, argv, false, NULL, NULL, &a);
    if (rc == 0) {
        json_t *v = cli_get("/api/v1/whoami");
        if (v && a.json)
            cli_print_json(v);
        else if (v)
            print(v);
        rc = v ? CLI_OK : CLI_FAILED;
        json_decref(v);
    }
    cli_args_deinit(&a);
    return rc < 0 ? CLI_OK : rc;
}

const struct verb verb_whoami = {"whoami", CLI_NO_WORDS,
    "show who you are to belayd, with role and teams", run, NULL, false, .folds = true,
    .examples = "belay whoami\n"};
