"""The types of `import cairn`; written by scripts/documentation/public_names.py."""

from collections.abc import Collection as _Names

import typer as _typer

from eval.library.hpatches import HPatchesEvaluation as HPatchesEvaluation
from eval.library.hpatches import evaluate_hpatches as evaluate_hpatches
from eval.library.patches import PatchEvaluation as PatchEvaluation
from eval.library.patches import evaluate_patches as evaluate_patches
from eval.library.reproduce import Reproduced as Reproduced
from eval.library.reproduce import reproduce as reproduce
from eval.library.retrieval import RetrievalEvaluation as RetrievalEvaluation
from eval.library.retrieval import evaluate_retrieval as evaluate_retrieval
from index.errors import CairnError as CairnError
from index.errors import LaterVersion as LaterVersion
from index.errors import Unreadable as Unreadable
from index.extensions import ExtensionMissing as ExtensionMissing
from index.extensions import register as register
from learning.library.blocks import learn_blocks as learn_blocks
from learning.library.boosted import learn_boosted as learn_boosted
from learning.library.compressing import compress as compress
from learning.library.descriptor import learn_descriptor as learn_descriptor
from learning.library.embedding import learn_embedding as learn_embedding
from learning.library.mining import Mined as Mined
from learning.library.mining import mine as mine
from learning.library.new_descriptor import NewDescriptor as NewDescriptor
from learning.library.similarity import NewSimilarity as NewSimilarity
from learning.library.similarity import learn_similarity as learn_similarity
from retrieval.catalogue.curation.sidecars import Sidecars as Sidecars
from retrieval.catalogue.filters import PhotoFilter as Filter
from retrieval.catalogue.metadata_refresh import Refreshed as Refreshed
from retrieval.catalogue.photo_lookup import PhotoNotFound as PhotoNotFound
from retrieval.collection.collection import CollectionChanged as CollectionChanged
from retrieval.collection.collection import CollectionNotFound as CollectionNotFound
from retrieval.collection.locking import CollectionLocked as CollectionLocked
from retrieval.curation.editing import Edited as Edited
from retrieval.foreign.contract import FeaturesNeeded as FeaturesNeeded
from retrieval.groups.groups import NotGrouped as NotGrouped
from retrieval.indexing.compaction import Compacted as Compacted
from retrieval.indexing.describing import DescribedGlobally as DescribedGlobally
from retrieval.indexing.retraining import Retrained as Retrained
from retrieval.indexing.roots import MovedRoot as MovedRoot
from retrieval.indexing.roots import Root as Root
from retrieval.integrity.backup_files import BackedUp as BackedUp
from retrieval.integrity.repair import Repaired as Repaired
from retrieval.integrity.report import Check as Check
from retrieval.integrity.report import Damage as Damage
from retrieval.library import testing as testing
from retrieval.library.answers import Answer as Answer
from retrieval.library.answers import QueryPhoto as QueryPhoto
from retrieval.library.answers import Result as Result
from retrieval.library.collection import Collection as Collection
from retrieval.library.groups import Group as Group
from retrieval.library.groups import Groups as Groups
from retrieval.library.health import check as check
from retrieval.library.health import repair as repair
from retrieval.library.impressions import Impression as Impression
from retrieval.library.impressions import ImpressionPair as ImpressionPair
from retrieval.library.impressions import Impressions as Impressions
from retrieval.library.matches import Match as Match
from retrieval.library.motifs import Occurrence as Occurrence
from retrieval.library.opening import CollectionExists as CollectionExists
from retrieval.library.opening import create as create
from retrieval.library.opening import open as open
from retrieval.library.pairs import Pairs as Pairs
from retrieval.library.pairs import PhotoFeatures as PhotoFeatures
from retrieval.library.parts.descriptor import Descriptor as Descriptor
from retrieval.library.parts.features import describe as describe
from retrieval.library.parts.features import detect as detect
from retrieval.library.parts.features import features_fingerprint as features_fingerprint
from retrieval.library.parts.features import orientations as orientations
from retrieval.library.parts.features import patches as patches
from retrieval.library.parts.images import as_image as as_image
from retrieval.library.parts.images import read_image as read_image
from retrieval.library.parts.matches import Verified as Verified
from retrieval.library.parts.matches import nearest_matches as nearest_matches
from retrieval.library.parts.matches import verify as verify
from retrieval.library.parts.matches import word_matches as word_matches
from retrieval.library.parts.scoring import Index as Index
from retrieval.library.parts.shapes import map_regions as map_regions
from retrieval.library.parts.shapes import outlines as outlines
from retrieval.library.parts.shapes import radii as radii
from retrieval.library.parts.vocabulary import Vocabulary as Vocabulary
from retrieval.library.photos import Photo as Photo
from retrieval.library.photos import Photos as Photos
from retrieval.library.print_clock import ClockDecisions as ClockDecisions
from retrieval.library.print_clock import ClockReading as ClockReading
from retrieval.library.print_clock import PrintClock as PrintClock
from retrieval.library.reports import Added as Added
from retrieval.library.reports import Album as Album
from retrieval.library.reports import AskedSearch as AskedSearch
from retrieval.library.reports import Imported as Imported
from retrieval.library.reports import Info as Info
from retrieval.library.reports import Removed as Removed
from retrieval.library.reports import SavedSearch as SavedSearch
from retrieval.library.reports import SharedAlbum as SharedAlbum
from retrieval.library.shared_books import BookPair as BookPair
from retrieval.library.shared_books import SharedBooks as SharedBooks
from retrieval.library.shared_books import SharedPage as SharedPage
from retrieval.metadata.places import Near as Near
from retrieval.search.query import PhotoUnusable as PhotoUnusable

