/* Argument lists as flat arrays: a container is followed by its items.
 *
 *   (x, [1, 2], 'sum')   →   NODE x · LIST(2 items, span 2) · INT 1 · INT 2 · STR sum
 *
 * Walking everything is a plain loop and copying is memcpy, however deep the nesting.
 *
 *   kind                          a                  u
 *   BOOL INT                      -                  i
 *   FLOAT                         text as read       f
 *   STR                           content            i = source text with quotes, 0 = write repr
 *   NUMBER BYTES DTYPE LAYOUT FORMAT DEVICE NAME OP SYM TEXT KEY   text
 *   NODE                          node               i = use
 *   containers                    items              i = span: values that follow and belong to it
 */
#ifndef TUCK_GRAPH_VALUE_H
#define TUCK_GRAPH_VALUE_H

#include "base/buf.h"
#include "base/str.h"

static inline bool value_is_container(const tuck_value *v)
{
    return v->kind >= TUCK_V_LIST;
}

static inline const tuck_value *value_next(const tuck_value *v)
{
    return v + 1 + (value_is_container(v) ? v->u.i : 0);
}

/* Item i of a container whose items may be containers themselves. */
const tuck_value *value_item(const tuck_value *v, size_t i);

/* A growing flat list, for the reader and the builder of the public interface. */
struct value_list {
    VEC(tuck_value) v;
    VEC(uint32_t) open; /* positions of containers not yet closed */
};

void values_free(struct mem *m, struct value_list *l);

static inline void values_clear(struct value_list *l)
{
    l->v.len = 0;
    l->open.len = 0;
}

/* Appends a value; it counts as an item of the innermost open container. */
void values_push(struct mem *m, struct value_list *l, tuck_value v);
void values_open(struct mem *m, struct value_list *l, tuck_value_kind kind);
void values_close(struct value_list *l);

/* Python's repr of a string's content. */
void value_str_repr(struct buf *b, const char *s, size_t len);

/* The content of a string literal: without quotes, escapes resolved, as UTF-8. False: not a string
 * literal. */
bool value_str_decode(struct buf *b, const char *s, size_t len);

#endif
