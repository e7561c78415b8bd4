"""usage: fetch_headers.py FOLDER
Puts NCCL's and CUDA's C headers into FOLDER, from the wheels of PyPI: only the headers are
downloaded, by ranges of the archives. Exits with 77 if PyPI cannot be reached."""
import io
import json
import os
import sys
import urllib.parse
import urllib.request
import zipfile

# Each with the folder of the headers that are needed.
WHEELS = (
    ("nvidia-nccl-cu12", "/include/"),
    ("nvidia-cuda-runtime-cu12", "/include/"),
    ("nvidia-cuda-nvcc-cu12", "/include/"),
    ("nvidia-cuda-cccl-cu12", "/include/nv/"),
)


class Remote(io.RawIOBase):
    """A file at an address, read by ranges."""

    def __init__(self, url, size):
        self.url, self.size, self.at = url, size, 0

    def seekable(self):
        return True

    def readable(self):
        return True

    def tell(self):
        return self.at

    def seek(self, offset, whence=0):
        self.at = (0, self.at, self.size)[whence] + offset
        return self.at

    def readinto(self, buffer):
        last = min(self.at + len(buffer), self.size) - 1
        if last < self.at:
            return 0
        request = urllib.request.Request(self.url, headers={"Range": f"bytes={self.at}-{last}"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            if answer.status != 206:
                raise OSError("the server sends no ranges")
            data = answer.read()
        buffer[: len(data)] = data
        self.at += len(data)
        return len(data)


def wheel(name):
    with urllib.request.urlopen(f"https://pypi.org/pypi/{name}/json", timeout=30) as answer:
        files = json.load(answer)["urls"]
    found = next(f for f in files if "x86_64" in f["filename"])
    # A mirror may give addresses that are relative to the page of the package.
    return urllib.parse.urljoin(f"https://pypi.org/simple/{name}/", found["url"]), found["size"]


def main(folder):
    for name, below in WHEELS:
        archive = zipfile.ZipFile(io.BufferedReader(Remote(*wheel(name)), 1 << 20))
        for item in archive.namelist():
            if below not in item or item.endswith("/"):
                continue
            path = os.path.join(folder, item.split("/include/", 1)[1])
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(archive.read(item))


if __name__ == "__main__":
    try:
        main(sys.argv[1])
    except (OSError, ValueError, StopIteration, KeyError, zipfile.BadZipFile) as error:
        print(f"skipped: PyPI cannot be reached: {error}")
        sys.exit(77)
