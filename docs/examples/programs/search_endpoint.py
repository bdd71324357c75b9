"""Answer searches over HTTP: POST the bytes of a photo, and have the names of the photos that show the same.

usage: python search_endpoint.py COLLECTION [PORT]
Then: curl --data-binary @church.jpg http://127.0.0.1:8080
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

import cairn

LARGEST = 50_000_000  # bytes of a photo


def make_server(folder: str, port: int) -> HTTPServer:
    """Make a server of a collection, which answers one request at a time."""
    collection = cairn.open(folder)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            answer_json: dict[str, object]
            try:
                answer = collection.search(self.rfile.read(min(length, LARGEST)), top=10)
                status, answer_json = 200, {"found": [[one.name, one.probability] for one in answer.found]}
            except cairn.CairnError as error:
                status, answer_json = 400, {"error": str(error)}
            body = json.dumps(answer_json).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return HTTPServer(("127.0.0.1", port), Handler)


if __name__ == "__main__":
    make_server(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 8080).serve_forever()
