/* SPDX-License-Identifier: Apache-2.0
 *
 *     supervisor --fork--> minder --fork--> command
 *
 * The minder reports the command's end, forwards signals, and hangs up the command when the agent
 * closes the connection. Both are in the task's cgroup, so neither outlives it.
 */
#include "agent/supervisor/shells.h"

#include "agent/supervisor/launch.h"
#include "base/fds.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/prng.h"
#include "base/str.h"
#include "base/time.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MESSAGE_WAIT_MS 1000
#define HANG_UP_MS 2000                /* between SIGHUP and SIGKILL */
#define IMAGE_WAIT_MS SECONDS_MS(1800) /* for the task's container */
#define IMAGE_CHECK_MS 50

/* ---- messages ---- */

const char *const shell_to_names[] = {"programs", "script", "all", NULL};

char *shell_format(const char *const *command, bool tty, const char *term)
{
    json_t *words = json_array();
    for (; *command; command++)
        json_array_append_new(words, json_text(*command));
    json_t *v =
        json_pack("{s:o,s:b,s:o}", "command", words, "tty", (int)tty, "term", json_text(term));
    char *text = json_dump_text(v);
    json_decref(v);
    return text;
}

char *shell_format_signal(int signum, enum shell_to to)
{
    json_t *v = json_pack("{s:i,s:s}", "signal", signum, "to", shell_to_names[to]);
    char *text = json_dump_text(v);
    json_decref(v);
    return text;
}

void shell_order_deinit(struct shell_order *o)
{
    for (size_t i = 0; o->command && o->command[i]; i++)
        free(o->command[i]);
    free(o->command);
    *o = (struct shell_order){0};
}

static int read_words(struct json_reader *r, struct shell_order *o)
{
    const json_t *words = json_req_array(r, "command", SHELL_WORDS_MAX), *word;
    size_t i;
    if (r->rc == 0 && json_array_size(words) == 0)
        json_reader_fail(r, "command", "is empty");
    o->command = mem_array(json_array_size(words) + 1, sizeof(*o->command));
    json_array_foreach(words, i, word)
    {
        const char *text = json_string_value(word);
        if (!text || strlen(text) != json_string_length(word))
            json_reader_fail(r, "command", "expected texts without NUL");
        if (r->rc != 0)
            break;
        o->command[i] = mem_strdup(text);
    }
    return r->rc;
}

static void read_signal(struct json_reader *r, struct shell_order *o)
{
    o->signal = (int)json_req_i64(r, "signal", 1, 64);
    o->to = (enum shell_to)json_opt_enum(r, "to", shell_to_names, SHELL_TO_PROGRAMS);
}

int shell_parse(const char *text, size_t n, struct shell_order *ret_order, struct err *e)
{
    struct shell_order o = {0};
    struct json_reader r;
    json_t *v;
    int rc = json_parse(text, n, SHELL_MESSAGE_MAX, &v, e);
    if (rc != 0)
        return rc;
    json_reader_init(&r, v, "order", e);
    if (json_object_get(v, "signal"))
        read_signal(&r, &o);
    else
        read_words(&r, &o);
    o.tty = json_opt_bool(&r, "tty", false);
    json_opt_strcpy(&r, "term", o.term, sizeof(o.term), "");
    rc = json_reader_finish(&r);
    json_decref(v);
    if (rc != 0)
        shell_order_deinit(&o);
    else
        *ret_order = o;
    return rc;
}

/* ---- the command ---- */

static void report(int fd, enum shell_step step, int value)
{
    const struct shell_report r = {.step = step, .value = value};
    if (send(fd, &r, sizeof(r), MSG_NOSIGNAL) < 0)
        _exit(126); /* the agent has closed the connection */
}

/* The task's environment with the caller's TERM. session: an entry to add, "" for none. */
static char **env_of(const struct shells *s, const struct shell_order *o, const char *session)
{
    size_t n = 0, kept = 0;
    while (s->env[n])
        n++;
    char **env = mem_array(n + 3, sizeof(*env));
    for (size_t i = 0; i < n; i++)
        if (!o->term[0] || !str_starts(s->env[i], "TERM="))
            env[kept++] = s->env[i];
    if (o->term[0])
        env[kept++] = mem_printf("TERM=%s", o->term);
    if (*session)
        env[kept] = mem_strdup(session);
    return env;
}

