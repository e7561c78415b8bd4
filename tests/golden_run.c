/*
 * Runs golden tests: commands with the output they must give, in one readable file.
 *
 *     # What is shown. Lines before the first command or file are comments.
 *     --- file graph.txt
 *     ...content...
 *     $ tuck show graph.txt
 *     --- stdin
 *     ...what the command reads...
 *     --- stdout
 *     ...expected...
 *     --- stderr
 *     ...expected...
 *     --- exit 1
 *
 * Everything below a command is optional: no output and exit status 0 are what is expected then.
 * Text right after the command is its standard output, so that a test may read like a terminal:
 *
 *     $ tuck --version
 *     tuck 0.2.0
 *
 * The commands of a file run one after another in one fresh directory. Files that stand before a
 * command, or between it and what it must give, are written just before it runs. A command is split
 * into words as a shell does it, with quotes; there is no shell. It may start with NAME=value. In
 * it, @ROOT@ is the root of the repository; in outputs the root is shown as @ROOT@, and the fresh
 * directory is left out of paths. The environment is empty but for what it takes to run; `tuck` is
 * the program under test (-t), `golden_run` this one.
 *
 * A section ends at the next line that starts with "--- " or "$ ". At the end of what belongs to a
 * command, one blank line only separates. Text that itself starts with "--- ", "$ ", "```" or "\\"
 * gets a backslash before it. "--- stdout (no newline)" says that the last line does not end. "---
 * # words" is a comment between commands.
 *
 * In Markdown the tests are the blocks fenced as ```tuck-test; all blocks of a page share one
 * directory, in which `examples` is the one of the repository.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---------------------------------------------------------------- small tools
 *
 * Memory is not freed: each test file has a process of its own, which ends after it.
 */

/* Ends without the leak check that a sanitizer makes at exit. */
_Noreturn static void leave(int status)
{
    fflush(NULL);
    _exit(status);
}

_Noreturn static void die(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fputs("golden_run: ", stderr);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
    leave(2);
}

static void *grow(void *p, size_t count, size_t size)
{
    p = reallocarray(p, count, size);
    if (p == NULL)
        die("out of memory");
    return p;
}

/* Makes room for one more element in an array that is reallocated at each power of two. */
#define PUSH(array, count)                                                                         \
    ((((count) & ((count)-1)) == 0                                                                 \
          ? (void)((array) = grow((array), (count) ? 2 * (count) : 1, sizeof *(array)))            \
          : (void)0),                                                                              \
     &(array)[(count)++])

/* Bytes, not necessarily text; those of a buf are followed by a NUL that is not counted. */
typedef struct {
    const char *p;
    size_t n;
} span;

typedef struct {
    char *p;
    size_t n, cap;
} buf;

static void buf_add(buf *b, const char *p, size_t n)
{
    if (b->n + n + 1 > b->cap) {
        b->cap = 2 * (b->n + n) + 64;
        b->p = grow(b->p, b->cap, 1);
    }
    if (n > 0)
        memcpy(b->p + b->n, p, n);
    b->n += n;
    b->p[b->n] = '\0';
}

static void buf_str(buf *b, const char *s)
{
    buf_add(b, s, strlen(s));
}

static span buf_span(const buf *b)
{
    return (span){b->p, b->n};
}

static bool span_eq(span a, span b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

static bool starts(span s, const char *with)
{
    size_t n = strlen(with);
    return s.n >= n && memcmp(s.p, with, n) == 0;
}

static char *format(const char *fmt, ...)
{
    char *s = NULL;
    va_list ap;
    va_start(ap, fmt);
    if (vasprintf(&s, fmt, ap) < 0)
        die("out of memory");
    va_end(ap);
    return s;
}

/* Cuts the next line off *rest; the line has no newline. */
static span next_line(span *rest)
{
    const char *end = memchr(rest->p, '\n', rest->n);
    span line = {rest->p, end ? (size_t)(end - rest->p) : rest->n};
    size_t used = line.n + (end != NULL);
    rest->p += used;
    rest->n -= used;
    return line;
}

static void read_fd(int fd, buf *b)
{
    char block[1 << 16];
    ssize_t got;
    while ((got = read(fd, block, sizeof block)) > 0)
        buf_add(b, block, (size_t)got);
    buf_add(b, "", 0);
}

static bool read_file(const char *path, buf *b)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    read_fd(fd, b);
    close(fd);
    return true;
}

static bool write_file(const char *path, span s)
{
    FILE *f = fopen(path, "wbe");
    if (f == NULL)
        return false;
    bool ok = fwrite(s.p, 1, s.n, f) == s.n;
    return (fclose(f) == 0) && ok;
}

/* ---------------------------------------------------------------- options */

