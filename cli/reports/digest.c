/* SPDX-License-Identifier: Apache-2.0
 *
 * belay digest: the text of the morning digest, as belayd sends it; and subscriptions to it.
 */
#include "cli/verbs.h"

#include "base/mem.h"
#include "base/str.h"
#include "job/calendar.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VAL_DATE = 1, VAL_USER, VAL_MAIL, VAL_URL, VAL_FORMAT };

#define URL_LINE_MAX 4096

struct request {
    char *date, *user, *mail, *url, *format;
};

static void set_text(char **text, const char *value)
{
    free(*text);
    *text = mem_strdup(value);
}

static int on_option(void *ctx, int value, const char *arg)
{
    struct request *q = ctx;
    char **const texts[] = {[VAL_DATE] = &q->date,
        [VAL_USER] = &q->user,
        [VAL_MAIL] = &q->mail,
        [VAL_URL] = &q->url,
        [VAL_FORMAT] = &q->format};
    set_text(texts[value], arg);
    return 0;
}

static void print(const json_t *v)
{
    printf("%s\n\n", cli_text(v, "title"));
    cli_print_lines(json_string_value(json_object_get(v, "text")), 0);
    if (json_is_true(json_object_get(v, "empty")))
        printf("\nNothing happened: no digest is sent, unless digest: when_empty is set.\n");
}

static int show(const struct request *q, bool json)
{
    struct buf path = {0};
    buf_adds(&path, "/api/v1/digest");
    if (q->date)
        cli_add_parameter(&path, "date", q->date);
    if (q->user)
        cli_add_parameter(&path, "user", q->user);
    json_t *v = cli_get(buf_str(&path));
    buf_deinit(&path);
    if (v && json)
        cli_print_json(v);
    else if (v)
        print(v);
    int rc = v ? CLI_OK : CLI_FAILED;
    json_decref(v);
    return rc;
}

static void print_subscription(const json_t *v)
{
    const char *mail = json_string_value(json_object_get(v, "mail")),
               *host = json_string_value(json_object_get(v, "url_host"));
    if (mail)
        printf("The digest of your jobs is mailed to %s.\n", mail);
    if (host)
        printf(
            "The digest of your jobs is sent to a URL at %s (%s).\n", host, cli_text(v, "format"));
    if (!mail && !host)
        printf("You have no subscription.\n");
}

/* Takes body. */
static int post(json_t *body, bool json)
{
    json_t *v = cli_post("/api/v1/digest/subscription", body);
    json_decref(body);
    if (v && json)
        cli_print_json(v);
    else if (v)
        print_subscription(v);
    int rc = v ? CLI_OK : CLI_FAILED;
    json_decref(v);
    return rc;
}

static int unsubscribe(bool json)
{
    return post(json_pack("{s:n,s:n}", "mail", "url"), json);
}

/* "-": the URL is the first line of stdin, so that a secret is on no command line. */
static int read_url(struct request *q)
{
    char line[URL_LINE_MAX];
    if (!q->url || !str_eq(q->url, "-"))
        return CLI_OK;
    if (!fgets(line, sizeof(line), stdin)) {
        cli_error("--url -: there is no line on stdin");
        return CLI_USAGE;
    }
    line[strcspn(line, "\r\n")] = '\0';
    set_text(&q->url, line);
    return CLI_OK;
}

/* Without an address or a URL it is mailed to your name, where your jobs' mail goes. */
static int subscribe(struct request *q, bool json)
{
    json_t *body = json_object(), *who = NULL;
    if (!q->mail && !q->url && !(who = cli_get("/api/v1/whoami"))) {
        json_decref(body);
        return CLI_FAILED;
    }
    if (q->mail || who)
        json_object_set_new(body, "mail", json_text(who ? cli_text(who, "user") : q->mail));
    if (q->url)
        json_object_set_new(body, "url", json_text(q->url));
    if (q->format)
        json_object_set_new(body, "format", json_text(q->format));
    json_decref(who);
    return post(body, json);
}

static int check_date(const char *date)
{
    struct calendar_days days;
    char shown[STR_SHOW_MAX];
    struct err e;
    if (!date || (calendar_parse(date, &days, &e) == 0 && days.first == days.last))
        return CLI_OK;
    cli_error("--date: expected a day such as 2026-11-27, found %s", str_show(date, shown));
    return CLI_USAGE;
}

static int digest(struct request *q, const struct cli_args *a)
{
    const char *word = a->n_rest > 0 ? a->rest[0] : "";
    bool begins = str_eq(word, "subscribe"), ends = str_eq(word, "unsubscribe");
    if (a->n_rest > 1 || (a->n_rest == 1 && !begins && !ends)) {
        cli_error("expected nothing, subscribe or unsubscribe");
        return CLI_USAGE;
    }
    if (((q->mail || q->url || q->format) && !begins) || ((q->date || q->user) && a->n_rest > 0)) {
        cli_error("--mail, --url and --format go with subscribe; --date and --user with neither");
        return CLI_USAGE;
    }
    if (q->format && !q->url) {
        cli_error("--format goes with --url");
        return CLI_USAGE;
    }
    if (check_date(q->date) != CLI_OK || read_url(q) != CLI_OK)
        return CLI_USAGE;
    return begins ? subscribe(q, a->json) : ends ? unsubscribe(a->json) : show(q, a->json);
}

static int run(int argc, const char **argv)
{
    struct request q = {0};
    struct cli_args a;
    int rc = cli_parse(&verb_digest, argc, argv, false, on_option, &q, &a);
    if (rc == 0)
        rc = digest(&q, &a);
    cli_args_deinit(&a);
    free(q.date);
    free(q.user);
    free(q.mail);
    free(q.url);
    free(q.format);
    return rc < 0 ? CLI_OK : rc;
}

static const struct poptOption options[] = {
    {"date", 0, POPT_ARG_STRING, NULL, VAL_DATE, "the digest of this day (default: today)",
        "YYYY-MM-DD"},
    {"user", 'u', POPT_ARG_STRING, NULL, VAL_USER,
        "only this user's jobs (default: your own; for administrators, all)", "USER"},
    {"mail", 0, POPT_ARG_STRING, NULL, VAL_MAIL,
        "subscribe: the address (default, without --url: your name)", "ADDRESS"},
    {"url", 0, POPT_ARG_STRING, NULL, VAL_URL,
        "subscribe: a webhook of yours that gets it; - reads it from stdin", "URL"},
    {"format", 0, POPT_ARG_STRING, NULL, VAL_FORMAT,
        "subscribe: what the URL takes: json (default), slack or teams", "FORMAT"},
    POPT_TABLEEND,
};

const struct verb verb_digest = {"digest", "[subscribe|unsubscribe] [OPTION...]",
    "print the morning digest: what ran over night; get it by mail", run, options, false,
    .folds = true,
    .examples =
        "belay digest\n"
        "belay digest --date 2026-11-27\n"
        "belay digest subscribe --mail ann@lab.example\n"
        "belay digest subscribe --url https://hooks.slack.com/services/T/B/X --format slack\n"};
