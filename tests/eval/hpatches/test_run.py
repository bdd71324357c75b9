"""HPatches on tiny sequences: every figure compared with the benchmark's definitions, item by item."""

import csv
import json
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import cairn as library
from eval.hpatches.lists import ListedPatches, draw_lists
from eval.hpatches.options import HPatchesChoices
from eval.hpatches.release import IMAGES, find_sequences
from eval.hpatches.rows import describe_sequences, read_sequences
from eval.hpatches.run import HPatchesReport, evaluate_hpatches
from eval.hpatches.tasks import POOLS, pool_precision, ranked_auc, ranked_precision
from index.errors import CairnError
from retrieval.descriptors.registry import find_descriptor
from tests.conftest import Ran

Cairn = Callable[..., Ran]
COUNTS = {"i_one": 11, "i_two": 8, "v_one": 14, "v_two": 9}
DIM = 6
NOISE = {"easy": "e", "hard": "h", "tough": "t"}
Table = dict[str, dict[str, np.ndarray]]


@pytest.fixture(scope="module")
def table() -> Table:
    """Descriptions by sequence and image: integers, so that many distances are equal; noisier for tougher images."""
    rng = np.random.default_rng(2)
    table: Table = {}
    for name, count in COUNTS.items():
        true = rng.integers(0, 12, (count, DIM))
        spread = {"r": 0, "e": 1, "h": 3, "t": 6}
        table[name] = {
            image: (true + rng.integers(-spread[image[0]], spread[image[0]] + 1, true.shape)).astype(np.float32)
            for image in IMAGES
        }
    return table


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The release of those sequences, of noise."""
    root = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(3)
    for name, count in COUNTS.items():
        folder = root / "hpatches-release" / name
        folder.mkdir(parents=True)
        reference = rng.normal(128, 40, (65 * count, 65))
        for image in IMAGES:
            noisy = reference + rng.normal(0, 4 * "reht".index(image[0]), reference.shape)
            Image.fromarray(noisy.clip(0, 255).astype(np.uint8)).save(folder / f"{image}.png")
    return root


@pytest.fixture(scope="module")
def folder(table: Table, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The descriptions in the benchmark's layout."""
    folder = tmp_path_factory.mktemp("descriptors") / "mine"
    for name, images in table.items():
        (folder / name).mkdir(parents=True)
        for image, rows in images.items():
            np.savetxt(folder / name / f"{image}.csv", rows, "%g", delimiter=",")
    return folder


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Lists in the form of the benchmark's own: the split a leaves out one sequence."""
    tasks = tmp_path_factory.mktemp("benchmark") / "tasks"
    (tasks / "splits").mkdir(parents=True)
    test = ["v_two", "i_one", "v_one"]
    splits = {"a": {"name": "a", "test": test, "train": ["i_two"]}, "c": {"test": ["v_gone"]}}
    (tasks / "splits" / "splits.json").write_text(json.dumps(splits))
    rng = np.random.default_rng(4)

    def write(name: str, header: str, rows: list[tuple[object, ...]]) -> None:
        with (tasks / f"{name}_split-a.csv").open("w", newline="") as file:
            csv.writer(file).writerows([header.split(","), *rows])

    pairs: dict[str, list[tuple[object, ...]]] = {"pos": [], "neg_intra": [], "neg_inter": []}
    for _ in range(60):
        one, two = rng.choice(test, 2, replace=False)
        t1, t2 = rng.choice(6, 2, replace=False)
        a, b = rng.choice(COUNTS[one], 2, replace=False)
        pairs["pos"].append((one, t1, a, one, t2, a))
        pairs["neg_intra"].append((one, t1, a, one, t2, b))
        pairs["neg_inter"].append((one, t1, a, two, t2, rng.integers(COUNTS[two])))
    for kind, rows in pairs.items():
        write(f"verif_{kind}", "s1,t1,idx1,s2,t2,idx2", rows)
    refs = [(name, number) for name in test for number in range(COUNTS[name])]
    rng.shuffle(refs)
    write("retr_queries", "s,idx", refs[:9])
    write("retr_distractors", "s,idx", refs[9:])
    return tasks


def area(points: list[tuple[float, float]]) -> float:
    return sum((x1 - x0) * (y0 + y1) / 2 for (x0, y0), (x1, y1) in pairwise(points))


