/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/task/grace.h"

#include "base/uv/proc_table.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

/* The pid of a process in its innermost pid namespace; 0 if the process has ended. */
static pid_t inner_number(pid_t pid)
{
    char path[40], line[256];
    pid_t inner = 0;
    snprintf(path, sizeof(path), "/proc/%ld/status", (long)pid);
    FILE *f = fopen(path, "re");
    while (f && inner == 0 && fgets(line, sizeof(line), f)) {
        const char *last = strrchr(line, '\t');
        long n;
        if (strncmp(line, "NSpid:", 6) == 0 && last && sscanf(last, "%ld", &n) == 1)
            inner = (pid_t)n;
    }
    if (f)
        fclose(f);
    return inner;
}

static bool is_script(const struct grace *g, pid_t pid)
{
    return g->script != 0 && (g->in_sandbox ? inner_number(pid) : pid) == g->script;
}

/* Processes of belay's own, which get no signals. */
static bool is_ours(const struct grace *g, pid_t pid)
{
    return pid == g->init || (g->in_sandbox && inner_number(pid) == 1);
}

static bool is_for_all(int signum)
{
    static const int those[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGKILL, SIGSTOP, SIGCONT};
    for (size_t i = 0; i < sizeof(those) / sizeof(*those); i++)
        if (those[i] == signum)
            return true;
    return false;
}

static bool is_recipient(void *ctx, pid_t pid)
{
    const struct grace *g = ctx;
    if (is_ours(g, pid))
        return false;
    if (g->to_script)
        return is_script(g, pid);
    if (g->to_all)
        return true;
    return is_script(g, pid) ? !g->to_programs && proc_handles(pid, g->signal)
                             : proc_handles(pid, g->signal) || is_for_all(g->signal);
}

int grace_send(const struct grace *g, struct proc_group *group)
{
    return proc_group_signal_if(group, g->signal, is_recipient, (void *)g);
}
