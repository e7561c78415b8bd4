/* What a pass did, bucket by bucket, and what it left alone, and why. */
#ifndef TUCK_PASS_PASS_REPORT_H
#define TUCK_PASS_PASS_REPORT_H

#include "base/arena.h"
#include "base/json.h"
#include "base/vec.h"
#include "cost/assumed.h"
#include "graph/graph.h"

/* Why a candidate was left alone. A closed list: docs/passes.md explains each. */
#define LEFT_REASONS(X)                                                                            \
    X(ALONE, "alone", "nothing to merge it with: its bucket holds one")                            \
    X(WAITS, "waits", "its result is used by something other than a single wait")                  \
    X(NO_WAIT, "no_wait", "its result is never waited for in this graph")                          \
    X(DEPENDENCE, "dependence", "it depends on a member of the bucket, or a member on it")         \
    X(ORDER, "order",                                                                              \
      "merged, collectives that keep their order or reads and writes would change places")         \
    X(OVERSIZED, "oversized", "by itself it is larger than the cap")                               \
    X(UNHINTED, "unhinted", "its size has a symbol without a value: give one with --assume")       \
    X(UNKNOWN_TYPE, "unknown_type", "its size or dtype is not known")                              \
    X(UNKNOWN_GROUP, "unknown_group", "the size of its group is not known: give it with --group")  \
    X(GROUP_OF_ONE, "group_of_one", "its group has one rank")                                      \
    X(FILTERED, "filtered", "the filter of the pass rejects it")                                   \
    X(USERS, "users", "its wait is used by something other than a single return or copy_")         \
    X(LAYOUT, "layout", "something depends on where its operand or its result lies in memory")     \
    X(ALIGNMENT, "alignment", "its bytes do not align with the dtype of the bucket")               \
    X(MUTATED, "mutated", "its operand or its result is written in between")                       \
    X(SHARED, "shared", "what follows uses the same storage by another name")                      \
    X(KEY, "key", "group, reduce op, dtype or sizes differ from its partner's")                    \
    X(FORM, "form", "the pass does not merge its form: a list, in place, into a given buffer")     \
    X(WRAPPED, "wrapped", "control_deps or with_effects holds it, or its wait, where it is")       \
    X(NESTED, "nested", "it is in a nested graph, where the pass does not look")                   \
    X(NO_SYMM_MEM, "no_symm_mem", "nothing says that its group has symmetric memory: --symm-mem")  \
    X(ONE_NODE, "one_node", "its group is not on one node, where ranks could read each other")     \
    X(PATTERN, "pattern", "it does not have the shape that the pass rewrites")

enum left_reason {
#define X(id, ...) LEFT_##id,
    LEFT_REASONS(X)
#undef X
        LEFT_END
};

/* A note for readers if collectives of different groups changed places. */
extern const char report_crossed[];

const char *left_reason_name(enum left_reason why);
const char *left_reason_meaning(enum left_reason why);

enum closed_by {
    CLOSED_CAP,
    CLOSED_KEY,
    CLOSED_DEPENDENCE,
    CLOSED_ORDER,
    CLOSED_END,
    CLOSED_CHOICE, /* a new one is to begin here */
};

struct report_bucket {
    const char *kind;  /* "all_gather" */
    const char *group; /* name of the process group */
    const char *key;   /* what its members have in common besides the group: "bf16", "sum f32" */
    const char **member;
    uint32_t n_member;
    int64_t bytes;
    enum closed_by closed_by;
    const char *result; /* the merged collective */
};

struct report_left {
    const char *node;
    enum left_reason why;
};

struct report_move { /* what a scheduler did with a collective or a wait */
    const char *node;
    uint32_t moves, grouped;
    int64_t comm_ps, comp_ps, exposed_before_ps, exposed_after_ps;
    const char *limit, *limit_node; /* why it stopped, and at what ("" if nothing limits it) */
};

