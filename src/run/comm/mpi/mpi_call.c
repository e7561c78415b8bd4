/* Requests of the MPI transport: queues, jobs under way, sends and receives. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run/comm/mpi/mpi_comm.h"

bool mpi_ok(struct mpi *m, int code, const char *what)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int n = 0;
    if (code == MPI_SUCCESS)
        return true;
    MPI_Error_string(code, text, &n);
    return comm_fail(&m->c, "rank %d: %s: %s", m->c.rank, what, text);
}

/* ---- Requests ---- */

static struct mpi_req *req_take(struct mpi *m)
{
    if (m->n_spare > 0)
        return m->spare[--m->n_spare];
    size_t n = m->n_req + 1;
    struct mpi_req **more = realloc(m->req, n * sizeof(*more));
    if (more != NULL)
        m->req = more;
    struct mpi_req **spare = realloc(m->spare, n * sizeof(*spare));
    if (spare != NULL)
        m->spare = spare;
    struct mpi_req *r = more != NULL && spare != NULL ? calloc(1, sizeof(*r)) : NULL;
    if (r == NULL)
        return NULL;
    r->id = m->n_req;
    m->req[m->n_req++] = r;
    return r;
}

struct mpi_req *mpi_req_make(struct mpi *m, const struct comm_call *call)
{
    struct mpi_req *r = req_take(m);
    if (r == NULL || !call_keep(&r->keep, call, m->c.group[call->group].n)) {
        comm_fail(&m->c, "out of memory");
        return NULL;
    }
    r->state = 1;
    r->chan = NULL;
    r->next = NULL;
    r->at = r->flying = 0;
    r->from = 0;
    r->greeted = r->agreed = r->all_made = false;
    m->n_busy++;
    return r;
}

void mpi_req_free(struct mpi *m, struct mpi_req *r)
{
    r->state = 0;
    m->spare[m->n_spare++] = r;
}

void mpi_enqueue(struct mpi *m, struct mpi_chan *ch, struct mpi_req *r)
{
    (void)m;
    r->chan = ch;
    if (ch->tail != NULL)
        ch->tail->next = r;
    else
        ch->head = r;
    ch->tail = r;
}

static void finish(struct mpi *m, struct mpi_req *r)
{
    r->state = 2;
    m->n_busy--;
}

/* ---- Jobs ---- */

/* Jobs of a kind are made in the order of calls and parts, so that all members give them the same
 * tags, whenever they make them. */
static int job_tag(struct mpi_chan *ch, bool heads)
{
    uint32_t half = MPI_TAGS / 2, at = heads ? half + ch->greeted++ % half : ch->counter++ % half;
    return (int)((uint32_t)(ch->id + 1) * MPI_TAGS + at);
}

static struct mpi_job *job_make(struct mpi *m, struct mpi_chan *ch, struct mpi_req *r, bool heads)
{
    struct mpi_job *j = m->spare_job;
    if (j != NULL)
        m->spare_job = j->next;
    else
        j = calloc(1, sizeof(*j));
    if (j == NULL) {
        comm_fail(&m->c, "out of memory");
        return NULL;
    }
    j->r = r;
    j->part = r->at;
    j->phase = 0;
    j->heads = heads;
    j->n_q = 0;
    j->lo = j->hi = 0;
    j->next = NULL;
    j->tag = job_tag(ch, heads);
    if (ch->fly_tail != NULL)
        ch->fly_tail->next = j;
    else
        ch->fly_head = j;
    ch->fly_tail = j;
    *(heads ? &ch->greeting : &ch->flying) += 1;
    r->flying++;
    return j;
}

/* The next job with data; NULL: none can be made now, or it failed (*failed). */
static struct mpi_job *next_job(struct mpi *m, struct mpi_chan *ch, struct mpi_req *r, bool *failed)
{
    struct mpi_job *j;
    int64_t step, n;
    if (r->all_made || !r->greeted || !r->agreed)
        return NULL;
    if (r->keep.call.kind == COMM_BARRIER) {
        r->all_made = true;
        return NULL;
    }
    n = mpi_job_range(r, &step);
    if (r->from >= n) {
        r->from = 0;
        r->greeted = false;
        r->all_made = ++r->at >= r->keep.call.n_part;
        return NULL;
    }
    j = job_make(m, ch, r, false);
    *failed = j == NULL;
    if (j == NULL)
        return NULL;
    j->lo = r->from;
    j->hi = r->from = n - r->from < step ? n : r->from + step;
    return j;
}

