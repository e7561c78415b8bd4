/* The transport of one machine: what its ranks share, and one rank's view of it.
 *
 * All ranks map one segment at the same address: the launcher makes it, without a name, before it
 * starts them, so nobody else can open it and nothing is left when the last rank ends. It holds the
 * state of each rank, a channel for each group, mailboxes for sends and receives, and the symmetric
 * heaps. An operand is read in place by the others if it lies anywhere in the segment.
 *
 * A channel is a counter for each member. A member that reaches a meeting adds one to its own and
 * looks at the others'; the data of before is visible then. A call begins with a meeting, in which
 * members show what they want to do (struct shm_line), and ends when its algorithm does. What is
 * written before a meeting alternates between two places: when a member writes to one of them
 * again, all others have come to the meeting in between, so they are done with it.
 */
#ifndef TUCK_RUN_COMM_SHM_H
#define TUCK_RUN_COMM_SHM_H

#include <stdatomic.h>

#include "run/comm/comm_call.h"

enum {
    SHM_ALIGN = 4096,
    SHM_SLOT = 8192,   /* a call whose data fits here is one meeting */
    SHM_COPIED = 1024, /* operands in the segment up to here are copied to the slot all the same */
    SHM_COPIED_STAYS = 512, /* if they stay as they are, and the result is elsewhere */
    SHM_CHUNK = 256 << 10,  /* other data goes through chunks of this size */
    SHM_INLINE = 24,
    SHM_LABEL = 96,
    SHM_WANTS = 64,
    SHM_PACKET = 64 << 10,
};

#define SHM_NOWHERE UINT64_MAX

enum shm_state { SHM_NEW, SHM_RUNS, SHM_WAITS, SHM_ENDED };

struct shm_rank {
    _Alignas(128) _Atomic uint32_t state;
    _Atomic int32_t pid;
    _Atomic int32_t waits_for; /* a rank, if state is SHM_WAITS; or -1 */
    _Atomic uint32_t kind;     /* of the last call */
    _Atomic uint64_t label[SHM_LABEL / 8];
    _Atomic int32_t status; /* what the rank returned */
    char error[COMM_ERROR_BYTES];
};

struct comm_shared {
    uint64_t bytes;
    int32_t world;
    bool threads;
    bool spin; /* every rank has a core */
    _Atomic uint64_t top;
    uint64_t internal, all, pairs; /* offsets: two channels of the world, the mailboxes */
    /* 0: the job runs. 1: somebody writes the reason why it does not. 2: the reason is there. */
    _Alignas(128) _Atomic uint32_t ended;
    int32_t ended_by; /* the rank that noticed; -1: the launcher */
    char reason[COMM_ERROR_BYTES];
    _Alignas(128) _Atomic uint32_t bell; /* a futex */
    _Atomic uint32_t sleepers;
    _Alignas(128) struct shm_rank rank[];
};

/* What a member shows at the first meeting of a call. */
struct shm_line {
    _Alignas(128) _Atomic uint64_t step;
    uint64_t what;            /* kind, reduce, dtype, root, inlined */
    int64_t count;            /* -1: all_to_all with split sizes */
    uint64_t in_off, out_off; /* of operands in the segment; else SHM_NOWHERE */
    char data[SHM_INLINE];
};

#define SHM_INLINED ((uint64_t)1 << 63)
#define SHM_STAYS ((uint64_t)1 << 62)
#define SHM_FLAGS (SHM_INLINED | SHM_STAYS)

/* A receive that waits for its sender. */
struct shm_want {
    _Alignas(64) _Atomic uint64_t seq; /* 0: free; else posted, in this order */
    int32_t group;
    int64_t tag;
    uint64_t bytes;
    uint64_t out_off;
};

struct shm_packet {
    uint32_t want;
    uint32_t last;
    uint64_t bytes;
    _Alignas(64) char data[SHM_PACKET];
};

/* The mailbox of one sender at one receiver. */
struct shm_pair {
    _Alignas(128) _Atomic uint64_t taken; /* packets; written by the receiver */
    _Alignas(128) _Atomic uint64_t put;   /* packets; written by the sender */
    struct shm_want want[SHM_WANTS];
    struct shm_packet packet[2];
};

struct shm_chan {
    /* What this member showed last. Its line itself may have moved into the cache of one that read
     * it: looking at that again would take as long as looking at another's. */
    struct shm_line mine;
    int32_t id; /* of the group; -1: internal */
    int32_t n, me;
    char *base;
    size_t stride, slots;            /* from member to member; to its slots */
    uint32_t slot_lines, heap_lines; /* of the last call's data, in a slot or in the heap */
    uint64_t heap_at;
    uint64_t shown_bytes; /* of the operand of the call that was shown last */
    uint64_t checked;     /* what the last call was that call_check() accepted, and its count */
    int64_t checked_count;
    uint64_t checked_bytes;
    uint64_t step, seq;
    struct shm_req *head, *tail; /* calls, in their order */
    bool active;
    uint64_t *heap; /* [n] offsets; NULL: none */
    uint64_t heap_bytes;
};

struct shm_req {
    struct call_keep keep;
    uint8_t state; /* 0: free; 1: in use; 2: done */
    comm_req id;
    struct shm_req *next;
    struct shm_chan *chan;
    /* the part that is worked on */
    uint32_t at;
    bool begun;
    int32_t seen;   /* members before it have come to the meeting */
    uint32_t stage; /* meetings that are over */
    bool (*run)(struct shm_req *r);
    struct shm *shm;
    /* a send or receive, one request a part */
    struct shm_req *whole; /* the request of the call that it belongs to */
    uint32_t parts_left;
    int32_t want; /* its slot; -1: none yet */
    uint64_t moved;
};

