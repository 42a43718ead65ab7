r"""Data sets of the evaluation tasks: which files they are, where to get them, how to read them.

`load` reads a data set of `DATASETS` from a folder, and `fetch` downloads those whose files have
an address of their own. The folder is laid out so:

| files | data sets | on each line |
|---|---|---|
| `similarity` | RG-65, WS-353, RW, MEN, MTurk-771, SimLex-999, SimVerb-3500 | word, word, score |
| `analogy/questions-words.txt` | Google | a, b, c, d, or a colon and the name of a section |
| `analogy/msr.txt` | MSR | a, b, c, d |
| `sentence/MR`, `CR`, `MPQA` | the same: `.pos` is class 1, `.neg` class 0 | a sentence |
| `sentence/SICK` | SICK | id, sentence, sentence, relatedness, entailment |
| `sentence/STS/STS13-en-test` | STS13 to STS16: two files a subset | sentence, sentence; score |
| `sentence/STSB` | STS-B | four columns, score, sentence, sentence, perhaps sources |
| `tagging`, `tagging/conll2003` | CoNLL-2000, CoNLL-2003 | word, tag, other columns |

Everything in the files is kept and in their order, pairs that come twice and empty sentences too
(CR has four, MPQA three). Only what has nothing to score is left out: pairs of STS without a
score, the subset SMT of STS13, whose sentences are not public, and the lines between documents
of CoNLL.

Sentences of MR, CR, MPQA, STS13 to STS16 and CoNLL are tokens between white space already; in MR,
which is Latin-1, that includes byte 0x85, an ellipsis. Those of SICK and STS-B are cut into words,
with what is inside of them (`well-known`, `1,650`, `U.S.`), clitics (`'s`, `n't`) and single marks.

Everything here runs on the host, in NumPy.
"""

import hashlib
import math
import os
import re
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np

from jaxmeta import _checks

__all__ = [
    "DATASETS",
    "DataFile",
    "Dataset",
    "LabelledSentences",
    "MissingData",
    "OtherEdition",
    "Questions",
    "SentencePairs",
    "TaggedText",
    "WordPairs",
    "fetch",
    "load",
]


class WordPairs(NamedTuple):
    """Pairs of words, and how similar people find them."""

    name: str
    first: tuple[str, ...]
    second: tuple[str, ...]
    scores: np.ndarray


class Questions(NamedTuple):
    """Analogies: a is to b as c is to d."""

    name: str
    words: tuple[tuple[str, str, str, str], ...]
    sections: tuple[str, ...]
    """That of each question."""


class LabelledSentences(NamedTuple):
    """Sentences, as tokens, and the class of each."""

    name: str
    sentences: tuple[tuple[str, ...], ...]
    labels: np.ndarray
    """Integers from 0."""


class SentencePairs(NamedTuple):
    """Pairs of sentences, as tokens, and how similar people find them."""

    name: str
    first: tuple[tuple[str, ...], ...]
    second: tuple[tuple[str, ...], ...]
    scores: np.ndarray
    parts: tuple[str, ...]
    """That of each pair: "train", "dev", "test", or the name of a subset."""
    labels: np.ndarray | None = None
    """Classes of the pairs, integers from 0, if they have any: 0 to 2 for entailment."""


class TaggedText(NamedTuple):
    """Sentences with a tag for each token."""

    name: str
    train: tuple[tuple[tuple[str, str], ...], ...]
    """Sentences of pairs of a token and its tag."""
    test: tuple[tuple[tuple[str, str], ...], ...]


class MissingData(FileNotFoundError):
    """A data set is not there; the message says where to get it and where to put it."""


class OtherEdition(UserWarning):
    """A file is not the one in the registry: scores may differ from those on that one."""


class DataFile(NamedTuple):
    """A file of a data set."""

    path: str
    """Relative to the folder of the data."""
    sha256: str | None
    """None if there is none to compare with."""
    address: str | None = None
    """Where the file itself can be downloaded, if it can."""


