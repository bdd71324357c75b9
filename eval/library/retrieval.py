"""Scores of rankings, from elsewhere or by a benchmark run here, as a function of `import cairn`."""

import inspect
from collections.abc import Hashable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from numpy.typing import NDArray

from eval.library.benchmark import NOT_MEASURED, TITLES, measure
from eval.retrieval.options import BenchmarkFiles, BenchmarkRequest, BenchmarkSetup
from index.docstrings import documented
from index.errors import CairnError
from index.options.arguments import takes_options
from index.options.declaration import options_of
from index.parallel import processes
from index.text import shown
from learning.library.paths import AnyPath, Paths, as_path, as_paths, is_path
from retrieval.collection.layout import OPTIONS
from retrieval.collection.options import CollectionOptions
from retrieval.library.progress import Telling, telling
from retrieval.search.options import SearchOptions

if TYPE_CHECKING:
    from eval.rankings.ground_truth import GroundTruth
    from eval.rankings.scoring import RankingReport, ScoredQuery

_LABELS = ("good", "ok", "junk")
_OPTIONS: tuple[type, ...] = (CollectionOptions, SearchOptions, BenchmarkSetup, BenchmarkRequest, BenchmarkFiles)


@documented
@dataclass(frozen=True)
class RetrievalEvaluation:
    """Scores of rankings.

    Examples
    --------
    >>> import cairn
    >>> found = cairn.evaluate_retrieval({"q": ["a", "x", "b"]}, {"q": {"a", "b"}})
    >>> recall, precision = found.curve("q")
    >>> recall.tolist(), precision.round(2).tolist()
    ([0.5, 0.5, 1.0], [1.0, 0.5, 0.67])
    >>> found.rows
    [{'query': 'q', 'ap': 0.7916666666666666, 'positives': 2, 'found': 2}]
    """

    mean_ap: Annotated[
        float, "Mean average precision over the queries with positives, 0 to 1; for Revisited under Medium."
    ]
    ap: Annotated[dict[str, float], "Average precision of each of these queries."] = field(repr=False)
    protocols: Annotated[
        dict[str, dict[str, float]],
        "The same under each protocol: ``easy``, ``medium`` and ``hard`` of Revisited, and else one with no name.",
    ] = field(repr=False)
    unranked: Annotated[list[str], "Queries without a ranking, which score 0."]
    _scores: "RankingReport" = field(repr=False)
    _facts: dict[str, Any] = field(repr=False)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A row for each query, for a table: ``pandas.DataFrame(found.rows)``."""
        several = len(self.protocols) > 1
        return [
            {
                **({"protocol": protocol} if several else {}),
                "query": score.query.name,
                "ap": score.ap,
                **{f"P@{k}": score.precision_at(k) for k in self._scores.cutoffs},
                "positives": len(score.query.positives),
                "found": len(score.ranks),
            }
            for protocol, scores in self._scores.protocols.items()
            for score in scores
        ]

    def curve(
        self, query: str | None = None, protocol: str | None = None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return precision against recall.

        Parameters
        ----------
        query : str, optional
            Of one query: a point after each photo of its ranking, junk left out. None: the mean over all queries of the
            interpolated precision, at 101 recalls (Manning, Raghavan, Schütze, section 8.4).
        protocol : str, optional
            One of `protocols`; None: that of `mean_ap`.

        Returns
        -------
        recall, precision : ndarray, shape (M,) or (101,), float64

        Raises
        ------
        CairnError
            There is no such query or protocol.
        """
        from eval.rankings.curves import RECALLS, curves_of, precision_recall

        scores = self._of(protocol)
        if query is None:
            return RECALLS.copy(), curves_of(scores).mean
        for score in scores:
            if score.query.name == query:
                return precision_recall(score.hits, len(score.query.positives))
        raise CairnError(
            f"There is no query {shown(query)} that has a positive: there is {shown(next(iter(self.ap)))}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return what `cairn evaluate ranking --json` or `cairn evaluate retrieval --json` prints."""
        return deepcopy(self._facts)

    def _of(self, protocol: str | None) -> "list[ScoredQuery]":
        name = _main(self.protocols) if protocol is None else protocol
        if name not in self._scores.protocols:
            raise CairnError(f"There is no protocol {shown(name)}: there is {', '.join(map(shown, self.protocols))}.")
        return self._scores.protocols[name]


@takes_options(*_OPTIONS, leave=NOT_MEASURED)
def evaluate_retrieval(
    photos: Mapping[Any, Iterable[Any]] | Paths,
    truth: Mapping[Any, Any] | AnyPath,
    *,
    queries: AnyPath | None = None,
    progress: Telling = None,
    **options: Any,
) -> RetrievalEvaluation:
    """Score rankings, or index photos and score Cairn's rankings of them.

    Parameters
    ----------
    photos : dict, or path or list of paths
        Rankings: by the query's name the names of photos, best first (strings, or results of a search); or a file of
        them (.csv, .tsv, .json, .txt), as for `cairn evaluate ranking`. Or photos: a folder, or a list of folders, to
        index and search.
    truth : dict or path
        Ground truth: by the query's name a set of its positives, or a dict of sets ``good``, ``ok`` and ``junk``, with
        junk ignored; for rankings in a dict. Or a folder in the layout of Oxford5K or of Stanford Mobile Visual Search,
        or a file ``gnd_*.pkl`` of Revisited.
    queries : path, optional
        Folder of query photos outside the photos.
    progress : None, bool or callable
        Progress: none, bars, or a function of (step, done, of).
    {options}

    Returns
    -------
    RetrievalEvaluation

    Raises
    ------
    CairnError
        A query or photo is ranked twice or unknown, no query has positives, options are incompatible, or a file cannot
        be read.

    Notes
    -----
    Average precision is the area under precision over recall by trapezoids; junk takes no rank, an unranked positive
    counts as not found, a query without a ranking scores 0 and one without positives is left out. Source: Philbin,
    Chum, Isard, Sivic, Zisserman, CVPR 2007 (``compute_ap``); Radenović et al., CVPR 2018, section 3.3.

    Examples
    --------
    Rankings that any program made:

    >>> import cairn
    >>> truth = {"door": {"good": {"a", "b"}, "junk": {"j"}}, "tower": {"good": {"t"}}}
    >>> found = cairn.evaluate_retrieval({"door": ["a", "j", "x", "b"], "tower": ["t", "a"]}, truth)
    >>> found.ap["tower"], round(found.ap["door"], 4), round(found.mean_ap, 4)
    (1.0, 0.7917, 0.8958)
    >>> len(found.rows)
    2
    >>> recall, precision = found.curve()
    >>> precision.shape, float(precision[0])
    ((101,), 1.0)
    """
    chosen = {**_DEFAULTS, **options}
    processes(chosen["workers"])  # reports what is wrong with it
    with telling(progress, TITLES) as tell:
        if isinstance(photos, Mapping) or (is_path(photos) and as_path(photos).is_file()):
            _refuse_options(chosen, queries)
            scores = _score(photos, truth)
            return _evaluation(scores, scores.unranked, scores.as_json())
        if isinstance(truth, Mapping):
            raise CairnError(
                "Photos are searched by a ground truth in files, whose queries have boxes: give its folder; a dict is "
                "for rankings in a dict."
            )
        folders, gt = as_paths(photos, "photos"), as_path(truth, "truth")
        for folder in folders:
            if (folder / OPTIONS).is_file():
                raise CairnError(
                    f"{folder} is a collection: give the folders of its photos, and this as collection, to search it."
                )
        query_folder = _optional(queries, "queries")
        chosen = _chosen(chosen)
        explicit = {name for name, value in chosen.items() if value != _DEFAULTS[name]}
        from eval.retrieval.vocabulary import title_of

        outcome = measure(folders, gt, query_folder, chosen, explicit, tell, name=title_of(folders))
    from eval.rankings.benchmark import report_of
    from eval.rankings.ground_truth import of_truth

    ranked = {
        protocol: {score.name: score.ranking for score in scores} for protocol, scores in outcome.protocols.items()
    }
    return _evaluation(report_of(ranked, of_truth(outcome.truth)), [], outcome.as_json())


_ASKED = ("photos", "truth", "queries", "progress")


def _chosen(options: Mapping[str, Any]) -> dict[str, Any]:
    chosen = {name: value for name, value in options.items() if name not in _ASKED}
    for name, one in options_of(*_OPTIONS).items():
        if one.item is Path and one.several:
            chosen[name] = as_paths(chosen[name], name) if chosen[name] else []
        elif one.item is Path:
            chosen[name] = _optional(chosen[name], name)
    return chosen | {"vocabulary_photos": str(chosen["vocabulary_photos"])}


def _optional(value: Any, name: str) -> Path | None:
    return None if value is None else as_path(value, name)


_DEFAULTS = _chosen({name: one.default for name, one in inspect.signature(evaluate_retrieval).parameters.items()})
"""Defaults of the options."""


def _refuse_options(options: Mapping[str, Any], queries: AnyPath | None) -> None:
    """Raise CairnError if options of a search are set for existing rankings."""
    explicit = [name for name, value in _chosen(options).items() if value != _DEFAULTS[name]]
    explicit += ["queries"] if queries is not None else []
    if explicit:
        raise CairnError(f"{explicit[0]} is for photos that are searched: rankings are scored as they are.")


def _main(protocols: Iterable[str]) -> str:
    names = list(protocols)
    return names[0] if len(names) == 1 else "medium"


def _evaluation(scores: "RankingReport", unranked: list[str], facts: dict[str, Any]) -> RetrievalEvaluation:
    protocols = {
        protocol: {score.query.name: score.ap for score in of_one} for protocol, of_one in scores.protocols.items()
    }
    main = _main(protocols)
    return RetrievalEvaluation(scores.mean(main), protocols[main], protocols, unranked, scores, facts)


def _score(rankings: Any, truth: Any) -> "RankingReport":
    from eval.rankings.files import Rankings, read_rankings
    from eval.rankings.ground_truth import read_truth_of_rankings
    from eval.rankings.scoring import score_rankings

    if isinstance(truth, Mapping):
        if not isinstance(rankings, Mapping):
            raise CairnError(
                "A file of rankings is scored by a ground truth in files; a dict is for rankings in a dict."
            )
        return _score_named(rankings, _ground_truth(truth))
    if not isinstance(rankings, Mapping):
        return score_rankings(read_rankings(as_path(rankings)), read_truth_of_rankings(as_path(truth, "truth")))
    by_query = {
        _string(query): [_string(photo) for photo in _names(query, ranked)] for query, ranked in rankings.items()
    }
    return score_rankings(Rankings(by_query, "The rankings given"), read_truth_of_rankings(as_path(truth, "truth")))


def _string(name: Hashable) -> str:
    if not isinstance(name, str):
        raise CairnError(f"The ground truth of files knows photos by their names, not by {name!r}.")
    return name


def _ground_truth(truth: Mapping[Any, Any]) -> "GroundTruth":
    from eval.protocols.truth import PLAIN
    from eval.rankings.ground_truth import GroundTruth, JudgedQuery

    judged = []
    for query, photos in truth.items():
        labels = photos if isinstance(photos, Mapping) else {"good": photos}
        if strange := [name for name in labels if name not in _LABELS]:
            raise CairnError(f"The truth of {query!r} has {strange[0]!r}: it may have {', '.join(_LABELS)}.")
        good, ok, junk = (_names(query, labels.get(name, ())) for name in _LABELS)
        positives, ignored = frozenset(good) | frozenset(ok), frozenset(junk)
        if both := positives & ignored:
            raise CairnError(f"{next(iter(both))!r} is junk of {query!r} and to be found by it: keep one of them.")
        judged.append(JudgedQuery(query, query, None, positives, ignored))
    return GroundTruth({PLAIN: judged})


def _names(query: Any, photos: Any) -> list[Hashable]:
    """Names of photos, from names or results of a search."""
    if isinstance(photos, str | bytes) or not isinstance(photos, Iterable):
        raise CairnError(f"What is given for {query!r} must be a list or set of names, not {photos!r}.")
    # A path is more than its name.
    names = [photo if isinstance(photo, PurePath) else getattr(photo, "name", photo) for photo in photos]
    if any(not isinstance(name, Hashable) for name in names):
        raise CairnError(f"What is given for {query!r} must be names or numbers.")
    return names


def _score_named(rankings: Mapping[Any, Any], truth: "GroundTruth") -> "RankingReport":
    """Score rankings with exactly the names of the ground truth."""
    from eval.rankings.scoring import RankingReport, score_named

    (protocol,), queries = truth.protocols, [query.name for query in next(iter(truth.protocols.values()))]
    known = frozenset(queries)
    by_query: dict[str, Sequence[Any]] = {}
    for query, photos in rankings.items():
        if query not in known:
            raise CairnError(f"There is a ranking for {query!r}, which is no query of the ground truth.")
        by_query[query] = _names(query, photos)
        if len(set(by_query[query])) < len(by_query[query]):
            raise CairnError(f"The ranking for {query!r} has a photo twice: keep the better place.")
    unranked = [query for query in queries if query not in by_query]
    return RankingReport(score_named({protocol: by_query}, truth), unranked, "", [], truth.cutoffs)
