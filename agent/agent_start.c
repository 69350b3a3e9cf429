/* SPDX-License-Identifier: Apache-2.0
 *
 * Done once, before the agent's loop runs: opens its directories, blocks what jobs must not reach,
 * and measures the node.
 */
#include "agent/agent_private.h"

#include "agent/dir_trial.h"
#include "agent/gpu/resources.h"
#include "agent/node_guard.h"
#include "agent/supervisor/image.h"
#include "agent/supervisor/limits.h"
#include "agent/supervisor/namespaces.h"
#include "agent/supervisor/proc_mount.h"
#include "agent/criu/criu_trial.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define GPUS_LISTING_MAX 32768

/* Makes ext4 spread the tasks over the disk. In one block group each new file would skip all inodes
 * freed in the last minutes (ext4 does not reuse them so soon), which costs a node with many short
 * jobs most of its time. */
static void spread(const char *dir)
{
    int flags, fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0 && ioctl(fd, FS_IOC_GETFLAGS, &flags) == 0 && !(flags & FS_TOPDIR_FL)) {
        flags |= FS_TOPDIR_FL;
        if (ioctl(fd, FS_IOC_SETFLAGS, &flags) < 0)
            log_debug("this file system cannot spread the tasks' directories", log_s("dir", dir));
    }
    if (fd >= 0)
        close(fd);
}

/* Makes the agent's directory traversable for other users. It may have been made under any umask
 * (that of user data is 077); its secret files have modes of their own. */
static int open_own_dir(const char *dir, struct err *e)
{
    struct stat st;
    int rc = 0, fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        rc = err_errno(e, errno, "cannot look at %s", dir);
    else if ((st.st_mode & 0111) != 0111 && fchmod(fd, (st.st_mode & 07777) | 0111) < 0)
        rc = err_errno(e, errno, "cannot open %s to the users of jobs", dir);
    if (fd >= 0)
        close(fd);
    return rc;
}

/* Other users must be able to traverse dir/tasks, which contains the directories of their jobs. */
int agent_open_dirs(struct agent *a, struct err *e)
{
    bool is_root = geteuid() == 0;
    mode_t mode = is_root ? 0711 : 0700;
    a->tasks_dir = mem_printf("%s/tasks", a->config->dir);
    a->kept_dir = mem_printf("%s/kept", a->config->dir);
    a->workdirs_dir = mem_printf("%s/workdirs", a->config->dir);
    int rc = fs_mkdirs(a->tasks_dir, mode, e);
    if (rc == 0 && is_root)
        rc = open_own_dir(a->config->dir, e);
    if (rc)
        return rc;
    spread(a->tasks_dir);
    char *path = mem_printf("%s/lock", a->config->dir);
    a->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (a->lock_fd < 0)
        rc = err_errno(e, errno, "opening %s", path);
    else if (fs_lock(a->lock_fd) < 0)
        rc = err_set(
            e, ERR_CONFLICT, "another agent is running with the directory %s", a->config->dir);
    free(path);
    if (rc == 0 && dir_trial(a->config->dir, a->config->system_users, e) != 0)
        rc = err_wrap(e, "dir");
    return rc;
}

/* Adds a feature for each container runtime, which jobs with an image require
 * (scheduler/api/jobspec.c). */
static void add_runtimes(struct config *c)
{
    struct image_runtimes found;
    image_runtimes_find(&found);
    if (found.podman)
        features_add(c->features, sizeof(c->features), "podman");
    if (found.apptainer)
        features_add(c->features, sizeof(c->features), "apptainer");
    image_runtimes_deinit(&found);
}

