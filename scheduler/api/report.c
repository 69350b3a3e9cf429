/* SPDX-License-Identifier: Apache-2.0
 *
 * Mails or posts a report, such as that of belay cost --weekly-report, in the same ways as
 * notifications. For administrators only, because it sends arbitrary text to any address. Answered
 * when the destination has accepted it or the delivery has failed.
 */
#include "scheduler/api/api_private.h"

#include "base/mem.h"
#include "base/str.h"
#include "job/notify_address.h"
#include "scheduler/notify/notifier.h"
#include <stdlib.h>

#define SUBJECT_MAX 200
#define TEXT_MAX (256u << 10)
#define HTML_MAX (2u << 20)
#define SEND_WAIT_MS 70000 /* the delivery times out earlier */

struct sending {
    struct deferred_reply *deferred;
    char to[NOTIFY_URL_MAX + 1]; /* an address, or the host of a URL, which may be a secret */
};

static void on_sent(void *ctx, const struct err *e)
{
    struct sending *s = ctx;
    struct http_exchange *x = deferred_reply_take(s->deferred);
    if (x && e)
        http_reply_err(x, e);
    else if (x)
        api_reply_json(x, 200, json_pack("{s:o}", "told", json_text(s->to)));
    free(s);
}

/* Requires exactly one of mail and url; *ret_url says which. */
static int check_to(const char *mail, const char *url, char host[NOTIFY_HOST_MAX], struct err *e)
{
    if (!mail == !url)
        return err_set(e, ERR_INVALID, "report: expected one of mail and url");
    int rc = mail ? notify_check_address(mail, e) : notify_check_url(url, host, e);
    return rc ? err_wrap(e, "report.%s", mail ? "mail" : "url") : 0;
}

static int start_sending(struct request *q, const json_t *body, struct err *e)
{
    struct json_reader r;
    char host[NOTIFY_HOST_MAX];
    json_reader_init(&r, body, "report", e);
    const char *mail = json_opt_str(&r, "mail", NOTIFY_ADDRESS_MAX, NULL),
               *url = json_opt_str(&r, "url", NOTIFY_URL_MAX, NULL);
    const struct notify_report report = {.subject = json_req_str(&r, "subject", SUBJECT_MAX),
        .text = json_req_str(&r, "text", TEXT_MAX),
        .html = json_opt_str(&r, "html", HTML_MAX, NULL),
        .at = clock_wall(q->api->o.timers->clock)};
    int rc = json_reader_finish(&r);
    if (rc == 0)
        rc = check_to(mail, url, host, e);
    if (rc != 0)
        return rc;
    struct sending *s = mem_alloc(sizeof(*s));
    STR_COPY(s->to, mail ? mail : host);
    s->deferred = deferred_reply_create(q->api, q->x, SEND_WAIT_MS);
    if (notifier_send(q->api->o.notifier, &report, mail ? mail : url, !mail, on_sent, s, e) != 0)
        on_sent(s, e);
    return 0;
}

void api_report_send(struct request *q)
{
    struct err e;
    json_t *body = api_body(q, TEXT_MAX + HTML_MAX + (64u << 10));
    if (!body)
        return;
    int rc = start_sending(q, body, &e);
    json_decref(body);
    if (rc != 0)
        http_reply_err(q->x, &e);
}
