/* SPDX-License-Identifier: Apache-2.0
 *
 * The dynamic programme of deadline/table.h.
 *
 * Every step of time reduces work or slack by one step, whatever the action. So states with the
 * same time left, work + slack, depend only on those with one step less. They are computed
 * together, one class at a time, in loops over work that the compiler can vectorise. From state
 * (work w, slack s), less work is (w - 1, s) and less slack (w, s - 1).
 */
#include "scheduler/core/deadline/table.h"

#include "base/mem.h"
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define K DEADLINE_CLASSES
#define STAGES (DEADLINE_RESTART_STEPS_MAX + 1)
#define MOVE_STAGES (2 * DEADLINE_RESTART_STEPS_MAX + 1)

/* Values by class and work, for one time left. Rows of `width` floats. */
struct values {
    float *idle, *sure, *spot; /* V */
    /* remaining whole steps of a restart, and then the last one */
    float *boot[STAGES], *sure_boot[STAGES];
    float *move[MOVE_STAGES]; /* the same for a move: last its switch, before that the boot */
};

/* Values at one step less for a job in a start: not lost, or released. */
struct ahead {
    float *boot[STAGES], *sure_boot[STAGES], *move[MOVE_STAGES];
};

/* For one class: expectation of the values at one step less, by work. */
struct expected {
    float *idle, *sure;
    float *spot;   /* on spot: kept, or lost or moved */
    float *beside; /* on on-demand beside a spot machine that boots */
};

/* A time in steps: whole ones, and a remainder below 1. */
struct steps {
    size_t whole;
    float part;
};

/* Nearly all of the work is in loops over a row. They are vectorised with every compiler and
 * optimisation level, and sanitizers do not check them: that took four times as long. They work on
 * whole blocks, and a row has room for one after its last element. */
#define BLOCK 16
#define VECTORISED __attribute__((no_sanitize("address", "undefined")))
typedef float four_floats __attribute__((vector_size(16), aligned(4), may_alias));
typedef int32_t four_masks __attribute__((vector_size(16)));

/* A part of an expected value. */
struct term {
    const float *from;
    float chance;
};

struct deadline_maker {
    const struct deadline_chain *c;
    struct deadline_table *t;
    size_t width;
    struct steps restart, boot, switching;
    size_t moving; /* whole steps of boot and switch */
    float *memory;
    struct values now, before;
    struct ahead ahead;
    struct expected expected;
    float *costs[DEADLINE_ACTS]; /* of one class, by work; only those to stay are rows of its own */
    struct term terms[2 * K];
    size_t time; /* computed up to there */
};

static float *row(const struct deadline_maker *m, float *values, unsigned k)
{
    return values + (size_t)k * m->width;
}

static float *carve(float **rest, size_t n)
{
    float *own = *rest;

    *rest += n;
    return own;
}

static void carve_values(struct deadline_maker *m, struct values *v, float **rest)
{
    const size_t n = m->width * K;

    v->idle = carve(rest, n);
    v->sure = carve(rest, n);
    v->spot = carve(rest, n);
    for (size_t j = 0; j <= m->restart.whole; j++) {
        v->boot[j] = carve(rest, n);
        v->sure_boot[j] = carve(rest, n);
    }
    for (size_t j = 0; j <= m->moving; j++)
        v->move[j] = carve(rest, n);
}

static void allocate(struct deadline_maker *m)
{
    const size_t n = m->width * K;
    const size_t starts = 2 * m->restart.whole + m->moving;
    float *rest = m->memory =
        mem_array(2 * (3 + 3 + starts) * n + starts * n + (2 + 4) * m->width, sizeof(float));

    carve_values(m, &m->now, &rest);
    carve_values(m, &m->before, &rest);
    for (size_t j = 0; j < m->restart.whole; j++) {
        m->ahead.boot[j] = carve(&rest, n);
        m->ahead.sure_boot[j] = carve(&rest, n);
    }
    for (size_t j = 0; j < m->moving; j++)
        m->ahead.move[j] = carve(&rest, n);
    m->costs[DEADLINE_ON_DEMAND_STAY] = carve(&rest, m->width);
    m->costs[DEADLINE_SPOT_STAY] = carve(&rest, m->width);
    m->expected.idle = carve(&rest, m->width);
    m->expected.sure = carve(&rest, m->width);
    m->expected.spot = carve(&rest, m->width);
    m->expected.beside = carve(&rest, m->width);
}

