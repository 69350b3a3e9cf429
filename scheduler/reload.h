/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads belayd's configuration file again and puts in force what of it may change while belayd runs
 * (scheduler/config/changes.h). All of a file's changes apply, or none:
 *
 *     read, parse --> compare with the text in force --> refuse, or one event (EV_SETTINGS)
 *       --> the daemon's struct config, in place --> commit --> parts with copies --> answer
 *
 * Refused is also what would leave live jobs or cron entries without something that they name.
 *
 * The model, and the parts that read the configuration where they use it, see the new values from
 * the same tick on. A restart reads the same file. Jobs, nodes and connections are not touched.
 */
#ifndef BELAY_SCHEDULER_RELOAD_H
#define BELAY_SCHEDULER_RELOAD_H

#include "base/json.h"
#include "scheduler/config/config.h"
#include "scheduler/engine/tick.h"
#include "scheduler/oidc/oidc.h"
#include "scheduler/tables.h"

struct reload;
struct pools;

/* The file that the configuration was read from. */
struct config_file {
    const char *path;  /* NULL: there is none, all values are defaults */
    const char *state; /* of the command line, see config_parse; may be NULL */
    struct buf text;
};

/* What signs users in, and its section of the configuration: only its owner. */
struct reload_oidc {
    struct oidc *oidc; /* NULL: nobody signs in any more */
    struct config_oidc *config;
};
void reload_oidc_free(struct reload_oidc *o);

/* All borrowed until reload_destroy. */
struct reload_options {
    struct config *config; /* in force; changed in place */
    const struct config_file *file;
    struct tick *tick;
    const struct pools *pools;
    struct zones *zones;
    struct db_reader *reader;
    struct tables **tables;   /* in force; replaced */
    struct http_client *http; /* for signing in, with the timers */
    struct timers *timers;
    /* Hands new values to the parts that have copies of them. oidc: what signs users in from now
     * on, taken; NULL: as before. */
    void (*applied)(void *ctx, const struct reload_oidc *oidc);
    void *ctx;
};

struct reload *reload_create(const struct reload_options *o);
/* Call after the tick and the model are destroyed. r may be NULL. */
void reload_destroy(struct reload *r);

/* e is NULL if the changes apply, or would; changes is as of config_changes, NULL after an error.
 * Both borrowed. */
typedef void (*reload_done_fn)(void *ctx, const struct err *e, const json_t *changes);

/* Reads the file. dry_run: reports the changes without making them. done runs exactly once: inside
 * this call for an error or a dry run, else after the commit. ERR_INVALID with FILE:LINE,
 * ERR_CONFLICT: a change needs a restart, or another call is in progress. */
void reload_run(struct reload *r, bool dry_run, reload_done_fn done, void *ctx);

/* The same for a signal: the log has the result, and the audit log has a row. done may be NULL. */
void reload_by_signal(struct reload *r, void (*done)(void *ctx), void *ctx);

#endif
