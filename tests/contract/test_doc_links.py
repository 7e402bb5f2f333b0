"""Links in the documentation lead somewhere."""

import re

from support.pages import PROJECT, heading_anchors, pages, without_blocks
from support.sweeps import sweep


@sweep("page", pages())
def test_links_between_pages_resolve(page: str) -> None:
    wrong: list[str] = []
    for target in re.findall(r"\]\(([^)\s]+)\)", without_blocks(page)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = ((PROJECT / page).parent / path).resolve() if path else PROJECT / page
        if not file.exists() or PROJECT not in file.parents:
            wrong.append(f"{target}: no such file")
        elif anchor and anchor not in heading_anchors(file.relative_to(PROJECT).as_posix()):
            wrong.append(f"{target}: no such heading")
    assert wrong == []


def test_every_page_is_reachable_from_the_readme() -> None:
    reached, found = set[str](), ["README.md"]
    while found:
        page = found.pop()
        if page in reached or not page.endswith(".md"):
            continue
        reached.add(page)
        targets = re.findall(r"\]\(([^)#\s:]+)[^)]*\)", without_blocks(page))
        files = [((PROJECT / page).parent / target).resolve() for target in targets]
        found += [file.relative_to(PROJECT).as_posix() for file in files if file.is_file()]
    assert set(pages()) <= reached, f"nothing leads to {sorted(set(pages()) - reached)}"


@sweep("page", pages())
def test_a_heading_has_a_blank_line_before_and_after_it(page: str) -> None:
    """Without them, the site shows it as a part of the paragraph or the table."""
    lines = ["", *without_blocks(page).splitlines(), ""]
    headings = [number for number, line in enumerate(lines) if re.match("#+ ", line)]
    assert [lines[each] for each in headings if lines[each - 1] or lines[each + 1]] == []


@sweep("page", pages())
def test_project_files_named_on_a_page_exist(page: str) -> None:
    named = re.findall(r"`((?:src|tests|docs|\.ci)/[\w./-]+)`", without_blocks(page))
    missing = [name for name in named if not (PROJECT / name).exists()]
    assert missing == []
