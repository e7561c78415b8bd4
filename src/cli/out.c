#include "cli/out.h"

#include <errno.h>
#include <stdio.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/cli.h"

static enum { AUTO, ALWAYS, NEVER } when;
static bool chosen; /* --color was given */
static bool sized;  /* --width was given */
static uint32_t columns;

static bool choose(const char *word)
{
    static const char *const name[] = {"auto", "always", "never"};

    if (chosen) {
        fputs("tuck: --color is given twice\n", stderr);
        return false;
    }
    chosen = true;
    for (int i = 0; word != NULL && i < 3; i++)
        if (strcmp(word, name[i]) == 0) {
            when = i == 0 ? AUTO : i == 1 ? ALWAYS : NEVER;
            return true;
        }
    fprintf(stderr, "tuck: --color wants auto, always or never%s%s%s\n", word ? ", found '" : "",
            word ? word : "", word ? "'" : "");
    return false;
}

/* Columns, 20 to 10000; 0 means no limit. */
static bool read_width(const char *word, uint32_t *out)
{
    char *end;

    if (word == NULL || *word < '0' || *word > '9')
        return false;
    unsigned long n = strtoul(word, &end, 10);
    if (*end != '\0' || (n != 0 && n < 20) || n > 10000)
        return false;
    *out = (uint32_t)n;
    return true;
}

static bool size(const char *word)
{
    if (sized) {
        fputs("tuck: --width is given twice\n", stderr);
        return false;
    }
    sized = true;
    if (read_width(word, &columns))
        return true;
    fprintf(stderr, "tuck: --width wants columns, 20 to 10000, or 0 for no limit%s%s%s\n",
            word ? ", found '" : "", word ? word : "", word ? "'" : "");
    return false;
}

/* Is argv[*i] this option? Then its value is read, too. */
static bool take(const char *flag, bool (*set)(const char *word), int argc, char **argv, int *i,
                 bool *fine)
{
    size_t len = strlen(flag);

    if (strncmp(argv[*i], flag, len) != 0 || (argv[*i][len] != '\0' && argv[*i][len] != '='))
        return false;
    if (argv[*i][len] == '=')
        *fine = set(argv[*i] + len + 1);
    else
        *fine = set(*i + 1 < argc ? argv[++*i] : NULL);
    return true;
}

bool out_options(int *argc, char **argv)
{
    int kept = 0;
    bool fine = true;

    for (int i = 0; i < *argc && fine; i++) {
        if (strcmp(argv[i], "--") == 0) {
            while (i < *argc)
                argv[kept++] = argv[i++];
            break;
        }
        if (!take("--color", choose, *argc, argv, &i, &fine) &&
            !take("--width", size, *argc, argv, &i, &fine))
            argv[kept++] = argv[i];
    }
    if (!fine)
        return false;
    argv[kept] = NULL;
    *argc = kept;
    return true;
}

uint32_t out_width(FILE *f)
{
    struct winsize at;
    uint32_t n = 0;

    if (f != stdout && f != stderr)
        return 0;
    if (sized)
        return columns;
    if (read_width(getenv("COLUMNS"), &n) && n > 0)
        return n;
    if (ioctl(f == stdout ? STDOUT_FILENO : STDERR_FILENO, TIOCGWINSZ, &at) != 0)
        return 0;
    return at.ws_col < 20 ? 0 : at.ws_col;
}

bool out_color(FILE *f)
{
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

    if (f != stdout && f != stderr)
        return false;
    if (when != AUTO)
        return when == ALWAYS;
    return (no == NULL || *no == '\0') && term != NULL && strcmp(term, "dumb") != 0 &&
           isatty(f == stdout ? STDOUT_FILENO : STDERR_FILENO);
}

static void vput(FILE *f, enum tint k, const char *fmt, va_list ap)
    __attribute__((format(printf, 3, 0)));

static void vput(FILE *f, enum tint k, const char *fmt, va_list ap)
{
    static const char *const escape[] = {[TINT_PLAIN] = "",
                                         [TINT_HEAD] = "\033[1m",
                                         [TINT_BAD] = "\033[31m",
                                         [TINT_GOOD] = "\033[32m",
                                         [TINT_LIMIT] = "\033[33m",
                                         [TINT_DIM] = "\033[2m",
                                         [TINT_WARNING] = "\033[1;35m"};
    va_list again;

    va_copy(again, ap);
    bool on = k != TINT_PLAIN && out_color(f) && vsnprintf(NULL, 0, fmt, again) > 0;
    va_end(again);
    if (on)
        fputs(escape[k], f);
    vfprintf(f, fmt, ap);
    if (on)
        fputs("\033[0m", f);
}

void put(enum tint k, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vput(stdout, k, fmt, ap);
    va_end(ap);
}

void put_line(enum tint k, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vput(stdout, k, fmt, ap);
    va_end(ap);
    putchar('\n');
}

void put_wrapped(enum tint k, int indent, const char *text)
{
    enum { COLUMNS = 80, HANG = 4 };

    for (bool first = true; *text != '\0'; first = false) {
        int from = indent + (first ? 0 : HANG);
        size_t n = (size_t)(COLUMNS - from);
        if (strlen(text) <= n) {
            put_line(k, "%*s%s", from, "", text);
            return;
        }
        while (n > 0 && text[n] != ' ')
            n--;
        if (n == 0)
            n = strcspn(text, " ");
        put_line(k, "%*s%.*s", from, "", (int)n, text);
        text += n + (text[n] == ' ');
    }
}

void put_to(FILE *f, enum tint k, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vput(f, k, fmt, ap);
    va_end(ap);
}

static void say(const char *where, enum tint k, const char *word, const char *fmt, va_list ap)
{
    put_to(stderr, TINT_HEAD, "%s: ", where);
    put_to(stderr, k, "%s", word);
    fputc(' ', stderr);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
}

void put_warning(const char *where, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    say(where, TINT_WARNING, "warning:", fmt, ap);
    va_end(ap);
}

void put_error(const char *where, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    say(where, TINT_BAD, "error:", fmt, ap);
    va_end(ap);
}

tuck_print_options print_how(bool json)
{
    tuck_print_options how;

    tuck_print_options_init(&how);
    how.form = json ? TUCK_PRINT_JSON : TUCK_PRINT_TABLE;
    how.color = out_color(stdout) ? TUCK_COLORED : TUCK_PLAIN;
    how.width = out_width(stdout);
    return how;
}

bool to_file(void *f, const char *text, size_t len)
{
    return fwrite(text, 1, len, f) == len;
}

int complain(const char *path)
{
    fprintf(stderr, "tuck: %s: %s\n", path, strerror(errno));
    return EXIT_FILE;
}
