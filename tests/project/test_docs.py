"""The pages under docs/ are true as far as they can be run: shell blocks, YAML, commands with their flags, values of the chart.

Blocks marked `sh` are executed as they stand, with outputs compared as in test_readme.py, which runs docs/getting-started.md; those that need a cluster (`sh cluster`)
are run by tests/cluster. Every YAML block is read by the decoder that it is for. Every command of ours, wherever a page has it,
has the subcommand and the options that it is written with.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import yaml

from controller.main import main as controller_main
from controller.manifests.load import load_install
from controller.manifests.naming import Release
from edgefast import __version__
from edgefast.api.decode.decode import decode_documents, load_config
from edgefast.api.kinds import KINDS
from edgefast.cli.main import main
from edgefast.cli.run import run
from monitoring.promtool import run_promtool

from .scripts import run_script
from .test_readme import IN_ORDER, ROOT, Block, expect, read_blocks

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
COMMANDS: dict[str, click.Command] = {"edgefast": main, "edgefast-controller": controller_main}


def _named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _blocks(language: str) -> list[tuple[Path, str]]:
    """(page, text) of every block of a language."""
    return [
        (page, text)
        for page in PAGES
        for text in re.findall(
            rf"^```{language}\b[^\n]*\n(.*?)^```$", page.read_text(), re.M | re.S
        )
    ]


_RUN = [
    (page, block)
    for page in PAGES
    if page not in IN_ORDER
    for block in read_blocks(page.read_text())
]


@pytest.mark.parametrize(
    ("page", "block"), _RUN, ids=[f"{page.stem}-{number}" for number, (page, _) in enumerate(_RUN)]
)
def test_shell_blocks_do_what_they_show(page: Path, block: Block) -> None:
    out, shown = run_script(block.script, _named(page))
    assert block.output is not None, "a block that shows nothing proves nothing"
    assert expect(block.output).fullmatch(out), shown


def test_there_are_blocks_of_each_kind() -> None:
    assert {page.stem for page, _ in _RUN} >= {"explain", "diff"}
    assert len(_blocks("yaml")) >= 6 and len(list(_written())) >= 30


@pytest.mark.pure
@pytest.mark.parametrize(
    ("page", "text"),
    _blocks("yaml"),
    ids=lambda value: value.stem if isinstance(value, Path) else "",
)
def test_yaml_is_what_its_decoder_takes(page: Path, text: str, tmp_path: Path) -> None:
    first = next(iter(yaml.safe_load_all(text)))
    if first.keys() == {"spec"}:  # of an EdgeProxy, in the middle of a page about it
        head = "apiVersion: gateway.edge.io/v1alpha1\nkind: EdgeProxy\nmetadata: {name: settings}\n"
        text, first = head + text, {"kind": "EdgeProxy"}
    if first.get("kind") == "EdgeGateway":
        _, problems = load_config(text.encode(), _named(page))
    elif "kind" in first:
        decoded = decode_documents(text.encode(), _named(page))
        assert len(decoded.objects) == len(list(yaml.safe_load_all(text)))
        problems = decoded.problems
    elif "scrape_configs" in first:
        (tmp_path / "prometheus.yaml").write_text(text)
        assert "SUCCESS" in run_promtool("check", "config", tmp_path / "prometheus.yaml")
        return
    else:
        _, problems = load_install(Release(), [(_named(page), text.encode())])
    assert not problems, [one.text() for one in problems]


def _written() -> Iterator[tuple[Path, list[str]]]:
    """(page, words) of every command of ours: at the start of a line of a block, behind a pipe, or in backquotes."""
    for page in PAGES:
        text = page.read_text()
        found = re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S))
        for block in (*_texts(page, "sh"), *_texts(page, "text")):
            found += re.split(r"\n|(?<!\\)\||;|&& ", block.replace("\\\n", " "))
        for line in found:
            said = re.sub(r"^(?:\$ |\.venv/bin/)", "", line.strip())
            if re.match(r"edgefast(-controller)? [a-z]", said):
                yield page, shlex.split(said.replace("...", ""), comments=True)


def _texts(page: Path, language: str) -> list[str]:
    return [text for where, text in _blocks(language) if where == page]


@pytest.mark.pure
def test_commands_and_their_options_exist() -> None:
    for page, (program, name, *words) in _written():
        group = COMMANDS[program]
        assert isinstance(group, click.Group)
        command = group.get_command(click.Context(group), name)
        assert command is not None, f"{_named(page)}: {program} {name}"
        known = {flag for one in command.params for flag in one.opts} | {"--help", "-h"}
        for word in words:
            if re.match(r"--?[A-Za-z]", word):
                assert word.partition("=")[0] in known, f"{_named(page)}: {program} {name} {word}"


@pytest.mark.pure
def test_make_targets_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    for page in PAGES:
        for name in re.findall(r"(?:`|^)make ([a-z][a-z-]*)", page.read_text(), re.M):
            assert name in targets, f"{_named(page)}: make {name}"


@pytest.mark.pure
def test_values_on_command_lines_are_sound() -> None:
    text = "".join(page.read_text() for page in (ROOT / "docs" / "guides").rglob("*.md"))
    # `...=...` stands for what the reader has to fill in; `...watch.` for what was named before.
    written = [one for one in re.findall(r"--set ([^\s`]+=[^\s`]+)", text) if "..." not in one]
    written += re.findall(
        r"`((?:config\.edgeGateway|certgen|networkPolicy)\.[\w.]+=[^\s`]+)`", text
    )
    assert len(written) >= 8
    made, problems = load_install(Release(), settings=written)
    assert made is not None, [one.text() for one in problems]


@pytest.mark.pure
def test_pages_and_examples_name_the_version() -> None:
    """edgefast/__init__.py has the version; the tests of the chart and of CHANGELOG.md compare theirs with it."""
    paths = [
        ROOT / "README.md",
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "examples").rglob("*.yaml"),
    ]
    tags = {}
    for path in paths:
        for tag in re.findall(r"\bedgefast(?:-controller)?:(\d[\d.]*\d)", path.read_text()):
            tags.setdefault(tag, path)
    assert set(tags) == {__version__}, tags
    assert f"\n| release | {__version__};" in (ROOT / "README.md").read_text()


@pytest.mark.pure
def test_the_table_of_flags_is_that_of_edgefast_run() -> None:
    section = (
        (ROOT / "docs" / "reference" / "configuration.md").read_text().split("## `edgefast run`")[1]
    )
    section = section.split("\n## ")[0].replace("\\|", "/")
    shown = dict(re.findall(r"^\| `(-\S+?)[ `][^|]*\| (.*?) \|", section, re.M))
    options = {one.opts[0]: one.default for one in run.params}
    assert {flag.replace("--no-", "--") for flag in shown} == set(options)
    for flag, default in options.items():
        if isinstance(default, str | float) and not isinstance(default, bool):
            said = default if isinstance(default, str) else f"{default:g}"
            assert shown[flag].strip("`") == said, flag


@pytest.mark.pure
@pytest.mark.parametrize(
    ("page", "rows"),
    [
        ("docs/reference/features.md", r"^\| group \| kinds \|\n(?:\|.*\n)+"),
        ("docs/reference/configuration.md", r"^\| group \| kinds \|\n(?:\|.*\n)+"),
    ],
)
def test_tables_of_kinds_name_all_that_are_read(page: str, rows: str) -> None:
    table = re.search(rows, (ROOT / page).read_text(), re.M)
    assert table is not None
    assert {kind for _, kind in KINDS} - set(re.findall(r"[A-Za-z]+", table[0])) == set()
