"""Tokens and sessions: what a file may say, who may read it, and what a browser's cookie is worth."""

import hashlib
import stat

import pytest

from epsearch.failures.errors import UsageError
from epsearch.service.access.tokens import READ, SESSION_SECONDS, WRITE, Token, Tokens, digest, make, read
from epsearch.service.settings import Settings, check
from results.ledger.url import LedgerUrl
from tests.support.service import SECRETS, TOKENS, settings

LINE = f"ann write sha256:{digest('x' * 20)}"


@pytest.fixture
def file(tmp_path):
    return tmp_path / "tokens.txt"


def test_a_token_is_made_kept_as_a_hash_and_read_back(file):
    secrets = [make("ann", WRITE, file), make("lab-board.2", READ, file)]
    assert len(set(secrets)) == 2 and all(len(one) >= 32 for one in secrets)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    text = file.read_text()
    assert not any(one in text for one in secrets)
    assert hashlib.sha256(secrets[0].encode()).hexdigest() in text
    tokens = read(file, {})
    assert [(one.name, one.role) for one in tokens.known] == [("ann", WRITE), ("lab-board.2", READ)]
    assert [tokens.of_secret(one) for one in secrets] == [*tokens.known]
    assert [one.writes for one in tokens.known] == [True, False]
    for wrong in ("", secrets[0][:-1], secrets[0] + "x", "\udc80", tokens.known[0].digest):
        assert tokens.of_secret(wrong) is None


def test_comments_and_empty_lines_say_nothing(file):
    file.write_text(f"# whose are these\n\n   \n{LINE}\n")
    assert [one.name for one in read(file, {}).known] == ["ann"]


@pytest.mark.parametrize(
    "line",
    [
        "ann",
        "ann write",
        "ann write secret",
        "ann admin sha256:" + "0" * 64,
        "ann write sha256:" + "0" * 63,
        "ann write sha256:" + "G" * 64,
        "ann write md5:" + "0" * 64,
        LINE + " more",
        "write sha256:" + "0" * 64,
    ],
)
def test_a_line_that_is_wrong_is_told_by_its_number_alone(file, line):
    file.write_text(f"# \n{line}\n")
    with pytest.raises(UsageError, match=r"^line 2 of \S+ must be NAME ROLE sha256:HASH") as caught:
        read(file, {})
    assert "0000" not in str(caught.value) and "secret" not in str(caught.value)


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_that_others_may_write_to_is_refused(file, mode):
    file.write_text(LINE)
    file.chmod(mode)
    with pytest.raises(UsageError, match="others may write to the file of tokens"):
        read(file, {})


def test_a_file_that_is_none_is_refused(tmp_path, file):
    with pytest.raises(UsageError, match=r"cannot read the file of tokens .*: No such file"):
        read(file, {})
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="it is no text"):
        read(file, {})
    with pytest.raises(UsageError, match="cannot read the file of tokens"):
        read(tmp_path, {})
    with pytest.raises(UsageError, match="cannot write to the file of tokens"):
        make("ann", WRITE, tmp_path / "nowhere" / "tokens.txt")


@pytest.mark.parametrize("name", ["", "a b", "a\nb", "a:b", "é!", "1"])
def test_a_name_that_could_not_be_read_back_is_refused(file, name):
    with pytest.raises(UsageError, match="the name of a token must be of"):
        make(name, WRITE, file)
    assert not file.exists()


def test_every_name_is_there_once(file):
    make("ann", WRITE, file)
    before = file.read_text()
    with pytest.raises(UsageError, match="has a token of the name 'ann'"):
        make("ann", READ, file)
    with pytest.raises(UsageError, match="role must be read or write"):
        make("bob", "admin", file)
    assert file.read_text() == before
    with pytest.raises(UsageError, match="two tokens of the name 'ann'"):
        read(file, {"EPSEARCH_TOKENS": f"ann:read:{'s' * 20}"})
    file.write_text(f"{LINE}\n{LINE}\n")
    with pytest.raises(UsageError, match="two tokens of the name 'ann'"):
        read(file, {})


