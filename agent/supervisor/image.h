/* SPDX-License-Identifier: Apache-2.0
 *
 * A job's script in a container image: how podman or apptainer is asked to run it. The image has to
 * have /bin/sh.
 *
 * What is the same inside: the task's directory (with the script, the checkpoint and control
 * directories), the working directory, the network, the user, and the job's environment but for
 * what belongs to a machine (PATH, HOME...). belay and its module for Python are in /run/belay. The
 * processes stay in the task's cgroup.
 *
 * image.sh has the image fetched first, which is where most can go wrong, and leaves words about it
 * in the control directory.
 *
 * What users run in it later (shells.h) goes into the same container with podman, which knows it by
 * a name; with apptainer, where a container is no more than what one process sees, into another of
 * the same image with the same directories.
 */
#ifndef BELAY_AGENT_SUPERVISOR_IMAGE_H
#define BELAY_AGENT_SUPERVISOR_IMAGE_H

#include "base/uv/proc.h"
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define IMAGE_INSIDE ".in-image" /* in the control directory: something of the job has run inside */
#define IMAGE_WORDS ".image"     /* there: "bad ..." or "node ...", why it was not fetched */

struct image_runtimes {
    char *podman, *apptainer; /* absolute paths; NULL if there is none */
};

/* Those in PATH. */
void image_runtimes_find(struct image_runtimes *ret_runtimes);
void image_runtimes_deinit(struct image_runtimes *r);

struct image_run {
    const struct image_runtimes *runtimes;
    const char *image;
    const char *name; /* of its container, the task's own */
    const char *dir;  /* the task's, absolute, with image.sh and script in it */
    const char *cwd;
    const char *bin, *python; /* struct tools; NULL if none */
    char *const *env;         /* of the job */
    bool is_root;             /* the job's user */
    const char *gpus;         /* "0,2", of NVIDIA's; NULL if none */
    char *const *argv;        /* of the script; argv[0] is its path */
};

char *image_script(void); /* image.sh, to be put there; the caller frees */

/* What image.sh, dir/image.sh, is to be run with, itself first; free with image_free. ERR_CONFIG:
 * there is no runtime for such an image. */
int image_command(const struct image_run *r, char ***ret_argv, struct err *e);
void image_free(char **argv);

/* in the environment of what is run there later: which of them it belongs to */
#define IMAGE_SESSION "BELAY_SESSION"

/* What a command, r->argv, is to be run with inside. tty: its standard input is a terminal.
 * ERR_CONFIG: as above. */
int image_enter_command(const struct image_run *r, bool tty, char ***ret_argv, struct err *e);

/* What is run, as the job's user, when a task has ended: podman has a container whose own processes
 * were killed with it in its books for ever. NULL: there is nothing to do. Freed with
 * image_free. */
char **image_forget_command(const char *image, const char *name);

/* What image.sh wrote before anything ran inside, from the control directory, which is the user's.
 * True: it is the image's fault, not the node's. text "": nothing is known. */
bool image_why(const char *control_dir, uid_t uid, char *text, size_t size);

/* Signals what is inside the container, which is what has another root than we; all, or what
 * handles the signal (proc.h). What is around it gets none: podman would end by one, or be taken
 * for a program that knows it. While nothing is inside (yet), what is neither init nor, of
 * handlers, front, the process that the launch told, counts as that. Returns how many got it. */
int image_signal(struct proc_group *g, int signum, bool only_handlers, pid_t init, pid_t front);

/* Signals what of a session is inside: what has this entry, IMAGE_SESSION=..., in its environment.
 * What is around it would not pass it on. Returns how many got it. */
int image_signal_session(struct proc_group *g, int signum, const char *entry);

#endif
