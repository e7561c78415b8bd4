/* Internals of the runner of golden tests. Memory is not freed: each test file has a process of its
 * own, which ends after it. */
#ifndef TUCK_TESTS_RUNNER_H
#define TUCK_TESTS_RUNNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* The options of the command line; in golden_run.c. */
struct runner_options {
    bool bless, verbose;
    int seconds; /* CPU time that a command may take */
    int wall;    /* seconds after which a command counts as hung, even on a busy machine */
    char *root;  /* absolute */
    char *temp;  /* absolute; holds bin/ and a directory for each test file */
};
extern struct runner_options opt;

/* ---- text.c: small tools ---- */

/* Bytes, not necessarily text; those of a buf are followed by a NUL that is not counted. */
typedef struct {
    const char *p;
    size_t n;
} span;

typedef struct {
    char *p;
    size_t n, cap;
} buf;

/* Ends without the leak check that a sanitizer makes at exit. */
_Noreturn void leave(int status);
_Noreturn void die(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void *grow(void *p, size_t count, size_t size);
void buf_add(buf *b, const char *p, size_t n);
void buf_str(buf *b, const char *s);
span buf_span(const buf *b);
bool span_eq(span a, span b);
bool starts(span s, const char *with);
char *format(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Cuts the next line off *rest; the line has no newline. */
span next_line(span *rest);
void read_fd(int fd, buf *b);
bool read_file(const char *path, buf *b);
bool write_file(const char *path, span s);

/* Makes room for one more element in an array that is reallocated at each power of two. */
#define PUSH(array, count)                                                                         \
    ((((count) & ((count)-1)) == 0                                                                 \
          ? (void)((array) = grow((array), (count) ? 2 * (count) : 1, sizeof *(array)))            \
          : (void)0),                                                                              \
     &(array)[(count)++])

/* ---- parse.c: a test file ---- */

enum kind { TO_FILE, TO_STDIN, STDOUT, STDERR, EXIT, NOTE };

typedef struct {
    enum kind kind;
    char *name; /* of a file */
    int status; /* of an exit section */
    bool bare;  /* standard output without a header, right after the command */
    bool no_newline;
    bool separated;  /* a blank line follows that is not part of it */
    size_t from, to; /* in the text: header and content, without that blank line */
    span body;       /* the content as written in the test */
} section;

typedef struct {
    int line;
    char *command; /* NULL: only files so far */
    section *sections;
    size_t count;
    size_t output_at; /* the end of the command's line */
    size_t append_at; /* where a missing section would go */
    bool separated;   /* a blank line follows append_at */
} testcase;

typedef struct {
    const char *path;
    bool markdown;
    buf text;
    testcase *cases;
    size_t count;
    char *error; /* what could not be parsed; error_line says where */
    int error_line;
} testfile;

bool needs_escape(span line);
/* The content of a section: its lines without their escapes. */
span content(const section *s);
const section *find(const testcase *c, enum kind kind);
bool is_blank(span s);
void parse(testfile *t);

/* ---- command.c: running a command ---- */

typedef struct {
    char **word;
    size_t count;
} words;

typedef struct {
    span out, err;
    int status;    /* exit status */
    char *trouble; /* it did not end by itself: never an expected outcome */
} outcome;

/* Splits as a shell does; rejects what only a shell could do. NULL, or what is wrong. */
const char *split(const char *s, words *w);
bool is_assignment(const char *word);
/* Nothing of the user's environment may affect a test. */
words environment(const char *dir);
int memory_file(span s);
outcome run(char **argv, char **env, const char *dir, span input);
span normalise(span s, const char *dir);

/* ---- difference.c: showing what differs ---- */

void print_difference(FILE *f, const char *what, span expected, span actual);

/* ---- rewrite.c: what is expected becomes what came out ---- */

typedef struct {
    size_t from, to;
    buf text;
} change;

typedef struct {
    change *list;
    size_t count;
} changes;

void bless(const testfile *t, const testcase *c, const outcome *o, changes *ch);
void rewrite(const testfile *t, changes *ch);

#endif
