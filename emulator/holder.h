/* SPDX-License-Identifier: Apache-2.0
 *
 * The holder: the process between the emulator and the processes of one instance. It is a second
 * run of the emulator's own program (--holder NAME DIR SCRIPT), in a session of its own, and it
 * stands for the machine: when it ends an instance, nothing of the tree below it is left, whatever
 * forked, daemonised or called setsid.
 *
 * Standard input: lines from the emulator. Its end (the emulator is gone) kills the tree at once.
 *     kill-at MONO_MS     SIGKILL to everything at this time of CLOCK_MONOTONIC
 *     soft-off            the machine shuts down, as by ACPI: HOLDER_STOPPING is made, so that its
 *                         systemctl says "stopping"; SIGTERM to its one unit, the script's own
 *                         process; when that has ended, SIGTERM to what is left and SIGKILL
 *                         HOLDER_LAST_TERM_MS later
 *     shutdown MS         soft-off, and SIGKILL to everything in MS milliseconds (0: at once)
 * Standard output: one line when nothing is left, then it ends.
 *     gone power-off|killed MONO_MS
 */
#ifndef BELAY_EMULATOR_HOLDER_H
#define BELAY_EMULATOR_HOLDER_H

#include <sys/types.h>

#define HOLDER_FLAG "--holder"
#define HOLDER_LINE_MAX 128
#define HOLDER_GROUP_MAX 64
#define HOLDER_STOPPING "stopping" /* a file in the instance's directory: it shuts down */
#define HOLDER_LAST_TERM_MS 500

/* The name of the group of processes of an instance: another emulator on this machine, with the
 * same seed, gives its instances the same ids. */
void holder_group_name(const char *id, pid_t holder, char out[HOLDER_GROUP_MAX]);

/* argv after HOLDER_FLAG: the instance's id, its directory (removed in the end), where its output
 * goes, and the script to run, "" for none. The environment is the script's. Returns the exit
 * code. */
int holder_main(int argc, char **argv);

#endif
