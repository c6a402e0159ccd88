"""The pages in a real browser: one slider moves everything, a phone suffices, nothing hostile
runs."""

import json
import re
import shutil
import subprocess
from html import escape, unescape
from pathlib import Path

import pytest
from PIL import Image, ImageChops
from synthetic_results import (
    VARIANTS,
    accuracy,
    claims,
    digest,
    hostile,
    make_results,
    shown_accuracy,
)

from recombine.plots.style import display
from recombine.report import render, write_site

CHROMIUM = next(
    (p for p in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if p), None
)
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --hide-scrollbars "
    "--disable-background-networking --disable-component-update --disable-sync "
    "--enable-logging=stderr --virtual-time-budget=3000 --allow-file-access-from-files"
)
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="no chromium, chromium-browser or google-chrome on the PATH"
)


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    directory = make_results(tmp_path_factory.mktemp("results"))
    write_site(directory)
    return directory


def browse(page: Path, where: str = "", *flags: str, width: int = 1280, height: int = 900) -> str:
    """The document after its scripts have run; any message on the console fails the test."""
    profile = page.parent / ".profile"
    command = [
        CHROMIUM,
        *FLAGS.split(),
        f"--user-data-dir={profile}",
        f"--window-size={width},{height}",
        *flags,
    ]
    done = subprocess.run(
        [*command, f"{page.as_uri()}{where}"], capture_output=True, text=True, timeout=120
    )
    shutil.rmtree(profile, ignore_errors=True)
    assert not (said := [line for line in done.stderr.splitlines() if "CONSOLE" in line]), said
    return done.stdout


PHONE, DESK = (375, 800), (1400, 900)


def framed(folder: Path, pages: list[Path], probe: str, size: tuple[int, int] = PHONE) -> list:
    """Pages in frames as wide as a phone; what the script `probe`, a function of a frame's window,
    answers for each."""
    wide, high = size
    frames = "".join(
        f'<iframe width="{wide}" height="{high}" src="{escape(page.as_uri())}"></iframe>'
        for page in pages
    )
    script = f"onload = () => {{ out.textContent = JSON.stringify(Array.from(frames, {probe})) }}"
    wrapper = folder / "framed.html"
    wrapper.write_text(
        f"<style>iframe {{ border: 0 }}</style>{frames}<pre id=out></pre><script>{script}</script>"
    )
    document = browse(wrapper, "", "--dump-dom")
    return json.loads(unescape(re.search(r'<pre id="out">(.*?)</pre>', document, re.S).group(1)))


def on_phone(folder: Path, pages: list[Path]) -> list[dict[str, str]]:
    """What each page says about itself: its root's data attributes."""
    return framed(folder, pages, "(f) => f.document.documentElement.dataset")


def shown_step(document: str, code: str) -> str:
    return re.search(
        rf'<article[^>]*data-code="{code}".*?<canvas[^>]*data-step="(\d*)"', document, re.S
    ).group(1)


def of_root(document: str, name: str) -> str | None:
    found = re.search(rf'<html[^>]* data-{name}="([^"]*)"', document)
    return found and found.group(1)


def blue_pixels(picture: Path) -> int:
    """Pixels in the ink of a blue shape."""
    red, green, blue = Image.open(picture).convert("RGB").split()
    near = (
        red.point(lambda v: 255 * (v < 70)),
        green.point(lambda v: 255 * (v < 75)),
        blue.point(lambda v: 255 * (v > 190)),
    )
    return ImageChops.darker(ImageChops.darker(near[0], near[1]), near[2]).histogram()[255]


def test_an_address_opens_run_step_and_probe(site):
    step, run = 6000, digest("maskgit", 2)
    document = browse(
        site / "objectives" / "index.html", f"#step={step}&run={run}&probe=linear", "--dump-dom"
    )
    assert of_root(document, "error") is None
    assert (of_root(document, "step"), of_root(document, "run")) == (str(step), run)
    assert re.search(rf'id="curves"[^>]*data-cursor="{step}"', document)
    for code in ("000", "110", "111"):
        expected = render.percent(accuracy("maskgit", 2, code, step, 0.02))
        assert shown_accuracy(document, code) == expected
        assert shown_step(document, code) == str(step)
        assert re.search(
            rf'data-code="{code}" data-probe="linear" data-field="0">{expected}<', document
        )


