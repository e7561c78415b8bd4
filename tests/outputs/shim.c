/* Loaded before the C library by tests/outputs.sh: at the Nth call on a file that is being
 * written, the program gets a signal before or after the call, or the call fails.
 *
 *   SHIM_AT=N SHIM_SIGNAL=9    before call N; -9: after it
 *   SHIM_AT=N SHIM_ERRNO=28    call N fails, and nothing was done
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static long number(const char *name)
{
    const char *s = getenv(name);

    return s ? atol(s) : 0;
}

static bool counts(int fd)
{
    struct stat st;
    int flags = fcntl(fd, F_GETFL);

    return fd > 2 && flags >= 0 && (flags & O_ACCMODE) == O_WRONLY && fstat(fd, &st) == 0 &&
           S_ISREG(st.st_mode);
}

/* Is this the call? Then it gets its signal, or must fail. */
static bool fails(bool *is_it)
{
    static long n;

    *is_it = ++n == number("SHIM_AT");
    if (*is_it && number("SHIM_SIGNAL") > 0)
        raise((int)number("SHIM_SIGNAL"));
    if (*is_it && number("SHIM_ERRNO") > 0) {
        errno = (int)number("SHIM_ERRNO");
        return true;
    }
    return false;
}

static void done(bool is_it)
{
    int error = errno;

    if (is_it && number("SHIM_SIGNAL") < 0)
        raise(-(int)number("SHIM_SIGNAL"));
    errno = error;
}

ssize_t write(int fd, const void *text, size_t len)
{
    ssize_t (*real)(int, const void *,
                    size_t) = (ssize_t(*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
    bool is_it = false;

    if (!counts(fd))
        return real(fd, text, len);
    if (fails(&is_it))
        return -1;
    /* Writes only half first: a partly written file must not be left. */
    ssize_t n = real(fd, text, is_it && len > 1 ? len / 2 : len);
    done(is_it);
    return n;
}

int close(int fd)
{
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "close");
    bool is_it = false;

    if (!counts(fd))
        return real(fd);
    bool bad = fails(&is_it);
    int error = errno, r = real(fd);
    done(is_it);
    errno = bad ? error : errno;
    return bad ? -1 : r;
}

int fsync(int fd)
{
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
    bool is_it = false;

    if (!counts(fd))
        return real(fd);
    if (fails(&is_it))
        return -1;
    int r = real(fd);
    done(is_it);
    return r;
}

int rename(const char *from, const char *to)
{
    int (*real)(const char *, const char *) = (int (*)(const char *, const char *))dlsym(RTLD_NEXT,
                                                                                         "rename");
    bool is_it = false;

    if (fails(&is_it))
        return -1;
    int r = real(from, to);
    done(is_it);
    return r;
}

int open(const char *path, int flags, ...)
{
    int (*real)(const char *, int, ...) = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open");
    va_list ap;
    bool is_it = false;

    va_start(ap, flags);
    int mode = flags & O_CREAT ? va_arg(ap, int) : 0;
    va_end(ap);
    if (!(flags & O_CREAT))
        return real(path, flags);
    if (fails(&is_it))
        return -1;
    int fd = real(path, flags, mode);
    done(is_it);
    return fd;
}
