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

void sim_kind_runs(struct sim_engine *e, uint32_t r, uint32_t kind, bool starts)
{
    uint32_t *n = &e->rank[r].running[kind];

    *n += starts ? 1 : -1u;
    if (*n == starts && e->ev.running.place[r] != HEAP_OUT && e->rank[r].launched)
        sim_change_speed(&e->ev, r, sim_kernel_speed(e, r, op_at(e, r)));
}

static uint32_t leader_of(const struct sim_engine *e, uint32_t s)
{
    uint32_t n;

    return *members_of(e, &s, &n);
}

static void share(struct sim_engine *e, uint32_t leader)
{
    struct sim_slot *x = &e->slot[leader];

    sim_change_speed(&e->ev, e->job->n_rank + leader,
                     x->share > SIM_SPEED ? 1 : SIM_SPEED / x->share);
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
