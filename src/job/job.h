/* A job as it ran: the graphs that its files contain, those that make up a step, and the step of
 * each rank as one graph, forward and backward together.
 *
 *   source.c      files, folders, archives
 *   piece.c       the graphs in them, not parsed: rank, compilation, stage, role
 *   piece_path.c  what paths and side-cars say
 *   record.c      records of structured logs; record_facts.c: what else they say of a compilation
 *   split.c       the parts of a frame that was split
 *   choose.c      which of them make up a step
 *   tie.c         which inputs of a backward are values that its forward saved
 *   descriptors.c which of them are parameters
 *   join.c        the step of a rank as one graph
 *   job_facts.c   what the text of a part does not say
 *   job_symbols.c symbols with several values
 *   job_peak.c    its peak as PyTorch estimates it
 */
#ifndef TUCK_JOB_JOB_H
#define TUCK_JOB_JOB_H

#include "job/piece.h"

#define NO_PART UINT32_MAX

/* Where an input of a part comes from: value `place` of what part `part` returns, an index of its
 * output's values. NO_PART: from outside. Nodes may be replaced when a part is optimized, places
 * remain. */
struct tie {
    uint32_t part, place;
};

struct job_part {
    uint32_t piece;
    tuck_graph *graph;
    uint32_t
        forward; /* of a backward: the first part that it belongs to; NO_PART if there is none */
    struct tie *tie;         /* by node of the graph; NULL if nothing is tied */
    uint32_t n_tied, n_free; /* inputs that are saved values, and others but tangents */
    bool told;               /* its ties are from names or facts that its text does not have */
    bool claimed;            /* a forward that a backward of compiled autograd belongs to */
};

struct job_rank {
    int32_t number;       /* -1 if unknown */
    uint32_t first, n;    /* its parts, in the order in which they run */
    uint32_t n_names;     /* graphs of compiled autograd, only for their names: in `names` */
    uint32_t first_names; /* indices of pieces */
};

struct job {
    struct mem mem;
    struct arena arena;
    struct sources sources;
    struct pieces pieces;
    VEC(struct job_part) part;
    VEC(struct job_rank) rank;
    VEC(uint32_t) names; /* pieces that name the inputs of backwards of compiled autograd */
    tuck_doc *doc;       /* all graphs that were read */
    tuck_doc *parts;     /* those of the step, by part */
    tuck_doc *steps;     /* the step of each rank */
    uint32_t n_name_doc; /* not used as parts */
};

/* Tells the graphs of a frame that was split apart: id.part of the pieces. */
void job_number_parts(struct job *j);

/* Decides which pieces are parts of a step, and sets `passed` of the others. */
void job_choose(struct job *j);

/* After the graphs were read: ties inputs of backwards to values of forwards. */
void job_tie(struct job *j);

/* The node that is tied, now. */
uint32_t job_tied(const struct job *j, struct tie t);

/* Facts that the text of a part would lack are put in the line above it, so that a folder of the
 * parts' texts is the same job: its place in the step, which saved values its inputs are. */
TUCK_MUST_CHECK tuck_status job_remember(struct job *j);

/* Warns if graphs of a step call different sizes by one name. */
void job_check_symbols(const struct job *j, tuck_diags *diags);

/* Inputs and results of the parts get the descriptors that AOTAutograd printed. */
void job_describe(struct job *j);

/* The step of a rank, as a new graph of the parts' store. */
tuck_graph *job_join(const struct job *j, const struct job_rank *r);

/* Forward and backward together, as PyTorch's memory estimator has it: the larger of the
 * forward's own peak, and of the backward's plus what the forward returned and the backward does
 * not get. Of a step of several parts, the largest. */
struct job_peak {
    int64_t bytes;
    uint32_t unknown; /* storages of unknown size, counted as 0 */
};
TUCK_MUST_CHECK tuck_status job_peak(const struct job *j, const struct job_rank *r,
                                     struct job_peak *out);

#endif
