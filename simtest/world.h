/* SPDX-License-Identifier: Apache-2.0
 *
 * A simulated world: the real core, tick, agent sync, provisioning and database, in virtual time,
 * with a provider, agents, a checkpoint store and users simulated from one seed, and with every
 * possible failure. A failing seed replays exactly.
 *
 *   users --submit, cancel, requeue, drain--> [ belayd's code ] --launch, list, terminate--> cloud
 *                                                ^  |                                          |
 *                                                |  v wire messages, encoded and decoded       v
 *                                              agents <---------- machines, boots, notices, kills
 *                                                |
 *                                                v save, fence, restore
 *                                              store
 *
 * belayd is "killed" between any two events and in the middle of commits, and recovers from its
 * database. check.c checks the five promises after every event.
 */
#ifndef BELAY_SIMTEST_WORLD_H
#define BELAY_SIMTEST_WORLD_H

#include "base/map.h"
#include "base/prng.h"
#include "base/vtimers.h"
#include "base/wire/wire.h"
#include "cloud/driver.h"
#include "db/db.h"
#include "job/calendar.h"
#include "scheduler/core/lifecycle/digest_options.h"
#include "scheduler/core/model/settings.h"
#include "scheduler/core/placement/maintenance.h"
#include "scheduler/engine/agent_sync.h"
#include "scheduler/engine/cleaner.h"
#include "scheduler/engine/outbox.h"
#include "scheduler/engine/provision.h"
#include "scheduler/engine/tick.h"

#define SIM_JOBS_MAX 64
#define SIM_MACHINES_MAX 4096
#define SIM_MANIFESTS_MAX 256
#define STEP_MS 100          /* of a simulated program */
#define SIM_REQUIRE 4        /* one world in this many has a pool that requires drills, */
#define SIM_VALID_MS 3600000 /* from the last hour */

#define SIM_EXCLUDE 7        /* or exclude an existing node */
#define SIM_ALONE 5          /* one world in this many has jobs with exclusive nodes */
#define SIM_STORED_BYTES 512 /* newly stored by each save, compressed */
/* Content of a job's checkpoints. Every second job changes little of it between two saves. */
static inline int64_t sim_content_bytes(int64_t job)
{
    return job % 2 == 0 ? 4 * SIM_STORED_BYTES : 2 * SIM_STORED_BYTES;
}
#define SIM_STORE_UUSD_GIB_MONTH MODEL_STORE_UUSD_MAX /* high, since the data is small */
/* One world in this many has a store elsewhere with egress prices (traffic.c). */
#define SIM_REMOTE_STORE 5
#define SIM_BUDGETS 4 /* one world in this many has jobs paid from a budget (paid.c) */
/* one world in this many has machines that do not join for a while (boots.c) */
#define SIM_BOOTLESS 9
#define SIM_BACKOFF_MS 20000 /* refusal_backoff of the elastic pool */
#define SIM_RACKS 4          /* one world in this many has a rack, unless it has quotas (racks.c) */
/* Of this many worlds one has quotas, one limits, and one a preempting QOS (quotas.c). */
#define SIM_RELOADS 4 /* one world in this many changes its policy */
#define SIM_QUOTAS 3
/* one world in this many has nodes whose disks are full for a while (disks.c) */
#define SIM_DISKS 6
/* one world in this many has an image that leaves no space on the disk (disks.c) */
#define SIM_FULL_IMAGES 11
/* one world in this many has programs that stand still while they are saved (pauses.c) */
#define SIM_PAUSES 10
#define SIM_GRANTS 7 /* one world in this many cannot create credentials for a while (grants.c) */
#define SIM_STORE_WAIT_MS 600000
#define SIM_PRUNES 4 /* one world in this many deletes what is old at each restart (prunes.c) */
#define SIM_BASES 5  /* one world in this many has a pool that keeps machines (bases.c) */
#define SIM_HOLES 7  /* one world in this many has nodes that fail all jobs for a while (holes.c) */
#define SIM_IDLE_GPUS 6    /* one world in this many has jobs with idle GPUs (idle_gpus.c) */
#define SIM_RESERVATIONS 5 /* one world in this many has reservations (reservations.c) */
#define SIM_HOLE_CODE 127  /* exit code of a job that such a node fails */

