/* SPDX-License-Identifier: Apache-2.0
 *
 * Sessions with running jobs (belay exec): two streams of bytes between a client and an agent,
 * relayed in memory.
 *
 *   client  POST /jobs/ID/exec --> (its event is committed) --> the agent gets its number
 *           --> claim --> streams
 *
 * Each side posts its data at an offset, and is answered when there is space. Each side also
 * requests data from an offset on, which discards everything before it, and waits until there is
 * some. A repeated piece therefore changes nothing, and neither side can make belayd buffer more
 * than FULL_MAX and a piece: data beyond that is not accepted, which the returned size shows. A
 * session ends when its command has ended and the client has read everything; when the client
 * closes it or is silent; when the agent is silent; and with belayd, because only its event is
 * stored.
 */
#include "scheduler/api/api_private.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STREAM_MAX (256u << 10)
#define PIECE_MAX (72u << 10) /* the largest post: a frame with its head */
#define READ_MAX (64u << 10)
#define CHANNELS_MAX 256
#define OF_USER_MAX 16
#define OF_JOB_MAX 8
/* sessions that jobs open for their own steps, counted apart from those of users; they carry the
 * start and the end of a step */
#define STEPS_MAX 2048
#define STEPS_OF_JOB_MAX 512
#define STEPS_OF_USER_MAX 1024
/* bytes buffered for a writer that does not wait for space; for steps STREAM_MAX */
#define FULL_MAX (1u << 20)
#define COMMAND_BYTES_MAX (64u << 10)
#define WORDS_MAX 256
#define CHECK_MS 5000
#define CLAIM_MS 60000  /* time for the agent to claim a session */
#define SILENT_MS 90000 /* longest silence of a side; both nearly always have a parked call */

struct stream {
    struct buf data;
    int64_t start; /* offset of the data */
    bool ends;
    struct parked *reader, *writer; /* NULL if none waits */
};

struct channel {
    struct link in_api;
    struct api *api;
    int64_t id, job, attempt, node;
    int32_t rank;
    char user[CORE_NAME_MAX];
    char pool[CORE_NAME_MAX]; /* that the job was submitted for */
    json_t *order;            /* the command, as the agent reads it */
    bool of_job;              /* opened by a job for one of its steps */
    bool claimed, closed;     /* closed: the agent no longer needs it */
    char why[160];            /* why it ended before its command; "" = it did not */
    struct stream up, down;
    struct timer check_timer;
    struct mono client_at, agent_at; /* time of the last call */
};

/* A parked call. */
struct parked {
    struct channel *channel;
    struct stream *stream;
    struct http_exchange *x;
    int64_t size; /* of a writer: the size in its answer */
};

static struct mono now_of(const struct api *a)
{
    return clock_mono(a->o.timers->clock);
}

static void touch_node(const struct channel *ch)
{
    agent_sync_touch(ch->api->o.agent_sync, ch->node);
}

/* A deferred agent_sync_touch: desired state may be sent only when the model is on disk. */
struct touch {
    struct api *api;
    int64_t node;
};

static void on_touch(void *ctx, const struct err *e, int64_t id)
{
    struct touch *t = ctx;
    (void)id;
    if (!e)
        agent_sync_touch(t->api->o.agent_sync, t->node);
    free(t);
}

/* ---- answering ---- */

static struct http_exchange *unpark(struct parked **slot)
{
    struct parked *p = *slot;
    struct http_exchange *x = p->x;
    *slot = NULL;
    free(p);
    return x;
}

static void reply_size(struct http_exchange *x, int64_t size)
{
    api_reply_json(x, 200, json_pack("{s:I}", "size", (json_int_t)size));
}

static void answer_reader(struct channel *ch, struct stream *s, struct http_exchange *x)
{
    size_t n = s->data.len < READ_MAX ? s->data.len : READ_MAX;
    if (n == 0 && s->ends && ch->why[0]) {
        api_reply_failure(x, ERR_CONFLICT, "the session has ended: %s", ch->why);
        return;
    }
    if (s->ends && n == s->data.len)
        http_reply_add_header(x, "Belay-Channel-End", "1");
    http_reply_bytes(x, 200, "application/octet-stream", s->data.data, n);
}

