/* SPDX-License-Identifier: Apache-2.0
 *
 * Measures what the kernel needs for a job without decisions, protocol or users: DIRECTORY N
 * AT_ONCE SCRIPT. Each job has a directory with the script, an output and a record of its end; a
 * cgroup; a process forked into it; and a row that is synced together with the rows of jobs that
 * end at about the same time. All of it is removed afterwards. Prints the wall and processor time
 * in seconds, including child processes. Unlike a scheduler, this process cannot be restarted.
 */
#include "base/fs.h"
#include "base/mem.h"
#include "base/time.h"
#include "base/uv/proc.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define AT_ONCE_MAX 1024

struct job {
    pid_t pid; /* 0: the slot is free */
    struct proc_group *group;
    char dir[32];
};

struct floor {
    struct proc_home *home;
    char script[4096];
    struct job jobs[AT_ONCE_MAX];
    int rows, ended;
};

static _Noreturn void die(const char *what)
{
    perror(what);
    exit(1);
}

static void put(const char *dir, const char *name, const char *text, mode_t mode)
{
    char path[64];
    struct err e;
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd < 0 || fs_write_all(fd, text, strlen(text), &e) != 0)
        die(path);
    close(fd);
}

static void start(struct floor *f, struct job *j, int number)
{
    const struct proc_limits limits = {.cpus_milli = 1000};
    char name[64], output[64], script[64];
    struct err e;
    int entered = 0;
    snprintf(j->dir, sizeof(j->dir), "%d", number);
    snprintf(name, sizeof(name), "belay-floor-%ld-%d", (long)getpid(), number);
    snprintf(output, sizeof(output), "%d/output", number);
    snprintf(script, sizeof(script), "%d/script", number);
    if (mkdir(j->dir, 0700) < 0)
        die(j->dir);
    put(j->dir, "script", f->script, 0700);
    int fd = open(output, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (proc_group_open_in(f->home, name, &limits, &j->group, &e) != 0) {
        fprintf(stderr, "%s\n", e.text);
        exit(1);
    }
    j->pid = proc_group_fork(j->group, &entered);
    if (j->pid == 0) {
        if (entered == 0 && dup2(fd, 1) >= 0 && dup2(fd, 2) >= 0)
            execl(script, script, (char *)NULL);
        _exit(127);
    }
    if (j->pid < 0)
        die("fork");
    close(fd);
}

static void sync_rows(const struct floor *f)
{
    if (fdatasync(f->rows) < 0)
        die("fdatasync");
}

static void end(struct floor *f, struct job *j, int status, int at_once)
{
    static const char *const files[] = {"script", "output", "exit"};
    char row[256], path[64];
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        die("a job has failed");
    put(j->dir, "exit", "0\n", 0600);
    proc_group_close(j->group, true);
    memset(row, 'x', sizeof(row));
    if (write(f->rows, row, sizeof(row)) < 0)
        die("a row");
    if (++f->ended % at_once == 0)
        sync_rows(f);
    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
        snprintf(path, sizeof(path), "%s/%s", j->dir, files[i]);
        unlink(path);
    }
    rmdir(j->dir);
    j->pid = 0;
}

static void run(struct floor *f, int n, int at_once)
{
    int status;
    for (int started = 0; f->ended < n;) {
        for (int i = 0; i < at_once && started < n; i++)
            if (f->jobs[i].pid == 0)
                start(f, &f->jobs[i], started++);
        pid_t pid = wait(&status);
        for (int i = 0; i < at_once; i++)
            if (f->jobs[i].pid == pid)
                end(f, &f->jobs[i], status, at_once);
    }
    sync_rows(f);
}

static double seconds(int who)
{
    struct rusage r;
    getrusage(who, &r);
    return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) +
           (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1e6;
}

int main(int argc, char **argv)
{
    struct floor *f = mem_alloc(sizeof(*f));
    int n = argc == 5 ? (int)strtol(argv[2], NULL, 10) : 0,
        at_once = argc == 5 ? (int)strtol(argv[3], NULL, 10) : 0;
    if (n < 1 || at_once < 1 || at_once > AT_ONCE_MAX || strlen(argv[4]) >= sizeof(f->script) ||
        chdir(argv[1]) < 0) {
        fputs("Usage: bench_floor DIRECTORY N AT_ONCE SCRIPT\n", stderr);
        return 2;
    }
    strncpy(f->script, argv[4], sizeof(f->script) - 1);
    f->rows = open("rows", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    f->home = proc_home_find();
    int64_t began = clock_mono(&clock_system).ms;
    run(f, n, at_once);
    printf("%.3f %.3f\n", (double)(clock_mono(&clock_system).ms - began) / 1000,
        seconds(RUSAGE_SELF) + seconds(RUSAGE_CHILDREN));
    proc_home_free(f->home);
    free(f);
    return 0;
}