def pr_area(distances: list[float], labels: list[bool], positives: int | None = None) -> float:
    """`metrics.pr`: precision against recall from (0, 1) on, a point a row, by trapezoids."""
    order = sorted(range(len(labels)), key=lambda row: distances[row])
    points, tp = [(0.0, 1.0)], 0
    for rank, row in enumerate(order, start=1):
        tp += labels[row]
        points.append((tp / (positives or sum(labels)), tp / rank))
    return area(points)


def roc_area(distances: list[float], labels: list[bool]) -> float:
    """`metrics.roc`: true against false positives, a point a row."""
    order = sorted(range(len(labels)), key=lambda row: distances[row])
    points, tp, fp = [(0.0, 0.0)], 0, 0
    for row in order:
        tp, fp = tp + labels[row], fp + (not labels[row])
        points.append((fp / (len(labels) - sum(labels)), tp / sum(labels)))
    return area(points)


def read(tasks: Path, name: str) -> list[list[str]]:
    return list(csv.reader((tasks / f"{name}_split-a.csv").open()))[1:]


def image_of(number: int, letter: str) -> str:
    return "ref" if number == 0 else f"{letter}{number}"


@pytest.fixture(scope="module")
def report(root: Path, folder: Path, tasks: Path) -> HPatchesReport:
    return evaluate_hpatches(root, partial(read_sequences, folder), HPatchesChoices(tasks=tasks.parent))


def test_verification_is_that_of_the_benchmark(report: HPatchesReport, table: Table, tasks: Path) -> None:
    assert report.verification is not None
    figures = []
    for noise, letter in NOISE.items():

        def distances(kind: str, letter: str = letter) -> list[float]:
            rows = read(tasks, f"verif_{kind}")
            ends = [
                (table[s1][image_of(int(t1), letter)][int(a)], table[s2][image_of(int(t2), letter)][int(b)])
                for s1, t1, a, s2, t2, b in rows
            ]
            return [float(np.linalg.norm(one - two)) for one, two in ends]

        positives = distances("pos")
        for kind in ("intra", "inter"):
            negatives = distances(f"neg_{kind}")
            labels = [False] * 60 + [True] * 60
            balanced = roc_area(negatives + positives, labels)
            imbalanced = pr_area((negatives + positives)[:72], labels[:72])  # all negatives, a fifth of the positives
            assert report.verification.areas["balanced"][kind][noise] == pytest.approx(balanced)
            assert report.verification.areas["imbalanced"][kind][noise] == pytest.approx(imbalanced)
            figures.append((balanced, imbalanced))
    means = np.mean(figures, axis=0)
    assert (report.verification.mean("balanced"), report.verification.mean("imbalanced")) == pytest.approx(tuple(means))


def test_matching_is_that_of_the_benchmark(report: HPatchesReport, table: Table) -> None:
    assert report.matching is not None
    of_kind: dict[tuple[str, str], list[float]] = {}
    for name in ("v_two", "i_one", "v_one"):
        for noise, letter in NOISE.items():
            figures = []
            for image in range(1, 6):
                nearest = []
                for row in table[name]["ref"]:
                    distances = np.linalg.norm(table[name][f"{letter}{image}"] - row, axis=1)
                    nearest.append((float(distances.min()), int(distances.argmin())))
                right = [place == number for number, (_, place) in enumerate(nearest)]
                figures.append(pr_area([distance for distance, _ in nearest], right, COUNTS[name]))
            assert report.matching.ap[name][noise] == pytest.approx(np.mean(figures))
            of_kind.setdefault((name[0], noise), []).append(float(np.mean(figures)))
    means = [np.mean([np.mean(of_kind[kind, noise]) for noise in NOISE]) for kind in "iv"]
    assert report.matching.mean == pytest.approx(np.mean(means))
    assert report.matching.mean_of("viewpoint", "hard") == pytest.approx(np.mean(of_kind["v", "hard"]))


def test_retrieval_is_that_of_the_benchmark(report: HPatchesReport, table: Table, tasks: Path) -> None:
    assert report.retrieval is not None
    pool = [(name, table[name]["ref"][int(number)]) for name, number in read(tasks, "retr_distractors")]
    for noise, letter in NOISE.items():
        figures = []
        for name, number in read(tasks, "retr_queries"):
            query = table[name]["ref"][int(number)]
            ranked = [table[name][f"{letter}{image}"][int(number)] for image in range(1, 6)]
            ranked += [row for other, row in pool if other != name]
            distances = [float(np.linalg.norm(row - query)) for row in ranked]
            figures.append(pr_area(distances, [True] * 5 + [False] * (len(ranked) - 5)))
        assert report.retrieval.ap[noise] == pytest.approx(dict.fromkeys(POOLS, np.mean(figures)))