struct world;

/* ---- store.c: one job's checkpoints, with the store's own rules ---- */
struct sim_manifest {
    struct ckpt_ref ref;
    int64_t steps;
    bool damaged;
};

#define SIM_AWAY 5           /* one world in this many loses its store occasionally */
#define SIM_CLOSED INT64_MAX /* fence of a closed store */

struct sim_store_job {
    int64_t fence;
    char identity[CKPT_IDENTITY_MAX]; /* of the job that began there; "" = none */
    struct sim_manifest *manifests;
    size_t n;
    /* the first this many manifests are unavailable: the store was moved away, or emptied */
    size_t away;
    /* The provider's meter (traffic.c) up to metered_at: stored data, and the difference from
     * belayd's committed value. */
    struct wall metered_at;
    int64_t byte_ms, differ_byte_ms;
    int64_t known_bytes, changes;
    /* Sum of absolute changes since belayd's last commit: the difference alone hides additions that
     * equal removals. */
    int64_t changed_bytes;
};

void store_fence(struct world *w, int64_t job, int64_t attempt);
/* Called when an attempt or a cleaning begins; all of one job have the same identity. */
void store_identify(struct world *w, int64_t job, const char *identity);
/* False if the attempt is fenced. */
bool store_commit(struct world *w, int64_t job, struct ckpt_ref ref, int64_t steps);
struct ckpt_ref store_newest(const struct world *w, int64_t job); /* attempt 0: none */
/* Returns the newest undamaged checkpoint of an attempt before `attempt` and from `from` on;
 * ref.attempt 0: none. Counts damaged ones and sets them aside. *ret_lost: neither `expected` nor a
 * newer one exists, or all existing ones are damaged. */
struct sim_manifest store_restore(struct world *w, int64_t job, int64_t attempt, int64_t from,
    struct ckpt_ref expected, int *ret_damaged, bool *ret_lost);
/* Makes the job's data unavailable until it is brought back; in some worlds only. */
void store_hide(struct world *w, int64_t job);
void store_unhide(struct world *w, int64_t job);
/* Keeps the newest checkpoints, as agents do; returns the remaining bytes. */
int64_t store_clean(struct world *w, int64_t job, int64_t attempt);
bool store_has(const struct world *w, int64_t job, struct ckpt_ref ref);
/* The cleaning for belayd: takes time, may fail half-way, and dies with belayd. */
struct sim_cleaner {
    struct cleaner_port port;
    struct world *w;
    struct cleaner_job job;
    cleaner_done_fn done;
    void *ctx;
    struct timer timer;
};
void store_cleaner_init(struct world *w);
void store_cleaner_kill(struct world *w);

/* ---- outbox.c ---- */
struct sim_delivery {
    struct world *w;
    int64_t job;
    enum notify_event kind;
    outbox_done_fn done;
    void *ctx;
    struct timer timer;
};
struct sim_postman {
    struct outbox_port port;
    struct world *w;
    struct sim_delivery deliveries[OUTBOX_AT_ONCE];
};
extern const struct notify_hook sim_hook; /* configured: all events except those of tasks */
void outbox_port_init(struct world *w);
void outbox_port_kill(struct world *w);
void outbox_port_committed(struct world *w, const struct db_batch *b);
/* at the end of the run, of an ended job */
void outbox_check(struct world *w, const struct job_row *r);

#define START_WALL_MS 1767225600000LL /* 2026-01-01 */

/* ---- cloud.c ---- */
/* Machine types; owned nodes are of this size. */
#define SIM_SMALL "m5.xlarge"
#define SIM_BIG "m5.2xlarge"
struct resources world_machine(const char *type);

