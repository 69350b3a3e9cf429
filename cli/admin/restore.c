/* SPDX-License-Identifier: Apache-2.0
 *
 * belay admin restore. In order: hold the state directory; unpack and check everything beside it;
 * fence an earlier belayd in the store; move the files in. A restore that is interrupted leaves no
 * database in the state directory, and can be repeated.
 */
#include "cli/admin/restore.h"

#include "backup/backup.h"
#include "cli/admin/fence.h"
#include "cli/cli.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct restored {
    struct contents m;
    int64_t epoch;
    int fenced; /* stores */
};

static void print_restored(
    const struct admin_options *o, const char *file, const struct restored *r)
{
    char at[CLI_LOCAL_MAX];
    if (o->json) {
        json_t *v = json_pack("{s:s,s:s,s:s,s:I,s:i}", "file", file, "state", o->state,
            "cluster_uid", r->m.cluster_uid, "epoch", (json_int_t)r->epoch, "fenced", r->fenced);
        cli_print_json(v);
        json_decref(v);
        return;
    }
    printf("%s has the state of cluster %s of %s, and an earlier belayd of it %s\n", o->state,
        r->m.cluster_uid, cli_local(r->m.made_at, true, at),
        r->fenced > 0 ? "stops when it reads the checkpoint store"
                      : "was not fenced: make sure that none runs");
    printf("What happened later is unknown to it: jobs submitted later are gone, jobs that ended "
           "later run again from their last checkpoint, and machines launched later are ended. New "
           "jobs, nodes and machines get numbers %d higher.\n",
        BACKUP_SKIP);
    if (r->m.config[0])
        printf(
            "The configuration was %s; its copy is %s/" BACKUP_CONFIG "\n", r->m.config, o->state);
}

static int unpack_and_check(const struct admin_options *o, const char *file, const char *dir,
    struct restored *r, struct err *e)
{
    char *places = mem_printf("%s/store.places", dir);
    struct seal *seal = NULL;
    int rc = seal_open(
        &(struct seal_options){.passphrase_file = o->passphrase_file, .key_file = o->key_file},
        &seal, e);
    if (rc == 0)
        rc = backup_unpack(file, seal, dir, &r->m, e);
    r->epoch = r->m.epoch;
    if (rc == 0 && !o->no_fence)
        rc = fence_read(places, r->m.cluster_uid, r->m.epoch, &r->epoch, e);
    r->epoch++;
    if (rc == 0)
        rc = backup_check_database(dir, &r->m, r->epoch, e);
    if (rc == 0 && !o->no_fence)
        rc = fence_write(places, r->m.cluster_uid, r->epoch, &r->fenced, e);
    seal_close(seal);
    free(places);
    return rc;
}

static int restore(
    const struct admin_options *o, const char *file, struct restored *r, struct err *e)
{
    char *dir = mem_printf("%s/.restore.XXXXXX", o->state);
    struct err ignored;
    int lock = -1, rc = backup_lock(o->state, &lock, e);
    bool made = rc == 0 && mkdtemp(dir);
    if (rc == 0 && !made)
        rc = err_errno(e, errno, "create %s", dir);
    if (rc == 0)
        rc = unpack_and_check(o, file, dir, r, e);
    if (rc == 0)
        rc = backup_install(dir, &r->m, o->state, e);
    if (made && fs_remove_tree(dir, &ignored) != 0)
        cli_warn("%s", ignored.text);
    if (lock >= 0)
        backup_unlock(lock);
    free(dir);
    return rc;
}

int admin_restore(const struct admin_options *o, const char *file)
{
    struct restored *r = mem_alloc(sizeof(*r));
    struct err e;
    if (!o->state) {
        cli_error("name the state directory to restore to: belay admin restore FILE --state DIR");
        free(r);
        return CLI_USAGE;
    }
    int rc = restore(o, file, r, &e);
    if (rc == 0)
        print_restored(o, file, r);
    else
        cli_error("%s", e.text);
    free(r);
    return rc == 0 ? CLI_OK : CLI_FAILED;
}