static struct {
    bool bless, verbose;
    int seconds; /* CPU time that a command may take */
    int wall;    /* seconds after which a command counts as hung, even on a busy machine */
    char *root;  /* absolute */
    char *temp;  /* absolute; holds bin/ and a directory for each test file */
} opt = {.seconds = 20, .wall = 600};

/* ---------------------------------------------------------------- a test file, parsed */

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

static void parse_error(testfile *t, int line, char *message)
{
    if (t->error == NULL) {
        t->error = message;
        t->error_line = line;
    }
}

static bool is_escaped(span line)
{
    return starts(line, "\\--- ") || starts(line, "\\$ ") || starts(line, "\\```") ||
           starts(line, "\\\\");
}

static bool needs_escape(span line)
{
    return starts(line, "--- ") || starts(line, "$ ") || starts(line, "```") || is_escaped(line);
}

/* The content of a section: its lines without their escapes. */
static span content(const section *s)
{
    buf b = {0};
    span rest = s->body;
    buf_add(&b, "", 0);
    while (rest.n > 0) {
        span line = next_line(&rest);
        size_t skip = is_escaped(line);
        buf_add(&b, line.p + skip, line.n - skip);
        buf_add(&b, "\n", 1);
    }
    if (s->no_newline && b.n > 0)
        b.n--;
    return buf_span(&b);
}

static const section *find(const testcase *c, enum kind kind)
{
    for (size_t i = 0; i < c->count; i++)
        if (c->sections[i].kind == kind)
            return &c->sections[i];
    return NULL;
}

/* Does the path stay below the test's directory? */
static bool is_safe_name(const char *name, bool markdown)
{
    return name[0] != '\0' && name[0] != '/' && strstr(name, "..") == NULL &&
           !(markdown && strncmp(name, "examples/", 9) == 0);
}

/* Reads the line "--- ..." into s. */
static void parse_header(testfile *t, int line, span text, section *s)
{
    static const char tail[] = " (no newline)";
    char *head = strndup(text.p + 4, text.n - 4);
    size_t n = strlen(head), k = strlen(tail);
    if (n > k && strcmp(head + n - k, tail) == 0) {
        head[n - k] = '\0';
        s->no_newline = true;
    }
    char *end;
    if (head[0] == '#') {
        s->kind = NOTE;
    } else if (strncmp(head, "file ", 5) == 0) {
        s->kind = TO_FILE;
        s->name = head + 5;
        if (!is_safe_name(s->name, t->markdown))
            parse_error(t, line, format("file name '%s' leaves the test's directory", s->name));
    } else if (strcmp(head, "stdin") == 0) {
        s->kind = TO_STDIN;
    } else if (strcmp(head, "stdout") == 0) {
        s->kind = STDOUT;
    } else if (strcmp(head, "stderr") == 0) {
        s->kind = STDERR;
    } else if (strncmp(head, "exit ", 5) == 0) {
        s->kind = EXIT;
        s->status = (int)strtol(head + 5, &end, 10);
        if (end == head + 5 || *end != '\0' || s->status < 0 || s->status > 255)
            parse_error(t, line, format("'%s' is no exit status", head + 5));
    } else {
        parse_error(
            t, line,
            format("no such section: '%s' (text that starts so is written '\\--- ')", head));
    }
}

static bool is_blank(span s)
{
    while (s.n > 0 && s.p[s.n - 1] == '\n')
        s.n--;
    return s.n == 0;
}

/* The last section of c continues up to offset `to`. */
static void extend(const testfile *t, const testcase *c, size_t to)
{
    section *s = &c->sections[c->count - 1];
    s->body.n = to - (size_t)(s->body.p - t->text.p);
}

/* Ends the last section of c at offset `to`; `last`: what follows does not belong to c. */
static void close_section(testfile *t, testcase *c, int line, size_t to, bool last)
{
    const char *text = t->text.p;
    section *s = &c->sections[c->count - 1];
    size_t body = (size_t)(s->body.p - text);
    if (s->bare && is_blank(s->body)) { /* no text follows the command */
        c->append_at = s->from;
        c->separated = s->body.n > 0;
        c->count--;
        return;
    }
    if (last && to > body && text[to - 1] == '\n' && (to - 1 == body || text[to - 2] == '\n')) {
        s->body.n--;
        s->separated = true;
    }
    s->to = body + s->body.n;
    if (s->kind == NOTE)
        return;
    c->append_at = s->to;
    c->separated = s->separated;
    if (s->kind == EXIT && s->body.n > 0)
        parse_error(t, line, format("text after an exit status"));
    if (c->command == NULL && s->kind != TO_FILE)
        parse_error(t, line, format("before a command there are files only"));
    for (size_t i = 0; i + 1 < c->count; i++)
        if (c->sections[i].kind == s->kind && s->kind != TO_FILE)
            parse_error(t, line, format("the second section of this kind for one command"));
}

/* Does a file at this point belong to the next command? It does if the output of c is complete, or
 * if a comment or blank line right after the command ended it. */