def test_pools_are_the_first_of_the_list() -> None:
    rng = np.random.default_rng(5)
    right, pool = rng.integers(0, 40, 5).astype(float), rng.integers(0, 400, 6000).astype(float)
    wanted = [pr_area([*right, *pool][:size], ([True] * 5 + [False] * 6000)[:size]) for size in POOLS]
    np.testing.assert_allclose(pool_precision(right, pool), wanted)
    labels = rng.random(200) < 0.3
    distances = rng.integers(0, 30, 200).astype(float)
    assert ranked_precision(distances, labels) == pytest.approx(pr_area(distances.tolist(), labels.tolist()))
    assert ranked_auc(distances, labels) == pytest.approx(roc_area(distances.tolist(), labels.tolist()))


def test_bits_are_compared_by_hamming_distance_and_numbers_by_l1(root: Path, table: Table, tmp_path: Path) -> None:
    for name, images in table.items():
        (tmp_path / name).mkdir()
        for image, rows in images.items():
            np.save(tmp_path / name / f"{image}.npy", (rows % 256).astype(np.uint8))
    reports = {
        distance: evaluate_hpatches(
            root, partial(read_sequences, tmp_path, distance=distance), HPatchesChoices(max_pairs=50)
        )
        for distance in ("hamming", "l1")
    }
    assert (reports["hamming"].dim, reports["hamming"].bytes) == (8 * DIM, DIM)
    rows = {name: {image: (one % 256).astype(np.uint8) for image, one in of.items()} for name, of in table.items()}
    bits = {name: {image: np.unpackbits(one, 1) for image, one in of.items()} for name, of in rows.items()}
    for distance, of in (("hamming", bits), ("l1", rows)):
        one, other = of["v_one"]["ref"].astype(int), of["v_one"]["h3"].astype(int)
        nearest = np.abs(one[:, None] - other[None]).sum(axis=2)
        found = read_sequences(tmp_path, find_sequences(root), distance)
        np.testing.assert_array_equal(found.matrix(found.of("v_one", "ref"), found.of("v_one", "h3")), nearest)
        start = np.array([2, 2]), np.array([0, 8]), np.array([3, 5])  # of v_one: patch 3 of ref, 5 of h3
        places = found.places(COUNTS, *start)
        assert found.pairwise(places[:1], places[1:])[0] == nearest[3, 5]


def test_drawn_lists_have_the_benchmarks_proportions(root: Path) -> None:
    sequences = find_sequences(root)
    lists = draw_lists("full", sequences, seed=1, most=3000)
    counts = np.array(list(COUNTS.values()))
    assert [len(one) for pairs in (lists.positives, lists.intra, lists.inter) for one in pairs] == [3000] * 6
    for first, second in (lists.positives, lists.intra, lists.inter):
        for one in (first, second):
            assert ((one.numbers >= 0) & (one.numbers < counts[one.sequences])).all()
            assert set(one.images) == set(range(5))
        assert (first.images != second.images).all()
    same = [(one.sequences == two.sequences, one.numbers == two.numbers) for one, two in (lists.positives, lists.intra)]
    assert same[0][0].all() and same[0][1].all() and same[1][0].all() and not same[1][1].any()
    assert (lists.inter[0].sequences != lists.inter[1].sequences).all()
    np.testing.assert_allclose(np.bincount(lists.positives[0].sequences) / 3000, 0.25, atol=0.04)

    def keys(patches: ListedPatches) -> set[tuple[int, int]]:
        return set(zip(patches.sequences.tolist(), patches.numbers.tolist(), strict=True))

    queries, distractors = keys(lists.queries), keys(lists.distractors)
    assert (len(queries), len(distractors)) == (14, 28) and not queries & distractors
    assert not lists.is_published
    again, other = (draw_lists("full", sequences, seed=seed, most=3000) for seed in (1, 2))
    np.testing.assert_array_equal(again.inter[1].numbers, lists.inter[1].numbers)
    assert (other.inter[1].numbers != lists.inter[1].numbers).any()


def test_a_descriptor_finds_the_same_patches_the_better_the_less_noise(root: Path) -> None:
    report = evaluate_hpatches(
        root, partial(describe_sequences, descriptor=find_descriptor("rootsift")), HPatchesChoices(max_pairs=200)
    )
    assert report.matching is not None and report.retrieval is not None and report.verification is not None
    assert (report.dim, report.sequences, report.patches) == (128, 4, 16 * sum(COUNTS.values()))
    assert report.matching.mean > 0.95 and report.verification.mean("balanced") > 0.95
    assert report.retrieval.mean_of("easy") >= report.retrieval.mean_of("tough") > 0.5