struct sim_machine {
    struct world *w;
    char id[32];
    char token[65];
    enum cloud_market market;
    char zone[16], type[64];
    enum cloud_state state;
    /* is_elsewhere: in another place than belayd assumes until the launch is reported */
    bool reclaimed, is_elsewhere;
    int64_t launched_ms;     /* monotonic */
    int64_t visible_from_ms; /* listings lag */
    int64_t gone_ms;
    struct wall ended_at; /* end of billing; WALL_NONE */
    struct timer boot, reclaim, kill, end;
    struct sim_agent *agent;
};

/* Spot prices of SIM_SMALL in a zone, oldest first, by the provider's clock. */
#define SIM_PRICES_MAX 2000
struct sim_prices {
    struct wall since[SIM_PRICES_MAX];
    int64_t uusd_h[SIM_PRICES_MAX];
    int n, n_stored; /* n_stored: stored by belayd */
};

struct cloud_driver *cloud_create(struct world *w);
/* The provider's bill for a machine that has ended. */
void cloud_bill(const struct sim_machine *m, int64_t *ret_ms, int64_t *ret_uusd);
/* The provider reports launch and end times, so belayd can know the bill. */
bool cloud_bills(const struct world *w);
void cloud_price_stored(struct world *w, const struct offer_row *r); /* committed */
/* Withdraws price changes that belayd could not store (disk full, or killed): the provider bills
 * only what it reported. */
void cloud_forget_unstored_prices(struct world *w);
void cloud_destroy(struct world *w);
void cloud_forget_calls(struct world *w); /* belayd died: replies are dropped */
void cloud_kill(struct sim_machine *m, bool reclaimed);
int cloud_alive(const struct world *w);

/* ---- agent.c ---- */
enum sim_phase { SIM_RESTORING, SIM_RUNNING, SIM_ENDED };

struct sim_attempt {
    struct sim_agent *agent;
    struct link in_agent;
    int64_t job, attempt, rank, ranks;
    enum sim_phase phase;
    int64_t restored_steps;
    int64_t base_steps;  /* progress at which it resumes, unless it forgets */
    int64_t ran_from_ms; /* monotonic, when running began */
    /* pauses.c: monotonic, since when it stands still, or 0; and how long it did before */
    int64_t stands_since_ms, stood_ms;
    struct ckpt_ref restored;
    int64_t nearby_bytes; /* of the restored content */
    int64_t kept_bytes;   /* in the store after its last cleaning; 0: not cleaned */
    int damaged;
    int64_t started_wall;
    int64_t sequence, acked, saving_steps;
    struct wire_checkpoint *saved;
    size_t n_saved;
    bool saving, stop_after_save;
    bool has_no_script; /* it ends when requested */
    enum wire_end stop_reason;
    enum wire_cause save_cause;
    int64_t failed_saves;
    int refusals;        /* remaining refusals by the store before it restores */
    bool is_refused;     /* ends because of the refusals */
    int64_t store_tries; /* so far */
    enum wire_end end;
    int64_t exit_code;
    struct timer finish, save_done, periodic;
    int64_t every_ms;
    struct daily daily;
    int64_t saves_asked; /* belayd's last count, once a save has begun since */
};

struct sim_agent {
    struct world *w;
    struct link in_world;
    struct sim_machine *machine; /* NULL for a reserved node */
    char key[65];
    int64_t node; /* 0: not joined */
    bool dead, up;
    int64_t cut_until_ms; /* partitioned */
    int64_t incarnation, seq, rev;
    int64_t applied; /* number of the event after which belayd built `rev` */
    struct wire_notice notice;
    struct list attempts;
    int64_t hole_until_ms; /* it fails all jobs (holes.c) */
    int64_t full_until_ms; /* its disk (disks.c) */
    int64_t space_seq;     /* of the last status without a full disk, or of one before a restart */
    /* belayd has answered a status with a full disk, and none without one was sent since */
    bool is_full_reported;
    struct wire_prefetched prefetched; /* as it reports it */
    int64_t prefetch_tried;            /* newest sequence */
    struct timer prefetch;             /* running: it fetches */
    struct timer poll, restart, crash;
    int polls; /* in progress */
    int tries;
};

