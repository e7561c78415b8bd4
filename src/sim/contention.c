#include "sim/engine.h"

uint32_t sim_kernel_speed(const struct sim_engine *e, uint32_t r, uint32_t op)
{
    const struct sim_job *job = e->job;
    uint32_t speed = SIM_SPEED, cls = job->rank[r].cls ? job->rank[r].cls[op] : 0;

    if (!job->contention || job->slow == NULL)
        return SIM_SPEED;
    for (uint32_t k = 0; k < job->n_kind; k++)
        if (e->rank[r].running[k] > 0 && job->slow[cls * job->n_kind + k] < speed)
            speed = job->slow[cls * job->n_kind + k];
    return speed;
}

void sim_under_way(struct sim_engine *e, uint32_t s, bool starts)
{
    struct sim_slot *x = &e->slot[s];
    struct sim_state *r = &e->rank[x->rank];
    uint32_t *n = &r->running[call_of(e, s)->kind];

    if (starts) {
        x->prev_way = NONE;
        x->next_way = r->first_way;
        r->first_way = s;
    } else if (x->prev_way != NONE) {
        e->slot[x->prev_way].next_way = x->next_way;
    } else {
        r->first_way = x->next_way;
    }
    if (x->next_way != NONE)
        e->slot[x->next_way].prev_way = starts ? s : x->prev_way;
    *n += starts ? 1 : -1u;
    if (*n == starts && r->computes)
        sim_change_speed(&e->ev, x->rank, sim_kernel_speed(e, x->rank, op_at(e, x->rank)));
}

static uint32_t leader_of(const struct sim_engine *e, uint32_t s)
{
    uint32_t n;

    return *members_of(e, &s, &n);
}

uint32_t sim_transfer_speed(const struct sim_engine *e, uint32_t leader)
{
    const struct sim_slot *x = &e->slot[leader];
    const uint32_t *slow = e->job->contention ? e->job->slow_comm : NULL;
    uint64_t speed = SIM_SPEED / x->share;

    if (slow != NULL && x->computing > 0)
        speed = speed * slow[call_of(e, leader)->kind] / SIM_SPEED;
    return speed > 0 ? (uint32_t)speed : 1;
}

static void share(struct sim_engine *e, uint32_t leader)
{
    sim_change_speed(&e->ev, e->job->n_rank + leader, sim_transfer_speed(e, leader));
}

void sim_computes(struct sim_engine *e, uint32_t r, bool starts)
{
    e->rank[r].computes = starts;
    for (uint32_t k = e->rank[r].first_way; k != NONE; k = e->slot[k].next_way) {
        uint32_t lead = leader_of(e, k), *n = &e->slot[lead].computing;
        *n += starts ? 1 : -1u;
        if (*n == starts)
            share(e, lead);
    }
}

void sim_link_changes(struct sim_engine *e, uint32_t s, uint32_t link, bool starts)
{
    struct sim_slot *x = &e->slot[s];
    struct sim_state *r = &e->rank[x->rank];
    uint32_t was = r->moving[link], is = starts ? was + 1 : was - 1;

    if (!starts) {
        if (x->prev != NONE)
            e->slot[x->prev].next = x->next;
        else
            r->first[link] = x->next;
        if (x->next != NONE)
            e->slot[x->next].prev = x->prev;
    }
    r->moving[link] = is;
    for (uint32_t k = r->first[link]; k != NONE; k = e->slot[k].next) {
        uint32_t lead = leader_of(e, k), n;
        struct sim_slot *l = &e->slot[lead];
        if (is > l->share) {
            l->share = is;
        } else if (was == l->share) {
            const uint32_t *m = members_of(e, &lead, &n);
            l->share = 1;
            for (uint32_t i = 0; i < n; i++)
                if (e->rank[e->slot[m[i]].rank].moving[link] > l->share)
                    l->share = e->rank[e->slot[m[i]].rank].moving[link];
        }
        share(e, lead);
    }
    if (starts) {
        x->prev = NONE;
        x->next = r->first[link];
        if (x->next != NONE)
            e->slot[x->next].prev = s;
        r->first[link] = s;
    }
    x->moves = starts;
}

void sim_start_bytes(struct sim_engine *e, uint32_t leader)
{
    uint32_t n, link = call_of(e, leader)->link, most = 1;
    const uint32_t *m = members_of(e, &leader, &n);

    sim_begin(&e->ev, e->job->n_rank + leader, e->slot[leader].bytes_ps, SIM_SPEED);
    for (uint32_t i = 0; i < n; i++) {
        sim_link_changes(e, m[i], link, true);
        if (e->rank[e->slot[m[i]].rank].moving[link] > most)
            most = e->rank[e->slot[m[i]].rank].moving[link];
    }
    e->slot[leader].share = most;
    share(e, leader);
}
