/* SPDX-License-Identifier: Apache-2.0
 *
 * See screen.h.
 */
#include "cli/top/screen.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define OWN_SCREEN "\033[?1049h"
#define SHELLS_SCREEN "\033[?1049l"

static void put(const char *text)
{
    /* not through stdio, whose lock the main thread may hold */
    ssize_t n = write(STDOUT_FILENO, text, strlen(text));
    (void)n;
}

static void enter(const struct screen *s)
{
    struct termios t = s->saved;
    t.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    t.c_cc[VMIN] = 1;
    t.c_cc[VTIME] = 0;
    if (s->has_keys)
        tcsetattr(STDIN_FILENO, TCSADRAIN, &t);
    put(OWN_SCREEN);
}

static void leave(const struct screen *s)
{
    put(SHELLS_SCREEN);
    if (s->has_keys)
        tcsetattr(STDIN_FILENO, TCSADRAIN, &s->saved);
}

/* Ends the process by the signal, as if it had not been caught. */
static void end_by(int signum)
{
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, signum);
    signal(signum, SIG_DFL);
    pthread_sigmask(SIG_UNBLOCK, &one, NULL);
    raise(signum);
}

/* SIGUSR2 ends the thread. */
static void *watch(void *ctx)
{
    struct screen *s = ctx;
    int signum;
    while (sigwait(&s->signals, &signum) == 0 && signum != SIGUSR2) {
        if (signum == SIGTSTP) {
            leave(s);
            raise(SIGSTOP);
            enter(s);
        } else if (signum != SIGWINCH) {
            leave(s);
            end_by(signum);
        }
        ssize_t n = write(s->wake[1], "", 1);
        (void)n;
    }
    return NULL;
}

int screen_open(struct screen *s, struct err *e)
{
    static const int watched[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH, SIGUSR2};
    *s = (struct screen){.wake = {-1, -1}};
    s->has_keys = isatty(STDIN_FILENO) && tcgetattr(STDIN_FILENO, &s->saved) == 0;
    if (pipe2(s->wake, O_CLOEXEC | O_NONBLOCK) != 0)
        return err_errno(e, errno, "cannot make a pipe");
    sigemptyset(&s->signals);
    for (size_t i = 0; i < sizeof(watched) / sizeof(watched[0]); i++)
        sigaddset(&s->signals, watched[i]);
    pthread_sigmask(SIG_BLOCK, &s->signals, NULL);
    enter(s);
    int failed = pthread_create(&s->thread, NULL, watch, s);
    s->is_open = failed == 0;
    if (failed == 0)
        return 0;
    leave(s);
    close(s->wake[0]);
    close(s->wake[1]);
    return err_errno(e, failed, "cannot start a thread");
}

void screen_close(struct screen *s)
{
    if (!s->is_open)
        return;
    s->is_open = false;
    pthread_kill(s->thread, SIGUSR2);
    pthread_join(s->thread, NULL);
    fflush(stdout);
    leave(s);
    close(s->wake[0]);
    close(s->wake[1]);
}

void screen_clear(void)
{
    fputs("\033[H\033[J", stdout);
}

int screen_key(struct screen *s, int64_t timeout_ms)
{
    struct pollfd p[] = {{.fd = s->wake[0], .events = POLLIN},
        {.fd = s->has_keys ? STDIN_FILENO : -1, .events = POLLIN}};
    unsigned char c[64];
    if (poll(p, 2, (int)timeout_ms) <= 0)
        return KEY_NONE;
    if (p[0].revents) {
        ssize_t n = read(s->wake[0], c, sizeof(c));
        (void)n;
        return KEY_NONE;
    }
    ssize_t n = read(STDIN_FILENO, c, 1);
    if (n == 1)
        return c[0];
    return n < 0 && errno == EINTR ? KEY_NONE : KEY_END;
}

void screen_size(int *ret_rows, int *ret_columns)
{
    struct winsize w = {0};
    bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_row > 0 && w.ws_col > 0;
    *ret_rows = known ? w.ws_row : 24;
    *ret_columns = known ? w.ws_col : 80;
}