void agent_boot(struct world *w, struct sim_machine *m);
void agent_kill(struct sim_agent *a); /* with its machine */
void agent_notice(struct sim_agent *a, enum wire_notice_kind kind, int64_t deadline_ms);
void agent_report(struct sim_agent *a);                             /* at once, if it is up */
bool agent_has(const struct world *w, const struct attempt_row *r); /* that of its node */
void agent_destroy_all(struct world *w);
struct sim_call;
void agent_call_broken(struct sim_call *c); /* belayd died while it had the request */

/* ---- prefetches.c ---- */
void prefetches_init(struct sim_agent *a);
void prefetches_ordered(struct sim_agent *a, const struct wire_prefetch *x);
void prefetches_forget(struct sim_agent *a);
/* How much of the checkpoint that the attempt restores is on its node. */
int64_t prefetches_nearby(const struct sim_agent *a, const struct sim_attempt *x);

/* ---- disks.c ---- */
void disks_disturb(struct world *w); /* now and then */
bool disks_is_full(const struct sim_agent *a);
/* Returns true if the start finds no space on the disk. */
bool disks_refuse(struct sim_agent *a, int64_t job);
void disks_sent(struct sim_agent *a, const struct wire_status *st);
void disks_answered(struct sim_agent *a, int64_t incarnation, const struct wire_status *st);
void disks_forgotten(struct world *w); /* belayd has died */
/* checks a new attempt */
void disks_committed_attempt(struct world *w, const struct attempt_row *r);

/* ---- holes.c ---- */
extern const struct node_failures_options sim_holes;
bool holes_enabled(const struct world *w);
void holes_disturb(struct world *w);           /* now and then */
bool holes_swallow(const struct sim_agent *a); /* a start there fails */
/* call before check_job: with the jobs as committed before */
void holes_committed(struct world *w, const struct changes *c);
void holes_loaded(struct world *w); /* belayd has loaded the model */
void holes_deinit(struct world *w);

/* ---- idle_gpus.c ---- */
/* What was committed about the idle GPUs of a job. */
struct sim_idle {
    bool is_told, is_held, is_requeued; /* by a user, since it is held */
    struct wall told_at;
    int64_t event, attempt;    /* of the notification */
    struct ckpt_ref last_good; /* when it was held */
};
bool idle_gpus_enabled(const struct world *w);
void idle_gpus_policy(const struct world *w, struct pool_row *p);
void idle_gpus_disturb(struct world *w); /* call while belayd is up */
/* call after check_job */
void idle_gpus_committed(struct world *w, const struct changes *c);

/* ---- reservations.c ---- */
bool reservations_enabled(const struct world *w);
/* Makes some submitted jobs ones that cannot be saved. */
void reservations_make_submission(const struct world *w, int64_t number, struct job_row *row);
void reservations_disturb(struct world *w); /* call while belayd is up */
void reservations_committed(struct world *w, const struct changes *c);

/* ---- users.c ---- */
void users_start(struct world *w);
bool users_done(const struct world *w);
void users_stop(struct world *w);

/* ---- crons.c ---- */
void crons_init(struct world *w); /* call when its clock is set */
void crons_deinit(struct world *w);
int crons_read_job(
    const char *job_json, struct job_row *ret_job, struct job_texts *ret_texts, struct err *e);
void crons_ask(struct world *w); /* call while belayd is up */
bool crons_done(const struct world *w);
#define SIM_CALENDARS 2
/* Borrowed for the world's life. */
const struct calendar *crons_calendars(const struct world *w, size_t *ret_n);
void crons_committed(struct world *w, const struct changes *c);
const struct time_zone *crons_zone(struct world *w);
struct wall crons_next_time(struct world *w, const struct cron_row *r, struct wall after);

