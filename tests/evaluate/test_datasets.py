"""Data sets are read to the last line, small ones and the real ones, and faults are named."""

import collections
import functools
import hashlib
import http.server
import os
import pathlib
import re
import threading

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from jaxmeta.evaluate import readers
from jaxmeta.evaluate.datasets import (
    DATASETS,
    MissingData,
    OtherEdition,
    fetch,
    load,
    status,
)

pytestmark = pytest.mark.one_leg  # no arrays of JAX here

SICK_HEADER = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n"
SICK_ROW = "1\tA man's dog, isn't here\tB\t4.5\tNEUTRAL\n"


def paths(name):
    return [file.path for file in DATASETS[name].files]


@pytest.fixture
def small(tmp_path, monkeypatch):
    """Write texts as the files of a data set, in their order, and load it."""

    def write(name, *texts, **settings):
        data = DATASETS[name]
        files = []
        for file, text in zip(data.files, texts, strict=True):
            content = text if isinstance(text, bytes) else text.encode()
            path = tmp_path / file.path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            files.append(file._replace(sha256=hashlib.sha256(content).hexdigest()))
        monkeypatch.setitem(DATASETS, name, data._replace(files=tuple(files)))
        return load(name, tmp_path, **settings)

    return write


def sts(small, **subsets):
    """STS16 with these gold scores and texts of subsets, and one pair in each of the others."""
    texts = []
    for path in paths("STS16"):
        _, kind, subset, _ = path.rsplit("/")[-1].split(".")
        default = "1\n" if kind == "gs" else "x\ty\n"
        texts.append(subsets.get(subset.replace("-", "_"), {}).get(kind, default))
    return small("STS16", *texts)


@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("last", [True, False], ids=["ended", "not ended"])
def test_similarity(small, end, last):
    text = end.join(["Money\tcash\t9.15", "Money cash 9", "dé\tx\t0"]) + end * last
    pairs = small("WS-353", text)
    assert pairs[:3] == ("WS-353", ("Money", "Money", "dé"), ("cash", "cash", "x"))
    assert pairs.scores.dtype == np.float64
    np.testing.assert_array_equal(pairs.scores, [9.15, 9, 0])


def test_a_mark_of_the_byte_order_is_no_part_of_a_word(small):
    assert small("RG-65", "a b 1\n".encode("utf-8-sig")).first == ("a",)


def test_analogies(small):
    questions = small("Google", ": capital\nA b C d\n: gram1-x\ne f g h\ni j k l\n")
    assert questions.name == "Google"
    assert questions.words == (tuple("AbCd"), tuple("efgh"), tuple("ijkl"))
    assert questions.sections == ("capital", "gram1-x", "gram1-x")
    assert small("MSR", "a b c d").sections == ("MSR",)


def test_polarity(small):
    text = "it's Good .\n\nd\xe9j\xe0 \x85 vu\n".encode("latin-1")
    data = small("MR", text, "bad\n")
    assert data.sentences == (("it's", "good", "."), (), ("déjà", "vu"), ("bad",))
    np.testing.assert_array_equal(data.labels, [1, 1, 1, 0])
    assert np.issubdtype(data.labels.dtype, np.integer)
    assert small("MR", text, "Bad\n", lower=False).sentences[-1] == ("Bad",)


def test_sick(small):
    rows = [SICK_ROW, "2\tC\tD\t1\tCONTRADICTION\r\n", "3\tE\tF\t3\tENTAILMENT"]
    texts = [SICK_HEADER + row for row in rows]
    texts[1] = texts[1].replace("judgment\n", "judgment\r\n")
    data = small("SICK", *texts)
    assert data.first == (("a", "man", "'s", "dog", ",", "is", "n't", "here"), ("c",), ("e",))
    assert data.second == (("b",), ("d",), ("f",))
    assert data.parts == ("train", "dev", "test")
    np.testing.assert_array_equal(data.scores, [4.5, 1, 3])
    np.testing.assert_array_equal(data.labels, [0, 2, 1])
    assert small("SICK", *texts, lower=False).first[0][:2] == ("A", "man")


def test_sts(small):
    headlines = {"gs": "\n2.5\n\n", "input": "a\tb\ngovt ' s .\tD\u2028\ne\tf\n"}
    data = sts(small, headlines=headlines)
    subsets = [path.split(".")[-2] for path in paths("STS16")[::2]]
    assert data.parts == tuple(subsets)
    at = subsets.index("headlines")
    assert data.first[at] == ("govt", "'", "s", ".")
    assert data.second[at] == ("d",)
    np.testing.assert_array_equal(data.scores, np.where(np.arange(5) == at, 2.5, 1))
    assert data.labels is None


