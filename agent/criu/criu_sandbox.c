/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/criu/criu_sandbox.h"

#include "agent/criu/criu_created.h"
#include "agent/criu/criu_files.h"
#include "agent/criu/criu_gpu.h"
#include "agent/criu/criu_rights.h"
#include "agent/task/handover.h"
#include "agent/task/record.h"
#include "base/fs.h"
#include "base/fs_user.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/uv/proc.h"
#include "base/uv/proc_table.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define OUTPUT_PIPE "output.pipe"

/* ---- the sandbox ---- */

int criu_sandbox_separate(void)
{
    return unshare(CLONE_NEWPID | CLONE_NEWNS);
}

/* Later mounts outside appear inside the sandbox too, but not the reverse. */
int criu_sandbox_enter(const char *task_dir)
{
    if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0 ||
        mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
        return -1;
    if (mkdir(CRIU_SANDBOX, 0755) < 0 && errno != EEXIST)
        return -1;
    return task_dir ? mount(task_dir, CRIU_SANDBOX, NULL, MS_BIND, NULL)
                    : mount("belay", CRIU_SANDBOX, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755");
}

int criu_sandbox_prepare_pid(void)
{
    char text[16];
    int n = snprintf(text, sizeof(text), "%d", CRIU_ROOT_PID - 1);
    int fd = open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    int rc = write(fd, text, (size_t)n) == n ? 0 : -1;
    int why = errno;
    close(fd);
    errno = why;
    return rc;
}

/* ---- the job's output ---- */

int criu_sandbox_note_output(int fd, struct err *e)
{
    struct stat st;
    char text[24];
    if (fstat(fd, &st) < 0)
        return err_errno(e, errno, "looking at the pipe of a task's output");
    int n = snprintf(text, sizeof(text), "%llu", (unsigned long long)st.st_ino);
    return record_put(OUTPUT_PIPE, text, (size_t)n, 0600, e);
}

static int read_output(int64_t *ret_output, struct err *e)
{
    struct buf text = {0};
    int rc = fs_read(CRIU_SANDBOX "/" OUTPUT_PIPE, 64, &text, e);
    if (!rc)
        rc = str_to_i64(buf_str(&text), 1, UINT32_MAX, OUTPUT_PIPE, ret_output, e);
    buf_deinit(&text);
    return rc;
}

/* ---- restoring ---- */

/* Writes the reason where the supervisor reads it, in the form of criu's log. */
static void write_reason(const struct err *e)
{
    char *text = mem_printf("Error (belay): %s\n", e->text);
    struct err ignored;
    record_put(CRIU_SANDBOX "/restore.log", text, strlen(text), 0600, &ignored);
    free(text);
}

static int restore_files(const struct job_user *u, struct err *e)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        int rc = criu_files_restore(CRIU_SANDBOX "/checkpoint", u, e);
        if (rc)
            write_reason(e);
        _exit(rc ? 1 : 0);
    }
    if (pid < 0)
        return err_errno(e, errno, "starting a process");
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return err_errno(e, errno, "waiting for a process");
    return status == 0 ? 0 : err_set(e, ERR_IO, "the job's open files could not be put back");
}

static bool is_scratch_given(const struct job_user *u)
{
    struct stat st;
    return lstat(CRIU_SANDBOX "/scratch", &st) == 0 && st.st_uid == u->uid;
}

int criu_sandbox_restore(const char *criu, const struct job_user *u, int output, struct err *e)
{
    struct criu c = {0};
    int64_t before;
    STR_COPY(c.path, criu);
    int rc = u->is_other ? criu_created_check(CRIU_IMAGES "/dump", NULL, e) : 0;
    if (!rc)
        rc = criu_files_read_output(CRIU_SANDBOX "/checkpoint", &before, e);
    if (rc) {
        write_reason(e);
        return rc;
    }
    rc = restore_files(u, e);
    if (rc)
        return rc;
    unlink(CRIU_SANDBOX "/" CRIU_RIGHTS_MARK);
    const char **argv = criu_restore_argv(&c, before);
    rc = criu_call_restore(argv, output, CRIU_SANDBOX "/restore.log", CRIU_RESTORE_MS, e);
    free(argv);
    if (!rc && !fs_has_name(CRIU_SANDBOX "/" CRIU_RIGHTS_MARK))
        rc = err_set(e, ERR_IO,
            "criu restore ended without calling its action script, which compares rights");
    if (!rc && !is_scratch_given(u))
        rc = err_set(e, ERR_IO, "the job's BELAY_CHECKPOINT_DIR was not given to %s", u->name);
    if (rc)
        write_reason(e);
    return rc;
}