/* Whether the remaining whole steps of a move are those of its switch, on-demand being left. */
static bool is_switching(const struct deadline_maker *m, size_t stage)
{
    return stage < m->switching.whole || (stage == 0 && m->boot.whole + m->boot.part <= 0);
}

/* Slack -1 at this work, as seen from slack 0: on-demand for good. Actions that lead there are
 * never taken; only their cost is read. */
static void fill_edge(struct deadline_maker *m, size_t work)
{
    const float restart = (float)m->restart.whole + m->restart.part, w = (float)work;

    for (unsigned k = 0; k < K; k++) {
        row(m, m->before.idle, k)[work] = row(m, m->before.spot, k)[work] = w + restart;
        row(m, m->before.sure, k)[work] = w;
        for (size_t j = 0; j <= m->restart.whole; j++) {
            row(m, m->before.boot[j], k)[work] = w + restart;
            row(m, m->before.sure_boot[j], k)[work] = w + (float)j + m->restart.part;
        }
        for (size_t j = 0; j <= m->moving; j++)
            row(m, m->before.move[j], k)[work] = w + (is_switching(m, j) ? restart : 0);
    }
}

VECTORISED static inline four_floats load(const float *from)
{
    return *(const four_floats *)from;
}

VECTORISED static inline void store(float *to, four_floats v)
{
    *(four_floats *)to = v;
}

/* to = the lesser of both; `to` may be one of them. */
VECTORISED static void take_least(
    const float *a, const float *b, size_t low, size_t high, float *to)
{
    size_t w = low;

    for (; w + 4 <= high + 1; w += 4) {
        const four_floats x = load(a + w), y = load(b + w);
        const four_masks less = x < y;
        store(to + w, (four_floats)((less & (four_masks)x) | (~less & (four_masks)y)));
    }
    for (; w <= high; w++)
        to[w] = a[w] < b[w] ? a[w] : b[w];
}

static void copy(const float *from, size_t low, size_t high, float *to)
{
    memcpy(to + low, from + low, (high + 1 - low) * sizeof *to);
}

/* In a move on-demand takes over until the switch has begun. */
static void compute_ahead_of_moves(struct deadline_maker *m, size_t low, size_t high)
{
    for (unsigned k = 0; k < K; k++) {
        const bool up = deadline_class_is_up((uint16_t)k);
        for (size_t j = 0; j < m->moving; j++) {
            const float *move = row(m, m->before.move[j], k),
                        *lost = row(m, is_switching(m, j) ? m->before.idle : m->before.sure, k);
            float *next = row(m, m->ahead.move[j], k);
            if (up)
                take_least(move, lost, low, high, next);
            else
                copy(lost, low, high, next);
        }
    }
}

static void compute_ahead(struct deadline_maker *m, size_t low, size_t high)
{
    for (unsigned k = 0; k < K; k++) {
        const bool up = deadline_class_is_up((uint16_t)k);
        const float *idle = row(m, m->before.idle, k);
        for (size_t j = 0; j < m->restart.whole; j++) {
            const float *boot = row(m, m->before.boot[j], k),
                        *sure_boot = row(m, m->before.sure_boot[j], k);
            float *next = row(m, m->ahead.boot[j], k),
                  *next_sure = row(m, m->ahead.sure_boot[j], k);
            if (up)
                take_least(boot, idle, low, high, next);
            else
                copy(idle, low, high, next);
            take_least(sure_boot, idle, low, high, next_sure);
        }
    }
}

/* out = base + the sum of n terms, added in their order. */
VECTORISED static void sum_terms(
    const struct term *terms, size_t n, float base, size_t low, size_t high, float *out)
{
    for (size_t w = low; w <= high; w += BLOCK) {
        const four_floats none = {0};
        four_floats a = none + base, b = a, c = a, d = a;
        for (const struct term *t = terms; t < terms + n; t++) {
            const float chance = t->chance, *from = t->from + w;
            a += chance * load(from);
            b += chance * load(from + 4);
            c += chance * load(from + 8);
            d += chance * load(from + 12);
        }
        store(out + w, a);
        store(out + w + 4, b);
        store(out + w + 8, c);
        store(out + w + 12, d);
    }
}

