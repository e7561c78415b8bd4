/* Starts the ranks of a job, watches them and collects how they ended.
 *
 * shm: each rank is a process, forked here, so the caller must have no other threads (or, for
 * ThreadSanitizer and tests, a thread of this process); pinned to a core. mpi: this process already
 * is a rank, and fn() runs in it. When launch() returns, no process, segment or file of the job is
 * left; nor is any if this process or a rank is killed.
 */
#ifndef TUCK_RUN_COMM_LAUNCH_H
#define TUCK_RUN_COMM_LAUNCH_H

#include "run/comm/transport.h"

/* A rank: opens its comm, works, closes it. Returns 0, or another exit status and then writes into
 * error (COMM_ERROR_BYTES) why. Standard output and error are those of the caller. */
typedef int (*launch_fn)(void *arg, const struct comm_job *job, char *error);

struct launch_options {
    const struct transport *transport;
    int world;        /* shm: how many; mpi: 0, or how many mpirun must have started */
    bool threads;     /* shm: threads of this process */
    bool pin;         /* shm: rank r to the core r modulo cores, of those this process may use */
    double timeout_s; /* of waits; 0 means 60 */
    size_t memory;    /* shm: bytes of shared memory at most; 0 means as much as the machine has */
    bool own_reductions;
};

struct launch_rank {
    int status; /* of fn(); -1 if it did not return */
    int signal; /* that ended the process; 0 if none */
    char error[COMM_ERROR_BYTES];
};

struct launch_result {
    struct launch_rank *rank; /* [n]; mpi: only this process's rank. Freed by launch_free() */
    int n;
    int first;                    /* index of the rank that failed first; -1 if none did */
    int interrupted;              /* the signal, if one ended the job (Ctrl-C); else 0 */
    char error[COMM_ERROR_BYTES]; /* one sentence; "" if all went well */
};

/* True if every rank returned 0. */
bool launch(const struct launch_options *o, launch_fn fn, void *arg, struct launch_result *result);
void launch_free(struct launch_result *result);

#endif