def test_sts_benchmark(small):
    row = "news\tMSRpar\t2012\t1\t{}\tSays U.S. (Mr. Bush).\tB"
    texts = [row.format(0) + "\r\n", row.format(1.5) + "\tby\tby\n", row.format(5)]
    data = small("STS-B", *texts)
    tokens = ("says", "u.s.", "(", "mr", ".", "bush", ")", ".")
    assert data.first == (tokens,) * 3
    assert data.parts == ("train", "dev", "test")
    np.testing.assert_array_equal(data.scores, [0, 1.5, 5])


@pytest.mark.parametrize("name", ["CoNLL-2000", "CoNLL-2003"])
def test_tagged(small, name):
    train = "-DOCSTART- -X- O O\n\nEU NNP I-NP I-ORG\nrejects VBZ I-VP O\n\n\nPeter NNP I-NP I-PER"
    data = small(name, train, "He PRP B-NP\n\n")
    eu = (("eu", "NNP"), ("rejects", "VBZ"))
    assert data == (name, (eu, (("peter", "NNP"),)), ((("he", "PRP"),),))
    assert small(name, train, "He PRP\n", lower=False).test == ((("He", "PRP"),),)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("A well-known man.", "A well-known man ."),
        ("It rose 1.5%, to $1,650.", "It rose 1.5 % , to $ 1,650 ."),
        ("don't can't DON\u2019T", "do n't ca n't DO N\u2019T"),
        ("dogs' tails, 'so'", "dogs ' tails , ' so '"),
        ("John's they'll", "John 's they 'll"),
        ("in the U.S. at 5 p.m.", "in the U.S. at 5 p.m."),
        ("yes/no...", "yes / no . . ."),
    ],
)
def test_punctuation_is_separated(text, tokens):
    assert readers._separated(text, False) == tuple(tokens.split())


@given(st.text())
def test_separating_loses_only_white_space(text):
    assert "".join(readers._separated(text, False)) == re.sub(r"\s", "", text)


BENCHMARK = "g\tf\ty\ti\t1\ta\tb\n"
MALFORMED = {
    "two columns": ("RG-65", ["a b 1\na b\n"], "line 2: got 2 columns, expected 3 (word, word"),
    "a blank line": ("RG-65", ["a b 1\n\n"], "line 2: got 0 columns"),
    "no number": ("RG-65", ["a b c\n"], "line 1: got 'c', expected a finite number"),
    "not finite": ("RG-65", ["a b nan\n"], "line 1: got 'nan', expected a finite number"),
    "nothing": ("RG-65", [""], "EN-RG-65.txt: got an empty file"),
    "another encoding": ("RG-65", [b"a b 1\n\xe9 b 1\n"], "line 2: got byte 0xe9, expected text"),
    "three words": ("Google", [": s\na b c\n"], "line 2: got 3 columns, expected 4 (a, b, c, d)"),
    "no header": ("SICK", [SICK_ROW] * 3, 'SICK_train.txt, line 1: got "1\\tA man'),
    "no entailment": (
        "SICK",
        [SICK_HEADER + SICK_ROW, SICK_HEADER + SICK_ROW.replace("NEUTRAL", "MAYBE"), SICK_HEADER],
        "SICK_trial.txt, line 2: got 'MAYBE', expected one of NEUTRAL, ENTAILMENT",
    ),
    "one sentence": (
        "STS-B",
        [BENCHMARK, BENCHMARK, "g\tf\ty\ti\t1\ta\n"],
        "line 1: got 6 columns",
    ),
    "too much": ("STS-B", ["\t" * 9, BENCHMARK, BENCHMARK], "expected 7 (genre"),
    "no tag": ("CoNLL-2000", ["a\n", "a DT\n"], "train.txt, line 1: got 1 column"),
}


@pytest.mark.parametrize(("name", "texts", "words"), MALFORMED.values(), ids=MALFORMED)
def test_malformed(small, tmp_path, name, texts, words):
    with pytest.raises(ValueError, match=re.escape(words)) as e:
        small(name, *texts)
    assert str(e.value).startswith(str(tmp_path))
    assert "again." in str(e.value)


