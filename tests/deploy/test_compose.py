"""deploy/compose.yaml: its names resolve, its commands are ones that there are, and nothing is open or secret in it."""

import re
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from scripts.check_image import DOCKERFILE, read_stages
from scripts.documentation.command_reference import pages
from tests.support.command_tree import command_tree
from tests.support.paths import ROOT
from tests.support.patience import patience

distributed = pytest.importorskip("distributed", reason="Dask is not installed")
dask_scheduler = pytest.importorskip("distributed.cli.dask_scheduler").main
dask_worker = pytest.importorskip("distributed.cli.dask_worker").main

FILE = ROOT / "deploy/compose.yaml"
TEXT = FILE.read_text()
COMPOSE = yaml.safe_load(TEXT)
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
_VARIABLE = re.compile(r"\$\{(\w+)(?:(:[?-])([^}]*))?\}")
CAIRN = dict(pages(command_tree()))
FINAL = read_stages(DOCKERFILE.read_text())[-1]


def _filled(text: str) -> str:
    """A text with the defaults of its variables, and something for those that have none."""
    return _VARIABLE.sub(lambda found: found[3] if found[2] == ":-" else "something", text)


def _command(service: str) -> list[str]:
    """What a container of a service runs."""
    (entry,) = [step.words for step in FINAL if step.name == "ENTRYPOINT"]
    return [_filled(word) for word in SERVICES[service].get("entrypoint", entry) + SERVICES[service]["command"]]


def _own() -> list[str]:
    return [name for name, service in SERVICES.items() if service["image"] == "cairn"]


def test_services_are_those_of_a_cluster() -> None:
    assert set(SERVICES) == {"postgres", "scheduler", "worker", "server", "index"}
    assert set(_own()) == set(SERVICES) - {"postgres"}
    assert SERVICES["worker"]["deploy"]["replicas"] == 2
    assert SERVICES["index"]["profiles"] == ["index"]


def test_the_image_is_built_from_files_that_there_are() -> None:
    for name in _own():
        build = SERVICES[name]["build"]
        context = (FILE.parent / build["context"]).resolve()
        assert context == ROOT and (context / build["dockerfile"]).resolve() == DOCKERFILE


def test_volumes_networks_and_services_resolve() -> None:
    for name, service in SERVICES.items():
        for volume in service.get("volumes", []):
            source = _VARIABLE.sub("/somewhere", volume).split(":")[0]
            assert source.startswith("/") or source in COMPOSE["volumes"], (name, volume)
        assert set(service["networks"]) <= set(COMPOSE["networks"]), name
        for other, condition in service.get("depends_on", {}).items():
            assert other in SERVICES
            if condition["condition"] == "service_healthy":
                assert SERVICES[other]["healthcheck"]["test"], f"{name} waits for the health of {other}"
    for other in re.findall(r"(?://|@)(\w+)[:/]", " ".join(word for name in _own() for word in _command(name))):
        assert other in SERVICES


def test_photos_are_at_one_path_and_read_only_and_the_rest_of_a_container_is_too() -> None:
    seen = {name: SERVICES[name]["volumes"] for name in ("worker", "server", "index")}
    assert seen["worker"] == seen["index"] and seen["server"] == [*seen["index"], "state:/state"]
    assert SERVICES["server"]["hostname"]  # to which the list of work in that volume belongs
    photos, collection, cache = seen["index"]
    assert photos.endswith(":/photos:ro") and collection == "collection:/collection"
    assert cache == "cache:/cache"  # what was compiled is there for the next container
    for name in _own():
        service = SERVICES[name]
        assert service["read_only"] is True and service["init"] is True and service["cap_drop"] == ["ALL"], name


def test_nothing_is_published_but_the_server_to_this_machine() -> None:
    assert [name for name, service in SERVICES.items() if "ports" in service] == ["server"]
    (port,) = SERVICES["server"]["ports"]
    assert _filled(port) == "127.0.0.1:8000:8000"
    assert COMPOSE["networks"]["inside"] == {"internal": True}
    assert [name for name, service in SERVICES.items() if "outside" in service["networks"]] == ["server"]


