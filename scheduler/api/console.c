/* SPDX-License-Identifier: Apache-2.0
 *
 * The web console: static files, open to everybody, which hold no data. Every path of the console
 * gives index.html, whose program reads the path (deep links) and gets data from the API with the
 * user's session.
 */
#include "scheduler/api/api_private.h"

#include "scheduler/console.h"
#include <string.h>

#define ASSETS "/console/assets/"

/* Nothing is loaded from elsewhere, no script or style is inline, nobody may frame the page. */
static const char csp[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'";

static const struct console_file *find(const char *path)
{
    const struct console_file *f = console_files;
    if (!str_starts(path, ASSETS))
        return f;
    while (f->path && !str_eq(f->path, path))
        f++;
    return f;
}

/* Whether the client takes gzip (RFC 9110, 12.5.3): all browsers do. */
static bool takes_gzip(struct http_exchange *x)
{
    const char *accepted = http_request_header(x, "Accept-Encoding");
    const char *at = accepted ? strstr(accepted, "gzip") : NULL;
    return at && !str_starts(at, "gzip;q=0");
}

void api_console(struct request *q)
{
    const struct console_file *f = find(q->r->path);
    bool is_asset = str_starts(q->r->path, ASSETS);
    if (!f->path) {
        api_reply_failure(q->x, ERR_NOT_FOUND,
            is_asset
                ? "the console has no such file; reload the page, belayd was upgraded"
                : "belayd was built without the web console; see docs/how-to/console.md, or use "
                  "the command line: belay help");
        return;
    }
    http_reply_add_header(q->x, "Content-Security-Policy", csp);
    http_reply_add_header(q->x, "X-Content-Type-Options", "nosniff");
    http_reply_add_header(q->x, "Referrer-Policy", "no-referrer");
    http_reply_add_header(q->x, "Cross-Origin-Opener-Policy", "same-origin");
    http_reply_add_header(q->x, "Cross-Origin-Resource-Policy", "same-origin");
    http_reply_add_header(q->x, "Vary", "Accept-Encoding");
    http_reply_add_header(
        q->x, "Cache-Control", is_asset ? "public, max-age=31536000, immutable" : "no-cache");
    if (takes_gzip(q->x)) {
        http_reply_add_header(q->x, "Content-Encoding", "gzip");
        http_reply_bytes(q->x, 200, f->content_type, f->zipped, f->zipped_len);
    } else {
        http_reply_bytes(q->x, 200, f->content_type, f->plain, f->plain_len);
    }
}
