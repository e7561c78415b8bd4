/* Annotations: the type of a value as the text gives it: `x: "f32[8, s0][s0, 1]cuda:0"`.
 *
 * Steps repeat their layers, so millions of nodes share a few annotations. Each distinct text is
 * kept and parsed once per store; a node holds its number.
 */
#ifndef TUCK_GRAPH_ANNOTATION_H
#define TUCK_GRAPH_ANNOTATION_H

#include "base/buf.h"
#include "base/str.h"

struct fx_store;

struct fx_dim {
    int64_t val; /* valid if expr is 0 */
    str_id expr; /* a symbolic size, as printed */
};

/* A tensor, as far as it is known. */
struct fx_meta {
    uint8_t dtype; /* enum dtype */
    bool has_strides;
    uint32_t ndim;
    const struct fx_dim *size, *stride;
    str_id device;     /* "cuda:0"; 0 if not given */
    str_id subclass;   /* "DTensor", 0 for a plain tensor */
    str_id placements; /* "S(0)R", 0 = none */
};

enum ann_form { ANN_QUOTED, ANN_BARE, ANN_TYPE };
enum ann_what { ANN_OTHER, ANN_TENSOR, ANN_SYM };

struct fx_ann {
    str_id text;  /* from the end of the name up to the " =": `: "f32[8]"`, ` : torch.Tensor` */
    str_id inner; /* f32[8], Sym(s0 + 1), torch.Tensor */
    uint8_t form; /* enum ann_form */
    uint8_t what; /* enum ann_what */
    str_id expr;  /* of Sym(expr) */
    const struct fx_meta *meta; /* of a tensor */
    uint32_t type;              /* type_id, once computed */
    bool type_known;
};

/* The number of an annotation by its text in the source, parsed if it is new. */
uint32_t ann_intern(struct fx_store *s, const char *text, size_t len);
/* The same, 0 if it is new. */
uint32_t ann_find(const struct fx_store *s, const char *text, size_t len);
/* The same from the part between the quotes. */
uint32_t ann_from_inner(struct fx_store *s, const char *inner, size_t len);
const struct fx_ann *ann_at(const struct fx_store *s, uint32_t ann);

/* The tensor of an annotation, or NULL. */
const struct fx_meta *ann_tensor(const struct fx_store *s, uint32_t ann);

/* Parse the text between the quotes as a tensor; false: it is something else. */
bool meta_parse(struct fx_store *s, const char *text, size_t len, struct fx_meta *out);

#endif
