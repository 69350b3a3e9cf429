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

enum { VAL_DATE = 1, VAL_USER, VAL_MAIL };

struct request {
    char *date, *user, *mail;
};

static void set_text(char **text, const char *value)
{
    free(*text);
    *text = mem_strdup(value);
}

static int on_option(void *ctx, int value, const char *arg)
{
    struct request *q = ctx;

    set_text(value == VAL_DATE ? &q->date : value == VAL_USER ? &q->user : &q->mail, arg);
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
    const char *mail = json_string_value(json_object_get(v, "mail"));
    if (mail)
        printf("The digest of your jobs is mailed to %s.\n", mail);
    else
        printf("You have no subscription.\n");
}

/* mail NULL ends the subscription. */
static int subscribe(const char *mail, bool json)
{
    json_t *body = json_pack("{s:o}", "mail", mail ? json_text(mail) : json_null());
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

/* Your name: mail to it goes where your jobs' mail goes. */
static int subscribe_by_name(bool json)
{
    json_t *who = cli_get("/api/v1/whoami");
    int rc = who ? subscribe(cli_text(who, "user"), json) : CLI_FAILED;
    json_decref(who);
    return rc;
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

static int digest(const struct request *q, const struct cli_args *a)
{
    const char *word = a->n_rest > 0 ? a->rest[0] : "";
    bool begins = str_eq(word, "subscribe"), ends = str_eq(word, "unsubscribe");
    if (a->n_rest > 1 || (a->n_rest == 1 && !begins && !ends)) {
        cli_error("expected nothing, subscribe or unsubscribe");
        return CLI_USAGE;
    }
    if ((q->mail && !begins) || ((q->date || q->user) && a->n_rest > 0)) {
        cli_error("--mail goes with subscribe; --date and --user with neither");
        return CLI_USAGE;
    }
    if (check_date(q->date) != CLI_OK)
        return CLI_USAGE;
    if (begins)
        return q->mail ? subscribe(q->mail, a->json) : subscribe_by_name(a->json);
    return ends ? subscribe(NULL, a->json) : show(q, a->json);
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
    return rc < 0 ? CLI_OK : rc;
}

static const struct poptOption options[] = {
    {"date", 0, POPT_ARG_STRING, NULL, VAL_DATE, "the digest of this day (default: today)",
        "YYYY-MM-DD"},
    {"user", 'u', POPT_ARG_STRING, NULL, VAL_USER,
        "only this user's jobs (default: your own; for administrators, all)", "USER"},
    {"mail", 0, POPT_ARG_STRING, NULL, VAL_MAIL, "subscribe: the address (default: your name)",
        "ADDRESS"},
    POPT_TABLEEND,
};

const struct verb verb_digest = {"digest", "[subscribe|unsubscribe] [OPTION...]",
    "print the morning digest: what ran over night; get it by mail", run, options, false,
    .folds = true,
    .examples = "belay digest\n"
                "belay digest --date 2026-11-27\n"
                "belay digest subscribe --mail ann@lab.example\n"};