/* out = base + E[kept, or lost if the favourite moved]; one class. */
static void expect(struct deadline_maker *m, unsigned k, float base, float *kept, float *lost,
    size_t low, size_t high, float *out)
{
    const size_t first = m->c->first[k], n = m->c->first[k + 1] - first;

    for (size_t i = 0; i < n; i++) {
        const struct deadline_step *s = &m->c->steps[first + i];
        m->terms[i] = (struct term){row(m, s->moved ? lost : kept, s->to), s->chance};
    }
    sum_terms(m->terms, n, base, low, high, out);
}

/* On spot: kept, or lost or moved. */
static void expect_on_spot(struct deadline_maker *m, unsigned k, size_t low, size_t high)
{
    const size_t first = m->c->first[k], n = m->c->first[k + 1] - first;

    for (size_t i = 0; i < n; i++) {
        const struct deadline_step *s = &m->c->steps[first + i];
        const bool kept = !s->moved && deadline_class_is_up(s->to);
        m->terms[i] =
            (struct term){row(m, kept ? m->before.spot : m->before.idle, s->to), s->chance};
    }
    sum_terms(m->terms, n, 0, low, high, m->expected.spot);
}

/* Running for a step reduces the work ... */
VECTORISED static void run_through(
    const float *e, float price, size_t low, size_t high, float *stay)
{
    for (size_t w = low; w <= high; w += 4)
        store(stay + w, price + load(e + w - 1));
}

/* ... and the last step of a start partly does not. */
VECTORISED static void start_through(
    const float *e, float price, float part, size_t low, size_t high, float *start)
{
    const float rest = 1 - part;

    for (size_t w = low; w <= high; w += 4)
        store(start + w, price + rest * load(e + w - 1) + part * load(e + w));
}

/* Of a move to spot; the class is up. Its last step is partly the rest of the boot, beside
 * on-demand, partly the rest of the switch. */
static void find_costs_of_moves(struct deadline_maker *m, unsigned k, size_t low, size_t high)
{
    const float price = (float)m->t->price;
    float *beside = m->expected.beside;
    size_t j = 1;

    start_through(m->expected.spot, price + m->boot.part, m->switching.part, low, high,
        row(m, m->now.move[0], k));
    for (; j <= m->switching.whole; j++)
        expect(m, k, price, m->ahead.move[j - 1], m->before.idle, low, high,
            row(m, m->now.move[j], k));
    for (; j <= m->moving; j++) {
        float *out = row(m, m->now.move[j], k);
        expect(m, k, 1 + price, m->ahead.move[j - 1], m->before.sure, low - 1, high, beside);
        copy(beside - 1, low, high, out);
    }
    m->costs[DEADLINE_SPOT_MOVE] = row(m, m->now.move[m->moving], k);
}

static void find_costs(struct deadline_maker *m, unsigned k, size_t low, size_t high)
{
    const struct ahead *a = &m->ahead;
    const struct values *b = &m->before, *n = &m->now;
    const float price = (float)m->t->price;

    expect(m, k, 0, b->idle, b->idle, low - 1, high, m->expected.idle);
    expect(m, k, 0, b->sure, b->sure, low - 1, high, m->expected.sure);
    m->costs[DEADLINE_WAIT] = m->expected.idle;
    run_through(m->expected.sure, 1, low, high, m->costs[DEADLINE_ON_DEMAND_STAY]);
    start_through(m->expected.sure, 1, m->restart.part, low, high, row(m, n->sure_boot[0], k));
    for (size_t j = 1; j <= m->restart.whole; j++)
        expect(m, k, 1, a->sure_boot[j - 1], a->sure_boot[j - 1], low, high,
            row(m, n->sure_boot[j], k));
    m->costs[DEADLINE_ON_DEMAND_START] = row(m, n->sure_boot[m->restart.whole], k);
    if (!deadline_class_is_up((uint16_t)k))
        return;
    expect_on_spot(m, k, low - 1, high);
    run_through(m->expected.spot, price, low, high, m->costs[DEADLINE_SPOT_STAY]);
    start_through(m->expected.spot, price, m->restart.part, low, high, row(m, n->boot[0], k));
    for (size_t j = 1; j <= m->restart.whole; j++)
        expect(m, k, price, a->boot[j - 1], b->idle, low, high, row(m, n->boot[j], k));
    m->costs[DEADLINE_SPOT_START] = row(m, n->boot[m->restart.whole], k);
    find_costs_of_moves(m, k, low, high);
}

