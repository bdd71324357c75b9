"""Improve the search of a collection: learn from its own photos, judge, and index again if searches find more.

The collection can be searched until all photos are indexed again. The next run resumes a stopped one from `improve`.
"""

import datetime
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

from index.arrays import fingerprint, load_json, save_bytes, save_json
from index.errors import CairnError
from index.messages import Message
from index.parallel import processes
from index.progress import Progress
from learning.judge.retrieval import ENGINES
from learning.library.choices import ImproveOptions, ModelChoices, PhotoChoices, RunChoices, TuningChoices
from learning.library.from_photos import TITLES as LEARNING
from learning.library.from_photos import learn_from_photos
from learning.mining.mining import TooLittle
from learning.reports.verdict_picture import draw_verdict
from retrieval.catalogue.photos import all_indexed
from retrieval.collection.collection import Collection
from retrieval.collection.layout import IMPROVEMENT, IMPROVEMENT_PICTURE, IMPROVING
from retrieval.collection.locking import lock_file
from retrieval.descriptors.foreign import is_foreign
from retrieval.descriptors.registry import find_descriptor
from retrieval.indexing.retrain_options import RetrainOptions
from retrieval.indexing.retraining import retrain
from retrieval.library.progress import INDEXING, Telling, telling
from retrieval.metadata.pages import file_of

TITLES = {**LEARNING, **INDEXING}
"""Titles of the steps: those of learning and judging, then those of indexing again."""

FORMAT = 1
"""Version of the file of results."""

BETTER, NOTHING = "better", "cannot say"

_DESCRIPTOR = "descriptor.npz"  # the learnt descriptor
_JUDGED = "judged.json"  # the verdict on it
_LEARNT = "learnt"  # folder of intermediate results
_LOCK = "lock"