@pytest.mark.parametrize(
    ("subset", "words"),
    [
        ({"gs": "1\n2\n"}, "STS.gs.headlines.txt: got 2 lines, expected 1, as in STS.input.head"),
        ({"gs": "one\n"}, "STS.gs.headlines.txt, line 1: got 'one', expected a finite number"),
        ({"input": "a b\n"}, "STS.input.headlines.txt, line 1: got 1 column, expected 2"),
        ({"gs": "\n", "input": "a b\n"}, "STS.input.headlines.txt, line 1: got 1 column"),
    ],
)
def test_malformed_sts(small, subset, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        sts(small, headlines=subset)


def test_unknown_name(tmp_path):
    for call in (load, fetch):
        with pytest.raises(ValueError, match=r"name: got 'WS', expected one of 'RG-65', 'WS-353'"):
            call("WS", tmp_path)


def test_missing(tmp_path, monkeypatch):
    with pytest.raises(MissingData, match=r"got no similarity/EN-RG-65\.txt.*fetch\('RG-65'") as e:
        load("RG-65", tmp_path)
    assert str(e.value).startswith(str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"mpqa\.pos, sentence/MPQA/mpqa\.neg.*download "):
        load("MPQA", tmp_path)
    monkeypatch.delenv("JAXMETA_DATA", raising=False)
    with pytest.raises(MissingData, match=r"no JAXMETA_DATA .*analogy/msr\.txt.* Microsoft"):
        load("MSR")


def test_the_environment_says_where(small, tmp_path, monkeypatch):
    found = small("MSR", "a b c d")
    monkeypatch.setenv("JAXMETA_DATA", str(tmp_path))
    assert load("MSR") == found


def test_another_edition_is_read_with_a_warning(tmp_path, hooked):
    path = tmp_path / "analogy" / "msr.txt"
    path.parent.mkdir()
    path.write_text("a b c d\n")
    with pytest.warns(OtherEdition, match=r"msr\.txt: got SHA-256 \w{64}, expected \w{64};") as w:
        assert load("MSR", tmp_path).words == (tuple("abcd"),)
    assert hooked or w[0].filename == __file__


def test_registry():
    for name, data in DATASETS.items():
        assert data.licence
        assert data.manual or all(file.address for file in data.files)
        for file in data.files:
            assert not pathlib.PurePath(file.path).is_absolute()
            assert file.sha256 is None or re.fullmatch("[0-9a-f]{64}", file.sha256)
            assert file.sha256 or name in ("CoNLL-2003", "SNLI", "SentiWords")
            assert file.address is None or file.address.endswith(file.path.split("/")[-1])
    counts = collections.Counter(file.path for data in DATASETS.values() for file in data.files)
    assert set(counts.values()) == {1}


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture
def served(tmp_path, monkeypatch):
    """RG-65 is on a server of our own, which gives what this file holds."""
    pytest.importorskip("pooch", reason="pooch is not installed")
    content = b"gem\tjewel\t3.94\n"
    folder = tmp_path / "served"
    folder.mkdir()
    (folder / "EN-RG-65.txt").write_bytes(content)
    handler = functools.partial(Quiet, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        (file,) = DATASETS["RG-65"].files
        file = file._replace(
            sha256=hashlib.sha256(content).hexdigest(),
            address=f"http://127.0.0.1:{server.server_port}/EN-RG-65.txt",
        )
        monkeypatch.setitem(DATASETS, "RG-65", DATASETS["RG-65"]._replace(files=(file,)))
        for proxy in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.delenv(proxy, raising=False)
        yield folder / "EN-RG-65.txt"
        server.shutdown()
        thread.join()


def files_in(folder):
    return [path for path in folder.rglob("*") if path.is_file()]


def test_fetch(served, tmp_path):
    folder = tmp_path / "data"
    fetch("RG-65", folder)
    assert load("RG-65", folder).first == ("gem",)
    assert files_in(folder) == [folder / "similarity" / "EN-RG-65.txt"]
    served.unlink()
    fetch("RG-65", folder)  # asks for nothing


def test_a_download_with_another_checksum_leaves_nothing(served, tmp_path):
    served.write_bytes(b"something else")
    with pytest.raises(ValueError, match=r"does not match the known hash"):
        fetch("RG-65", tmp_path / "data")
    assert files_in(tmp_path / "data") == []


@pytest.mark.usefixtures("served")
def test_fetch_leaves_another_edition_alone(tmp_path):
    path = tmp_path / "data" / "similarity" / "EN-RG-65.txt"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"mine")
    fetch("RG-65", tmp_path / "data")
    assert path.read_bytes() == b"mine"


@pytest.mark.usefixtures("served")
def test_status(tmp_path):
    """Files are told apart by what they hold."""
    folder = tmp_path / "data"
    assert status("RG-65", folder) == "missing"
    fetch("RG-65", folder)
    assert status("RG-65", folder) == "there"
    (folder / "similarity" / "EN-RG-65.txt").write_text("gem jewel 1\n")
    assert status("RG-65", folder) == "another edition"
    with pytest.raises(ValueError, match="got 'nothing'"):
        status("nothing", folder)


def test_what_cannot_be_fetched(tmp_path):
    with pytest.raises(MissingData, match=r"CoNLL-2003; get the Reuters corpus .*tagging/conll20"):
        fetch("CoNLL-2003", tmp_path)
    assert files_in(tmp_path) == []


# The real files.

real = pytest.mark.skipif(
    "JAXMETA_DATA" not in os.environ, reason="JAXMETA_DATA does not say where the data is"
)
SIZES = {"RG-65": 65, "WS-353": 353, "RW": 2034, "MEN": 3000, "MTurk-771": 771}
SIZES |= {"SimLex-999": 999, "SimVerb-3500": 3500}
STS_SIZES = {
    "STS13": {"FNWN": 189, "OnWN": 561, "headlines": 750},
    "STS14": {"deft-forum": 450, "deft-news": 300}
    | dict.fromkeys(("OnWN", "headlines", "images", "tweet-news"), 750),
    "STS15": {"answers-forums": 375, "belief": 375}
    | dict.fromkeys(("answers-students", "headlines", "images"), 750),
    "STS16": {
        "answer-answer": 254,
        "headlines": 249,
        "plagiarism": 230,
        "postediting": 244,
        "question-question": 209,
    },
}


@real
@pytest.mark.parametrize(("name", "size"), SIZES.items())
def test_real_similarity(name, size):
    pairs = load(name)
    assert len(pairs.first) == len(pairs.second) == len(pairs.scores) == size


@real
def test_real_analogies():
    google, msr = load("Google"), load("MSR")
    assert len(google.words) == len(google.sections) == 19_544
    assert len(set(google.sections)) == 14
    assert google.words[0] == ("Athens", "Greece", "Baghdad", "Iraq")
    assert len(msr.words) == len(msr.sections) == 8000
    assert msr.words[0] == ("good", "better", "rough", "rougher")


@real
@pytest.mark.parametrize(
    ("name", "positive", "negative", "empty"),
    [("MR", 5331, 5331, 0), ("CR", 2407, 1368, 4), ("MPQA", 3312, 7294, 3)],
)
def test_real_polarity(name, positive, negative, empty):
    data = load(name)
    np.testing.assert_array_equal(data.labels, [1] * positive + [0] * negative)
    assert len(data.sentences) == positive + negative
    assert data.sentences.count(()) == empty


@real
def test_real_sick():
    data = load("SICK")
    assert collections.Counter(data.parts) == {"train": 4500, "dev": 500, "test": 4927}
    assert len(data.first) == len(data.second) == 9927
    np.testing.assert_array_equal(np.bincount(data.labels), [5611, 2857, 1459])
    assert (data.scores.min(), data.scores.max()) == (1, 5)


@real
@pytest.mark.parametrize(("name", "sizes"), STS_SIZES.items())
def test_real_sts(name, sizes):
    data = load(name)
    assert collections.Counter(data.parts) == sizes
    assert len(data.first) == len(data.second) == len(data.scores) == sum(sizes.values())
    assert data.scores.min() >= 0
    assert data.scores.max() <= 5


@real
def test_real_sts_benchmark():
    data = load("STS-B")
    assert collections.Counter(data.parts) == {"train": 5749, "dev": 1500, "test": 1379}
    assert all(data.first)
    assert all(data.second)


@real
def test_real_tagged():
    data = load("CoNLL-2000")
    assert [len(data.train), len(data.test)] == [8936, 2012]
    assert [sum(map(len, part)) for part in data[1:]] == [211_727, 47_377]
    assert data.train[0][:2] == (("confidence", "NN"), ("in", "IN"))