static bool is_complete(const testcase *c)
{
    for (size_t i = 0; i < c->count; i++) {
        const section *s = &c->sections[i];
        if (s->kind == TO_FILE || s->kind == TO_STDIN || s->from < c->output_at)
            continue;
        if (!s->bare || s->body.n > 0)
            return true;
    }
    return c->command != NULL && c->separated;
}

/* Cases in the lines of [from, to), which start at line number `line`. */
static void parse_block(testfile *t, size_t from, size_t to, int line)
{
    span rest = {t->text.p + from, to - from};
    int opened = 0; /* the line of the open section, or 0 */
    for (; rest.n > 0; line++) {
        size_t at = (size_t)(rest.p - t->text.p);
        span text = next_line(&rest);
        size_t next = (size_t)(rest.p - t->text.p);
        bool is_command = starts(text, "$ ");
        if (!is_command && !starts(text, "--- ")) {
            if (opened == 0 && text.n > 0 && text.p[0] != '#')
                parse_error(t, line, format("expected '# comment', '--- file' or '$ command'"));
            continue;
        }
        section s = {.kind = STDOUT, .bare = true, .from = next, .body = {rest.p, 0}};
        if (!is_command) {
            s = (section){.from = at, .body = s.body};
            parse_header(t, line, text, &s);
        }
        testcase *c = t->count > 0 ? &t->cases[t->count - 1] : NULL;
        if (opened > 0)
            extend(t, c, at);
        bool for_next = is_command || (s.kind == TO_FILE && c != NULL && is_complete(c));
        if (opened > 0)
            close_section(t, c, opened, at, for_next || s.kind == NOTE);

        /* Files before a command belong to it, also those from an earlier block. */
        if (c == NULL || (c->command != NULL && (for_next || opened == 0))) {
            c = PUSH(t->cases, t->count);
            *c = (testcase){.line = line};
        }
        if (is_command) {
            c->line = line;
            c->command = strndup(text.p + 2, text.n - 2);
            c->output_at = next;
        }
        *PUSH(c->sections, c->count) = s;
        opened = line;
    }
    if (opened > 0) {
        extend(t, &t->cases[t->count - 1], to);
        close_section(t, &t->cases[t->count - 1], opened, to, true);
    }
}

/* The number of characters of the fence that opens or closes a block in Markdown, or 0. */
static size_t fence(span line)
{
    size_t n = 0;
    while (n < line.n && line.p[n] == line.p[0])
        n++;
    return n >= 3 && (line.p[0] == '`' || line.p[0] == '~') ? n : 0;
}

static void parse_markdown(testfile *t)
{
    span rest = buf_span(&t->text);
    size_t open = 0, from = 0; /* the length of the open fence; where its block begins */
    char mark = 0;
    bool ours = false;
    int from_line = 0;
    for (int line = 1; rest.n > 0; line++) {
        size_t at = (size_t)(rest.p - t->text.p);
        span text = next_line(&rest);
        size_t n = fence(text);
        if (n == 0)
            continue;
        if (open == 0) {
            open = n;
            mark = text.p[0];
            ours = span_eq((span){text.p + n, text.n - n}, (span){"tuck-test", 9});
            from = at + text.n + 1;
            from_line = line + 1;
        } else if (text.p[0] == mark && n >= open && n == text.n) {
            open = 0;
            if (ours)
                parse_block(t, from, at, from_line);
        }
    }
    if (open > 0 && ours)
        parse_error(t, from_line - 1, format("this block is not closed"));
}

static void parse(testfile *t)
{
    if (!read_file(t->path, &t->text)) {
        parse_error(t, 0, format("%s", strerror(errno)));
        return;
    }
    size_t n = strlen(t->path);
    t->markdown = n > 3 && strcmp(t->path + n - 3, ".md") == 0;
    if (t->text.n > 0 && t->text.p[t->text.n - 1] != '\n')
        parse_error(t, 0, format("the last line has no newline"));
    else if (t->markdown)
        parse_markdown(t);
    else
        parse_block(t, 0, t->text.n, 1);
    if (t->count > 0 && t->cases[t->count - 1].command == NULL)
        parse_error(t, t->cases[t->count - 1].line, format("no command follows"));
    else if (t->count == 0 && !t->markdown)
        parse_error(t, 0, format("there is no command in it"));
}

/* ---------------------------------------------------------------- running a command */

typedef struct {
    char **word;
    size_t count;
} words;

