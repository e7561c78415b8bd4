/* The graphs in the files of a job, before any of them is parsed: where each is, of which rank and
 * compilation, at which stage, forward or backward. */
#ifndef TUCK_JOB_PIECE_H
#define TUCK_JOB_PIECE_H

#include "job/compile_id.h"
#include "job/source.h"
#include "text/given_text.h"

enum job_role { ROLE_NONE, ROLE_FORWARD, ROLE_BACKWARD, ROLE_WHOLE, ROLE_JOINT, ROLE_AUTOGRAD };

/* In the order in which torch makes them. */
enum job_stage {
    STAGE_UNKNOWN,
    STAGE_TRACED,    /* by Dynamo, before autograd */
    STAGE_JOINT,     /* forward and backward not separated yet */
    STAGE_AOT,       /* after AOTAutograd */
    STAGE_READABLE,  /* the same, as Inductor gets it */
    STAGE_POST_GRAD, /* after Inductor's passes: the last graph there is */
};

enum piece_form { PIECE_FILE, PIECE_PAYLOAD, PIECE_LINES };

struct piece {
    uint32_t source;     /* index of its file */
    uint8_t form;        /* enum piece_form: how its lines are in the file */
    uint8_t stage, role; /* enum job_stage, job_role */
    size_t from, to;     /* bytes of the file that contain it */
    uint32_t line;       /* of byte `from`, from 1 */
    const char *prefix;  /* PIECE_LINES: the lines with this header are the graph's */
    size_t prefix_len;
    const char *title; /* "aot_forward_graph", "Forward graph 0" */
    int32_t rank;      /* -1 if unknown */
    const char *when;  /* "1118 16:29:15.045000 ": its log header; NULL if it has none */
    int64_t run;       /* the process that wrote it, if it has a log header */
    struct compile_id id;
    int64_t order;       /* among the graphs of a rank: when it was made */
    const char *known;   /* JSON of facts about it; NULL if none */
    uint64_t call;       /* the call of the program that it was compiled for; 0 if unknown */
    const char *symbols; /* JSON: the values that symbols had then; NULL if unknown */

    /* Set while choosing. */
    const char *passed; /* why it is not part of the step; NULL if it is */
    uint32_t entry;     /* its graph in the document, if it was read */
    bool read;
    const int64_t *aot; /* ROLE_AUTOGRAD: numbers of the forwards it names, ascending */
    uint32_t n_aot;
};

struct pieces {
    struct mem *mem;
    struct arena *arena;
    const struct sources *sources;
    VEC(struct piece) all;
};

/* Finds all graphs. When memory runs out, jumps to the guard. */
void pieces_find(struct pieces *p);

/* The text of a piece, with its facts in a line above it; free it with text_free(). */
void piece_text(const struct pieces *p, const struct piece *x, struct fx_text *out);

const char *role_name(enum job_role role);

/* The place in the step that facts about a graph say; -1 if they do not. */
int64_t facts_place(const char *known);

#endif