class Dataset(NamedTuple):
    """A data set: its files, what they hold and how to get them."""

    files: tuple[DataFile, ...]
    licence: str
    read: Callable[..., Any]
    """From the name, the texts of the files and `lower` to what `load` returns."""
    manual: str | None = None
    """What to download and where to put it, if files have no address."""
    encoding: str = "utf-8-sig"


def load(name: str, folder: str | Path | None = None, *, lower: bool = True) -> Any:
    """The data set `name` of `DATASETS`, as one of the types above.

    A file that differs from that of the registry is read all the same, with the warning
    `OtherEdition`.

    Parameters
    ----------
    folder
        Where the data is; None for what the environment variable JAXMETA_DATA says.
    lower
        Whether tokens of sentences are put in lower case. Words of pairs and analogies never are.

    >>> load("RG-65", "data")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    jaxmeta.evaluate.datasets.MissingData: data: got no similarity/EN-RG-65.txt, ...
    """
    data = _dataset(name)
    if folder is None:
        folder = os.environ.get("JAXMETA_DATA")
    if not folder:
        raise MissingData(
            f"folder: got None and no JAXMETA_DATA in the environment, expected the folder with "
            f"{data.files[0].path}; pass it or set the variable, and if it is not there: "
            f"{_remedy(name)}."
        )
    folder = Path(folder)
    _require(name, folder)
    texts = []
    for file in data.files:
        content = (folder / file.path).read_bytes()
        found = hashlib.sha256(content).hexdigest()
        if file.sha256 not in (None, found):
            warnings.warn(
                f"{folder / file.path}: got SHA-256 {found}, expected {file.sha256}; it is read "
                f"all the same, and to have the other, remove it: {_remedy(name)}.",
                OtherEdition,
                stacklevel=2,
            )
        texts.append(_text(folder / file.path, content, data.encoding))
    return data.read(name, texts, lower)


def fetch(name: str, folder: str | Path) -> None:
    """Download files of a data set that `folder` lacks, each only if its checksum is right.

    Files that are there are left alone. Raises `MissingData`, with what to do by hand, if some have
    no address. Needs pooch: `pip install "jaxmeta[io]"`.
    """
    data, folder = _dataset(name), Path(folder)
    absent = [file for file in data.files if file.address and not (folder / file.path).exists()]
    if absent:
        pooch = _checks.package("pooch", "io")
        for file in absent:
            path = folder / file.path
            pooch.retrieve(file.address, f"sha256:{file.sha256}", fname=path.name, path=path.parent)
    _require(name, folder)


def _dataset(name: str) -> Dataset:
    if name not in DATASETS:
        _fail("name", repr(name), f"one of {', '.join(DATASETS)}", "check its spelling")
    return DATASETS[name]


def _remedy(name: str) -> str:
    return DATASETS[name].manual or f"fetch({name!r}, folder) downloads it"


def _require(name: str, folder: Path) -> None:
    absent = [file.path for file in DATASETS[name].files if not (folder / file.path).is_file()]
    if absent:
        raise MissingData(
            f"{folder}: got no {', '.join(absent)}, expected it for {name}; {_remedy(name)}."
        )


def _fail(name: str, got: str, expected: str, remedy: str) -> NoReturn:
    raise ValueError(f"{name}: got {got}, expected {expected}; {remedy}.")


# What is in the files.


class _Text(NamedTuple):
    path: Path
    lines: list[str]

    def numbered(self) -> Iterator[tuple[str, str]]:
        """Lines, each after the words that say where it is."""
        for number, line in enumerate(self.lines, 1):
            yield f"{self.path}, line {number}", line


_AGAIN = "mend the line, or get the file again"