/* Splits as a shell does; rejects what only a shell could do. NULL, or what is wrong. */
static const char *split(const char *s, words *w)
{
    buf b = {0};
    bool inside = false; /* in a word */
    char quote = 0;
    for (;; s++) {
        if (*s == '\0' || (quote == 0 && (*s == ' ' || *s == '\t'))) {
            if (quote != 0)
                return "a quote is not closed";
            if (inside)
                *PUSH(w->word, w->count) = b.p;
            if (*s == '\0')
                break;
            b = (buf){0};
            inside = false;
            continue;
        }
        if (!inside)
            buf_add(&b, "", 0);
        inside = true;
        if (quote != 0 && *s == quote) {
            quote = 0;
        } else if (quote == 0 && (*s == '\'' || *s == '"')) {
            quote = *s;
        } else if (*s == '\\' && quote != '\'' && s[1] != '\0' &&
                   (quote == 0 || strchr("\"\\$`", s[1]) != NULL)) {
            buf_add(&b, ++s, 1);
        } else if ((quote == 0 && strchr("|&;<>()*?[", *s) != NULL) ||
                   (quote != '\'' && strchr("$`", *s) != NULL)) {
            return "there is no shell to interpret |&;<>()$`*?[; quote them";
        } else if (strncmp(s, "@ROOT@", 6) == 0) {
            buf_str(&b, opt.root);
            s += 5;
        } else {
            buf_add(&b, s, 1);
        }
    }
    *PUSH(w->word, w->count) = NULL;
    w->count--;
    return w->count > 0 ? NULL : "the command is empty";
}

static bool is_assignment(const char *word)
{
    size_t n = strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789");
    return n > 0 && word[n] == '=';
}

/* Nothing of the user's environment may affect a test. */
static words environment(const char *dir)
{
    static const char *const kept[] = {"LD_LIBRARY_PATH", "TMPDIR",        "ASAN_OPTIONS",
                                       "LSAN_OPTIONS",    "UBSAN_OPTIONS", "TSAN_OPTIONS"};
    words env = {0};
    const char *path = getenv("PATH");
    *PUSH(env.word, env.count) = format("PATH=%s/bin:%s", opt.temp, path ? path : "/usr/bin:/bin");
    *PUSH(env.word, env.count) = format("HOME=%s", dir);
    *PUSH(env.word, env.count) = format("LC_ALL=C");
    *PUSH(env.word, env.count) = format("TZ=UTC");
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        if (getenv(kept[i]) != NULL)
            *PUSH(env.word, env.count) = format("%s=%s", kept[i], getenv(kept[i]));
    return env;
}

static int memory_file(span s)
{
    int fd = memfd_create("golden", MFD_CLOEXEC);
    if (fd < 0)
        die("memfd_create: %s", strerror(errno));
    while (s.n > 0) {
        ssize_t n = write(fd, s.p, s.n);
        if (n < 0)
            die("write: %s", strerror(errno));
        s.p += n;
        s.n -= (size_t)n;
    }
    lseek(fd, 0, SEEK_SET);
    return fd;
}

typedef struct {
    span out, err;
    int status;    /* exit status */
    char *trouble; /* it did not end by itself: never an expected outcome */
} outcome;

/* In the child. */
_Noreturn static void become(char **argv, char **env, const char *dir, const int fd[3])
{
    const struct rlimit no_core = {0, 0};
    const struct rlimit gigabyte = {1u << 30, 1u << 30}; /* for a command that prints without end */
    const struct rlimit cpu = {(rlim_t)opt.seconds, (rlim_t)opt.seconds + 5};
    sigset_t none;
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setrlimit(RLIMIT_CORE, &no_core);
    setrlimit(RLIMIT_FSIZE, &gigabyte);
    setrlimit(RLIMIT_CPU, &cpu);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    for (int i = 0; i < 3; i++)
        dup2(fd[i], i);
    if (chdir(dir) == 0) {
        environ = env; /* execvp looks for the program in this PATH */
        execvp(argv[0], argv);
    }
    dprintf(2, "golden_run: %s: %s\n", argv[0], strerror(errno));
    _exit(127);
}

/* Waits until the child has ended; false if that took too long. SIGCHLD is blocked. */
static bool wait_for(pid_t pid, int *status)
{
    sigset_t child;
    struct timespec now, end;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += opt.wall;
    while (waitpid(pid, status, WNOHANG) == 0) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (now.tv_sec >= end.tv_sec)
            return false;
        struct timespec left = {end.tv_sec - now.tv_sec, 0};
        sigtimedwait(&child, NULL, &left);
    }
    return true;
}

