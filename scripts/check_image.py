#!/usr/bin/env python3
"""Run the steps of deploy/Dockerfile without a container engine, and check that the result serves.

The steps of the stage `build` are run in a scratch folder: files not excluded by .dockerignore are copied, and the
pinned packages and the project are installed in a new environment. With it the demonstration is indexed, and served by
the image's command until its health check succeeds. Users, volumes and ports are not tested.

usage: python -m scripts.check_image (with the image's Python version; it downloads all packages)
"""

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCKERFILE = ROOT / "deploy/Dockerfile"
DOCKERIGNORE = ROOT / ".dockerignore"
PORT = "8000"
TIMEOUT = 120.0  # seconds until the server must be healthy


@dataclass(frozen=True)
class CheckStep:
    """An instruction of a Dockerfile."""

    name: str
    text: str

    @property
    def words(self) -> list[str]:
        """Its arguments, in JSON form or split like a shell."""
        return list(json.loads(self.text)) if self.text.startswith("[") else shlex.split(self.text)


def read_stages(text: str) -> list[list[CheckStep]]:
    """Read the stages of a Dockerfile, each from its FROM on; lines before the first FROM are ignored."""
    plain = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    stages: list[list[CheckStep]] = []
    for line in re.sub(r"\\\n\s*", "", plain).splitlines():
        name, _, rest = line.strip().partition(" ")
        if name == "FROM":
            stages.append([])
        if name and stages:
            stages[-1].append(CheckStep(name, rest.strip()))
    return stages


def is_ignored(path: str, ignore: str) -> bool:
    """Whether a .dockerignore excludes a path, relative to the root."""
    ignored = False
    parts = path.split("/")
    parents = ["/".join(parts[: end + 1]) for end in range(len(parts))]
    for line in ignore.splitlines():
        pattern = line.strip()
        if pattern and not pattern.startswith("#"):
            expression = re.compile(_as_regex(pattern.removeprefix("!").strip("/")))
            if any(expression.fullmatch(parent) for parent in parents):
                ignored = not pattern.startswith("!")
    return ignored


def _as_regex(pattern: str) -> str:
    parts = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return "".join(parts.get(part, re.escape(part)) for part in re.split(r"(\*\*/|\*\*|\*|\?)", pattern))


def sources(copy: CheckStep) -> list[str]:
    """Sources of a COPY step from the root; empty if it copies from another stage."""
    return [] if copy.text.startswith("--from=") else copy.words[:-1]


def files_of(source: str, ignore: str) -> Iterator[Path]:
    """Files below a source of a COPY step that are not ignored, relative to the root."""
    top = ROOT / source
    for path in [top] if top.is_file() else sorted(top.rglob("*")):
        relative = path.relative_to(ROOT)
        if path.is_file() and not is_ignored(relative.as_posix(), ignore):
            yield relative


def build(stage: list[CheckStep], scratch: Path) -> Path:
    """Run the steps of a stage in a folder; return the folder of its environment."""
    ignore, here, environment = DOCKERIGNORE.read_text(), scratch / "build", scratch / "opt/cairn"
    here.mkdir(parents=True)
    for step in stage:
        if step.name == "COPY":
            for source in sources(step):
                for relative in files_of(source, ignore):
                    (here / relative).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(ROOT / relative, here / relative)
        elif step.name == "RUN":
            print(step.text, file=sys.stderr, flush=True)
            command = step.text.replace("/opt/cairn", str(environment))
            if command.startswith("python "):
                command = sys.executable + command.removeprefix("python")
            subprocess.run(["sh", "-c", command], cwd=here, check=True, stdout=sys.stderr)
    return environment


def serve(stage: list[CheckStep], environment: Path, folder: Path) -> None:
    """Serve a collection `photos.cairn` in a folder by the image's command, until its health check succeeds."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    (entry,) = [step.words for step in stage if step.name == "ENTRYPOINT"]
    (command,) = [step.words for step in stage if step.name == "CMD"]
    check = [part.replace(PORT, port) for part in health_check(stage)]
    paths = {**os.environ, "PATH": f"{environment}/bin:{os.environ['PATH']}"}
    with subprocess.Popen([*entry, *command, "--port", port], cwd=folder, env=paths) as server:
        try:
            end = time.monotonic() + TIMEOUT
            while subprocess.run(check, cwd=folder, env=paths, stderr=subprocess.DEVNULL).returncode != 0:
                if server.poll() is not None or time.monotonic() > end:
                    raise SystemExit("The server ended, or was not healthy in time.")
                time.sleep(0.5)
        finally:
            server.terminate()
    if subprocess.run(check, cwd=folder, env=paths, stderr=subprocess.DEVNULL).returncode == 0:
        raise SystemExit("The health check is content with a server that has ended.")


def health_check(stage: list[CheckStep]) -> list[str]:
    """The command of a stage's HEALTHCHECK."""
    (command,) = [step.text for step in stage if step.name == "HEALTHCHECK"]
    return CheckStep("CMD", command.partition("CMD ")[2]).words


def main() -> None:
    """Build, index and serve."""
    built, final = read_stages(DOCKERFILE.read_text())
    with tempfile.TemporaryDirectory(prefix="cairn-image-") as temporary:
        scratch = Path(temporary)
        environment = build(built, scratch)
        subprocess.run([environment / "bin/cairn", "demo", "--out", scratch / "demo", "--quiet"], check=True)
        (scratch / "demo/demo.cairn").rename(scratch / "demo/photos.cairn")
        password = ("password", scratch / "demo/passwords", "anna")
        subprocess.run([environment / "bin/cairn", *password], input=b"correct horse\n", check=True)
        serve(final, environment, scratch / "demo")
        for name in ("distributed", "s3fs", "psycopg", "pillow_heif", "pypdfium2"):
            subprocess.run([environment / "bin/python", "-c", f"import {name}"], cwd=scratch, check=True)
    print("What the Dockerfile installs indexes, serves, and passes its health check.")


if __name__ == "__main__":
    main()
