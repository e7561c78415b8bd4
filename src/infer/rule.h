/* Shape rules: compute the type of a call's result from its operands.
 *
 * A rule is a function `bool shape_NAME(struct infer *x)`, named in the shape column of ops.def. It
 * reads operands by the position of the parameter in the row's signature, with defaults filled in,
 * and ends with one of the out_…() functions. It returns false if it cannot know: the result is
 * then unknown, and nothing downstream guesses. Rules may leave scratch in x->arena; it is released
 * after them.
 *
 * Sizes and strides are expressions (sym.h); plain numbers are expressions too. A sym_id of 0 means
 * "cannot be formed" and makes the result unknown, so chains of arithmetic need no checks.
 *
 * rule_util.c and rule_layout.c have the helpers; the other rule_*.c have the rules by family.
 */
#ifndef TUCK_INFER_RULE_H
#define TUCK_INFER_RULE_H

#include "graph/graph.h"
#include "op/ops.h"
#include "graph/type.h"

struct infer {
    struct fx_store *store;
    struct symtab *sym;
    struct typetab *type;
    struct arena *arena; /* scratch of this call */
    const tuck_graph *g;
    uint32_t node;
    const type_id *types; /* of g's nodes, by id */
    const struct op_row *row;
    const struct op_sig *sig;
    const tuck_value **arg; /* by parameter: the value given for it, or NULL */
    type_id result;
    bool loose;  /* the rule read a tensor whose strides are unknown */
    bool packed; /* such tensors count as contiguous: sizes and dtypes do not depend on it */
    bool apart;  /* two sizes that must be equal are known, and are not: of[0] and of[1] */
    int64_t of[2];
    struct infer_run *run; /* the whole inference: fresh symbols, hints, nested graphs */
};

/* ---- Operands
 * ------------------------------------------------------------------------------------ `p` is the
 * parameter's place in the signature. */

enum { NO_PARAM = -1 };

/* The position of a parameter by name, or NO_PARAM: for rules shared by operators with different
 * signatures. */
int in_param(const struct infer *x, const char *name);

bool in_given(const struct infer *x, int p);          /* given, and not None */
type_id in_type(struct infer *x, int p);              /* of any operand; 0 if unknown */
const struct type *in_tensor(struct infer *x, int p); /* NULL if None, unknown or not a tensor */
bool in_sym(struct infer *x, int p, sym_id *out);     /* an int, float or bool, symbolic or not */
bool in_int(struct infer *x, int p, int64_t *out);    /* a known int */
bool in_bool(struct infer *x, int p, bool *out);
bool in_str(struct infer *x, int p, const char **out);
bool in_dtype(struct infer *x, int p, enum dtype *out); /* false if None or absent */
bool in_device(struct infer *x, int p, str_id *out);    /* "cuda:0"; false if None or absent */

enum mem_format {
    FORMAT_NONE,
    FORMAT_CONTIGUOUS,
    FORMAT_PRESERVE,
    FORMAT_CHANNELS_LAST,
    FORMAT_CHANNELS_LAST_3D
};
enum mem_format in_format(struct infer *x, int p);

/* Lists of numbers; a single number stands for a list of the length in the signature (i[2]). */
bool in_syms(struct infer *x, int p, const sym_id **out, uint32_t *n);
bool in_ints(struct infer *x, int p, const int64_t **out, uint32_t *n);
/* Lists of tensors, or the list that a node yields. An item that is None or unknown is NULL. The
 * pointers are copies in x->arena. */
bool in_tensors(struct infer *x, int p, const struct type *const **out, uint32_t *n);

/* Is the operand a Python number (literal or symbolic)? Its kind for promotion:
 * DTYPE_IS_BOOL … COMPLEX. */
bool in_number(struct infer *x, int p, enum dtype_category *out);
bool in_number_at(struct infer *x, int p, uint32_t i,
                  enum dtype_category *out); /* item i of a list */

/* The size of the process group that parameter group_name names; false: unknown. */
bool in_group_size(struct infer *x, int64_t *out);