static outcome run(char **argv, char **env, const char *dir, span input)
{
    outcome o = {0};
    buf out = {0}, err = {0};
    int status = 0;
    const int fd[3] = {memory_file(input), memory_file((span){0}), memory_file((span){0})};
    pid_t pid = fork();
    if (pid < 0)
        die("fork: %s", strerror(errno));
    if (pid == 0)
        become(argv, env, dir, fd);
    setpgid(pid, pid);
    if (!wait_for(pid, &status)) {
        o.trouble = format("still running after %d s", opt.wall);
        kill(-pid, SIGKILL);
        waitpid(pid, &status, 0);
    } else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU) {
        o.trouble = format("took more than %d s of processor time", opt.seconds);
    } else if (WIFSIGNALED(status)) {
        o.trouble = format("killed by signal %d (%s)", WTERMSIG(status),
                           strsignal(WTERMSIG(status)));
    }
    kill(-pid, SIGKILL); /* anything it left running */
    o.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    lseek(fd[1], 0, SEEK_SET);
    lseek(fd[2], 0, SEEK_SET);
    read_fd(fd[1], &out);
    read_fd(fd[2], &err);
    o.out = buf_span(&out);
    o.err = buf_span(&err);
    for (int i = 0; i < 3; i++)
        close(fd[i]);
    return o;
}

/* Replaces the path `from`, unless it is the beginning of a longer name. */
static span replace_path(span s, const char *from, const char *to)
{
    buf b = {0};
    size_t n = strlen(from);
    buf_add(&b, "", 0);
    while (s.n > 0) {
        const char *hit = memmem(s.p, s.n, from, n);
        size_t before = hit ? (size_t)(hit - s.p) : s.n;
        buf_add(&b, s.p, before);
        s.p += before;
        s.n -= before;
        if (hit == NULL)
            break;
        bool whole = s.n == n || from[n - 1] == '/' || strchr("/:,;.)'\" \n", s.p[n]) != NULL;
        buf_str(&b, whole ? to : from);
        s.p += n;
        s.n -= n;
    }
    return buf_span(&b);
}

static span normalise(span s, const char *dir)
{
    s = replace_path(s, format("%s/", dir), "");
    s = replace_path(s, dir, ".");
    s = replace_path(s, format("%s/bin/", opt.temp), "");
    return replace_path(s, opt.root, "@ROOT@");
}

/* ---------------------------------------------------------------- showing a difference */

typedef struct {
    span *line;
    size_t count;
    bool no_newline;
} lines;

static lines split_lines(span s)
{
    lines l = {.no_newline = s.n > 0 && s.p[s.n - 1] != '\n'};
    while (s.n > 0) {
        span line = next_line(&s);
        *PUSH(l.line, l.count) = line;
    }
    return l;
}

static void print_line(FILE *f, char mark, span line)
{
    fprintf(f, "  %c", mark);
    for (size_t i = 0; i < line.n; i++) {
        unsigned char c = (unsigned char)line.p[i];
        bool visible = (c >= ' ' && c != 0x7f) || c == '\t';
        if (visible && !(c == ' ' && i + 1 == line.n))
            fputc(c, f);
        else
            fprintf(f, "\\x%02x", c);
    }
    fputc('\n', f);
}

typedef struct {
    char mark; /* ' ', '-', '+' */
    span line;
    size_t at; /* its line number in what was expected */
} edit;

/* The edits from a to b: a longest common subsequence of what differs, if that is affordable. */
static edit *compare(lines a, lines b, size_t *count_out)
{
    edit *edits = NULL;
    size_t count = 0, head = 0, tail = 0;
    while (head < a.count && head < b.count && span_eq(a.line[head], b.line[head]))
        head++;
    while (tail < a.count - head && tail < b.count - head &&
           span_eq(a.line[a.count - 1 - tail], b.line[b.count - 1 - tail]))
        tail++;
    size_t n = a.count - head - tail, m = b.count - head - tail, w = m + 1;
    unsigned *len = NULL; /* len[i * w + j]: of the sequence common to a[i..] and b[j..] */
    if (n < 4000 && m < 4000) {
        len = calloc((n + 1) * w, sizeof *len);
        if (len == NULL)
            die("out of memory");
        for (size_t i = n; i-- > 0;)
            for (size_t j = m; j-- > 0;) {
                unsigned down = len[(i + 1) * w + j], right = len[i * w + j + 1];
                len[i * w + j] = span_eq(a.line[head + i], b.line[head + j])
                                     ? len[(i + 1) * w + j + 1] + 1
                                     : (down > right ? down : right);
            }
    }
    for (size_t i = 0; i < head; i++)
        *PUSH(edits, count) = (edit){' ', a.line[i], i + 1};
    for (size_t i = 0, j = 0; i < n || j < m;) {
        span none = {0}, la = i < n ? a.line[head + i] : none, lb = j < m ? b.line[head + j] : none;
        if (i < n && j < m && len != NULL && span_eq(la, lb)) {
            *PUSH(edits, count) = (edit){' ', la, head + i + 1};
            i++, j++;
        } else if (i < n && (j == m || len == NULL || len[(i + 1) * w + j] >= len[i * w + j + 1])) {
            *PUSH(edits, count) = (edit){'-', la, head + i + 1};
            i++;
        } else {
            *PUSH(edits, count) = (edit){'+', lb, head + i + 1};
            j++;
        }
    }
    for (size_t i = a.count - tail; i < a.count; i++)
        *PUSH(edits, count) = (edit){' ', a.line[i], i + 1};
    free(len);
    *count_out = count;
    return edits;
}