static void wake_reader(struct channel *ch, struct stream *s)
{
    if (s->reader && (s->data.len > 0 || s->ends))
        answer_reader(ch, s, unpark(&s->reader));
}

static void wake_writer(struct stream *s)
{
    if (s->writer && (s->data.len <= STREAM_MAX || s->ends)) {
        int64_t size = s->writer->size;
        reply_size(unpark(&s->writer), size);
    }
}

static void on_reader_timeout(void *ctx, struct http_exchange *x)
{
    struct parked *p = ctx;
    struct channel *ch = p->channel;
    struct stream *s = p->stream;
    unpark(&s->reader);
    answer_reader(ch, s, x);
}

static void on_writer_timeout(void *ctx, struct http_exchange *x)
{
    struct parked *p = ctx;
    struct stream *s = p->stream;
    int64_t size = p->size;
    unpark(&s->writer);
    reply_size(x, size);
}

static void on_gone(void *ctx, struct http_exchange *x)
{
    struct parked *p = ctx;
    struct stream *s = p->stream;
    (void)x;
    unpark(s->reader == p ? &s->reader : &s->writer);
}

static void park(struct channel *ch, struct stream *s, struct parked **slot,
    struct http_exchange *x, int64_t size, int64_t wait_ms)
{
    struct parked *p = mem_alloc(sizeof(*p));
    *p = (struct parked){.channel = ch, .stream = s, .x = x, .size = size};
    *slot = p;
    http_exchange_wait(
        x, wait_ms, slot == &s->reader ? on_reader_timeout : on_writer_timeout, on_gone, p);
}

/* ---- streams ---- */

/* Appends data that continues the stream, and drops a repetition. After a gap, or without space,
 * nothing is appended, which the replied size shows. */
static void stream_write(
    struct request *q, struct channel *ch, struct stream *s, int64_t offset, bool ends)
{
    int64_t end = s->start + (int64_t)s->data.len, n = (int64_t)q->r->body_len;
    bool has_space = s->data.len <= (ch->of_job ? STREAM_MAX : FULL_MAX);
    if (offset <= end && offset + n > end && !s->ends && has_space)
        buf_add(&s->data, q->r->body + (end - offset), (size_t)(offset + n - end));
    end = s->start + (int64_t)s->data.len;
    s->ends = s->ends || (ends && offset + n == end);
    if (s->writer) { /* an earlier call that the writer abandoned */
        int64_t size = s->writer->size;
        reply_size(unpark(&s->writer), size);
    }
    wake_reader(ch, s);
    if (s->data.len > STREAM_MAX && !s->ends)
        park(ch, s, &s->writer, q->x, end, API_WAIT_MAX_MS);
    else
        reply_size(q->x, end);
}

static void stream_read(
    struct request *q, struct channel *ch, struct stream *s, int64_t offset, int64_t wait_ms)
{
    if (offset < s->start || offset > s->start + (int64_t)s->data.len) {
        api_reply_failure(q->x, ERR_INVALID,
            "offset: expected %lld .. %lld: what was before is gone", (long long)s->start,
            (long long)s->start + (long long)s->data.len);
        return;
    }
    buf_remove_front(&s->data, (size_t)(offset - s->start));
    s->start = offset;
    wake_writer(s);
    if (s->reader)
        answer_reader(ch, s, unpark(&s->reader));
    if (s->data.len > 0 || s->ends || wait_ms <= 0 || ch->api->shutting_down)
        answer_reader(ch, s, q->x);
    else
        park(ch, s, &s->reader, q->x, 0, wait_ms);
}

/* ---- life ---- */

static void stream_end(struct channel *ch, struct stream *s)
{
    s->ends = true;
    wake_reader(ch, s);
    wake_writer(s);
}

static void stream_deinit(struct channel *ch, struct stream *s)
{
    stream_end(ch, s);
    if (s->reader)
        answer_reader(ch, s, unpark(&s->reader));
    buf_deinit(&s->data);
}

