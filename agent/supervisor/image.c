/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/supervisor/image.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/uv/proc_table.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define INSIDE "/run/belay"
#define ENVIRON_MAX (1u << 20)
#define PATHS                                                                                      \
    "PATH=\"${PATH:-/usr/local/bin:/usr/bin:/bin}:" INSIDE                                         \
    "/bin\"; PYTHONPATH=\"${PYTHONPATH:+$PYTHONPATH:}" INSIDE "/python\"; "                        \
    "export PATH PYTHONPATH; "
/* The shell survives TERM, INT and HUP, stays until the script has ended, and returns its exit
 * code. */
#define COMMAND                                                                                    \
    PATHS ": >\"$BELAY_CONTROL_DIR/" IMAGE_INSIDE "\"; trap : TERM INT HUP; \"$@\"; exit $?"

extern const char image_sh[]; /* embedded by the build, without comment lines */

char *image_script(void)
{
    return mem_printf("#!/bin/sh\n%s", image_sh);
}

/* ---- runtimes ---- */

static char *in_path(const char *name)
{
    const char *p = getenv("PATH");
    while (p && *p) {
        size_t n = strcspn(p, ":");
        char *path = mem_printf("%.*s/%s", (int)n, p, name);
        struct stat st;
        if (path[0] == '/' && stat(path, &st) == 0 && S_ISREG(st.st_mode) &&
            access(path, X_OK) == 0)
            return path;
        free(path);
        p += n + (p[n] == ':');
    }
    return NULL;
}

void image_runtimes_find(struct image_runtimes *ret_runtimes)
{
    *ret_runtimes =
        (struct image_runtimes){.podman = in_path("podman"), .apptainer = in_path("apptainer")};
}

void image_runtimes_deinit(struct image_runtimes *r)
{
    free(r->podman);
    free(r->apptainer);
    *r = (struct image_runtimes){0};
}

/* ---- the command ---- */

struct words {
    char **v;
    size_t n;
};

static void add(struct words *w, char *word)
{
    w->v = mem_resize(w->v, w->n + 2, sizeof(*w->v));
    w->v[w->n++] = word;
    w->v[w->n] = NULL;
}

static void add_all(struct words *w, const char *const *list)
{
    for (; *list; list++)
        add(w, mem_strdup(*list));
}

static void bind(struct words *w, bool podman, const char *from, const char *to, const char *mode)
{
    add(w, mem_strdup(podman ? "--volume" : "--bind"));
    add(w, mem_printf("%s:%s%s", from, to, mode));
}

static void bind_all(struct words *w, const struct image_run *r, bool podman)
{
    char *belay = r->bin ? mem_printf("%s/belay", r->bin) : NULL,
         *libraries = r->bin ? mem_printf("%s/../lib/private", r->bin) : NULL;
    char *real = libraries ? realpath(libraries, NULL) : NULL;
    bind(w, podman, r->dir, r->dir, "");
    if (!str_eq(r->cwd, "/") && !str_starts(r->cwd, r->dir))
        bind(w, podman, r->cwd, r->cwd, "");
    if (r->secrets)
        bind(w, podman, r->secrets, r->secrets, ":ro");
    if (belay)
        bind(w, podman, belay, INSIDE "/bin/belay", ":ro");
    if (real) { /* a bundle: its libraries, and its loader at the same path */
        bind(w, podman, real, INSIDE "/lib/private", ":ro");
        bind(w, podman, real, real, ":ro");
    }
    if (r->python)
        bind(w, podman, r->python, INSIDE "/python", ":ro");
    free(belay);
    free(libraries);
    free(real);
}

/* Variables that describe this machine, not the job. */
static bool is_of_machine(const char *entry)
{
    static const char *const names[] = {"PATH=", "HOME=", "SHELL=", "TMPDIR=", "LD_LIBRARY_PATH=",
        "LD_PRELOAD=", "PYTHONPATH=", "PYTHONHOME=", NULL};
    for (const char *const *n = names; *n; n++)
        if (str_starts(entry, *n))
            return true;
    return false;
}