def _text(path: Path, content: bytes, encoding: str) -> _Text:
    try:
        # Other characters that end lines for str.splitlines are inside of some.
        lines = [line.removesuffix("\r") for line in content.decode(encoding).split("\n")]
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        byte = f"byte {error.object[error.start]:#04x}"
        _fail(f"{path}, line {line}", byte, "text in UTF-8", "convert the file, or get it again")
    if not lines[-1]:
        lines.pop()
    if not lines:
        _fail(str(path), "an empty file", "lines of text", "get it again")
    return _Text(path, lines)


def _fields(
    where: str, line: str, columns: str, *, separator: str | None = None, more: int = 0
) -> list[str]:
    """Columns of a line: those that are named, and up to `more` others."""
    fields, least = line.split(separator), len(columns.split(", "))
    if not least <= len(fields) <= least + more:
        others = f" and up to {more} more" if more else ""
        _fail(
            where,
            f"{len(fields)} column{'s' * (len(fields) != 1)}",
            f"{least} ({columns}){others}",
            _AGAIN,
        )
    return fields


def _number(where: str, field: str) -> float:
    try:
        number = float(field)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        _fail(where, repr(field), "a finite number as the score", _AGAIN)
    return number


def _tokens(text: str, lower: bool) -> tuple[str, ...]:
    return tuple((text.lower() if lower else text).split())


_TOKEN = re.compile(
    r"""(?:[a-z]\.){2,}         # U.S.
    | \w+?(?=n['\u2019]t\b)          # do, of don't
    | n['\u2019]t\b                  # n't
    | (?<=\w)['\u2019]\w+            # 's
    | \w+(?:[-.,]\w+)*          # man, well-known, 1,650
    | [^\w\s]                   # any other mark
    """,
    re.VERBOSE | re.IGNORECASE,
)


def _separated(text: str, lower: bool) -> tuple[str, ...]:
    """Tokens of text whose punctuation is attached to words."""
    return tuple(_TOKEN.findall(text.lower() if lower else text))


def _read_pairs(name: str, texts: list[_Text], lower: bool) -> WordPairs:  # noqa: ARG001
    first, second, scores = [], [], []
    for where, line in texts[0].numbered():
        a, b, score = _fields(where, line, "word, word, score")
        first.append(a)
        second.append(b)
        scores.append(_number(where, score))
    return WordPairs(name, tuple(first), tuple(second), np.array(scores))


def _read_questions(name: str, texts: list[_Text], lower: bool) -> Questions:  # noqa: ARG001
    words, sections, section = [], [], name
    for where, line in texts[0].numbered():
        if line.startswith(":"):
            section = line[1:].strip()
        else:
            a, b, c, d = _fields(where, line, "a, b, c, d")
            words.append((a, b, c, d))
            sections.append(section)
    return Questions(name, tuple(words), tuple(sections))


def _read_polarity(name: str, texts: list[_Text], lower: bool) -> LabelledSentences:
    labelled = [(line, text.path.suffix == ".pos") for text in texts for line in text.lines]
    sentences = tuple(_tokens(line, lower) for line, _ in labelled)
    return LabelledSentences(name, sentences, np.array([label for _, label in labelled], np.int64))


_PARTS = ("train", "dev", "test")
_SICK_HEADER = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment"
_ENTAILMENT = {"NEUTRAL": 0, "ENTAILMENT": 1, "CONTRADICTION": 2}


def _read_sick(name: str, texts: list[_Text], lower: bool) -> SentencePairs:
    first, second, scores, parts, labels = [], [], [], [], []
    for part, text in zip(_PARTS, texts, strict=True):
        lines = text.numbered()
        where, header = next(lines)
        if header != _SICK_HEADER:
            _fail(where, repr(header), f"the header {_SICK_HEADER!r}", "get the file again")
        for where, line in lines:
            columns = "id, sentence, sentence, score, entailment"
            _, a, b, score, label = _fields(where, line, columns, separator="\t")
            if label not in _ENTAILMENT:
                _fail(where, repr(label), f"one of {', '.join(_ENTAILMENT)}", _AGAIN)
            first.append(_separated(a, lower))
            second.append(_separated(b, lower))
            scores.append(_number(where, score))
            parts.append(part)
            labels.append(_ENTAILMENT[label])
    return SentencePairs(
        name, tuple(first), tuple(second), np.array(scores), tuple(parts), np.array(labels)
    )


