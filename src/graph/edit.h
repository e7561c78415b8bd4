/* Inside the editor: what its parts share. */
#ifndef TUCK_GRAPH_EDIT_H
#define TUCK_GRAPH_EDIT_H

#include "graph/args.h"

/* ---- texts ---- */

bool edit_plain_text(const char *s); /* nothing that would break the line it is printed in */
bool edit_is_dotted(const char *s);  /* a.b.c: identifiers with dots between */
bool edit_is_path(const char *s);    /* what may follow "self." */
const char *edit_param_name(
    const char *s); /* of x, *args, **kwargs, without the stars; NULL: no parameter */

/* ---- names ---- */

/* What PyTorch would call a node with this target. */
void edit_candidate(struct buf *b, tuck_kind kind, const char *target);
/* Does the text use a word for a global that is the name of a node or a parameter? */
bool edit_words_taken(tuck_graph *g, const char *s);
/* Records the globals and symbols of new arguments; false: one is taken. */
bool edit_enter_words(tuck_graph *g, const tuck_args *a);

/* ---- annotations ---- */

/* The number of an annotation given by its inner text, as the graph's text would have it; 0 = none.
 * *ok = false: it is not one. */
uint32_t edit_annotation(struct buf *b, tuck_graph *g, const char *inner, bool *ok);
/* To be called with the annotation of a node before the node has it. */
void edit_note_annotation(tuck_graph *g, uint32_t ann);

/* ---- spelling ---- */

/* enum fx_syntax for a call of `op` with these arguments: the shortest that can be read again. */
uint8_t edit_spelling(const tuck_graph *g, uint32_t op, const tuck_value *v, uint32_t n_args,
                      uint32_t n_kwargs);

/* ---- parameters ---- */

#define NO_PARAM UINT32_MAX

bool edit_has_params(const tuck_graph *g);   /* each placeholder is a parameter */
bool edit_inputs_fixed(const tuck_graph *g); /* their number and order are fixed outside the text */
uint32_t edit_param_of(const tuck_graph *g, uint32_t node); /* place in g->param, or NO_PARAM */
const char *edit_raw_name(const tuck_graph *g, const struct fx_param *q); /* without stars */
bool edit_is_param(tuck_graph *g, str_id name, uint32_t self); /* of a node other than self */
bool edit_param_fits(const tuck_graph *g, const struct fx_param *q,
                     uint32_t i);                                     /* before place i */
void edit_insert_param(tuck_graph *g, uint32_t i, struct fx_param q); /* room is there */
struct fx_param edit_remove_param(tuck_graph *g, uint32_t i);

/* ---- places ---- */

uint32_t edit_skip_results(const tuck_graph *g, uint32_t n);
/* The node before which one of this kind comes at that place, 0 = the end. `self` is the node on
 * the move, 0 = a new one. False: the text has no such place. */
bool edit_place(const tuck_graph *g, tuck_where w, uint8_t kind, uint32_t self, uint32_t *before);

#endif