@dataclass(frozen=True)
class Improvement:
    """Result of improving the search of a collection."""

    # ``better``, ``worse``, ``same`` or ``cannot say``: searches with the learnt descriptor, compared with the one in
    # use
    verdict: str
    sentence: str  # the same in a sentence, with the consequence
    # the descriptor in use before and the learnt one: ``descriptor``, its name; ``fingerprint``; and ``map``, mean
    # average precision in held-out searches, 0 to 1, by ``words`` alone and ``verified``, if measured. ``after`` is
    # None if nothing could be learnt.
    before: dict[str, Any]
    after: dict[str, Any] | None
    # basis of the outcome: ``photos`` in the database, held-out ``scenes``, ``queries``, and for ``words`` and
    # ``verified`` the numbers of queries ``won`` and ``lost``, the mean ``difference`` and its ``standard_error``
    searches: dict[str, Any] | None
    # some photos found by verified searches with the learnt descriptor only: ``photo`` and ``box``, the query, and
    # ``found``; numbers of photos of the collection
    gained: list[dict[str, Any]] = field(default_factory=list)
    switched: bool = False  # whether all photos are indexed with the learnt descriptor, and it is in use
    dropped: list[dict[str, str]] = field(default_factory=list)  # photos left out: name and reason
    at: str = ""  # end time, UTC, in ISO format
    # ``learn``, ``switch`` and ``total``: of this run, not of earlier stopped ones
    seconds: dict[str, float] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return what `cairn improve --json` prints."""
        return dict(vars(self))


def improve(
    folder: Path,
    options: ImproveOptions | None = None,
    *,
    catalogue: str | None = None,
    progress: Telling = None,
) -> Improvement:
    """Learn a descriptor from a collection's own photos, without labels, and use it if searches find more.

    Raises CollectionLocked while another process improves the collection, or changes it.
    """
    options = options or ImproveOptions()
    with telling(progress, TITLES) as tell, Collection.open(folder, catalogue=catalogue) as collection:
        _refuse(collection, options)
        work = folder / IMPROVING
        work.mkdir(exist_ok=True)
        refusal = Message("Another cairn improve is at work on {folder}: wait until it has ended.", folder=folder)
        with lock_file(work / _LOCK, refusal):
            done = _Improving(collection, options, work, catalogue, tell).run()
            if not options.dry_run:
                # The verdict is removed last: after an interruption, the next run need not learn and judge again.
                shutil.rmtree(work / _LEARNT, ignore_errors=True)
                (work / _DESCRIPTOR).unlink(missing_ok=True)
                shutil.rmtree(work, ignore_errors=True)
    return done


def _refuse(collection: Collection, options: ImproveOptions) -> None:
    """Refuse, before hours of work, a collection that could not be indexed again in the end."""
    if is_foreign(collection.options.descriptor):
        raise CairnError(
            f"{collection.folder} has features of another program, which Cairn cannot describe again: there is nothing "
            "to improve."
        )
    if options.dry_run or options.drop_missing:
        return
    gone = [row for row in collection.catalogue.read(all_indexed) if not _is_there(row.path)]
    if gone:
        raise CairnError(
            "The files of {gone} photos are gone, such as {path}, and what is learnt must describe all photos again: "
            "bring them back, or run {cairn index} with the folder where they are now, or leave them out with "
            "{--drop-missing}.",
            gone=len(gone),
            path=gone[0].path,
        )


def _is_there(path: str) -> bool:
    try:
        return file_of(path).is_file()
    except OSError:  # no permission, which indexing reports
        return True


class _Improving:
    def __init__(
        self,
        collection: Collection,
        options: ImproveOptions,
        work: Path,
        catalogue: str | None,
        tell: Progress,
    ) -> None:
        self.collection = collection
        self.options = options
        self.work = work
        self.workers = processes(options.workers)
        self.catalogue = catalogue
        self.tell = tell
        self.began = perf_counter()
        self.seconds = {"learn": 0.0, "switch": 0.0, "total": 0.0}

    def run(self) -> Improvement:
        judged = self._stored_verdict()
        if judged is None:
            judged = self._learn()
            save_json(self.work / _JUDGED, judged)
        self.seconds["learn"] = round(perf_counter() - self.began, 3)
        verdict = judged["found"]
        dropped: list[dict[str, str]] = []
        switched = False
        if verdict["verdict"] == BETTER and not self.options.dry_run:
            dropped = self._switch(verdict["after"])
            switched = True
        self.seconds["total"] = round(perf_counter() - self.began, 3)
        done = Improvement(
            **{**verdict, "sentence": _sentence(verdict, switched, self.options.dry_run)},
            switched=switched,
            dropped=dropped,
            at=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            seconds=self.seconds,
        )
        if not self.options.dry_run:
            # The picture first: the results are shown with it.
            save_bytes(self.collection.folder / IMPROVEMENT_PICTURE, draw_verdict(done.to_dict()).encode())
            save_json(self.collection.folder / IMPROVEMENT, {"format": FORMAT, **done.to_dict()})
        return done

    def _state(self) -> str:
        """Fingerprint of photos, regions and seed; stored results are valid as long as it stays the same."""
        photos = [(row.number, row.sha256) for row in self.collection.catalogue.read(all_indexed)]
        own = self.collection.options
        regions = {"features": own.features, "image": own.image}
        return fingerprint({}, {"photos": photos, "seed": self.options.seed, "format": FORMAT, "regions": regions})

    def _stored_verdict(self) -> dict[str, Any] | None:
        """Results of an earlier run, if still valid: for the descriptor in use, or in use until that run switched."""
        with suppress(CairnError, KeyError, TypeError):
            judged: dict[str, Any] = load_json(self.work / _JUDGED)
            verdict = judged["found"]
            ends = [verdict[which]["fingerprint"] for which in ("before", "after") if verdict[which] is not None]
            if judged["state"] == self._state() and self.collection.descriptor.fingerprint in ends:
                return judged
        return None

    def _learn(self) -> dict[str, Any]:
        (self.work / _JUDGED).unlink(missing_ok=True)
        state, used = self._state(), self.collection.descriptor
        before: dict[str, Any] = {"descriptor": used.name, "fingerprint": used.fingerprint, "map": None}
        verdict: dict[str, Any] = {"verdict": NOTHING, "before": before, "after": None, "searches": None}
        try:
            learnt = learn_from_photos(
                self.collection.folder,
                self.work / _DESCRIPTOR,
                ModelChoices(),
                PhotoChoices(rival=self.collection.descriptor_source),
                TuningChoices(),
                RunChoices(
                    folder=self.work / _LEARNT, keeps=True, goes=True, workers=self.workers, seed=self.options.seed
                ),
                self.tell,
                catalogue=self.catalogue,
            )
        except CairnError as error:
            if not isinstance(error.__cause__, TooLittle):
                raise
            return {"state": state, "found": {**verdict, "sentence": str(error.__cause__)}}
        figures = learnt.to_dict()["retrieval"]
        after: dict[str, Any] = {"descriptor": learnt.name, "fingerprint": learnt.fingerprint, "map": None}
        verdict |= {"after": after, "sentence": str(learnt.verdict)}
        if figures["measured"]:  # only searches decide
            before["map"] = {_TITLE[one]: figures[one][used.name] for one in ENGINES}
            after["map"] = {_TITLE[one]: figures[one]["learnt"] for one in ENGINES}
            wanted = ("won", "lost", "difference", "standard_error")
            verdict |= {
                "verdict": figures["outcome"],
                "gained": figures.get("gained", []),
                "searches": {
                    "photos": figures["photos"],
                    "scenes": figures["held_out_scenes"],
                    "queries": figures["queries"],
                    **{_TITLE[one]: {key: figures[one].get(key) for key in wanted} for one in ENGINES},
                },
            }
        return {"state": state, "found": verdict}

    def _switch(self, after: Mapping[str, Any]) -> list[dict[str, str]]:
        """Index all photos again with the learnt descriptor, and switch at once; return the photos left out."""
        began = perf_counter()
        dropped: list[dict[str, str]] = []
        if self.collection.descriptor.fingerprint != after["fingerprint"]:  # else done by an earlier run
            file = self.work / _DESCRIPTOR
            if find_descriptor(str(file)).fingerprint != after["fingerprint"]:
                raise CairnError(
                    "{file} is not what was judged: delete {work} and run {cairn improve} again.",
                    file=file,
                    work=self.work,
                )
            own = self.collection.options
            wanted = RetrainOptions(
                words=own.words,
                seed=self.options.seed,
                drop_missing=self.options.drop_missing,
                descriptor=str(file),
            )
            dropped = retrain(self.collection, wanted, workers=self.workers, progress=self.tell).dropped
        self.seconds["switch"] = round(perf_counter() - began, 3)
        return dropped


_TITLE = dict(zip(ENGINES, ("words", "verified"), strict=True))
"""Readable names of the compared engines."""


def _sentence(verdict: Mapping[str, Any], switched: bool, dry_run: bool) -> str:
    """State the result and its consequence."""
    searches = verdict["searches"]
    if verdict["verdict"] == BETTER and searches is not None:
        # The engine that decides: verified searches, unless they are as good as before.
        which = max(("verified", "words"), key=lambda one: searches[one]["difference"] or 0.0)
        follows = "All photos are indexed with it now." if switched else "cairn improve would index all photos with it."
        return (
            f"What was learnt finds more: of {searches['queries']:,} searches for parts of {searches['scenes']:,} "
            f"scenes that it was not learnt from, {searches[which]['won']:,} found more and "
            f"{searches[which]['lost']:,} less than with {verdict['before']['descriptor']}. {follows}"
        )
    return f"{verdict['sentence']} {'Nothing is changed.' if not dry_run else 'Nothing would be changed.'}"
