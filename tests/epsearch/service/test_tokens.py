"""Tokens and sessions: what a file may say, who may read it, and what a browser's cookie is worth."""

import hashlib
import hmac
import stat
import threading
import time

import pytest

from epsearch.failures.errors import UsageError
from epsearch.service.access.tokens import READ, SESSION_SECONDS, WRITE, Token, Tokens, digest, make, read, revoke
from epsearch.service.settings import Settings, check
from results.ledger.url import LedgerUrl
from tests.support.service import SECRETS, TOKENS, settings

LINE = f"ann write sha256:{digest('x' * 20)}"


@pytest.fixture
def file(tmp_path):
    return tmp_path / "tokens.txt"


def private(file, text):
    file.write_text(text)
    file.chmod(0o600)


def test_a_token_is_made_kept_as_a_hash_and_read_back(file):
    secrets = [make("ann", WRITE, file), make("2lab-board.2/3090box", READ, file)]
    assert len(set(secrets)) == 2 and all(len(one) >= 32 for one in secrets)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    text = file.read_text()
    assert not any(one in text for one in secrets)
    assert hashlib.sha256(secrets[0].encode()).hexdigest() in text
    tokens = read(file, {})
    assert [(one.name, one.role) for one in tokens.valid] == [("ann", WRITE), ("2lab-board.2/3090box", READ)]
    assert [tokens.of_secret(one) for one in secrets] == [*tokens.valid]
    assert [one.writes for one in tokens.valid] == [True, False]
    for wrong in ("", secrets[0][:-1], secrets[0] + "x", "\udc80", tokens.valid[0].digest):
        assert tokens.of_secret(wrong) is None


def test_comments_and_empty_lines_say_nothing(file):
    private(file, f"# whose are these\n\n   \n{LINE}\n")
    assert [one.name for one in read(file, {}).valid] == ["ann"]


@pytest.mark.parametrize(
    "line",
    [
        "ann",
        "ann write",
        "ann write secret",
        "ann owner sha256:" + "0" * 64,
        "ann write sha256:" + "0" * 63,
        "ann write sha256:" + "G" * 64,
        "ann write md5:" + "0" * 64,
        LINE + " more",
        "write sha256:" + "0" * 64,
    ],
)
def test_a_line_that_is_wrong_is_told_by_its_number_alone(file, line):
    private(file, f"# \n{line}\n")
    with pytest.raises(UsageError, match=r"^line 2 of \S+ must be NAME ROLE sha256:HASH") as caught:
        read(file, {})
    assert "0000" not in str(caught.value) and "secret" not in str(caught.value)


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666, 0o640, 0o604, 0o644, 0o610, 0o444])
def test_a_file_that_others_may_read_or_write_is_refused_by_every_command(file, mode, epsearch):
    file.write_text(LINE)
    file.chmod(mode)
    may = "write to" if mode & 0o022 else "read"
    with pytest.raises(UsageError, match=f"others may {may} the file of tokens .*tokens.txt; `chmod 600` it"):
        read(file, {})
    for words in (["bob"], ["--list"], ["--revoke", "ann"]):
        said = epsearch("token", *words, "--tokens", file)
        assert said.status == 2 and f"others may {may} the file" in said.err and said.err.count("\n") == 1
    assert file.read_text() == LINE


def test_a_file_that_is_none_is_refused(tmp_path, file):
    with pytest.raises(UsageError, match=r"cannot read the file of tokens .*: No such file"):
        read(file, {})
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="it is no text"):
        read(file, {})
    with pytest.raises(UsageError, match="cannot read the file of tokens"):
        read(tmp_path, {})
    with pytest.raises(UsageError, match="cannot write to "):
        make("ann", WRITE, tmp_path / "nowhere" / "tokens.txt")


@pytest.mark.parametrize("name", ["", "a b", "a\nb", "a:b", "é!", "/x", "a/b/c"])
def test_a_name_that_could_not_be_read_back_is_refused(file, name):
    with pytest.raises(UsageError, match="the name of a token must be of"):
        make(name, WRITE, file)
    assert not file.exists()


