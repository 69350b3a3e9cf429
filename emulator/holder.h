/* SPDX-License-Identifier: Apache-2.0
 *
 * The holder: the process between the emulator and the processes of one instance. It is a second
 * run of the emulator's own program (--holder NAME DIR SCRIPT), in a session of its own, and
 * represents the machine: when it ends an instance, nothing of the tree below it remains, whatever
 * forked, daemonised or called setsid.
 *
 * Standard input: commands from the emulator, one per line. EOF (the emulator is gone) kills the
 * tree at once.
 *     kill-at MONO_MS     SIGKILL to everything at this time of CLOCK_MONOTONIC
 *     soft-off            the machine shuts down, as by ACPI: creates HOLDER_STOPPING, so that its
 *                         systemctl says "stopping"; SIGTERM to its one unit, the script's own
 *                         process; when that has ended, SIGTERM to the rest and SIGKILL
 *                         HOLDER_LAST_TERM_MS later
 *     shutdown MS         soft-off, and SIGKILL to everything in MS milliseconds (0: at once)
 * Standard output: one line when nothing is left, then it exits.
 *     gone power-off|killed MONO_MS
 */
#ifndef BELAY_EMULATOR_HOLDER_H
#define BELAY_EMULATOR_HOLDER_H

#include <sys/types.h>

#define HOLDER_FLAG "--holder"
#define HOLDER_LINE_MAX 128
#define HOLDER_GROUP_MAX 64
#define HOLDER_STOPPING "stopping" /* a file in the instance's directory while it shuts down */
#define HOLDER_LAST_TERM_MS 500

/* The name of an instance's process group: unique per holder, because another emulator on this
 * machine with the same seed uses the same instance ids. */
void holder_group_name(const char *id, pid_t holder, char out[HOLDER_GROUP_MAX]);

/* argv after HOLDER_FLAG: the instance's id, its directory (removed at the end), its output file,
 * the script to run, "" for none, and how many ms later it starts. The script inherits the
 * environment. Returns the exit code. */
int holder_main(int argc, char **argv);

#endif
