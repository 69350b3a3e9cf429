/* SPDX-License-Identifier: Apache-2.0
 *
 * The terminal of a verb that redraws it and reads keys. Keys come one by one, without echo; the
 * shell's screen is back after every end: q, an interrupt, SIGTERM, SIGHUP, and a stop (ctrl-z),
 * also while a call to belayd hangs. A thread waits for the signals.
 */
#ifndef BELAY_CLI_TOP_SCREEN_H
#define BELAY_CLI_TOP_SCREEN_H

#include "base/err.h"
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <termios.h>

struct screen {
    struct termios saved;
    sigset_t signals;
    pthread_t thread;
    int wake[2]; /* pipe: redraw */
    bool is_open, has_keys;
};

/* Needs a terminal as standard output; has keys if standard input is one. */
int screen_open(struct screen *s, struct err *e);
void screen_close(struct screen *s); /* no-op if not open */

void screen_clear(void);

/* What screen_key returns besides a character. */
enum { KEY_NONE = -1, KEY_END = -2 };

/* Waits for a key: a character, KEY_NONE after timeout_ms or when the screen has changed, KEY_END
 * when there will be no more. */
int screen_key(struct screen *s, int64_t timeout_ms);

/* Rows and columns; 24 and 80 if unknown. */
void screen_size(int *ret_rows, int *ret_columns);

#endif
