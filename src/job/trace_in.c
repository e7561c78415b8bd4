#include "job/trace_in.h"

#include <errno.h>
#include <string.h>

/* More bytes behind those that inflate has not used yet. */
static void fill(struct trace_in *in)
{
    size_t left = in->z.avail_in, n;

    if (in->end || left == sizeof(in->raw))
        return;
    memmove(in->raw, in->z.next_in, left);
    if (in->f != NULL) {
        n = fread(in->raw + left, 1, sizeof(in->raw) - left, in->f);
        if (n == 0 && ferror(in->f))
            in->error = errno != 0 ? errno : EIO;
        in->end = n == 0;
    } else {
        n = in->len < sizeof(in->raw) - left ? in->len : sizeof(in->raw) - left;
        memcpy(in->raw + left, in->text, n);
        in->text += n;
        in->len -= n;
        in->end = in->len == 0;
    }
    in->z.next_in = in->raw;
    in->z.avail_in = (uInt)(left + n);
}

static bool is_gzip(const struct trace_in *in)
{
    return in->z.avail_in >= 2 && in->z.next_in[0] == 0x1F && in->z.next_in[1] == 0x8B;
}

tuck_status trace_in_open(struct trace_in *in, FILE *f, const char *text, size_t len)
{
    enum { GZIP_ONLY = 15 + 16 };

    in->f = f;
    in->text = (const unsigned char *)(text != NULL ? text : "");
    in->len = len;
    in->gzip = in->member = in->end = false;
    in->wrong = NULL;
    in->error = 0;
    memset(&in->z, 0, sizeof(in->z));
    in->z.next_in = in->raw;
    while (in->z.avail_in < 2 && !in->end)
        fill(in);
    in->gzip = in->member = is_gzip(in);
    if (in->gzip && inflateInit2(&in->z, GZIP_ONLY) != Z_OK)
        return TUCK_ENOMEM;
    return TUCK_OK;
}

void trace_in_close(struct trace_in *in)
{
    if (in->gzip)
        inflateEnd(&in->z);
}

/* After a member: another one, or the end. Zeros behind it are padding. */
static void next_member(struct trace_in *in)
{
    while (in->z.avail_in < 2 && !in->end)
        fill(in);
    in->member = is_gzip(in);
    if (in->member) {
        inflateReset(&in->z);
        return;
    }
    while (in->z.avail_in > 0 || !in->end) {
        if (in->z.avail_in == 0) {
            fill(in);
            continue;
        }
        if (*in->z.next_in != 0) {
            in->wrong = "there are other bytes behind the end of the gzip data";
            return;
        }
        in->z.next_in++;
        in->z.avail_in--;
    }
}

static size_t inflate_some(struct trace_in *in)
{
    in->z.next_out = in->out;
    in->z.avail_out = sizeof(in->out);
    while (in->member && in->wrong == NULL && in->z.avail_out == sizeof(in->out)) {
        if (in->z.avail_in == 0)
            fill(in);
        if (in->z.avail_in == 0 && in->end) {
            in->wrong = "the gzip data ends early: the file was cut, or is still being written";
            break;
        }
        int code = inflate(&in->z, Z_NO_FLUSH);
        if (code == Z_STREAM_END)
            next_member(in);
        else if (code == Z_MEM_ERROR)
            in->error = ENOMEM;
        else if (code != Z_OK && code != Z_BUF_ERROR)
            in->wrong = in->z.msg != NULL ? in->z.msg : "the gzip data is damaged";
        if (in->error != 0)
            break;
    }
    return sizeof(in->out) - in->z.avail_out;
}

size_t trace_in_next(struct trace_in *in, const unsigned char **piece)
{
    size_t n;

    if (in->error != 0 || in->wrong != NULL)
        return 0;
    if (in->gzip) {
        *piece = in->out;
        return inflate_some(in);
    }
    if (in->z.avail_in == 0)
        fill(in);
    *piece = in->z.next_in;
    n = in->error == 0 ? in->z.avail_in : 0;
    in->z.avail_in = 0;
    return n;
}