/* Passes names only: values stay in the environment, because every user can read command lines. */
static void pass_env(struct words *w, const struct image_run *r)
{
    for (char *const *p = r->env; *p; p++)
        if (!is_of_machine(*p)) {
            add(w, mem_strdup("--env"));
            add(w, mem_strndup(*p, strcspn(*p, "=")));
        }
}

static void pass_gpus(struct words *w, const char *gpus)
{
    for (const char *p = gpus; p && *p;) {
        size_t n = strcspn(p, ",");
        add(w, mem_strdup("--device"));
        add(w, mem_printf("nvidia.com/gpu=%.*s", (int)n, p));
        p += n + (p[n] == ',');
    }
}

static void add_podman(struct words *w, const struct image_run *r)
{
    /* No cgroups of podman's own, which would not be the task's. No signal proxy: the job's
     * processes are signalled directly. */
    static const char *const how[] = {"--cgroup-manager=cgroupfs", "run", "--rm", "--pull=never",
        "--cgroups=disabled", "--network=host", "--ipc=host", "--uts=host", "--ulimit=host",
        "--security-opt=label=disable", "--log-driver=none", "--interactive", "--sig-proxy=false",
        "--entrypoint=", NULL};
    add(w, mem_strdup(r->runtimes->podman));
    add_all(w, how);
    add(w, mem_printf("--name=%s", r->name));
    if (!r->is_root)
        add(w, mem_strdup("--userns=keep-id"));
    pass_gpus(w, r->gpus);
    bind_all(w, r, true);
    pass_env(w, r);
    add(w, mem_printf("--workdir=%s", r->cwd));
    add(w, mem_strdup(r->image));
}

static void add_apptainer(struct words *w, const struct image_run *r, bool is_file)
{
    add(w, mem_strdup(r->runtimes->apptainer));
    add(w, mem_strdup("exec"));
    if (r->gpus)
        add(w, mem_strdup("--nv"));
    bind_all(w, r, false);
    add(w, mem_strdup("--pwd"));
    add(w, mem_strdup(r->cwd));
    add(w, is_file ? mem_strdup(r->image) : mem_printf("%s/control/image.sif", r->dir));
}

static int choose(const struct image_run *r, bool *ret_podman, bool *ret_is_file, struct err *e)
{
    *ret_is_file = str_ends(r->image, ".sif");
    *ret_podman = !*ret_is_file && r->runtimes->podman;
    if (*ret_podman || r->runtimes->apptainer)
        return 0;
    return err_set(e, ERR_CONFIG, "this node has no %s, which the image %.200s needs",
        *ret_is_file ? "apptainer" : "podman or apptainer", r->image);
}

int image_command(const struct image_run *r, char ***ret_argv, struct err *e)
{
    struct words w = {0};
    bool is_file, podman;
    int rc = choose(r, &podman, &is_file, e);
    if (rc != 0)
        return rc;
    add(&w, mem_printf("%s/image.sh", r->dir));
    add(&w, mem_strdup(podman ? "podman" : is_file ? "file" : "apptainer"));
    add(&w, mem_strdup(podman ? r->runtimes->podman : r->runtimes->apptainer));
    add(&w, mem_strdup(r->image));
    add(&w, mem_printf("%s/control", r->dir));
    if (podman)
        add_podman(&w, r);
    else
        add_apptainer(&w, r, is_file);
    add_all(&w, (const char *const[]){"/bin/sh", "-c", COMMAND, "belay", NULL});
    add_all(&w, (const char *const *)r->argv);
    *ret_argv = w.v;
    return 0;
}

/* Passes only the variables of the session; the rest of the environment is the container's. */
static void enter_podman(struct words *w, const struct image_run *r, bool tty)
{
    add(w, mem_strdup(r->runtimes->podman));
    add_all(w, (const char *const[]){"--cgroup-manager=cgroupfs", "exec", "--interactive", NULL});
    if (tty)
        add_all(w, (const char *const[]){"--tty", "--detach-keys=", "--env", "TERM", NULL});
    add_all(w, (const char *const[]){"--env", IMAGE_SESSION, NULL});
    add(w, mem_printf("--workdir=%s", r->cwd));
    add(w, mem_strdup(r->name));
}