static void job_free(struct mpi *m, struct mpi_chan *ch, struct mpi_job **at)
{
    struct mpi_job *j = *at, *last = NULL;
    *at = j->next;
    for (struct mpi_job *k = ch->fly_head; k != NULL; k = k->next)
        last = k;
    ch->fly_tail = last;
    *(j->heads ? &ch->greeting : &ch->flying) -= 1;
    j->r->flying--;
    j->next = m->spare_job;
    m->spare_job = j;
}

/* Moves one job on as far as it goes; *over: it is done. */
static bool job_move(struct mpi *m, struct mpi_chan *ch, struct mpi_job *j, bool *over)
{
    *over = false;
    for (;;) {
        int done = 1;
        if (j->n_q > 0 &&
            !mpi_ok(m, MPI_Testall(j->n_q, j->q, &done, MPI_STATUSES_IGNORE), "a message"))
            return false;
        if (!done)
            return true;
        j->n_q = 0;
        if (!mpi_job_next(m, ch, j, over))
            return false;
        if (*over)
            return true;
        j->phase++;
    }
}

/* Heads of the calls that have none yet; of a later part only after those of the ones before. */
static bool greet(struct mpi *m, struct mpi_chan *ch)
{
    for (struct mpi_req *r = ch->head; r != NULL; r = r->next) {
        if (r->all_made)
            continue;
        if (!r->greeted) {
            if (ch->greeting == MPI_GREETINGS)
                break;
            struct mpi_job *j = job_make(m, ch, r, true);
            r->greeted = true;
            r->agreed = false;
            if (j == NULL || !mpi_job_begin(m, ch, j))
                return false;
        }
        if (r->at + 1 < r->keep.call.n_part)
            break;
    }
    return true;
}

static bool fill_window(struct mpi *m, struct mpi_chan *ch)
{
    bool failed = false;
    for (struct mpi_req *r = ch->head; r != NULL && ch->flying < MPI_WINDOW; r = r->next) {
        struct mpi_job *j;
        while (ch->flying < MPI_WINDOW && (j = next_job(m, ch, r, &failed)) != NULL)
            if (!mpi_job_begin(m, ch, j))
                return false;
        if (failed)
            return false;
        if (!r->all_made)
            break;
    }
    return greet(m, ch);
}

static bool chan_move(struct mpi *m, struct mpi_chan *ch)
{
    bool again = true;
    while (again) {
        again = false;
        if (!fill_window(m, ch))
            return false;
        for (struct mpi_job **at = &ch->fly_head; *at != NULL;) {
            bool over;
            if (!job_move(m, ch, *at, &over))
                return false;
            again |= over;
            if (over)
                job_free(m, ch, at);
            else
                at = &(*at)->next;
        }
        /* Requests are done in their order, like the jobs that they begin with. */
        while (ch->head != NULL && ch->head->all_made && ch->head->flying == 0) {
            finish(m, ch->head);
            ch->head = ch->head->next;
            again = true;
        }
        if (ch->head == NULL)
            ch->tail = NULL;
    }
    return true;
}

/* ---- Sends and receives ---- */

bool mpi_start_p2p(struct mpi *m, struct mpi_req *r)
{
    const struct comm_group *g = &m->c.group[r->keep.call.group];
    uint32_t n = r->keep.call.n_part;
    if (n > r->cap_q) {
        MPI_Request *more = realloc(r->q, n * sizeof(*more));
        if (more == NULL)
            return comm_fail(&m->c, "out of memory");
        r->q = more;
        r->cap_q = n;
    }
    for (uint32_t i = 0; i < n; i++)
        r->q[i] = MPI_REQUEST_NULL;
    for (uint32_t i = 0; i < n; i++) {
        const struct comm_part *p = &r->keep.part[i];
        size_t bytes = (size_t)p->count * dtype_at(p->dtype)->bytes;
        if (p->tag < 0 || p->tag >= MPI_USER_TAGS || bytes > INT32_MAX)
            return comm_fail(&m->c, "over MPI, tags go from 0 to %d and messages to 2 GiB",
                             MPI_USER_TAGS - 1);
        int tag = r->keep.call.group * MPI_USER_TAGS + (int)p->tag, peer = g->member[p->peer];
        int code = p->receive ? MPI_Irecv(p->out, (int)bytes, MPI_BYTE, peer, tag, m->p2p, &r->q[i])
                              : MPI_Isend(p->in, (int)bytes, MPI_BYTE, peer, tag, m->p2p, &r->q[i]);
        if (!mpi_ok(m, code, p->receive ? "MPI_Irecv" : "MPI_Isend"))
            return false;
    }
    return true;
}