static const char *path_of(char *const *env)
{
    for (; *env; env++)
        if (str_starts(*env, "PATH="))
            return *env + 5;
    return "/usr/local/bin:/usr/bin:/bin";
}

/* The runtime is looked up now, because it may have been installed since the agent's start. */
static char **in_container(const struct shells *s, const struct shell_order *o)
{
    struct image_runtimes runtimes;
    struct image_run r = *s->image;
    char **argv = NULL;
    struct err e;
    image_runtimes_find(&runtimes);
    r.runtimes = &runtimes;
    r.argv = o->command;
    if (image_enter_command(&r, o->tty, &argv, &e) != 0)
        log_warn("a container cannot be entered", log_err(&e));
    return argv;
}

/* A task counts as running while its image is fetched. A runtime that is asked to enter a container
 * before it exists fails, and the command inside would never run. The wait ends with the session,
 * by a signal, or with the task. */
static bool await_container(const struct image_run *image)
{
    const struct timespec pause = {.tv_nsec = IMAGE_CHECK_MS * 1000000L};
    char *mark = mem_printf("%s/control/" IMAGE_INSIDE, image->dir);
    struct stat st;
    bool runs = lstat(mark, &st) == 0;
    for (int64_t waited = 0; !runs && waited < IMAGE_WAIT_MS; waited += IMAGE_CHECK_MS) {
        nanosleep(&pause, NULL);
        runs = lstat(mark, &st) == 0;
    }
    free(mark);
    return runs;
}

static void run_command(const struct shells *s, const struct shell_order *o, const char *session,
    const int fds[SHELL_FDS])
{
    int to_agent = fcntl(fds[3], F_DUPFD_CLOEXEC, 10), files[3];
    char **env = env_of(s, o, session), **argv = s->image ? in_container(s, o) : o->command;
    setsid();
    launch_reset_signals();
    umask(022);
    for (int i = 0; i < 3; i++)
        files[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 10);
    for (int i = 0; i < 3; i++)
        dup2(files[i], i);
    if (o->tty && (ioctl(0, TIOCSCTTY, 0) < 0 ||
                      (s->user->is_other && fchown(0, s->user->uid, s->user->gid) < 0)))
        log_debug("a command's terminal could not be made its controlling terminal");
    setenv("PATH", path_of(env), 1); /* where execvpe looks */
    if (!argv)
        report(to_agent, SHELL_EXEC, ENOENT);
    else if (s->image && !await_container(s->image))
        report(to_agent, SHELL_IMAGE, ETIMEDOUT);
    else if (launch_become_user(s->user) != 0)
        report(to_agent, SHELL_USER, errno);
    else if (chdir(s->cwd) != 0)
        report(to_agent, SHELL_CWD, errno);
    else if (execvpe(argv[0], argv, env) != 0)
        report(to_agent, SHELL_EXEC, errno);
    _exit(127);
}

/* ---- the minder ---- */

static void on_child(int signum)
{
    (void)signum;
}

/* In a container signals the session's processes; the runtime itself while there are none (yet). */
static void forward_signal(const struct shells *s, const char *session, pid_t command, int signum)
{
    if (!*session || image_signal_session(s->group, signum, session) <= 0)
        kill(-command, signum);
}

static void hang_up(const struct shells *s, const char *session, pid_t command)
{
    const struct timespec pause = {.tv_nsec = 50000000};
    int status;
    forward_signal(s, session, command, SIGHUP);
    forward_signal(s, session, command, SIGCONT);
    for (int waited = 0; waited < HANG_UP_MS; waited += 50) {
        if (waitpid(command, &status, WNOHANG) == command)
            break;
        nanosleep(&pause, NULL);
    }
    forward_signal(s, session, command, SIGKILL);
    kill(-command, SIGKILL);
    _exit(0);
}

/* Runs until the command has ended, or the agent has closed the connection. */
static void supervise_command(const struct shells *s, const char *session, pid_t command, int agent)
{
    sigset_t none;
    sigemptyset(&none);
    for (;;) {
        int status;
        if (waitpid(command, &status, WNOHANG) == command) {
            report(agent, SHELL_ENDED, status);
            _exit(0);
        }
        struct pollfd p = {.fd = agent, .events = POLLIN};
        if (ppoll(&p, 1, NULL, &none) <= 0)
            continue; /* SIGCHLD */
        unsigned char signum;
        ssize_t n = recv(agent, &signum, 1, MSG_DONTWAIT);
        if (n == 1 && signum >= 1 && signum <= 64)
            forward_signal(s, session, command, signum);
        else if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
            hang_up(s, session, command);
    }
}