/* ---- criu's action script ---- */

int criu_sandbox_write_hook(const char *task_dir, struct err *e)
{
    char own[4096];
    ssize_t n = readlink("/proc/self/exe", own, sizeof(own) - 1);
    if (n <= 0)
        return err_errno(e, errno, "finding our own program");
    own[n] = '\0';
    struct buf text = {0};
    char *path = mem_printf("%s/hook", task_dir);
    buf_adds(&text, "#!/bin/sh\ncase \"$CRTOOLS_SCRIPT_ACTION\" in\npost-dump) exec ");
    str_shell_quote(&text, own);
    buf_adds(&text, " criu-files ;;\npost-restore) exec ");
    str_shell_quote(&text, own);
    buf_adds(&text, " criu-rights ;;\npre-resume) exec ");
    str_shell_quote(&text, own);
    buf_adds(&text, " criu-give ;;\nesac\n");
    int rc = record_put(path, buf_str(&text), text.len, 0700, e);
    free(path);
    buf_deinit(&text);
    return rc;
}

/* ---- dumping ---- */

int criu_sandbox_prepare_dump(const char *task_dir, struct err *e)
{
    char *all = mem_printf("%s/checkpoint", task_dir), *pre = mem_printf("%s/images/pre", all),
         *dump = mem_printf("%s/images/dump", all), *log = mem_printf("%s/dump.log", task_dir);
    int rc = fs_remove_tree(all, e);
    if (!rc)
        rc = fs_mkdirs(pre, 0700, e);
    if (!rc)
        rc = fs_mkdirs(dump, 0700, e);
    if (!rc)
        rc = criu_sandbox_write_hook(task_dir, e);
    unlink(log);
    free(log);
    free(dump);
    free(pre);
    free(all);
    return rc;
}

static const char *const steps[] = {"pre-dump", "running", "stopped", NULL};

int criu_sandbox_dump(const struct criu_dump *d, struct err *e)
{
    char *log = mem_printf("%s/dump.log", d->task_dir);
    char own[4096], timeout[24];
    ssize_t n = readlink("/proc/self/exe", own, sizeof(own) - 1);
    own[n > 0 ? n : 0] = '\0';
    snprintf(timeout, sizeof(timeout), "%lld", (long long)d->timeout_ms);
    const char *const argv[] = {own, "criu-dump", d->task_dir, d->criu->path, steps[d->step],
        d->parent ? "parent" : "alone", timeout, d->with_gpus ? d->criu->cuda_checkpoint : "",
        NULL};
    int rc = criu_call(argv, d->step == CRIU_PRE_DUMP ? "criu pre-dump" : "criu dump", log,
        d->timeout_ms, NULL, 0, e);
    free(log);
    return rc;
}

static int find_init(const char *task_dir, pid_t *ret_pid, struct err *e)
{
    struct task_start start;
    char *path = mem_printf("%s/supervisor.pid", task_dir);
    int rc = record_read_start(path, &start, e);
    free(path);
    if (rc)
        return rc;
    if (start.init_ticks <= 0 ||
        proc_start_ticks((pid_t)start.init_pid) != (uint64_t)start.init_ticks)
        return err_set(e, ERR_NOT_FOUND, "the task has ended");
    *ret_pid = (pid_t)start.init_pid;
    return 0;
}

int64_t criu_sandbox_memory(const char *task_dir)
{
    struct proc_table t = {0};
    struct err ignored;
    pid_t init;
    int64_t pages = 0;
    if (find_init(task_dir, &init, &ignored))
        return 0;
    proc_table_read(&t);
    proc_table_mark_below(&t, init);
    for (size_t i = 0; i < t.n; i++) {
        char path[32];
        long long resident = 0;
        snprintf(path, sizeof(path), "/proc/%ld/statm", (long)t.entries[i].pid);
        FILE *f = t.entries[i].is_marked ? fopen(path, "re") : NULL;
        if (f && fscanf(f, "%*d %lld", &resident) == 1)
            pages += resident;
        if (f)
            fclose(f);
    }
    proc_table_deinit(&t);
    return pages * sysconf(_SC_PAGESIZE);
}

/* ---- our own programs ---- */

static int fail(const struct err *e)
{
    fprintf(stderr, "Error (belay): %s\n", e->text);
    return 1;
}