static void print_difference(FILE *f, const char *what, span expected, span actual)
{
    enum { CONTEXT = 3, MOST = 120 };
    lines a = split_lines(expected), b = split_lines(actual);
    size_t count, shown = 0, after = 0; /* after: the first edit not yet printed */
    edit *edits = compare(a, b, &count);
    fprintf(f, "  --- %s, expected\n  +++ %s, actual\n", what, what);
    for (size_t i = 0; i < count; i++) {
        if (edits[i].mark == ' ')
            continue;
        size_t from = i > CONTEXT ? i - CONTEXT : 0, to = i;
        for (size_t k = i; k < count && k <= to + 2 * CONTEXT; k++)
            if (edits[k].mark != ' ')
                to = k;
        from = from < after ? after : from;
        after = to + 1 + CONTEXT < count ? to + 1 + CONTEXT : count;
        fprintf(f, "  @@ line %zu @@\n", edits[from].at);
        for (size_t k = from; k < after; k++) {
            if (shown++ >= MOST && !opt.verbose) {
                fprintf(f, "  ... and more (-v shows all)\n");
                return;
            }
            print_line(f, edits[k].mark, edits[k].line);
        }
        i = after - 1;
    }
    if (a.no_newline != b.no_newline)
        fprintf(f, "  the %s text has no newline at its end\n",
                a.no_newline ? "expected" : "actual");
}

/* ---------------------------------------------------------------- rewriting what is expected */

typedef struct {
    size_t from, to;
    buf text;
} change;

typedef struct {
    change *list;
    size_t count;
} changes;

/* A section as written in a test. `separated`: a blank line follows it. */
static void render(buf *b, const char *name, bool bare, span s, bool separated)
{
    bool no_newline = s.n > 0 && s.p[s.n - 1] != '\n', blank = false;
    if (!bare || no_newline || is_blank(s))
        buf_str(b, format("--- %s%s\n", name, no_newline ? " (no newline)" : ""));
    while (s.n > 0) {
        span line = next_line(&s);
        blank = line.n == 0;
        if (needs_escape(line))
            buf_add(b, "\\", 1);
        buf_add(b, line.p, line.n);
        buf_add(b, "\n", 1);
    }
    if (blank && !separated)
        buf_add(b, "\n", 1);
}

static void bless(const testfile *t, const testcase *c, const outcome *o, changes *ch)
{
    static const char *const names[] = {[STDOUT] = "stdout", [STDERR] = "stderr"};
    bool bare = t->markdown && c->append_at == c->output_at;
    buf missing = {0};
    for (enum kind k = STDOUT; k <= EXIT; k++) {
        const section *s = find(c, k);
        span actual = k == STDOUT ? o->out : o->err;
        buf b = {0};
        if (k == EXIT && o->status != 0)
            buf_str(&b, format("--- exit %d\n", o->status));
        else if (k != EXIT && actual.n > 0)
            render(&b, names[k], s ? s->bare : k == STDOUT && bare, actual,
                   s ? s->separated : c->separated);
        bool same = s != NULL && (k == EXIT ? s->status == o->status : span_eq(content(s), actual));
        if (s == NULL)
            buf_add(&missing, b.p, b.n);
        else if (!same)
            *PUSH(ch->list, ch->count) = (change){s->from, s->to, b};
    }
    if (missing.n > 0)
        *PUSH(ch->list, ch->count) = (change){c->append_at, c->append_at, missing};
}

static int by_place(const void *a, const void *b)
{
    const change *x = a, *y = b;
    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    return x->to < y->to ? -1 : x->to > y->to;
}

static void rewrite(const testfile *t, changes *ch)
{
    buf b = {0};
    size_t at = 0;
    qsort(ch->list, ch->count, sizeof *ch->list, by_place);
    for (size_t i = 0; i < ch->count; i++) {
        const change *c = &ch->list[i];
        buf_add(&b, t->text.p + at, c->from - at);
        buf_add(&b, c->text.p, c->text.n);
        at = c->to;
    }
    buf_add(&b, t->text.p + at, t->text.n - at);
    if (!write_file(t->path, buf_span(&b)))
        die("%s: %s", t->path, strerror(errno));
}

/* ---------------------------------------------------------------- one test file */

typedef struct {
    int passed, failed;
    bool done; /* its process ran to the end */
} tally;

static void write_section(const section *s, const char *dir)
{
    char *path = format("%s/%s", dir, s->name);
    for (char *p = path + strlen(dir) + 1; (p = strchr(p, '/')) != NULL; p++) {
        *p = '\0';
        mkdir(path, 0777);
        *p = '/';
    }
    if (!write_file(path, content(s)))
        die("%s: %s", path, strerror(errno));
}