static bool p2p_move(struct mpi *m, struct mpi_req *r)
{
    char text[256];
    for (uint32_t i = 0; i < r->keep.call.n_part; i++) {
        const struct comm_part *p = &r->keep.part[i];
        int bytes = (int)((size_t)p->count * dtype_at(p->dtype)->bytes), done, got = bytes;
        MPI_Status status;
        if (r->q[i] == MPI_REQUEST_NULL)
            continue;
        int code = MPI_Test(&r->q[i], &done, &status);
        if (code == MPI_SUCCESS && !done)
            return true;
        if (code == MPI_SUCCESS && p->receive)
            MPI_Get_count(&status, MPI_BYTE, &got);
        if (code == MPI_SUCCESS && got == bytes)
            continue;
        call_describe(&r->keep.call, text, sizeof(text));
        return comm_fail(&m->c,
                         "%s: rank %d sends %s bytes than the %d that rank %d expects "
                         "(tag %lld)",
                         text, m->c.group[r->keep.call.group].member[p->peer],
                         code == MPI_SUCCESS ? "fewer" : "more", bytes, m->c.rank,
                         (long long)p->tag);
    }
    finish(m, r);
    return true;
}

/* ---- All of it ---- */

bool mpi_move_on(struct mpi *m)
{
    if (m->internal->head != NULL && !chan_move(m, m->internal))
        return false;
    for (int32_t i = 0; i < m->n_chan; i++)
        if (m->chan[i]->head != NULL && !chan_move(m, m->chan[i]))
            return false;
    for (uint32_t i = 0; i < m->n_req; i++)
        if (m->req[i]->state == 1 && m->req[i]->chan == NULL && !p2p_move(m, m->req[i]))
            return false;
    return true;
}

/* ---- Who is missing ---- */

/* The peers of a job whose messages are not done, each once: "rank 2", "ranks 0, 2". */
static bool list_peers(const struct mpi_job *j, bool receive, char *text, size_t size)
{
    int n = 0, at = 0, last = -1;
    for (int i = 0; i < j->n_q && at < (int)size - 16; i++) {
        int done = 1, rank = j->peer[i].rank;
        if (rank == last || j->peer[i].receive != receive || j->q[i] == MPI_REQUEST_NULL)
            continue;
        MPI_Request_get_status(j->q[i], &done, MPI_STATUS_IGNORE);
        if (done || rank < 0)
            continue;
        at += snprintf(text + at, size - (size_t)at, n++ > 0 ? ", %d" : "%d", rank);
        last = rank;
    }
    if (n > 0) {
        const char *word = n > 1 ? "ranks " : "rank ";
        memmove(text + strlen(word), text, (size_t)at + 1);
        memcpy(text, word, strlen(word));
    }
    return n > 0;
}

bool mpi_missing(struct mpi *m, const struct mpi_req *r, char *text, size_t size)
{
    char call[256], who[128];
    if (r->chan == NULL) {
        for (uint32_t i = 0; i < r->keep.call.n_part; i++)
            if (r->q[i] != MPI_REQUEST_NULL) {
                call_describe(&r->keep.call, call, sizeof(call));
                snprintf(text, size, "rank %d did not come to %s",
                         m->c.group[r->keep.call.group].member[r->keep.part[i].peer], call);
                return true;
            }
        return false;
    }
    /* In their order: what is behind one that hangs may hang because of it. What a peer did not
     * send tells more than what it did not take. */
    for (const struct mpi_job *j = r->chan->fly_head; j != NULL; j = j->next)
        if (list_peers(j, true, who, sizeof(who) - 8) ||
            list_peers(j, false, who, sizeof(who) - 8)) {
            call_describe(&j->r->keep.call, call, sizeof(call));
            snprintf(text, size, "%s did not %s %s", who, j->heads ? "come to" : "go on with",
                     call);
            return true;
        }
    return false;
}
