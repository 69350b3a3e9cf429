/* SPDX-License-Identifier: Apache-2.0
 *
 * A scripted HTTP client: records the requests and answers from the next entry of the script, or
 * from a route if the URL has one, a millisecond of virtual time later.
 */
#ifndef BELAY_TESTS_CLOUD_FAKE_HTTP_H
#define BELAY_TESTS_CLOUD_FAKE_HTTP_H

#include "base/http.h"
#include "base/list.h"
#include "base/vtimers.h"

#define FAKE_REQUESTS_MAX 256
#define FAKE_SCRIPT_MAX 64

struct fake_request {
    char method[8];
    char url[1024];
    char *headers; /* lines, each ending in '\n' */
    struct buf body;
    int64_t timeout_ms;
    size_t max_reply_bytes;
};

#define FAKE_HEADERS_MAX 4

/* An answer: an error if kind is set, else a status with a body and headers. */
struct fake_answer {
    enum err_kind kind;
    int status;
    char *body;
    const char *headers[FAKE_HEADERS_MAX]; /* "Name: value"; may be NULL */
};

struct fake_route {
    const char *method, *path; /* path: the end of the URL */
    struct fake_answer answer;
};

struct fake_http {
    struct http_client client;
    struct timers *timers;
    struct fake_request requests[FAKE_REQUESTS_MAX];
    size_t n_requests;
    struct fake_answer script[FAKE_SCRIPT_MAX];
    size_t n_script, next_script;
    struct fake_route routes[16];
    size_t n_routes;
    struct list calls;
    const char *headers[4]; /* "Name: value", added to every later reply */
    bool silent;            /* requests get no answer until cancelled */
    bool keep_none;         /* requests are answered but not recorded */
    size_t n_cancelled;
};

void fake_http_init(struct fake_http *f, struct timers *timers);
/* Every call must have ended. */
void fake_http_deinit(struct fake_http *f);

void fake_http_add(struct fake_http *f, int status, const char *body);
/* Adds a header, borrowed, to the last added answer. */
void fake_http_with(struct fake_http *f, const char *header);
void fake_http_add_error(struct fake_http *f, enum err_kind kind);
/* A file of the folder replies/. */
void fake_http_add_file(struct fake_http *f, int status, const char *name);
char *fake_read_file(const char *name); /* released with free() */

/* Answers every such request from now on; status 0 is a timeout. */
void fake_http_route(
    struct fake_http *f, const char *method, const char *path, int status, const char *body);

/* The number of requests for this path (the end of the URL). */
size_t fake_http_count(const struct fake_http *f, const char *method, const char *path);
/* Whether request i has the header "Name: value". */
bool fake_http_sent(const struct fake_http *f, size_t i, const char *line);
/* The value of a header of request i; NULL if absent. The caller frees it. */
char *fake_http_header(const struct fake_http *f, size_t i, const char *name);

#endif
