/* SPDX-License-Identifier: Apache-2.0
 *
 * Running a job's script in a container image with podman or apptainer. The image must have
 * /bin/sh.
 *
 * The same inside as outside: the task's directory (with the script, the checkpoint and control
 * directories), the working directory, the network, the user, and the job's environment except
 * variables that belong to a machine (PATH, HOME...). belay and its Python module are in
 * /run/belay. The processes stay in the task's cgroup.
 *
 * image.sh fetches the image first, where most failures occur, and writes the reason of a failure
 * to the control directory.
 *
 * Commands that users run later (shells.h) enter the same container with podman, which finds it by
 * name. With apptainer, whose containers are only one process's view, they run in a second
 * container of the same image with the same directories.
 */
#ifndef BELAY_AGENT_SUPERVISOR_IMAGE_H
#define BELAY_AGENT_SUPERVISOR_IMAGE_H

#include "base/uv/proc.h"
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define IMAGE_INSIDE ".in-image" /* in the control directory: the job has run something inside */
/* in the control directory: "bad ..." or "node ...", why the fetch failed */
#define IMAGE_WORDS ".image"

struct image_runtimes {
    char *podman, *apptainer; /* absolute paths; NULL if there is none */
};

/* Finds the runtimes in PATH. */
void image_runtimes_find(struct image_runtimes *ret_runtimes);
void image_runtimes_deinit(struct image_runtimes *r);

struct image_run {
    const struct image_runtimes *runtimes;
    const char *image;
    const char *name; /* name of the container, unique to the task */
    const char *dir;  /* the task's, absolute, with image.sh and script in it */
    const char *cwd;
    const char *bin, *python; /* from struct tools; NULL if none */
    const char *secrets;      /* directory of the job's secrets; NULL if none */
    char *const *env;         /* the job's environment */
    bool is_root;             /* the job's user is root */
    const char *gpus;         /* NVIDIA GPUs, "0,2"; NULL if none */
    char *const *argv;        /* of the script; argv[0] is its path */
};

char *image_script(void); /* text of image.sh; the caller frees */

/* The arguments that run dir/image.sh, itself first; free with mem_free_texts. ERR_CONFIG: no
 * runtime for such an image. */
int image_command(const struct image_run *r, char ***ret_argv, struct err *e);

/* in the environment of commands run later: the session that they belong to */
#define IMAGE_SESSION "BELAY_SESSION"

/* The arguments that run a command, r->argv, inside. tty: its standard input is a terminal.
 * ERR_CONFIG: as above. */
int image_enter_command(const struct image_run *r, bool tty, char ***ret_argv, struct err *e);

/* The command to run as the job's user when a task has ended: podman never drops the record of a
 * container whose own processes were killed. NULL if there is nothing to do. Free with
 * mem_free_texts. */
char **image_forget_command(const char *image, const char *name);

/* Reads what image.sh wrote to the control directory, which is the user's, before anything ran
 * inside. True if the image is at fault, not the node. text is "" if nothing is known. */
bool image_why(const char *control_dir, uid_t uid, char *text, size_t size);

/* Signals the processes inside the container, which are those with another root directory than
 * ours; all of them, or only those that handle the signal (proc.h). The runtime's own processes get
 * none: podman would end by it, or be mistaken for a program that handles it. While nothing is
 * inside (yet), every process counts as inside except init and, with only_handlers, front (the
 * process reported by the launch). Returns how many got it. */
int image_signal(struct proc_group *g, int signum, bool only_handlers, pid_t init, pid_t front);

/* Signals the processes of a session inside the container: those with this entry,
 * IMAGE_SESSION=..., in their environment. The runtime would not forward the signal. Returns how
 * many got it. */
int image_signal_session(struct proc_group *g, int signum, const char *entry);

#endif
