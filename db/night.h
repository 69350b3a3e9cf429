/* SPDX-License-Identifier: Apache-2.0
 *
 * What happened in a period, for the morning digest: from the jobs that ended in it, the ledger and
 * the history. The work is that of the rows of the period and, for deadlines, of the live jobs.
 */
#ifndef BELAY_DB_NIGHT_H
#define BELAY_DB_NIGHT_H

#include "db/db.h"

#define NIGHT_LISTED_MAX 10 /* jobs, cron entries, nodes and anomalies that are named */

struct night_job {
    int64_t id;
    struct job_ref ref;
    char name[CORE_NAME_MAX], user[CORE_NAME_MAX];
    enum end_kind end; /* END_NONE: it has not ended */
    int32_t exit_code;
    struct wall finish_by; /* of a late one */
};

struct night_jobs {
    int64_t n;
    struct night_job first[NIGHT_LISTED_MAX];
};

/* A run of a cron entry, or a check of --done-by. */
struct night_cron {
    int64_t cron;
    char name[CORE_NAME_MAX], user[CORE_NAME_MAX];
    char text[CORE_TEXT_MAX];
};

struct night_crons {
    int64_t n; /* scheduled times; one that was missed may stand for several */
    int64_t n_rows;
    struct night_cron first[NIGHT_LISTED_MAX];
};

struct night {
    int64_t ended_well, cancelled; /* jobs; a task of an array counts as a job */
    struct night_jobs failed;      /* that ended otherwise */
    struct night_jobs late;        /* ended, or still to end, after the time of --finish-by */
    int64_t reclaims;              /* attempts lost with their machine, of jobs that */
    int64_t reclaimed_jobs;        /* went on, or ended well */
    int64_t uusd, on_demand_uusd;  /* of intervals that ended, by their part in the period */
    int64_t cron_runs, cron_well;  /* started; and ended well by now */
    struct night_crons cron_failed, cron_skipped; /* skipped: or missed, or refused */
    struct night_crons cron_late;                 /* not done by the time of --done-by */
    int64_t n_drained;                            /* nodes that belay drained by itself */
    char drained[NIGHT_LISTED_MAX][CORE_TEXT_MAX];
    int64_t n_anomalies; /* days of a subject on which far more was spent than usual */
    char anomalies[NIGHT_LISTED_MAX][CORE_TEXT_MAX];
};

/* What happened in a period, for all and for each of some users. */
struct nights;
struct nights *nights_create(void);
void nights_add(struct nights *n, const char *user); /* no-op if it has the user */
/* user "" = all; NULL if it does not have the user. */
const struct night *nights_of(const struct nights *n, const char *user);
size_t nights_users(const struct nights *n);
void nights_destroy(struct nights *n); /* may be NULL */
/* Reads [from, to) once, into new ones to which only users were added. */
int db_read_nights(
    struct db_reader *r, struct wall from, struct wall to, struct nights *n, struct err *e);

/* Reads [from, to). user: only of this user, without nodes; NULL = all. */
int db_read_night(struct db_reader *r, struct wall from, struct wall to, const char *user,
    struct night *ret_night, struct err *e);

#endif
