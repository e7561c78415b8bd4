/* Spans, buffers, files. */
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runner/runner.h"

/* Ends without the leak check that a sanitizer makes at exit. */
_Noreturn void leave(int status)
{
    fflush(NULL);
    _exit(status);
}

_Noreturn void die(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fputs("golden_run: ", stderr);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
    leave(2);
}

void *grow(void *p, size_t count, size_t size)
{
    p = reallocarray(p, count, size);
    if (p == NULL)
        die("out of memory");
    return p;
}

void buf_add(buf *b, const char *p, size_t n)
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

void buf_str(buf *b, const char *s)
{
    buf_add(b, s, strlen(s));
}

span buf_span(const buf *b)
{
    return (span){b->p, b->n};
}

bool span_eq(span a, span b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

bool starts(span s, const char *with)
{
    size_t n = strlen(with);
    return s.n >= n && memcmp(s.p, with, n) == 0;
}

char *format(const char *fmt, ...)
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
span next_line(span *rest)
{
    const char *end = memchr(rest->p, '\n', rest->n);
    span line = {rest->p, end ? (size_t)(end - rest->p) : rest->n};
    size_t used = line.n + (end != NULL);
    rest->p += used;
    rest->n -= used;
    return line;
}

void read_fd(int fd, buf *b)
{
    char block[1 << 16];
    ssize_t got;
    while ((got = read(fd, block, sizeof block)) > 0)
        buf_add(b, block, (size_t)got);
    buf_add(b, "", 0);
}

bool read_file(const char *path, buf *b)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    read_fd(fd, b);
    close(fd);
    return true;
}

bool write_file(const char *path, span s)
{
    FILE *f = fopen(path, "wbe");
    if (f == NULL)
        return false;
    bool ok = fwrite(s.p, 1, s.n, f) == s.n;
    return (fclose(f) == 0) && ok;
}
