/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/supervisor/user.h"

#include "job/feature.h"
#include "base/str.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define PASSWD_BYTES 16384
#define LOGIN_DEFS "/etc/login.defs"
#define UID_MIN_DEFAULT 1000

static int look_up(const char *name, struct passwd *pw, char *text, struct err *e)
{
    struct passwd *found = NULL;
    int rc = *name ? getpwnam_r(name, pw, text, PASSWD_BYTES, &found)
                   : getpwuid_r(geteuid(), pw, text, PASSWD_BYTES, &found);
    if (rc)
        return err_errno(e, rc, "looking up the user \"%s\"", name);
    if (!found && *name)
        return err_set(e, ERR_CONFIG,
            "the user \"%s\" does not exist on this node: create it here, or submit as a user that "
            "does",
            name);
    if (!found) { /* e.g. a container without a passwd entry for us */
        *pw = (struct passwd){.pw_name = (char *)"belay",
            .pw_dir = (char *)"/",
            .pw_shell = (char *)"/bin/sh",
            .pw_uid = geteuid(),
            .pw_gid = getegid()};
    }
    return 0;
}

int user_resolve(const char *name, struct job_user *ret_user, struct err *e)
{
    char text[PASSWD_BYTES];
    struct passwd pw;
    int rc = look_up(name, &pw, text, e);
    if (rc)
        return rc;
    if (geteuid() != 0 && pw.pw_uid != geteuid())
        return err_set(e, ERR_CONFIG,
            "the job belongs to user \"%s\", but the agent of this node is not root and runs only "
            "its own user's jobs",
            name);
    *ret_user =
        (struct job_user){.uid = pw.pw_uid, .gid = pw.pw_gid, .is_other = pw.pw_uid != geteuid()};
    STR_COPY(ret_user->name, pw.pw_name);
    STR_COPY(ret_user->home, pw.pw_dir);
    STR_COPY(ret_user->shell, *pw.pw_shell ? pw.pw_shell : "/bin/sh");
    return 0;
}

/* The lowest uid that the machine's tools assign to people. */
static uid_t read_uid_min(void)
{
    FILE *f = fopen(LOGIN_DEFS, "re");
    char line[256];
    unsigned long min = UID_MIN_DEFAULT;
    while (f && fgets(line, sizeof(line), f))
        if (sscanf(line, " UID_MIN %lu", &min) == 1)
            break;
    if (f)
        fclose(f);
    return min > 0 ? (uid_t)min : UID_MIN_DEFAULT;
}

int user_admit(const struct job_user *u, const char *system_users, struct err *e)
{
    if (geteuid() != 0 || (u->uid != 0 && u->uid >= read_uid_min()) ||
        features_has(system_users ? system_users : "", u->name))
        return 0;
    return err_set(e, ERR_CONFIG,
        "the job belongs to user \"%s\" (uid %lu), and this node runs no jobs of root or system "
        "users: submit as another user, or have system_users: [%s] added to the node's own "
        "configuration",
        u->name, (unsigned long)u->uid, u->name);
}

int user_become(const struct job_user *u)
{
    if (u->no_new_privs && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return -1;
    if (!u->is_other)
        return 0;
    return initgroups(u->name, u->gid) < 0 || setgid(u->gid) < 0 || setuid(u->uid) < 0 ? -1 : 0;
}