static void channel_free(struct channel *ch)
{
    timer_stop(ch->api->o.timers, &ch->check_timer);
    link_remove(&ch->in_api);
    stream_deinit(ch, &ch->up);
    stream_deinit(ch, &ch->down);
    json_decref(ch->order);
    free(ch);
}

/* Closes the session, and makes the agent close its side. */
static void channel_close(struct channel *ch, const char *why)
{
    struct touch *t;
    if (ch->closed)
        return;
    ch->closed = true;
    if (!ch->up.ends)
        STR_COPY(ch->why, why);
    stream_end(ch, &ch->up);
    stream_end(ch, &ch->down);
    t = mem_alloc(sizeof(*t));
    *t = (struct touch){ch->api, ch->node};
    tick_when_durable(ch->api->o.tick, on_touch, t);
}

static void on_check(struct timer *timer, void *ctx)
{
    struct channel *ch = ctx;
    int64_t now = now_of(ch->api).ms;
    bool client_gone = now - ch->client_at.ms > SILENT_MS;
    if (ch->closed && client_gone) {
        channel_free(ch);
        return;
    }
    timer_start(ch->api->o.timers, timer, CHECK_MS);
    if (client_gone)
        channel_close(ch, "the client was silent");
    else if (!ch->claimed && now - ch->agent_at.ms > CLAIM_MS)
        channel_close(ch, "its node did not claim it in time");
    else if (ch->claimed && !ch->up.ends && now - ch->agent_at.ms > SILENT_MS)
        channel_close(ch, "its node was silent");
}

void api_channels_destroy_all(struct api *a)
{
    LIST_FOREACH (&a->channels, n) {
        struct channel *ch = LIST_ENTRY(n, struct channel, in_api);
        /* these exchanges have ended with their server */
        ch->up.reader = ch->up.writer = ch->down.reader = ch->down.writer = NULL;
        channel_free(ch);
    }
}

void api_channels_shut_down(struct api *a)
{
    LIST_FOREACH (&a->channels, n)
        channel_close(LIST_ENTRY(n, struct channel, in_api), "belayd is stopping");
}

void api_channels_of_node(void *ctx, int64_t node, struct wire_desired *d)
{
    const struct api *a = ctx;
    d->channels = mem_array(WIRE_CHANNELS_MAX, sizeof(*d->channels));
    LIST_FOREACH (&a->channels, n) {
        const struct channel *ch = LIST_ENTRY(n, struct channel, in_api);
        if (ch->node == node && !ch->closed && d->n_channels < WIRE_CHANNELS_MAX)
            d->channels[d->n_channels++] = (struct wire_channel){ch->id, ch->job, ch->attempt};
    }
}

/* ---- opening ---- */

struct session_request {
    struct channel *channel;
    struct deferred_reply *deferred;
    char text[CORE_TEXT_MAX];
};

struct open_channels {
    size_t all, of_user, of_job;
};

/* Adds the sessions of the list that share the limits of `new`. */
static void count_open(
    const struct list *channels, const struct channel *new, struct open_channels *count)
{
    LIST_FOREACH (channels, n) {
        const struct channel *ch = LIST_ENTRY(n, struct channel, in_api);
        if (ch->of_job != new->of_job || ch->closed)
            continue;
        count->all++;
        count->of_user += str_eq(ch->user, new->user);
        count->of_job += ch->job == new->job;
    }
}

/* Also counts the sessions that begin in the same commit, which may be hundreds. */
static int check_limits(const struct api *a, const struct channel *new, struct err *e)
{
    struct open_channels n = {0};
    count_open(&a->channels, new, &n);
    count_open(&a->session_requests, new, &n);
    if (new->of_job &&
        (n.of_job >= STEPS_OF_JOB_MAX || n.of_user >= STEPS_OF_USER_MAX || n.all >= STEPS_MAX))
        return err_set(
            e, ERR_UNAVAILABLE, "too many steps are being started at once: try again later");
    if (new->of_job)
        return 0;
    if (n.of_job >= OF_JOB_MAX)
        return err_set(e, ERR_CONFLICT, "job %s has %d sessions already: end one of them",
            job_ref_of(tick_model(a->o.tick), new->job).s, OF_JOB_MAX);
    if (n.of_user >= OF_USER_MAX)
        return err_set(
            e, ERR_CONFLICT, "%s has %d sessions already: end one of them", new->user, OF_USER_MAX);
    if (n.all >= CHANNELS_MAX)
        return err_set(
            e, ERR_UNAVAILABLE, "there are %d sessions already: try again later", CHANNELS_MAX);
    return 0;
}

