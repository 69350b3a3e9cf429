/* SPDX-License-Identifier: Apache-2.0 */
#include "db/audit_log.h"

#include "base/buf.h"
#include "base/str.h"
#include "db/conn.h"
#include "db/query.h"
#include "db/reader.h"
#include <inttypes.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <string.h>

/* A length before each text, so that no two rows have the same form. */
static void add_text(struct buf *out, const char *text)
{
    buf_printf(out, "%zu:%s\n", strlen(text), text);
}

static void hash_row(const char *before, const struct audit_row *row, char out[65])
{
    unsigned char digest[SHA256_DIGEST_LENGTH];
    struct buf text = {0};
    add_text(&text, before);
    buf_printf(&text, "%" PRId64 "\n%" PRId64 "\n", row->seq, row->at.ms);
    add_text(&text, row->request);
    add_text(&text, row->user);
    add_text(&text, row->source);
    add_text(&text, row->route);
    add_text(&text, row->object);
    add_text(&text, row->result);
    SHA256((const unsigned char *)text.data, text.len, digest);
    str_hex(digest, sizeof(digest), out);
    buf_deinit(&text);
}

void audit_log_link(struct audit_head *head, struct audit_row *row)
{
    row->seq = head->seq + 1;
    hash_row(head->hash, row, row->hash);
    head->seq = row->seq;
    STR_COPY(head->hash, row->hash);
}

int audit_log_load(struct db *d, struct audit_head *ret_head, struct err *e)
{
    struct audit_row row = {0};
    struct query q;
    query_init(&q, &d->statements, TABLE_AUDIT_LOG, "ORDER BY seq DESC LIMIT 1", e);
    bool found = query_next(&q, &row);
    int rc = query_finish(&q);
    *ret_head = (struct audit_head){.seq = found ? row.seq : 0};
    STR_COPY(ret_head->hash, found ? row.hash : "");
    return rc;
}

int audit_log_read(
    struct db_reader *r, const struct audit_filter *f, audit_log_fn fn, void *ctx, struct err *e)
{
#define AUDIT_WHERE "WHERE seq > ?1 AND seq < ?2 AND at >= ?3 AND (?4 = '' OR user = ?4) "
    struct audit_row row = {0};
    struct query q;
    int rc = query_check_limit(f->limit, e);
    if (rc != 0)
        return rc;
    query_init(&q, r->statements, TABLE_AUDIT_LOG,
        f->before > 0 ? AUDIT_WHERE "ORDER BY seq DESC LIMIT ?5"
                      : AUDIT_WHERE "ORDER BY seq LIMIT ?5",
        e);
    query_i64(&q, 1, f->after);
    query_i64(&q, 2, f->before > 0 ? f->before : INT64_MAX);
    query_i64(&q, 3, wall_is_set(f->since) ? f->since.ms : INT64_MIN);
    query_text(&q, 4, f->user);
    query_i64(&q, 5, f->limit);
#undef AUDIT_WHERE
    while (query_next(&q, &row) && query_goes_on(&q, fn(ctx, &row)))
        ;
    return query_finish(&q);
}

void db_get_audit_head(const struct db *d, struct audit_head *ret_head)
{
    *ret_head = d->audit;
}

int audit_log_has(struct db_reader *r, const struct audit_head *head, bool *ret_has, struct err *e)
{
    struct audit_row row = {0};
    struct query q;
    query_init(&q, r->statements, TABLE_AUDIT_LOG, "WHERE seq = ?1", e);
    query_i64(&q, 1, head->seq);
    bool found = query_next(&q, &row);
    *ret_has = head->seq == 0 || (found && str_eq(row.hash, head->hash));
    return query_finish(&q);
}