/* Runs one command and writes what is wrong with it to f. */
static bool run_case(const testfile *t, const testcase *c, const char *dir, FILE *f, changes *ch)
{
    words argv = {0}, env = environment(dir);
    const section *in = find(c, TO_STDIN), *out = find(c, STDOUT), *err = find(c, STDERR);
    const section *status = find(c, EXIT);
    const char *wrong = split(c->command, &argv);
    size_t first = 0;
    for (size_t i = 0; i < c->count; i++)
        if (c->sections[i].kind == TO_FILE)
            write_section(&c->sections[i], dir);
    while (wrong == NULL && argv.word[first] != NULL && is_assignment(argv.word[first]))
        *PUSH(env.word, env.count) = argv.word[first++];
    *PUSH(env.word, env.count) = NULL;
    if (wrong == NULL && argv.word[first] == NULL)
        wrong = "there is no command behind the variables";
    if (wrong != NULL) {
        fprintf(f, "FAIL %s:%d: $ %s\n  %s\n", t->path, c->line, c->command, wrong);
        return false;
    }

    outcome o = run(argv.word + first, env.word, dir, in ? content(in) : (span){"", 0});
    o.out = normalise(o.out, dir);
    o.err = normalise(o.err, dir);
    span want_out = out ? content(out) : (span){"", 0};
    span want_err = err ? content(err) : (span){"", 0};
    int want = status ? status->status : 0;
    bool same_out = span_eq(want_out, o.out), same_err = span_eq(want_err, o.err);
    bool ok = o.trouble == NULL && o.status == want && same_out && same_err;
    if (ok || (opt.bless && o.trouble == NULL)) {
        if (!ok)
            bless(t, c, &o, ch);
        if (opt.verbose || !ok)
            fprintf(f, "%s %s:%d: $ %s\n", ok ? "ok  " : "blessed", t->path, c->line, c->command);
        return true;
    }
    fprintf(f, "FAIL %s:%d: $ %s\n", t->path, c->line, c->command);
    if (o.trouble != NULL)
        fprintf(f, "  %s\n", o.trouble);
    else if (o.status != want)
        fprintf(f, "  exit status: expected %d, got %d\n", want, o.status);
    if (!same_out)
        print_difference(f, "stdout", want_out, o.out);
    if (!same_err)
        print_difference(f, "stderr", want_err, o.err);
    return false;
}

static void run_file(testfile *t, const char *dir, FILE *f, tally *sum)
{
    changes ch = {0};
    parse(t);
    if (t->error != NULL) {
        fprintf(f, "FAIL %s:", t->path);
        if (t->error_line > 0)
            fprintf(f, "%d:", t->error_line);
        fprintf(f, " %s\n", t->error);
        sum->failed++;
    } else if (t->count > 0) {
        char *examples = format("%s/examples", opt.root), *link = format("%s/examples", dir);
        if (mkdir(dir, 0777) != 0 || (t->markdown && symlink(examples, link) != 0))
            die("%s: %s", dir, strerror(errno));
        for (size_t i = 0; i < t->count; i++) {
            bool ok = run_case(t, &t->cases[i], dir, f, &ch);
            sum->passed += ok;
            sum->failed += !ok;
        }
        if (ch.count > 0)
            rewrite(t, &ch);
    }
    fflush(f);
    sum->done = true;
}

/* ---------------------------------------------------------------- all of them */

static char **paths;
static size_t path_count;

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int collect(const char *path, const struct stat *st, int type, struct FTW *where)
{
    (void)st;
    const char *name = path + where->base, *dot = strrchr(name, '.');
    bool is_test = dot != NULL && (strcmp(dot, ".txt") == 0 || strcmp(dot, ".md") == 0);
    if (type == FTW_F && (where->level == 0 || (is_test && name[0] != '.')))
        *PUSH(paths, path_count) = strdup(path);
    return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
    (void)st, (void)type, (void)where;
    return remove(path);
}

static volatile sig_atomic_t interrupted;

static void interrupt(int sig)
{
    interrupted = sig;
}