def _read_sts(name: str, texts: list[_Text], lower: bool) -> SentencePairs:
    first, second, scores, parts = [], [], [], []
    for gold, text in zip(texts[::2], texts[1::2], strict=True):
        if len(gold.lines) != len(text.lines):
            expected = f"{len(text.lines)}, as in {text.path.name}"
            _fail(str(gold.path), f"{len(gold.lines)} lines", expected, "get both files again")
        part = text.path.name.removeprefix("STS.input.").removesuffix(".txt")
        for (scored, score), (where, line) in zip(gold.numbered(), text.numbered(), strict=True):
            a, b = _fields(where, line, "sentence, sentence", separator="\t")
            if score.strip():
                first.append(_tokens(a, lower))
                second.append(_tokens(b, lower))
                scores.append(_number(scored, score))
                parts.append(part)
    return SentencePairs(name, tuple(first), tuple(second), np.array(scores), tuple(parts))


def _read_stsb(name: str, texts: list[_Text], lower: bool) -> SentencePairs:
    first, second, scores, parts = [], [], [], []
    columns = "genre, file, year, id, score, sentence, sentence"
    for part, text in zip(_PARTS, texts, strict=True):
        for where, line in text.numbered():
            fields = _fields(where, line, columns, separator="\t", more=2)
            first.append(_separated(fields[5], lower))
            second.append(_separated(fields[6], lower))
            scores.append(_number(where, fields[4]))
            parts.append(part)
    return SentencePairs(name, tuple(first), tuple(second), np.array(scores), tuple(parts))


def _read_tagged(name: str, texts: list[_Text], lower: bool) -> TaggedText:
    return TaggedText(name, *(_tagged_sentences(text, lower) for text in texts))


def _tagged_sentences(text: _Text, lower: bool) -> tuple[tuple[tuple[str, str], ...], ...]:
    sentences: list[list[tuple[str, str]]] = [[]]
    for where, line in text.numbered():
        if not line.strip():
            sentences.append([])
        elif not line.startswith("-DOCSTART-"):
            word, tag, *_ = _fields(where, line, "word, tag", more=2)
            sentences[-1].append((word.lower() if lower else word, tag))
    return tuple(tuple(sentence) for sentence in sentences if sentence)


# Which files they are.