/* ---- cron_alerts.c ---- */
struct sim_alerts {
    bool is_checked;     /* checked is set */
    struct wall checked; /* until when the entry was checked, as committed */
    struct wall done;    /* the last time whose run has ended well */
    struct wall alerted; /* the last time with an alert */
};

int32_t cron_alerts_done_by(const struct world *w); /* for cron_row.done_by */
void cron_alerts_committed(struct world *w, const struct changes *c);

/* ---- digests.c ---- */
struct sim_digest {
    struct digest_options options;
    struct time_zone zone;
    struct zone_span spans[2];
    struct wall first, due; /* the first time, and where the clocks show it */
    int32_t change_s;
    struct wall told_until; /* as committed */
    int64_t n;              /* digests that were decided */
    int64_t up_since_ms;
    bool is_subscribed;
};
void digests_init(struct world *w); /* call when its clock is set */
const struct digest_options *digests_options(const struct world *w); /* NULL: no digest */
void digests_up(struct world *w);
void digests_ask(struct world *w); /* call while belayd is up */
void digests_committed(struct world *w, const struct changes *c);
void digests_check(struct world *w); /* call while belayd is up */

/* ---- anomalies.c ---- */
#define SIM_ANOMALIES 2
void anomalies_ask(struct world *w); /* call while belayd is up */
void anomalies_committed(struct world *w, const struct changes *c);
void anomalies_up(struct world *w); /* call when belayd has loaded its state */

/* ---- paid.c ---- */
/* the budgets as configured */
const struct budget_options *paid_options(struct world *w, size_t *ret_n);
/* Sets the labels of a submitted job that is to be paid from the budget, and makes it fit. */
const char *paid_labels(struct world *w, struct job_row *r);
/* true: the job is paid from the budget and must keep fitting into it */
bool paid_is(struct world *w, int64_t job);
void paid_committed(struct world *w, const struct changes *c);
void paid_check(struct world *w); /* call while belayd is up */
void paid_deinit(struct world *w);

/* ---- traffic.c ---- */
/* A transfer of an agent for an attempt: a restore or its input (sequence 0), or a checkpoint. */
struct sim_transfer {
    int64_t job, attempt, node, sequence, uusd;
};
/* Input that some jobs read at their start. */
struct sim_input {
    int64_t constraints, bytes;
    char from[8]; /* a provider; or "store" */
};
void traffic_prices(const struct world *w, struct pool_row *p);
/* Egress prices of the provider: model_options.egress. */
struct egress traffic_egress(const char *provider);
void traffic_read(struct world *w, const struct sim_attempt *x, int64_t bytes);
/* Bills the rank's part of the job's input. */
void traffic_started(struct world *w, const struct sim_attempt *x);
/* bills the upload of the current checkpoint */
void traffic_written(struct world *w, const struct sim_attempt *x, int64_t bytes);
/* The job's manifests in the store are about to change by this many. */
void traffic_store_changes(struct world *w, int64_t job, int64_t manifests);
int64_t traffic_store_price(const struct world *w);
void traffic_committed(struct world *w, const struct changes *c);
void traffic_check(struct world *w); /* call at the end of the run */
void traffic_deinit(struct world *w);

/* ---- quotas.c ---- */
const struct queue_policy *quotas_policy(struct world *w);
/* At random times: puts the other policy in force. */
void quotas_disturb(struct world *w);
/* call when belayd's model has the same state */
void quotas_committed(struct world *w, const struct changes *c);
void quotas_check(struct world *w); /* call while belayd is up */

/* ---- bases.c ---- */
void bases_set(const struct world *w, struct pool_row *ret_pool);
void bases_check(struct world *w); /* call while belayd is up */
void bases_committed(struct world *w, const struct changes *c);

/* ---- racks.c ---- */
bool racks_enabled(const struct world *w);
/* returns the count */
size_t racks_of(const struct world *w, const struct rack_options **ret_racks);
void racks_check(struct world *w); /* call this and racks_disturb while belayd is up */
/* Throttles a node, makes it draw too much, or ends either. */
void racks_disturb(struct world *w);
void racks_restore(struct world *w); /* ends all of these */