/* Finds the attempt of the session's rank. A rank of a gang may start later than the first one. */
static int find_rank(struct channel *ch, const struct job *job, struct err *e)
{
    if (job)
        LIST_FOREACH (&job->ranks, l) {
            const struct attempt *a = LIST_ENTRY(l, struct attempt, in_job);
            if (a->row.rank != ch->rank)
                continue;
            if (a->row.state == ATTEMPT_ASSIGNED)
                return err_set(e, ERR_UNAVAILABLE, "%s is only being started", a->node->row.name);
            ch->attempt = a->row.attempt;
            ch->node = a->row.node;
            return 0;
        }
    return err_set(e, ERR_CONFLICT, "rank %d of job %s does not run", (int)ch->rank,
        job_ref(job ? &job->row : &(struct job_row){.id = ch->job}).s);
}

static int apply_beginning(void *ctx, struct tick *t, int64_t *ret_id, struct err *e)
{
    struct session_request *b = ctx;
    struct channel *ch = b->channel;
    struct event ev = {.type = EV_ENTER, .enter = {.job = ch->job, .rank = ch->rank}};
    STR_COPY(ev.enter.by, ch->user);
    STR_COPY(ev.enter.text, b->text);
    int rc = check_limits(ch->api, ch, e);
    if (rc == 0 && !ch->of_job)
        rc = tick_apply(t, &ev, ret_id, e);
    if (rc == 0)
        rc = find_rank(ch, model_job(tick_model(t), ch->job), e);
    if (rc == 0)
        list_push_back(&ch->api->session_requests, &ch->in_api);
    return rc;
}

static void on_begun(void *ctx, const struct err *e, int64_t id)
{
    struct session_request *b = ctx;
    struct channel *ch = b->channel;
    struct http_exchange *x = deferred_reply_take(b->deferred);
    (void)id;
    free(b);
    link_remove(&ch->in_api);
    if (!x || e) { /* there is no client to read it */
        if (x)
            http_reply_err(x, e);
        json_decref(ch->order);
        free(ch);
        return;
    }
    /* unique across restarts */
    ch->id = (ch->api->o.meta->boots << 32) + ++ch->api->n_channels;
    ch->client_at = ch->agent_at = now_of(ch->api);
    timer_init(&ch->check_timer, on_check, ch);
    timer_start(ch->api->o.timers, &ch->check_timer, CHECK_MS);
    list_push_back(&ch->api->channels, &ch->in_api);
    touch_node(ch);
    api_reply_json(x, 201, json_pack("{s:I}", "id", (json_int_t)ch->id));
}

/* Describes the command by its first word, as far as there is space, for the job's events: these
 * are visible to everyone, and the arguments may contain secrets. */
static void describe(const json_t *words, char text[CORE_TEXT_MAX])
{
    struct buf all = {0};
    str_shell_quote(&all, json_string_value(json_array_get(words, 0)));
    if (json_array_size(words) > 1)
        buf_adds(&all, " ...");
    str_copy(text, CORE_TEXT_MAX - CORE_NAME_MAX - 32, buf_str(&all)); /* truncated */
    str_sanitize(text, strlen(text));
    buf_deinit(&all);
}