/* Lists GPUs with nvidia-smi or, if that fails, by device files. The configured number wins. */
static void find_gpus(struct agent *a, struct node_resources *r)
{
    char program[256], *listing = mem_alloc(GPUS_LISTING_MAX);
    const char *const argv[] = {program, "-L", NULL};
    struct counts own, all;
    struct err e;
    bool lists = a->config->gpus != 0 && criu_find_program("nvidia-smi", program, sizeof(program));
    if (lists &&
        criu_call(argv, "nvidia-smi -L", NULL, CRIU_PROBE_MS, listing, GPUS_LISTING_MAX, &e) != 0)
        log_warn("the GPUs could not be listed", log_err(&e));
    else if (lists)
        gpus_read(&a->gpus, listing);
    free(listing);
    if (a->gpus.n == 0)
        gpus_number(&a->gpus, r->gpus);
    if (a->config->gpus >= 0 && a->config->gpus != gpus_whole(&a->gpus))
        gpus_number(&a->gpus, a->config->gpus);
    r->gpus = gpus_whole(&a->gpus);
    if (counts_parse(a->config->resources, &own, &e) == 0) {
        gpus_count_slices(&a->gpus, &own, &all);
        counts_format(&all, a->config->resources);
    }
}

/* Of one GPU; 0 = not known. For models whose names do not say it, as "NVIDIA H200". */
static int64_t query_gpu_memory_mib(void)
{
    char program[256], *csv = mem_alloc(GPUS_LISTING_MAX);
    const char *const argv[] = {
        program, "--query-gpu=memory.total", "--format=csv,noheader,nounits", NULL};
    int64_t mib = 0;
    struct err e;
    if (criu_find_program("nvidia-smi", program, sizeof(program)) &&
        criu_call(argv, "nvidia-smi", NULL, CRIU_PROBE_MS, csv, GPUS_LISTING_MAX, &e) == 0)
        mib = gpus_memory_mib(csv);
    free(csv);
    return mib;
}

void agent_measure(struct agent *a)
{
    struct node_resources r = resources_measure();
    if (a->config->cpus > 0)
        r.cpus = a->config->cpus;
    if (a->config->memory_mib > 0)
        r.memory_mib = a->config->memory_mib;
    find_gpus(a, &r);
    if (a->config->gpu.model[0])
        STR_COPY(r.gpu.model, a->config->gpu.model);
    if (a->config->gpu.memory_mib > 0)
        r.gpu.memory_mib = a->config->gpu.memory_mib;
    else if (r.gpu.model[0] && r.gpu.memory_mib == 0)
        r.gpu.memory_mib = query_gpu_memory_mib();
    features_add(a->config->features, sizeof(a->config->features), r.arch);
    add_runtimes(a->config);
    a->enroll.resources = r;
    criu_probe(a->config->criu, &a->criu);
    criu_trial(&a->criu);
    log_info("checkpoints by CRIU", log_s("can", wire_word_name(wire_criu_names, (int)a->criu.can)),
        log_s("criu", a->criu.text));
}

/* Logs here, once, which namespaces are not available, instead of at each task. */
static void try_separation(struct agent *a)
{
    const struct namespaces_want ipc = {.ipc = true}, proc = {.hides_processes = true};
    struct err why;
    if (a->config->private_ipc && namespaces_try(&ipc, &why)) {
        log_warn("tasks use the node's shared memory, and segments that they leave remain (see "
                 "private_ipc)",
            log_err(&why));
        a->config->private_ipc = false;
    }
    if (a->config->hiding != PROCESSES_SHOWN && namespaces_try(&proc, &why)) {
        log_warn("users see each other's processes in tasks (see hide_processes)", log_err(&why));
        a->config->hiding = PROCESSES_SHOWN;
    }
}

/* Called before any job can start; jobs of an earlier agent already ran under the same rules. */
int agent_guard_node(struct agent *a, struct err *e)
{
    struct err why;
    enum metadata_guard want = a->config->metadata_guard;
    int rc = want == METADATA_OPEN ? 0 : node_guard_metadata(&why);
    if (rc && want == METADATA_GUARD_REQUIRED)
        return err_set(e, ERR_CONFIG, "metadata_guard: required: %s", why.text);
    if (rc)
        log_warn("jobs on this node can get its role's credentials from the metadata service (see "
                 "metadata_guard)",
            log_err(&why));
    else if (want != METADATA_OPEN)
        features_add(a->config->features, sizeof(a->config->features), "metadata-guard");
    if (geteuid() == 0)
        limits_protect();
    if (a->config->hiding == PROCESSES_HIDDEN && proc_mount_hide(&why))
        log_warn(
            "users see each other's processes on this node (see hide_processes)", log_err(&why));
    if (geteuid() == 0)
        try_separation(a);
    return 0;
}
