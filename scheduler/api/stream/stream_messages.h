/* SPDX-License-Identifier: Apache-2.0
 *
 * The events of a stream, as text (server-sent events, WHATWG HTML 9.2). Each is written once,
 * however many streams it is sent to: in full, and for those who may not read its job as in the
 * lists of jobs and events.
 */
#ifndef BELAY_SCHEDULER_API_STREAM_STREAM_MESSAGES_H
#define BELAY_SCHEDULER_API_STREAM_STREAM_MESSAGES_H

#include "scheduler/api/api_private.h"
#include "scheduler/api/stream/stream_query.h"

struct stream_message {
    enum stream_kind kind;
    int64_t event;      /* its number, of STREAM_EVENT; else 0 */
    int64_t id;         /* of what it says the state of; 0 = none, or it has only a name */
    int64_t job, array; /* CORE_ID_NONE */
    /* of the job or cron entry; borrowed for as long as the messages are used */
    struct access_object object;
    bool has_object; /* false: the object is unknown, or there is none */
    char *plain;
    char *hidden; /* for who may not read the object; NULL: nothing */
};

struct stream_messages {
    const struct api *api;
    bool needs_hidden; /* some viewer may not read all jobs */
    struct stream_message *items;
    size_t n, cap;
    struct list rows; /* jobs that were read for it */
};

void stream_messages_deinit(struct stream_messages *ms);

/* "event: NAME" with this value, which it takes. position may be NULL. The caller frees it. */
char *stream_text(const char *name, const struct stream_position *position, json_t *data);

void stream_add_job(struct stream_messages *ms, const struct job_row *row);
/* As it is in the database; nothing if it cannot be read. */
void stream_add_stored_job(struct stream_messages *ms, int64_t job);
/* row is that of its job; NULL to look it up. */
void stream_add_event(
    struct stream_messages *ms, const struct history_row *h, const struct job_row *row);
void stream_add_node(struct stream_messages *ms, const struct node_row *row);
void stream_add_instance(struct stream_messages *ms, const struct instance_row *row);
void stream_add_pool(struct stream_messages *ms, const char *name);
void stream_add_budget(struct stream_messages *ms, const char *name);
void stream_add_cron(struct stream_messages *ms, const struct cron_row *row);
void stream_add_log(struct stream_messages *ms, const struct job_row *row);
void stream_add_summary(struct stream_messages *ms, json_t *summary); /* takes it */

/* The row of a job of the model or the database; NULL if there is none. Borrowed until deinit. */
const struct job_row *stream_find_job(struct stream_messages *ms, int64_t job);

/* The same number for messages of which the last says all, and for no others; 0 for an event and
 * for what has only a name. */
int64_t stream_message_thing(const struct stream_message *m);

/* What the viewer is sent of m; NULL for nothing. */
const char *stream_message_for(const struct stream_message *m, const struct caller *viewer);

#endif