def test_there_is_no_password_in_it_and_none_by_default() -> None:
    variables = {found[1]: found[2] for found in _VARIABLE.finditer(TEXT)}
    assert {name for name, kind in variables.items() if kind == ":?"} == {"POSTGRES_PASSWORD", "CAIRN_PHOTOS"}
    for service in SERVICES.values():
        for key, value in service.get("environment", {}).items():
            if "PASS" in key:
                assert value.startswith("${POSTGRES_PASSWORD:?")
    # An address with a password could be seen by all users of the machine.
    assert not re.search(r"//\w+:\w+@", TEXT)
    example = dict(line.lstrip("# ").split("=") for line in (ROOT / "deploy/example.env").read_text().splitlines()[1:])
    assert set(example) == set(variables)
    assert example["POSTGRES_PASSWORD"] == example["CAIRN_PHOTOS"] == ""
    assert "deploy/.env" in (ROOT / ".gitignore").read_text().splitlines()


@pytest.mark.parametrize("service", ["server", "index"])
def test_commands_of_cairn_can_be_parsed(service: str) -> None:
    program, name, *arguments = _command(service)
    assert program == "cairn"
    CAIRN[("cairn", name)].make_context(name, arguments)  # raises where an option is unknown, or a value none


@pytest.mark.parametrize(("service", "command"), [("scheduler", dask_scheduler), ("worker", dask_worker)])
def test_commands_of_dask_can_be_parsed(service: str, command: Any) -> None:
    program, name, *arguments = _command(service)
    assert (program, name) == ("dask", service)
    command.make_context(name, arguments)
    assert Path(sys.executable).with_name("dask").exists()


def test_workers_have_one_thread_and_all_know_the_same_scheduler() -> None:
    context = dask_worker.make_context("worker", _command("worker")[2:])
    given = context.params
    assert (given["nthreads"], given["n_workers"], given["nanny"]) == (1, "1", True)
    assert SERVICES["worker"]["environment"]["OMP_NUM_THREADS"] == "1"
    (port,) = [dask_scheduler.make_context("scheduler", _command("scheduler")[2:]).params["port"]]
    assert given["scheduler"] == f"tcp://scheduler:{port}"
    for service in ("index", "server"):
        command = _command(service)
        assert command[command.index("--cluster") + 1] == given["scheduler"]


def _free_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return str(free.getsockname()[1])


def _is_healthy(service: str, port: str) -> bool:
    kind, _, *rest = SERVICES[service]["healthcheck"]["test"]
    assert kind == "CMD"
    check = [sys.executable, *(part.replace("8787", port) for part in rest)]
    return subprocess.run(check, stderr=subprocess.DEVNULL, timeout=60).returncode == 0


@pytest.mark.slow
def test_scheduler_and_worker_run_as_they_are_told_and_a_worker_ends_with_its_scheduler(tmp_path: Path) -> None:
    ports = {name: _free_port() for name in ("8786", "scheduler", "worker")}

    def start(service: str) -> subprocess.Popen[bytes]:
        given = " ".join(_command(service)).replace("scheduler:8786", "127.0.0.1:8786").replace(" /tmp", f" {tmp_path}")
        words = given.replace("8787", ports[service]).replace("8786", ports["8786"]).split()
        program = Path(sys.executable).with_name(words[0])
        return subprocess.Popen([program, *words[1:]], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    running = []
    try:
        for service in ("scheduler", "worker"):
            assert not _is_healthy(service, ports[service])
            running.append(start(service))
            for _ in range(100):
                if _is_healthy(service, ports[service]):
                    break
                time.sleep(0.3)
            assert _is_healthy(service, ports[service])
        scheduler, worker = running
        with distributed.Client(f"tcp://127.0.0.1:{ports['8786']}", timeout=patience(20)) as client:
            client.wait_for_workers(1, timeout=patience(20))
            assert list(client.nthreads().values()) == [1]
        scheduler.terminate()
        scheduler.wait(patience(30))
        # With 0: so "on-failure" would leave it ended.
        assert worker.wait(patience(30)) == 0
        assert SERVICES["worker"]["restart"] == "unless-stopped"
        assert "\nRestart=always\n" in (ROOT / "deploy/cairn-worker.service").read_text()
    finally:
        for process in running:
            process.kill()
            process.wait()