/* dim as an index into n dimensions: negative ones count from the end (n == 0 counts as 1). */
bool wrap_dim(int64_t dim, uint32_t n, uint32_t *out);

/* ---- Arithmetic
 * ---------------------------------------------------------------------------------- */

sym_id num(struct infer *x, int64_t v);
bool is_one(const struct infer *x, sym_id v);
bool is_unit(const struct infer *x, sym_id v); /* 1, 1.0 or True */
bool is_zero(const struct infer *x, sym_id v);
/* Certainly equal: the same expression, or both expand to the same. */
bool same_size(struct infer *x, sym_id a, sym_id b);
/* A number for comparisons that must order symbolic sizes: the value with every symbol at its hint
 * (or a default). Never use it as a size. */
int64_t hint_of(struct infer *x, sym_id v);
sym_id numel(struct infer *x, const struct type *t);
/* The number of elements of [start:end:step] in a dimension; negative ends count from the end. */
sym_id sliced_size(struct infer *x, sym_id size, sym_id start, sym_id end, sym_id step);
/* A new symbol, u0, u1, …, for a data-dependent size. */
sym_id fresh_symbol(struct infer *x);

/* ---- Layouts
 * ------------------------------------------------------------------------------------- */

sym_id *new_syms(struct infer *x, uint32_t n);
sym_id *contiguous_strides(struct infer *x, uint32_t n, const sym_id *size);
/* NHWC and NDHWC; n must be 4 and 5. */
sym_id *channels_last_strides(struct infer *x, uint32_t n, const sym_id *size);
bool is_contiguous(struct infer *x, const struct type *t);
/* is_contiguous(memory_format=format). */
bool is_contiguous_as(struct infer *x, const struct type *t, enum mem_format format);
bool is_channels_last(struct infer *x,
                      const struct type *t);          /* 4-d or 5-d, as PyTorch suggests it */
bool is_dense(struct infer *x, const struct type *t); /* non-overlapping and dense */
/* Strides of empty_like(t) with memory_format: preserve keeps a dense layout, otherwise it orders
 * by stride. */
sym_id *like_strides(struct infer *x, const struct type *t, enum mem_format format);
/* Strides of t viewed with other sizes of as many elements; NULL if that needs a copy. */
sym_id *view_strides(struct infer *x, const struct type *t, uint32_t n, const sym_id *size);
/* The same, as kernels choose them when the view is part of another operator. */
sym_id *inner_view_strides(struct infer *x, const struct type *t, uint32_t n, const sym_id *size);
/* t expanded to the sizes `want` (-1 keeps a size): fills size and stride. False if they do not
 * fit. */
bool expand_to(struct infer *x, const struct type *t, uint32_t n, const sym_id *want, sym_id *size,
               sym_id *stride);
/* Can two sizes be equal? If both are numbers and differ, that is reported, if the rule fails.
 * Sizes with symbols may always be. */
bool sizes_meet(struct infer *x, sym_id a, sym_id b);
/* The sizes that all operands broadcast to; false if they do not. */
bool broadcast_sizes(struct infer *x, const struct type *const *t, uint32_t n, uint32_t *n_out,
                     const sym_id **size_out);
/* t.expand(size): repeated dimensions have stride 0, new ones of size 1 continue as in a contiguous
 * tensor. */
const struct type *broadcast_to(struct infer *x, const struct type *t, uint32_t n_dim,
                                const sym_id *size);
/* Strides of an element-wise result over these operands, as TensorIterator chooses them; a Python
 * number used as a tensor counts as one without dimensions. NULL: strides of an operand are
 * unknown. */
sym_id *elementwise_strides(struct infer *x, const struct type *const *t, uint32_t n,
                            uint32_t n_dim, const sym_id *size);
/* The same as chosen by PyTorch's Python reference implementations (prims, decompositions). */
sym_id *reference_strides(struct infer *x, const struct type *const *t, uint32_t n, uint32_t n_dim,
                          const sym_id *size);
