/* SPDX-License-Identifier: Apache-2.0
 *
 * Who may do what. A request needs a right; the table `role x right` of access.c says how far a
 * role reaches with it: to nothing, to what is the caller's own, to what is of the teams that the
 * caller leads, or to everything. The scope of a token takes rights away and gives none. Each route
 * has its right in the table of scheduler/api/api.c, which is checked before the handler runs; a
 * handler asks again with the object, once it has read it.
 *
 * How a caller became a user (UNIX socket, token, attempt) is not seen here: access_init() and
 * access_narrow() are the two steps from an identity to its rights.
 */
#ifndef BELAY_SCHEDULER_ACCESS_ACCESS_H
#define BELAY_SCHEDULER_ACCESS_ACCESS_H

#include "base/time.h"
#include "scheduler/config/config.h"

enum right {
    RIGHT_UNSET,     /* a route whose row has no right: nobody may call it */
    RIGHT_NONE,      /* of routes without a user: agents, health */
    RIGHT_READ,      /* the cluster: nodes, pools, sums, one's own identity */
    RIGHT_METRICS,   /* figures of the whole cluster, without names of jobs */
    RIGHT_READ_JOB,  /* what a job or a cron entry is and does */
    RIGHT_SUBMIT,    /* jobs, with their working directories */
    RIGHT_CHANGE,    /* a job: cancel, hold, requeue, update and the like */
    RIGHT_ENTER,     /* a running job, as its user: sessions */
    RIGHT_CRON_EDIT, /* what a cron entry runs, as its user */
    RIGHT_CRON,      /* pause, resume and remove a cron entry */
    RIGHT_CRON_RUN,  /* run a cron entry now */
    RIGHT_SECRETS,   /* list, set, grant and remove secrets */
    RIGHT_TOKENS,    /* API tokens */
    RIGHT_OPERATE,   /* nodes: drain, undrain, delete, reserve; calendars */
    RIGHT_ADMIN,     /* pools, join tokens, reports, comparisons with the providers */
    RIGHTS
};

/* What a token is for. */
enum scope_kind {
    SCOPE_NONE, /* everything that its user may do */
    SCOPE_READ_ONLY,
    SCOPE_METRICS, /* of a scraper: the metrics alone */
    SCOPE_CI,      /* submit jobs, change and follow them */
    SCOPE_POOL,    /* the same, and sessions and nodes, in one pool */
    SCOPE_CRON,    /* run one cron entry and follow its jobs, without changing it */
    SCOPE_JOB,     /* of the token of an attempt: its own job only */
    SCOPES
};

struct scope {
    enum scope_kind kind;
    char pool[CORE_NAME_MAX];
    int64_t id; /* of the cron entry or the job */
};

#define SCOPE_TEXT_MAX (CORE_NAME_MAX + 8) /* size of a scope as text */

/* "none" "read" "metrics" ..., by enum right; NULL-terminated */
extern const char *const right_names[];
/* The least role that has the right to something at all. right is not RIGHT_UNSET. */
enum role right_least_role(enum right right);

/* Reads "read-only", "metrics", "ci", "pool=NAME" or "cron=ENTRY", or "" for SCOPE_NONE.
 * ERR_INVALID. */
int scope_parse(const char *text, struct scope *ret_scope, struct err *e);

/* The caller of a request. Valid as long as the configuration. */
struct caller {
    const struct config *config;
    char user[CORE_NAME_MAX];
    enum role role;
    bool admin;             /* role is ROLE_ADMIN, and the scope takes nothing away */
    enum role most;         /* what a token limits the role to; ROLE_ADMIN = it does not */
    struct scope scope;     /* of the token */
    struct wall expires_at; /* of the token; WALL_NONE: never, or there is no token */
    /* set if the caller runs inside this attempt (api_job_token); 0 for a person */
    int64_t job, attempt;
    int64_t token;   /* the number of the API token that was sent; 0 = none */
    bool is_login;   /* the token is of a sign-in at the identity provider */
    bool is_session; /* the token is of a browser's session */
};

/* Sets the user, with the role that the configuration has for them; is_admin: an administrator
 * whatever it has. */
void access_init(struct caller *c, const struct config *config, const char *user, bool is_admin);
/* Gives at least this role: that of the user's groups at the identity provider. */
void access_raise(struct caller *c, enum role role);
/* Limits what the caller may do. */
void access_narrow(struct caller *c, enum role most, const struct scope *scope);

/* Whose the object is; members that do not apply are NULL or 0. */
struct access_object {
    const char *user; /* NULL: nobody's */
    const char *team; /* of the job */
    const char *pool; /* that was requested for the job, or that the node is in */
    int64_t job, cron;
};

/* Whether the caller has the right to the object. object NULL: to any object at all. */
bool access_may(const struct caller *c, enum right right, const struct access_object *object);

/* Sets ERR_DENIED: who has the right, and what the caller lacks. object as above; what: the object
 * for people, such as "job 42", NULL without one. Returns ERR_DENIED. */
int access_refuse(const struct caller *c, enum right right, const struct access_object *object,
    const char *what, struct err *e);

#endif