struct pass_report {
    struct tuck_report *all;
    const char *name;
    const char *options; /* as given, or "" */
    const char *note;    /* a note such as which default was used, or NULL */
    double ms;
    bool changed, failed;
    uint32_t before, after; /* nodes of the graph */
    bool crossed;           /* collectives changed places */
    bool scheduled;         /* a pass on schedules: bytes, and picoseconds of the step */
    int64_t peak_before, peak_after, exposed_before, exposed_after;
    int64_t front_ps; /* list_overlap: the fastest step from the front alone; else 0 */
    bool judged;      /* the graph was simulated after the pass: */
    int64_t step_ps, step_peak;
    VEC(struct report_bucket) bucket;
    VEC(struct report_left) left;
    VEC(struct report_count) count;
    VEC(struct report_move) move;
};

struct report_count { /* e.g. "waits removed": 3 */
    const char *what;
    int64_t n;
};

/* How much work was done: a new graph is lowered, turned into a schedule problem and simulated
 * once; so is each order in the passes on orders. */
struct report_work {
    uint32_t graphs;                       /* number of different graphs */
    uint32_t lowered, problems, simulated; /* how often each of these was done */
    uint32_t reused;                       /* how often an evaluation was reused */
    uint32_t orders;                       /* simulated inside passes on orders */
};

/* PyTorch's own overlap scheduler on the same graph. */
struct report_rival {
    bool ran;
    bool sound; /* its result may be used: its times are */
    tuck_times times;
    bool fits;     /* into the memory limit */
    char why[256]; /* if not sound */
    double ms;     /* CPU time */
};

/* The result and the second best, without contention and with it. */
struct report_contended {
    bool judged;
    int64_t ps, with_ps;
    int64_t next_ps, next_with_ps; /* next_ps is -1 if there is no second */
};

struct tuck_report {
    struct mem mem;
    struct arena arena;
    VEC(struct pass_report) pass;
    bool judged; /* the whole pipeline was simulated before and after: */
    bool chosen; /* a user chose the passes: nothing else was tried */
    tuck_gain gain;
    struct report_rival rival;
    struct report_contended contended;
    bool optimal;      /* no order and no buckets within the memory are faster: all were tried */
    uint32_t tries;    /* how many were made by the search */
    bool stopped;      /* by the caller, or after a given number of tries */
    uint64_t sequence; /* digest of the result's sequence of communication; study/digest.h */
    bool has_sequence, resequenced; /* it is known; it differs from that of the graph before */
    bool compared; /* the graphs of several ranks were, so their programs are known to agree */
    VEC(struct cost_assumed) assumed; /* groups whose size was assumed */
    bool unbacked;                    /* unbacked sizes were assumed */
    uint32_t ops_unknown, buffers_unknown;
    const char *contention; /* how it was modeled, or NULL if it was not */
    const char *remark;     /* there are no collectives: how to have some; or NULL */
    struct report_work work;
};

struct tuck_report *report_new(const tuck_allocator *alloc); /* NULL if out of memory */

/* Texts are copied. When memory runs out, jumps to the runner's guard, which also covers the
 * report's mem. */
void report_bucket(struct pass_report *p, const struct report_bucket *b);
void report_left(struct pass_report *p, const tuck_graph *g, uint32_t node, enum left_reason why);
void report_count(struct pass_report *p, const char *what, int64_t n);
void report_move(struct pass_report *p, const struct report_move *m);
void report_note(struct pass_report *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The name of a node, copied into the report. */
const char *report_name(struct pass_report *p, const tuck_graph *g, uint32_t node);

/* Copies a row of another report. */
void report_append(struct tuck_report *t, const struct pass_report *row);

/* Records which groups of the graph have an assumed size. */
void report_assume(struct tuck_report *t, const tuck_graph *g, const tuck_cluster *c);

struct report_form {
    bool times; /* how long each pass took */
    bool brief; /* one line per pass */
    bool work;  /* also show the work that was done */
    bool part;  /* of a step that communicates elsewhere */
};

/* Its members, for an object of the caller; a document of its own. */
void report_json_in(const struct tuck_report *t, const struct report_form *how, struct json_out *j);
void report_json(const struct tuck_report *t, const struct report_form *how, struct buf *b);
void report_table(const struct tuck_report *t, const struct report_form *how, struct buf *b);

#endif
