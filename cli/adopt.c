/* SPDX-License-Identifier: Apache-2.0
 *
 * See adopt.h. The store's marker (ckpt/store/marker.h) is replaced by one without an owner, and
 * belayd writes its own when it starts. So any machine that can reach the store can do this, and
 * only belayd needs to know its uid.
 */
#include "cli/adopt.h"

#include "base/mem.h"
#include "base/str.h"
#include "ckpt/s3.h"
#include "ckpt/store/marker.h"
#include "ckpt/store/store_net.h"
#include "cli/keys.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* A running belayd with this store owns it, or is about to: it must be stopped first. */
static int check_idle(const struct store_location *location, struct err *e)
{
    struct client *client;
    struct err ignored;
    json_t *v = NULL;
    int rc = 0;
    if (client_create(&client, &ignored) != 0)
        return 0;
    if (client_json(client, "GET", "/api/v1/version", NULL, &v, &ignored) == 0 &&
        str_eq(cli_text(v, "store"), location->store) &&
        str_eq(cli_text(v, "cluster"), location->cluster))
        rc = err_set(e, ERR_CONFLICT,
            "belayd is running with this store: stop it, adopt the store, and start it again");
    json_decref(v);
    client_destroy(client);
    return rc;
}

/* torn: why the store's marker cannot be read; may be NULL. */
static void describe(const struct store_location *location, const struct marker *mark,
    const char *torn, const struct marker_contents *there)
{
    char at[TIME_ISO_MAX];
    time_format_iso((struct wall){mark->created_at_ms}, at);
    if (torn)
        fprintf(stderr, "The owner of %s cannot be read: %s.\n", location->store, torn);
    else if (mark->generation == 0)
        fprintf(stderr, "%s has no marker of a cluster %s.\n", location->store, location->cluster);
    else if (mark->uid[0] == '\0')
        fprintf(stderr,
            "%s has had no owner since %s: the next belayd that starts with it takes it over.\n",
            location->store, at);
    else
        fprintf(stderr, "%s belongs to cluster %s, uid %s, since %s.\n", location->store,
            location->cluster, mark->uid, at);
    fprintf(stderr,
        "It has %" PRId64 " checkpoints of %" PRId64
        " jobs; the highest number of a job is %" PRId64 ".\n",
        there->checkpoints, there->jobs, there->last_job);
    fprintf(stderr,
        "Its jobs are not resumed; belay checkpoint get reads what they saved. That cluster's "
        "belayd will refuse to start. %s\n",
        s3_location_is_one(location->store, NULL)
            ? "In a bucket, agents do not check who owns it: those "
              "that still run keep saving, so end its jobs first."
            : "Its agents can no longer save there.");
}

static bool confirm(void)
{
    char line[16] = "";
    fprintf(stderr, "Take it over? [y/N] ");
    return fgets(line, sizeof(line), stdin) && (line[0] == 'y' || line[0] == 'Y');
}

static int adopt(const struct store_location *location, struct store *s,
    const struct checkpoints_options *o, bool yes, struct err *e)
{
    struct marker mark = {0};
    struct marker_contents there;
    struct err torn;
    int rc = marker_read(s, location->cluster, &mark, &torn);
    const bool is_torn = rc == ERR_CORRUPT;
    if (rc != 0 && !is_torn)
        *e = torn;
    else
        rc = marker_survey(s, location->cluster, false, &there, e);
    if (rc != 0)
        return rc;
    if (!o->json)
        describe(location, &mark, is_torn ? torn.text : NULL, &there);
    if (!yes && !isatty(STDIN_FILENO))
        return err_set(e, ERR_INVALID,
            "standard input is not a terminal, so nothing was changed: confirm with belay "
            "checkpoint adopt --yes");
    if (!yes && !confirm())
        return err_set(e, ERR_CANCELLED, "nothing was changed");
    if (mark.generation == 0 || mark.uid[0] || is_torn)
        rc = marker_write(s, location->cluster, &mark, "", 0, clock_wall(&clock_system).ms, e);
    if (rc == 0 && o->json) {
        json_t *v = json_pack("{s:s,s:s,s:s,s:I,s:I}", "store", location->store, "cluster",
            location->cluster, "was_uid", mark.uid, "jobs", (json_int_t)there.jobs, "last_job",
            (json_int_t)there.last_job);
        cli_print_json(v);
        json_decref(v);
    } else if (rc == 0) {
        printf("%s has no owner now: the next belayd that starts with it takes it over\n",
            location->store);
    }
    return rc;
}

int adopt_run(const struct checkpoints_options *o, bool yes)
{
    struct store_location location;
    struct store_net *net = NULL;
    struct store *s;
    struct err e;
    int rc = store_location_find(&o->location, &location, &e);
    if (rc == 0)
        rc = check_idle(&location, &e);
    if (rc == 0)
        rc = keys_get(location.store, &net, &e);
    if (rc == 0)
        rc = store_open(
            location.store, &(struct store_options){.net = net, .existing = true}, &s, &e);
    if (rc == 0) {
        rc = adopt(&location, s, o, yes, &e);
        store_close(s);
    }
    store_net_destroy(net);
    store_location_deinit(&location);
    if (rc == 0)
        return CLI_OK;
    cli_error("%s", e.text);
    return CLI_FAILED;
}