struct shm {
    struct comm c;
    struct comm_shared *shared;
    struct shm_chan *internal, **chan; /* [n_chan], by group */
    int32_t n_chan;
    struct shm_req **req;
    uint32_t n_req, n_free;
    struct shm_req **spare;
    struct shm_req *p2p_head, *p2p_tail;
    bool p2p_moved;
    uint32_t n_active; /* channels with calls */
    uint64_t *posted;  /* [world] seq of the last want, by sender */
    double timeout_s;
    const void **src; /* [world] scratch for reductions */
    void **dst;
};

/* shm.c */
struct comm_shared *shm_create(int world, size_t memory, bool threads, bool spin, char *error);
void shm_destroy(struct comm_shared *s);
/* Zeroed memory that ranks map on their own, instead of that of shm_create(). */
void shm_format(struct comm_shared *s, uint64_t bytes, int world, bool threads, bool spin);
/* Ends the job if it has not ended yet; by: the rank that noticed, -1 for the launcher. */
void shm_end(struct comm_shared *s, int by, const char *reason);
/* What a rank did last: "in all_reduce 'grad_3'", "after …"; for messages. */
void shm_whereabouts(const struct comm_shared *s, int rank, char *text, size_t size);

/* shm_wait.c */
struct shm_pause {
    uint64_t n, since, looked;
};
/* Waits a little; false if the job is over or the time-out has passed (r: for what). */
bool shm_pause(struct shm *m, struct shm_pause *p, const struct shm_req *r);
void shm_pause_end(struct shm *m, const struct shm_pause *p);
bool shm_running(struct shm *m);
void shm_ring(struct comm_shared *s);
bool shm_fail(struct shm *m); /* m->c.error is the reason for all ranks */

/* shm_call.c */
size_t member_bytes(int32_t n);
size_t chan_bytes(int32_t n);
size_t chan_slots(int32_t n); /* offset of the slots of a member */
char *chan_stage(const struct shm_chan *ch, int32_t member, uint64_t half);
char *chan_result(const struct shm_chan *ch, int32_t member, uint64_t half);
int64_t *chan_split(const struct shm_chan *ch, int32_t member, uint64_t seq);
/* Writes the line of the next call, and its data if that is small; chan_publish() shows it to the
 * others. */
void chan_show(struct shm *m, struct shm_chan *ch, const struct comm_call *call,
               const struct comm_part *p, uint64_t in_bytes, uint64_t out_bytes);
void chan_publish(struct shm *m, struct shm_chan *ch);
void chan_ask_early(const struct shm *m, const struct shm_chan *ch, int32_t i);
/* Shows the first call of a channel to the others. */
void chan_begin(struct shm *m, struct shm_chan *ch, struct shm_req *r);
enum comm_state chan_advance(struct shm *m, struct shm_chan *ch);
bool chan_finish(struct shm *m, struct shm_chan *ch, struct shm_req *r);

/* shm_algo.c, shm_staged.c: called after each meeting; true if another one is needed. */
typedef bool shm_run_fn(struct shm_req *r);
shm_run_fn *shm_choose(struct shm_req *r);
shm_run_fn shm_staged;

static inline char *chan_member(const struct shm_chan *ch, int32_t member)
{
    return ch->base + (size_t)member * ch->stride;
}

static inline struct shm_line *chan_line(const struct shm_chan *ch, int32_t member, uint64_t seq)
{
    return (struct shm_line *)(void *)chan_member(ch, member) + (seq & 1);
}

/* Has a member come to the meeting that this rank is at? */
static inline bool chan_came(const struct shm_chan *ch, int32_t member)
{
    return atomic_load_explicit(&chan_line(ch, member, ch->seq)->step, memory_order_acquire) >=
           ch->step;
}

static inline char *chan_slot(const struct shm_chan *ch, int32_t member, uint64_t seq)
{
    return chan_member(ch, member) + ch->slots + (seq & 1) * SHM_SLOT;
}

/* Operands of member m in the segment. */
static inline char *shm_at(const struct shm *m, uint64_t off)
{
    return (char *)m->shared + off;
}

static inline uint64_t shm_off(const struct shm *m, const void *p, size_t bytes)
{
    uint64_t off = (uint64_t)((uintptr_t)p - (uintptr_t)m->shared);
    return off < m->shared->bytes && bytes <= m->shared->bytes - off ? off : SHM_NOWHERE;
}

/* An operand that a member shows must lie in the segment as a whole. */
static inline bool in_segment(const struct shm *m, uint64_t off, uint64_t bytes)
{
    return off == SHM_NOWHERE || (off < m->shared->bytes && bytes <= m->shared->bytes - off);
}

/* shm_quick.c: a small all-reduce like the last one, on a channel with no other call. False: the
 * usual way must be taken, nothing has happened. */
bool shm_quick_start(struct shm *m, const struct comm_call *call, comm_req *req);
bool shm_quick_wait(struct shm *m, struct shm_req *r);
/* shm.c: what quick calls have in common with others */
void shm_enqueue(struct shm *m, struct shm_chan *ch, struct shm_req *r);
void shm_show_call(struct shm *m, const struct comm_call *call);
/* What a call must have in common with one that was checked to need no second check. */
static inline uint64_t call_what(const struct comm_call *call)
{
    return ((uint64_t)call->kind + 1) | (uint64_t)call->reduce << 8 |
           (uint64_t)call->part->dtype << 16 | (uint64_t)(uint32_t)call->root << 24;
}

/* shm_p2p.c */
size_t pairs_bytes(int32_t world);
bool p2p_advance(struct shm *m);

#endif
