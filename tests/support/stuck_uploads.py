"""Pictures where uploads of one name never finish, like photos that take long to decode."""

import time
from typing import Any

from retrieval.web.jobs import PictureJobs
from retrieval.web.pool.workers import Answer


class StuckUploads(PictureJobs):
    """Decodes photos, except uploads named ``stuck.jpg``."""

    def do(self, job: str, request: dict[str, Any]) -> Answer:
        if job == "preview" and request["name"] == "stuck.jpg":
            time.sleep(1000)
        return super().do(job, request)