INK = """(f) => {
  const slider = f.document.getElementById("slider");
  const count = (tile) => {
    const shown = tile.querySelector("canvas"), copy = shown.cloneNode(), found = [0, 0];
    const context = copy.getContext("2d", { willReadFrequently: true });
    context.drawImage(shown, 0, 0);
    const { data } = context.getImageData(0, 0, copy.width, copy.height);
    for (let i = 0; i < data.length; i += 4) {
      found[0] += data[i] > 190 && data[i + 2] < 70;
      found[1] += data[i] < 70 && data[i + 2] > 190;
    }
    return [tile.dataset.code, found];
  };
  return ["0", slider.max].map((index) => {
    slider.value = index; slider.dispatchEvent(new f.Event("input"));
    return Object.fromEntries(Array.from(f.document.querySelectorAll(".tile"), count));
  });
}"""


def test_each_frame_draws_its_own_composition_at_its_own_step(site):
    """Red and blue ink in every frame: at step 0 all is red circles in noise, at the end colour,
    size and shape are right."""
    ((first, last),) = framed(site, [site / "objectives" / "index.html"], INK)
    assert all(blue == 0 for red, blue in first.values())
    assert all((blue > red) == (code[1] == "1") for code, (red, blue) in last.items())
    ink = {code: max(both) for code, both in last.items()}
    assert all(ink[c + "0"] > 1.5 * ink[c + "1"] for c in ("00", "01", "10", "11"))
    assert all(ink["0" + c] > 1.2 * ink["1" + c] for c in ("00", "01", "10", "11"))


USE = """(f) => {
  const find = (id) => f.document.getElementById(id), seen = [];
  const tile = f.document.querySelector('[data-code="111"]');
  const look = () => seen.push([Number(f.document.documentElement.dataset.step),
    find("curves").dataset.cursor,
    tile.querySelector(".accuracy").textContent, tile.querySelector("canvas").dataset.step]);
  const slider = find("slider");
  look();
  slider.value = 3; slider.dispatchEvent(new f.Event("input")); look();
  const key = new f.KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true });
  f.document.body.dispatchEvent(key); look();
  find("seed").value = find("seed").options[2].value;
  find("seed").dispatchEvent(new f.Event("change")); look();
  find("variants").children[1].click(); look();
  return seen;
}"""


def test_one_slider_moves_samples_accuracies_and_cursor_together(site):
    """Opened, slid to the fourth step, one step on by key, then another seed, then another variant
    (with fewer sheets)."""
    (seen,) = framed(site, [site / "objectives" / "index.html"], USE)
    states = [
        ("dit", 0, 20000),
        ("dit", 0, 200),
        ("dit", 0, 400),
        ("dit", 2, 400),
        ("maskgit", 2, 400),
    ]
    sheets_at = [20000, 200, 400, 400, 100]
    assert seen == [
        [step, str(step), render.percent(accuracy(variant, seed, "111", step)), str(sheet)]
        for (variant, seed, step), sheet in zip(states, sheets_at, strict=True)
    ]


FILTER = """(f) => {
  const find = (id) => f.document.getElementById(id);
  const shown = () => Array.from(f.document.querySelectorAll(".claim-list tbody tr"))
    .filter((row) => !row.hidden).map((row) => row.id.replace("claim-", ""));
  const set = (id, value, kind) => {
    find(id).value = value;
    find(id).dispatchEvent(new f.Event(kind, { bubbles: true }));
    return shown();
  };
  const seen = [shown(), set("filter-text", "DIFFUSION right", "input")];
  find("filter").reset();
  seen.push(set("filter-study", "swing-by", "input"), set("filter-verdict", "supported", "input"));
  seen.push(set("filter-text", "no such words", "input"), find("filter-count").textContent);
  f.document.querySelector('a[data-verdict="contradicted"]').click();
  return [...seen, shown()];
}"""


