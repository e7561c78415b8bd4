#include "cli/whole_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_LINKS = 40, MOST_NAMES = 1000 };

/* ---- where a path leads ---- */

/* The folder of a path, resolved, ending in '/', and the name in it. */
static int split(const char *path, char folder[PATH_MAX], const char **name)
{
    const char *slash = strrchr(path, '/');
    char part[PATH_MAX];
    size_t n = slash ? (size_t)(slash - path) + 1 : 0;

    if (n >= sizeof(part))
        return ENAMETOOLONG;
    memcpy(part, path, n);
    part[n] = '\0';
    *name = path + n;
    if (realpath(n > 0 ? part : ".", folder) == NULL)
        return errno;
    n = strlen(folder);
    if (n + 1 >= PATH_MAX)
        return ENAMETOOLONG;
    if (n > 1)
        memcpy(folder + n, "/", 2);
    return 0;
}

/* /proc/PID/fd/: an entry there is an open descriptor, not a link to a file. */
static bool is_descriptors(const char *folder)
{
    size_t n = strlen(folder);

    return strncmp(folder, "/proc/", 6) == 0 && n > 4 && strcmp(folder + n - 4, "/fd/") == 0;
}

static int join(char out[PATH_MAX], const char *folder, const char *name)
{
    size_t n = strlen(folder), m = strlen(name);

    if (n + m >= PATH_MAX)
        return ENAMETOOLONG;
    memmove(out + n, name, m + 1); /* the name may be a part of out */
    memcpy(out, folder, n);
    return 0;
}

/* Follows links, also dangling ones. Sets *open if it leads to an open descriptor. */
static int resolve(const char *path, char out[PATH_MAX], bool *open)
{
    char folder[PATH_MAX], link[PATH_MAX];
    const char *name;

    *open = false;
    if (strlen(path) >= PATH_MAX)
        return ENAMETOOLONG;
    memmove(out, path, strlen(path) + 1);
    for (int i = 0; i < MOST_LINKS; i++) {
        int error = split(out, folder, &name);
        if (error == 0)
            error = join(out, folder, name);
        if (error != 0)
            return error;
        *open = is_descriptors(folder);
        ssize_t n = *open ? -1 : readlink(out, link, sizeof(link) - 1);
        if (n < 0)
            return 0;
        link[n] = '\0';
        if (link[0] == '/')
            memcpy(out, link, (size_t)n + 1);
        else if ((error = join(out, folder, link)) != 0)
            return error;
    }
    return ELOOP;
}

/* ---- writing ---- */