def test_every_name_is_there_once(file):
    make("ann", WRITE, file)
    before = file.read_text()
    with pytest.raises(UsageError, match="has a token of the name 'ann'"):
        make("ann", READ, file)
    with pytest.raises(UsageError, match="role must be read, write or admin"):
        make("bob", "owner", file)
    assert file.read_text() == before
    with pytest.raises(UsageError, match="two tokens of the name 'ann'"):
        read(file, {"EPSEARCH_TOKENS": f"ann:read:{'s' * 20}"})
    private(file, f"{LINE}\n{LINE}\n")
    with pytest.raises(UsageError, match="two tokens of the name 'ann'"):
        read(file, {})


def test_tokens_of_the_environment_are_secrets_that_no_error_says():
    secret = "correct:horse:battery"
    tokens = read(None, {"EPSEARCH_TOKENS": f" ann:write:{secret}  board:read:{'b' * 16} "})
    assert [(one.name, one.role) for one in tokens.valid] == [("ann", WRITE), ("board", READ)]
    assert tokens.of_secret(secret) == tokens.valid[0]
    assert read(None, {}).valid == ()
    for word in ("short-secret", "ann:short-secret", "ann:owner:short-secret", "ann:write:", ":write:short-secret"):
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
    wrong += [cookie[::-1], cookie + " ", SECRETS[WRITE], forged, TOKENS.session(writer, now=2000)]
    for one in wrong:
        assert TOKENS.of_session(one, now=1000) is None, one


def forgeries(text, token, now):
    """Cookies that somebody who has read all of a file of tokens can sign."""
    for key in (token.digest, text, token.name, ""):
        for signed in (f"{token.digest[:16]}.{int(now) + 3600}", f"{'0' * 32}.{int(now) + 3600}"):
            for message in (f"session {signed}", f"{token.digest} {signed}", signed):
                yield f"{signed}.{hmac.new(key.encode(), message.encode(), hashlib.sha256).hexdigest()}"


def test_whoever_reads_the_file_of_tokens_can_sign_nothing(file):
    make("ann", WRITE, file)
    tokens = read(file, {})
    now = time.time()
    assert tokens.of_session(tokens.session(tokens.valid[0])) == tokens.valid[0]
    for one in forgeries(file.read_text(), tokens.valid[0], now):
        assert tokens.of_session(one) is None, one


def test_the_key_lies_beside_the_tokens_and_outlives_the_service(file):
    make("ann", WRITE, file)
    one, other = read(file, {}), read(file, {})
    key = file.with_name("tokens.txt.sessions")
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    cookie = one.session(one.valid[0])
    assert other.of_session(cookie) == one.valid[0] == read(file, {}).of_session(cookie)
    other.end_session(cookie)
    assert one.of_session(cookie) is other.of_session(cookie) is read(file, {}).of_session(cookie) is None
    assert one.of_session(one.session(one.valid[0])) is not None, "another one of the same token goes on"
    assert cookie not in key.read_text() and {path.name for path in file.parent.iterdir()} == {file.name, key.name}
    key.chmod(0o640)
    with pytest.raises(UsageError, match="others may read the file of sessions"):
        read(file, {})
    key.chmod(0o600)
    key.write_text("{}")
    with pytest.raises(UsageError, match=r"the file of sessions .* is damaged; remove it, and sign in again"):
        read(file, {})