/* ---- boots.c ---- */
/* Committed state of the machines of the elastic pool. */
struct sim_boots {
    struct map states;    /* enum instance_state + 1, by id */
    struct map instances; /* id, by node */
    struct map verdicts;  /* enum boot_verdict, by id */
    struct map full;      /* by id: number of the batch in which the disk failed the boot */
    struct map begun;     /* attempts of one node each that have begun */
    int64_t n_batches;
    int64_t coming, last_id;
    int64_t failed, newest; /* failures in a row; highest id among these */
    /* since_ms: when `failed` was reached. probes: later failures, with ids above before_id. */
    int64_t since_ms, before_id, probes;
};
bool boots_fail_now(struct world *w);
void boots_committed(struct world *w, const struct changes *c);
void boots_deinit(struct world *w);

/* ---- pauses.c ---- */
struct sim_job;
bool pauses_enabled(const struct world *w);
/* No launch on spot is granted now. */
bool pauses_spot_is_away(const struct world *w);
/* Make a job of such a world. */
void pauses_make_job(const struct world *w, struct prng *p, struct sim_job *j);
void pauses_make_submission(struct world *w, struct job_row *row);
/* How long its program has worked. */
int64_t pauses_ran_ms(const struct sim_attempt *x);
/* Its save begins; returns how long the program stands still, or 0 if it works on. */
int64_t pauses_begin(struct sim_attempt *x);
/* Returns how long it stood still. is_reported: belayd will learn of it. */
int64_t pauses_end(struct sim_attempt *x, bool is_reported);
/* What belayd must expect of this much work: from the last measured pause. */
int64_t pauses_left_ms(const struct job *j, int64_t work_ms);

/* ---- grants.c ---- */
#define SIM_NO_GRANTS "the simulated token service gives nothing"
bool grants_of_job(
    void *ctx, int64_t job, int64_t attempt, struct wire_secrets *ret_secrets, struct err *ret_why);
void grants_committed_attempt(struct world *w, const struct attempt_row *r);

/* ---- world.c ---- */
struct sim_job {
    /* how long the job waits for spot with less time left than it takes
     * (check_deadlines.c) */
    int64_t waits_ms;
    int64_t id; /* 0: not acknowledged */
    int64_t total_steps;
    bool fails, cancelled;
    bool forgets;          /* saves, but starts over all the same */
    int64_t losses;        /* attempts that ended with their machine */
    int32_t pause_pct;     /* of the interval: pause of a save; 0: it works on (pauses.c) */
    int64_t unreported_ms; /* pauses of saves that failed */
    char script[65];
    enum job_state seen;
    struct job_spec spec; /* committed */
    struct ckpt_ref last_good;
    /* committed; higher than 0: its user discarded the work of earlier attempts */
    int64_t from_attempt;
    /* Last order to prefetch: its attempt, node and belayd's process, and when it came. */
    int64_t prefetch_attempt, prefetch_node, prefetch_boots, prefetch_since_ms;
    bool paid;                      /* from the budget */
    int64_t constraints;            /* its committed demands */
    int64_t cost_uusd, ledger_uusd; /* committed cost, and its sum in the ledger */
    int64_t attempts, ends, ends_delivered;
    bool has_begun; /* it, or a task of it */
    enum end_kind end;
    int32_t refusing;        /* number of attempts that its store will refuse */
    int32_t too_large;       /* number of starts that no disk has space for (disks.c) */
    int32_t no_space_starts; /* committed: ends of such starts in a row */
    /* Until then belayd cannot create its credentials: no answer, or denied. */
    int64_t no_grants_until_ms;
    bool is_denied;
    /* Last request for credentials: its attempt, belayd's process, and since when it asks. */
    int64_t asked_attempt, asked_boots, asked_since_ms;
    /* used retries for failures and lost nodes, committed */
    int32_t used;
    int32_t used_failed; /* of these, for failures (holes.c) */
    /* successive attempts that could not use the store */
    int32_t away;
    /* Array: tasks that had begun and not ended at the last check. */
    int64_t n_living;
    bool was_gang; /* had several nodes at some time */
    /* had a dependency that was removed */
    bool waited_for_others;
    /* Array: its tasks, and those that began and ended. */
    int64_t n_tasks, n_tasks_succeeded, n_tasks_ended;
    struct ranges left; /* array: tasks that have not begun */
    int64_t array;      /* of a task; CORE_ID_NONE */
    int32_t index;
    struct dependency_row after; /* on is CORE_ID_NONE: none */
    struct wall evicted_at;      /* last; 0: never */
    struct sim_idle idle;
};

