/* Making nodes, for passes. A call is begun, its operands follow, and build_end() makes the node:
 *
 *   struct build b = build_at(r, n);
 *   build_call(&b, "aten.cat.default");
 *   build_open(&b);  build_node(&b, x);  build_node(&b, y);  build_close(&b);
 *   build_int(&b, 1);
 *   uint32_t cat = build_end(&b, "cat");
 *
 * Nodes go, one after the other, right before the node given to the builder. Types and annotations
 * of new nodes come from inference when the pass is over.
 */
#ifndef TUCK_REWRITE_BUILD_H
#define TUCK_REWRITE_BUILD_H

#include "pass/pass.h"

struct build {
    struct pass_run *r;
    uint32_t before;    /* new nodes go right before it; 0 means at the end */
    str_id comment;     /* given to new nodes: the comment of the code they belong to */
    const char *target; /* of the current call, without "torch.ops." */
};

struct build build_at(struct pass_run *r, uint32_t before);   /* right before that node */
struct build build_behind(struct pass_run *r, uint32_t node); /* right after it */

void build_call(struct build *b, const char *op); /* as in ops.def */
void build_node(struct build *b, uint32_t n);
void build_int(struct build *b, int64_t v);
void build_str(struct build *b, const char *s);
void build_none(struct build *b);
void build_text(struct build *b, const char *s); /* Python's spelling: "torch.bfloat16" */
/* a value of another node of the same graph */
void build_value(struct build *b, const tuck_value *v);
void build_open(struct build *b); /* begins a list */
void build_close(struct build *b);
void build_key(struct build *b, const char *name); /* the next value belongs to this keyword */
/* Makes the node. `name` is made unique as PyTorch does it. */
uint32_t build_end(struct build *b, const char *name);

/* The same call again, right before another node. */
uint32_t build_copy(struct pass_run *r, uint32_t n, uint32_t before);

uint32_t build_getitem(struct build *b, uint32_t n, int64_t i); /* n[i], named "getitem" */

/* Edits that are not new nodes. All of them set r->changed. */

/* Replaces every use of `old` by `with`. */
void build_replace(struct pass_run *r, uint32_t old, uint32_t with);
/* Replaces one use: value number `slot` of `user`'s flat list, which must be a node. */
void build_replace_in(struct pass_run *r, uint32_t user, uint32_t slot, uint32_t with);
/* May n be erased? Not if a nested graph mentions it by name. */
bool build_may_erase(struct pass_run *r, uint32_t n);
void build_erase(struct pass_run *r, uint32_t n); /* n must have no users */
void build_move(struct pass_run *r, uint32_t n, uint32_t before);

#endif
