#include "cli/out.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/cli.h"

static enum { AUTO, ALWAYS, NEVER } when;
static bool chosen; /* by --color */

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

bool out_options(int *argc, char **argv)
{
    static const char flag[] = "--color";
    size_t len = sizeof(flag) - 1;
    int kept = 0;

    for (int i = 0; i < *argc; i++) {
        if (strcmp(argv[i], "--") == 0) {
            while (i < *argc)
                argv[kept++] = argv[i++];
            break;
        }
        if (strcmp(argv[i], flag) == 0) {
            if (!choose(i + 1 < *argc ? argv[++i] : NULL))
                return false;
        } else if (strncmp(argv[i], flag, len) == 0 && argv[i][len] == '=') {
            if (!choose(argv[i] + len + 1))
                return false;
        } else {
            argv[kept++] = argv[i];
        }
    }
    argv[kept] = NULL;
    *argc = kept;
    return true;
}

bool out_colour(FILE *f)
{
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

    if (f != stdout && f != stderr)
        return false;
    if (when != AUTO)
        return when == ALWAYS;
    return (no == NULL || *no == '\0') && term != NULL && strcmp(term, "dumb") != 0 &&
           isatty(f == stdout ? STDOUT_FILENO : STDERR_FILENO);
}

static void vput(FILE *f, enum ink k, const char *fmt, va_list ap)
    __attribute__((format(printf, 3, 0)));

static void vput(FILE *f, enum ink k, const char *fmt, va_list ap)
{
    va_list again;

    va_copy(again, ap);
    bool on = k != INK_PLAIN && out_colour(f) && vsnprintf(NULL, 0, fmt, again) > 0;
    va_end(again);
    if (on)
        fputs(ink_escape(k), f);
    vfprintf(f, fmt, ap);
    if (on)
        fputs(INK_OFF, f);
}

void put(enum ink k, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vput(stdout, k, fmt, ap);
    va_end(ap);
}

void put_line(enum ink k, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vput(stdout, k, fmt, ap);
    va_end(ap);
    putchar('\n');
}

void put_to(FILE *f, enum ink k, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vput(f, k, fmt, ap);
    va_end(ap);
}

static void say(const char *where, enum ink k, const char *word, const char *fmt, va_list ap)
{
    put_to(stderr, INK_HEAD, "%s: ", where);
    put_to(stderr, k, "%s", word);
    fputc(' ', stderr);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
}

void put_warning(const char *where, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    say(where, INK_WARNING, "warning:", fmt, ap);
    va_end(ap);
}

void put_error(const char *where, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    say(where, INK_BAD, "error:", fmt, ap);
    va_end(ap);
}

tuck_print_options print_how(bool json)
{
    tuck_print_options how;

    tuck_print_options_init(&how);
    how.form = json ? TUCK_PRINT_JSON : TUCK_PRINT_TABLE;
    how.colour = out_colour(stdout) ? TUCK_COLOURED : TUCK_PLAIN;
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
