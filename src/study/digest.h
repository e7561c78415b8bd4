/* Short numbers for what ranks must agree on: the sequence of communication of a graph, and the
 * program that it is. Neither depends on the names of nodes and groups, on the index of a device or
 * on constants of a rank.
 *
 * The sequence is a text with a line for each collective, in order: kind, number of the group,
 * dtype, reduce op, bytes of the message, separated by single blanks; docs/simulation.md has an
 * example. Its digest is the 64-bit FNV-1a of that text.
 */
#ifndef TUCK_STUDY_DIGEST_H
#define TUCK_STUDY_DIGEST_H

#include "base/arena.h"
#include "graph/symbol_values.h"

#define DIGEST_EMPTY 0xcbf29ce484222325u

static inline uint64_t digest_add(uint64_t h, const char *s, size_t len)
{
    for (size_t i = 0; i < len; i++)
        h = (h ^ (unsigned char)s[i]) * 0x100000001b3u;
    return h;
}

/* The sequence of a graph whose types are inferred. Must be ended, also after a failure. */
struct sequence {
    struct mem mem;
    struct buf text;
    uint64_t digest;
};

TUCK_MUST_CHECK tuck_status sequence_of(const tuck_graph *g, const struct assume *assume,
                                        struct sequence *out);
void sequence_end(struct sequence *s);

/* What each node is, by its place: operator, operands by place, shape, dtype, kind of device.
 * Names, numbers among the operands and the text around it do not count. */
struct program_digest {
    struct mem mem;
    struct arena arena;
    uint32_t n;     /* nodes */
    uint32_t *hash; /* of each node, in order */
    uint32_t *node; /* its id */
    uint64_t all;
};

/* Needs types. Must be ended, also after a failure. */
TUCK_MUST_CHECK tuck_status program_digest_of(const tuck_graph *g, struct program_digest *out);
void program_digest_end(struct program_digest *d);

#endif
