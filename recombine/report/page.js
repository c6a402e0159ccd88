// One state (run, step, probe) and everything on the page that shows it. `#step=400&run=<digest>&probe=oracle` is a link to it.

const root = document.documentElement;
addEventListener("error", (event) => { root.dataset.error = String(event.message); });
addEventListener("securitypolicyviolation", (event) => { root.dataset.error = `blocked ${event.violatedDirective}`; });

const measureOverflow = () => { root.dataset.overflow = String(root.scrollWidth > root.clientWidth); root.dataset.width = String(root.clientWidth); };
const find = (id) => document.getElementById(id);
const percent = (v) => (v === null || v === undefined ? "–" : `${(100 * v).toFixed(1)}\u202f%`);
const grouped = (n) => (n >= 10000 ? n.toLocaleString("en-US") : String(n));
const levelName = (level) => (level === 0 ? "seen" : `level ${level}`);

function explorer(data) {
  const pictures = data.sheets.map(() => null);
  /** The picture of a sheet, loaded when it is first needed; the sheets of a run are few and small. */
  function picture(index) {
    if (!pictures[index]) {
      pictures[index] = new Image();
      pictures[index].onload = () => showSamples();
      pictures[index].src = data.sheets[index].uri;
    }
    return pictures[index];
  }
  const tiles = [...document.querySelectorAll("#grid .tile")];
  const cells = [...document.querySelectorAll("#scores td[data-field]")];
  const state = { run: data.runs[0], index: 0, probe: data.probes[0], paper: true, other: null };
  let place = null, timer = null;

  const nameOf = (probe) => (Object.hasOwn(data.names, probe) ? data.names[probe] : probe);
  const step = () => state.run.steps[state.index];
  const variant = (run = state.run) => data.variants.find((v) => v.name === run.variant);
  const siblings = (run = state.run) => data.runs.filter((r) => r.variant === run.variant);
  const scoreOf = (code, probe, run = state.run) => ((run.scores[probe] || {})[code] || [])[run === state.run ? state.index : nearest(run, step())] || null;
  const titled = (run) => (data.variants.length < 2 ? `seed ${run.seed}` : siblings(run).length < 2 ? run.variant : `${run.variant}, seed ${run.seed}`);

  /** The step of `run` that is nearest to `wanted`. */
  function nearest(run, wanted) {
    let best = 0;
    run.steps.forEach((s, i) => { if (Math.abs(s - wanted) < Math.abs(run.steps[best] - wanted)) best = i; });
    return best;
  }

  function setRun(run) {
    const wanted = step();
    state.run = run;
    state.index = nearest(run, wanted);
    find("slider").max = String(run.steps.length - 1);
    run.sheets.forEach(([, index]) => picture(index));
    fillSeeds();
    fillOthers();
    show();
  }

  /** The run that stands beside the shown one; null for none. */
  function setOther(run) {
    state.other = run === state.run ? null : run;
    if (state.other) state.other.sheets.forEach(([, index]) => picture(index));
    find("grid").classList.toggle("pairs", Boolean(state.other));
    document.querySelectorAll(".compared").forEach((e) => { e.hidden = !state.other; });
  }

  /** With two variants the other one stands beside the shown one from the start, seed by seed. */
  function counterpart() {
    const rest = data.runs.filter((r) => r.variant !== state.run.variant);
    return data.variants.length === 2 ? rest.find((r) => r.seed === state.run.seed) || rest[0] : null;
  }

  function fillOthers() {
    if (state.other && (state.other === state.run || (data.variants.length === 2 && state.follow))) setOther(counterpart());
    const options = data.runs.filter((r) => r !== state.run).map((r) => new Option(titled(r), r.id, false, r === state.other));
    find("other").replaceChildren(new Option("nothing", "", false, !state.other), ...options);
    find("pick-other").hidden = data.runs.length < 2;
  }

  function setStep(index, settled) {
    state.index = Math.max(0, Math.min(state.run.steps.length - 1, index));
    show();
    if (settled) remember();
  }

  function show() {
    const text = grouped(step());
    find("slider").value = String(state.index);
    find("slider").setAttribute("aria-valuetext", `step ${text}`);
    find("step").textContent = text;
    document.querySelectorAll(".step-copy").forEach((e) => { e.textContent = text; });
    document.querySelectorAll(".run-copy").forEach((e) => { e.textContent = `${state.run.variant}, seed ${state.run.seed}`; });
    document.querySelectorAll("#variants button").forEach((b) => b.setAttribute("aria-pressed", String(b.dataset.variant === state.run.variant)));
    tiles.forEach(showScore);
    for (const cell of cells) {
      const score = scoreOf(cell.dataset.code, cell.dataset.probe);
      cell.textContent = percent(score && score[Number(cell.dataset.field)]);
    }
    showCurves();
    showSamples();
    root.dataset.step = String(step());
    root.dataset.run = state.run.id;
  }

  function showScore(tile) {
    writeScore(tile, scoreOf(tile.dataset.code, state.probe), state.run);
    if (state.other) writeScore(tile.querySelector(".compared"), scoreOf(tile.dataset.code, state.probe, state.other), state.other);
  }

  function writeScore(tile, score, run) {
    const [joint, low, high] = score || [null, null, null];
    tile.querySelector(".whose").textContent = titled(run);
    tile.querySelector(".accuracy").textContent = percent(joint);
    tile.querySelector(".interval").textContent = low === null || high === null ? "" : `${(100 * low).toFixed(0)} – ${(100 * high).toFixed(0)}`;
    tile.querySelector(".meter span").style.width = `${100 * (joint || 0)}%`;
    const whisker = tile.querySelector(".meter i").style;
    whisker.left = `${100 * (low || 0)}%`;
    whisker.width = low === null || high === null ? "0" : `${100 * (high - low)}%`;
  }

  /** The newest sheet at or before the step; a note says so when it is older. */
  function showSamples() {
    const newest = (run) => run.sheets.filter(([s]) => s <= step()).pop();
    const found = newest(state.run);
    const note = find("samples-note");
    note.hidden = !data.sheets.length || Boolean(found && found[0] === step());
    const kept = state.run.sheets.map(([s]) => grouped(s)).join(", ");
    note.textContent = found ? `Samples shown: step ${grouped(found[0])}, the last kept before this step.` : kept ? `Samples of this run were kept at step ${kept}.` : "No samples of this seed are among these results.";
    for (const tile of tiles) {
      drawSamples(tile.querySelector("canvas"), tile.dataset.row, found);
      if (state.other) drawSamples(tile.querySelector(".compared canvas"), tile.dataset.row, newest(state.other));
    }
  }

  function drawSamples(canvas, row, found) {
    if (!canvas) return;
    canvas.dataset.step = found ? String(found[0]) : "";
    const context = canvas.getContext("2d"), sheet = found && data.sheets[found[1]], image = found && picture(found[1]);
    if (!image || !image.complete || !image.naturalWidth) { if (!found) context.clearRect(0, 0, canvas.width, canvas.height); return; }
    const count = sheet.shown, across = Math.ceil(count / Math.min(2, count)), side = sheet.cell, size = Math.round(side), y = Number(row) * side;
    const pitch = size + 1, width = across * pitch - 1;
    if (canvas.width !== width) { canvas.width = width; canvas.height = Math.ceil(count / across) * pitch - 1; }
    for (let i = 0; i < count; i++) context.drawImage(image, i * side, y, side, side, (i % across) * pitch, Math.floor(i / across) * pitch, size, size);
  }

  function showCurves() {
    const v = variant(), paper = state.paper ? v.paper : null;
    place = drawCurves(find("curves"), { variant: v, runs: siblings(), run: state.run, probe: state.probe, levels: data.levels, step: step(), paper, other: state.other && { steps: state.other.steps, curves: state.other.curves[state.probe] || {} } });
    for (const level of data.levels) {
      const score = ((state.run.curves[state.probe] || {})[level] || [])[state.index];
      find(`legend-${level}`).textContent = percent(score && score[0]);
    }
    find("legend-paper").hidden = !v.paper;
    if (v.paper) find("legend-paper-text").textContent = `paper A, ${v.paper.figure}: ${v.paper.label}`;
    const seeds = siblings().length;
    find("curves-note").textContent = (seeds > 1 ? `Bold: mean over ${seeds} seeds; thin: each seed; the dots and the numbers above are seed ${state.run.seed}. ` : "") +
      `Shaded: the interval of one measurement (low to high in the rows), averaged over the level's compositions${seeds > 1 ? " and seeds" : ""}. Share of samples in % that show all factors as prompted, by the ${nameOf(state.probe)}.` +
      (state.other ? ` Dotted: ${titled(state.other)}.` : "") + (v.paper ? " Dashed: the paper's own curve, decoded from its figure, at its own updates; its batch size, model and probe differ, so compare shapes and end points, not single steps." : "");
  }

  function fillSeeds() {
    find("seed").replaceChildren(...siblings().map((r) => new Option(r.seed, r.id, false, r === state.run)));
    find("pick-seed").hidden = siblings().length < 2;
  }

  function fillVariants() {
    if (data.variants.length < 2) return;
    find("variants").replaceChildren(...data.variants.map((v) => {
      const button = document.createElement("button");
      button.type = "button";
      button.dataset.variant = v.name;
      button.innerHTML = sparkline(v, state.probe, data.levels);
      button.prepend(v.name.replaceAll("+", "+\u200b"));
      button.onclick = () => { const same = data.runs.filter((r) => r.variant === v.name); setRun(same.find((r) => r.seed === state.run.seed) || same[0]); remember(); };
      return button;
    }));
  }

  function fillLegend() {
    const entries = data.levels.map((level) => {
      const entry = document.createElement("span");
      entry.className = `level-${Math.min(level, 4)}`;
      entry.innerHTML = `<i class="swatch"></i>${levelName(level)} <b id="legend-${level}"></b>`;
      return entry;
    });
    const paper = document.createElement("label");
    paper.id = "legend-paper";
    paper.innerHTML = '<input type="checkbox" checked><i class="dash"></i><span id="legend-paper-text"></span>';
    paper.firstChild.onchange = (event) => { state.paper = event.target.checked; showCurves(); };
    find("legend").replaceChildren(...entries, paper);
  }

  function play(on) {
    clearInterval(timer);
    timer = on ? setInterval(() => (state.index + 1 < state.run.steps.length ? setStep(state.index + 1) : play(false)), 650) : null;
    if (on && state.index === state.run.steps.length - 1) setStep(0);
    if (!on) remember();
    const button = find("play");
    button.setAttribute("aria-pressed", String(on));
    button.firstChild.textContent = on ? "❚❚" : "▶";
    button.lastChild.textContent = on ? "Pause" : "Play";
  }

  function remember() {
    const hash = new URLSearchParams({ step: step(), run: state.run.id, probe: state.probe, with: state.other ? state.other.id : "" });
    try { history.replaceState(null, "", `#${hash}`); } catch { /* some browsers refuse it on files; the page works without */ }
  }

  /** What the address names; whatever it does not name stays. */
  function recall() {
    const given = new URLSearchParams(location.hash.slice(1));
    if (data.probes.includes(given.get("probe"))) state.probe = given.get("probe");
    const run = data.runs.find((r) => r.id === given.get("run"));
    if (run) state.run = run;
    state.follow = !given.has("with");
    setOther(state.follow ? counterpart() : data.runs.find((r) => r.id === given.get("with")) || null);
    state.index = given.has("step") ? nearest(state.run, Number(given.get("step")) || 0) : Math.min(state.index, state.run.steps.length - 1);
    find("probe").value = state.probe;
    setRun(state.run);
  }

  function connect() {
    find("slider").addEventListener("input", (event) => { if (timer) play(false); setStep(Number(event.target.value)); });
    find("slider").addEventListener("change", remember);
    find("seed").addEventListener("change", (event) => { setRun(data.runs.find((r) => r.id === event.target.value)); remember(); });
    find("other").addEventListener("change", (event) => { state.follow = false; setOther(data.runs.find((r) => r.id === event.target.value) || null); show(); remember(); });
    find("probe").addEventListener("change", (event) => { state.probe = event.target.value; fillVariants(); show(); remember(); });
    find("play").addEventListener("click", () => play(!timer));
    const drag = (event) => {
      const x = event.clientX - find("curves").getBoundingClientRect().left;
      const gaps = state.run.steps.map((s) => Math.abs(place(s) - x));
      setStep(gaps.indexOf(Math.min(...gaps)));
    };
    find("curves").addEventListener("pointerdown", (event) => { if (timer) play(false); drag(event); });
    find("curves").addEventListener("pointermove", (event) => { if (event.buttons) drag(event); });
    addEventListener("keydown", (event) => {
      const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!move || event.altKey || event.ctrlKey || event.metaKey || event.target.closest("input, select, textarea, .widget, .scroll, [contenteditable]")) return;
      event.preventDefault();
      setStep(state.index + move, true);
    });
    addEventListener("hashchange", () => { if (/step=|run=|probe=/.test(location.hash)) recall(); });
    new ResizeObserver(() => showCurves()).observe(find("curves"));
  }

  state.index = state.run.steps.length - 1;
  find("probe").replaceChildren(...data.probes.map((p) => new Option(nameOf(p), p)));
  find("pick-probe").hidden = data.probes.length < 2;
  find("controls").hidden = false;
  fillLegend();
  recall();
  fillVariants();
  show();
  connect();
}

if (find("data")) explorer(JSON.parse(find("data").textContent));
measureOverflow();
addEventListener("resize", measureOverflow);
addEventListener("load", measureOverflow);