/* Cuts are a day apart, so that not every commit of the retention adds a row. */
int audit_log_plan_cut(
    struct db *d, const struct prune *p, int64_t *ret_up_to, struct audit_row *ret_row)
{
    int64_t before_ms = p->now.ms - p->age_ms[PRUNE_AUDIT];
    struct audit_row row = {.at = p->now, .user = "belayd", .route = AUDIT_LOG_CUT, .result = "ok"};
    sqlite3_stmt *s = NULL;
    int code = statements_take(&d->statements,
        "SELECT seq, hash FROM audit_log WHERE seq < ifnull((SELECT seq FROM audit_log WHERE at >= "
        "?1 AND seq <= ?3 + (SELECT min(seq) FROM audit_log) ORDER BY seq LIMIT 1), (SELECT "
        "max(seq) FROM audit_log)) AND seq < ?3 + (SELECT min(seq) FROM audit_log) AND (SELECT at "
        "FROM audit_log ORDER BY seq LIMIT 1) < ?2"
        " ORDER BY seq DESC LIMIT 1",
        &s);
    *ret_up_to = 0;
    if (code != SQLITE_OK)
        return code;
    sqlite3_bind_int64(s, 1, before_ms);
    sqlite3_bind_int64(s, 2, before_ms - 86400000);
    sqlite3_bind_int64(s, 3, AUDIT_LOG_CUT_ROWS_MAX);
    code = sqlite3_step(s);
    if (code == SQLITE_ROW) {
        *ret_up_to = sqlite3_column_int64(s, 0);
        STR_COPY(row.source, (const char *)sqlite3_column_text(s, 1));
        snprintf(row.object, sizeof(row.object), "%" PRId64, *ret_up_to);
        *ret_row = row;
    }
    sqlite3_reset(s);
    statements_give(&d->statements, s);
    return code == SQLITE_ROW || code == SQLITE_DONE ? SQLITE_OK : code;
}

/* The anchor of the last cut; seq 0 if the log was never cut. */
static int read_anchor(struct db_reader *r, struct audit_head *ret_anchor, struct err *e)
{
    struct audit_row row = {0};
    struct query q;
    query_init(&q, r->statements, TABLE_AUDIT_LOG, "WHERE route = ?1 ORDER BY seq DESC LIMIT 1", e);
    query_text(&q, 1, AUDIT_LOG_CUT);
    bool found = query_next(&q, &row);
    int rc = query_finish(&q);
    *ret_anchor = (struct audit_head){0};
    if (rc != 0 || !found)
        return rc;
    if (str_to_i64(row.object, 1, row.seq - 1, "object", &ret_anchor->seq, e) != 0)
        return err_set(e, ERR_CORRUPT, "row %" PRId64 " of the audit log was changed", row.seq);
    STR_COPY(ret_anchor->hash, row.source);
    return 0;
}

struct follower {
    struct audit_head at;
    const struct audit_head *kept;
    struct err *e;
};

static int changed(struct follower *f, int64_t seq, const char *what)
{
    return err_set(f->e, ERR_CORRUPT, "row %" PRId64 " of the audit log %s", seq, what);
}

static int follow(struct follower *f, const struct audit_row *row)
{
    struct audit_row expected = *row;
    int64_t next = f->at.seq + 1;
    if (row->seq != next)
        return changed(f, next, "is missing: it was removed");
    audit_log_link(&f->at, &expected);
    if (!str_eq(expected.hash, row->hash))
        return changed(f, next, "was changed, or one before it: its hash does not fit");
    if (f->kept && f->kept->seq == next && !str_eq(f->kept->hash, row->hash))
        return changed(f, next, "is not the one whose hash was kept: the log was replaced");
    return 0;
}

int audit_log_verify(
    struct db_reader *r, const struct audit_head *kept, struct audit_head *ret_head, struct err *e)
{
    struct follower f = {.kept = kept, .e = e};
    struct audit_row row = {0};
    struct query q;
    int rc = read_anchor(r, &f.at, e);
    if (rc == 0 && kept && kept->seq > 0 && kept->seq < f.at.seq)
        rc = err_set(e, ERR_INVALID,
            "the audit log was deleted up to row %" PRId64
            " by its retention: it cannot be compared with the head of row %" PRId64,
            f.at.seq, kept->seq);
    if (rc != 0)
        return rc;
    query_init(&q, r->statements, TABLE_AUDIT_LOG, "ORDER BY seq", e);
    while (query_next(&q, &row) && query_goes_on(&q, follow(&f, &row)))
        ;
    rc = query_finish(&q);
    if (rc == 0 && kept && kept->seq > f.at.seq)
        rc = err_set(e, ERR_CORRUPT,
            "the audit log ends at row %" PRId64 ", but it had row %" PRId64
            ": its end was cut off",
            f.at.seq, kept->seq);
    *ret_head = f.at;
    return rc;
}