char **image_forget_command(const char *image, const char *name)
{
    struct image_runtimes runtimes;
    struct words w = {0};
    image_runtimes_find(&runtimes);
    if (runtimes.podman && !str_ends(image, ".sif")) {
        add(&w, mem_strdup(runtimes.podman));
        add_all(&w, (const char *const[]){"--cgroup-manager=cgroupfs", "rm", "--force", "--ignore",
                        "--time=0", name, NULL});
    }
    image_runtimes_deinit(&runtimes);
    return w.v;
}

int image_enter_command(const struct image_run *r, bool tty, char ***ret_argv, struct err *e)
{
    struct words w = {0};
    bool is_file, podman;
    int rc = choose(r, &podman, &is_file, e);
    if (rc != 0)
        return rc;
    if (podman)
        enter_podman(&w, r, tty);
    else
        add_apptainer(&w, r, is_file);
    add_all(&w, (const char *const[]){"/bin/sh", "-c", PATHS "exec \"$@\"", "belay", NULL});
    add_all(&w, (const char *const *)r->argv);
    *ret_argv = w.v;
    return 0;
}

/* ---- why it did not start ---- */

bool image_why(const char *control_dir, uid_t uid, char *text, size_t size)
{
    char *path = mem_printf("%s/" IMAGE_WORDS, control_dir), words[512];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    struct stat st;
    ssize_t n = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == uid &&
                        st.st_nlink == 1
                    ? read(fd, words, sizeof(words) - 1)
                    : 0;
    if (fd >= 0)
        close(fd);
    free(path);
    words[n > 0 ? n : 0] = '\0';
    words[strcspn(words, "\n")] = '\0';
    str_sanitize(words, strlen(words));
    bool bad = str_starts(words, "bad ");
    str_copy(text, size, bad ? words + 4 : str_starts(words, "node ") ? words + 5 : "");
    return bad;
}

/* ---- signals ---- */

struct recipients {
    int signum;
    bool only_handlers, is_entered;
    pid_t init, front;
};

static bool is_inside(void *ctx, pid_t pid)
{
    char path[40];
    struct stat theirs, ours;
    (void)ctx;
    snprintf(path, sizeof(path), "/proc/%ld/root/", (long)pid);
    return stat(path, &theirs) == 0 && stat("/", &ours) == 0 &&
           (theirs.st_dev != ours.st_dev || theirs.st_ino != ours.st_ino);
}

static bool is_recipient(void *ctx, pid_t pid)
{
    const struct recipients *h = ctx;
    if (h->is_entered ? !is_inside(NULL, pid)
                      : pid == h->init || (h->only_handlers && pid == h->front))
        return false;
    return !h->only_handlers || proc_handles(pid, h->signum);
}

int image_signal(struct proc_group *g, int signum, bool only_handlers, pid_t init, pid_t front)
{
    struct recipients h = {
        .signum = signum, .only_handlers = only_handlers, .init = init, .front = front};
    h.is_entered = proc_group_signal_if(g, 0, is_inside, NULL) > 0;
    return proc_group_signal_if(g, signum, is_recipient, &h);
}

static bool is_of_session(void *ctx, pid_t pid)
{
    const char *entry = ctx;
    char path[40];
    struct buf all = {0};
    bool found = false;
    snprintf(path, sizeof(path), "/proc/%ld/environ", (long)pid);
    if (!is_inside(NULL, pid) || fs_read(path, ENVIRON_MAX, &all, NULL) != 0)
        return false;
    const char *p = buf_str(&all), *end = p + all.len;
    for (; p < end && !found; p += strlen(p) + 1) /* a NUL follows the last one */
        found = str_eq(p, entry);
    buf_deinit(&all);
    return found;
}

int image_signal_session(struct proc_group *g, int signum, const char *entry)
{
    return proc_group_signal_if(g, signum, is_of_session, (void *)(uintptr_t)entry);
}