_SIMILARITY = {
    "RG-65": (
        "EN-RG-65.txt",
        "c243f3a91c3f5d8cf67f21a67f6fb80bde8b6bb060851a6a48e6f2d68ec98c9f",
    ),
    "WS-353": (
        "EN-WS-353-ALL.txt",
        "ce12919b240af45bdf46d243601eaca2b6212b159b5e7e9b435ee7ee40c5619c",
    ),
    "RW": (
        "EN-RW-STANFORD.txt",
        "5108d54dfc746f44f9c3d7e31d2857c37cf71430bc1594175a61a3b89bb0ae1f",
    ),
    "MEN": (
        "EN-MEN-TR-3k.txt",
        "888b13580faa362c7b11da0a670258cf1b1eb4bf0ecbcd418918729a3bd3f43a",
    ),
    "MTurk-771": (
        "EN-MTurk-771.txt",
        "04dc297c9e86b6fa7cf8ef0e4ba2e2c8d3399ec68d92fb7a53c0b4aae27198b5",
    ),
    "SimLex-999": (
        "EN-SIMLEX-999.txt",
        "405394ffb7d25f6d0e3c041f87c9f27d29dc6b047506769953e85c4523b11685",
    ),
    "SimVerb-3500": (
        "EN-SimVerb-3500.txt",
        "9d84274e7ad029fd3cf69dd0516e9ade624bbef9bd4e2050f6cc1fa01471e0f5",
    ),
}
_POLARITY = {
    "MR": {
        "rt-polarity.pos": "2da124ec187a9d5a29c9f04e91c540e02baed5af8868f550a26bd6fd4dbf8bf0",
        "rt-polarity.neg": "4ace77d558c3714723843f1d65b60c01e3417b208180f0728808d76ad0eeeaca",
    },
    "CR": {
        "custrev.pos": "15eeb0b9424043bb3755488e2d8ed97bdaeba464a5c230f213bad075125d2192",
        "custrev.neg": "8f29d7fa39f9862764b71f36b193f0674e0056287ffc5bf170edf6db42cc8f83",
    },
    "MPQA": {
        "mpqa.pos": "f4aaafdd63c439fd2d056149f3b5d200416dabb200a8b7d8f4bf9903981ff8a5",
        "mpqa.neg": "02e193d98c7715bc6200bb23dc6d2903482bd80c0432c53c3f3738c636df3f72",
    },
}
_STS = {
    "STS13": {
        "FNWN": (
            "8ca95b7228119578e2007839cf7969f22c4f1fd41fd610c4b7f9683072d98066",
            "7bcc0fc86d30c8980c9ac9735c612492abd236524bec32bed98070e225b2e023",
        ),
        "OnWN": (
            "0cd497aaddb00a2fb6db25f77bccfc09e8aa012e11549b81b434bab1a27ad954",
            "3c616d878f3d7bfbadce1657bcc5a78d7d429fd10fc2e31195d314543fecab1a",
        ),
        "headlines": (
            "f49f64089011436dd296ef384c07160219406feef7dc4b9fa2af52a519f32bc6",
            "e60c724b4b620802f42d7696f27e6a8153205a716b142f0a051e2b2b2e99e505",
        ),
    },
    "STS14": {
        "OnWN": (
            "1c80147df270ea4cfce14a47ed29f8a2f10d5dc016d02836077fd786ff7f535b",
            "52f462f085f6920f70115761c50924f16a4fd6caec2cfccec82311619c1be326",
        ),
        "deft-forum": (
            "ba6dc76696b5c93985590a325b4d142449932cdf0d715b2bab1b1743fe3c488c",
            "7d52c9b130cf0d0291b2f2ea5324363219267ffcecf0a56f4306503adb231714",
        ),
        "deft-news": (
            "105c5b333abd50c274efb4dae9e3e0dab36ed63eee780cfb49955b1586bd62f2",
            "2416e9f1a13136ac213cbfd413d98cd8504edcca21c87deef3aa5c1207bc1448",
        ),
        "headlines": (
            "f243c34647255cd0b994565ed4f58dd31506e7d9c9d6250d1a6dd14095625832",
            "08e808b7786ec7b830badf9843c55fc7930467ae75e2cd6fe8fd518496b66730",
        ),
        "images": (
            "fc994ebacc7074c332626fa9e29542d7340a48a3cdb999b47cdb59c378523a62",
            "3d44abc6af8d8b1c69b6e93bb386176d5896985dba91a13e5587350e92a90c83",
        ),
        "tweet-news": (
            "0098c644bfeaa2d511a8297b1940771865900c372c9dd49a62726dc5ec02c9a3",
            "6b0173393868ea87f315f32971bff68b328e466678f481d4710d8488e7cc90de",
        ),
    },
    "STS15": {
        "answers-forums": (
            "1644301a7540e5484da285002e9269062852efb2272be614cad99c9530f6a102",
            "65e3f55333c53897c6791ff154a490857a827d4699bc2d1f18e53693dbfd0c39",
        ),
        "answers-students": (
            "028db213140f8c7aef7497c4ae38b6380938f20359852231669c83dce11c3701",
            "4893f736e84cea176c39c882250f6513d5bbcfa6ebe8d3ffabcef6056d0471a7",
        ),
        "belief": (
            "5736192faaccbdbecd0ef6b73ec04b24115cd2e48d55dc3b1b170da3d2a81c75",
            "ce09c4713480fd622afbc362d22dd7ffb4e5fc6ee676602368af6f63f9ea7cb5",
        ),
        "headlines": (
            "e8e432f769c8a94ddb62ae3343890ac24a9dd78a116d56c707313bc59413dd56",
            "91f2a6152c574e17544c5e8a856338fa8632898b44c10d2cc9c9516ddfe682c5",
        ),
        "images": (
            "ed8878209098c77ca7f02ac413d3fd698f92ad3425999555e50fda89fc46012a",
            "98b2f560e4a3e13253f10b7fd8855006dd327ab272559ab690f2c4e1e5aebca7",
        ),
    },
    "STS16": {
        "answer-answer": (
            "332efd741b0cb247d20dd2a6cec854360c921c7e6b395f328f562d8d26057214",
            "92e66262159e39cb623690e243179f447fb08d493ccec6e600a021b76dd6fe9a",
        ),
        "headlines": (
            "01e33a95996201a6e81e3cce9eda0f15048b77613ea64dce2929bb35479f7d85",
            "f439e10cf28d9cb4dc7642a072f6ac9ac48922f147241af8fe5df3048f24804b",
        ),
        "plagiarism": (
            "29984944a91aaff484f2b2e5d4d434fc8a6f5ef6f578a880cccd2786f5142fdc",
            "78f5fb0756400485676f82a47703dab0402ba273a887a6d846e9790ff9300f87",
        ),
        "postediting": (
            "81947ed9dbe7f85b7bd249df68ed5c7b2f16f06390ad568eb5554b1e26bc5577",
            "cb8e2337a17ecc60a4fb57ecb17c692e13257802d24c9bd401b4bfa574510463",
        ),
        "question-question": (
            "cf9ebf9d140191f73620cda0560947ad9283c910735d0d541b8a401a5e64afb0",
            "0b8d495236ea8c9e9eddf529b40d8570e4b38ef29a40d194d5487613b064a4bc",
        ),
    },
}

