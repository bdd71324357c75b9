"""Pictures, but uploads of one name are never done with: stands for photos that decode for long."""

import time
from typing import Any

from retrieval.web.jobs import PictureJobs
from retrieval.web.pool.workers import Answer


class StuckUploads(PictureJobs):
    """Decodes photos, but for uploads called ``stuck.jpg``."""

    def do(self, job: str, request: dict[str, Any]) -> Answer:
        if job == "preview" and request["name"] == "stuck.jpg":
            time.sleep(1000)
        return super().do(job, request)