static int open_namespace(pid_t init, const char *name, struct err *e)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%ld/ns/%s", (long)init, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? err_errno(e, errno, "opening %s", path) : fd;
}

/* Enters the namespaces of the sandbox: this process's mounts change at once, its next child has
 * the pid namespace. */
static int join_namespaces(pid_t init, struct err *e)
{
    int pids = open_namespace(init, "pid_for_children", e);
    int mounts = pids < 0 ? -1 : open_namespace(init, "mnt", e);
    if (pids < 0 || mounts < 0)
        return e->kind;
    if (setns(pids, CLONE_NEWPID) < 0 || setns(mounts, CLONE_NEWNS) < 0)
        return err_errno(e, errno, "entering the task's namespaces");
    return 0;
}

/* Runs in the sandbox. Replaces this process with criu, or returns an exit code. */
static int dump_inside(const char *criu, enum criu_step step, bool parent, int64_t timeout_ms)
{
    struct criu c = {0};
    struct err e;
    STR_COPY(c.path, criu);
    if (criu_files_check_tree(CRIU_ROOT_PID, &e))
        return fail(&e);
    const char **argv = criu_dump_argv(&c, step, parent, timeout_ms);
    execv(argv[0], (char *const *)(uintptr_t)argv);
    err_errno(&e, errno, "starting %s", criu);
    return fail(&e);
}

static int release_inside(const char *cuda_checkpoint)
{
    struct err e;
    return criu_gpu_release(cuda_checkpoint, &e) ? fail(&e) : 0;
}

static int wait_for(pid_t pid)
{
    int status = 0;
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int criu_sandbox_dump_main(int argc, char **argv)
{
    struct err e;
    pid_t init;
    int64_t timeout_ms;
    int step = 0;
    if (argc != 8 || str_to_i64(argv[6], 1, INT64_MAX, "", &timeout_ms, &e))
        return 2;
    while (steps[step] && !str_eq(steps[step], argv[4]))
        step++;
    if (!steps[step])
        return 2;
    if (find_init(argv[2], &init, &e) || join_namespaces(init, &e))
        _exit(fail(&e));
    pid_t pid = fork();
    if (pid == 0)
        _exit(dump_inside(argv[3], (enum criu_step)step, str_eq(argv[5], "parent"), timeout_ms));
    int code = wait_for(pid);
    if (code != 0 && *argv[7]) {
        pid = fork();
        if (pid == 0)
            _exit(release_inside(argv[7]));
        code = wait_for(pid) == 0 ? code : CRIU_EXIT_DAMAGED;
    }
    /* Without exit handlers: those of a sanitizer would look for children in another namespace. */
    _exit(code);
}

/* criu calls this in the sandbox when it uses no more names, before the processes run. */
int criu_sandbox_give_main(void)
{
    struct wire_desired spec;
    struct job_user u;
    struct err e;
    int rc = record_read_spec(CRIU_SANDBOX "/spec.json", &spec, &e);
    if (rc)
        return fail(&e);
    rc = user_resolve(spec.attempts[0].user, &u, &e);
    if (!rc)
        rc = handover_tree(&u, CRIU_SANDBOX "/scratch", &e);
    wire_desired_deinit(&spec);
    return rc ? fail(&e) : 0;
}

/* criu calls this in the sandbox while all processes are frozen. */
int criu_sandbox_files_main(void)
{
    struct wire_desired spec;
    struct criu_files files;
    struct job_user u;
    int64_t output;
    struct err e;
    int rc = record_read_spec(CRIU_SANDBOX "/spec.json", &spec, &e);
    if (rc)
        return fail(&e);
    const struct wire_desired_attempt *a = &spec.attempts[0];
    rc = user_resolve(a->user, &u, &e);
    if (!rc && u.is_other)
        rc = criu_created_check(CRIU_IMAGES "/dump", CRIU_SANDBOX "/scratch", &e);
    if (!rc)
        rc = read_output(&output, &e);
    if (!rc)
        rc = criu_files_find(CRIU_ROOT_PID, u.uid, *a->cwd ? a->cwd : u.home, &files, &e);
    if (!rc) {
        files.output = output;
        rc =
            criu_files_save(&files, u.uid, CRIU_SANDBOX "/scratch", CRIU_SANDBOX "/checkpoint", &e);
        criu_files_deinit(&files);
    }
    wire_desired_deinit(&spec);
    return rc ? fail(&e) : 0;
}