/* One process per test file, at most `jobs` at a time; their output is printed in order. */
static tally run_all(int jobs)
{
    tally sum = {0};
    tally *each = mmap(NULL, (path_count + 1) * sizeof *each, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t *pid = grow(NULL, path_count + 1, sizeof *pid);
    int *fd = grow(NULL, path_count + 1, sizeof *fd);
    size_t started = 0, printed = 0;
    int running = 0;
    if (each == MAP_FAILED)
        die("mmap: %s", strerror(errno));
    while (printed < path_count && !interrupted) {
        if (started < path_count && running < jobs) {
            size_t i = started++;
            fd[i] = memory_file((span){0});
            fflush(NULL);
            pid[i] = fork();
            if (pid[i] == 0) {
                sigset_t child;
                sigemptyset(&child);
                sigaddset(&child, SIGCHLD);
                sigprocmask(SIG_BLOCK, &child, NULL);
                signal(SIGINT, SIG_DFL);
                signal(SIGTERM, SIG_DFL);
                FILE *f = fdopen(fd[i], "w");
                testfile t = {.path = paths[i]};
                run_file(&t, format("%s/%zu", opt.temp, i), f, &each[i]);
                _exit(0);
            }
            if (pid[i] < 0)
                die("fork: %s", strerror(errno));
            running++;
            continue;
        }
        pid_t ended = wait(NULL);
        if (ended < 0)
            continue; /* interrupted */
        running--;
        for (size_t i = 0; i < started; i++)
            if (pid[i] == ended)
                pid[i] = 0;
        for (; printed < started && pid[printed] == 0; printed++) {
            buf b = {0};
            const tally *r = &each[printed];
            lseek(fd[printed], 0, SEEK_SET);
            read_fd(fd[printed], &b);
            close(fd[printed]);
            fwrite(b.p, 1, b.n, stdout);
            free(b.p);
            if (!r->done)
                printf("FAIL %s: the test runner gave up on it\n", paths[printed]);
            sum.passed += r->passed;
            sum.failed += r->failed + !r->done;
        }
    }
    for (size_t i = 0; i < started && interrupted; i++)
        if (pid[i] > 0)
            kill(pid[i], SIGKILL); /* and the commands with them */
    munmap(each, (path_count + 1) * sizeof *each);
    free(pid);
    free(fd);
    return sum;
}

static char *absolute_path(const char *path)
{
    char *absolute = realpath(path, NULL);
    if (absolute == NULL)
        die("%s: %s", path, strerror(errno));
    return absolute;
}

static void link_program(const char *name, const char *absolute)
{
    if (symlink(absolute, format("%s/bin/%s", opt.temp, name)) != 0)
        die("%s: %s", name, strerror(errno));
}

static const char usage[] =
    "usage: golden_run [-uv] [-j N] [-s SECONDS] [-w SECONDS] [-r ROOT] -t TUCK PATH...\n"
    "Runs the golden tests in files, and in all .txt and .md files below directories.\n"
    "  -t TUCK     the program under test\n"
    "  -u          bless: write what the commands give into the tests\n"
    "  -v          name each command that is right, too, and show differences in full\n"
    "  -j N        run N test files at once (default: one for each processor)\n"
    "  -s SECONDS  of processor time that one command may take (default: 20)\n"
    "  -w SECONDS  after which it is ended in any case (default: 600)\n"
    "  -r ROOT     what @ROOT@ stands for (default: the current directory)\n";

int main(int argc, char **argv)
{
    const char *tuck = NULL, *root = ".";
    int jobs = (int)sysconf(_SC_NPROCESSORS_ONLN), o;
    while ((o = getopt(argc, argv, "uvt:j:s:w:r:h")) != -1) {
        switch (o) {
        case 'u': opt.bless = true; break;
        case 'v': opt.verbose = true; break;
        case 't': tuck = optarg; break;
        case 'j': jobs = atoi(optarg); break;
        case 's': opt.seconds = atoi(optarg); break;
        case 'w': opt.wall = atoi(optarg); break;
        case 'r': root = optarg; break;
        default: fputs(usage, o == 'h' ? stdout : stderr); return o == 'h' ? 0 : 2;
        }
    }
    if (tuck == NULL || optind == argc || jobs < 1 || opt.seconds < 1 || opt.wall < 1) {
        fputs(usage, stderr);
        return 2;
    }
    for (int i = optind; i < argc; i++) {
        size_t first = path_count;
        if (nftw(argv[i], collect, 16, FTW_PHYS) != 0)
            die("%s: %s", argv[i], strerror(errno));
        if (path_count > first)
            qsort(paths + first, path_count - first, sizeof *paths, by_name);
    }

    const char *tmp = getenv("TMPDIR");
    char *program = absolute_path(tuck), *self = absolute_path("/proc/self/exe");
    char *temp = format("%s/golden.XXXXXX", tmp && *tmp ? tmp : "/tmp");
    opt.root = absolute_path(root);
    if (mkdtemp(temp) == NULL)
        die("%s: %s", temp, strerror(errno));
    opt.temp = absolute_path(temp);
    if (mkdir(format("%s/bin", opt.temp), 0777) != 0)
        die("%s: %s", opt.temp, strerror(errno));
    link_program("tuck", program);
    link_program("golden_run", self);

    struct sigaction action = {.sa_handler = interrupt};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    tally sum = run_all(jobs);
    nftw(opt.temp, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    if (interrupted)
        leave(128 + interrupted);
    printf("%d passed, %d failed\n", sum.passed, sum.failed);
    leave(sum.failed == 0 && sum.passed > 0 ? 0 : 1);
}
