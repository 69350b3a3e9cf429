/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/secrets/key_file.h"

#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static char *find_path(const struct config *c)
{
    const char *dir = getenv("CREDENTIALS_DIRECTORY");
    if (c->secret_key_file[0])
        return mem_strdup(c->secret_key_file);
    char *path = mem_printf("%s/" KEY_FILE_CREDENTIAL, dir ? dir : "");
    if (dir && *dir && fs_exists(path))
        return path;
    free(path);
    return mem_printf("%s/secret.keys", c->state_dir);
}

static int create(const char *path, const char *cluster_uid, struct master *ret, struct err *e)
{
    int rc = master_make(path,
        "# The keys of this cluster's database: whoever has this file and the database can read "
        "its secrets; without it they are lost.\n"
        "# Keep a copy where no copy of the database is. The first key seals, the others only "
        "open (belayd(8)).\n",
        cluster_uid, e);
    return rc == 0 ? master_read(path, ret, e) : rc;
}

/* A new database in an old state directory: the file of the one before is kept under another name,
 * because a copy of that database may come back. */
static int set_aside(const struct config *c, const char *path, const char *uid, struct err *e)
{
    char *own = mem_printf("%s/secret.keys", c->state_dir), *kept = mem_printf("%s.%s", path, uid);
    int rc = 0;
    if (!str_eq(own, path))
        rc = ERR_CONFIG; /* not ours to rename; check reports it */
    else if (rename(path, kept) < 0)
        rc = err_errno(e, errno, "rename %s", path);
    else
        log_warn("the key file belongs to another database and was renamed", log_s("file", kept));
    free(own);
    free(kept);
    return rc;
}

static int check(const char *path, const struct master *m, const struct sealer *s,
    const char *cluster_uid, const char *known_id, struct err *e)
{
    if (!str_eq(m->cluster_uid, cluster_uid))
        return err_set(e, ERR_CONFIG,
            "%s is the key file of another cluster (%s; this one, by its database, is %s): restore "
            "the file that belongs to this database, or name it with secret_key_file:",
            path, m->cluster_uid, cluster_uid);
    if (*known_id && !sealer_has_key(s, known_id))
        return err_set(e, ERR_CONFIG,
            "%s lacks the key %s, with which the database is sealed: put that key back from a copy "
            "of the file, below the others",
            path, known_id);
    return 0;
}

int key_file_open(const struct config *c, const char *cluster_uid, const char *known_id,
    struct sealer **ret_sealer, bool *ret_created, struct err *e)
{
    char *path = find_path(c);
    struct master m = {0};
    struct sealer *s = NULL;
    int rc = master_read(path, &m, e);
    if (rc == ERR_NOT_FOUND && *known_id)
        rc = err_set(e, ERR_CONFIG,
            "the key file of the database, %s, is gone, and with it the key %s: put it back from "
            "its copy",
            path, known_id);
    else if (rc == ERR_NOT_FOUND && (rc = create(path, cluster_uid, &m, e)) == 0)
        *ret_created = true;
    if (rc == 0 && !*known_id && !str_eq(m.cluster_uid, cluster_uid) &&
        set_aside(c, path, m.cluster_uid, e) == 0 && (rc = create(path, cluster_uid, &m, e)) == 0)
        *ret_created = true;
    if (rc == 0) {
        s = sealer_create(&m);
        rc = check(path, &m, s, cluster_uid, known_id, e);
    }
    master_wipe(&m);
    free(path);
    if (rc == 0)
        *ret_sealer = s;
    else
        sealer_destroy(s);
    return rc;
}

int key_file_check(const struct config *c, struct err *e)
{
    char *path = find_path(c);
    struct master m = {0};
    int rc = master_read(path, &m, e);
    master_wipe(&m);
    free(path);
    return rc == ERR_NOT_FOUND ? 0 : rc;
}
