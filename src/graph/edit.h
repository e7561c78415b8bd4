/* Internals of editing, shared by its files. */
#ifndef TUCK_GRAPH_EDIT_H
#define TUCK_GRAPH_EDIT_H

#include "graph/args.h"

/* ---- texts ---- */

bool edit_plain_text(const char *s); /* contains nothing that would break its printed line */
bool edit_is_dotted(const char *s);  /* a.b.c: identifiers with dots between */
bool edit_is_path(const char *s);    /* what may follow "self." */
const char *edit_param_name(
    const char *s); /* the name in x, *args, **kwargs; NULL if it is not a parameter */

/* ---- names ---- */

/* What PyTorch would call a node with this target. */
void edit_candidate(struct buf *b, tuck_kind kind, const char *target);
/* Does the text use, as a global, a word that is the name of a node or a parameter? */
bool edit_words_taken(tuck_graph *g, const char *s);
/* Records the globals and symbols of new arguments. False: a name is already used. */
bool edit_enter_words(tuck_graph *g, const tuck_args *a);

/* ---- annotations ---- */

/* The number of an annotation with this inner text, in the style of the graph's text; 0 if none.
 * *ok = false: it is not an annotation. */
uint32_t edit_annotation(struct buf *b, tuck_graph *g, const char *inner, bool *ok);
/* Call this with a node's annotation before the node gets it. */
void edit_note_annotation(tuck_graph *g, uint32_t ann);

/* ---- spelling ---- */

/* enum fx_syntax for a call of `op` with these arguments: the shortest form that can be read
 * again. */
uint8_t edit_spelling(const tuck_graph *g, uint32_t op, const tuck_value *v, uint32_t n_args,
                      uint32_t n_kwargs);

/* ---- parameters ---- */

#define NO_PARAM UINT32_MAX

bool edit_has_params(const tuck_graph *g);   /* each placeholder is a parameter */
bool edit_inputs_fixed(const tuck_graph *g); /* their number and order are fixed outside the text */
uint32_t edit_param_of(const tuck_graph *g, uint32_t node); /* index in g->param, or NO_PARAM */
const char *edit_raw_name(const tuck_graph *g, const struct fx_param *q); /* without stars */
bool edit_is_param(tuck_graph *g, str_id name, uint32_t self); /* of another node than self */
bool edit_param_fits(const tuck_graph *g, const struct fx_param *q,
                     uint32_t i);                                     /* before index i */
void edit_insert_param(tuck_graph *g, uint32_t i, struct fx_param q); /* there must be room */
struct fx_param edit_remove_param(tuck_graph *g, uint32_t i);

/* ---- positions ---- */

uint32_t edit_skip_results(const tuck_graph *g, uint32_t n);
/* The node before which a node of this kind would go at that position, 0 for the end. `self` is the
 * node being moved, 0 for a new one. False: the text has no such position. */
bool edit_place(const tuck_graph *g, tuck_where w, uint8_t kind, uint32_t self, uint32_t *before);

#endif