/* A request in transit: dies with belayd. */
struct sim_call {
    struct link in_world;
    struct world *w;
    struct sim_agent *agent;
    int64_t incarnation;
    int kind;
    struct timer timer;
    struct wire_status status;
    struct wire_desired *desired; /* its copy, in the response */
    int64_t built_at;             /* event number of the statement */
    bool sent;
};

/* Ledger sums of an instance. */
struct sim_spent {
    int64_t ms, uusd;
    char token[65];
    /* From its row. is_reported: by the provider, not only by its agent. */
    bool is_launched, is_reported, is_over;
    bool is_repriced; /* its price changed before it was reported */
};

struct world {
    struct sim_boots boots_seen;
    uint64_t seed;
    struct prng prng;
    struct prng options; /* options.c */
    struct vtimers vt;
    struct db *db;
    struct db_reader *reader;
    /* belayd, while it is up */
    bool up;
    int64_t boots;
    struct model *model;
    /* When deadline jobs are checked again, by the world's clock. */
    int64_t deadlines_at;
    /* Number of events applied to the model at the last check; -1: new model. */
    int64_t checked_at;
    struct planner *planner;
    struct tick *tick;
    struct agent_sync *agent_sync;
    struct provision *provision;
    struct cleaner *cleaner;
    struct sim_cleaner sim_cleaner;
    struct outbox *outbox;
    struct sim_postman postman;
    int64_t deliveries;
    struct commit_port port;
    const struct db_batch *committing;
    struct timer commit_timer, crash_timer, restart_timer;
    struct cloud_driver *driver;
    char cluster_uid[17];
    int64_t full_until_ms;
    /* the rest of the world */
    struct list calls;
    struct list agents;
    struct sim_machine *machines[SIM_MACHINES_MAX];
    int n_machines;
    struct list cloud_calls;
    struct sim_prices prices[2]; /* of z1 and z2 */
    char hidden_zone[16];        /* zone missing in the newest listing; "": complete */
    struct sim_store_job store[SIM_JOBS_MAX];
    struct sim_job jobs[SIM_JOBS_MAX]; /* by id - 1 */
    int n_jobs;                        /* to be submitted */
    int64_t acked[SIM_JOBS_MAX];
    int n_acked, n_submits;
    struct timer user_timer, fault_timer;
    bool faults_over; /* no new faults: lets the run end */
    /* committed data, as kept by the checks */
    struct map attempts;      /* (job, attempt, node) */
    struct smap tokens;       /* token -> instance state + 1 */
    struct map spent;         /* instance -> struct sim_spent */
    struct smap alternatives; /* token -> alternatives of its launch, as first sent; owned */
    int n_reservations_made;
    struct maintenance_row reservations[MAINTENANCES_MAX]; /* as committed */
    size_t n_reservations;
    int64_t last_history;
    int64_t n_batches;
    struct map holes;   /* struct sim_hole by node (holes.c) */
    struct map drills;  /* job * 2^20 + number -> state + 1 */
    struct smap proven; /* script -> time of its last passed drill, in ms + 1 */
    struct map spot;    /* nodes of the pool on spot machines */
    struct zones zones;
    struct zone_source zone_source;
    struct sim_digest digests;
    struct wall anomalies[SIM_ANOMALIES]; /* the last day that was notified, as committed */
    int64_t cron_begin_s;
    struct calendar calendars[SIM_CALENDARS];
    struct calendar_days calendar_days[3];
    bool cron_seen, cron_removed; /* the entry exists; it was removed */
    struct wall cron_first;       /* its first time */
    int64_t cron_decided;         /* number of its decided times */
    struct sim_alerts cron_alerts;
    struct map cron_times, cron_jobs; /* times -> anything, or the job */
    /* the entry that runs after it: its times, its jobs; ends of the runs before it, + 1 */
    struct map cron_after_times, cron_after_jobs, cron_ends;
    bool cron_after_seen, cron_after_removed;
    struct wall cron_follows_from;
    /* numbers of times: over for it; decided; due or waiting */
    int64_t cron_settled, cron_after_decided, cron_after_open;
    bool pruned[SIM_JOBS_MAX]; /* deleted by the retention, by id - 1 */
    struct budget_options budget;
    int n_paid;        /* jobs submitted to be paid from it */
    int64_t paid_uusd; /* their committed cost */
    /* hours of the budget that began; thresholds that were notified */
    struct map paid_hours, paid_notified;
    struct wall paid_hour, used_up_at;
    struct sim_transfer *transfers; /* all transfers */
    size_t n_transfers;
    struct sim_input *inputs;
    size_t n_inputs;
    /* that of the start, and the one that it is changed to and back */
    struct queue_policy policies[2];
    struct policy_team teams[2][3];
    struct policy_user members[2][3][2];
    int policy; /* index of the one in force */
    struct model_settings settings;
    struct settings_tables tables;    /* of the start; given again as other ones */
    struct budget_options budgets[2]; /* equal ones, in turns */
    struct policy_qos qos[2];
    uint64_t preempted;    /* bit set of the preempted QOS */
    int32_t base_up;       /* nodes of the pool that were up after the last commit */
    int64_t base_since_ms; /* until then no machine of the base load was missing */
    int64_t owed_since_ms; /* until then no job within its quota was kept waiting */
    /* counters */
    int32_t no_progress_max; /* see model_options */
    int64_t events, crashes, reclaims, kills, launches, lost_messages, saves, prefetches, cleanings,
        drilled, evictions;
    char failure[512]; /* the first broken promise */
    uint64_t digest;   /* see digest.h */
};