def test_many_services_that_begin_at_once_have_one_key(file):
    make("ann", WRITE, file)
    made, ready = [], threading.Barrier(8)
    threads = [threading.Thread(target=lambda: [ready.wait(), made.append(read(file, {}))]) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    cookie = made[0].session(made[0].valid[0])
    assert all(one.of_session(cookie) == made[0].valid[0] for one in made) and len(made) == 8


def test_a_session_is_over_after_twelve_hours_whatever_its_end_says():
    writer = TOKENS.of_secret(SECRETS[WRITE])
    later = TOKENS.session(writer, now=1000 + 10 * SESSION_SECONDS)
    assert TOKENS.of_session(later, now=1000) is None, "signed by a clock that was wrong"


def test_what_is_taken_out_of_the_file_is_refused_at_once(file, epsearch, capsys):
    secrets = {name: make(name, WRITE, file) for name in ("ann", "old", "bob")}
    tokens = read(file, {})
    cookie = tokens.session(tokens.of_secret(secrets["old"]))
    said = epsearch("token", "--list", "--tokens", file)
    assert said.status == 0 and said.out == "ann  write\nold  write\nbob  write\n"
    said = epsearch("token", "--revoke", "old", "--tokens", file)
    assert said.status == 0 and said.out == "revoked the token old\n"
    assert tokens.of_secret(secrets["old"]) is tokens.of_session(cookie) is None
    assert tokens.of_secret(secrets["ann"]) and tokens.of_secret(secrets["bob"])
    assert epsearch("token", "--revoke", "ole", "--tokens", file).err.startswith("epsearch: no token 'ole'; known: ann")
    new = make("new", READ, file)
    assert tokens.of_secret(new).role == READ, "one that is added is known at once"
    file.chmod(0o644)
    assert tokens.valid == () and tokens.needed, "nobody is everybody"
    assert "others may read the file of tokens" in capsys.readouterr().err
    file.chmod(0o600)
    assert tokens.of_secret(new)
    for name in ("ann", "bob", "new"):
        revoke(name, file)
    assert tokens.valid == () and tokens.needed
    file.unlink()
    assert tokens.valid == () and tokens.needed


def test_a_token_expires(file, epsearch, monkeypatch):
    said = epsearch("token", "ann", "--tokens", file, "--expires", "30d", "--json")
    assert said.status == 0
    tokens = read(file, {})
    assert tokens.of_secret(said.json["token"]).name == "ann"
    cookie = tokens.session(tokens.valid[0])
    (listed,) = epsearch("token", "--list", "--tokens", file, "--json").json
    assert listed["name"] == "ann" and listed["expires"].endswith("Z")
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + 30 * 86400 - 60)
    assert tokens.of_secret(said.json["token"])
    monkeypatch.setattr(time, "time", lambda: real() + 30 * 86400 + 60)
    assert tokens.of_secret(said.json["token"]) is tokens.of_session(cookie, real()) is None and tokens.needed


@pytest.mark.parametrize("words", [[], ["ann", "--list"], ["--list", "--revoke", "x"], ["ann", "--expires", "soon"]])
def test_a_token_command_that_says_two_things_is_refused(file, epsearch, words):
    said = epsearch("token", *words, "--tokens", file)
    assert said.status == 2 and said.err.count("\n") >= 1 and not file.exists()


@pytest.mark.parametrize("until", ["until=", "until=soon", "until=2030-01-01", "2030-01-01T00:00:00Z", "until=1e9"])
def test_an_expiry_that_is_none_is_refused(file, until):
    private(file, f"{LINE} {until}\n")
    with pytest.raises(UsageError, match="line 1 of"):
        read(file, {})


def test_without_tokens_there_is_no_session():
    cookie = TOKENS.session(TOKENS.valid[1])
    assert Tokens().of_session(cookie) is None and Tokens().of_secret(SECRETS[WRITE]) is None


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.2", "lab.example.org", ""])
def test_a_service_that_others_reach_needs_tokens(tmp_path, host):
    with pytest.raises(UsageError, match=r"host must be 127\.0\.0\.1 without tokens"):
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
    with pytest.raises(UsageError, match=r"--images must be a folder, got .*nowhere"):
        check(settings(tmp_path, roots=(tmp_path / "nowhere",)))


def test_names_of_a_service_are_its_own_loopback_and_those_given(tmp_path):
    storage = LedgerUrl.of_file(tmp_path / "ledger")
    own = Settings(storage, tmp_path, tmp_path, host="0.0.0.0", names=("Lab.Example.org",))
    assert {"lab.example.org", "localhost", "127.0.0.1", "::1"} <= own.hosts and "0.0.0.0" not in own.hosts
    assert "10.1.2.3" in Settings(storage, tmp_path, tmp_path, host="10.1.2.3").hosts
