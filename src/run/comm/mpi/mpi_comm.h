/* The MPI transport: one rank's state. All calls of MPI are made under one lock, by the thread of
 * the rank and by a thread that moves messages on while the rank computes.
 *
 * A call is cut into jobs, pieces of at most MPI_PIECE bytes, of which a group has up to MPI_WINDOW
 * under way. Operands go as bytes between pairs of ranks, and every rank reduces its share in the
 * order of the group, so results are the same as on shm, to the bit. Before the data, members send
 * each other what they want to do (struct mpi_head): that finds differences, and who is missing.
 * Heads go ahead of the data of earlier calls, so that many small calls do not wait for each other.
 */
#ifndef TUCK_RUN_COMM_MPI_COMM_H
#define TUCK_RUN_COMM_MPI_COMM_H

#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "run/comm/comm_call.h"

enum {
    MPI_PIECE = 512 << 10,
    MPI_WINDOW = 8,
    MPI_GREETINGS = 16,   /* calls of a group whose heads may be under way ahead of their data */
    MPI_TAGS = 4096,      /* of a group, used in turns: half for data, half for heads */
    MPI_USER_TAGS = 65536 /* of sends and receives in a group */
};

/* What a member wants to do, and how much it exchanges with the receiver of this. */
struct mpi_head {
    uint64_t what;
    int64_t count, to_you, from_you;
};

struct mpi_req {
    struct call_keep keep;
    uint8_t state; /* 0: free, 1: in use, 2: done */
    comm_req id;
    struct mpi_chan *chan; /* NULL: sends and receives */
    struct mpi_req *next;
    uint32_t at;     /* the part that jobs are made of */
    int64_t from;    /* the element that its next job begins with */
    bool greeted;    /* the job with the heads of this part was made */
    bool agreed;     /* and is over */
    bool all_made;   /* no job is left to be made */
    uint32_t flying; /* jobs */
    MPI_Request *q;  /* [parts] of sends and receives */
    uint32_t cap_q;
};

/* The other side of a message of a job. */
struct mpi_peer {
    int rank; /* -1: all, in a reduction of MPI's own */
    bool receive;
};

struct mpi_job {
    struct mpi_req *r;
    uint32_t part;
    uint8_t phase;
    int64_t lo, hi; /* elements: of the operand, or of each member's part */
    int tag;
    bool heads;
    MPI_Request *q;
    struct mpi_peer *peer; /* of each of q */
    int n_q, cap_q;
    char *memory; /* what was received and is not reduced yet; heads */
    size_t memory_cap;
    struct mpi_job *next;
};

struct mpi_chan {
    int32_t id; /* of the group; -1: internal */
    int32_t n, me;
    const int32_t *member;
    uint32_t counter; /* jobs with data so far: for tags */
    uint32_t greeted; /* jobs with heads so far */
    struct mpi_req *head, *tail;
    struct mpi_job *fly_head, *fly_tail;
    uint32_t flying, greeting; /* jobs with data, with heads */
    MPI_Comm own;              /* for MPI's own reductions; else MPI_COMM_NULL */
    void *heap;
};

struct mpi {
    struct comm c;
    MPI_Comm jobs, p2p, control;
    pthread_mutex_t lock;
    pthread_cond_t work;
    pthread_t thread;
    bool thread_runs, stop;
    long sleep_us;
    bool failed, own_reductions, here; /* here: we called MPI_Init */
    int64_t most_tag;
    double timeout_s;
    struct mpi_chan *internal, **chan;
    int32_t n_chan;
    struct mpi_req **req, **spare;
    uint32_t n_req, n_spare, n_busy;
    struct mpi_job *spare_job;
    const void **src;
    /* why the job is over, from another rank */
    MPI_Request ended;
    char reason[COMM_ERROR_BYTES];
    char farewell[COMM_ERROR_BYTES];
    struct sigaction old_term;
};

/* mpi_call.c: under the lock */
bool mpi_ok(struct mpi *m, int code, const char *what);
struct mpi_req *mpi_req_make(struct mpi *m, const struct comm_call *call);
void mpi_req_free(struct mpi *m, struct mpi_req *r);
void mpi_enqueue(struct mpi *m, struct mpi_chan *ch, struct mpi_req *r);
bool mpi_move_on(struct mpi *m);
/* What holds a request up: "rank 2 did not come to all_reduce 'g1'", of this call or an earlier
 * one of its group; false: unknown. */
bool mpi_missing(struct mpi *m, const struct mpi_req *r, char *text, size_t size);
bool mpi_start_p2p(struct mpi *m, struct mpi_req *r);

/* mpi_job.c: posts the messages of a job's phase; mpi_job_next: when they are done. *over: it was
 * the last phase. */
bool mpi_job_begin(struct mpi *m, struct mpi_chan *ch, struct mpi_job *j);
bool mpi_job_next(struct mpi *m, struct mpi_chan *ch, struct mpi_job *j, bool *over);
/* Elements of one job of this part; what a job's range counts. */
int64_t mpi_job_range(const struct mpi_req *r, int64_t *step);

#endif
