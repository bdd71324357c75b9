"""Mining on a cluster: the same file, to the last byte, as on one machine."""

from pathlib import Path

import pytest

from index.cluster.connection import Cluster, ClusterError
from learning.mining.mining import MiningOptions, mine_matches
from learning.mining.photo_source import PhotoSource
from retrieval.photos.options import ImageOptions
from tests.conftest import Indexed
from tests.support.clusters import PickledTasks


@pytest.mark.slow
def test_the_file_does_not_depend_on_who_is_at_work(indexed: Indexed, tmp_path: Path) -> None:
    photos = sorted(indexed.photos.glob("c*.jpg"))[:4]
    options = MiningOptions(geometry="both", pairs=4, views=2, least=1, image=ImageOptions(max_side=300))
    for name, workers in (("here.npz", 1), ("there.npz", PickledTasks())):
        mine_matches(PhotoSource("photos", photos), tmp_path / name, options, workers=workers)
    assert (tmp_path / "here.npz").read_bytes() == (tmp_path / "there.npz").read_bytes()


@pytest.mark.slow
def test_a_folder_that_workers_do_not_see(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Cluster.connect("local:1") as cluster:
        cluster.check_sees(tmp_path / "made")
        monkeypatch.setattr(Cluster, "client", FakeClient())
        with pytest.raises(ClusterError, match="must be at this path on all machines"):
            cluster.check_sees(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["made"]


class FakeClient:
    """A worker elsewhere."""

    def run(self, *_: object) -> dict[str, bool]:
        return {"tcp://elsewhere:1": False}
