/* Internals of the reader, shared by its files.
 *
 *   read.c        finds graphs in a text: classes, functions, and the text around them
 *   read_inputs.c signatures and prologues
 *   read_body.c   the statements of a body and the lines between them
 *   read_stmt.c   one statement of a body
 *   read_value.c  operands
 *   read_str.c    the str(graph) form
 *   read_util.c   positions, errors, blanks, names
 *   read_script.c what a runnable script says about its inputs and groups
 *
 * Functions return false when the text cannot be read; the error is then in the diagnostics, and no
 * document comes out. The cursor p runs over NUL-terminated text that is valid UTF-8.
 */
#ifndef TUCK_TEXT_READ_H
#define TUCK_TEXT_READ_H

#include "graph/graph.h"
#include "text/log_text.h"

struct pending_ann { /* `primals_1: "f32[4]"  # ParamAOTInput(..)` before a pytree prologue */
    str_id name;
    uint32_t ann;
    str_id descriptor;
};

struct script_storage { /* buf0 = reader.storage(..) */
    str_id device;
};

struct text_range {
    const char *from, *to;
};

struct reader {
    struct fx_store *store;
    struct mem *mem;
    tuck_diags *diags;
    tuck_doc *doc;
    const char *file;
    struct fx_texts texts;
    struct fx_text region; /* the part of a text whose prefix had to be found */

    const struct fx_text *text; /* the current one */
    struct diag_source source;
    const char *p, *end;
    const char *bol; /* beginning of the current line */
    uint32_t line;   /* its number in this text, from 0 */

    const char *pin; /* if set, diagnostics point here, because the cursor is in a rewritten copy */
    const char *stmt, *stmt_bol; /* where the current statement began */
    uint32_t stmt_line;          /* its line, to go back to for another attempt */

    tuck_graph *g;
    bool by_name;     /* names belong to a finished graph: look them up in its table */
    bool nested;      /* in a nested class: undefined names are allowed */
    bool failed;      /* an error was reported: do not try again */
    bool cut;         /* the error is that a graph has no end */
    int brackets;     /* open brackets around the operand: newlines are blanks there */
    uint32_t lenient; /* open reprs: names inside are not nodes */
    str_id comment;   /* the current comment */
    str_id lead;      /* raw lines before the current statement */
    uint32_t body_indent;
    bool indent_known; /* a line that will be printed has set body_indent */
    struct value_list vals;
    VEC(const char *) open_at_text; /* where each open container of vals began */
    struct buf tmp;
    VEC(uint32_t) freed; /* nodes freed by the current statement */
    VEC(struct pending_ann) pending;
    VEC(struct pending_ann) attribute; /* attributes of self, from a script's __init__ */
    VEC(struct script_storage) storage;
    VEC(uint32_t) storage_of;   /* by string: index in storage + 1, 0 if none */
    VEC(struct fx_group) group; /* as set up by a script */
    VEC(str_id) names;          /* names of an assignment to several */
    VEC(uint32_t) open_graph;   /* indents of the enclosing classes */
    VEC(tuck_graph *) open_at;
    bool want_descriptors;         /* reading an expanded return */
    VEC(struct text_range) before; /* the text before each graph */
    VEC(const char *) cut_note;    /* notes for errors about graphs that were skipped */
    enum { MAYBE_SCRIPT, IS_SCRIPT, NO_SCRIPT } script;
};

/* The text after the blanks at s: usually there is at most one, so this is faster than strspn(). */
static inline const char *after_blanks(const char *s)
{
    while (*s == ' ')
        s++;
    return s;
}

/* In read_util.c: */
struct diag_pos read_pos(struct reader *r, const char *at, size_t len);
bool read_error(struct reader *r, const char *at, size_t len, const char *note, const char *fmt,
                ...) __attribute__((format(printf, 5, 6)));
void read_warn(struct reader *r, const char *at, size_t len, const char *note, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
void read_again(struct reader *r);        /* goes back to the beginning of the statement */
void read_newline(struct reader *r);      /* steps over the '\n' at the cursor */
void read_blanks(struct reader *r);       /* skips blanks of this line */
void read_space(struct reader *r);        /* skips blanks, newlines and comments inside brackets */
size_t ident_len(const char *s);          /* of the identifier at s, 0 if none */
size_t path_len(const char *s, size_t n); /* of a.b.c at s, whose first identifier is n long */
bool starts_with(const char *s, const char *prefix);
uint32_t read_define(struct reader *r, str_id name, const char *at, struct fx_node init);
uint32_t read_lookup(struct reader *r, str_id name); /* node of that name, 0 if none */
/* Scans a whole statement with balanced strings and brackets, up to the newline, ';' or comment
 * outside. Reports errors. The cursor ends on the terminator. */
bool read_balanced(struct reader *r);

uint32_t read_file_line(const struct reader *r, uint32_t line); /* for a line of this text */
void read_skip_line(struct reader *r);
void read_go_to(struct reader *r, const char *p, const char *bol, uint32_t line);

static inline str_id read_intern(struct reader *r, const char *s, size_t len)
{
    return str_intern(&r->store->str, s, len);
}

/* In read_inputs.c: */
bool read_signature(struct reader *r); /* from after "def forward(" to the line after the colon */
/* Is there a prologue at the cursor, the first statement of the body? Sets *done if the inputs are
 * known. */
bool read_prologue(struct reader *r, bool *done);
bool read_at_bare_annotation(struct reader *r);
bool read_params_to_nodes(struct reader *r); /* the parameters are the placeholders */

/* In read_body.c: */
bool read_body(struct reader *r, size_t def_indent); /* up to and including its return */
/* where the name of the class at s ends; NULL if none */
const char *read_class_line(const char *s);
bool read_is_profiler(const char *s); /* a line that gm.code adds when it records calls */
bool read_is_wrap(const char *s);     /* a line that gm.code puts before a bare def */

/* In read_stmt.c: */
enum stmt { STMT_ERROR, STMT_NODE, STMT_RETURN, STMT_SKIP };
enum stmt read_statement(struct reader *r, str_id lead);
bool read_annotation(struct reader *r, const char *stop_at, uint32_t *ann_out);

/* In read_value.c: these return false without a message; the caller tries something else or
 * reports. */
bool read_operand(struct reader *r, bool expressions);
/* Arguments up to the closing parenthesis; the cursor is after the opening one. */
bool read_arguments(struct reader *r, uint32_t *n_args, uint32_t *n_kwargs);
/* The text from..to as one value: names of nodes in it are uses, everything else stays
 * unchanged. */
void read_raw(struct reader *r, const char *from, const char *to);

/* In read_str.c: */
bool read_strgraph(struct reader *r);

/* In read_script.c: */
bool read_script_line(struct reader *r); /* true if it belonged to load_args or similar */

#endif
