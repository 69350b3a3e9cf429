/* SPDX-License-Identifier: Apache-2.0
 *
 * belay version
 */
#include "cli/verbs.h"

#include <stdio.h>

/* belayd's reply; NULL if none answers. */
static json_t *get_version(void)
{
    struct client *c = NULL;
    json_t *v = NULL;
    if (client_create(&c, &(struct err){0}) == 0) {
        struct err e = {0};
        client_json(c, "GET", "/api/v1/version", NULL, &v, &e);
        client_destroy(c);
    }
    return v;
}

static int run(int argc, const char **argv)
{
    struct cli_args a;
    int rc = cli_parse(&verb_version, argc, argv, false, NULL, NULL, &a);
    if (rc == 0) {
        json_t *v = get_version();
        if (a.json) {
            json_t *o = json_pack("{s:s,s:O?}", "belay", BELAY_VERSION, "belayd", v);
            cli_print_json(o);
            json_decref(o);
        } else {
            printf("belay %s\n", BELAY_VERSION);
            if (v)
                printf("belayd %s, cluster %s, %s\n", cli_text(v, "version"),
                    cli_text(v, "cluster"), cli_text(v, "listen"));
        }
        json_decref(v);
    }
    cli_args_deinit(&a);
    return rc < 0 ? CLI_OK : rc;
}

const struct verb verb_version = {"version", CLI_NO_WORDS, "print the versions of belay and belayd",
    run, NULL, false, .folds = true, .examples = "belay version\n"};
