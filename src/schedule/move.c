#include "schedule/move.h"

/* Collectives move to the front, waits to the back. */
static struct exposed ask(const struct mover *m)
{
    return m->towards_front ? expose_coll(m->it, m->op) : expose_wait(m->it, m->op);
}

void move_refresh(struct mover *m)
{
    if (m->exact)
        return;
    struct exposed e = ask(m);
    m->comp = e.comp;
    m->cut = e.cut;
    m->exact = true;
    m->unknown = false;
}

/* The change of all exposed times together when passing compute of runtime t. */
static double exposed_delta(const struct mover *m, double t)
{
    double d = move_positive(m->comm - m->comp - t) - move_positive(m->comm - m->comp);

    for (uint32_t i = 0; i < m->n_along; i++)
        d += move_positive(m->along[i].comm - m->along[i].comp + t) -
             move_positive(m->along[i].comm - m->along[i].comp);
    return d;
}

bool move_exposes_along(struct mover *m, double t)
{
    if (m->unknown)
        move_refresh(m);
    double d = exposed_delta(m, t), scale = fabs(m->comm) + fabs(m->comp) + t;
    for (uint32_t i = 0; i < m->n_along; i++)
        scale += fabs(m->along[i].comm) + fabs(m->along[i].comp);
    if (!m->exact && m->comm - m->comp > -1e-9 * scale && fabs(d) <= 1e-9 * scale) {
        move_refresh(m);
        d = exposed_delta(m, t);
    }
    if (d > 0)
        return true;
    for (uint32_t i = 0; i < m->n_along; i++)
        m->along[i].comp -= t;
    return false;
}

void move_begin(struct mover *m, bool towards_front, uint32_t op)
{
    assert(towards_front ? problem_is_coll(m->it->p, op) : problem_is_wait(m->it->p, op));
    m->op = op;
    m->towards_front = towards_front;
    struct exposed e = ask(m);
    m->comm = e.comm;
    m->comp = e.comp;
    m->exact = true;
    m->unknown = false;
    m->cut = e.cut;
    m->group_runtime = 0;
    m->n_along = 0;
    assert(m->it->n_stat < m->it->p->n_op);
    m->st = &m->it->stat[m->it->n_stat++];
    *m->st = (struct schedule_stat){
        .op = op, .initial_exposed = e.comm - e.comp, .limit_op = PROBLEM_NONE};
    iter_group(m->it, op, m->towards_front);
}

void move_end(struct mover *m)
{
    iter_settle(m->it, m->towards_front);
    struct exposed e = ask(m);
    m->st->comm_time = e.comm;
    m->st->comp_time = e.comp;
    m->st->final_exposed = e.comm - e.comp;
}