def test_tokens_of_the_environment_are_secrets_that_no_error_says():
    secret = "correct:horse:battery"
    tokens = read(None, {"EPSEARCH_TOKENS": f" ann:write:{secret}  board:read:{'b' * 16} "})
    assert [(one.name, one.role) for one in tokens.known] == [("ann", WRITE), ("board", READ)]
    assert tokens.of_secret(secret) == tokens.known[0]
    assert read(None, {}).known == ()
    for word in ("short-secret", "ann:short-secret", "ann:admin:short-secret", "ann:write:", ":write:short-secret"):
        with pytest.raises(UsageError, match=r"^word 2 of EPSEARCH_TOKENS must be NAME:ROLE:SECRET") as caught:
            read(None, {"EPSEARCH_TOKENS": f"board:read:{'b' * 16} {word}"})
        assert "short-secret" not in str(caught.value)
    with pytest.raises(UsageError, match="has 15 characters, allowed are 16 or more") as caught:
        read(None, {"EPSEARCH_TOKENS": "ann:write:" + "s" * 15})
    assert "sss" not in str(caught.value)


def test_a_session_is_of_its_token_until_its_end():
    writer, reader = TOKENS.of_secret(SECRETS[WRITE]), TOKENS.of_secret(SECRETS[READ])
    cookie = TOKENS.session(writer, now=1000)
    assert TOKENS.of_session(cookie, now=1000) == TOKENS.of_session(cookie, now=1000 + SESSION_SECONDS) == writer
    assert TOKENS.of_session(cookie, now=1002 + SESSION_SECONDS) is None
    assert TOKENS.of_session(TOKENS.session(reader, now=1000), now=1000) == reader
    assert SECRETS[WRITE] not in cookie and writer.digest not in cookie
    assert Tokens((reader,)).of_session(cookie, now=1000) is None, "a token that is gone has no sessions"


def test_a_session_that_was_changed_is_none():
    writer = TOKENS.of_secret(SECRETS[WRITE])
    cookie = TOKENS.session(writer, now=1000)
    who, end, signature = cookie.split(".")
    forged = Tokens((Token("eve", WRITE, digest("another-secret-word")),)).session(writer, now=1000)
    wrong = ["", ".", "..", who, f"{who}.{end}", f"{who}.{int(end) + 1}.{signature}", f"{who}.{end}.{signature[:-1]}"]
    wrong += [f"{who}..{signature}", f"{who}.²³.{signature}", f"{who}.{'9' * 5000}.{signature}", "\x00.\udc80.é"]
    wrong += [cookie[::-1], cookie + " ", SECRETS[WRITE], forged[:-1] + ("0" if forged[-1] != "0" else "1")]
    for one in wrong:
        assert TOKENS.of_session(one, now=1000) is None, one


def test_without_tokens_there_is_no_session():
    cookie = TOKENS.session(TOKENS.known[1])
    assert Tokens().of_session(cookie) is None and Tokens().of_secret(SECRETS[WRITE]) is None


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.2", "lab.example.org", ""])
def test_a_service_that_others_reach_needs_tokens(tmp_path, host):
    with pytest.raises(UsageError, match="others can reach, and there are no tokens"):
        check(settings(tmp_path, host=host))
    check(settings(tmp_path, host=host, tokens=TOKENS))


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "127.1.2.3"])
def test_at_loopback_nobody_needs_one(tmp_path, host):
    check(settings(tmp_path, host=host))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"parallel": 0}, r"parallel must be in \[1, 256\], got 0"),
        ({"parallel": 257}, r"parallel must be in \[1, 256\], got 257"),
        ({"port": 65536}, r"port must be in \[0, 65535\], got 65536"),
    ],
)
def test_what_a_service_cannot_be_is_one_line(tmp_path, options, words):
    with pytest.raises(UsageError, match=words):
        check(settings(tmp_path, **options))
    with pytest.raises(UsageError, match=r"there is no folder .*nowhere, given as --images"):
        check(settings(tmp_path, roots=(tmp_path / "nowhere",)))


def test_names_of_a_service_are_its_own_loopback_and_those_given(tmp_path):
    storage = LedgerUrl.of_file(tmp_path / "ledger")
    own = Settings(storage, tmp_path, tmp_path, host="0.0.0.0", names=("Lab.Example.org",))
    assert {"lab.example.org", "localhost", "127.0.0.1", "::1"} <= own.hosts and "0.0.0.0" not in own.hosts
    assert "10.1.2.3" in Settings(storage, tmp_path, tmp_path, host="10.1.2.3").hosts