def test_the_command_prints_figures_and_says_what_is_wrong(
    cairn: Cairn, root: Path, folder: Path, tasks: Path, report: HPatchesReport, tmp_path: Path
) -> None:
    requested = ("evaluate", "hpatches", root, "--descriptions", folder)
    found = cairn(*requested, "--tasks", tasks, "--json").json
    assert found["comparable_with_published"] and (found["split"], found["sequences"]) == ("a", 3)
    assert report.matching is not None and found["matching"]["mAP"] == round(report.matching.mean, 6)
    assert found["retrieval"]["pools"]["easy"]["100"] == round(report.as_json()["retrieval"]["pools"]["easy"]["100"], 6)
    plain = cairn(*requested, "--max-pairs", 20, "--task", "matching", "--split", "view")
    assert "matching viewpoint" in plain.out and "verification" not in plain.out and "illumination" not in plain.out
    assert "do not compare with published" in plain.err
    for more, said in (
        (("--split", "a"), "name its folder by --tasks"),
        (("--tasks", tasks, "--split", "c"), "such as 'v_gone', are not there"),
        (("--tasks", tasks, "--split", "b"), "no split 'b'"),
        (("--task", "all"), "no task 'all'"),
        (("--descriptor", "sift"), "exclude each other"),
        (("--binary",), "bytes of packed bits"),
    ):
        assert said in cairn(*requested, *more).refused()
    nothing = cairn("evaluate", "hpatches", tmp_path)
    assert nothing.code == 2 and "no sequences of HPatches" in nothing.err


def test_files_that_do_not_fit_are_said(root: Path, folder: Path, tasks: Path, tmp_path: Path) -> None:
    sequences = find_sequences(root)
    with pytest.raises(CairnError, match=r"no file .*i_one/ref\.csv or \.npy"):
        read_sequences(tmp_path, sequences)
    broken = tmp_path / "hpatches-release" / "i_x"
    broken.mkdir(parents=True)
    Image.fromarray(np.zeros((65, 65), np.uint8)).save(broken / "ref.png")
    with pytest.raises(CairnError, match=r"lacks e1\.png and 14 more"):
        find_sequences(tmp_path)
    for image in IMAGES:
        Image.fromarray(np.zeros((66, 65), np.uint8)).save(broken / f"{image}.png")
    with pytest.raises(CairnError, match="no 65x65 patches below each other"):
        find_sequences(tmp_path)
    lists = tmp_path / "tasks"
    lists.mkdir()
    (lists / "splits.json").write_text('{"a": {"test": ["i_one", "v_one"]}}')
    wanted = HPatchesChoices(task=("retrieval",), tasks=lists)
    with pytest.raises(CairnError, match=r"There is no list .*retr_queries_split-a\.csv"):
        evaluate_hpatches(root, partial(read_sequences, folder), wanted)
    for row, said in (("i_one,11", "names patch 11 of image 0 of i_one"), ("i_two,1", "line 2: expected s,idx")):
        (lists / "retr_queries_split-a.csv").write_text(f"s,idx\n{row}\n")
        with pytest.raises(CairnError, match=said):
            evaluate_hpatches(root, partial(read_sequences, folder), wanted)


@pytest.mark.slow
def test_python_measures_what_the_command_prints(root: Path, folder: Path, cairn: Cairn) -> None:
    printed = cairn("evaluate", "hpatches", root, "--descriptions", folder, "--l1", "--seed", 3, "--json").json
    found = library.evaluate_hpatches(root, descriptions=folder, distance="l1", seed=3)
    reported = found.to_dict()
    assert {key: one for key, one in reported.items() if key != "seconds"} == {
        key: one for key, one in printed.items() if key != "seconds"
    }
    for task in ("verification", "matching", "retrieval"):
        assert getattr(found, task) == pytest.approx(printed[task]["mAP"], abs=1e-6)
    only = library.evaluate_hpatches(root, library.Descriptor.load("ssd"), task=["matching"])
    assert only.verification is None and only.retrieval is None and 0 < (only.matching or 0) <= 1
    assert not only.comparable_with_published
    with pytest.raises(CairnError, match="compared by l2, l1 or hamming"):
        library.evaluate_hpatches(root, descriptions=folder, distance="cosine")