static void run_shell_supervisor(
    const struct shells *s, const struct shell_order *o, const int fds[SHELL_FDS])
{
    sigset_t child;
    for (int signum = 1; signum < NSIG; signum++)
        signal(signum, SIG_IGN);
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_SETMASK, &child, NULL);
    signal(SIGCHLD, on_child);
    int rc = proc_group_enter(s->group);
    if (rc < 0) {
        report(fds[3], SHELL_GROUP, -rc);
        _exit(127);
    }
    launch_close_all_but(fds[0], fds[1], fds[2], fds[3]);
    setsid();
    char session[sizeof(IMAGE_SESSION) + 40] = "", hex[33];
    random_hex(16, hex);
    if (s->image)
        snprintf(session, sizeof(session), IMAGE_SESSION "=%s", hex);
    pid_t command = fork();
    if (command == 0)
        run_command(s, o, session, fds);
    if (command < 0) {
        report(fds[3], SHELL_GROUP, errno);
        _exit(127);
    }
    for (int i = 0; i < 3; i++)
        close(fds[i]);
    supervise_command(s, session, command, fds[3]);
}

/* ---- the supervisor ---- */

/* A signal is sent at once, so it needs no minder. */
static void send_signal(
    const struct shells *s, const struct shell_order *o, const int fds[SHELL_FDS])
{
    int n = s->signal(s->ctx, o->signal, o->to);
    const struct shell_report r = n < 0 ? (struct shell_report){SHELL_EXEC, -n}
                                        : (struct shell_report){SHELL_ENDED, W_EXITCODE(n == 0, 0)};
    if (send(fds[3], &r, sizeof(r), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        log_debug("the result of a signal could not be reported");
}

/* Returns 0 or an errno. */
static int send_secrets(const struct shells *s, int agent)
{
    const struct shell_report r = {.step = SHELL_SECRETS};
    int fd = s->mask ? mask_save(s->mask) : -1;
    if (!s->mask)
        return 0;
    if (fd < 0)
        return errno;
    int rc = fds_send(agent, &r, sizeof(r), &fd, 1);
    close(fd);
    return -rc;
}

/* A free slot, after reaping minders that have ended; NULL if there is none. */
static pid_t *free_slot(struct shells *s)
{
    pid_t *free_one = NULL;
    for (size_t i = 0; i < SHELLS_MAX; i++) {
        if (s->minders[i] > 0 && waitpid(s->minders[i], NULL, WNOHANG) != 0)
            s->minders[i] = 0;
        if (s->minders[i] == 0)
            free_one = &s->minders[i];
    }
    return free_one;
}

static void start(struct shells *s, const char *text, size_t n, const int fds[SHELL_FDS])
{
    struct shell_order o = {0};
    struct shell_report refused = {.step = SHELL_REFUSED};
    struct err e;
    pid_t *minder = free_slot(s), pid = -1;
    bool is_read = shell_parse(text, n, &o, &e) == 0;
    if (is_read && o.signal) {
        send_signal(s, &o, fds);
        return;
    }
    if (!is_read)
        log_warn("a command for the task was not understood", log_err(&e));
    else if (!minder)
        refused.value = EAGAIN;
    else if ((refused.value = send_secrets(s, fds[3])) != 0)
        refused.step = SHELL_GROUP;
    else
        pid = fork();
    if (pid == 0)
        run_shell_supervisor(s, &o, fds);
    if (pid > 0)
        *minder = pid;
    else if (send(fds[3], &refused, sizeof(refused), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        log_debug("the refusal of a command could not be reported");
    shell_order_deinit(&o);
}

void shells_start(struct shells *s, int connection)
{
    const struct timeval wait = {.tv_sec = MESSAGE_WAIT_MS / 1000};
    int fds[SHELL_FDS];
    bool is_cut;
    setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
    char *text = mem_alloc(SHELL_MESSAGE_MAX);
    ssize_t n = fds_receive(connection, text, SHELL_MESSAGE_MAX, 0, fds, SHELL_FDS, &is_cut);
    if (n > 0 && !is_cut && fds[3] >= 0)
        start(s, text, (size_t)n, fds);
    for (size_t i = 0; i < SHELL_FDS; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    free(text);
    close(connection);
}