_WORD_SIM = "https://raw.githubusercontent.com/mfaruqui/eval-word-vectors/master/data/word-sim"
_WORD2VEC = "https://raw.githubusercontent.com/tmikolov/word2vec/master"
_SENTEVAL = "github.com/facebookresearch/SentEval"
_CLASSES = "https://dl.fbaipublicfiles.com/senteval/senteval_data/datasmall_NB_ACL12.zip"
_NOT_STATED = "not stated"

DATASETS: dict[str, Dataset] = {
    **{
        name: Dataset(
            (DataFile(f"similarity/{file}", sha256, f"{_WORD_SIM}/{file}"),),
            "MIT, as stated by eval-word-vectors",
            _read_pairs,
        )
        for name, (file, sha256) in _SIMILARITY.items()
    },
    "Google": Dataset(
        (
            DataFile(
                "analogy/questions-words.txt",
                "8c29b3332afc46f3fb8be04cb5297bf96f39aa7131272dff57869b4485b22a36",
                f"{_WORD2VEC}/questions-words.txt",
            ),
        ),
        _NOT_STATED,
        _read_questions,
    ),
    "MSR": Dataset(
        (
            DataFile(
                "analogy/msr.txt",
                "7fe14f2dbf81f8c56669d0e49bb997f2eb0cbb03457f12e5a7a4d3f52cc640f9",
            ),
        ),
        _NOT_STATED,
        _read_questions,
        "download the syntactic analogies of Microsoft Research (Mikolov, Yih and Zweig, 2013) and "
        "write each question with its answer, as a b c d, on a line of analogy/msr.txt",
    ),
    **{
        name: Dataset(
            tuple(DataFile(f"sentence/{name}/{file}", sha256) for file, sha256 in files.items()),
            _NOT_STATED,
            _read_polarity,
            f"download {_CLASSES} and put {' and '.join(files)} out of it in sentence/{name}",
            encoding="latin-1",
        )
        for name, files in _POLARITY.items()
    },
    "SICK": Dataset(
        (
            DataFile(
                "sentence/SICK/SICK_train.txt",
                "266cf8047149bd1d68138dd30439f3122bff30069740ac6705bb6197d9f1b48e",
            ),
            DataFile(
                "sentence/SICK/SICK_trial.txt",
                "5a88cfb62f8c6bd2a3cce0f2421ba2cb8c2be5ab4a800f6f01e2c64aafb7db56",
            ),
            DataFile(
                "sentence/SICK/SICK_test_annotated.txt",
                "2b8aa806658d6fc23c6824c83776c2d4fee7556000817b5ec0f982861413b7d0",
            ),
        ),
        "CC BY-NC-SA 3.0",
        _read_sick,
        "download sick_train.zip, sick_trial.zip and sick_test_annotated.zip of SemEval-2014, task "
        "1 (http://alt.qcri.org/semeval2014/task1), and unpack them in sentence/SICK",
    ),
    **{
        name: Dataset(
            tuple(
                DataFile(f"sentence/STS/{name}-en-test/STS.{kind}.{subset}.txt", sha256)
                for subset, both in subsets.items()
                for kind, sha256 in zip(("gs", "input"), both, strict=True)
            ),
            "differs between subsets: see the files that come with them",
            _read_sts,
            f"run data/downstream/get_transfer_data.bash of SentEval ({_SENTEVAL}) and put its "
            f"folder STS/{name}-en-test in sentence/STS",
        )
        for name, subsets in _STS.items()
    },
    "STS-B": Dataset(
        (
            DataFile(
                "sentence/STSB/sts-train.csv",
                "d52e1db23c2483099f2ff4d9cd80a0f98be6438748b65e21f2f2244da0164ab1",
            ),
            DataFile(
                "sentence/STSB/sts-dev.csv",
                "5d7e944d8b02734b07bfdb5df67db3420c64bed153fcaa1ba47ad03480cf4234",
            ),
            DataFile(
                "sentence/STSB/sts-test.csv",
                "affe45928a66ee5a708531233c95b7dacbbdc57f974f002a3d32ea0180cf816a",
            ),
        ),
        "scores CC BY-SA 4.0; that of the text differs between sources: see its LICENSE.txt",
        _read_stsb,
        "download http://ixa2.si.ehu.es/stswiki/images/4/48/Stsbenchmark.tar.gz and put the three "
        "files sts-*.csv out of it in sentence/STSB",
    ),
    "CoNLL-2000": Dataset(
        (
            DataFile(
                "tagging/train.txt",
                "82033cd7a72b209923a98007793e8f9de3abc1c8b79d646c50648eb949b87cea",
            ),
            DataFile(
                "tagging/test.txt",
                "73b7b1e565fa75a1e22fe52ecdf41b6624d6f59dacb591d44252bf4d692b1628",
            ),
        ),
        "text of the Wall Street Journal: see its README",
        _read_tagged,
        "download train.txt.gz and test.txt.gz from "
        "https://www.clips.uantwerpen.be/conll2000/chunking and unpack them in tagging",
    ),
    "CoNLL-2003": Dataset(
        (
            DataFile("tagging/conll2003/train.txt", None),
            DataFile("tagging/conll2003/test.txt", None),
        ),
        "text of Reuters, which may not be redistributed",
        _read_tagged,
        "get the Reuters corpus from NIST, build the English data of CoNLL-2003 from it, and put "
        "eng.train as train.txt and eng.testb as test.txt in tagging/conll2003",
    ),
}
"""What `load` reads, by name."""