__all__ = [
    "Added",
    "Album",
    "Answer",
    "AskedSearch",
    "BackedUp",
    "BookPair",
    "CairnError",
    "Check",
    "ClockDecisions",
    "ClockReading",
    "Collection",
    "CollectionChanged",
    "CollectionExists",
    "CollectionLocked",
    "CollectionNotFound",
    "Compacted",
    "Damage",
    "DescribedGlobally",
    "Descriptor",
    "Edited",
    "ExtensionMissing",
    "FeaturesNeeded",
    "Filter",
    "Group",
    "Groups",
    "HPatchesEvaluation",
    "Imported",
    "Impression",
    "ImpressionPair",
    "Impressions",
    "Index",
    "Info",
    "LaterVersion",
    "Match",
    "Mined",
    "MovedRoot",
    "Near",
    "NewDescriptor",
    "NewSimilarity",
    "NotGrouped",
    "Occurrence",
    "Pairs",
    "PatchEvaluation",
    "Photo",
    "PhotoFeatures",
    "PhotoNotFound",
    "PhotoUnusable",
    "Photos",
    "PrintClock",
    "QueryPhoto",
    "Refreshed",
    "Removed",
    "Repaired",
    "Reproduced",
    "Result",
    "Retrained",
    "RetrievalEvaluation",
    "Root",
    "SavedSearch",
    "SharedAlbum",
    "SharedBooks",
    "SharedPage",
    "Sidecars",
    "Unreadable",
    "Verified",
    "Vocabulary",
    "as_image",
    "check",
    "compress",
    "create",
    "describe",
    "detect",
    "evaluate_hpatches",
    "evaluate_patches",
    "evaluate_retrieval",
    "features_fingerprint",
    "learn_blocks",
    "learn_boosted",
    "learn_descriptor",
    "learn_embedding",
    "learn_similarity",
    "map_regions",
    "mine",
    "nearest_matches",
    "open",
    "orientations",
    "outlines",
    "patches",
    "radii",
    "read_image",
    "register",
    "repair",
    "reproduce",
    "verify",
    "word_matches",
]
__version__: str
PUBLIC: dict[str, str]
COMMANDS: dict[str, tuple[str, str]]

def make_app(names: _Names[str] = ...) -> _typer.Typer: ...
def version() -> str: ...
def main() -> None: ...