/* A new file in the target's folder, with the mode that any new file gets. */
static int open_beside(struct file_out *f)
{
    const char *slash = strrchr(f->target, '/');
    int folder = slash ? (int)(slash - f->target) + 1 : 0;

    for (int i = 0; i < MOST_NAMES; i++) {
        int n = snprintf(f->temp, sizeof(f->temp), "%.*s.tuck-%ld-%d", folder, f->target,
                         (long)getpid(), i);
        if (n < 0 || (size_t)n >= sizeof(f->temp)) {
            f->temp[0] = '\0';
            return ENAMETOOLONG;
        }
        f->fd = open(f->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (f->fd >= 0)
            return 0;
        if (errno != EEXIST)
            break;
    }
    f->temp[0] = '\0';
    return errno;
}

static int open_directly(struct file_out *f, const char *path)
{
    f->fd = open(path, O_WRONLY | O_CLOEXEC);
    f->target[0] = '\0';
    return f->fd >= 0 ? 0 : errno;
}

static int use_descriptor(struct file_out *f, int fd)
{
    f->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    f->target[0] = '\0';
    return f->fd >= 0 ? 0 : errno;
}

/* A descriptor of this process is used directly: opening it again would write from the start of the
 * file. */
static int open_descriptor(struct file_out *f)
{
    char own[64], *end;
    const char *name = strrchr(f->target, '/') + 1;

    snprintf(own, sizeof(own), "/proc/%ld/fd/", (long)getpid());
    long fd = strtol(name, &end, 10);
    if (strncmp(f->target, own, strlen(own)) != 0 || *end != '\0' || end == name || fd > INT_MAX)
        return open_directly(f, f->target);
    return use_descriptor(f, (int)fd);
}

int file_begin(struct file_out *f, const char *path)
{
    struct stat st;
    bool open;

    f->fd = -1;
    f->error = 0;
    f->len = 0;
    f->target[0] = f->temp[0] = '\0';
    if (*path == '\0')
        return ENOENT;
    if (strcmp(path, "-") == 0)
        return use_descriptor(f, STDOUT_FILENO);
    int error = resolve(path, f->target, &open);
    if (error != 0)
        return error;
    if (open)
        return open_descriptor(f);
    if (stat(f->target, &st) != 0)
        return errno == ENOENT ? open_beside(f) : errno;
    if (S_ISDIR(st.st_mode))
        return EISDIR;
    if (!S_ISREG(st.st_mode))
        return open_directly(f, f->target);
    if (access(f->target, W_OK) != 0)
        return errno;
    error = open_beside(f);
    /* Keeps the owner, too, if allowed; the mode comes last, because changing the owner clears bits
     * of it. */
    if (error == 0 && (st.st_uid != geteuid() || st.st_gid != getegid()) &&
        fchown(f->fd, st.st_uid, st.st_gid) != 0)
        error = errno == EPERM ? 0 : errno;
    if (error == 0 && fchmod(f->fd, st.st_mode & 07777) != 0)
        error = errno;
    if (error != 0)
        file_drop(f);
    return error;
}

static void send(struct file_out *f, const char *text, size_t len)
{
    while (len > 0 && f->error == 0) {
        ssize_t n = write(f->fd, text, len);
        if (n < 0 && errno != EINTR)
            f->error = errno;
        if (n > 0) {
            text += n;
            len -= (size_t)n;
        }
    }
}

bool file_write(void *ctx, const char *text, size_t len)
{
    struct file_out *f = ctx;

    if (len > sizeof(f->buffer) - f->len) {
        send(f, f->buffer, f->len);
        f->len = 0;
    }
    if (len > sizeof(f->buffer)) {
        send(f, text, len);
    } else if (len > 0) {
        memcpy(f->buffer + f->len, text, len);
        f->len += len;
    }
    return f->error == 0;
}

/* Makes sure that the renamed file is on the disk: after a crash of the machine there is either the
 * old file or the new one. Some file systems do not support this. */
static void settle(struct file_out *f)
{
    if (f->error == 0 && f->temp[0] != '\0' && fsync(f->fd) != 0 && errno != EINVAL)
        f->error = errno;
}

int file_finish(struct file_out *f)
{
    send(f, f->buffer, f->len);
    f->len = 0;
    settle(f);
    if (close(f->fd) != 0 && f->error == 0)
        f->error = errno;
    f->fd = -1;
    if (f->error == 0 && f->temp[0] != '\0' && rename(f->temp, f->target) != 0)
        f->error = errno;
    if (f->error == 0)
        f->temp[0] = '\0';
    file_drop(f);
    return f->error;
}

void file_drop(struct file_out *f)
{
    if (f->fd >= 0)
        close(f->fd);
    if (f->temp[0] != '\0')
        unlink(f->temp);
    f->fd = -1;
    f->temp[0] = '\0';
}

/* ---- queries ---- */

static bool status(const char *path, struct stat *st)
{
    return (strcmp(path, "-") == 0 ? fstat(STDOUT_FILENO, st) : stat(path, st)) == 0;
}

bool file_same(const char *a, const char *b)
{
    char x[PATH_MAX], y[PATH_MAX];
    struct stat s, t;
    bool open;

    if (status(a, &s) && status(b, &t))
        return s.st_dev == t.st_dev && s.st_ino == t.st_ino && !S_ISCHR(s.st_mode) &&
               !S_ISBLK(s.st_mode);
    return resolve(a, x, &open) == 0 && resolve(b, y, &open) == 0 && strcmp(x, y) == 0;
}

bool file_in_folder(const char *path, const char *folder, char name[NAME_MAX + 1])
{
    char target[PATH_MAX], whole[PATH_MAX];
    const char *slash;
    bool open;

    if (resolve(path, target, &open) != 0 || open || realpath(folder, whole) == NULL)
        return false;
    slash = strrchr(target, '/');
    size_t n = (size_t)(slash - target);
    if (strlen(slash + 1) > NAME_MAX)
        return false;
    memcpy(name, slash + 1, strlen(slash + 1) + 1);
    return n == strlen(whole) && strncmp(target, whole, n) == 0;
}

FILE *open_to_read(const char *path)
{
    struct stat st;
    FILE *f = fopen(path, "rb");

    if (f != NULL && fstat(fileno(f), &st) == 0 && S_ISDIR(st.st_mode)) {
        fclose(f);
        errno = EISDIR;
        return NULL;
    }
    return f;
}
