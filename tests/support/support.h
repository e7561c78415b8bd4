/* What several tests need: texts, graphs from texts, an allocator that fails on demand, random
 * numbers, and a check of a graph's users that shares nothing with the library's own. No cmocka
 * here: fuzz targets link this, too. On failure these functions end the program. */
#ifndef TUCK_TESTS_SUPPORT_H
#define TUCK_TESTS_SUPPORT_H

#include "tuck_experimental.h"

struct text {
    char *at; /* NUL-terminated */
    size_t len, cap;
};

bool text_add(void *ctx, const char *s, size_t n);    /* a tuck_write_fn, like the next two */
bool text_drop(void *ctx, const char *s, size_t n);   /* accepts and drops the text */
bool text_refuse(void *ctx, const char *s, size_t n); /* refuses the text */
void text_clear(struct text *t);
void text_done(struct text *t);

/* A whole file; ends the program if it cannot be read. */
struct text text_of_file(const char *path);
void text_to_file(const char *path, const struct text *t);

/* The graph as text, to be freed. */
char *graph_text(const tuck_graph *g);

/* Reads a text with graphs. If that fails, returns NULL and puts the reason into `why`. */
tuck_doc *read_or_null(const char *text, struct text *why);
tuck_doc *read_or_die(const char *text);

/* All diagnostics, one line each: "t.txt:3:9: error: message" with notes in brackets. To be
 * freed. */
char *diags_text(const tuck_diags *d);

/* The files below a folder whose names end like this, sorted. Free with free_paths(). */
char **find_paths(const char *dir, const char *end, size_t *n_out);
void free_paths(char **paths, size_t n);

/* Does printing, reading and printing again give the same text, nodes, targets and arguments? NULL
 * if so, else what went wrong, to be freed. */
char *check_fixpoint(const tuck_graph *g);

/* Do the users of every node agree with the arguments, recounted through the public interface? NULL
 * if so, else what is wrong, to be freed. */
char *check_users(const tuck_graph *g);

/* ---- an allocator that counts, and fails ---- */

struct faulty {
    size_t calls;   /* requests for memory so far */
    size_t fail_at; /* the number of the request that fails, from 1; 0 = none */
    bool stay;      /* and all later ones */
    size_t live;    /* bytes handed out */
    bool failed;
};

tuck_allocator faulty_allocator(struct faulty *f);

/* ---- random numbers ---- */

struct rng {
    uint64_t state;
};

uint64_t rng_next(struct rng *r);
uint32_t rng_below(struct rng *r, uint32_t n); /* 0 for n == 0 */

/* The seed of a property test: TUCK_SEED if set; else a fixed one, or the time in a soak. It is
 * printed, so that a failure can be repeated. */
uint64_t seed_of(const char *test);
/* n, or 10 times as many in a soak. */
size_t rounds(size_t n);

#endif
