/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/supervisor/proc_mount.h"

#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define BELOW_MAX 256 /* mounts below /proc; a container has about ten */
#define HIDDEN "hidepid=2"

static int usual_flags(unsigned long *ret_flags)
{
    static const struct {
        unsigned long is, flag;
    } flags[] = {{ST_RDONLY, MS_RDONLY}, {ST_NOSUID, MS_NOSUID}, {ST_NODEV, MS_NODEV},
        {ST_NOEXEC, MS_NOEXEC}, {ST_NOATIME, MS_NOATIME}, {ST_NODIRATIME, MS_NODIRATIME},
        {ST_RELATIME, MS_RELATIME}};
    struct statvfs st;
    if (statvfs("/proc", &st) < 0)
        return -1;
    *ret_flags = 0;
    for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++)
        if (st.f_flag & flags[i].is)
            *ret_flags |= flags[i].flag;
    return 0;
}

int proc_mount_hide(struct err *e)
{
    unsigned long flags;
    if (usual_flags(&flags) < 0)
        return err_errno(e, errno, "reading the mounts of /proc");
    return mount("proc", "/proc", "proc", MS_REMOUNT | flags, HIDDEN) < 0
               ? err_errno(e, errno, "mounting /proc with " HIDDEN)
               : 0;
}

/* ---- what is mounted ---- */

struct mounts {
    bool is_hidden; /* hidden in the topmost /proc */
    char *below[BELOW_MAX];
    int fds[BELOW_MAX];
    size_t n;
};

/* options: the file system's options as the kernel lists them. */
static bool hides(const char *options)
{
    static const char *const values[] = {"2", "invisible", "4", "ptraceable", NULL};
    const char *at = strstr(options, "hidepid=");
    if (!at)
        return false;
    at += strlen("hidepid=");
    for (const char *const *v = values; *v; v++)
        if (str_starts(at, *v) && strchr(",\n", at[strlen(*v)]))
            return true;
    return false;
}

/* File systems below /proc that are not mounted again: jobs do not need them, and an automount
 * cannot be bind-mounted. */
static bool is_left_out(const char *type)
{
    return str_eq(type, "autofs") || str_eq(type, "binfmt_misc");
}

/* line: of mountinfo, proc(5). A later mount on /proc covers an earlier one. opens: also open the
 * mounts below /proc. */
static int note(struct mounts *m, const char *line, bool opens)
{
    char at[1024], type[64];
    int end = 0;
    const char *rest = strstr(line, " - ");
    if (sscanf(line, "%*s %*s %*s %*s %1023s", at) != 1 || !rest ||
        sscanf(rest, " - %63s %*s %n", type, &end) != 1 || end == 0)
        return EPROTO;
    if (str_eq(at, "/proc"))
        m->is_hidden = hides(rest + end);
    if (!opens || !str_starts(at, "/proc/") || is_left_out(type))
        return 0;
    if (m->n == BELOW_MAX)
        return E2BIG;
    m->below[m->n] = mem_strdup(at);
    m->fds[m->n++] = open(at, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    return m->fds[m->n - 1] < 0 ? errno : 0;
}

static int read_mounts(struct mounts *m, bool opens)
{
    FILE *f = fopen("/proc/self/mountinfo", "re");
    char *line = NULL;
    size_t size = 0;
    int why = f ? 0 : errno;
    *m = (struct mounts){0};
    while (!why && getline(&line, &size, f) > 0)
        why = note(m, line, opens);
    if (!why && ferror(f))
        why = EIO;
    if (f)
        fclose(f);
    free(line);
    return why;
}

static void deinit(struct mounts *m)
{
    for (size_t i = 0; i < m->n; i++) {
        free(m->below[i]);
        if (m->fds[i] >= 0)
            close(m->fds[i]);
    }
}

/* ---- covering ---- */

static int put_back(const struct mounts *m)
{
    for (size_t i = 0; i < m->n; i++) {
        char from[48];
        snprintf(from, sizeof(from), "/proc/self/fd/%d", m->fds[i]);
        if (mount(from, m->below[i], NULL, MS_BIND, NULL) < 0)
            return errno;
    }
    return 0;
}

/* A kernel without per-mount options ignores them, so the result is checked. */
static int check_hidden(void)
{
    struct mounts now;
    int why = read_mounts(&now, false);
    if (!why && !now.is_hidden)
        why = ENOTSUP;
    deinit(&now);
    return why;
}

static int cover(const struct mounts *before)
{
    unsigned long flags;
    if (usual_flags(&flags) < 0 || mount("proc", "/proc", "proc", flags, HIDDEN) < 0)
        return errno;
    int why = check_hidden();
    return why ? why : put_back(before);
}

int proc_mount_cover(void)
{
    struct mounts before;
    int why = read_mounts(&before, true);
    if (!why && !before.is_hidden)
        why = cover(&before);
    deinit(&before);
    return why;
}