def test_a_claim_is_found_by_its_words_its_study_and_its_verdict(site):
    (seen,) = framed(site, [site / "index.html"], FILTER)
    start, words, study, both, none, count, verdict = seen
    ids = [f"{s}-{c['id']}" for s in ("objectives", "swing-by") for c in claims(s)]
    of = {i: c for i, c in zip(ids, claims("x") * 2, strict=True)}
    assert start == ids[:12]
    assert words == [i for i in ids if "diffusion model is right" in of[i]["statement"]]
    assert study == [i for i in ids if i.startswith("swing-by")]
    assert both == [i for i in study if of[i]["verdict"] == "supported"]
    assert (none, count) == ([], f"0 of {len(ids)} claims")
    assert verdict == [i for i in ids if of[i]["verdict"] == "contradicted"]


COMPARE = """(f) => {
  const find = (id) => f.document.getElementById(id);
  const tile = f.document.querySelector('[data-code="111"]');
  const look = () => [tile, tile.querySelector(".compared")].map((part) =>
    [part.querySelector(".whose").textContent, part.querySelector(".accuracy").textContent]);
  const dotted = () => f.document.querySelectorAll("#curves .of-other").length;
  const seen = [look(), dotted()];
  find("other").value = ""; find("other").dispatchEvent(new f.Event("change"));
  return [...seen, tile.querySelector(".compared").hidden, dotted()];
}"""


def test_two_runs_stand_side_by_side(site):
    """With two variants from the start; the same seed of the other one."""
    (seen,) = framed(site, [site / "objectives" / "index.html"], COMPARE)
    both = [
        [f"{display(v)}, seed 0", render.percent(accuracy(v, 0, "111", 20000))] for v in VARIANTS
    ]
    assert seen == [both, 3, True, 0]


def test_a_phone_needs_no_sideways_scroll(site):
    pages = [
        site / "index.html",
        site / "objectives" / "index.html",
        site / "swing-by" / "index.html",
    ]
    for found in on_phone(site, pages):
        assert (found["width"], found["overflow"]) == ("375", "false")
        assert "error" not in found


OUT_OF_REACH = """(f) => {
  const { document, getComputedStyle } = f;
  const every = (what) => Array.from(document.querySelectorAll(what));
  const scrolls = (e) => /auto|scroll/.test(getComputedStyle(e).overflowX)
    && e.scrollWidth > e.clientWidth && !e.closest("[hidden]");
  const keys = "a, button, input, select, [tabindex]";
  const stuck = every("main *").filter((e) => scrolls(e) && !e.matches(keys)
    && !e.querySelector(keys));
  const read = (node) => !node.parentElement.closest("[aria-hidden=true]")
    && getComputedStyle(node.parentElement).display !== "none" && node.textContent.trim();
  const named = (b) => b.getAttribute("aria-label")
    || [b, ...b.querySelectorAll("*")].some((e) => Array.from(e.childNodes).some(
      (node) => node.nodeType === 3 && read(node)));
  const silent = every("button").filter((b) => b.offsetParent && !named(b));
  return [every("main .scroll").filter(scrolls).length, [...stuck, ...silent].map((e) => e.outerHTML)];
}"""


def test_what_scrolls_is_reached_by_keys_and_every_button_has_a_name(site):
    """On a phone figures are wider than the screen, and a button shows its sign alone."""
    pages = [site / "index.html", *(site / s / "index.html" for s in ("objectives", "swing-by"))]
    answers = framed(site, pages, OUT_OF_REACH)
    assert [lost for _, lost in answers] == [[], [], []]
    assert any(scrolling for scrolling, _ in answers)


def test_samples_are_shown_without_scripts(site, tmp_path):
    """The page as a browser without scripts reads it: no script elements, and what stands in
    noscript."""
    text = (site / "objectives" / "index.html").read_text()
    plain = site / "objectives" / "plain.html"
    plain.write_text(re.sub(r"<script.*?</script>|</?noscript>", "", text, flags=re.S))
    browse(plain, "", f"--screenshot={tmp_path / 'plain.png'}", height=2000)
    assert blue_pixels(tmp_path / "plain.png") > 5000


def test_hostile_results_run_nothing(tmp_path):
    folder = hostile(tmp_path)
    write_site(tmp_path)
    for found in on_phone(tmp_path, [folder / "index.html", tmp_path / "index.html"]):
        assert found["overflow"] == "false"
        assert not found.keys() & {"pwned", "error"}