int64_t world_now(const struct world *w);
struct stamp world_stamp(const struct world *w);
bool world_chance(struct world *w, double p);
int64_t world_between(struct world *w, int64_t min, int64_t max);
void world_fail(struct world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
struct sim_job *world_job(struct world *w, int64_t id);

/* ---- check.c ---- */
bool sim_is_drain(const struct history_row *h); /* by an operator, or by belay */
bool check_is_known(const struct world *w, const struct attempt_row *r); /* committed before */
void check_committed(struct world *w, const struct db_batch *b);
bool wants_exclusive(const struct world *w, const struct job *j); /* true: the job is exclusive */
void check_model(struct world *w);
void check_launch(struct world *w, const char *token);
void check_alternatives(struct world *w, const struct cloud_launch *l);
void check_terminate(struct world *w, const char *token);
void check_desired(struct world *w, int64_t job, int64_t attempt, int64_t node);
void check_end(struct world *w);

/* ---- check_deadlines.c ---- */
void check_deadlines(struct world *w); /* part of check_model() */

/* ---- prunes.c ---- */
/* Deletes what is old from the database of a belayd that is down, and checks what is left. */
void prunes_run(struct world *w);
bool prunes_deleted(const struct world *w, int64_t job);

struct sim_result {
    char failure[512]; /* "" if every promise was kept */
    int64_t events, crashes, reclaims, kills, launches, saves, prefetches, jobs, drilled, evictions;
    int64_t virtual_ms;
    uint64_t digest; /* of what was committed, see digest.h */
};

/* Runs one world. The database is emptied first. */
void sim_run(struct db *db, uint64_t seed, struct sim_result *ret_result);

#endif