bool is_cpu(const struct infer *x, str_id device);
/* Device of a call over these operands: that of the first one that is not a cpu scalar. */
str_id common_device(struct infer *x, const struct type *const *t, uint32_t n);

/* where(t is within bound or nan, t, bound): clamp_min and clamp_max; bound NULL:
 * a number (rule_steps.c). */
struct promotion;
type_id bounded(struct infer *x, const struct promotion *p, const struct type *t,
                const struct type *bound);

/* Steps of operators that PyTorch computes in several (rule_chain.c). Results are in x->arena and
 * have operand a's dtype and device; unknown strides stay unknown. */
const struct type *step_two(struct infer *x, const struct type *a,
                            const struct type *b);                   /* a op b */
const struct type *step_one(struct infer *x, const struct type *a);  /* op a */
const struct type *step_copy(struct infer *x, const struct type *a); /* with another dtype */
/* a.contiguous(memory_format=format): a itself if it already is. */
const struct type *step_pack(struct infer *x, const struct type *a, enum mem_format format);
const struct type *step_reshape(struct infer *x, const struct type *a, uint32_t n,
                                const sym_id *size);
/* A contiguous tensor on t's device. */
const struct type *step_plain(struct infer *x, const struct type *t, uint32_t n,
                              const sym_id *size);
enum mem_format suggested_format(struct infer *x, const struct type *t);
/* For out_list; a tensor without elements counts as contiguous. */
type_id as_item(struct infer *x, const struct type *t, enum dtype dtype);
/* Strictly contiguous, or without a dimension of size 1: rules cannot follow what several steps do
 * to the strides of others. */
bool is_tidy(struct infer *x, const struct type *t);
/* t, without strides unless all of these are tidy (NULL is ignored). */
const struct type *tidy_only(struct infer *x, const struct type *t, const struct type *const *of,
                             uint32_t n);

/* ---- Promotion
 * ----------------------------------------------------------------------------------- */

/* Tensors with dimensions take precedence over those without, and those over Python numbers. Start
 * with {0}. */
struct promotion {
    enum dtype dims, zero_dims, numbers;
    bool refused;
};

void promote_tensor(struct promotion *p, const struct type *t);
void promote_number(struct promotion *p, enum dtype_category kind);
enum dtype promoted(const struct promotion *p); /* torch.result_type; DTYPE_NONE if refused */

bool on_cpu(const struct infer *x, const struct type *t); /* false if elsewhere or unknown */
/* The dtype that kernels compute in: float32 for 16-bit floats. */
enum dtype wide_dtype(enum dtype d);

/* ---- Results: each returns true, so that a rule can end in `return out_…`
 * --------------------------- */

bool out_type(struct infer *x, type_id t); /* false if t is 0, unknown */
bool out_tensor(struct infer *x, enum dtype dtype, uint32_t n, const sym_id *size,
                const sym_id *stride, str_id device); /* stride NULL: contiguous */
/* Items for out_list: like out_tensor, and like empty_like(t) (without strides if t has none). */
type_id new_tensor(struct infer *x, enum dtype dtype, uint32_t n, const sym_id *size,
                   const sym_id *stride, str_id device);
type_id new_like(struct infer *x, const struct type *t, enum dtype dtype);
/* t copied: strides are kept, including gaps, unless a dimension is repeated. */
type_id new_copied(struct infer *x, const struct type *t);
/* stride NULL: unknown. */
bool out_layout(struct infer *x, enum dtype dtype, uint32_t n, const sym_id *size,
                const sym_id *stride, str_id device);
/* .contiguous() of a tensor like t with these sizes and strides: unusual strides of dimensions of
 * size 1 stay. */
bool out_contiguous(struct infer *x, const struct type *t, uint32_t n, const sym_id *size,
                    const sym_id *stride);
bool out_sym(struct infer *x, sym_id v);
bool out_list(struct infer *x, const type_id *item, uint32_t n);
bool out_none(struct infer *x);

/* ---- The rules
 * ----------------------------------------------------------------------------------- */

#define X(id, ...) bool shape_##id(struct infer *x);
OP_SHAPES(X)
#undef X

#endif
