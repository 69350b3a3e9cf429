/* SPDX-License-Identifier: Apache-2.0
 *
 *     belay console [--print]
 *
 * Opens the console in the user's browser, signed in by a one-use link. The browser is given a file
 * that leads it to the link: every user of the machine can read the command line of a program, and
 * whoever uses the link first is signed in.
 */
#include "cli/local.h"
#include "cli/verbs.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* A browser that runs this long has not failed to start. */
#define START_MS 3000

enum { VAL_PRINT = 1 };

static int on_option(void *ctx, int val, const char *arg)
{
    (void)val, (void)arg;
    *(bool *)ctx = true;
    return CLI_OK;
}

/* ---- the browser ---- */

/* The URL is of characters that HTML takes as they are; belayd may be anybody's. */
static bool is_plain_url(const char *url)
{
    if (!str_starts(url, "http://") && !str_starts(url, "https://"))
        return false;
    return !url[strcspn(url, "\"'<>& ;\\\t\r\n")];
}

/* Writes the file that leads to the link. The caller frees *ret_file, a path. */
static int write_page(const char *url, char **ret_file, struct err *e)
{
    struct buf page = {0};
    char *home = cli_home();
    char *file = mem_printf("%s/console.html", home);
    buf_printf(&page,
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">"
        "<meta name=\"referrer\" content=\"no-referrer\">"
        "<meta http-equiv=\"refresh\" content=\"0;url=%s\"><title>belay</title></head>"
        "<body><a href=\"%s\">belay's console</a></body></html>\n",
        url, url);
    int rc = fs_mkdirs(home, 0700, e);
    if (rc == 0)
        rc = fs_write_atomic(file, page.data, page.len, 0600, e);
    if (rc == 0)
        *ret_file = file;
    else
        free(file);
    buf_wipe(&page);
    free(home);
    return rc;
}

/* Whether the program was started, and has not failed within START_MS. */
static bool starts(const char *program, const char *page)
{
    const char *argv[] = {program, page, NULL};
    struct err e;
    pid_t pid;
    int status = 0;
    if (local_spawn(argv, "/dev/null", &pid, &e) != 0)
        return false;
    struct pollfd p = {.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN};
    bool ended = p.fd >= 0 && poll(&p, 1, START_MS) > 0 && waitpid(pid, &status, 0) == pid;
    if (p.fd >= 0)
        close(p.fd);
    return !ended || (WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static bool is_set(const char *variable)
{
    const char *text = getenv(variable);
    return text && text[0];
}

/* The programs of BROWSER, in turn, else those that desktops have. */
static bool open_browser(const char *page)
{
    static const char desktop[] = "xdg-open:open";
    bool is_display = is_set("DISPLAY") || is_set("WAYLAND_DISPLAY");
    const char *named = is_set("BROWSER") ? getenv("BROWSER") : is_display ? desktop : "";
    char *list = mem_strdup(named), *rest = list, *program;
    bool is_open = false;
    while (!is_open && (program = strsep(&rest, ":")))
        is_open = program[0] && starts(program, page);
    free(list);
    return is_open;
}

/* ---- the verb ---- */

static void print_link(const json_t *link, const char *why)
{
    const char *remote = cli_string(json_object_get(link, "remote_url"));
    const char *url = cli_text(link, "url");
    if (why)
        fprintf(stderr, "%s: open this link yourself\n", why);
    printf("%s\n", url);
    fprintf(stderr, "It signs in %s, once, within 60 s%s\n", cli_text(link, "user"),
        remote ? ", in a browser on this machine" : "");
    /* one that only this machine reaches is of no use elsewhere */
    if (remote && !str_starts(remote, "https://127.") && !str_starts(remote, "https://localhost:"))
        fprintf(stderr, "or in one elsewhere: %s\n", remote);
}

static int open_link(const json_t *link, struct err *e)
{
    char *file = NULL;
    const char *url = cli_text(link, "url"), *secret = strchr(url, '#');
    if (!is_plain_url(url) || !secret)
        return err_set(e, ERR_INVALID, "belayd's reply has no link");
    if (!isatty(STDOUT_FILENO)) {
        print_link(link, "standard output is not a terminal");
        return 0;
    }
    if (write_page(url, &file, e) != 0) {
        print_link(link, e->text);
        return 0;
    }
    char *page = mem_printf("file://%s", file);
    if (open_browser(page))
        printf("opened %.*s as %s\n", (int)(secret - url), url, cli_text(link, "user"));
    else
        print_link(link, "no browser was found (BROWSER, or xdg-open and a display)");
    free(page);
    free(file);
    return 0;
}

static int run(int argc, const char **argv)
{
    struct cli_args a;
    struct err e;
    bool prints = false;
    int rc = cli_parse(&verb_console, argc, argv, false, on_option, &prints, &a);
    if (rc == 0) {
        json_t *link = cli_post("/api/v1/console/link", NULL);
        rc = link ? CLI_OK : CLI_FAILED;
        if (link && a.json)
            cli_print_json(link);
        else if (link && prints)
            print_link(link, NULL);
        else if (link && open_link(link, &e) != 0) {
            cli_error("%s", e.text);
            rc = CLI_FAILED;
        }
        json_wipe(link);
    }
    cli_args_deinit(&a);
    return rc < 0 ? CLI_OK : rc;
}

static const struct poptOption options[] = {
    {"print", 0, POPT_ARG_NONE, NULL, VAL_PRINT, "print the link and open no browser", NULL},
    POPT_TABLEEND,
};

const struct verb verb_console = {"console", CLI_NO_WORDS, "open the web console in your browser",
    run, options, false,
    .examples = "belay console\n"
                "belay console --print\n"};
