"""How `pip install .` builds the package (PEP 517): make builds the library and the tool, and they are
put into the wheel with the shared libraries that a user may lack. Needs nothing but Python, make and gcc."""

import base64
import hashlib
import os
import re
import shutil
import subprocess
import sysconfig
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "python" / "tuck"
BUILD = "build/wheel"
# Part of every system, or of its C library.
SYSTEM = re.compile(r"(linux-vdso|ld-linux[\w-]*|libc|libm|libdl|libpthread|librt)\.so")


def version():
    text = (ROOT / "include" / "tuck.h").read_text()
    return re.search(r'# *define +TUCK_VERSION +"(.*)"', text).group(1)


def metadata():
    return "\n".join(
        [
            "Metadata-Version: 2.1",
            "Name: tuck",
            f"Version: {version()}",
            "Summary: Tucks communication under computation in PyTorch training steps",
            "Requires-Python: >=3.10",
            "License: " + (ROOT / "LICENSE").read_text().strip().splitlines()[0],
            "",
            "",
        ]
    )


def tag():
    return "py3-none-" + sysconfig.get_platform().replace("-", "_").replace(".", "_")


def build_library():
    """libtuck.so and the tool, which look for libraries beside themselves first."""
    environment = {
        k: v
        for k, v in os.environ.items()
        if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "V", "B", "SAN")
    }
    name = f"{BUILD}/libtuck.so.{version()}"
    make = ["make", "-s", f"-j{os.cpu_count() or 1}", f"B={BUILD}", name, f"{BUILD}/tuck"]
    subprocess.run(make + ["LDFLAGS=-Wl,-rpath,'$$ORIGIN'"], cwd=ROOT, env=environment, check=True)
    return ROOT / name, ROOT / BUILD / "tuck"


def stripped(path):
    with tempfile.TemporaryDirectory() as directory:
        small = Path(directory) / path.name
        shutil.copyfile(path, small)
        if shutil.which("strip"):
            subprocess.run(["strip", "--strip-debug", small], check=True)
        return small.read_bytes()


def needed(library):
    """The shared libraries that come with the wheel."""
    said = subprocess.run(["ldd", library], capture_output=True, text=True, check=True).stdout
    found = {}
    for line in said.splitlines():
        match = re.match(r"\s*(\S+) => (\S+)", line)
        if "not found" in line:
            raise SystemExit(f"{library}: {line.strip()}")
        if match and not SYSTEM.match(match.group(1)):
            found[match.group(1)] = Path(match.group(2)).resolve()
    return found


def write_wheel(directory, files, suffix=""):
    """A zip file with a list of what is in it, the same for the same content."""
    info = f"tuck-{version()}.dist-info"
    path = Path(directory) / f"tuck-{version()}{suffix}-{tag()}.whl"
    files = dict(files)
    files[f"{info}/METADATA"] = metadata().encode()
    files[f"{info}/LICENSE"] = (ROOT / "LICENSE").read_bytes()
    files[f"{info}/WHEEL"] = (
        f"Wheel-Version: 1.0\nGenerator: tuck\nRoot-Is-Purelib: false\nTag: {tag()}\n".encode()
    )
    files[f"{info}/entry_points.txt"] = b"[console_scripts]\ntuck = tuck.__main__:main\n"
    record = ""
    for name, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(content)}\n"
    files[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if ".so" in name or name == "tuck/tuck-tool" else 0o100644) << 16
            out.writestr(entry, content)
    return path.name


# ---- what pip calls ----


def get_requires_for_build_wheel(config_settings=None):
    return []


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    library, tool = build_library()
    files = {
        f"tuck/{p.relative_to(PACKAGE)}": p.read_bytes()
        for p in sorted(PACKAGE.rglob("*"))
        if p.suffix in (".py", ".typed")
    }
    files["tuck/libtuck.so"] = stripped(library)
    files["tuck/tuck-tool"] = stripped(tool)
    for name, path in needed(library).items():
        files[f"tuck/{name}"] = path.read_bytes()
        terms = Path("/usr/share/doc") / re.sub(r"\.so\.?", "", name) / "copyright"  # on Debian
        if terms.exists():
            files[f"tuck-{version()}.dist-info/LICENSE.{name}"] = terms.read_bytes()
    return write_wheel(wheel_directory, files)


def get_requires_for_build_editable(config_settings=None):
    return []


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """The package stays here and uses build/release/libtuck.so; `make` builds that."""
    return write_wheel(wheel_directory, {"tuck.pth": f"{PACKAGE.parent}\n".encode()})


def build_sdist(sdist_directory, config_settings=None):
    name = f"tuck-{version()}"
    info = tarfile.TarInfo(f"{name}/PKG-INFO")
    parts = "CHANGELOG.md LICENSE Makefile README.md docs examples include man pyproject.toml python src tools"
    with tempfile.TemporaryDirectory() as directory:
        text = Path(directory) / "PKG-INFO"
        text.write_text(metadata())
        path = Path(sdist_directory) / f"{name}.tar.gz"
        with tarfile.open(path, "w:gz") as out:
            out.add(text, info.name)
            for part in parts.split():
                out.add(ROOT / part, f"{name}/{part}", filter=_not_compiled)
    return path.name


def _not_compiled(member):
    return None if "__pycache__" in member.name else member