/* The least of `to` and of an action that needs this much slack. */
static void admit(
    const float *action, struct steps slack, size_t time, size_t low, size_t high, float *to)
{
    const size_t need = slack.whole + (slack.part > 0);

    if (time >= low + need)
        take_least(to, action, low, time - need < high ? time - need : high, to);
}

/* The minimum in each mode. */
static void settle(struct deadline_maker *m, unsigned k, size_t time, size_t low, size_t high)
{
    float *idle = row(m, m->now.idle, k), *sure = row(m, m->now.sure, k),
          *spot = row(m, m->now.spot, k);
    float *const *costs = m->costs;
    const float restart = (float)m->restart.whole + m->restart.part;
    const bool up = deadline_class_is_up((uint16_t)k);

    take_least(costs[DEADLINE_WAIT], costs[DEADLINE_ON_DEMAND_START], low, high, idle);
    take_least(costs[DEADLINE_WAIT], costs[DEADLINE_ON_DEMAND_STAY], low, high, sure);
    if (up) {
        admit(costs[DEADLINE_SPOT_MOVE], m->switching, time, low, high, sure);
        admit(costs[DEADLINE_SPOT_START], m->restart, time, low, high, idle);
        take_least(idle, costs[DEADLINE_SPOT_STAY], low, high, spot);
    } else {
        copy(idle, low, high, spot);
    }
    if (high < time)
        return;
    /* Without slack: on-demand for good, unless spot is still up. */
    idle[high] = (float)high + restart;
    sure[high] = (float)high;
    spot[high] = up ? costs[DEADLINE_SPOT_STAY][high] : idle[high];
}

static void keep(const struct deadline_maker *m, unsigned k, size_t time, size_t low, size_t high)
{
    struct deadline_table *t = m->t;
    const bool up = deadline_class_is_up((uint16_t)k);

    for (size_t wi = t->work_at[low]; wi < t->n_work && t->work[wi] <= high; wi++) {
        const size_t w = t->work[wi], si = w < low ? 0 : t->slack_at[time - w];
        float *out = t->cost + ((wi * t->n_slack + si) * K + k) * DEADLINE_ACTS;
        if (w < low || t->slack[si] != time - w)
            continue;
        for (size_t i = 0; i < DEADLINE_ACTS; i++)
            out[i] = up || i < DEADLINE_SPOT_START ? m->costs[i][w] : 0;
    }
}

static void make_time(struct deadline_maker *m, size_t time)
{
    const size_t low = time > m->t->slack_steps ? time - m->t->slack_steps : 1;
    const size_t high = time < m->t->work_steps ? time : m->t->work_steps;
    struct values swap = m->now;

    assert(low >= 1 && high + BLOCK < m->width);
    if (time <= m->t->work_steps)
        fill_edge(m, time);
    compute_ahead(m, low, high);
    compute_ahead_of_moves(m, low - 1, high);
    for (unsigned k = 0; k < K; k++) {
        find_costs(m, k, low, high);
        settle(m, k, time, low, high);
        keep(m, k, time, low, high);
    }
    m->now = m->before;
    m->before = swap;
}

/* 0, 1, 2, ... and then in steps of about an eighth of the value, or of most; the last is n. */
static size_t choose_points(size_t n, size_t most, uint16_t *points, uint16_t *at)
{
    size_t count = 0;

    for (size_t i = 0; i <= n;) {
        points[count++] = (uint16_t)i;
        if (i == n)
            break;
        size_t step = i < 8 ? 1 : i / 8;
        step = step > most ? most : step;
        i = i + step > n ? n : i + step;
    }
    for (size_t i = 0, p = 0; i <= n; i++) {
        while (p + 1 < count && points[p + 1] <= i)
            p++;
        at[i] = (uint16_t)p;
    }
    return count;
}

static struct steps in_steps(double time)
{
    const size_t whole = (size_t)time;