static void check_words(struct json_reader *r, const json_t *words)
{
    size_t i, bytes = 0;
    const json_t *word;
    if (r->rc == 0 && json_array_size(words) == 0)
        json_reader_fail(r, "command", "expected a command, such as [\"sh\"]");
    json_array_foreach(words, i, word)
    {
        const char *text = json_string_value(word);
        if (!text || strlen(text) != json_string_length(word))
            json_reader_fail(r, "command", "expected texts without NUL");
        bytes += json_string_length(word);
    }
    if (r->rc == 0 && bytes > COMMAND_BYTES_MAX)
        json_reader_fail(r, "command", "is longer than %u bytes", COMMAND_BYTES_MAX);
}

/* Reads {"signal": 10, "to": "programs"}; no other member of a command is allowed. */
static json_t *read_signal(struct json_reader *r, char text[CORE_TEXT_MAX])
{
    static const char *const names[] = {"programs", "script", "all", NULL};
    int64_t signum = json_req_i64(r, "signal", 1, 64);
    const char *to = names[json_opt_enum(r, "to", names, 0)];
    snprintf(text, CORE_TEXT_MAX, "signal %lld to %s", (long long)signum, to);
    return json_pack("{s:I,s:s}", "signal", (json_int_t)signum, "to", to);
}

static json_t *read_command(struct json_reader *r, char text[CORE_TEXT_MAX])
{
    char term[64];
    const json_t *words = json_req_array(r, "command", WORDS_MAX);
    check_words(r, words);
    bool tty = json_opt_bool(r, "tty", false);
    json_opt_strcpy(r, "term", term, sizeof(term), "");
    int64_t rows = json_opt_i64(r, "rows", 0, 65535, 0),
            columns = json_opt_i64(r, "columns", 0, 65535, 0);
    if (r->rc == 0 && term[0] && !str_is_name(term, sizeof(term) - 1))
        json_reader_fail(r, "term", "is not the name of a terminal");
    if (r->rc != 0)
        return NULL;
    describe(words, text);
    return json_pack("{s:O,s:b,s:s,s:I,s:I}", "command", words, "tty", (int)tty, "term", term,
        "rows", (json_int_t)rows, "columns", (json_int_t)columns);
}

/* Reads {"command": ["sh"], "rank": 0, "tty": true, "term": "xterm", "rows": 24, "columns": 80}, or
 * a signal; false after an error reply. */
static bool read_exec(struct request *q, struct channel *ch, char text[CORE_TEXT_MAX])
{
    struct json_reader r;
    struct err e;
    json_t *body = api_body(q, API_UNAUTHENTICATED_BODY_MAX * 2);
    if (!body)
        return false;
    json_reader_init(&r, body, "body", &e);
    ch->order = json_object_get(body, "signal") ? read_signal(&r, text) : read_command(&r, text);
    ch->rank = (int32_t)json_opt_i64(&r, "rank", 0, JOB_NODES_MAX - 1, 0);
    int rc = json_reader_finish(&r);
    json_decref(body);
    if (rc != 0) {
        json_decref(ch->order);
        http_reply_err(q->x, &e);
    }
    return rc == 0;
}

static bool starts_steps(const struct request *q)
{
    const struct job *j = model_job(tick_model(q->api->o.tick), q->caller.job);
    return j && j->row.spec.script_on == SCRIPT_ON_FIRST;
}

void api_jobs_exec(struct request *q)
{
    if (q->caller.job && (q->caller.job != q->id || !starts_steps(q))) {
        api_reply_failure(q->x, ERR_DENIED,
            "job %lld may start tasks in itself only, and on nodes where its script is not",
            (long long)q->caller.job);
        return;
    }
    struct job_row row;
    if (!api_find_live_job(q, RIGHT_ENTER, "run a command in", &row))
        return;
    struct session_request *b = mem_alloc(sizeof(*b));
    struct channel *ch = b->channel = mem_alloc(sizeof(*ch));
    *ch = (struct channel){.api = q->api, .job = q->id, .of_job = q->caller.job != 0};
    STR_COPY(ch->user, q->caller.user);
    STR_COPY(ch->pool, row.spec.pool);
    if (!read_exec(q, ch, b->text)) {
        free(ch);
        free(b);
        return;
    }
    b->deferred = deferred_reply_create(q->api, q->x, API_COMMIT_WAIT_MS);
    tick_post_work(q->api->o.tick, apply_beginning, on_begun, b);
}

