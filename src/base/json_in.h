/* Reads JSON: jansson parses it; this finds where in the text a member is, so that every error has
 * a line and names the member.
 *
 * jansson.h is not included here, because both it and json.h have a json_null().
 *
 * A place is a chain of struct jin_at on the stack, from the root to the member that is looked at:
 *
 *   struct jin_at links = jin_member(&root, "links"), gbps = jin_member(&links, "gbps");
 *   jin_want_number(in, &gbps, 0, false, 1e6, &v);  // c.json:4:31: error: links.gbps: must be …
 *
 * Errors are recorded in `bad`; readers go on, and the caller checks it at the end.
 */
#ifndef TUCK_BASE_JSON_IN_H
#define TUCK_BASE_JSON_IN_H

#include "base/diag.h"

struct jin {
    struct diag_source source;
    tuck_diags *diags;
    struct json_t *root;
    bool bad;
    uint32_t n_said; /* errors reported so far; after JIN_MOST they are only counted */
};

enum {
    JIN_MOST = 20
}; /* each position is searched in the text: a file full of errors must not take long */

struct jin_at {
    const struct jin_at *up; /* NULL for the root */
    const char *key;         /* NULL for item `index` of a list */
    size_t index;
    const struct json_t *v; /* NULL if absent */
};

/* The caller keeps the text, which must live until jin_done(). TUCK_ESYNTAX: not JSON; reported. */
tuck_status jin_text(struct jin *in, const char *text, size_t len, const char *name,
                     tuck_diags *diags);
void jin_done(struct jin *in);

/* Parses a whole file: the text is NUL-terminated and freed afterwards. */
typedef tuck_status (*file_text_fn)(const char *text, size_t len, const char *name,
                                    const tuck_allocator *alloc, tuck_diags *diags, void *out);
/* path "-": standard input. */
tuck_status file_read(const char *path, const tuck_allocator *alloc, tuck_diags *diags,
                      file_text_fn read, void *out);

struct jin_at jin_root(const struct jin *in);
struct jin_at jin_member(const struct jin_at *at, const char *key);
struct jin_at jin_item(const struct jin_at *at, size_t index);
bool jin_there(const struct jin_at *at); /* present and not null */
size_t jin_len(const struct jin_at *at); /* items of a list or members of an object; 0 for others */

/* The members of an object in their order:  for (void *i = jin_first(&at); i;
 * i = jin_next(&at, i)) … */
void *jin_first(const struct jin_at *at);
void *jin_next(const struct jin_at *at, void *i);
struct jin_at jin_at_iter(const struct jin_at *at, void *i);

/* "member.path: message", at the member's position; for an absent one at its parent's. */
void jin_error(struct jin *in, const struct jin_at *at, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void jin_warning(struct jin *in, const struct jin_at *at, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* "must be WHAT, found …" */
void jin_expected(struct jin *in, const struct jin_at *at, const char *what);

/* The value at `at`. False: it has another kind or is out of range, and an error was reported. */
bool jin_want_object(struct jin *in, const struct jin_at *at);
bool jin_want_list(struct jin *in, const struct jin_at *at);
bool jin_want_str(struct jin *in, const struct jin_at *at, const char **out);
bool jin_want_bool(struct jin *in, const struct jin_at *at, bool *out);
bool jin_want_int(struct jin *in, const struct jin_at *at, int64_t low, int64_t high, int64_t *out);
/* low < value <= high, or low <= value if `closed`. */
bool jin_want_number(struct jin *in, const struct jin_at *at, double low, bool closed, double high,
                     double *out);

/* Every member of an object must be one of these; names that begin with '_' are comments. */
void jin_known(struct jin *in, const struct jin_at *at, const char *const *names, size_t n);

#endif