    assert(time >= 0 && time <= DEADLINE_RESTART_STEPS_MAX);
    return (struct steps){whole, (float)(time - (double)whole)};
}

struct deadline_maker *deadline_maker_create(struct deadline_table *t,
    const struct deadline_chain *c, size_t work, size_t slack, const struct deadline_starts *starts,
    double price)
{
    struct deadline_maker *m = mem_alloc(sizeof *m);

    assert(work >= 1 && work <= DEADLINE_WORK_STEPS_MAX && slack >= 1 &&
           slack <= DEADLINE_SLACK_STEPS_MAX);
    assert(price > 0);
    *m = (struct deadline_maker){.c = c,
        .t = t,
        .width = work + 1 + BLOCK,
        .restart = in_steps(starts->restart),
        .boot = in_steps(starts->boot),
        .switching = in_steps(starts->switching)};
    m->moving = m->boot.whole + m->switching.whole;
    *t = (struct deadline_table){
        .starts = *starts, .price = price, .work_steps = work, .slack_steps = slack};
    for (unsigned k = 0; k < K; k++)
        t->life[k] = (float)(c->life_ms[k] / DEADLINE_STEP_MS);
    t->work = mem_array(work + 1, sizeof *t->work);
    t->work_at = mem_array(work + 1, sizeof *t->work_at);
    t->slack = mem_array(slack + 1, sizeof *t->slack);
    t->slack_at = mem_array(slack + 1, sizeof *t->slack_at);
    t->n_work = choose_points(work, 12, t->work, t->work_at);
    t->n_slack = choose_points(slack, 12, t->slack, t->slack_at);
    t->cost = mem_array(t->n_work * t->n_slack * K * DEADLINE_ACTS, sizeof *t->cost);
    allocate(m); /* zeroed: no work left costs nothing */
    return m;
}

bool deadline_maker_go_on(struct deadline_maker *m, size_t steps)
{
    const size_t all = m->t->work_steps + m->t->slack_steps;

    for (; steps > 0 && m->time < all; steps--)
        make_time(m, ++m->time);
    return m->time == all;
}

void deadline_maker_destroy(struct deadline_maker *m)
{
    if (m)
        free(m->memory);
    free(m);
}

void deadline_table_init(struct deadline_table *t, const struct deadline_chain *c, size_t work,
    size_t slack, const struct deadline_starts *starts, double price)
{
    struct deadline_maker *m = deadline_maker_create(t, c, work, slack, starts, price);

    deadline_maker_go_on(m, work + slack);
    deadline_maker_destroy(m);
}

void deadline_table_deinit(struct deadline_table *t)
{
    free(t->work);
    free(t->work_at);
    free(t->slack);
    free(t->slack_at);
    free(t->cost);
    *t = (struct deadline_table){0};
}

/* Position of x between two points. */
static double between(
    const uint16_t *points, const uint16_t *at, size_t n, size_t steps, double x, size_t *ret_low)
{
    size_t low;

    x = x < 0 ? 0 : x > (double)steps ? (double)steps : x;
    low = at[(size_t)x];
    if (low + 1 == n)
        low--;
    *ret_low = low;
    return (x - points[low]) / (points[low + 1] - points[low]);
}

void deadline_table_costs(const struct deadline_table *t, double work, double slack, uint16_t class,
    double ret_costs[DEADLINE_ACTS])
{
    size_t wi, si;
    const double u =
        between(t->work, t->work_at, t->n_work, t->work_steps, work < 1 ? 1 : work, &wi);
    const double v = between(t->slack, t->slack_at, t->n_slack, t->slack_steps, slack, &si);
    const double beyond = work > (double)t->work_steps ? work - (double)t->work_steps : 0;
    const float *a = t->cost + ((wi * t->n_slack + si) * K + class) * DEADLINE_ACTS;
    const float *b = a + (size_t)K * DEADLINE_ACTS, *c = a + t->n_slack * K * DEADLINE_ACTS,
                *d = c + (size_t)K * DEADLINE_ACTS;

    assert(class < K);
    for (unsigned i = 0; i < DEADLINE_ACTS; i++)
        ret_costs[i] =
            (1 - u) * ((1 - v) * a[i] + v * b[i]) + u * ((1 - v) * c[i] + v * d[i]) + beyond;
}