/* ---- the client's side ---- */

static struct channel *find(struct request *q)
{
    LIST_FOREACH (&q->api->channels, n) {
        struct channel *ch = LIST_ENTRY(n, struct channel, in_api);
        if (ch->id == q->id)
            return ch;
    }
    return NULL;
}

/* NULL after an error reply. */
static struct channel *of_client(struct request *q)
{
    struct channel *ch = find(q);
    char what[40];
    if (!ch) {
        api_reply_failure(q->x, ERR_NOT_FOUND,
            "there is no session %lld: it has ended, or belayd was restarted, which ends all",
            (long long)q->id);
        return NULL;
    }
    /* a job may use only the sessions that it has opened */
    const struct access_object object = {.user = ch->user,
        .pool = ch->pool,
        .job = q->caller.job && !ch->of_job ? CORE_ID_NONE : ch->job};
    snprintf(what, sizeof(what), "session %lld", (long long)q->id);
    if (!api_may(q, RIGHT_ENTER, &object, what))
        return NULL;
    ch->client_at = now_of(q->api);
    return ch;
}

static bool check_piece_size(struct request *q)
{
    if (q->r->body_len <= PIECE_MAX)
        return true;
    api_reply_failure(q->x, ERR_INVALID, "a piece of a session is at most %u bytes", PIECE_MAX);
    return false;
}

void api_channel_output(struct request *q)
{
    int64_t offset, wait_ms;
    struct channel *ch;
    if (api_query_i64(q, "offset", 0, INT64_MAX, 0, &offset) &&
        api_query_i64(q, "wait_ms", 0, API_WAIT_MAX_MS, 0, &wait_ms) && (ch = of_client(q)))
        stream_read(q, ch, &ch->up, offset, wait_ms);
}

void api_channel_input(struct request *q)
{
    int64_t offset;
    struct channel *ch;
    if (api_query_i64(q, "offset", 0, INT64_MAX / 2, 0, &offset) && check_piece_size(q) &&
        (ch = of_client(q)))
        stream_write(q, ch, &ch->down, offset, false);
}

void api_channel_close(struct request *q)
{
    struct channel *ch = of_client(q);
    if (!ch)
        return;
    channel_close(ch, "it was closed");
    api_reply_json(q->x, 200, json_pack("{s:I}", "id", (json_int_t)ch->id));
    channel_free(ch);
}

/* ---- the agent's side ---- */

static struct channel *of_agent(struct request *q)
{
    struct channel *ch = find(q);
    if (ch && ch->node == api_node_of_cn(q->r->peer_cn) && !ch->closed) {
        ch->agent_at = now_of(q->api);
        return ch;
    }
    api_reply_failure(
        q->x, ERR_NOT_FOUND, "there is no session %lld for this node (any more)", (long long)q->id);
    return NULL;
}

void api_agent_channel_claim(struct request *q)
{
    struct channel *ch = of_agent(q);
    if (!ch)
        return;
    if (ch->claimed) {
        api_reply_failure(q->x, ERR_CONFLICT, "session %lld was claimed before", (long long)q->id);
        return;
    }
    ch->claimed = true;
    api_reply_json(q->x, 200, json_incref(ch->order));
}

void api_agent_channel_output(struct request *q)
{
    int64_t offset, ends;
    struct channel *ch;
    if (api_query_i64(q, "offset", 0, INT64_MAX / 2, 0, &offset) &&
        api_query_i64(q, "end", 0, 1, 0, &ends) && check_piece_size(q) && (ch = of_agent(q)))
        stream_write(q, ch, &ch->up, offset, ends == 1);
}

void api_agent_channel_input(struct request *q)
{
    int64_t offset, wait_ms;
    struct channel *ch;
    if (api_query_i64(q, "offset", 0, INT64_MAX, 0, &offset) &&
        api_query_i64(q, "wait_ms", 0, API_WAIT_MAX_MS, 0, &wait_ms) && (ch = of_agent(q)))
        stream_read(q, ch, &ch->down, offset, wait_ms);
}
